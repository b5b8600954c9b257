//! Waits over scripted lists and watches.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use tokio::time::Instant;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn deployment(uid: &str, version: &str, available: bool) -> Value {
    let status = if available { "True" } else { "False" };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "shop", "uid": uid, "resourceVersion": version },
        "status": { "conditions": [{ "type": "Available", "status": status }] },
    })
}

fn list(items: &[Value], version: &str) -> (u16, String) {
    (200, listed(items, version).to_string())
}

fn listed(items: &[Value], version: &str) -> Value {
    json!({
        "kind": "DeploymentList", "apiVersion": "apps/v1", "items": items,
        "metadata": { "resourceVersion": version },
    })
}

fn events(events: &[(&str, Value)]) -> (u16, String) {
    let line =
        |(kind, object): &(&str, Value)| json!({ "type": kind, "object": object }).to_string();
    (200, events.iter().map(|event| line(event) + "\n").collect())
}

fn gone() -> Value {
    json!({ "kind": "Status", "reason": "Expired", "code": 410, "message": "too old" })
}

async fn wait(echo: &Arc<Echo>) -> Result<Deployment, Error> {
    let api = client(echo).namespace::<Deployment>("shop");
    api.wait_for("web", &WaitCondition::is("Available", "True"), MINUTE).await
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_holds_already_needs_no_watch() {
    let echo = Echo::text([list(&[deployment("u", "5", true)], "9")]);
    wait(&echo).await.unwrap();
    assert_eq!(
        echo.lines(),
        [
            "GET /apis/apps/v1/namespaces/shop/deployments?fieldSelector=metadata.name%3Dweb&limit=500"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_survives_an_ended_and_an_expired_watch_and_an_error_answer() {
    let bookmark = json!({ "kind": "Deployment", "metadata": { "resourceVersion": "12" } });
    let there = [deployment("u", "10", false)];
    let echo = Echo::text([
        list(&[], "9"),
        events(&[("ADDED", there[0].clone()), ("BOOKMARK", bookmark)]),
        // A list follows each watch after a failed watch, for the version that the store has.
        events(&[]),
        list(&there, "13"),
        events(&[("ERROR", gone())]),
        list(&there, "14"),
        (500, json!({ "kind": "Status", "code": 500 }).to_string()),
        list(&[deployment("u", "20", false)], "21"),
        events(&[("MODIFIED", deployment("u", "22", true))]),
    ]);
    let ready = wait(&echo).await.unwrap();
    assert_eq!(ready.metadata.resource_version.as_deref(), Some("22"));
    let versions: Vec<_> = echo
        .lines()
        .iter()
        .map(|line| {
            let version = line.split("resourceVersion=").nth(1);
            version.map_or("list", |rest| rest.split('&').next().unwrap()).to_owned()
        })
        .collect();
    assert_eq!(versions, ["list", "9", "12", "list", "12", "list", "list", "list", "21"]);
}

/// A watch from the earlier version would be silent for ever: the server's store is behind that
/// version.
#[tokio::test(start_paused = true)]
async fn b8_a_wait_sees_a_server_whose_store_was_set_back() {
    let echo = Echo::text([
        list(&[deployment("u", "50", false)], "90"),
        events(&[]),
        events(&[]),
        list(&[deployment("u", "20", true)], "21"),
    ]);
    let ready = wait(&echo).await.unwrap();
    assert_eq!(ready.metadata.resource_version.as_deref(), Some("20"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_or_made_anew_ends_the_wait() {
    let deleted = ("DELETED", deployment("u", "11", false));
    let echo = Echo::text([list(&[deployment("u", "5", false)], "9"), events(&[deleted])]);
    let error = wait(&echo).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(
        error.to_string(),
        "cannot wait for deployments.apps \"web\" in \"shop\" to be Available=True: it was deleted"
    );
    let again = ("ADDED", deployment("v", "11", true));
    let echo = Echo::text([list(&[deployment("u", "5", false)], "9"), events(&[again])]);
    assert!(wait(&echo).await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_and_says_how_things_stand() {
    let started = Instant::now();
    let there = listed(&[deployment("u", "5", false)], "9");
    let echo = Echo::text([events(&[])]).listing(&there);
    let error = wait(&echo).await.unwrap_err();
    assert_eq!(started.elapsed(), MINUTE);
    assert!(
        error.is_timeout() && error.to_string().contains("it is not Available=True"),
        "{error}"
    );
    // A server that ends each watch at once is asked every few seconds, not in a loop.
    assert!(echo.seen().len() < 40, "{}", echo.seen().len());
    let echo = Echo::text([events(&[])]).listing(&listed(&[], "9"));
    let error = wait(&echo).await.unwrap_err();
    assert!(error.to_string().contains("it does not exist"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_told_at_once() {
    let echo = Echo::with([(403, json!({}))]);
    assert!(wait(&echo).await.unwrap_err().is_forbidden());
    assert_eq!(echo.seen().len(), 1);
    let all = client(&echo).all::<Deployment>();
    usage(all.wait_for("web", &WaitCondition::is("a", "b"), MINUTE).await, "needs a namespace");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_waited_for_by_uid() {
    let api = |echo: &Arc<Echo>| client(echo).namespace::<Deployment>("shop");
    let another = Echo::text([list(&[deployment("v", "5", false)], "9")]);
    api(&another).wait_deleted("web", "u", MINUTE).await.unwrap();
    let deleted = ("DELETED", deployment("u", "11", false));
    let echo = Echo::text([list(&[deployment("u", "5", false)], "9"), events(&[deleted])]);
    api(&echo).wait_deleted("web", "u", MINUTE).await.unwrap();
    assert!(echo.accepted()[0].contains("PartialObjectMetadataList"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_does_not_end_names_the_finalizers() {
    let mut held = deployment("u", "5", false);
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    held["metadata"]["finalizers"] = json!(["example.dev/a", "example.dev/b"]);
    let echo = Echo::text([events(&[])]).listing(&listed(&[held], "9"));
    let api = client(&echo).namespace::<Deployment>("shop");
    let error = api.wait_deleted("web", "u", MINUTE).await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_timeout() && text.contains("example.dev/a, example.dev/b"), "{text}");
}

/// As aggregated API servers have been seen to do.
#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_selector_does_not_pass_another_object_off() {
    let mut other = deployment("other", "6", true);
    other["metadata"]["name"] = json!("api");
    let echo = Echo::text([
        list(&[deployment("u", "5", false), other.clone()], "9"),
        events(&[("MODIFIED", other.clone()), ("DELETED", other.clone())]),
        events(&[("MODIFIED", deployment("u", "12", true))]),
        list(&[other, deployment("u", "5", false)], "10"),
    ]);
    let done = wait(&echo).await.unwrap();
    assert_eq!(done.metadata.uid.as_deref(), Some("u"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_repeats_an_old_event_in_each_watch_is_asked_with_growing_pauses() {
    let old = events(&[("MODIFIED", deployment("u", "5", true))]);
    let there = listed(&[deployment("u", "5", false)], "9");
    let echo = Echo::text([old]).listing(&there);
    let error = wait(&echo).await.unwrap_err();
    assert!(error.to_string().contains("it is not Available=True"), "{error}");
    assert!(echo.seen().len() < 40, "{}", echo.seen().len());
}
