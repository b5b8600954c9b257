//! The details of a Status, and the causes in them.

use serde_json::{Map, Value, json};

use crate::served::Cause;

/// The `details` of a Status.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Details {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) uid: String,
    pub(super) causes: Vec<Cause>,
    pub(super) retry_after: Option<u64>,
}

/// Returns a cause, in the form in which validation makes them.
pub(crate) fn cause(reason: &str, field: &str, message: impl Into<String>) -> Cause {
    Cause { reason: reason.to_owned(), message: message.into(), field: field.to_owned() }
}

/// Returns the cause `Invalid value: "x": detail`.
pub(crate) fn invalid_value(field: &str, value: &Value, detail: &str) -> Cause {
    cause("FieldValueInvalid", field, format!("Invalid value: {value}: {detail}"))
}

/// Most causes of an answer. kube-apiserver has no such limit: for tens of thousands it takes until
/// the deadline.
pub(super) const MOST_CAUSES: usize = 1000;

/// Returns the cause `Required value: detail`.
pub(crate) fn required(field: &str, detail: &str) -> Cause {
    let message = if detail.is_empty() {
        "Required value".to_owned()
    } else {
        format!("Required value: {detail}")
    };
    cause("FieldValueRequired", field, message)
}

/// Returns the cause `Forbidden: detail`.
pub(crate) fn forbidden_field(field: &str, detail: &str) -> Cause {
    cause("FieldValueForbidden", field, format!("Forbidden: {detail}"))
}

/// Returns the cause `Duplicate value: "x"`.
pub(crate) fn duplicate(field: &str, value: &Value) -> Cause {
    cause("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
}

/// Returns the cause `Unsupported value: "x": supported values: …`.
pub(crate) fn unsupported(field: &str, value: &str, supported: &[&str]) -> Cause {
    let list = supported.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ");
    cause(
        "FieldValueNotSupported",
        field,
        format!("Unsupported value: {value:?}: supported values: {list}"),
    )
}

impl Details {
    /// Returns the details of a Status that another server made; `None` without any.
    pub(super) fn of(given: &Value) -> Option<Self> {
        let text =
            |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let causes = given["causes"].as_array().into_iter().flatten().take(MOST_CAUSES);
        given.as_object()?;
        Some(Self {
            name: text(given, "name"),
            group: text(given, "group"),
            kind: text(given, "kind"),
            uid: text(given, "uid"),
            causes: causes
                .map(|one| cause(&text(one, "reason"), &text(one, "field"), text(one, "message")))
                .collect(),
            retry_after: given["retryAfterSeconds"].as_u64(),
        })
    }

    /// Returns the details without their empty fields.
    pub(super) fn json(&self) -> Value {
        let mut out = Map::new();
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                out.insert(key.to_owned(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            out.insert("causes".to_owned(), self.causes.iter().map(cause_json).collect());
        }
        if let Some(seconds) = self.retry_after {
            out.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(out)
    }
}

/// Returns a cause without empty fields.
fn cause_json(cause: &Cause) -> Value {
    let mut out = Map::new();
    let texts = [("reason", &cause.reason), ("message", &cause.message), ("field", &cause.field)];
    for (key, text) in texts {
        if !text.is_empty() {
            out.insert(key.to_owned(), json!(text));
        }
    }
    Value::Object(out)
}
