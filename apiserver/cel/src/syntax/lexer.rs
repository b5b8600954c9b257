//! Lexer: splits a source into tokens on demand, with the token types of CEL's grammar.

/// Type of a token: its number in CEL's grammar; 0 is the end of the input.
pub(super) type TokenType = u8;

pub(super) const EOF: TokenType = 0;
pub(super) const IN: TokenType = 3;
pub(super) const LOGICAL_AND: TokenType = 8;
pub(super) const LOGICAL_OR: TokenType = 9;
pub(super) const LBRACKET: TokenType = 10;
pub(super) const RBRACKET: TokenType = 11;
pub(super) const LBRACE: TokenType = 12;
pub(super) const RBRACE: TokenType = 13;
pub(super) const LPAREN: TokenType = 14;
pub(super) const RPAREN: TokenType = 15;
pub(super) const DOT: TokenType = 16;
pub(super) const COMMA: TokenType = 17;
pub(super) const MINUS: TokenType = 18;
pub(super) const EXCLAM: TokenType = 19;
pub(super) const QUESTION: TokenType = 20;
pub(super) const COLON: TokenType = 21;
pub(super) const PLUS: TokenType = 22;
pub(super) const STAR: TokenType = 23;
pub(super) const SLASH: TokenType = 24;
pub(super) const PERCENT: TokenType = 25;
pub(super) const TRUE: TokenType = 26;
pub(super) const FALSE: TokenType = 27;
pub(super) const NULL: TokenType = 28;
pub(super) const FLOAT: TokenType = 31;
pub(super) const INT: TokenType = 32;
pub(super) const UINT: TokenType = 33;
pub(super) const STRING: TokenType = 34;
pub(super) const BYTES: TokenType = 35;
pub(super) const IDENT: TokenType = 36;
pub(super) const ESC_IDENT: TokenType = 37;

/// Names of the token types in messages.
const NAMES: [&str; 38] = [
    "<EOF>",
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "WHITESPACE",
    "COMMENT",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// Tokens of two characters and of one, the longer ones first.
const SYMBOLS: [(&str, TokenType); 22] = [
    ("==", 1),
    ("!=", 2),
    ("<=", 5),
    (">=", 6),
    ("&&", 8),
    ("||", 9),
    ("<", 4),
    (">", 7),
    ("[", 10),
    ("]", 11),
    ("{", 12),
    ("}", 13),
    ("(", 14),
    (")", 15),
    (".", 16),
    (",", 17),
    ("-", 18),
    ("!", 19),
    ("?", 20),
    (":", 21),
    ("+", 22),
    ("*", 23),
];

/// Name of a token type in messages.
pub(super) fn token_name(token: TokenType) -> &'static str {
    NAMES.get(usize::from(token)).copied().unwrap_or("<INVALID>")
}

/// A token: its type and its place in the source.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Token {
    pub(super) kind: TokenType,
    /// Offset in code points.
    pub(super) offset: u32,
    /// Range in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token {
    /// Number of bytes of the token's text.
    pub(super) fn len(&self) -> u32 {
        (self.end - self.start) as u32
    }
}

/// A character sequence that begins no token.
#[derive(Debug)]
pub(super) struct LexicalError {
    pub(super) offset: u32,
    /// Range in bytes that is skipped.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) message: String,
}

/// Reads the tokens of a text in order.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    text: &'s str,
    at: usize,
    offset: u32,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(text: &'s str) -> Lexer<'s> {
        Lexer { text, at: 0, offset: 0 }
    }

    /// The next token that is neither white space nor a comment, or an error, after which reading
    /// goes on.
    pub(super) fn next_token(&mut self) -> Result<Token, LexicalError> {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                let (start, end) = (self.at, self.at);
                return Ok(Token { kind: EOF, offset: self.offset, start, end });
            }
            if let Some(hidden) = hidden_len(rest) {
                self.advance(hidden);
                continue;
            }
            let (start, offset) = (self.at, self.offset);
            match scan(rest) {
                Ok((kind, len)) => {
                    self.advance(len);
                    return Ok(Token { kind, offset, start, end: self.at });
                }
                Err(failed_at) => {
                    // The character at which the match failed is part of the text and skipped with
                    // it.
                    let failing = rest.get(failed_at..).and_then(|r| r.chars().next());
                    let len = failed_at + failing.map_or(0, char::len_utf8);
                    let text = rest.get(..len).unwrap_or_default();
                    self.advance(len);
                    let message = format!("token recognition error at: '{text}'");
                    return Err(LexicalError { offset, start, end: self.at, message });
                }
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        let end = self.at + bytes;
        self.offset += self.text.get(self.at..end).unwrap_or_default().chars().count() as u32;
        self.at = end;
    }
}

/// Length of the white space or comment at the start.
fn hidden_len(rest: &str) -> Option<usize> {
    let space = rest.len() - rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']).len();
    if space > 0 {
        return Some(space);
    }
    rest.starts_with("//").then(|| rest.find('\n').unwrap_or(rest.len()))
}

