//! Subresources: their paths, bodies and errors.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use tokio::time::Instant;

use super::*;

const APPS: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

fn scale(replicas: i32) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": { "name": "web", "resourceVersion": "7" }, "spec": { "replicas": replicas },
    })
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_read_replaced_and_patched() {
    let echo = Echo::with([(200, scale(2))]);
    let api = client(&echo).namespace::<Deployment>("shop");
    let scale = api.scale("web");
    let mut read: Scale = scale.get().await.unwrap();
    assert_eq!(read.spec.as_ref().unwrap().replicas, Some(2));
    read.spec.as_mut().unwrap().replicas = Some(3);
    scale.replace(&read).dry_run().await.unwrap();
    scale.to(4).await.unwrap();
    scale.patch(Patch::Apply(json!({ "spec": { "replicas": 5 } }))).force().await.unwrap();
    let seen = echo.seen();
    let lines: Vec<_> = seen.iter().map(|(line, kind, _)| format!("{line} {kind}")).collect();
    assert_eq!(
        lines,
        [
            format!("GET {APPS}/scale "),
            format!("PUT {APPS}/scale?dryRun=All&fieldManager=windlass application/json"),
            format!("PATCH {APPS}/scale?fieldManager=windlass application/merge-patch+json"),
            format!(
                "PATCH {APPS}/scale?force=true&fieldManager=windlass application/apply-patch+yaml"
            ),
        ]
    );
    assert_eq!(seen[1].2["spec"]["replicas"], 3);
    assert_eq!(seen[2].2, json!({ "spec": { "replicas": 4 } }));
}

#[tokio::test(start_paused = true)]
async fn any_subresource_takes_any_body() {
    let echo = Echo::with([(200, json!({ "kind": "Status", "status": "Success" }))]);
    let api = client(&echo).namespace::<Pod>("shop");
    let binding = api.subresource::<Value>("web", "binding");
    let body = json!({ "target": { "kind": "Node", "name": "n" } });
    assert_eq!(binding.create(&body).await.unwrap()["status"], "Success");
    assert!(echo.seen()[0].0.starts_with("POST /api/v1/namespaces/shop/pods/web/binding?"));
    assert_eq!(echo.seen()[0].2, body);
    usage(api.subresource::<Value>("web", "").get().await, "subresource is empty");
    usage(api.subresource::<Value>("web", "a/b").get().await, "would change the path");
    usage(
        api.subresource::<Value>("web", "scale")
            .get()
            .resource_version("0")
            .await
            .and(binding.create(&body).status().await),
        "no status of its own",
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_subresource_is_told_from_a_missing_object() {
    let unknown = json!({
        "kind": "Status", "reason": "NotFound", "code": 404, "details": {},
        "message": "the server could not find the requested resource",
    });
    let missing = json!({
        "kind": "Status", "reason": "NotFound", "code": 404, "message": "not found",
        "details": { "name": "web", "kind": "deployments" },
    });
    let method = json!({ "kind": "Status", "reason": "MethodNotAllowed", "code": 405 });
    let echo = Echo::with([(404, unknown), (404, missing.clone()), (405, method), (404, missing)]);
    let scale = client(&echo).namespace::<Deployment>("shop").scale("web");
    let text = |error: Error| error.to_string();
    let unknown = text(scale.get().await.unwrap_err());
    assert!(unknown.contains("no subresource `scale`"), "{unknown}");
    let absent = text(scale.get().await.unwrap_err());
    assert!(!absent.contains("no subresource"), "{absent}");
    let method = text(scale.to(1).await.unwrap_err());
    assert!(method.contains("`scale` of deployments.apps does not take this verb"), "{method}");
    // For a custom kind an API server names the object in both cases.
    let info = ResourceInfo { group: "example.dev".into(), ..ResourceInfo::of::<Deployment>() };
    let custom = client(&echo).dynamic(info, Some("shop")).scale("web");
    let either = text(custom.get().await.unwrap_err());
    assert!(either.contains("if it exists, deployments.example.dev have no"), "{either}");
}

#[tokio::test(start_paused = true)]
async fn an_eviction_names_the_pod_and_what_it_depends_on() {
    let echo = Echo::with([(201, json!({ "kind": "Status", "status": "Success" }))]);
    let api = client(&echo).namespace::<Pod>("shop");
    api.evict("web").await.unwrap();
    api.evict("web").uid("u").grace_period(Duration::from_secs(9)).dry_run().await.unwrap();
    let seen = echo.seen();
    let metadata = json!({ "name": "web", "namespace": "shop" });
    let plain = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata });
    assert!(seen[0].0.starts_with("POST /api/v1/namespaces/shop/pods/web/eviction?"));
    assert_eq!(seen[0].2, plain);
    assert!(seen[1].0.contains("eviction?dryRun=All"));
    assert_eq!(seen[1].2["deleteOptions"]["preconditions"], json!({ "uid": "u" }));
    assert_eq!(seen[1].2["deleteOptions"]["gracePeriodSeconds"], 9);
}

