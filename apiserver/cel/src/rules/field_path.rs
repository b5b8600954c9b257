//! Paths of fields: `fieldPath` of a rule, read against its schema, and the paths of causes.

use std::fmt;

use serde_json::Value;

/// Path of a field in messages: `spec.names[0]`, `spec.labels[a.b]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldPath(String);

impl FieldPath {
    /// The empty path: the object itself.
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    /// The path of a property below this path.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        let dot = if self.0.is_empty() { "" } else { "." };
        FieldPath(format!("{}{dot}{name}", self.0))
    }

    /// The path of an entry of a map below this path.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        FieldPath(format!("{}[{key}]", self.0))
    }

    /// The path of an element of a list below this path.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        FieldPath(format!("{}[{index}]", self.0))
    }

    /// The path as text; empty for the object itself, which causes print as `<nil>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// Reads the `fieldPath` of a rule: `.name`, `['quoted name']` and any sequence of both.
///
/// # Errors
///
/// The reason why `path` is no path of a field of `schema`, in the words of kube-apiserver.
pub fn parse(path: &str, schema: &Value) -> Result<FieldPath, String> {
    let mut tokens = Tokens { rest: path };
    let mut found = FieldPath::root();
    let mut schema = Some(schema);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or_else(unexpected_end)?.to_owned(),
            "[" => quoted_name(&mut tokens)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let (path, inner) = descend(&found, schema, &name)?;
        (found, schema) = (path, inner);
    }
    Ok(found)
}

fn unexpected_end() -> String {
    "unexpected end of JSON path".to_owned()
}

/// Reads `'name']`, behind the bracket.
fn quoted_name(tokens: &mut Tokens<'_>) -> Result<String, String> {
    let token = tokens.next().ok_or_else(unexpected_end)?;
    let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inner = inner.ok_or_else(|| format!("expected single quoted string but got {token}"))?;
    let name = unescape(inner).map_err(|error| format!("invalid string literal: {error}"))?;
    match tokens.next().ok_or_else(unexpected_end)? {
        "]" => Ok(name),
        other => Err(format!("expected ] but got {other}")),
    }
}

/// The path and the schema one step below: a declared property, or the value of a map.
fn descend<'a>(
    path: &FieldPath,
    schema: Option<&'a Value>,
    name: &str,
) -> Result<(FieldPath, Option<&'a Value>), String> {
    let no_field = || "does not refer to a valid field".to_owned();
    let schema = schema.ok_or_else(no_field)?;
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let inner = properties.get(name).ok_or_else(no_field)?;
        return Ok((path.child(name), Some(inner)));
    }
    match schema.get("additionalProperties") {
        Some(values) => Ok((path.key(name), Some(values).filter(|values| values.is_object()))),
        None => Err(no_field()),
    }
}

/// The escapes of Go inside single quotes.
fn unescape(text: &str) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            result.push(c);
            continue;
        }
        // A backslash at the end, or before a line feed, is no escape for Go's pattern `\\.`.
        match chars.next() {
            None => result.push('\\'),
            Some('\n') => result.push_str("\\\n"),
            Some('a') => result.push('\x07'),
            Some('b') => result.push('\x08'),
            Some('f') => result.push('\x0c'),
            Some('n') => result.push('\n'),
            Some('r') => result.push('\r'),
            Some('t') => result.push('\t'),
            Some('v') => result.push('\x0b'),
            Some(c @ ('\'' | '\\')) => result.push(c),
            Some(other) => return Err(format!("invalid escape char \\{other}")),
        }
    }
    Ok(result)
}

/// The tokens of a path: the delimiters `.`, `[` and `]`, quoted texts, and all text between.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let length = match self.rest.as_bytes() {
            [b'.' | b'[' | b']', ..] => 1,
            [b'\'', quoted @ ..] => quoted_length(quoted),
            bytes => bytes
                .iter()
                .position(|byte| matches!(byte, b'.' | b'[' | b']'))
                .unwrap_or(bytes.len()),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

/// Length of a quoted text with both quotes; without a closing quote, of the rest.
fn quoted_length(quoted: &[u8]) -> usize {
    let mut before = b'\'';
    for (index, &byte) in quoted.iter().enumerate() {
        if byte == b'\'' && before != b'\\' {
            return index + 2;
        }
        before = byte;
    }
    quoted.len() + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(path: &str) -> Result<String, String> {
        let schema = json!({"properties": {
            "spec": {"properties": {"a.b": {"type": "string"}, "it's": {"type": "string"}}},
            "labels": {"additionalProperties": {"type": "string"}},
            "any": {"additionalProperties": true},
            "list": {"items": {"type": "string"}},
        }});
        parse(path, &schema).map(|path| path.as_str().to_owned())
    }

    #[test]
    fn a_field_path_names_properties_and_keys_of_maps() {
        assert_eq!(read(".spec").as_deref(), Ok("spec"));
        assert_eq!(read(".spec['a.b']").as_deref(), Ok("spec.a.b"));
        assert_eq!(read(r"['spec']['it\'s']").as_deref(), Ok("spec.it's"));
        assert_eq!(read(".labels['x/y']").as_deref(), Ok("labels[x/y]"));
        assert_eq!(read(".any.x").as_deref(), Ok("any[x]"));
    }

    #[test]
    fn a_wrong_field_path_is_refused_with_the_reason() {
        for (path, error) in [
            ("spec", "expected [ or . but got: spec"),
            (".", "unexpected end of JSON path"),
            (".nothing", "does not refer to a valid field"),
            (".list[0]", "expected single quoted string but got 0"),
            (".list['0']", "does not refer to a valid field"),
            (".any.x.y", "does not refer to a valid field"),
            (".spec['a.b'", "unexpected end of JSON path"),
            (".spec['a.b'.", "expected ] but got ."),
            (".spec['\\q']", "invalid string literal: invalid escape char \\q"),
            (".spec['a", "expected single quoted string but got 'a"),
            ("['", "expected single quoted string but got '"),
        ] {
            assert_eq!(read(path), Err(error.to_owned()), "{path}");
        }
    }
}
