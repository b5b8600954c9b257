//! The format `email`: Go's `mail.ParseAddress` as kube-apiserver 1.36 calls it.

use super::address;

/// Whether the text is one address: `a@b`, `Name <a@b>`, or a group of one address.
pub(super) fn valid(text: &str) -> bool {
    let mut parser = AddressParser { rest: text };
    let count = parser.address(true);
    count == Some(1) && parser.skip_comments() && parser.rest.is_empty()
}

/// The rest of a text that is read from the front.
struct AddressParser<'a> {
    rest: &'a str,
}

impl<'a> AddressParser<'a> {
    /// Reads an address, or a group if these are allowed here; returns the number of addresses.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        let start = self.rest;
        if self.spec().is_some() {
            self.skip_space();
            let has_comment = self.take('(');
            return (!has_comment || self.comment()).then_some(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if groups && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.spec().is_some() && self.take('>')).then_some(1)
    }

    /// Reads the addresses of a group, up to the semicolon.
    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            count += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.take(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// Reads `local@domain`.
    fn spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|text| !text.is_empty())?;
        } else {
            self.atom().filter(|atom| has_single_dots(atom))?;
        }
        if !self.take('@') {
            return None;
        }
        self.skip_space();
        if self.rest.starts_with('[') {
            return self.literal();
        }
        self.atom().filter(|atom| has_single_dots(atom)).map(drop)
    }

    /// Reads the name before an address: words up to the first character that begins none.
    fn phrase(&mut self) -> Option<()> {
        let mut count = 0;
        loop {
            if count > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            let word = match self.rest.chars().next() {
                None => break,
                Some('"') => self.quoted(),
                Some(_) => self.atom().filter(|word| !has_unknown_charset(word)),
            };
            if word.is_none() {
                break;
            }
            count += 1;
        }
        (count > 0).then_some(())
    }

    /// Reads a text in quotation marks; at a fault nothing is taken.
    fn quoted(&mut self) -> Option<&'a str> {
        let inside = self.rest.strip_prefix('"')?;
        let mut is_escaped = false;
        for (index, c) in inside.char_indices() {
            match c {
                c if !is_visible(c) && c != ' ' && c != '\t' => return None,
                _ if is_escaped => is_escaped = false,
                '"' => {
                    self.rest = &inside[index + 1..];
                    return Some(&inside[..index]);
                }
                c => is_escaped = c == '\\',
            }
        }
        None
    }

    /// Reads characters of words and dots.
    fn atom(&mut self) -> Option<&'a str> {
        let is_part = |c: char| is_visible(c) && !"()<>[]:;@\\,\"".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// Reads an IP address in brackets.
    fn literal(&mut self) -> Option<()> {
        let (inside, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        self.rest = rest;
        // Unlike in the other formats, octets do not begin with zeros.
        let has_zeros = |octet: &str| octet.len() > 1 && octet.starts_with('0');
        let octets = inside.rsplit(':').next().filter(|octets| octets.contains('.'));
        let is_strict = octets.is_none_or(|octets| !octets.split('.').any(has_zeros));
        address(inside).filter(|_| is_strict).map(drop)
    }

    /// Reads comments in parentheses; `false` if the last one has no end.
    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.take('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// Reads the rest of a comment, with the comments inside.
    fn comment(&mut self) -> bool {
        let mut depth = 1_usize;
        let mut is_escaped = false;
        for (index, c) in self.rest.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[index + 1..];
                return true;
            }
        }
        false
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Takes a character if it comes next.
    fn take(&mut self, c: char) -> bool {
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// Whether no dot stands at an end or beside another dot.
fn has_single_dots(atom: &str) -> bool {
    atom.split('.').all(|part| !part.is_empty())
}

/// Whether a word is encoded (RFC 2047) in a character set that Go does not decode.
fn has_unknown_charset(word: &str) -> bool {
    let parts: Vec<&str> = word.split('?').collect();
    let ["=", charset, encoding, _, "="] = parts[..] else { return false };
    let known = ["utf-8", "iso-8859-1", "us-ascii"];
    !charset.is_empty()
        && matches!(encoding, "q" | "Q" | "b" | "B")
        && !known.iter().any(|name| name.eq_ignore_ascii_case(charset))
}

/// Whether Go takes a character for a visible one, which all beyond ASCII are.
fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || !c.is_ascii()
}
