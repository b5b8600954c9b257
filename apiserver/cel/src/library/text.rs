//! Functions on texts of cel-go's strings library, version 2; indices count code points.

use std::sync::LazyLock;

use regex::Regex;

/// The message of an index that is out of range.
fn index_out_of_range(index: i64) -> String {
    format!("index out of range: {index}")
}

/// The byte offset of a code point, the length of the text for the index after the last, `None`
/// beyond.
fn byte_offset(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

/// Number of code points as CEL counts.
fn count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// `text.charAt(index)`: the code point at an index, or an empty text after the last code point.
///
/// # Errors
///
/// `index out of range: N`
pub fn char_at(text: &str, index: i64) -> Result<String, String> {
    let at = byte_offset(text, index).ok_or_else(|| index_out_of_range(index))?;
    Ok(text.get(at..).and_then(|rest| rest.chars().next()).map(String::from).unwrap_or_default())
}

/// `text.indexOf(part)`: the index of the first occurrence, or -1.
pub fn index_of(text: &str, part: &str) -> i64 {
    text.find(part).and_then(|at| text.get(..at)).map_or(-1, count)
}

/// `text.indexOf(part, offset)`: the first occurrence from an index on, or -1. For an empty part
/// the offset, of any value.
///
/// # Errors
///
/// `index out of range: N` for a negative offset.
pub fn index_of_from(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(index_out_of_range(offset));
    }
    let Some(rest) = byte_offset(text, offset).and_then(|at| text.get(at..)) else { return Ok(-1) };
    Ok(match index_of(rest, part) {
        -1 => -1,
        index => index + offset,
    })
}

/// `text.lastIndexOf(part)`: the index of the last occurrence, or -1.
pub fn last_index_of(text: &str, part: &str) -> i64 {
    text.rfind(part).and_then(|at| text.get(..at)).map_or(-1, count)
}

/// `text.lastIndexOf(part, offset)`: the last occurrence that starts at an index or before, or -1;
/// also -1 if the offset is after the last code point. For an empty part the offset.
///
/// # Errors
///
/// `index out of range: N` for a negative offset.
pub fn last_index_of_from(text: &str, part: &str, offset: i64) -> Result<i64, String> {
    if part.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(index_out_of_range(offset));
    }
    let Some(at) = byte_offset(text, offset).filter(|&at| at < text.len()) else { return Ok(-1) };
    // The occurrence may end after the offset, by all code points of the part.
    let end = at.saturating_add(part.len()).min(text.len());
    let end = (end..=text.len()).find(|&end| text.is_char_boundary(end)).unwrap_or(text.len());
    let head = text.get(..end).unwrap_or(text);
    Ok(match head.rfind(part) {
        Some(found) if found <= at => text.get(..found).map_or(-1, count),
        Some(_) => text.get(..at).map_or(-1, |before| last_index_of(before, part)),
        None => -1,
    })
}

/// `text.lowerAscii()`
pub fn lower_ascii(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// `text.upperAscii()`
pub fn upper_ascii(text: &str) -> String {
    text.to_ascii_uppercase()
}

/// `text.replace(old, new)`, and with a limit `text.replace(old, new, limit)`: all occurrences if
/// the limit is negative. An empty `old` is found before each code point and at the end.
pub fn replace(text: &str, old: &str, new: &str, limit: i64) -> String {
    match usize::try_from(limit) {
        Ok(limit) => text.replacen(old, new, limit),
        Err(_) => text.replace(old, new),
    }
}

/// `text.split(separator)`, and with a limit `text.split(separator, limit)`: all parts if the limit
/// is negative, none if the limit is 0; the last part has the rest. An empty separator splits after
/// each code point.
pub fn split(text: &str, separator: &str, limit: i64) -> Vec<String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(limit, separator).map(str::to_owned).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        let (part, after) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = after;
    }
    parts
}

/// `text.substring(start)`: the text from an index on.
///
/// # Errors
///
/// `index out of range: N`
pub fn substring_from(text: &str, start: i64) -> Result<&str, String> {
    byte_offset(text, start).and_then(|at| text.get(at..)).ok_or_else(|| index_out_of_range(start))
}

