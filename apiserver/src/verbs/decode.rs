//! From a body to an object of the kind: checks version and kind, drops unknown fields, fills in
//! defaults.
//!
//! This is the typed decoding of kube-apiserver, so the errors are worded like Go's. Values of
//! known fields are validated later.

mod empties;

use serde_json::Value;

use super::VerbCall;
use super::options::FieldValidation;
use crate::go;
use crate::kinds::{Kind, defaults, meta};
use crate::served::Served;
use crate::status::{ApiError, FailureSubject, cause};
use crate::typed::TypeSchema;
use empties::{empty_data, put_back, refused_empty, sent_empty};
pub(crate) use empties::{forget_empty_data, forget_refused, keep_refused};

/// A parsed body.
#[derive(Clone, Default)]
pub(crate) struct Body {
    /// The parsed value.
    pub(crate) value: Value,
    /// Paths of fields that the body contains twice.
    pub(crate) duplicates: Vec<String>,
    /// Complaints about keys that a YAML body contains twice.
    pub(crate) repeated: Vec<String>,
    /// The body as sent; empty if unknown.
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
    /// Go's decoder fails; with the text of the error.
    Type(String),
    /// Unknown or repeated fields, under strict validation.
    Strict(String),
    /// Kind and version of the body cannot be read; with the reason and the start of the body.
    Head(String, String),
    /// The body is of another kind; with that kind, the version and the reason.
    Foreign(String, String, String),
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
    pub(crate) fn of_body(self, call: &VerbCall) -> ApiError {
        let served = &call.kind.served;
        let text = match self {
            Self::Type(text) => text,
            Self::Strict(text) => format!("strict decoding error: {text}"),
            Self::Head(why, start) => {
                let name = &served.kind;
                return ApiError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {name}): {why} ({start})"
                ));
            }
            Self::Foreign(kind, version, why) => {
                let name = &served.kind;
                return ApiError::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {name}: {why}"
                ));
            }
            Self::Other(error) => return error,
        };
        let kind = &served.kind;
        let version = &served.version;
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {text}"
        ))
    }

    /// Returns the answer to an apply whose body has this metadata.
    pub(crate) fn of_apply(self, call: &VerbCall, metadata: &Value) -> ApiError {
        let Self::Type(text) = self else { return self.of_body(call) };
        let served = &call.kind.served;
        if served.custom {
            return Self::Type(text).of_body(call);
        }
        let slash = if served.group.is_empty() { "/" } else { "" };
        let version = format!("{slash}{}, Kind={}", served.api_version(), served.kind);
        let part = |field: &str| metadata[field].as_str().unwrap_or_default();
        let place = format!("{}/{}; {version}", part("namespace"), part("name"));
        ApiError::unclassified(format!(
            "failed to convert new object ({place}) to proper version: unable to convert unstructured \
             object to {version}: {text}"
        ))
    }

    /// Returns the answer to a PATCH that made `patched`.
    pub(crate) fn of_patch(self, patched: &str) -> ApiError {
        let text = match self {
            Self::Type(text) => text,
            Self::Strict(text) => format!("strict decoding error: {text}"),
            Self::Head(text, _) | Self::Foreign(_, _, text) => text,
            Self::Other(error) => return error,
        };
        let shown = Value::from(patched.to_owned());
        let message = format!("Invalid value: {shown}: {text}");
        let cause = cause("FieldValueInvalid", "patch", message);
        ApiError::invalid(FailureSubject { group: "", kind: "", name: "" }, vec![cause])
    }
}

/// Origin of an object that is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyOrigin {
    /// The body of the request.
    Sent,
    /// The result of a JSON, merge or strategic merge patch.
    Patched,
    /// The result of a server-side apply.
    Applied,
}

/// Reads a body as an object of the call's kind.
pub(crate) fn object(
    call: &VerbCall,
    body: Body,
    origin: BodyOrigin,
    warnings: &mut Vec<String>,
) -> Result<Value, BodyFault> {
    let Body { value: mut object, duplicates, repeated, text } = body;
    // An empty body is decoded as an object without fields, as Go does.
    if object.is_null() && call.kind.custom.is_none() {
        object = Value::Object(serde_json::Map::new());
    }
    if call.options.validation == FieldValidation::Warn {
        warnings.extend(foreign_fields(call, &object));
    }
    let patched = origin == BodyOrigin::Patched;
    check_kind(call, &object, &text, patched)?;
    let fault = wrong_type(&call.kind, &object);
    if let Some(text) = fault.or_else(|| embedded_fault(call, &mut object)) {
        return Err(BodyFault::Type(text));
    }
    // Types first: fields of a wrong type fail before unknown fields are dropped.
    let unknown = settle(call, &mut object, origin);
    let mut complaints = complaints(call, &duplicates, &unknown, &text);
    if !repeated.is_empty() {
        match call.options.validation {
            FieldValidation::Strict => complaints.insert(0, unmarshal_errors(&repeated)),
            FieldValidation::Warn => warnings.extend(repeated),
            FieldValidation::Ignore => {}
        }
    }
    if !complaints.is_empty() {
        match call.options.validation {
            FieldValidation::Strict => return Err(BodyFault::Strict(complaints.join(", "))),
            FieldValidation::Warn => warnings.extend(complaints),
            FieldValidation::Ignore => {}
        }
    }
    warnings.extend(meta::dedup_owners(&mut object, patched));
    Ok(call.kind.settled(object))
}

