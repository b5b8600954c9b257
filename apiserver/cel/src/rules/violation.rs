//! Errors of validation, as causes of a `Status` name them.

use std::fmt;

use serde_json::Value;

use super::field_path::FieldPath;
use crate::library::number::format_double;

/// `reason` of a rule, and the kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `FieldValueInvalid`, the default.
    Invalid,
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueRequired`
    Required,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueNotSupported`: a definition names something that is not in a list of allowed
    /// values.
    NotSupported,
    /// `FieldValueTooMany`: a list is too long; no rule can ask for this reason.
    TooMany,
    /// `InternalError`: the schema cannot be read; no rule can ask for this reason.
    Internal,
}

impl Reason {
    /// The reason of a rule by its name; any other name is an invalid value, as for kube-apiserver.
    pub fn from_name(name: &str) -> Reason {
        match name {
            "FieldValueForbidden" => Reason::Forbidden,
            "FieldValueRequired" => Reason::Required,
            "FieldValueDuplicate" => Reason::Duplicate,
            _ => Reason::Invalid,
        }
    }

    /// `reason` of the cause.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Invalid => "FieldValueInvalid",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::TooMany => "FieldValueTooMany",
            Reason::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Reason::Invalid => "Invalid value",
            Reason::Forbidden => "Forbidden",
            Reason::Required => "Required value",
            Reason::Duplicate => "Duplicate value",
            Reason::NotSupported => "Unsupported value",
            Reason::TooMany => "Too many",
            Reason::Internal => "Internal error",
        }
    }
}

/// An error about a field. The display is the text of kube-apiserver:
/// `spec.n: Invalid value: 3: too large`.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The field.
    pub path: FieldPath,
    /// Kind of the error.
    pub reason: Reason,
    /// The value as the message shows it; objects and lists are left out.
    pub shown: Option<String>,
    /// The message of the rule, or of the engine.
    pub detail: String,
}

impl Violation {
    /// An error that shows no value.
    pub fn without_value(path: FieldPath, reason: Reason, detail: impl Into<String>) -> Violation {
        Violation { path, reason, shown: None, detail: detail.into() }
    }

    /// An invalid value that the message shows.
    pub fn invalid(path: FieldPath, value: Value, detail: impl Into<String>) -> Violation {
        let shown = Some(shown(&value));
        Violation { path, reason: Reason::Invalid, shown, detail: detail.into() }
    }

    /// A text that is not in a list of allowed texts.
    pub(crate) fn not_supported(path: FieldPath, value: &str, supported: &[&str]) -> Violation {
        let names: Vec<String> = supported.iter().map(|name| format!("\"{name}\"")).collect();
        let detail = format!("supported values: {}", names.join(", "));
        Violation {
            path,
            reason: Reason::NotSupported,
            shown: Some(shown(&Value::from(value))),
            detail,
        }
    }

    /// The text without the field: `message` of the cause.
    pub fn body(&self) -> String {
        let has_value =
            !matches!(self.reason, Reason::Required | Reason::Forbidden | Reason::Internal);
        let shown = self.shown.iter().filter(|_| has_value);
        let detail = Some(&self.detail).filter(|detail| !detail.is_empty());
        shown.chain(detail).fold(self.reason.title().to_owned(), |text, part| text + ": " + part)
    }
}

/// A value as messages show it: texts as Go's `%q` writes them.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let mut shown = String::new();
            push_quoted(&mut shown, text);
            shown
        }
        Value::Number(number) if number.is_f64() => {
            format_double(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for Violation {}

/// Appends a text as Go's `%q` writes it.
fn push_quoted(text: &mut String, shown: &str) {
    text.push('"');
    for c in shown.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0b' => text.push_str("\\v"),
            c if (c as u32) < 0x20 || c == '\x7f' => text.push_str(&format!("\\x{:02x}", c as u32)),
            c if c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}') => {
                text.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_shows_path_kind_value_and_detail() {
        let path = FieldPath::root().child("spec").child("n");
        let mut violation = Violation::invalid(path, json!(3), "too large");
        assert_eq!(violation.to_string(), "spec.n: Invalid value: 3: too large");
        violation.shown = Some(shown(&json!("a\"b\n")));
        assert_eq!(violation.body(), r#"Invalid value: "a\"b\n": too large"#);
        violation.shown = None;
        assert_eq!(violation.body(), "Invalid value: too large");
        violation.reason = Reason::Required;
        assert_eq!(violation.body(), "Required value: too large");
    }

    #[test]
    fn the_path_of_the_object_itself_is_nil() {
        let violation = Violation::invalid(FieldPath::root(), json!("object"), "x");
        assert_eq!(violation.to_string(), "<nil>: Invalid value: \"object\": x");
    }
}
