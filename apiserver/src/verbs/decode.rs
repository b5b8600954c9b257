//! From a body to an object of the kind: checks version and kind, drops unknown fields, fills in
//! defaults.
//!
//! This is the typed decoding of kube-apiserver, so the errors are worded like Go's. Values of
//! known fields are validated later.

use serde_json::Value;

use super::Call;
use super::options::FieldValidation;
use crate::go;
use crate::kinds::{Kind, defaults, meta};
use crate::status::{About, ApiError, cause};
use crate::typed::TypeSchema;

/// A parsed body.
#[derive(Clone, Default)]
pub(crate) struct Body {
    /// The parsed value.
    pub(crate) value: Value,
    /// Paths of fields that the body contains twice.
    pub(crate) duplicates: Vec<String>,
    /// The body as it was sent; empty if that is not known.
    pub(crate) text: String,
}

impl std::fmt::Debug for Body {
    /// Writes no content, which may be a Secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("length", &self.text.len()).finish_non_exhaustive()
    }
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self { value, ..Self::default() }
    }
}

/// Reason why a body is no object of the kind.
#[derive(Clone, Debug)]
pub(crate) enum BodyFault {
    /// Go's decoder fails; with its text.
    Type(String),
    /// Unknown or repeated fields, under strict validation.
    Strict(String),
    /// Any other failure.
    Other(ApiError),
}

impl From<ApiError> for BodyFault {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl BodyFault {
    /// Returns the answer to a POST or PUT.
    pub(crate) fn of_body(self, call: &Call) -> ApiError {
        let served = &call.kind.served;
        let text = match self {
            Self::Type(text) => text,
            Self::Strict(text) => format!("strict decoding error: {text}"),
            Self::Other(error) => return error,
        };
        let kind = &served.kind;
        let version = &served.version;
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {text}"
        ))
    }

    /// Returns the answer to a PATCH that made `patched`.
    pub(crate) fn of_patch(self, patched: &Value) -> ApiError {
        let text = match self {
            Self::Type(text) => text,
            Self::Strict(text) => format!("strict decoding error: {text}"),
            Self::Other(error) => return error,
        };
        let shown = Value::from(patched.to_string());
        let message = format!("Invalid value: {shown}: {text}");
        let cause = cause("FieldValueInvalid", "patch", message);
        ApiError::invalid(About { group: "", kind: "", name: "" }, vec![cause])
    }
}

/// Reads a body as an object of the call's kind; `patched` if a patch made the body.
pub(crate) fn object(
    call: &Call,
    body: Body,
    patched: bool,
    warnings: &mut Vec<String>,
) -> Result<Value, BodyFault> {
    let Body { value: mut object, duplicates, text } = body;
    // An empty body is decoded as an object without fields, as Go does.
    if object.is_null() && call.kind.custom.is_none() {
        object = Value::Object(serde_json::Map::new());
    }
    check_kind(call, &object, &text, patched)?;
    if let Some(text) = meta::wrong_type(&call.kind, &object) {
        return Err(BodyFault::Type(text));
    }
    if let Some(text) = call.kind.types.mismatch(&object) {
        return Err(BodyFault::Type(text));
    }
    let custom = call.kind.custom.as_ref();
    if let Some(text) = custom.and_then(|custom| custom.schema.embedded_fault(&object)) {
        return Err(BodyFault::Type(text));
    }
    let mut complaints: Vec<String> =
        duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    // Types first: fields of a wrong type fail before unknown ones are dropped.
    let unknown = settle(call, &mut object);
    complaints.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    if !complaints.is_empty() {
        match call.options.validation {
            FieldValidation::Strict => return Err(BodyFault::Strict(complaints.join(", "))),
            FieldValidation::Warn => warnings.extend(complaints),
            FieldValidation::Ignore => {}
        }
    }
    warnings.extend(meta::dedup_owners(&mut object, patched));
    if call.kind.served.custom {
        warnings.extend(meta::finalizer_warnings(&object));
    }
    Ok(object)
}

/// Brings an object into its kind's form, and returns the paths of the fields that it dropped.
pub(crate) fn settle(call: &Call, object: &mut Value) -> Vec<String> {
    let kind = &call.kind;
    let mut unknown = meta::clean(object);
    object["apiVersion"] = kind.served.api_version().into();
    object["kind"] = kind.name().into();
    if let Some(custom) = &kind.custom {
        unknown.extend(custom.schema.prune(object));
        custom.schema.default(object);
        go::whole_numbers(object);
    } else {
        // Metadata was cleaned above, by rules of its own.
        let metadata = object["metadata"].take();
        unknown.extend(kind.types.drop_unknown(object));
        object["metadata"] = metadata;
        if kind.served.group != "apiextensions.k8s.io" {
            defaults::empty_texts(kind, object);
            defaults::strip_nulls(object);
        }
        defaults::apply(kind, object);
        canonicalize(kind, object);
    }
    // Typed decoding goes field by field, so the order is that of the paths.
    unknown.dedup();
    meta::clean(object);
    unknown
}