#[tokio::test(start_paused = true)]
async fn a_disruption_budgets_no_is_told_at_once() {
    let no = json!({
        "kind": "Status", "reason": "TooManyRequests", "code": 429,
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "details": { "causes": [{ "reason": "DisruptionBudget" }], "retryAfterSeconds": 10 },
    });
    let echo = Echo::with([(429, no)]);
    let started = Instant::now();
    let error = client(&echo).namespace::<Pod>("shop").evict("web").await.unwrap_err();
    assert!(error.is_disruption_budget() && error.is_too_many_requests(), "{error}");
    assert_eq!((echo.seen().len(), started.elapsed()), (1, Duration::ZERO));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_by_audience_time_and_object_and_never_printed() {
    let status = json!({ "token": "canary", "expirationTimestamp": "2026-01-01T00:00:00Z" });
    let echo = Echo::with([(201, json!({ "kind": "TokenRequest", "status": status }))]);
    let api = client(&echo).namespace::<ServiceAccount>("shop");
    let mut pod = Pod::default();
    pod.metadata.name = Some("web".into());
    pod.metadata.uid = Some("u".into());
    let request = api.token_request("bot").audience("a").audience("b");
    let token = request.expires_in(Duration::from_secs(600)).bound_to(&pod).await.unwrap();
    assert_eq!((token.token.expose(), token.expires.as_second()), ("canary", 1_767_225_600));
    assert!(!format!("{token:?}").contains("canary"));
    let (line, _, body) = echo.seen().remove(0);
    assert!(line.starts_with("POST /api/v1/namespaces/shop/serviceaccounts/bot/token?"), "{line}");
    assert_eq!(
        body["spec"],
        json!({
            "audiences": ["a", "b"], "expirationSeconds": 600,
            "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u" },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_line_by_line_with_the_options_that_were_set() {
    let echo = Echo::text([(200, "one\ntwo\n\nlast".to_owned())]);
    let api = client(&echo).namespace::<Pod>("shop");
    let log = api.log("web").container("c").follow().previous().since(Duration::from_millis(10));
    let mut lines = log.tail(5).timestamps().limit_bytes(99).await.unwrap();
    let mut read = Vec::new();
    while let Some(line) = lines.next_line().await {
        read.push(line.unwrap());
    }
    assert_eq!(read, ["one", "two", "", "last"]);
    assert_eq!(
        echo.lines(),
        ["GET /api/v1/namespaces/shop/pods/web/log?container=c&follow=true&previous=true\
          &sinceSeconds=1&tailLines=5&timestamps=true&limitBytes=99"]
    );
    let time = "2026-01-01T00:00:00Z".parse().unwrap();
    let log = api.log("web").since(Duration::from_secs(9)).since_time(time);
    assert_eq!(log.text().await.unwrap(), "one\ntwo\n\nlast");
    assert!(echo.lines()[1].ends_with("/log?sinceTime=2026-01-01T00%3A00%3A00Z"));
    usage(api.log("web").follow().text().await, "no end");
}
