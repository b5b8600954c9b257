//! Errors of single fields, in the words of the API server.

use std::fmt::{self, Write as _};

use serde::Serialize;
use windlass_core::resource::{FieldPath, Segment};

use crate::cut::cut;

/// Most characters of a path, and of a message: the value that it shows may be a whole object.
const LONGEST: usize = 1024;

/// A field of an object, as errors name it: `spec.ports[0].name`.
///
/// A text is taken as it is; a [`FieldPath`] is written without a leading dot, and a field whose
/// name has a dot as the key of a map: `metadata.labels[example.dev/team]`.
pub trait Field {
    /// Returns the path of the field in JSON.
    fn field(&self) -> String;
}

impl Field for str {
    fn field(&self) -> String {
        self.to_owned()
    }
}

impl Field for String {
    fn field(&self) -> String {
        self.clone()
    }
}

impl<F: Field + ?Sized> Field for &F {
    fn field(&self) -> String {
        (**self).field()
    }
}

/// A path whose names in JSON are not known is shown as the reason.
impl<K, V> Field for FieldPath<K, V> {
    fn field(&self) -> String {
        self.segments().map_or_else(|error| error.to_string(), |segments| written(&segments))
    }
}

/// Returns segments in the notation of the API server's errors.
fn written(segments: &[Segment]) -> String {
    let mut path = String::new();
    for segment in segments {
        // Writing to a text cannot fail.
        let _ = match segment {
            Segment::Field(name) if name.contains(['.', '/']) => write!(path, "[{name}]"),
            Segment::Field(name) if path.is_empty() => write!(path, "{name}"),
            Segment::Field(name) => write!(path, ".{name}"),
            Segment::Item(place) => write!(path, "[{place}]"),
            Segment::Filter(filter) => write!(path, "[{filter}]"),
            _ => write!(path, "[*]"),
        };
    }
    path
}

/// The kind of a field's error: its reason in the cause, and the first words of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldFault {
    Duplicate,
    Forbidden,
    Invalid,
    NotFound,
    NotSupported,
    Required,
    TooLong,
    TooMany,
}

impl FieldFault {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            Self::Forbidden => ("FieldValueForbidden", "Forbidden"),
            Self::Invalid => ("FieldValueInvalid", "Invalid value"),
            Self::NotFound => ("FieldValueNotFound", "Not found"),
            Self::NotSupported => ("FieldValueNotSupported", "Unsupported value"),
            Self::Required => ("FieldValueRequired", "Required value"),
            Self::TooLong => ("FieldValueTooLong", "Too long"),
            Self::TooMany => ("FieldValueTooMany", "Too many"),
        }
    }
}

/// An error of one field. Serializes as a cause of a Status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    reason: &'static str,
    message: String,
    field: String,
}

impl FieldError {
    /// Returns the error of a field; `value` is shown as JSON, which for texts, numbers and truth
    /// values is how the API server writes them.
    pub(crate) fn new(
        fault: FieldFault,
        field: impl Field,
        value: Option<&dyn erased::ToMessage>,
        detail: &str,
    ) -> Self {
        let (reason, words) = fault.words();
        let mut message = words.to_owned();
        let shown = value.map(|value| value.shown());
        for part in shown.iter().map(String::as_str).chain([detail]).filter(|part| !part.is_empty())
        {
            message.push_str(": ");
            message.push_str(part);
        }
        let field = field.field();
        // Go's name of a path without elements.
        let field = if field.is_empty() { "<nil>" } else { cut(&field, LONGEST) };
        Self { reason, message: cut(&message, LONGEST).to_owned(), field: field.to_owned() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Values of any type behind one reference.
pub(crate) mod erased {
    use serde::Serialize;

    /// A value that a message shows.
    pub(crate) trait ToMessage {
        fn shown(&self) -> String;
    }

    impl<T: Serialize> ToMessage for T {
        fn shown(&self) -> String {
            serde_json::to_string(self).unwrap_or_else(|_| "<not JSON>".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(fault: FieldFault, value: Option<&dyn erased::ToMessage>, detail: &str) -> String {
        FieldError::new(fault, "spec.a", value, detail).to_string()
    }

    #[test]
    fn a_field_error_reads_as_one_of_the_api_server() {
        let texts = [
            text(FieldFault::Required, None, ""),
            text(FieldFault::Required, None, "needs a host"),
            text(FieldFault::Invalid, Some(&-1), "must be positive"),
            text(FieldFault::Duplicate, Some(&"x"), ""),
            text(FieldFault::NotFound, Some(&true), ""),
        ];
        let wanted = [
            "spec.a: Required value",
            "spec.a: Required value: needs a host",
            "spec.a: Invalid value: -1: must be positive",
            "spec.a: Duplicate value: \"x\"",
            "spec.a: Not found: true",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn the_errors_of_a_response_have_the_words_of_apimachinery() {
        let mut response = crate::AdmissionResponse::allowed();
        response.invalid("a", "x", "is odd");
        response.invalid("", json!({ "b": 1.5 }), "is odd");
        response.required("a", "");
        response.forbidden("a", "not now");
        response.duplicate("a", "x");
        response.not_found("a", "x");
        response.not_supported("a", "x", &["b", "c"]);
        response.not_supported("a", "x", &[]);
        response.too_long("a", 63);
        response.too_long("a", 1);
        response.too_many("a", 3, 2);
        response.too_many("a", 3, 1);
        let texts: Vec<String> = response.errors.iter().map(ToString::to_string).collect();
        let wanted = [
            "a: Invalid value: \"x\": is odd",
            "<nil>: Invalid value: {\"b\":1.5}: is odd",
            "a: Required value",
            "a: Forbidden: not now",
            "a: Duplicate value: \"x\"",
            "a: Not found: \"x\"",
            "a: Unsupported value: \"x\": supported values: \"b\", \"c\"",
            "a: Unsupported value: \"x\"",
            "a: Too long: may not be more than 63 bytes",
            "a: Too long: may not be more than 1 byte",
            "a: Too many: 3: must have at most 2 items",
            "a: Too many: 3: must have at most 1 item",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn a_segment_with_a_dot_is_written_as_the_key_of_a_map() {
        let field = |name: &str| Segment::Field(name.to_owned());
        let path = [field("metadata"), field("labels"), field("example.dev/team")];
        assert_eq!(written(&path), "metadata.labels[example.dev/team]");
        let path = [field("spec"), field("ports"), Segment::Item(1), field("name")];
        assert_eq!(written(&path), "spec.ports[1].name");
        assert_eq!(written(&[field("list"), Segment::Each]), "list[*]");
    }
}
