//! Conversion webhooks of definitions: their configuration, and the checks of converted objects.

use serde_json::{Map, Value, json};

use crate::go;

/// The webhook that converts the objects of a definition.
#[derive(Clone, Debug)]
pub(crate) struct ConversionWebhook {
    /// `clientConfig` of the webhook.
    pub(crate) client: Value,
    /// Versions of the review that the webhook knows, preferred ones first.
    pub(crate) versions: Vec<String>,
}

impl ConversionWebhook {
    /// Returns the conversion of a definition, if a webhook converts.
    pub(super) fn of(definition: &Value) -> Option<Self> {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        Some(Self {
            client: webhook["clientConfig"].clone(),
            versions: versions.filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns version and kind of an object in the form of Go: `g.io/v1, Kind=Widget`.
pub(crate) fn kind_text(object: &Value) -> String {
    let version = text(object, "apiVersion");
    let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
    format!("{version}, Kind={}", text(object, "kind"))
}

/// Returns the objects of an answered review.
pub(crate) fn results<'r>(
    review: &'r Value,
    uid: &str,
    is_v1: bool,
) -> Result<&'r [Value], String> {
    if is_v1 && kind_text(review) != "apiextensions.k8s.io/v1, Kind=ConversionReview" {
        let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        let given = kind_text(review);
        return Err(format!("expected webhook response of {wanted}, got {given}"));
    }
    let response = &review["response"];
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let given = text(response, "uid");
    if is_v1 && given != uid {
        let (uid, given) = (go::quote(uid), go::quote(given));
        return Err(format!("expected response.uid={uid}, got {given}"));
    }
    let result = &response["result"];
    let (status, message) = (text(result, "status"), text(result, "message"));
    if status == "Success" {
        return Ok(response["convertedObjects"].as_array().map_or(&[], Vec::as_slice));
    }
    if !message.is_empty() {
        return Err(message.to_owned());
    }
    Err(format!("response.result.status was '{status}', not 'Success'"))
}

/// Returns a converted object with the metadata of the original; labels and annotations are those
/// of the conversion. `place` is the position in a review of several objects.
pub(crate) fn checked(
    original: &Value,
    made: &Value,
    wanted: &str,
    place: Option<usize>,
) -> Result<Value, String> {
    let at = |what: &str| match place {
        Some(index) => format!("returned invalid {what} at index {index}"),
        None => format!("returned invalid {what}"),
    };
    let object = if place.is_some() { "converted object" } else { "object" };
    let (version, kind) = (text(made, "apiVersion"), text(made, "kind"));
    let indexed = format!("returned invalid {object} at index {}", place.unwrap_or(0));
    if version != wanted {
        return Err(format!(
            "{indexed}: invalid groupVersion (expected {wanted}, received {version})"
        ));
    }
    let expected = text(original, "kind");
    if kind != expected {
        return Err(format!("{indexed}: invalid kind (expected {expected}, received {kind})"));
    }
    same_identity(original, made).map_err(|why| format!("{}: {why}", at(object)))?;
    let named = if place.is_some() { at("metadata in object") } else { at("metadata") };
    let metadata = restored(original, made).map_err(|why| format!("{named}: {why}"))?;
    let mut out = made.clone();
    out["metadata"] = metadata;
    Ok(out)
}

/// Checks that an object is the same.
fn same_identity(original: &Value, made: &Value) -> Result<(), String> {
    for (field, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let held = text(&original["metadata"], field);
        let given = text(&made["metadata"], field);
        if held != given {
            return Err(format!("must have the same {word}: {held} != {given}"));
        }
    }
    Ok(())
}

/// Returns the type of a value as shown by Go's `%T`.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Returns the original metadata with the labels and annotations of the conversion.
fn restored(original: &Value, made: &Value) -> Result<Value, String> {
    let Some(given) = made.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    let Value::Object(given) = given else {
        let found = go_type(given);
        return Err(format!("invalid metadata of type {found} in converted object"));
    };
    let mut metadata = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(texts)) => {
                check_texts(field, texts)?;
                if metadata.get(field).and_then(Value::as_object) != Some(texts) {
                    check_names(field, texts)?;
                }
                metadata.insert(field.to_owned(), Value::Object(texts.clone()));
            }
            Some(other) => {
                let found = go_type(other);
                return Err(format!(
                    "invalid metadata.{field} of type {found} in converted object"
                ));
            }
        }
    }
    Ok(Value::Object(metadata))
}

/// Checks that all values are texts.
fn check_texts(field: &str, texts: &Map<String, Value>) -> Result<(), String> {
    match texts.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, value)) => {
            let found = go_type(value);
            Err(format!(
                "metadata.{field}[{key}] must be a string, but is {found} in converted object"
            ))
        }
    }
}

/// Checks labels or annotations that the conversion has changed.
fn check_names(field: &str, texts: &Map<String, Value>) -> Result<(), String> {
    let causes = super::meta::check_common(&json!({"metadata": {field: texts}}));
    let shown: Vec<String> = causes
        .iter()
        // As upstream writes the path here.
        .map(|cause| {
            format!("{}: {}", cause.field.replace("annotations", "annotation"), cause.message)
        })
        .collect();
    match shown.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
