//! Reviews and their answers.

use k8s_openapi::api::core::v1::Pod;
use windlass_core::resource::DynamicObject;

use super::*;

#[tokio::test]
async fn a_request_without_errors_is_allowed_and_nothing_else_is_sent() {
    assert_eq!(create(VALIDATE, json!({})).await, json!({ "uid": "7a", "allowed": true }));
}

#[tokio::test]
async fn errors_of_fields_become_an_invalid_status_with_a_cause_each() {
    let answer = create(VALIDATE, json!({ "invalid": "a\"b", "required": "" })).await;
    let texts = ["Invalid value: \"a\\\"b\": is not wanted", "Required value"];
    let wanted = json!({
        "status": "Failure", "reason": "Invalid", "code": 422,
        "message": format!(
            "ConfigMap \"settings\" is invalid: [data[invalid]: {}, data[other]: {}]",
            texts[0], texts[1]
        ),
        "details": { "name": "settings", "kind": "ConfigMap", "causes": [
            { "reason": "FieldValueInvalid", "message": texts[0], "field": "data[invalid]" },
            { "reason": "FieldValueRequired", "message": texts[1], "field": "data[other]" },
        ] },
    });
    assert_eq!((&answer["allowed"], &answer["status"]), (&json!(false), &wanted));
}

