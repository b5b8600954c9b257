//! The handlers as judges of objects that no API server has sent: for the check of a kind.

use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Value, json};
use windlass_core::resource::ResourceInfo;
use windlass_runtime::manager::{AdmissionCheck, AdmissionCheckFuture};

use crate::webhooks::AdmissionHandler;

impl AdmissionCheck for AdmissionHandler {
    fn refused_fields<'a>(
        &'a self,
        info: &'a ResourceInfo,
        object: &'a Value,
    ) -> AdmissionCheckFuture<'a> {
        Box::pin(async move {
            let review = review(info, object).to_string();
            let mut fields = None;
            for path in self.judges(info) {
                let refused = self.refused_at(path, &review).await?;
                fields.get_or_insert_with(Vec::new).extend(refused);
            }
            fields
        })
    }
}

impl AdmissionHandler {
    /// Returns the fields in the answer at a path; `None` for a refusal without fields, and for
    /// none.
    async fn refused_at(&self, path: &str, review: &str) -> Option<Vec<String>> {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Bytes::from(review.to_owned())).ok()?;
        let answer = self.handle(request).await;
        if answer.status() != StatusCode::OK {
            return None;
        }
        let answer: Value = serde_json::from_slice(answer.body()).ok()?;
        let response = &answer["response"];
        if response["allowed"] == json!(true) {
            return Some(Vec::new());
        }
        let causes = response["status"]["details"]["causes"].as_array()?;
        let fields = causes.iter().filter_map(|cause| cause["field"].as_str());
        Some(fields.map(str::to_owned).collect())
    }
}

/// Returns the review of a creation, as a dry run of a user without groups.
fn review(info: &ResourceInfo, object: &Value) -> Value {
    let kind = json!({ "group": info.group, "version": info.version, "kind": info.kind });
    let resource = json!({ "group": info.group, "version": info.version, "resource": info.plural });
    let metadata = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "check",
            "kind": kind, "requestKind": kind,
            "resource": resource, "requestResource": resource,
            "name": metadata("name"), "namespace": metadata("namespace"),
            "operation": "CREATE",
            "userInfo": { "username": "check" },
            "object": object, "oldObject": null,
            "dryRun": true,
        },
    })
}