/// `text.substring(start, end)`: the text between two indices, without the code point at the end.
///
/// # Errors
///
/// `invalid substring range. start: N, end: M`, `index out of range: N`
pub fn substring(text: &str, start: i64, end: i64) -> Result<&str, String> {
    if start > end {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let first = byte_offset(text, start).ok_or_else(|| index_out_of_range(start))?;
    let last = byte_offset(text, end).ok_or_else(|| index_out_of_range(end))?;
    text.get(first..last).ok_or_else(|| index_out_of_range(end))
}

/// `text.trim()`: without white space of Unicode at both ends.
pub fn trim(text: &str) -> &str {
    text.trim()
}

/// The message of `list.join()` for an element that is no string, with the text of the element in
/// Go's notation.
pub fn join_error(element: &str) -> String {
    format!("join: invalid input: {element}")
}

/// `strings.quote(text)`: in double quotes, with CEL's escape sequences.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match short_escape(c) {
            Some(escape) => out.extend(['\\', escape]),
            None => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The text in the form of Go's `strconv.Quote` and `%q`: unprintable characters are escaped.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match short_escape(c) {
            Some(escape) => out.extend(['\\', escape]),
            None if is_print(c) => out.push(c),
            None => out.push_str(&match u32::from(c) {
                code @ (..0x20 | 0x7f) => format!("\\x{code:02x}"),
                code @ ..0x10000 => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
        }
    }
    out.push('"');
    out
}

/// The letter after the backslash of a character that has a short escape sequence in Go and CEL.
fn short_escape(c: char) -> Option<char> {
    Some(match c {
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        '\\' => '\\',
        '"' => '"',
        _ => return None,
    })
}

/// Letters, marks, numbers, punctuation and symbols of Unicode 15, the version of Go.
static PRINTABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[[\pL\pM\pN\pP\pS]&&\p{Age=15.0}]").ok());

/// Whether Go's `strconv.IsPrint` holds.
fn is_print(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\x7f' => false,
        _ => PRINTABLE.as_ref().is_some_and(|regex| regex.is_match(c.encode_utf8(&mut [0; 4]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_code_points() {
        assert_eq!(char_at("héllo", 1), Ok("é".to_owned()));
        assert_eq!(char_at("héllo", 5), Ok(String::new()));
        assert_eq!(index_of("日本語日本", "語"), 2);
        assert_eq!(last_index_of("日本語日本", "本"), 4);
        assert_eq!(substring("日本語", 1, 2), Ok("本"));
        assert_eq!(substring_from("日本語", 3), Ok(""));
    }

    #[test]
    fn an_index_out_of_range_is_an_error() {
        let message = |index| Err(format!("index out of range: {index}"));
        assert_eq!(char_at("a", 2), message(2).map(|()| String::new()));
        assert_eq!(substring_from("a", -1), message(-1).map(|()| ""));
        assert_eq!(substring("a", 0, 2), message(2).map(|()| ""));
        assert_eq!(
            substring("a", 1, 0),
            Err("invalid substring range. start: 1, end: 0".to_owned())
        );
        assert_eq!(index_of_from("a", "a", -1), message(-1).map(|()| 0));
        assert_eq!(last_index_of_from("a", "a", -1), message(-1).map(|()| 0));
    }

    #[test]
    fn a_search_starts_at_its_offset() {
        for (part, offset, first, last) in [
            ("a", 1, 3, 0),
            ("a", 3, 3, 3),
            ("a", 9, -1, -1),
            ("", 9, 9, 9),
            ("caa", 0, -1, -1),
            ("abcab", 5, -1, 0),
        ] {
            assert_eq!(index_of_from("abcabc", part, offset), Ok(first), "{part} {offset}");
            assert_eq!(last_index_of_from("abcabc", part, offset), Ok(last), "{part} {offset}");
        }
    }

    #[test]
    fn an_empty_separator_splits_after_each_code_point() {
        assert_eq!(split("aéb", "", -1), ["a", "é", "b"]);
        assert_eq!(split("aéb", "", 2), ["a", "éb"]);
        assert!(split("", "", -1).is_empty());
        assert_eq!(split("", ",", -1), [""]);
        assert_eq!(split("a,b,c", ",", 2), ["a", "b,c"]);
        assert!(split("a,b,c", ",", 0).is_empty());
    }

    #[test]
    fn a_limit_of_replacements_counts_from_the_left() {
        assert_eq!(replace("aaa", "a", "b", 2), "bba");
        assert_eq!(replace("aaa", "a", "b", -1), "bbb");
        assert_eq!(replace("ab", "", "-", -1), "-a-b-");
        assert_eq!(replace("ab", "", "-", 0), "ab");
    }

    #[test]
    fn quotes_of_cel_and_go_differ() {
        let text = "a\"\\\n\u{0}\u{ad}é\u{1f600}\u{e0001}";
        assert_eq!(quote(text), "\"a\\\"\\\\\\n\u{0}\u{ad}é\u{1f600}\u{e0001}\"");
        assert_eq!(go_quote(text), "\"a\\\"\\\\\\n\\x00\\u00adé\u{1f600}\\U000e0001\"");
    }
}
