//! Watches that resume after a connection ended. Upstream: `TestRetryWatcher` and related tests.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

fn event(kind: &str, version: &str) -> String {
    let object = configmap("a", version);
    json!({"type": kind, "object": object}).to_string() + "\n"
}

fn events(versions: &[&str]) -> (u16, String) {
    (200, versions.iter().map(|version| event("MODIFIED", version)).collect())
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "reason": reason, "code": code})
}

fn error_event(code: u16, reason: &str) -> (u16, String) {
    (200, json!({"type": "ERROR", "object": status(code, reason)}).to_string() + "\n")
}

fn refusal(code: u16, reason: &str) -> (u16, String) {
    (code, status(code, reason).to_string())
}

fn resuming(echo: &Arc<Echo>, from: &str) -> ResumingWatch<ConfigMap> {
    client(echo).namespace::<ConfigMap>("shop").watch().resource_version(from).resuming()
}

/// A server whose store is at `version`, and that answers watches in turn.
fn server<const N: usize>(version: &str, watches: [(u16, String); N]) -> Arc<Echo> {
    let list = json!({ "items": [], "metadata": { "resourceVersion": version } });
    Echo::text(watches).listing(&list)
}

/// Versions up to the end of the watch, and the error that ended the watch.
async fn all(watch: &mut ResumingWatch<ConfigMap>) -> (Vec<String>, Option<Error>) {
    let mut versions = Vec::new();
    while let Some(event) = watch.next().await {
        match event {
            Ok(WatchEvent::Bookmark { resource_version, .. }) => {
                versions.push(format!("bookmark {resource_version}"));
            }
            Ok(WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map)) => {
                versions.push(map.metadata.resource_version.unwrap_or_default());
            }
            Err(error) => {
                assert!(watch.next().await.is_none(), "nothing follows {error}");
                return (versions, Some(error));
            }
        }
    }
    (versions, None)
}

fn starts(echo: &Arc<Echo>) -> Vec<String> {
    let version = |line: String| {
        let (_, rest) = line.split_once("resourceVersion=").unwrap_or_default();
        rest.split('&').next().unwrap_or_default().to_owned()
    };
    echo.lines().into_iter().filter(|line| line.contains("watch=true")).map(version).collect()
}