/// Returns the error of Go's strict YAML decoder about repeated keys.
pub(super) fn unmarshal_errors(repeated: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "))
}

/// Returns the first field of a wrong type, in the order of sorted keys, as patches leave them.
fn wrong_type(kind: &Kind, object: &Value) -> Option<String> {
    let Some(fault) = meta::wrong_type(kind, object) else { return kind.types.mismatch(object) };
    // The metadata of custom resources is decoded separately.
    let fields = object.as_object().filter(|_| !kind.served.custom);
    let fields = fields.into_iter().flatten().filter(|(key, _)| key.as_str() < "metadata");
    let before: serde_json::Map<String, Value> =
        fields.map(|(key, value)| (key.clone(), value.clone())).collect();
    kind.types.mismatch(&Value::Object(before)).or(Some(fault))
}

/// Returns the complaints about repeated and unknown fields, in the order in which Go finds them.
fn complaints(
    call: &VerbCall,
    duplicates: &[String],
    unknown: &[String],
    text: &str,
) -> Vec<String> {
    let mut complaints: Vec<String> =
        duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    complaints.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
    if call.kind.custom.is_some() || complaints.len() < 2 {
        return complaints;
    }
    if text.is_empty() {
        // Made by a patch, which sorts the keys.
        complaints.sort();
        return complaints;
    }
    go::in_order(text, complaints)
}

/// Returns the fault of the head of an embedded resource.
fn embedded_fault(call: &VerbCall, object: &mut Value) -> Option<String> {
    let schema = &call.kind.custom.as_ref()?.schema;
    let mut fault = schema.embedded_fault(object);
    schema.each_embedded(object, &mut |path, resource| {
        if let (None, Some(why)) = (&fault, meta::wrong_type(&call.kind, resource)) {
            let shown = &resource["metadata"];
            fault = Some(format!("{path}.metadata: Invalid value: {shown}: {why}"));
        }
    });
    fault
}

/// Returns the complaints about a custom resource of another version, whose schema is not known, so
/// that all fields are unknown.
fn foreign_fields(call: &VerbCall, object: &Value) -> Vec<String> {
    let fields = object.as_object().filter(|_| foreign_version(call, object));
    let unknown = fields.into_iter().flat_map(|fields| fields.keys()).filter(|key| !is_head(key));
    unknown.map(|key| format!("unknown field {}", go::quote(key))).collect()
}

/// Whether a body is a custom resource of another version than that of the URL.
fn foreign_version(call: &VerbCall, object: &Value) -> bool {
    let version = object["apiVersion"].as_str().filter(|version| !version.is_empty());
    let served = &call.kind.served;
    let is_other = |version: &str| {
        // Another group has no schema that could miss the fields.
        version.split_once('/').is_some_and(|(group, _)| group == served.group)
            && version != served.api_version()
    };
    served.custom && object["kind"].is_string() && version.is_some_and(is_other)
}