/// Type and length of the longest token at the start, or the index at which no token can match any
/// more.
fn scan(rest: &str) -> Result<(TokenType, usize), usize> {
    let bytes = rest.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    if let Some(found) = scan_prefixed_string(bytes) {
        return Ok(found);
    }
    match first {
        b'0'..=b'9' => return Ok(scan_number(bytes)),
        b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => return Ok(scan_number(bytes)),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => return Ok(scan_word(rest)),
        b'"' | b'\'' => return scan_quoted(bytes, false).map(|len| (STRING, len)),
        b'`' => return scan_escaped_ident(bytes),
        b'/' => return Ok((SLASH, 1)),
        b'%' => return Ok((PERCENT, 1)),
        _ => {}
    }
    match SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
        Some((symbol, kind)) => Ok((*kind, symbol.len())),
        None if matches!(first, b'=' | b'&' | b'|') => Err(1),
        None => Err(0),
    }
}

fn scan_word(rest: &str) -> (TokenType, usize) {
    let len = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let kind = match rest.get(..len).unwrap_or_default() {
        "in" => IN,
        "true" => TRUE,
        "false" => FALSE,
        "null" => NULL,
        _ => IDENT,
    };
    (kind, len)
}

fn scan_escaped_ident(bytes: &[u8]) -> Result<(TokenType, usize), usize> {
    let body = bytes.iter().skip(1);
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || b"_.-/ ".contains(b);
    let end = 1 + body.take_while(is_part).count();
    if end > 1 && bytes.get(end) == Some(&b'`') { Ok((ESC_IDENT, end + 1)) } else { Err(end) }
}

/// A string with one of the prefixes `b`, `r`, `br`. A prefix without a whole string is an
/// identifier.
fn scan_prefixed_string(bytes: &[u8]) -> Option<(TokenType, usize)> {
    let is = |at: usize, c: u8| bytes.get(at).is_some_and(|b| b.eq_ignore_ascii_case(&c));
    let binary = usize::from(is(0, b'b'));
    let raw = usize::from(is(binary, b'r'));
    let prefix = binary + raw;
    let body = bytes.get(prefix..)?;
    if prefix == 0 || !matches!(body.first(), Some(b'"' | b'\'')) {
        return None;
    }
    let len = scan_quoted(body, raw == 1).ok()?;
    Some((if binary == 1 { BYTES } else { STRING }, prefix + len))
}

/// Length of a quoted string, or the index at which it fails.
fn scan_quoted(bytes: &[u8], raw: bool) -> Result<usize, usize> {
    let quote = bytes.first().copied().unwrap_or_default();
    if bytes.get(1) == Some(&quote) {
        // Two quotes are the empty string unless a whole triple-quoted string begins here.
        let triple = bytes.get(2) == Some(&quote);
        return Ok(triple.then(|| scan_triple(bytes, quote, raw)).flatten().unwrap_or(2));
    }
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None | Some(b'\n' | b'\r') => return Err(at),
            Some(b) if *b == quote => return Ok(at + 1),
            Some(b'\\') if !raw => at = scan_escape(bytes, at)?,
            Some(_) => at += 1,
        }
    }
}

fn scan_triple(bytes: &[u8], quote: u8, raw: bool) -> Option<usize> {
    let mut at = 3;
    loop {
        match bytes.get(at)? {
            b if *b == quote && bytes.get(at..at + 3) == Some(&[quote; 3]) => return Some(at + 3),
            b'\\' if !raw => at = scan_escape(bytes, at).ok()?,
            _ => at += 1,
        }
    }
}

/// Index behind an escape sequence, or the index at which it fails.
fn scan_escape(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let (digits, is_digit): (usize, fn(&u8) -> bool) = match bytes.get(at + 1) {
        Some(
            b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`',
        ) => (0, u8::is_ascii_hexdigit),
        Some(b'x' | b'X') => (2, u8::is_ascii_hexdigit),
        Some(b'u') => (4, u8::is_ascii_hexdigit),
        Some(b'U') => (8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => (2, |b| matches!(b, b'0'..=b'7')),
        _ => return Err(at + 1),
    };
    let start = at + 2;
    let found = bytes.iter().skip(start).take(digits).take_while(|b| is_digit(b)).count();
    if found == digits { Ok(start + digits) } else { Err(start + found) }
}

fn scan_number(bytes: &[u8]) -> (TokenType, usize) {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let is_u = |at: usize| matches!(bytes.get(at), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let hex = bytes.iter().skip(2).take_while(|b| b.is_ascii_hexdigit()).count();
        if hex > 0 {
            return if is_u(2 + hex) { (UINT, 3 + hex) } else { (INT, 2 + hex) };
        }
    }
    let mut end = digits(0);
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        is_float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
            is_float = true;
        }
    }
    match is_float {
        true => (FLOAT, end),
        false if is_u(end) => (UINT, end + 1),
        false => (INT, end),
    }
}
