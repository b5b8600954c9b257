//! Subset of kubectl's JSON path that printer columns use.
//!
//! Supported: names, `['name']`, indices (also negative), `[*]`, `.*` and filters such as
//! `[?(@.type=="Ready")]`, slices, unions and recursive descent. Not supported: functions.

use serde_json::Value;

/// A step of a path.
#[derive(Debug, PartialEq)]
enum PathSegment {
    Name(String),
    Index(i64),
    All,
    /// The value itself and all values below.
    Descent,
    /// Start, end and step; the last two may be absent.
    Slice(i64, Option<i64>, i64),
    Union(Vec<Vec<PathSegment>>),
    Filter {
        path: Vec<PathSegment>,
        operator: String,
        value: Value,
    },
}

/// Returns all values at a path such as `.spec.host` or
/// `.status.conditions[?(@.type=="Ready")].status`.
///
/// The result is empty for a missing field and for a path that cannot be read.
pub fn find<'a>(root: &'a Value, path: &str) -> Vec<&'a Value> {
    // kubectl accepts paths with and without braces and `$`.
    let path = path.strip_prefix('{').and_then(|p| p.strip_suffix('}')).unwrap_or(path);
    let path = path.strip_prefix('$').unwrap_or(path);
    match parse(path) {
        Some(steps) => walk(vec![root], &steps),
        None => Vec::new(),
    }
}

/// Follows the steps of a path from each value.
fn walk<'a>(mut values: Vec<&'a Value>, steps: &[PathSegment]) -> Vec<&'a Value> {
    for step in steps {
        values = values.into_iter().flat_map(|v| apply(v, step)).collect();
    }
    values
}

/// Follows a step from a value.
fn apply<'a>(value: &'a Value, step: &PathSegment) -> Vec<&'a Value> {
    match (step, value) {
        (PathSegment::Name(name), Value::Object(map)) => map.get(name).into_iter().collect(),
        (PathSegment::All, Value::Array(items)) => items.iter().collect(),
        (PathSegment::All, Value::Object(map)) => map.values().collect(),
        (PathSegment::Index(i), Value::Array(items)) => {
            let i = if *i < 0 { items.len() as i64 + i } else { *i };
            usize::try_from(i).ok().and_then(|i| items.get(i)).into_iter().collect()
        }
        (PathSegment::Descent, value) => below(value),
        (PathSegment::Union(steps), value) => {
            steps.iter().flat_map(|steps| walk(vec![value], steps)).collect()
        }
        (PathSegment::Slice(start, end, step), Value::Array(items)) => {
            let at = |number: i64| {
                let number = if number < 0 { items.len() as i64 + number } else { number };
                usize::try_from(number).unwrap_or(0).min(items.len())
            };
            let end = end.map_or(items.len(), at);
            let step = usize::try_from(*step).unwrap_or(1).max(1);
            let part = items.get(at(*start)..end).unwrap_or_default();
            part.iter().step_by(step).collect()
        }
        (PathSegment::Filter { path, operator, value: wanted }, Value::Array(items)) => items
            .iter()
            .filter(|item| {
                walk(vec![item], path).first().is_some_and(|found| holds(found, operator, wanted))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns a value and all values below.
fn below(value: &Value) -> Vec<&Value> {
    let inner: Vec<&Value> = match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    std::iter::once(value).chain(inner.into_iter().flat_map(below)).collect()
}

/// Whether a comparison of a filter holds; without an operator existence is enough.
fn holds(found: &Value, operator: &str, wanted: &Value) -> bool {
    let numbers = found.as_f64().zip(wanted.as_f64());
    match operator {
        "" => true,
        "==" => found == wanted || numbers.is_some_and(|(a, b)| a == b),
        "!=" => found != wanted && numbers.is_none_or(|(a, b)| a != b),
        "<" => numbers.is_some_and(|(a, b)| a < b),
        "<=" => numbers.is_some_and(|(a, b)| a <= b),
        ">" => numbers.is_some_and(|(a, b)| a > b),
        ">=" => numbers.is_some_and(|(a, b)| a >= b),
        _ => false,
    }
}

/// Parses a path; `None` if unreadable.
fn parse(path: &str) -> Option<Vec<PathSegment>> {
    let mut steps = Vec::new();
    // Spaces between steps say nothing, nor does a sign for the value itself.
    let next = |rest: &'_ str| rest.trim_start_matches([' ', '@', '$']).len();
    let mut rest = &path[path.len() - next(path)..];
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            let (name, used) = name(tail);
            match name.as_str() {
                "" if tail.starts_with('.') => steps.push(PathSegment::Descent),
                // `.[0]`
                "" if tail.starts_with('[') => {}
                "*" => steps.push(PathSegment::All),
                _ => steps.push(PathSegment::Name(name)),
            }
            rest = &tail[used..];
        } else if rest.starts_with('[') {
            // A filter ends with its own bracket, everything else with the first.
            let end = if rest.starts_with("[?") { closing(rest)? } else { rest.find(']')? };
            let inner = &rest[1..end];
            // `['a.b']` is `.a.b`.
            match key(inner) {
                Some(key) => steps.extend(parse(&format!(".{key}"))?),
                None => steps.push(bracket(inner)?),
            }
            rest = &rest[end + 1..];
        } else {
            return None;
        }
        rest = &rest[rest.len() - next(rest)..];
    }
    Some(steps)
}

/// Returns a name up to the character that ends it, and the length; a backslash escapes a
/// character. Behind a name that ends without a dot or bracket the path cannot be read.
fn name(text: &str) -> (String, usize) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            // kubectl's reader takes each backslash out, also an escaped one.
            '\\' => name.extend(chars.next().map(|(_, c)| c).filter(|c| *c != '\\')),
            c if c.is_whitespace() || ".,[]$@{}".contains(c) => return (name, at),
            c => name.push(c),
        }
    }
    (name, text.len())
}

