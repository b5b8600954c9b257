//! `AdmissionReview`: the question to a webhook, and the checks of the answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::go;
use crate::hooks::{CallFailure, Hook, HookResponse};
use crate::status::ApiError;

/// Group of the reviews.
const GROUP: &str = "admission.k8s.io";
/// Fields of a request that are left out if they are empty.
const OPTIONAL: [&str; 4] = ["name", "namespace", "subResource", "requestSubResource"];
/// Fields of a user that are left out if they are empty.
const OF_USER: [&str; 4] = ["username", "uid", "groups", "extra"];

/// A valid answer.
#[derive(Debug, Default)]
pub(super) struct ReviewAnswer {
    /// The Status of a refusal.
    pub(super) denial: Option<Value>,
    /// The bytes and the type of a patch.
    pub(super) patch: Option<(Vec<u8>, String)>,
    pub(super) warnings: Vec<String>,
    /// Keys of audit annotations.
    pub(super) audited: Vec<String>,
}

/// Returns the first version of the review that both sides know.
fn version(spec: &Value) -> &'static str {
    let versions = spec["admissionReviewVersions"].as_array().into_iter().flatten();
    let known = versions.filter_map(|version| match version.as_str() {
        Some("v1") => Some("v1"),
        Some("v1beta1") => Some("v1beta1"),
        _ => None,
    });
    known.into_iter().next().unwrap_or("v1")
}

/// Returns the review for a webhook, without the uid of the request.
pub(super) fn review(
    hook: &Hook,
    mut request: Value,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    trim(&mut request, &OPTIONAL);
    trim(&mut request["userInfo"], &OF_USER);
    request["object"] = object.cloned().unwrap_or(Value::Null);
    request["oldObject"] = old.cloned().unwrap_or(Value::Null);
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("{GROUP}/{}", version(&hook.spec)),
        "request": request,
    })
}

/// Removes the empty among some fields.
fn trim(value: &mut Value, names: &[&str]) {
    let Value::Object(fields) = value else { return };
    for name in names {
        let is_empty = match fields.get(*name) {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            _ => false,
        };
        if is_empty {
            fields.remove(*name);
        }
    }
}

/// Returns the decision in an answer; the error is the reason why the call counts as failed.
pub(super) fn verdict(
    answer: &HookResponse,
    spec: &Value,
    is_mutating: bool,
) -> Result<ReviewAnswer, String> {
    let review = match &answer.result {
        Ok(review) => review,
        Err(CallFailure::Client(why)) => return Err(format!("could not get REST client: {why}")),
        Err(CallFailure::Call(why)) => return Err(format!("failed to call webhook: {why}")),
        Err(CallFailure::Deadline) => {
            return Err("failed to call webhook: context deadline exceeded".to_owned());
        }
    };
    let is_v1 = version(spec) == "v1";
    check(review, &answer.uid, is_v1, is_mutating)
        .map_err(|why| format!("received invalid webhook response: {why}"))?;
    let response = &review["response"];
    let patch = STANDARD.decode(text(response, "patch")).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _)
            | base64::DecodeError::InvalidLastSymbol(at, _)
            | base64::DecodeError::InvalidLength(at) => at,
            base64::DecodeError::InvalidPadding => 0,
        };
        format!("failed to call webhook: illegal base64 data at input byte {at}")
    })?;
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    // The older version has no type that counts, because there is only a single type.
    let form = if is_v1 { text(response, "patchType") } else { "JSONPatch" };
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    Ok(ReviewAnswer {
        denial: (response["allowed"] != true).then(|| response["status"].clone()),
        patch: (is_mutating && !patch.is_empty()).then(|| (patch, form.to_owned())),
        warnings: texts(&response["warnings"]),
        audited: annotations.map(|(key, _)| key.clone()).collect(),
    })
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Checks an answer, in the order of upstream.
fn check(review: &Value, uid: &str, is_v1: bool, is_mutating: bool) -> Result<(), String> {
    let response = &review["response"];
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    if !is_v1 {
        return Ok(());
    }
    let given = text(response, "uid");
    if given != uid {
        let (uid, given) = (go::quote(uid), go::quote(given));
        return Err(format!("expected response.uid={uid}, got {given}"));
    }
    let (kind, version) = (text(review, "kind"), text(review, "apiVersion"));
    if (kind, version) != ("AdmissionReview", "admission.k8s.io/v1") {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        return Err(format!(
            "expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        ));
    }
    let has_patch = !text(response, "patch").is_empty();
    let form = response["patchType"].as_str();
    let why = match (is_mutating, has_patch, form) {
        (true, true, None) => "webhook returned response.patch but not response.patchType",
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, true, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, true, _) => "validating webhook may not return response.patch",
        (false, _, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// Returns the answer to a request that a webhook refuses.
pub(super) fn denied(name: &str, status: &Value) -> ApiError {
    let by = format!("admission webhook {name:?} denied the request");
    let message = match (text(status, "message"), text(status, "reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    ApiError::rejected(code.clamp(400, 599), status, message)
}
