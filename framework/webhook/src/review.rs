//! `AdmissionReview` of `admission.k8s.io/v1`: questions and answers.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::admission::{Admission, HttpFailure, Operation};
use crate::cut::cut;
use crate::patch::PatchOperation;
use crate::response::AdmissionResponse;

/// Version of the reviews.
const VERSION: &str = "admission.k8s.io/v1";
/// Kind of the reviews.
const KIND: &str = "AdmissionReview";
/// Characters of all warnings from which on API servers cut them (`truncateAtTotalRunes` in
/// `pkg/endpoints/filters/warning.go` of `k8s.io/apiserver`).
const WARNINGS: usize = 4 * 1024;
/// Characters of a warning that is cut (`truncateItemRunes`).
const WARNING: usize = 256;

/// A question: the request, and its objects as they were sent.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) admission: Admission,
    pub(crate) objects: Objects<'a>,
}

/// Objects of a request, and the operation, without which they mean nothing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Objects<'a> {
    operation: Operation,
    /// The new state; the options of a session. Absent at deletions.
    #[serde(borrow, default)]
    pub(crate) object: Option<&'a RawValue>,
    /// The stored state. Absent at creations.
    #[serde(borrow, default)]
    pub(crate) old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
}

/// Longest uid, name or kind of a request, in bytes, because answers repeat them: those of API
/// servers have at most 253 characters.
pub(crate) const LONGEST_NAME: usize = 1024;

/// The response of a handler, and the patch of its changes.
#[derive(Debug, Default)]
pub(crate) struct HandlerResponse {
    pub(crate) response: AdmissionResponse,
    pub(crate) patch: Vec<PatchOperation>,
}

impl<'a> Question<'a> {
    /// Reads a review.
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, HttpFailure> {
        let review: Review<'a> = serde_json::from_slice(body).map_err(|error| refused(&error))?;
        if review.api_version != VERSION || review.kind != KIND {
            let text = format!(
                "cannot read the body: it is {:?} of {:?}, and not {KIND} of {VERSION}",
                cut(&review.kind, LONGEST_NAME),
                cut(&review.api_version, LONGEST_NAME)
            );
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, text));
        }
        let Some(request) = review.request else {
            let text = "cannot answer the AdmissionReview: it has no request";
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, text));
        };
        let objects: Objects<'a> = part(request)?;
        let admission = Admission { operation: objects.operation, ..part(request)? };
        if admission.uid.is_empty() {
            let text = "cannot answer the AdmissionReview: its request has no uid";
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, text));
        }
        let kind = &admission.kind;
        let names = [&admission.uid, &admission.name, &kind.group, &kind.version, &kind.kind];
        if names.iter().any(|name| name.len() > LONGEST_NAME) {
            let text =
                format!("cannot answer the {KIND}: a name has more than {LONGEST_NAME} bytes");
            return Err(HttpFailure::new(StatusCode::BAD_REQUEST, text));
        }
        Ok(Self { admission, objects })
    }
}

impl Objects<'_> {
    /// Whether an update leaves all fields but `metadata` and `status` as they are.
    pub(crate) fn leaves_spec_alone(&self) -> bool {
        let members = |sent: Option<&RawValue>| {
            let mut object: Map<String, Value> = serde_json::from_str(sent?.get()).ok()?;
            object.retain(|name, _| name != "metadata" && name != "status");
            Some(object)
        };
        self.operation == Operation::Update
            && members(self.object).is_some_and(|new| members(self.old_object) == Some(new))
    }
}

/// Reads a part of the request.
fn part<'a, T: Deserialize<'a>>(request: &'a RawValue) -> Result<T, HttpFailure> {
    serde_json::from_str(request.get()).map_err(|error| refused(&error))
}

/// Returns the failure of a body that is no review, without values of it.
fn refused(error: &serde_json::Error) -> HttpFailure {
    let (line, column) = (error.line(), error.column());
    let text = format!("cannot read the body as {KIND} of {VERSION}: line {line}, column {column}");
    HttpFailure::new(StatusCode::BAD_REQUEST, text)
}

impl HandlerResponse {
    /// Returns the review with the answer.
    pub(crate) fn review(self, admission: &Admission) -> Result<Value, HttpFailure> {
        if let Some(why) = &self.response.failure {
            return Err(HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, why.clone()));
        }
        let allowed = self.response.is_allowed();
        let mut response = json!({ "uid": admission.uid, "allowed": allowed });
        let warnings = bounded(&self.response.warnings);
        if !warnings.is_empty() {
            response["warnings"] = json!(warnings);
        }
        if !allowed {
            response["status"] = status(&self.response, admission);
        } else if !self.patch.is_empty() {
            let patch = serde_json::to_vec(&self.patch).map_err(|error| {
                let text = format!("cannot write the patch: {error}");
                HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, text)
            })?;
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch));
        }
        Ok(json!({ "apiVersion": VERSION, "kind": KIND, "response": response }))
    }
}

/// Returns each warning once. When all of them do not fit into [`WARNINGS`], each is cut to
/// [`WARNING`], and those that come after that many characters are left out: what the API server
/// would send on.
fn bounded(warnings: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let texts = warnings.iter().map(String::as_str);
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let length = |text: &str| text.chars().count();
    if texts.iter().map(|text| length(text)).sum::<usize>() <= WARNINGS {
        return texts;
    }
    let mut sent = 0;
    let cut = texts.into_iter().map(|text| cut(text, WARNING));
    cut.take_while(|text| {
        let is_room = sent < WARNINGS;
        sent += length(text);
        is_room
    })
    .collect()
}

/// Returns the Status of a response that denies, as the API server makes it for its own rules.
fn status(response: &AdmissionResponse, admission: &Admission) -> Value {
    let errors = &response.errors;
    let (kind, name) = (admission.kind.qualified(), &admission.name);
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    if response.left_out > 0 {
        texts.push(format!("and {} more errors", response.left_out));
    }
    let listed = match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let (code, reason, message) = match &response.denial {
        Some(why) => (403, "Forbidden", why.clone()),
        None => (422, "Invalid", format!("{kind} {name:?} is invalid: {listed}")),
    };
    let mut details = json!({ "name": name, "kind": admission.kind.kind });
    if !admission.kind.group.is_empty() {
        details["group"] = json!(admission.kind.group);
    }
    if !errors.is_empty() {
        details["causes"] = json!(errors);
    }
    json!({
        "status": "Failure", "message": message, "reason": reason, "code": code, "details": details,
    })
}