#[tokio::test]
async fn one_error_stands_without_brackets_and_repetition() {
    let answer = create(VALIDATE, json!({ "twice": "no" })).await;
    let message = "ConfigMap \"settings\" is invalid: data[twice]: Forbidden: no";
    assert_eq!(answer["status"]["message"], message);
    assert_eq!(answer["status"]["details"]["causes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_denial_without_a_field_is_forbidden_and_warnings_come_with_it() {
    let answer = create(VALIDATE, json!({ "deny": "not today", "warn": "tomorrow" })).await;
    let status = &answer["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    assert_eq!(
        (&status["message"], &answer["warnings"]),
        (&json!("not today"), &json!(["tomorrow"]))
    );
}

#[tokio::test]
async fn an_update_shows_the_old_object_and_a_deletion_nothing_but_it() {
    let (old, new) = (map(json!({ "fixed": "1" })), map(json!({ "fixed": "2" })));
    let (_, changed) = ask(VALIDATE, &review("UPDATE", new, old)).await;
    assert_eq!(changed["response"]["status"]["details"]["causes"][0]["field"], "data[fixed]");
    let kept = map(json!({ "keep": "" }));
    let (_, deleted) = ask(VALIDATE, &review("DELETE", Value::Null, kept)).await;
    assert_eq!(deleted["response"]["status"]["message"], "it is to be kept");
}

#[tokio::test]
async fn user_and_dry_run_are_visible() {
    assert_eq!(create(VALIDATE, json!({ "user": "alice" })).await["allowed"], true);
    assert_eq!(create(VALIDATE, json!({ "user": "bob" })).await["allowed"], false);
    assert_eq!(create(VALIDATE, json!({ "dry": "" })).await["allowed"], false);
    let mut dry = review("CREATE", map(json!({ "dry": "" })), Value::Null);
    dry["request"]["dryRun"] = json!(true);
    assert_eq!(ask(VALIDATE, &dry).await.1["response"]["allowed"], true);
}

#[tokio::test]
async fn a_user_whose_extra_values_are_null_is_read() {
    let mut asked = review("CREATE", map(json!({})), Value::Null);
    asked["request"]["userInfo"] =
        json!({ "username": "a", "groups": null, "extra": { "k": null } });
    assert_eq!(ask(VALIDATE, &asked).await.0, 200);
}

#[tokio::test]
async fn a_review_with_a_longer_name_than_api_servers_send_is_refused_without_it() {
    let too_long = "a name has more than 1024 bytes";
    let kind = ["/request/kind/group", "/request/kind/version", "/request/kind/kind"];
    for field in ["/request/uid", "/request/name"].into_iter().chain(kind) {
        for (length, is_refused) in [(1024, false), (1025, true), (1 << 20, true)] {
            let mut asked = review("CREATE", map(json!({})), Value::Null);
            *asked.pointer_mut(field).unwrap() = json!("n".repeat(length));
            let (code, answer) = ask(VALIDATE, &asked).await;
            // The handler is for another kind than those with a name of this length.
            let is_named = answer["message"].as_str().is_some_and(|text| text.contains(too_long));
            assert_eq!(is_named, is_refused, "{field}, {length} bytes: {code}");
            assert!(answer.to_string().len() < 2048, "{field}, {length} bytes");
        }
    }
    for field in ["/kind", "/apiVersion"] {
        let mut asked = review("CREATE", map(json!({})), Value::Null);
        *asked.pointer_mut(field).unwrap() = json!("n".repeat(1 << 20));
        let (code, answer) = ask(VALIDATE, &asked).await;
        assert_eq!(code, 400);
        assert!(answer.to_string().len() < 2048, "{field}");
    }
}

/// Refuses sessions in containers that the options name.
struct NoShell;

impl Validate for NoShell {
    type Object = Pod;

    async fn validate(&self, _: &Pod, _: &Admission) -> AdmissionResponse {
        AdmissionResponse::allowed()
    }

    async fn validate_connect(&self, options: &DynamicObject, cx: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        if cx.sub_resource == "exec" && options.rest["container"] == "vault" {
            response.join(AdmissionResponse::deny("no shell in the vault"));
        }
        response
    }
}

#[tokio::test]
async fn a_session_is_judged_by_its_options() {
    let webhooks = Webhooks::new().validating_at("/exec", NoShell, WebhookRegistration::new());
    let handler = webhooks.build(&Environment::system()).unwrap();
    let options = json!({ "apiVersion": "v1", "kind": "PodExecOptions", "container": "vault" });
    let mut asked = review("CONNECT", options, Value::Null);
    asked["request"]["kind"]["kind"] = json!("PodExecOptions");
    asked["request"]["subResource"] = json!("exec");
    let request = Request::post("/exec").header("content-type", "application/json");
    let answer = handler.handle(request.body(asked.to_string().into()).unwrap()).await;
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(answer["response"]["status"]["message"], "no shell in the vault");
}

/// Labels objects of any kind.
struct Label;

impl Mutate for Label {
    type Object = DynamicObject;

    async fn mutate(&self, object: &mut DynamicObject, _: &Admission) -> AdmissionResponse {
        object.metadata.labels.get_or_insert_default().insert("a/b".to_owned(), "c".to_owned());
        AdmissionResponse::allowed()
    }
}

#[tokio::test]
async fn a_handler_of_any_kind_changes_objects_of_any_kind() {
    let handler = Webhooks::new().mutating(Label).build(&Environment::system()).unwrap();
    let object =
        json!({ "apiVersion": "x.dev/v1", "kind": "X", "metadata": { "name": "x" }, "z": 1 });
    let mut asked = review("CREATE", object, Value::Null);
    asked["request"]["kind"] = json!({ "group": "x.dev", "version": "v1", "kind": "X" });
    let request = Request::post("/mutate").header("content-type", "application/json");
    let answer = handler.handle(request.body(asked.to_string().into()).unwrap()).await;
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    let wanted = json!([{ "op": "add", "path": "/metadata/labels", "value": { "a/b": "c" } }]);
    assert_eq!(changes::patch(&answer["response"]), wanted);
}

/// Has one rule, for all writes.
struct NeedsHost;

impl Validate for NeedsHost {
    type Object = ConfigMap;

    async fn validate(&self, map: &ConfigMap, _: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        if !map.data.iter().flatten().any(|(name, _)| name == "host") {
            response.required("data[host]", "");
        }
        response
    }
}

#[tokio::test]
async fn a_rule_of_creations_is_one_of_updates_and_none_of_deletions() {
    let (good, bad) = (map(json!({ "host": "a" })), map(json!({})));
    let handler = Webhooks::new().validating(NeedsHost).build(&Environment::system()).unwrap();
    let cases = [
        (review("CREATE", bad.clone(), Value::Null), false),
        (review("UPDATE", bad.clone(), good.clone()), false),
        (review("UPDATE", good, bad.clone()), true),
        (review("DELETE", Value::Null, bad), true),
    ];
    for (asked, wanted) in cases {
        let request = Request::post(VALIDATE).header("content-type", "application/json");
        let answer = handler.handle(request.body(asked.to_string().into()).unwrap()).await;
        let answer: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(answer["response"]["allowed"], wanted, "{asked}");
    }
}