/// Returns the position of the bracket that closes the first bracket; brackets in quotes do not
/// count.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Parses the text inside brackets.
fn bracket(inner: &str) -> Option<PathSegment> {
    // Lists only, unlike `.*`.
    if inner == "*" {
        return Some(PathSegment::Slice(0, None, 1));
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        return parse_filter(filter.trim());
    }
    if inner.contains(',') {
        let part = |part: &str| parse(&format!("[{}]", part.trim()));
        return inner.split(',').map(part).collect::<Option<_>>().map(PathSegment::Union);
    }
    if let Some((start, rest)) = inner.split_once(':') {
        let (end, step) = rest.split_once(':').unwrap_or((rest, ""));
        let number = |text: &str| match text.trim() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let (start, end, step) = (number(start)?, number(end)?, number(step)?);
        return Some(PathSegment::Slice(start.unwrap_or(0), end, step.unwrap_or(1)));
    }
    inner.parse().ok().map(PathSegment::Index)
}

/// Returns the text in single quotes, in which there is no further quote.
fn key(text: &str) -> Option<&str> {
    let key = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains(['\'', ','])).then_some(key)
}

/// Returns a quoted text without the quotes.
fn unquote(text: &str) -> Option<String> {
    ['\'', '"']
        .iter()
        .find_map(|q| text.strip_prefix(*q).and_then(|t| t.strip_suffix(*q)))
        .map(str::to_owned)
}

/// Parses the text inside of `?(…)`.
fn parse_filter(filter: &str) -> Option<PathSegment> {
    // Longer operators first: `<` would match the beginning of `<=`.
    let operator = ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|op| filter.contains(op));
    let (left, right) = match operator {
        Some(op) => filter.split_once(op)?,
        None => (filter, ""),
    };
    let path = parse(left.trim().strip_prefix('@')?)?;
    let right = right.trim();
    let value = match unquote(right) {
        Some(text) => Value::String(text),
        None => serde_json::from_str(right).unwrap_or(Value::Null),
    };
    Some(PathSegment::Filter { path, operator: operator.unwrap_or_default().to_owned(), value })
}
