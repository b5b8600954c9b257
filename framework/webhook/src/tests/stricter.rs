//! Objects that were stored before their type became stricter.

use super::*;

/// Returns a stored object whose data the type refuses.
fn broken() -> Value {
    map(json!({ "port": 80 }))
}

/// Returns the response of the review that answers an update or a deletion.
async fn answer(path: &str, operation: &str, object: Value, old: Value) -> Value {
    let (code, mut body) = ask(path, &review(operation, object, old)).await;
    assert_eq!(code, 200, "{body}");
    body["response"].take()
}

#[tokio::test]
async fn a_deletion_of_an_unreadable_object_is_allowed_with_a_warning() {
    for path in [VALIDATE, MUTATE] {
        let response = answer(path, "DELETE", Value::Null, broken()).await;
        assert_eq!(response["allowed"], true, "{response}");
    }
    let response = answer(VALIDATE, "DELETE", Value::Null, broken()).await;
    let warning = response["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with(
            "the webhook did not judge the object: the webhook cannot read the oldObject"
        ),
        "{warning}"
    );
}

#[tokio::test]
async fn the_end_of_a_finalizer_of_an_unreadable_object_is_allowed() {
    let mut old = broken();
    old["metadata"]["finalizers"] = json!(["example.dev/clean-up"]);
    for path in [VALIDATE, MUTATE] {
        let response = answer(path, "UPDATE", broken(), old.clone()).await;
        assert_eq!((&response["allowed"], &response["patch"]), (&json!(true), &Value::Null));
        assert!(response["warnings"][0].as_str().unwrap().contains("object"), "{response}");
    }
}

#[tokio::test]
async fn a_change_of_an_unreadable_field_is_denied() {
    for path in [VALIDATE, MUTATE] {
        let changed = map(json!({ "port": 81 }));
        let response = answer(path, "UPDATE", changed, broken()).await;
        assert_eq!(response["status"]["code"], 403, "{response}");
    }
}

#[tokio::test]
async fn a_repair_of_an_unreadable_object_is_judged_as_a_new_object() {
    let repaired = map(json!({ "port": "80", "fixed": "1" }));
    assert_eq!(answer(VALIDATE, "UPDATE", repaired, broken()).await["allowed"], true);
    let wrong = map(json!({ "invalid": "x" }));
    assert_eq!(answer(VALIDATE, "UPDATE", wrong, broken()).await["status"]["code"], 422);
}

#[tokio::test]
async fn an_update_without_the_old_object_is_a_bad_request() {
    let asked = review("UPDATE", map(json!({})), Value::Null);
    assert_eq!(ask(VALIDATE, &asked).await.0, 400);
    let asked = review("DELETE", Value::Null, Value::Null);
    assert_eq!(ask(VALIDATE, &asked).await.0, 400);
}
