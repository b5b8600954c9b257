//! Values of literals.

use crate::syntax::ast::Literal;

/// Value of an integer literal with its sign.
pub(super) fn int(sign: &str, text: &str) -> Option<Literal> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Literal::Int)
}

/// Value of an unsigned literal with its suffix.
pub(super) fn uint(text: &str) -> Option<Literal> {
    let text = text.strip_suffix(['u', 'U']).unwrap_or(text);
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    u64::from_str_radix(digits, radix).ok().map(Literal::Uint)
}

/// Value of a floating-point literal; a literal that is too large is an error, as in Go.
pub(super) fn double(sign: &str, text: &str) -> Option<Literal> {
    let value = format!("{sign}{text}").parse::<f64>().ok()?;
    value.is_finite().then_some(Literal::Double(value))
}

/// Content of a quoted literal, as bytes. Line ends become `\n`.
pub(super) fn unquote(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let body = text.strip_prefix(['r', 'R']);
    let is_raw = body.is_some();
    let body = body.unwrap_or(&text);
    let quotes = if body.len() >= 6 && (body.starts_with("'''") || body.starts_with("\"\"\"")) {
        3
    } else {
        1
    };
    let end = body.len().saturating_sub(quotes);
    let body = body.get(quotes..end).ok_or("unable to unescape string")?;
    if is_raw {
        return Ok(body.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.extend_from_slice(plain.as_bytes());
        rest = unescape(escape, is_bytes, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Appends the value of the escape sequence behind a backslash; returns the rest.
fn unescape<'t>(text: &'t str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'t str, &'static str> {
    const UNABLE: &str = "unable to unescape string";
    let first = text.chars().next().ok_or(UNABLE)?;
    let simple = match first {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => first as u8,
        _ => 0,
    };
    let rest = text.get(first.len_utf8()..).unwrap_or_default();
    if simple != 0 {
        out.push(simple);
        return Ok(rest);
    }
    let (digits, radix, skip) = match first {
        'x' | 'X' => (2, 16, 1),
        'u' if !is_bytes => (4, 16, 1),
        'U' if !is_bytes => (8, 16, 1),
        '0'..='3' => (3, 8, 0),
        _ => return Err(UNABLE),
    };
    let sequence = text.get(skip..skip + digits).ok_or(UNABLE)?;
    let value = u32::from_str_radix(sequence, radix).map_err(|_| UNABLE)?;
    if is_bytes {
        out.push(value as u8);
    } else {
        let c = char::from_u32(value).ok_or("invalid unicode code point")?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(text.get(skip + digits..).unwrap_or_default())
}
