//! Handlers asked by reviews, and by the embedded API server.

mod bounds;
mod changes;
mod cluster;
mod configurations;
mod conversions;
mod failures;
mod policies;
mod reviews;
mod server;
mod stricter;
mod turns;
pub(crate) mod versions;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_core::environment::Environment;

use crate::{
    Admission, AdmissionHandler, AdmissionResponse, Mutate, Validate, WebhookRegistration, Webhooks,
};

/// Path of the validating webhook of ConfigMaps.
const VALIDATE: &str = "/validate--v1-configmap";
/// Path of the mutating webhook of ConfigMaps.
const MUTATE: &str = "/mutate--v1-configmap";

/// Judges a map by its data: the key is the wish, the value a text for it.
struct Rules;

impl Validate for Rules {
    type Object = ConfigMap;

    async fn validate(&self, map: &ConfigMap, cx: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        for (wish, text) in map.data.iter().flatten() {
            match wish.as_str() {
                "warn" => response.warn(text),
                "deny" => response.join(AdmissionResponse::deny(text)),
                "fail" => response.join(AdmissionResponse::fail(text)),
                "invalid" => response.invalid("data[invalid]", text, "is not wanted"),
                "required" => response.required("data[other]", text),
                "twice" => (0..2).for_each(|_| response.forbidden("data[twice]", text)),
                "panic" => panic!("{text}"),
                "hang" => std::future::pending().await,
                "slow" => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
                "user" if cx.user.username != *text => {
                    response.forbidden("data[user]", "not yours")
                }
                "dry" if !cx.dry_run => response.forbidden("data[dry]", "is for dry runs"),
                _ => {}
            }
        }
        response
    }

    async fn validate_update(
        &self,
        old: &ConfigMap,
        map: &ConfigMap,
        cx: &Admission,
    ) -> AdmissionResponse {
        let mut response = self.validate(map, cx).await;
        let fixed = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("fixed").cloned());
        if fixed(old) != fixed(map) {
            response.forbidden("data[fixed]", "cannot be changed");
        }
        response
    }

    async fn validate_delete(&self, old: &ConfigMap, _: &Admission) -> AdmissionResponse {
        match old.data.iter().flatten().any(|(wish, _)| wish == "keep") {
            true => AdmissionResponse::deny("it is to be kept"),
            false => AdmissionResponse::allowed(),
        }
    }
}

/// Sets a default, unless the map says that it refuses defaults.
struct Defaults;

impl Mutate for Defaults {
    type Object = ConfigMap;

    async fn mutate(&self, map: &mut ConfigMap, _: &Admission) -> AdmissionResponse {
        let data = map.data.get_or_insert_default();
        data.entry("host".to_owned()).or_insert_with(|| "home.example".to_owned());
        match data.contains_key("refuse") {
            true => AdmissionResponse::deny("defaults are refused"),
            false => AdmissionResponse::allowed(),
        }
    }
}

fn handler() -> AdmissionHandler {
    let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
    webhooks.build(&Environment::system()).unwrap()
}

/// Returns a ConfigMap with data.
fn map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "settings", "namespace": "shop" }, "data": data,
    })
}

/// Returns a review about a ConfigMap.
fn review(operation: &str, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7a", "operation": operation, "name": "settings", "namespace": "shop",
            "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
            "userInfo": { "username": "alice", "groups": ["people"] },
            "dryRun": false, "object": object, "oldObject": old,
        },
    })
}

/// Sends a body to a path, with the API server's headers.
async fn post(path: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let request = Request::post(path).header("content-type", "application/json");
    handler().handle(request.body(body.into()).unwrap()).await
}

/// Returns status and body of the answer to a review.
async fn ask(path: &str, review: &Value) -> (u16, Value) {
    let answer = post(path, review.to_string()).await;
    let body = serde_json::from_slice(answer.body()).unwrap();
    (answer.status().as_u16(), body)
}

/// Returns the response of the review that answers a creation.
async fn create(path: &str, data: Value) -> Value {
    let (code, mut body) = ask(path, &review("CREATE", map(data), Value::Null)).await;
    assert_eq!((code, &body["response"]["uid"]), (200, &json!("7a")), "{body}");
    body["response"].take()
}
