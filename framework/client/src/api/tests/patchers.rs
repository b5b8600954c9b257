//! Copies that are changed, and the patches that are sent for them.

use k8s_openapi::api::apps::v1::Deployment;

use super::*;

fn held(version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version,
            "generation": 1, "labels": { "app": "web", "tier": "front" },
        },
        "spec": {
            "replicas": 2, "paused": true, "selector": {},
            "template": { "spec": { "containers": [{ "name": "a" }, { "name": "b" }] } },
        },
        "status": { "replicas": 1, "observedGeneration": 1 },
    })
}

fn deployment(version: &str) -> Deployment {
    serde_json::from_value(held(version)).unwrap()
}

fn bodies(echo: &Echo) -> Vec<(String, Value)> {
    let path = |line: &str| line.split(['?', ' ']).nth(1).unwrap_or_default().to_owned();
    echo.seen().iter().map(|seen| (path(&seen.0), seen.2.clone())).collect()
}

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_was_changed() {
    let echo = Echo::with([(200, held("6"))]);
    let mut web = client(&echo).all::<Deployment>().patcher(&deployment("5"));
    assert!(!web.is_changed() && !web.send().await.unwrap());
    // Fields that the API server maintains are not sent either.
    web.metadata.generation = Some(7);
    web.metadata.resource_version = None;
    web.metadata.managed_fields = Some(vec![]);
    assert!(!web.is_changed() && !web.send().await.unwrap());
    web.spec.as_mut().unwrap().replicas = Some(3);
    assert!(web.is_changed());
    web.spec.as_mut().unwrap().replicas = Some(2);
    assert!(!web.is_changed() && echo.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn exactly_what_was_changed_is_sent_at_the_version_that_was_read() {
    let echo = Echo::with([(200, held("6"))]);
    let mut web = client(&echo).all::<Deployment>().patcher(&deployment("5"));
    let spec = web.spec.as_mut().unwrap();
    spec.replicas = Some(3);
    spec.paused = None;
    spec.template.spec.as_mut().unwrap().containers.pop();
    web.metadata.labels.as_mut().unwrap().remove("tier");
    assert!(web.send().await.unwrap());
    let expected = json!({
        "metadata": { "uid": "u", "resourceVersion": "5", "labels": { "tier": null } },
        "spec": {
            "replicas": 3, "paused": null,
            "template": { "spec": { "containers": [{ "name": "a" }] } },
        },
    });
    assert_eq!(bodies(&echo), [(WEB.to_owned(), expected)]);
    assert_eq!(web.resource_version(), "6", "it holds the answer");
}

#[tokio::test(start_paused = true)]
async fn the_status_is_sent_after_the_rest_and_upon_what_that_left() {
    let mut second = held("7");
    second["status"]["replicas"] = json!(9);
    let echo = Echo::with([(200, held("6")), (200, second)]);
    let mut web = client(&echo).all::<Deployment>().patcher(&deployment("5"));
    web.spec.as_mut().unwrap().replicas = Some(3);
    web.status.as_mut().unwrap().replicas = Some(9);
    assert!(web.send().await.unwrap());
    let bodies = bodies(&echo);
    let spec =
        json!({ "metadata": { "uid": "u", "resourceVersion": "5" }, "spec": { "replicas": 3 } });
    let status =
        json!({ "metadata": { "uid": "u", "resourceVersion": "6" }, "status": { "replicas": 9 } });
    assert_eq!(bodies[0], (WEB.to_owned(), spec));
    assert_eq!(bodies[1], (format!("{WEB}/status"), status));
    assert_eq!((web.resource_version(), web.status.as_ref().unwrap().replicas), ("7", Some(9)));
    assert!(!web.send().await.unwrap(), "it was sent");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_was_not_written_is_sent_alone_the_next_time() {
    let refused = (500, json!({ "kind": "Status", "code": 500 }));
    let echo = Echo::with([(200, held("6")), refused, (200, held("7"))]);
    let mut web = client(&echo).all::<Deployment>().patcher(&deployment("5")).unlocked();
    web.spec.as_mut().unwrap().replicas = Some(3);
    web.status.as_mut().unwrap().replicas = Some(9);
    web.send().await.unwrap_err();
    assert!(web.send().await.unwrap());
    let last = bodies(&echo).pop().unwrap();
    let status =
        json!({ "metadata": { "uid": "u", "resourceVersion": "6" }, "status": { "replicas": 9 } });
    assert_eq!(last, (format!("{WEB}/status"), status));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_says_which_version_was_read_and_is_not_sent_again() {
    let echo = Echo::with([(409, json!({ "kind": "Status", "reason": "Conflict", "code": 409 }))]);
    let mut web = client(&echo).all::<Deployment>().patcher(&deployment("5"));
    web.spec.as_mut().unwrap().replicas = Some(3);
    let error = web.send().await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("resourceVersion 5"), "{error}");
    assert_eq!(echo.seen().len(), 1);
    assert!(web.is_changed(), "the change is still there");
    web.metadata.name = Some("other".into());
    assert_eq!(web.send().await.unwrap_err().kind(), ErrorKind::Usage);
}

#[tokio::test(start_paused = true)]
async fn dynamic_objects_are_patched_alike() {
    let echo = Echo::with([(200, held("6"))]);
    let object: DynamicObject = serde_json::from_value(held("5")).unwrap();
    let info = ResourceInfo::of::<Deployment>();
    let mut web = client(&echo).dynamic(info, Some("shop")).patcher(&object);
    web.rest["spec"]["replicas"] = json!(3);
    web.rest["spec"].as_object_mut().unwrap().remove("paused");
    assert!(web.send().await.unwrap());
    let spec = json!({ "replicas": 3, "paused": null });
    let expected = json!({ "metadata": { "uid": "u", "resourceVersion": "5" }, "spec": spec });
    assert_eq!(bodies(&echo), [(WEB.to_owned(), expected)]);
}
