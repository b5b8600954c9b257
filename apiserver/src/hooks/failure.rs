//! Answers of webhooks that are no reviews, in the words of upstream's client.

use http::StatusCode;
use serde_json::Value;

use crate::go;

/// Most bytes of a body that a message repeats.
const SHOWN: usize = 2048;
/// A field of an answer: the name, the test of the type, and that type in Go.
type TypedField = (&'static str, fn(&Value) -> bool, &'static str);
/// Fields that must have their type, if an answer has them.
const TYPED: [TypedField; 7] = [
    ("uid", Value::is_string, "types.UID"),
    ("allowed", Value::is_boolean, "bool"),
    ("patchType", Value::is_string, "v1.PatchType"),
    ("warnings", Value::is_array, "[]string"),
    ("auditAnnotations", Value::is_object, "map[string]string"),
    ("status", Value::is_object, "v1.Status"),
    ("convertedObjects", Value::is_array, "[]runtime.RawExtension"),
];

/// Returns the review in an answer; the error is the text of kube-apiserver's client.
pub(super) fn review(
    code: StatusCode,
    media: Option<&str>,
    body: &[u8],
    asked: &Value,
) -> Result<Value, String> {
    if !(200..=206).contains(&code.as_u16()) {
        return Err(refusal(code, media, body));
    }
    if body.is_empty() {
        let shown = media.unwrap_or("application/json");
        let code = code.as_u16();
        return Err(format!(
            "0-length response with status code: {code} and content type: {shown}"
        ));
    }
    let review: Value = match serde_json::from_slice(body) {
        Ok(review) => review,
        // The decoder of upstream reads YAML, too: a word is a text in YAML.
        Err(error) => serde_saphyr::from_slice(body).map_err(|_| {
            let why = go::json_error(&error, body);
            format!("couldn't get version/kind; json parse error: {why}")
        })?,
    };
    if !review.is_object() && !review.is_null() {
        return Err(go::not_an_object(&review));
    }
    check_type(&review, asked)?;
    check_fields(&review)?;
    Ok(review)
}

/// Returns a media type without parameters.
fn essence(media: &str) -> &str {
    media.split(';').next().unwrap_or_default().trim()
}

/// Checks that version and kind, if they are given, are known to the client.
fn check_type(review: &Value, asked: &Value) -> Result<(), String> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    let (wanted_version, wanted_kind) = (text(asked, "apiVersion"), text(asked, "kind"));
    if kind == "Status" && version == "v1" {
        return Err(review["message"].as_str().unwrap_or_default().to_owned());
    }
    let group = wanted_version.split('/').next().unwrap_or_default();
    let is_version = version.is_empty()
        || [format!("{group}/v1"), format!("{group}/v1beta1")].contains(&version);
    if is_version && (kind.is_empty() || kind == wanted_kind) {
        if version.is_empty() || version == wanted_version {
            return Ok(());
        }
        let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        let (given, wanted) = (short(&version), short(&wanted_version));
        return Err(format!(
            "converting ({given}.{wanted_kind}) to ({wanted}.{wanted_kind}): unknown conversion"
        ));
    }
    let kind = if kind.is_empty() { wanted_kind } else { kind };
    let version = if version.is_empty() { wanted_version } else { version };
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(&kind),
        go::quote(&version)
    ))
}

/// Checks the types of the fields of an answer.
fn check_fields(review: &Value) -> Result<(), String> {
    let response = &review["response"];
    if response.is_null() {
        return Ok(());
    }
    if !response.is_object() {
        let wanted = "v1.AdmissionResponse";
        return Err(go::mismatch(response, "AdmissionReview.response", wanted));
    }
    for (field, fits, wanted) in TYPED {
        let value = &response[field];
        if !value.is_null() && !fits(value) {
            let name = format!("AdmissionResponse.response.{field}");
            return Err(go::mismatch(value, &name, wanted));
        }
    }
    Ok(())
}

/// Returns the text of an answer that is a failure of HTTP.
fn refusal(code: StatusCode, media: Option<&str>, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status["kind"] == "Status"
        && status["status"] == "Failure"
    {
        return status["message"].as_str().unwrap_or_default().to_owned();
    }
    let is_text = media.is_none_or(|media| essence(media).starts_with("text/"));
    let text = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body));
    let text = if is_text { text.trim() } else { "unknown" };
    let code = code.as_u16();
    match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => text,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if text.is_empty() || text == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => text,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        _ if code >= 500 => {
            let shown = go::quote(text);
            return format!(
                "an error on the server ({shown}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    }
    .to_owned()
}
