//! Patterns in Go's RE2 syntax, executed by the `regex` crate.
//!
//! Both engines accept nearly the same language in linear time. The differences are translated
//! here: Perl classes and word boundaries are ASCII in Go, set operators inside classes do not
//! exist there, `\Q…\E` does, a brace that is no repetition is a literal, and a repetition stays
//! below 1000.

use regex::Regex;

/// A compiled pattern. A pattern that cannot be compiled matches every text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    regex: Option<Regex>,
}

impl Pattern {
    /// Compiles a pattern; [`error`] returns the reason for a failure.
    pub(crate) fn compile(source: &str) -> Pattern {
        Pattern { source: source.to_owned(), regex: build(source).ok() }
    }

    /// Whether the pattern matches anywhere in the text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|r| r.is_match(text))
    }

    /// Returns the pattern as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// Returns the reason why a pattern cannot be compiled, in Go's words.
pub(crate) fn error(source: &str) -> Option<String> {
    build(source).err()
}

/// Translates and compiles a pattern.
fn build(source: &str) -> Result<Regex, String> {
    let translated = translate(source).map_err(|fault| format!("error parsing regexp: {fault}"))?;
    Regex::new(&translated).map_err(|e| {
        let text = e.to_string();
        let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("error parsing regexp: {last}: `{source}`")
    })
}

/// State of a translation from RE2's syntax to that of `regex`.
struct Translator<'a> {
    /// Source that is not translated yet.
    rest: &'a str,
    out: String,
    /// Open groups.
    depth: usize,
    /// Whether a repetition may follow.
    repeatable: bool,
    /// Whether the last part was a repetition: Go refuses to repeat it.
    repeated: bool,
}

/// Translates a pattern; the error is in Go's words.
fn translate(source: &str) -> Result<String, String> {
    let mut t = Translator {
        rest: source,
        out: String::new(),
        depth: 0,
        repeatable: false,
        repeated: false,
    };
    while let Some(c) = t.rest.chars().next() {
        match c {
            '\\' => t.escape()?,
            '[' => t.class()?,
            '(' => t.open()?,
            ')' => t.close(source)?,
            // Repetitions are checked here, since `regex` accepts some that Go refuses.
            '*' | '+' | '?' => t.repeat(1, c.to_string())?,
            '{' => t.brace()?,
            '|' => t.literal(c, false),
            '^' | '$' => t.literal(c, true),
            // Literals in RE2 outside of repetitions and classes.
            '}' | ']' => {
                t.out.push('\\');
                t.literal(c, true);
            }
            c => t.literal(c, true),
        }
    }
    if t.depth > 0 {
        return Err(format!("missing closing ): `{source}`"));
    }
    Ok(t.out)
}

