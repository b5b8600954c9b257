//! Waiting until a kind is served.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::*;
use windlass_core::resource::Scope;

const VERSION: &str = "/apis/example.dev/v1";

fn widgets() -> ResourceInfo {
    ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
        scope: Scope::Namespaced,
    }
}

fn listed(namespaced: bool) -> Reply {
    let widget =
        json!({ "name": "widgets", "namespaced": namespaced, "kind": "Widget", "verbs": ["get"] });
    ok(json!({ "kind": "APIResourceList", "resources": [widget] }))
}

fn in_catalog() -> Reply {
    ok(aggregated(&[group("example.dev", &[("v1", &[resource("Widget", "widgets", &[])])])]))
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_costs_no_wait() {
    let script = Script::new([
        ("/api", ok(aggregated(&[]))),
        ("/apis", in_catalog()),
        (VERSION, listed(true)),
    ]);
    let started = Instant::now();
    script.discovery().wait_served(&widgets(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_later_is_found_within_five_seconds_and_known_from_then_on() {
    let script = Script::new([("/api", ok(aggregated(&[]))), ("/apis", ok(aggregated(&[])))]);
    let discovery = script.discovery();
    assert!(discovery.find("widgets").await.is_err());
    let waiting = tokio::spawn({
        let discovery = discovery.clone();
        async move {
            let limit = Duration::from_secs(600);
            discovery.wait_for_kind("example.dev", "v1", "Widget", limit).await
        }
    });
    tokio::time::sleep(Duration::from_secs(120)).await;
    let asked = script.count(VERSION);
    assert!((24..60).contains(&asked), "{asked}");
    // The group version lists the kind first, the document of all groups later.
    script.only(VERSION, listed(true));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!waiting.is_finished());
    script.only("/apis", in_catalog());
    let came = Instant::now();
    assert_eq!(waiting.await.unwrap().unwrap(), widgets());
    assert!(came.elapsed() <= Duration::from_secs(5), "{:?}", came.elapsed());
    let reads = script.count("/apis");
    assert_eq!(discovery.find("widgets").await.unwrap(), widgets());
    assert_eq!(script.count("/apis"), reads);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_wait_tells_what_was_seen_last() {
    let limit = Duration::from_secs(20);
    let cases: [(Reply, &str); 4] = [
        (
            Reply::Answer(404, "404 page not found".to_owned()),
            "seen last: the group version is not served",
        ),
        (listed(false), "seen last: the kind is served as \"widgets\" with scope Cluster"),
        (
            ok(json!({ "resources": [{ "name": "gadgets", "kind": "Gadget", "verbs": [] }] })),
            "seen last: example.dev/v1 serves [\"Gadget\"], not this kind",
        ),
        (
            listed(true),
            "seen last: example.dev/v1 lists it, the catalog of all groups does not yet",
        ),
    ];
    for (reply, text) in cases {
        let script = Script::new([
            ("/api", ok(aggregated(&[]))),
            ("/apis", ok(aggregated(&[]))),
            (VERSION, reply),
        ]);
        let started = Instant::now();
        let error = script.discovery().wait_served(&widgets(), limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(started.elapsed(), limit);
    }
    let script = Script::new([(VERSION, Reply::Answer(403, "no rights".to_owned()))]);
    let error = script.discovery().wait_served(&widgets(), limit).await.unwrap_err();
    assert!(format!("{error:?}").contains("no rights"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn names_that_would_change_the_path_are_refused_at_once() {
    let script = Script::new([]);
    for (group, version) in [("a/b", "v1"), ("..", "v1"), ("a.dev", ""), ("a.dev", "v1?x")] {
        let waited =
            script.discovery().wait_for_kind(group, version, "X", Duration::from_secs(9)).await;
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Usage, "{group} {version}");
    }
    assert!(script.paths().is_empty());
}