fn lists(echo: &Arc<Echo>) -> usize {
    echo.lines().iter().filter(|line| line.contains("?limit=1&")).count()
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_last_version_and_tells_nothing_twice() {
    let echo = server(
        "99",
        [
            events(&["9", "10"]),
            // A server that is behind sends old events once more.
            events(&["9", "10", "11"]),
            (200, String::new()),
            events(&["12"]),
            (200, event("BOOKMARK", "20")),
            error_event(410, "Expired"),
        ],
    );
    let mut watch = resuming(&echo, "8");
    let (versions, error) = all(&mut watch).await;
    assert_eq!(versions, ["9", "10", "11", "12", "bookmark 20"]);
    assert!(error.unwrap().is_expired());
    assert_eq!(starts(&echo), ["8", "10", "11", "11", "12", "20"]);
    assert_eq!(watch.resource_version(), "20");
}

#[tokio::test(start_paused = true)]
async fn what_will_pass_is_waited_out_and_what_will_not_ends_the_watch() {
    for (code, reason) in [(401, "Unauthorized"), (403, "Forbidden"), (404, "NotFound")] {
        let echo = server("99", [refusal(code, reason)]);
        let (versions, error) = all(&mut resuming(&echo, "8")).await;
        assert_eq!((versions.len(), echo.seen().len()), (0, 1));
        assert_eq!(error.unwrap().code(), Some(code));
    }
    // Upstream repeats the expired version for ever; that version never becomes valid again.
    let echo = server("99", [refusal(410, "Expired")]);
    assert!(all(&mut resuming(&echo, "8")).await.1.unwrap().is_expired());

    let echo = server(
        "99",
        [
            error_event(500, "InternalError"),
            error_event(429, "TooManyRequests"),
            refusal(500, "InternalError"),
            events(&["9"]),
            error_event(403, "Forbidden"),
        ],
    );
    let (versions, error) = all(&mut resuming(&echo, "8")).await;
    assert_eq!(versions, ["9"]);
    assert!(error.unwrap().is_forbidden());
    assert_eq!(starts(&echo), ["8", "8", "8", "8", "9"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_is_asked_for_ever_more_seldom() {
    let echo = server("99", [(200, String::new())]);
    let mut watch = resuming(&echo, "8");
    let started = Instant::now();
    for _ in 0..600 {
        // A caller that cancels now and then does not shorten the pauses.
        let one = tokio::time::timeout(Duration::from_secs(1), watch.next()).await;
        assert!(one.is_err());
    }
    assert_eq!(started.elapsed().as_secs(), 600);
    let asked = starts(&echo).len();
    assert!((20..=50).contains(&asked), "15 to 30 s apart in the end: {asked}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_ends_nothing() {
    let bad = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":5}}}\n".to_owned();
    let echo = server(
        "99",
        [(200, event("ADDED", "9") + &bad + &event("DELETED", "11")), error_event(410, "Expired")],
    );
    let mut watch = resuming(&echo, "8");
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Deleted(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_only_from_a_version() {
    let echo = server("99", [events(&["9"])]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let from = |version| api.watch().resource_version(version);
    for watch in [api.watch(), from(""), from("0"), from("8").initial_events()] {
        let (_, error) = all(&mut watch.resuming()).await;
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("list first"), "{error}");
    }
    assert_eq!(echo.seen().len(), 0);
}

/// A kube-apiserver answers a watch from a version that the store has not reached with silence.
#[tokio::test(start_paused = true)]
async fn b8_a_store_that_was_set_back_ends_a_resuming_watch_with_a_text_that_asks_for_a_list() {
    let echo = server("5", [events(&["9", "12"]), (200, String::new())]);
    let mut watch = resuming(&echo, "8");
    let started = Instant::now();
    let (versions, error) = all(&mut watch).await;
    assert_eq!(versions, ["9", "12"]);
    let error = error.unwrap();
    assert!(error.is_expired(), "{error}");
    assert_eq!(
        error.to_string(),
        "the server's store was set back: it is at version 5, and this watch at 12; list again"
    );
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn b8_a_lost_connection_to_a_store_that_is_well_costs_one_list_at_most_and_ends_nothing() {
    let watches = [events(&["9"]), events(&["10", "11"]), error_event(403, "Forbidden")];
    let echo = server("11", watches);
    let (versions, error) = all(&mut resuming(&echo, "8")).await;
    assert_eq!(versions, ["9", "10", "11"]);
    assert!(error.unwrap().is_forbidden());
    assert!((1..=2).contains(&lists(&echo)), "{:?}", echo.lines());
    let metadata = echo.accepted().iter().filter(|kind| kind.contains("PartialObject")).count();
    assert_eq!(metadata, lists(&echo), "the object itself is not asked for: {:?}", echo.accepted());
}

/// A program that was restarted resumes from a version that the server may have lost meanwhile.
#[tokio::test(start_paused = true)]
async fn b8_the_first_connection_of_a_resuming_watch_is_checked_too_with_the_watchs_own_selector() {
    let echo = server("5", [(200, String::new())]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    let watch = api.watch().fields("metadata.name=a").resource_version("8");
    let (versions, error) = all(&mut watch.resuming()).await;
    assert!(versions.is_empty() && error.unwrap().is_expired());
    let list = "GET /api/v1/namespaces/shop/configmaps?fieldSelector=metadata.name%3Da&limit=1";
    assert!(echo.lines().iter().any(|line| line.starts_with(list)), "{:?}", echo.lines());
}

#[tokio::test(start_paused = true)]
async fn b8_a_list_that_is_forbidden_is_tried_again_every_five_minutes() {
    let echo = server("5", [(200, String::new())]);
    let forbidden = status(403, "Forbidden");
    *echo.listed.lock() = Some(forbidden.to_string());
    echo.listed_code.store(403, std::sync::atomic::Ordering::SeqCst);
    let mut watch = resuming(&echo, "8");
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, watch.next()).await.is_err(), "it goes on");
    let asked = lists(&echo);
    assert!((10..=13).contains(&asked), "{asked}");
}
