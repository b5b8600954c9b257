use std::time::Duration;

use serde_json::json;

use crate::ApiServer;
use crate::faults::{Fault, FaultAction, ObservedChange, ObservedRequest, Observer};
use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn a_request_can_fail_before_or_after_it_was_executed() {
    let (server, mut client) = start().await;
    server.faults().add(Fault::new(FaultAction::Answer(500)).on("create").resource("configmaps"));
    assert_eq!(client.post(MAPS, map("a")).await.code, 500);
    assert!(server.get_object("", "configmaps", "default", "a").is_none());
    server
        .faults()
        .add(Fault::new(FaultAction::ExecuteThenAnswer(504)).on("create").resource("configmaps"));
    assert_eq!(client.post(MAPS, map("a")).await.code, 504);
    assert!(server.get_object("", "configmaps", "default", "a").is_some());
    let codes: Vec<u16> = server.requests().iter().map(|request| request.code).collect();
    assert_eq!(codes, [500, 504]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_can_drop_after_the_work_was_done() {
    let (server, mut client) = start().await;
    server.faults().add(Fault::new(FaultAction::ExecuteThenDrop).on("create"));
    let body = map("a").to_string();
    assert!(client.open("POST", MAPS, &[], body).await.is_err());
    assert!(server.get_object("", "configmaps", "default", "a").is_some());
    let mut client = Client::of(&server).await;
    assert_eq!(client.get(MAPS).await.names(), ["a"], "other connections work");
}

#[tokio::test(start_paused = true)]
async fn a_request_can_hang_or_be_late() {
    let (server, mut client) = start().await;
    server.faults().add(Fault::new(FaultAction::Delay(Duration::from_secs(5))).on("get"));
    let started = tokio::time::Instant::now();
    client.get(&format!("{MAPS}/a")).await;
    assert_eq!(started.elapsed().as_secs(), 5);
    server.faults().add(Fault::new(FaultAction::Hang).on("list"));
    let waited = tokio::time::timeout(Duration::from_secs(3600), client.get(MAPS)).await;
    assert!(waited.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_ask_to_come_back_much_later() {
    let (server, mut client) = start().await;
    let fault =
        Fault::new(FaultAction::Answer(429)).then(FaultAction::RetryAfter("86400".to_owned()));
    let handle = server.faults().add(fault.on("list"));
    let reply = client.get(MAPS).await;
    assert_eq!((reply.code, reply.headers["retry-after"].to_str().unwrap()), (429, "86400"));
    assert_eq!(handle.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn watches_can_close_at_once_and_for_ever() {
    let (server, _client) = start().await;
    let handle = server.faults().add(Fault::new(FaultAction::CloseWatch).on("watch").always());
    for _ in 0..3 {
        let mut watch = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
        assert_eq!((watch.code, watch.brief().await), (200, "END".to_owned()));
    }
    handle.remove();
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn open_watches_take_errors_bytes_and_closes() {
    let (server, mut client) = start().await;
    let url = format!("{MAPS}?watch=1");
    let mut first = Watch::open(&server, &url).await;
    let mut second = Watch::open(&server, &url).await;
    client.post(MAPS, map("a")).await;
    assert_eq!(first.brief().await, "ADDED a");
    server.faults().inject("configmaps", "{broken\n");
    assert_eq!(second.brief().await, "ADDED a");
    assert_eq!(second.line().await.unwrap(), "{broken\n");
    assert_eq!(first.line().await.unwrap(), "{broken\n");
    server.faults().fail_watches("configmaps", 410);
    assert_eq!(first.event().await.unwrap()["object"]["code"], 410);
    assert_eq!(first.brief().await, "END");
    assert_eq!(second.event().await.unwrap()["object"]["reason"], "Expired");
    let mut third = Watch::open(&server, &url).await;
    server.faults().close_watches("*");
    assert_eq!([third.brief().await, third.brief().await], ["ADDED a", "END"]);
    assert_eq!(server.faults().open_watches("configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_paused_resource_delivers_everything_later() {
    let (server, mut client) = start().await;
    let mut maps = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
    let mut leases = Watch::open(&server, &format!("{LEASES}?watch=1")).await;
    server.faults().pause_watches("configmaps");
    client.post(MAPS, map("a")).await;
    client.post(LEASES, json!({"metadata": {"name": "l"}})).await;
    assert_eq!(leases.brief().await, "ADDED l");
    assert!(maps.is_silent().await);
    client.delete(&format!("{MAPS}/a")).await;
    server.faults().resume_watches("configmaps");
    assert_eq!([maps.brief().await, maps.brief().await], ["ADDED a", "DELETED a"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_lags_delivers_each_event_so_long_after_its_change() {
    let (server, mut client) = start().await;
    let mut maps = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
    let lag = Duration::from_millis(200);
    server.faults().lag_watches("configmaps", lag);
    let began = tokio::time::Instant::now();
    // More changes than a watch takes from the log at once.
    for name in 0..100 {
        client.post(MAPS, map(&format!("m{name}"))).await;
    }
    tokio::time::sleep(lag / 2).await;
    client.delete(&format!("{MAPS}/m7")).await;
    for name in 0..100 {
        assert_eq!(maps.brief().await, format!("ADDED m{name}"));
    }
    assert_eq!(began.elapsed().as_millis() / 10, 20);
    server.faults().lag_watches("configmaps", Duration::ZERO);
    assert_eq!(maps.brief().await, "DELETED m7");
    assert_eq!(began.elapsed().as_millis() / 10, 30);
    client.post(MAPS, map("later")).await;
    assert_eq!(maps.brief().await, "ADDED later");
    assert_eq!(began.elapsed().as_millis() / 10, 30);
}

#[tokio::test(start_paused = true)]
async fn one_item_can_be_undecodable_in_lists_and_watches() {
    let (server, mut client) = start().await;
    for name in ["a", "b"] {
        client.post(DEPLOYMENTS, deployment(name, 1)).await;
    }
    server.faults().add(Fault::new(FaultAction::Garble("b".to_owned())).on("list|watch").always());
    let list = client.get(DEPLOYMENTS).await;
    assert!(list.value["items"][0]["spec"].is_object());
    assert_eq!(list.value["items"][1]["spec"], "garbled");
    let mut watch = Watch::open(&server, &format!("{DEPLOYMENTS}?watch=1")).await;
    watch.event().await;
    assert_eq!(watch.event().await.unwrap()["object"]["spec"], "garbled");
    server.faults().clear();
    assert!(client.get(DEPLOYMENTS).await.value["items"][1]["spec"].is_object());
}

#[tokio::test(start_paused = true)]
async fn faults_can_mean_one_client_only() {
    let (server, mut client) = start().await;
    server.faults().add(Fault::new(FaultAction::Answer(503)).agent("flaky").always());
    assert_eq!(client.send("GET", MAPS, &[("user-agent", "flaky/1")], "").await.code, 503);
    assert_eq!(client.send("GET", MAPS, &[("user-agent", "solid/1")], "").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_show_again_what_it_has_shown() {
    let (server, mut client) = start().await;
    let url = format!("{MAPS}?watch=1");
    let mut watch = Watch::open(&server, &url).await;
    for name in ["a", "b", "c"] {
        client.post(MAPS, map(name)).await;
    }
    assert_eq!([watch.brief().await, watch.brief().await], ["ADDED a", "ADDED b"]);
    assert_eq!(watch.brief().await, "ADDED c");
    server.faults().repeat_watches("configmaps", 2, false);
    assert_eq!([watch.brief().await, watch.brief().await], ["ADDED b", "ADDED c"]);
    server.faults().repeat_watches("configmaps", 3, true);
    assert_eq!(watch.brief().await, "ADDED a");
    assert!(watch.is_silent().await);
    let from = server.revision();
    server.faults().add(Fault::new(FaultAction::RepeatWatch(1)).on("watch"));
    let mut watch = Watch::open(&server, &format!("{url}&resourceVersion={from}")).await;
    assert_eq!(watch.brief().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_begin_on_a_server_that_lags_behind() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let old = server.revision();
    client.post(MAPS, map("b")).await;
    let time = Duration::from_secs(20);
    server.faults().add(Fault::new(FaultAction::Behind(old, time)).on("watch"));
    let began = tokio::time::Instant::now();
    let url = format!("{MAPS}?watch=1&allowWatchBookmarks=1");
    let mut watch = Watch::open(&server, &url).await;
    assert_eq!(watch.brief().await, "ADDED a");
    let mark = watch.event().await.unwrap();
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], old.to_string());
    client.post(MAPS, map("c")).await;
    assert_eq!([watch.brief().await, watch.brief().await], ["ADDED b", "ADDED c"]);
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_come_late_though_its_request_was_executed_at_once() {
    let (server, mut client) = start().await;
    let late = FaultAction::ExecuteThenDelay(Duration::from_secs(7));
    server.faults().add(Fault::new(late).on("create"));
    let began = tokio::time::Instant::now();
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
    let seen = async {
        assert_eq!(watch.brief().await, "ADDED a");
        began.elapsed().as_secs()
    };
    let ((), seen) = tokio::join!(async { drop(client.post(MAPS, map("a")).await) }, seen);
    assert_eq!((seen, began.elapsed().as_secs()), (0, 7));
}

/// As recorded from kube-apiserver: 200, no event, no bookmark, and no 410 once versions reach that
/// of the watch.
#[tokio::test(start_paused = true)]
async fn a_restored_server_leaves_a_watch_from_the_future_waiting_until_versions_get_there() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let backup = server.backup();
    client.post(MAPS, map("b")).await;
    let from = server.revision();
    server.restore(&backup).await;
    let mut client = Client::of(&server).await;
    assert_eq!(client.get(MAPS).await.names(), ["a"]);
    let url = format!("{MAPS}?watch=1&allowWatchBookmarks=1&resourceVersion={from}");
    let mut watch = Watch::open(&server, &url).await;
    assert_eq!(watch.code, 200);
    tokio::time::sleep(Duration::from_secs(180)).await;
    client.post(MAPS, map("unseen")).await;
    assert_eq!(server.revision(), from);
    client.post(MAPS, map("seen")).await;
    assert_eq!(watch.brief().await, "ADDED seen");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_asked_to_expires_versions_that_do_not_exist_yet() {
    let server = ApiServer::builder().seed(1).expire_future_versions(true).start();
    let backup = server.backup();
    let mut client = Client::of(&server).await;
    client.post(MAPS, map("a")).await;
    let from = server.revision();
    server.restore(&backup).await;
    let url = format!("{MAPS}?watch=1&resourceVersion={from}");
    let mut watch = Watch::open(&server, &url).await;
    assert_eq!(watch.event().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_server_from_a_backup_has_its_objects_and_shares_no_later_write() {
    let (first, mut client) = start().await;
    assert_eq!(client.post(CRDS, widgets()).await.code, 201);
    assert_eq!(client.post(WIDGETS, widget("a", json!({"size": 1}))).await.code, 201);
    let backup = first.backup();
    let second = ApiServer::builder().seed(1).controllers(false).start_from(&backup);
    assert_eq!(
        second.revision(),
        backup.revision(),
        "what exists from the start is not made again"
    );
    let mut other = Client::of(&second).await;
    assert_eq!(other.get(WIDGETS).await.names(), ["a"]);
    assert_eq!(other.post(WIDGETS, widget("b", json!({"size": 1}))).await.code, 201);
    assert_eq!(client.get(WIDGETS).await.names(), ["a"]);
    let third = ApiServer::builder().seed(1).controllers(false).start_from(&backup);
    let mut third = Client::of(&third).await;
    let uid = third.post(MAPS, map("x")).await.value["metadata"]["uid"].clone();
    assert!(uid.is_string() && uid != client.post(MAPS, map("x")).await.value["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_from_a_backup_of_a_start_aggregates_roles_and_others_make_again_what_is_gone() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let first = ApiServer::builder().seed(1).start();
    let second = ApiServer::builder().seed(1).start_from(&first.backup());
    assert_eq!(second.revision(), first.revision());
    let mut client = Client::of(&second).await;
    let rules = json!([{"apiGroups": ["x.dev"], "resources": ["gadgets"], "verbs": ["get"]}]);
    let labels = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let role = json!({"metadata": {"name": "gadgets", "labels": labels}, "rules": rules});
    assert_eq!(client.post(ROLES, role).await.code, 201);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let view = client.get(&format!("{ROLES}/view")).await.value;
    assert!(view["rules"].as_array().unwrap().contains(&rules[0]), "{view}");

    first.delete_object("rbac.authorization.k8s.io", "clusterroles", "", "view").unwrap();
    let third = ApiServer::builder().seed(1).start_from(&first.backup());
    let view = third.get_object("rbac.authorization.k8s.io", "clusterroles", "", "view").unwrap();
    assert!(!view["rules"].as_array().unwrap().is_empty(), "{view}");
}

#[tokio::test(start_paused = true)]
async fn a_commit_passes_every_check_and_watches_show_it() {
    let (server, _client) = start().await;
    let mut watch = Watch::open(&server, &format!("{MAPS}?watch=1")).await;
    let odd = json!({"metadata": {"name": "a", "namespace": "default"}, "data": 7});
    let commit = |object| server.commit("", "configmaps", "default", "a", object);
    let revision = commit(Some(odd)).unwrap();
    assert_eq!(revision, server.revision());
    assert_eq!(watch.event().await.unwrap()["object"]["data"], 7);
    assert!(commit(None).is_some_and(|gone| gone > revision));
    assert_eq!(watch.brief().await, "DELETED a");
    assert_eq!(commit(None), None);
}

/// Refuses the second creation of a ConfigMap, and counts changes with their users.
#[derive(Debug, Default)]
struct Refusing {
    created: std::sync::atomic::AtomicUsize,
    changes: parking_lot::Mutex<Vec<(String, Option<String>)>>,
}

impl Observer for Refusing {
    fn request(&self, request: &ObservedRequest<'_>) -> Vec<FaultAction> {
        if (request.verb, request.resource) != ("create", "configmaps") {
            return Vec::new();
        }
        let before = self.created.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if before == 1 { vec![FaultAction::Answer(503)] } else { Vec::new() }
    }

    fn changed(&self, change: &ObservedChange<'_>) {
        let user = change.user.map(str::to_owned);
        self.changes.lock().push((change.resource.to_owned(), user));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_decides_on_each_request_and_sees_who_wrote() {
    let (server, mut client) = start().await;
    let observer = std::sync::Arc::new(Refusing::default());
    server.observe(observer.clone());
    let codes = [
        client.post(MAPS, map("a")).await.code,
        client.post(MAPS, map("b")).await.code,
        client.post(MAPS, map("c")).await.code,
    ];
    assert_eq!(codes, [201, 503, 201]);
    server.delete_object("", "configmaps", "default", "a").unwrap();
    let changes = observer.changes.lock().clone();
    let users: Vec<Option<&str>> = changes.iter().map(|(_, user)| user.as_deref()).collect();
    assert!(changes.iter().all(|(resource, _)| resource == "configmaps"), "{changes:?}");
    assert_eq!(users[..2], [users[0], users[0]]);
    assert!(users[0].is_some(), "{changes:?}");
    assert_eq!(users[2..], [None], "the server itself deleted it");
}