/// Writes a built-in object as the server's own types would.
pub(crate) fn canonicalize(kind: &Kind, object: &mut Value) {
    let metadata = object["metadata"].take();
    kind.types.canonicalize(object);
    object["metadata"] = metadata;
    defaults::empty_rules(kind, object);
}

/// Checks kind and version of a body.
fn check_kind(call: &Call, object: &Value, raw: &str, patched: bool) -> Result<(), BodyFault> {
    let served = &call.kind.served;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !object.is_object() && !object.is_null() {
        let name = &served.kind;
        let (why, start) = (go::not_an_object(object), excerpt(object.to_string().as_bytes()));
        let text = format!(
            "the object provided is unrecognized (must be of type {name}): {why} ({start})"
        );
        return Err(ApiError::bad_request(text).into());
    }
    if served.custom {
        check_custom(call, object, raw, patched)
    } else {
        check_builtin(call, kind, version)
    }
}

fn check_custom(call: &Call, object: &Value, raw: &str, patched: bool) -> Result<(), BodyFault> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let wanted = call.kind.served.api_version();
    if kind.is_empty() {
        let shown = if raw.is_empty() { object.to_string() } else { raw.to_owned() };
        let start = excerpt(shown.as_bytes());
        let name = call.kind.name();
        let text = format!(
            "the object provided is unrecognized (must be of type {name}): Object 'Kind' is missing in '{shown}' ({start})"
        );
        return Err(ApiError::bad_request(text).into());
    }
    if version != wanted && !patched {
        let text = format!(
            "the API version in the data ({version}) does not match the expected API version ({wanted})"
        );
        return Err(ApiError::bad_request(text).into());
    }
    let mut causes = Vec::new();
    if kind != call.kind.name() {
        let message = format!("Invalid value: {kind:?}: must be {}", call.kind.name());
        causes.push(cause("FieldValueInvalid", "kind", message));
    }
    if version != wanted {
        let message = format!("Invalid value: {version:?}: must be {wanted}");
        causes.push(cause("FieldValueInvalid", "apiVersion", message));
    }
    if causes.is_empty() {
        return Ok(());
    }
    let name = meta::text(object, "name").to_owned();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Err(ApiError::invalid(About { group, kind, name: &name }, causes).into())
}

/// Checks kind and version of a built-in object; absent ones count as those of the URL.
fn check_builtin(call: &Call, kind: &str, version: &str) -> Result<(), BodyFault> {
    let served = &call.kind.served;
    let wanted = served.api_version();
    let kind = if kind.is_empty() { served.kind.as_str() } else { kind };
    let version = if version.is_empty() { wanted.as_str() } else { version };
    if version == wanted && kind == served.kind {
        return Ok(());
    }
    let short = version.rsplit('/').next().unwrap_or(version);
    let name = &served.kind;
    let internal = if served.group.is_empty() {
        "core"
    } else {
        served.group.split('.').next().unwrap_or_default()
    };
    // A kind of another version, or one that the group does not have.
    let is_known = TypeSchema::builtin(version, kind).is_some();
    let why = if kind == name || !is_known {
        format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go::quote(kind),
            go::quote(version),
        )
    } else {
        format!("converting ({short}.{kind}) to ({internal}.{name}): unknown conversion")
    };
    let text = format!("{kind} in version {short:?} cannot be handled as a {name}: {why}");
    Err(ApiError::bad_request(text).into())
}

/// Returns the start of a body, as upstream shows it in errors.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<empty>".to_owned();
    }
    let object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let (head, more) = (&bytes[..bytes.len().min(30)], bytes.len() > 30);
    let text = if object {
        String::from_utf8_lossy(head).into_owned()
    } else {
        head.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if more { format!("{text} ...") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_text_only_when_it_looks_like_an_object() {
        assert_eq!(excerpt(b""), "<empty>");
        assert_eq!(excerpt(b"[]"), "5b5d");
        assert_eq!(excerpt(b"{\"a\":"), "{\"a\":");
        let long = br#"{"apiVersion":"a/b/c","kind":"Widget"}"#;
        assert_eq!(excerpt(long), "{\"apiVersion\":\"a/b/c\",\"kind\":\" ...");
    }
}
