//! Segments of a path in JSON, and their notations.

// DESIGN.md, 318: Columns are read as kubectl reads them, other paths as written

use std::fmt::Write as _;

/// A step of a path in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Segment {
    /// A field of an object, or a value of a map, by name.
    Field(String),
    /// An element of a list, by position.
    Item(usize),
    /// Each element of a list, or each value of a map.
    Each,
    /// Elements that a filter of kubectl's notation picks: `[?(@.type=="Ready")]`. Only in paths
    /// that are written as text.
    Filter(String),
}

/// Returns the notation of kubectl and of columns.
pub(crate) fn json_path(segments: &[Segment]) -> String {
    let mut path = String::new();
    for segment in segments {
        // Writing to a text cannot fail.
        let _ = match segment {
            Segment::Field(name) => write!(path, ".{}", escaped(name)),
            Segment::Item(place) => write!(path, "[{place}]"),
            Segment::Each => write!(path, "[*]"),
            Segment::Filter(filter) => write!(path, "[{filter}]"),
        };
    }
    path
}

/// Escapes the characters at which kubectl's reader ends a name. That reader has no form for a
/// backslash.
fn escaped(name: &str) -> String {
    let ends = |c: char| c.is_whitespace() || ".,[]$@{}\\".contains(c);
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if ends(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// Returns the notation of RFC 6901; `None` when the path does not name a single value.
pub(crate) fn json_pointer(segments: &[Segment]) -> Option<String> {
    let mut pointer = String::new();
    for segment in segments {
        let _ = match segment {
            Segment::Field(name) => {
                write!(pointer, "/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Item(place) => write!(pointer, "/{place}"),
            Segment::Each | Segment::Filter(_) => return None,
        };
    }
    Some(pointer)
}

/// Reads the notation of paths as texts: names with `\.` for a dot, `['name']` with any name,
/// `[0]`, `[*]`, unions and filters.
///
/// # Errors
/// The text is no path.
pub(crate) fn parsed(path: &str) -> Result<Vec<Segment>, String> {
    read(path, false)
}

/// As [`parsed`], of a column: kubectl reads a name in quotes as outside of them.
///
/// # Errors
/// The text is no path, or kubectl reads it otherwise.
pub(crate) fn parsed_column(path: &str) -> Result<Vec<Segment>, String> {
    read(path, true)
}

fn read(path: &str, is_column: bool) -> Result<Vec<Segment>, String> {
    let fault =
        |why: &str| format!("`{path}` is not a JSON path: {why}; write it like `.spec.host`");
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let end = closing(inside).ok_or_else(|| fault("a `[` is not closed"))?;
            let text = inside[..end].trim();
            match quoted(text) {
                Some(name) if is_column => {
                    segments.push(in_quotes(name).map_err(|why| fault(&why))?)
                }
                Some(name) => segments.push(Segment::Field(name.to_owned())),
                None => segments.push(bracket(text).map_err(|why| fault(&why))?),
            }
            rest = &inside[end + 1..];
        } else if let Some(inside) = rest.strip_prefix('.') {
            let (name, behind) = name(inside);
            if !name.is_empty() {
                segments.push(if name == "*" { Segment::Each } else { Segment::Field(name) });
            } else if !behind.starts_with('[') {
                return Err(fault("a name is missing behind a dot"));
            }
            rest = behind;
        } else if segments.is_empty() {
            return Err(fault("it begins with a dot"));
        } else {
            let c = rest.chars().next().unwrap_or_default();
            return Err(fault(&format!("{c:?} in a name needs a backslash")));
        }
    }
    Ok(segments)
}

/// Returns the place of the bracket that closes the one before `inside`.
fn closing(inside: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (place, c) in inside.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(place),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the name in quotes, if there is one name.
fn quoted(text: &str) -> Option<&str> {
    let name = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    name('\'').or_else(|| name('"')).filter(|name| !name.contains(['\'', '"']))
}

/// Reads a name in quotes as kubectl does: a dot and other characters end it there, too.
fn in_quotes(text: &str) -> Result<Segment, String> {
    let (found, behind) = name(text);
    if !behind.is_empty() || found.contains([',', '[', ']', '\\']) {
        let name = escaped(text);
        return Err(format!("kubectl ends the name `{text}` early: write `.{name}`"));
    }
    Ok(Segment::Field(found))
}

/// Reads the content of brackets.
fn bracket(inside: &str) -> Result<Segment, String> {
    let text = inside.trim();
    if text == "*" {
        return Ok(Segment::Each);
    }
    if let Ok(place) = text.parse() {
        return Ok(Segment::Item(place));
    }
    if let Some(condition) = text.strip_prefix('?') {
        return filter(condition).map(|()| Segment::Filter(inside.to_owned()));
    }
    // Slices and unions, as kubectl reads them: a text is split at each comma.
    let is_slice = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == ':' || c == '-')
    };
    let is_name = |part: &str| {
        let name = part.strip_prefix('\'').and_then(|part| part.strip_suffix('\''));
        name.is_some_and(|name| !name.contains(['\'', '[', ']']))
    };
    let mut parts = text.split(',').map(str::trim);
    if parts.clone().count() > 1 && parts.all(|part| is_slice(part) || is_name(part)) {
        return Ok(Segment::Each);
    }
    if is_slice(text) {
        return Ok(Segment::Each);
    }
    Err(format!(
        "`[{inside}]` is neither a position, `*`, a name in single quotes nor a filter; a comma or bracket in a name is \
         written `\\,` or `\\[` behind a dot"
    ))
}

/// Checks the condition of a filter: kubectl knows comparisons with a value, and no other
/// operators. An API server stores a wrong filter of a column, which then stays empty.
fn filter(condition: &str) -> Result<(), String> {
    let inside = condition.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(inside) = inside else {
        return Err(format!("the filter `?{condition}` needs parentheses: `?(@.type==\"Ready\")`"));
    };
    let mut quote = None;
    let mut operator = None;
    for (place, c) in inside.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if is_comparison(c) => drop(operator.get_or_insert(place)),
            None => {}
        }
    }
    if quote.is_some() {
        return Err(format!("a quote in the filter `?{condition}` is not closed"));
    }
    // Without a comparison: elements that have the field.
    let Some(operator) = operator else { return Ok(()) };
    let (left, comparison) = inside.split_at(operator);
    let end = comparison.find(|c| !is_comparison(c)).unwrap_or(comparison.len());
    let (operator, right) = comparison.split_at(end);
    if !matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=") {
        return Err(format!("a filter compares by `==`, not by `{operator}`: `?{condition}`"));
    }
    let (left, right) = (left.trim(), right.trim());
    let example = "write it like `?(@.type==\"Ready\")`";
    if !left.starts_with('@') {
        return Err(format!("`{left}` in the filter `?{condition}` is not a field; {example}"));
    }
    if !is_value(right) {
        return Err(format!("`{right}` in the filter `?{condition}` is not a value; {example}"));
    }
    Ok(())
}

fn is_comparison(c: char) -> bool {
    matches!(c, '=' | '!' | '<' | '>')
}

/// Whether a text is an operand of a filter: a text in quotes, a number, a truth value or a field.
fn is_value(text: &str) -> bool {
    let is_text = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    is_text('"')
        || is_text('\'')
        || text.starts_with('@')
        || text.parse::<f64>().is_ok()
        || matches!(text, "true" | "false")
}

/// Reads a name up to the next dot or bracket; `\` takes the next character literally.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((place, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, &text[place..]),
            // Where kubectl's reader ends a name, which nothing can follow.
            c if c.is_whitespace() || ",]$@{}".contains(c) => return (name, &text[place..]),
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            c => name.push(c),
        }
    }
    (name, "")
}
