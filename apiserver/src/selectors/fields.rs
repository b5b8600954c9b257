//! Field selectors: `metadata.name=a,spec.host!=b`.

use serde_json::Value;

/// A parsed field selector, of which all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<FieldRequirement>,
}

/// A requirement: a field is equal to a value, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    field: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses a selector; the error is kube-apiserver's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = split(text);
        let mut terms = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = operation(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value).map_err(|why| format!("invalid field selector: {why}"))?;
            // Upstream ignores a requirement without field and value.
            if field.is_empty() && value.is_empty() {
                continue;
            }
            terms.push(FieldRequirement {
                field: field.to_owned(),
                value,
                equal: operator != "!=",
            });
        }
        Ok(Self { terms })
    }

    /// Whether every object is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Iterates over the fields that the selector names.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.field.as_str())
    }

    /// Returns the value that a field must have, if a requirement asks for equality.
    pub(crate) fn exact(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.equal && term.field == field)?;
        Some(&term.value)
    }

    /// Adds the requirement that a field has a value.
    pub(crate) fn require(&mut self, field: &str, value: &str) {
        self.terms.push(FieldRequirement {
            field: field.to_owned(),
            value: value.to_owned(),
            equal: true,
        });
    }

    /// Renames a field in all requirements.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        for term in self.terms.iter_mut().filter(|term| term.field == from) {
            to.clone_into(&mut term.field);
        }
    }

    /// Whether the object meets all requirements; `value` reads a field.
    pub(crate) fn matches(&self, object: &Value, value: impl Fn(&Value, &str) -> String) -> bool {
        self.terms.iter().all(|term| (value(object, &term.field) == term.value) == term.equal)
    }
}

/// Splits a selector at commas that are not escaped.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            parts.push(String::new());
            continue;
        }
        // A backslash that is escaped escapes nothing.
        escaped = c == '\\' && !escaped;
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

/// Splits a requirement into field, operator and value.
fn operation(part: &str) -> Option<(&str, &str, &str)> {
    for (index, _) in part.char_indices() {
        // Longer operators first: `=` would match the beginning of `==`.
        for operator in ["!=", "==", "="] {
            if let Some(value) = part[index..].strip_prefix(operator) {
                return Some((&part[..index], operator, value));
            }
        }
    }
    None
}

/// Resolves the escapes of a value.
fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(next) => return Err(format!("invalid escape sequence: \\{next}")),
                None => return Err("invalid escape sequence: \\".to_owned()),
            },
            // A valid value has these characters only behind a backslash.
            ',' | '=' => return Err(format!("unescaped character in value: {}", u32::from(c))),
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Returns the text of a field by path: strings unchanged, booleans and numbers printed, anything
/// else empty.
pub(crate) fn field_value(object: &Value, path: &str) -> String {
    let mut value = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        value = &value[part];
    }
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn terms_compare_text_and_an_absent_field_is_empty() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"on": true}});
        for (text, holds) in [
            ("metadata.name=a", true),
            ("metadata.name==a,spec.on=true", true),
            ("metadata.name!=a", false),
            ("spec.off=", true),
            ("spec.off!=x", true),
            ("spec.off=false", false),
            ("", true),
        ] {
            let selector = FieldSelector::parse(text).unwrap();
            assert_eq!(selector.matches(&object, field_value), holds, "{text}");
        }
    }

    #[test]
    fn a_backslash_escapes_separators() {
        let selector = FieldSelector::parse("spec.v=a\\,b\\=c").unwrap();
        assert_eq!(selector.exact("spec.v"), Some("a,b=c"));
        assert_eq!(
            FieldSelector::parse("x").unwrap_err(),
            "invalid selector: 'x'; can't understand 'x'"
        );
        assert!(FieldSelector::parse("a=b\\c").is_err());
    }
}