/// Whether this is a field that every object has.
fn is_head(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// Brings an object into the kind's form, and returns the paths of the fields that were dropped.
pub(crate) fn settle(call: &VerbCall, object: &mut Value, origin: BodyOrigin) -> Vec<String> {
    let kind = &call.kind;
    let mut unknown = meta::clean(object);
    object["apiVersion"] = kind.served.api_version().into();
    object["kind"] = kind.name().into();
    if let Some(custom) = &kind.custom {
        // DESIGN.md, 322: Nulls of an apply are judged like any value
        unknown.extend(match origin {
            BodyOrigin::Applied => custom.schema.prune_unknown(object),
            _ => custom.schema.prune(object),
        });
        custom.schema.default(object);
        custom.schema.each_embedded(object, &mut |path, resource| {
            if resource["metadata"].is_object() {
                let found = meta::clean(resource).into_iter();
                unknown.extend(found.map(|field| format!("{path}.{field}")));
            }
        });
        go::whole_numbers_but_equal(object);
        go::large_numbers(object);
    } else {
        // Metadata was cleaned above, by separate rules.
        let metadata = object["metadata"].take();
        unknown.extend(kind.types.drop_unknown(object));
        object["metadata"] = metadata;
        if kind.served.group != "apiextensions.k8s.io" {
            defaults::empty_texts(kind, object);
            defaults::strip_nulls(object);
            let metadata = object["metadata"].take();
            kind.types.fill(object);
            object["metadata"] = metadata;
        }
        // Before `stringData` becomes data.
        let empty = empty_data(kind, object).filter(|_| !call.name.is_empty());
        defaults::apply(kind, object);
        let sent = if call.name.is_empty() { Vec::new() } else { sent_empty(kind, object) };
        canonicalize(kind, object);
        put_back(object, sent);
        // A change to the empty map is a change of an immutable object, and is forgotten then.
        if let Some(field) = empty {
            defaults::child(object, field);
        }
    }
    // Typed decoding goes field by field, so the order is that of the paths.
    unknown.dedup();
    meta::clean(object);
    unknown
}

/// Brings an object of a built-in kind into the form in which objects are read from the store:
/// empty lists of fields that are always written become null there.
pub(crate) fn persist(kind: &Kind, object: &mut Value) {
    forget_refused(kind, object);
    if kind.custom.is_some() {
        go::whole_numbers(object);
    }
    // Definitions are stored as JSON, which keeps empty lists.
    if kind.custom.is_some() || kind.served.group == "apiextensions.k8s.io" {
        return;
    }
    if kind.is("coordination.k8s.io", "leases")
        && let Some(Value::Object(spec)) = object.get_mut("spec")
    {
        // Fields of a feature that is off by default: senders own such fields nevertheless.
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
    crate::kinds::admission::label(kind, object);
    let metadata = object["metadata"].take();
    kind.types.persist(object);
    object["metadata"] = metadata;
}

/// Writes a built-in object as the server's own types would; empty values that validation refuses
/// stay until then.
pub(crate) fn canonicalize(kind: &Kind, object: &mut Value) {
    let refused = refused_empty(kind, object);
    let metadata = object["metadata"].take();
    kind.types.canonicalize(object);
    object["metadata"] = metadata;
    put_back(object, refused);
}

/// Checks kind and version of a body.
fn check_kind(call: &VerbCall, object: &Value, raw: &str, patched: bool) -> Result<(), BodyFault> {
    let served = &call.kind.served;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let shown = if raw.is_empty() { object.to_string() } else { raw.to_owned() };
    let head = |why: String| Err(BodyFault::Head(why, excerpt(shown.as_bytes())));
    if !object.is_object() && !object.is_null() {
        return head(go::not_an_object(object));
    }
    for field in ["apiVersion", "kind"] {
        let value = &object[field];
        if !value.is_string() && !value.is_null() {
            let why = go::mismatch(value, &format!(".{field}"), "string");
            return head(format!("couldn't get version/kind; json parse error: {why}"));
        }
    }
    if version.matches('/').count() > 1 {
        return head(format!("unexpected GroupVersion string: {version}"));
    }
    if served.custom {
        check_custom(call, object, raw, patched)
    } else {
        check_builtin(call, kind, version, object)
    }
}

fn check_custom(
    call: &VerbCall,
    object: &Value,
    raw: &str,
    patched: bool,
) -> Result<(), BodyFault> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let wanted = call.kind.served.api_version();
    if kind.is_empty() {
        let shown = if raw.is_empty() { object.to_string() } else { raw.to_owned() };
        let start = excerpt(shown.as_bytes());
        return Err(BodyFault::Head(format!("Object 'Kind' is missing in '{shown}'"), start));
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
    Err(ApiError::invalid(FailureSubject { group, kind, name: &name }, causes).into())
}

/// Checks kind and version of a built-in object; absent values default to the URL's.
fn check_builtin(
    call: &VerbCall,
    kind: &str,
    version: &str,
    object: &Value,
) -> Result<(), BodyFault> {
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
    let known = TypeSchema::builtin(version, kind);
    let fault = known.as_ref().and_then(|types| types.mismatch(object));
    let why = if let Some(fault) = fault {
        // The object is decoded as its stated kind before conversion.
        fault
    } else if kind == name && known.is_some() && shares_objects(served, version) {
        return Err(BodyFault::Other(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({wanted})"
        ))));
    } else if kind == name || known.is_none() && !(kind == "List" && version == "v1") {
        format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go::quote(kind),
            go::quote(version),
        )
    } else {
        format!("converting ({short}.{kind}) to ({internal}.{name}): unknown conversion")
    };
    Err(BodyFault::Foreign(kind.to_owned(), short.to_owned(), why))
}

/// Whether another version of the kind shows the same objects: that version is decoded, and refused
/// only then.
fn shares_objects(served: &Served, version: &str) -> bool {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    group == served.group || served.kind == "Event"
}

/// Returns the start of a body, in the form of upstream's errors.
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
    fn of_two_wrong_types_the_first_in_the_order_of_keys_is_told() {
        let kinds = crate::kinds::builtin::kinds();
        let kind = kinds.iter().find(|kind| kind.name() == "ConfigMap").unwrap();
        let both = serde_json::json!({"data": "x", "metadata": {"name": false}});
        assert!(wrong_type(kind, &both).unwrap().contains("ConfigMap.data"));
        let later = serde_json::json!({"metadata": {"name": false}, "x": 1});
        assert!(wrong_type(kind, &later).unwrap().contains("ObjectMeta.metadata.name"));
    }

    #[test]
    fn an_excerpt_is_text_only_when_it_looks_like_an_object() {
        assert_eq!(excerpt(b""), "<empty>");
        assert_eq!(excerpt(b"[]"), "5b5d");
        assert_eq!(excerpt(b"{\"a\":"), "{\"a\":");
        let long = br#"{"apiVersion":"a/b/c","kind":"Widget"}"#;
        assert_eq!(excerpt(long), "{\"apiVersion\":\"a/b/c\",\"kind\":\" ...");
    }
}
