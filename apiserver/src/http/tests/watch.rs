use serde_json::json;

use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.code, 200);
    assert_eq!(watch.brief().await, "ADDED a");
    client.post(MAPS, map("b")).await;
    let added = watch.event().await.unwrap();
    assert_eq!(added["object"]["kind"], "ConfigMap", "items of a watch carry their kind");
    client.delete(&format!("{MAPS}/a")).await;
    assert_eq!(watch.brief().await, "DELETED a");
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn the_old_form_of_watches_has_only_paths_of_what_can_be_watched() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    for path in [
        "/api/v1/watch/namespaces/default/pods/p/log",
        "/api/v1/watch/namespaces/default/status",
        "/api/v1/watch/componentstatuses",
        "/apis/authorization.k8s.io/v1/watch/selfsubjectaccessreviews",
        "/apis/apps/v1/watch/namespaces/default/deployments/d/scale",
    ] {
        let reply = client.get(path).await;
        let wanted = "the server could not find the requested resource";
        assert_eq!((reply.code, reply.message()), (404, wanted), "{path}");
    }
    for selector in ["metadata.name=b", "metadata.namespace=default", "metadata.name!=b"] {
        let old = MAPS.replace("v1/", "v1/watch/");
        let reply = client.get(&format!("{old}/a?fieldSelector={selector}")).await;
        let wanted = "fieldSelector metadata.name doesn't match requested name";
        assert_eq!((reply.code, reply.message()), (400, wanted), "{selector}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_sees_everything_after_it_once() {
    let (server, mut client) = start().await;
    let a = client.post(MAPS, map("a")).await.version();
    client.post(MAPS, map("b")).await;
    client.post("/api/v1/namespaces/kube-system/configmaps", map("x")).await;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true&resourceVersion={a}")).await;
    assert_eq!(watch.brief().await, "ADDED b");
    assert!(watch.is_silent().await, "other namespaces are not its business");
    let mut all =
        Watch::open(&server, &format!("/api/v1/configmaps?watch=true&resourceVersion={a}")).await;
    assert_eq!([all.brief().await, all.brief().await], ["ADDED b", "ADDED x"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_too_old_a_version_says_so_and_ends() {
    let (server, mut client) = start().await;
    let a = client.post(MAPS, map("a")).await.version();
    client.post(MAPS, map("b")).await;
    server.compact();
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true&resourceVersion={a}")).await;
    assert_eq!(watch.code, 200);
    let event = watch.event().await.unwrap();
    let now = server.revision();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(event["object"]["message"], format!("too old resource version: {a} ({now})"));
    assert_eq!(
        (&event["object"]["reason"], &event["object"]["code"]),
        (&json!("Expired"), &json!(410))
    );
    assert_eq!(watch.brief().await, "END");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_is_open_and_silent() {
    let (server, mut client) = start().await;
    let far = server.revision() + 3;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true&resourceVersion={far}")).await;
    for name in ["a", "b", "c", "d"] {
        client.post(MAPS, map(name)).await;
    }
    assert_eq!(watch.brief().await, "ADDED d", "what came up to that version is behind it");
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    let (server, mut client) = start().await;
    let mut watch = Watch::open(
        &server,
        &format!("{MAPS}?watch=1&labelSelector=l%3Dx&resourceVersion={}", server.revision()),
    )
    .await;
    let url = format!("{MAPS}/a");
    let label = |value: &str| json!({"metadata": {"labels": {"l": value}}});
    client.post(MAPS, map("a")).await;
    client.merge(&url, label("x")).await;
    client.merge(&url, json!({"data": {"k": "w"}})).await;
    let left = client.merge(&url, label("y")).await;
    client.delete(&url).await;
    assert_eq!([watch.brief().await, watch.brief().await], ["ADDED a", "MODIFIED a"]);
    let gone = watch.event().await.unwrap();
    assert_eq!(
        (gone["type"].as_str(), &gone["object"]["metadata"]["labels"]),
        (Some("DELETED"), &json!({"l": "x"}))
    );
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], left.version().to_string());
    assert!(watch.is_silent().await, "its real deletion is not seen any more");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_ends_with_a_bookmark() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let url = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = Watch::open(&server, &url).await;
    assert_eq!(watch.brief().await, "ADDED a");
    let end = watch.event().await.unwrap();
    assert_eq!(
        end,
        json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "resourceVersion": server.revision().to_string(),
        "annotations": {"k8s.io/initial-events-end": "true"}}}})
    );
    let without = format!("{MAPS}?watch=true&sendInitialEvents=true");
    let reply = client.get(&without).await;
    assert_eq!(reply.code, 422);
    assert!(
        reply
            .message()
            .contains("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    );
}

#[tokio::test(start_paused = true)]
async fn without_initial_events_only_news_are_sent() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let url =
        format!("{MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut watch = Watch::open(&server, &url).await;
    client.post(MAPS, map("b")).await;
    assert_eq!(watch.brief().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_closes_at_its_timeout_without_an_event() {
    let (server, _client) = start().await;
    let started = tokio::time::Instant::now();
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=true&timeoutSeconds=7")).await;
    assert_eq!(watch.brief().await, "END");
    assert_eq!(started.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_about_every_minute_when_allowed() {
    let (server, mut client) = start().await;
    let url =
        format!("{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={}", server.revision());
    let mut watch = Watch::open(&server, &url).await;
    client.post(LEASES, json!({"metadata": {"name": "l"}})).await;
    let bookmark = watch.event().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        bookmark["object"]["metadata"],
        json!({"resourceVersion": server.revision().to_string()})
    );
}

#[tokio::test(start_paused = true)]
async fn the_old_watch_path_and_a_named_get_with_watch_do_what_they_always_did() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    client.post(MAPS, map("b")).await;
    let mut watch = Watch::open(&server, "/api/v1/watch/namespaces/default/configmaps/b").await;
    assert_eq!(watch.brief().await, "ADDED b");
    assert!(watch.is_silent().await);
    let plain = client.get(&format!("{MAPS}/a?watch=1")).await;
    assert_eq!(plain.value["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_junk_version_fails_a_watch_before_it_opens() {
    let (_server, mut client) = start().await;
    let reply = client.get(&format!("{MAPS}?watch=1&resourceVersion=abc")).await;
    assert_eq!((reply.code, reply.value.get("reason")), (500, None));
}

#[tokio::test(start_paused = true)]
async fn a_restart_cuts_everything_and_keeps_objects_but_no_history() {
    let (server, mut client) = start().await;
    let a = client.post(MAPS, map("a")).await.version();
    client.post(MAPS, map("b")).await;
    let mut watch =
        Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={}", server.revision()))
            .await;
    server.restart().await;
    assert_eq!(watch.brief().await, "END");
    assert!(client.open("GET", MAPS, &[], "").await.is_err(), "the old connection is gone");
    let mut client = Client::of(&server).await;
    assert_eq!(client.get(MAPS).await.names(), ["a", "b"]);
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={a}")).await;
    assert_eq!(watch.event().await.unwrap()["object"]["code"], 410);
    server.shutdown().await;
    assert!(server.connect().is_err());
}

#[tokio::test(start_paused = true)]
async fn many_watchers_see_the_same_order() {
    let (server, mut client) = start().await;
    let from = server.revision();
    for round in 0..30 {
        let name = format!("m{}", round % 7);
        let url = format!("{MAPS}/{name}");
        match round % 3 {
            0 => drop(client.post(MAPS, map(&name)).await),
            1 => drop(client.merge(&url, json!({"data": {"r": round.to_string()}})).await),
            _ => drop(client.delete(&url).await),
        }
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut watch = Watch::open(
            &server,
            &format!("{MAPS}?watch=1&resourceVersion={from}&timeoutSeconds=1"),
        )
        .await;
        let mut versions: Vec<u64> = Vec::new();
        while let Some(event) = watch.event().await {
            versions.push(
                event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap(),
            );
        }
        assert!(versions.is_sorted() && versions.len() > 10);
        seen.push(versions);
    }
    seen.dedup();
    assert_eq!(seen.len(), 1);
}
