//! Answers to deletions, and their meaning.

use std::time::Duration;

use super::*;

async fn delete(answer: Value) -> Deletion<ConfigMap> {
    let echo = Echo::with([(200, answer)]);
    client(&echo).namespace::<ConfigMap>("shop").delete("home").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_answer_tells_whether_the_object_is_gone_or_waits() {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": "home", "kind": "configmaps", "uid": "u" },
    });
    let gone = delete(status).await;
    assert!(gone.is_gone());
    assert_eq!(gone.uid(), "u");
    let object = |extra: Value| {
        let mut object = stored();
        json_patch::merge(&mut object["metadata"], &extra);
        object
    };
    let marked = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
    // A namespace, whose content is deleted first.
    assert!(!delete(object(marked.clone())).await.is_gone());
    let mut held = marked.clone();
    held["deletionGracePeriodSeconds"] = json!(0);
    // A Pod that ended at once, and a Pod with a grace period.
    assert!(delete(object(held.clone())).await.is_gone());
    held["finalizers"] = json!(["example.dev/x"]);
    let waits = delete(object(held.clone())).await;
    assert!(matches!(waits, Deletion::Terminating(_)));
    assert_eq!(waits.uid(), "u");
    held["finalizers"] = Value::Null;
    held["deletionGracePeriodSeconds"] = json!(30);
    assert!(!delete(object(held)).await.is_gone());
    // A Service answers with the last state.
    assert!(delete(object(json!({}))).await.is_gone());
}

#[tokio::test(start_paused = true)]
async fn options_go_into_the_body_and_a_dry_run_into_both() {
    let echo = Echo::with([(200, json!({ "kind": "Status" }))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let delete = api.delete("home").resource_version("7").propagation(Propagation::Orphan);
    delete.grace_period(Duration::from_secs(5)).dry_run().await.unwrap();
    let all = api.delete_collection().fields("a=b").propagation(Propagation::Background);
    all.dry_run().await.unwrap();
    let seen = echo.seen();
    assert!(seen[0].0.ends_with("/home?dryRun=All"), "{}", seen[0].0);
    assert_eq!(
        seen[0].2,
        json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan",
            "gracePeriodSeconds": 5, "preconditions": { "resourceVersion": "7" },
            "dryRun": ["All"],
        })
    );
    assert!(seen[1].0.ends_with("/configmaps?fieldSelector=a%3Db&dryRun=All"), "{}", seen[1].0);
    assert_eq!(seen[1].2["propagationPolicy"], "Background");
    assert_eq!(seen[1].2["dryRun"], json!(["All"]));
}

#[test]
fn a_deletion_with_a_precondition_is_safe_to_repeat() {
    let echo = Echo::with([(200, json!({}))]);
    let api =
        Client::over(Arc::new(Wire(echo)), Environment::system()).namespace::<ConfigMap>("shop");
    let repeatable = |delete: Delete<ConfigMap>| delete.finished().finish().unwrap().repeatable;
    assert!(!repeatable(api.delete("home")));
    assert!(repeatable(api.delete("home").uid("u")));
    assert!(repeatable(api.delete("home").resource_version("7")));
    assert!(repeatable(api.delete("home").dry_run()));
    assert!(!repeatable(api.delete("home").propagation(Propagation::Foreground)));
}

#[tokio::test(start_paused = true)]
async fn g_r3_a_repeated_deletion_by_uid_that_finds_the_object_gone_has_worked() {
    let doubt = || (504, json!({ "kind": "Status", "code": 504 }));
    let gone = || (404, json!({ "kind": "Status", "reason": "NotFound", "code": 404 }));
    let conflict = |message: &str| {
        (409, json!({ "kind": "Status", "reason": "Conflict", "code": 409, "message": message }))
    };
    let another = "Precondition failed: UID in precondition: u, UID in object meta: v";
    let delete = async |echo: &Arc<Echo>| {
        client(echo).namespace::<ConfigMap>("shop").delete("home").uid("u").await
    };
    for answer in [gone(), conflict(another)] {
        let echo = Echo::with([doubt(), answer.clone()]);
        let deleted = delete(&echo).await.unwrap();
        assert!(deleted.is_gone() && deleted.uid() == "u");
        assert_eq!(echo.seen().len(), 2);
        // Without a doubtful attempt the server's answer is final.
        assert!(!delete(&Echo::with([answer])).await.unwrap_err().is_ambiguous());
    }
    // The own first attempt may have marked the object, which makes another version.
    let error = delete(&Echo::with([doubt(), conflict("another version")])).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    let api = client(&Echo::with([doubt(), gone()])).namespace::<ConfigMap>("shop");
    let error = api.delete("home").resource_version("7").await.unwrap_err();
    assert!(error.is_ambiguous() && error.uncertain_write().is_some(), "{error}");
}