impl Translator<'_> {
    /// Copies one character.
    fn literal(&mut self, c: char, repeatable: bool) {
        self.out.push(c);
        self.rest = &self.rest[c.len_utf8()..];
        self.atom(repeatable);
    }

    /// Notes that a part of the pattern has ended.
    fn atom(&mut self, repeatable: bool) {
        self.repeatable = repeatable;
        self.repeated = false;
    }

    /// Translates the beginning of a group, or flags.
    fn open(&mut self) -> Result<(), String> {
        let rest = self.rest;
        let length = if let Some(inner) = rest.strip_prefix("(?") {
            let named = inner.starts_with("P<") || inner.starts_with('<');
            let end = inner.find(if named { '>' } else { ')' }).map(|i| i + 1);
            let colon = inner.find(':').map(|i| i + 1);
            let end = match (named, end, colon) {
                (true, Some(end), _) => end,
                (false, end, colon) => end.unwrap_or(usize::MAX).min(colon.unwrap_or(usize::MAX)),
                _ => usize::MAX,
            };
            if !named {
                let flags = inner.get(..end.saturating_sub(1)).unwrap_or("!");
                if end == usize::MAX || !flags.chars().all(|c| "imsU-".contains(c)) {
                    let upto = rest.char_indices().nth(2).map_or(2, |(i, c)| i + c.len_utf8());
                    let shown = &rest[..upto.min(rest.len())];
                    return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
                }
            } else if inner.starts_with("<=") || inner.starts_with("<!") || end == usize::MAX {
                let shown = &rest[..rest.len().min(3)];
                return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
            }
            // `(?i)` sets flags without opening a group.
            let is_flags = inner[..end].ends_with(')');
            self.depth += usize::from(!is_flags);
            end + 2
        } else {
            self.depth += 1;
            1
        };
        self.out.push_str(&rest[..length]);
        self.rest = &rest[length..];
        self.atom(false);
        Ok(())
    }

    /// Translates the end of a group.
    fn close(&mut self, source: &str) -> Result<(), String> {
        if self.depth == 0 {
            return Err(format!("unexpected ): `{source}`"));
        }
        self.depth -= 1;
        self.literal(')', true);
        Ok(())
    }

    /// Translates a repetition, with the `?` that makes it lazy.
    fn repeat(&mut self, length: usize, text: String) -> Result<(), String> {
        if !self.repeatable {
            let kind = "missing argument to repetition operator";
            return Err(format!("{kind}: `{}`", &self.rest[..length]));
        }
        if self.repeated {
            return Err(format!("invalid nested repetition operator: `{}`", &self.rest[..length]));
        }
        self.out.push_str(&text);
        self.rest = &self.rest[length..];
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.out.push('?');
            self.rest = rest;
        }
        self.repeated = true;
        Ok(())
    }

    /// Translates a brace: `{2}`, `{2,}` and `{2,5}` repeat, anything else is text.
    fn brace(&mut self) -> Result<(), String> {
        let number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        let inner = self.rest.find('}').map(|end| &self.rest[1..end]);
        let Some(inner) = inner.filter(|i| match i.split_once(',') {
            Some((low, high)) => number(low) && (high.is_empty() || number(high)),
            None => number(i),
        }) else {
            self.out.push('\\');
            self.literal('{', true);
            return Ok(());
        };
        let bounds: Vec<u32> = inner
            .split(',')
            .filter(|s| !s.is_empty())
            .map(|s| s.parse().unwrap_or(u32::MAX))
            .collect();
        let text = format!("{{{inner}}}");
        // Limit of RE2.
        if bounds.iter().any(|b| *b > 1000) || bounds.windows(2).any(|w| w[0] > w[1]) {
            return Err(format!("invalid repeat count: `{text}`"));
        }
        self.repeat(text.len(), text)
    }

    /// Translates an escape or a quoted part.
    fn escape(&mut self) -> Result<(), String> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            self.out.push_str(&regex::escape(text));
            self.rest = rest;
            self.atom(!text.is_empty());
            return Ok(());
        }
        let (text, length) = escaped(self.rest, false)?;
        self.out.push_str(&text);
        self.rest = &self.rest[length..];
        self.atom(true);
        Ok(())
    }

    /// Translates a class.
    fn class(&mut self) -> Result<(), String> {
        let whole = self.rest;
        let missing = || format!("missing closing ]: `{whole}`");
        let mut rest = &whole[1..];
        self.out.push('[');
        if let Some(after) = rest.strip_prefix('^') {
            self.out.push('^');
            rest = after;
        }
        let mut first = true;
        loop {
            let c = rest.chars().next().ok_or_else(missing)?;
            let mut length = c.len_utf8();
            match c {
                ']' if !first => break,
                '[' if rest.starts_with("[:") && rest.contains(":]") => {
                    length = rest.find(":]").unwrap_or_default() + 2;
                    self.out.push_str(&rest[..length]);
                }
                '\\' => {
                    let (text, used) = escaped(rest, true)?;
                    self.out.push_str(&text);
                    length = used;
                }
                // Literals in RE2, set operators in `regex`.
                '[' | ']' | '&' | '~' => self.out.extend(['\\', c]),
                '-' if first || rest[1..].starts_with(']') => self.out.push_str("\\-"),
                '-' if rest[1..].starts_with('-') => {
                    // A range up to a dash, or one that starts there.
                    self.out.push_str("-\\-");
                    length = 2;
                }
                c => self.out.push(c),
            }
            first = false;
            rest = &rest[length..];
        }
        self.out.push(']');
        self.rest = &rest[1..];
        self.atom(true);
        Ok(())
    }
}

/// Translates one escape; returns the translation and the length of the source.
fn escaped(rest: &str, in_class: bool) -> Result<(String, usize), String> {
    let Some(c) = rest[1..].chars().next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let length = 1 + c.len_utf8();
    let wrap = |set: &str| if in_class { set.to_owned() } else { format!("[{set}]") };
    let text = match c {
        'd' => wrap("0-9"),
        'D' => "[^0-9]".to_owned(),
        'w' => wrap("0-9A-Za-z_"),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        // Without vertical tab, as in Go.
        's' => wrap("\\t\\n\\x0C\\r "),
        'S' => "[^\\t\\n\\x0C\\r ]".to_owned(),
        'b' | 'B' if !in_class => format!("(?-u:\\{c})"),
        'A' | 'z' if !in_class => format!("\\{c}"),
        'a' => "\\x07".to_owned(),
        'f' => "\\x0C".to_owned(),
        'v' => "\\x0B".to_owned(),
        't' | 'n' | 'r' => format!("\\{c}"),
        '0'..='7' => return octal(rest),
        'x' | 'p' | 'P' => {
            let tail = &rest[2..];
            let used = match tail.strip_prefix('{') {
                Some(inner) => inner.find('}').map(|i| i + 2),
                None => Some(if c == 'x' { 2 } else { 1 }),
            };
            let end = used.filter(|n| tail.is_char_boundary(*n) && *n <= tail.len());
            let Some(end) = end else {
                return Err(format!("invalid escape sequence: `{rest}`"));
            };
            return Ok((format!("\\{c}{}", &tail[..end]), 2 + end));
        }
        c if c.is_ascii_punctuation() => regex::escape(&c.to_string()),
        _ => return Err(format!("invalid escape sequence: `{}`", &rest[..length])),
    };
    Ok((text, length))
}

/// Translates `\012`. A single digit other than zero would be a back reference, which RE2 does not
/// have.
fn octal(rest: &str) -> Result<(String, usize), String> {
    let digits = rest[1..].bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
    if digits == 1 && !rest[1..].starts_with('0') {
        return Err(format!("invalid escape sequence: `{}`", &rest[..2]));
    }
    let code = u32::from_str_radix(&rest[1..=digits], 8).unwrap_or_default();
    Ok((format!("\\x{{{code:x}}}"), 1 + digits))
}
