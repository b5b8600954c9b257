//! Dry runs, a single namespace only, field managers: alone and combined, in both layers.

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::*;
use crate::client::PatchType;
use windlass_core::error::ErrorKind;

fn config_map(namespace: Option<&str>) -> ConfigMap {
    let namespace = namespace.map(str::to_owned);
    let metadata = ObjectMeta { name: Some("home".into()), namespace, ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"home"}}"#;

fn targets(server: &Server) -> Vec<String> {
    server.seen().into_iter().map(|seen| seen.target).collect()
}

#[tokio::test(start_paused = true)]
async fn every_write_of_a_dry_run_client_carries_dry_run_and_no_read_does() {
    let server = Server::with([Reply::Answer(200, OBJECT)]);
    let client = client(&server).dry_run();
    let request = |request: Request| request.group_version("", "v1").resource("nodes");
    request(client.post()).object(&json!({})).send().await.unwrap();
    request(client.put()).name("a").object(&json!({})).send().await.unwrap();
    request(client.patch(PatchType::Json)).name("a").object(&json!([])).send().await.unwrap();
    request(client.delete()).name("a").param("dryRun", "").send().await.unwrap();
    request(client.delete()).send().await.unwrap();
    client.namespace::<ConfigMap>("shop").create(&config_map(None)).await.unwrap();
    client.send(create()).await.unwrap();
    client.namespace::<ConfigMap>("shop").create(&config_map(None)).dry_run().await.unwrap();
    for target in targets(&server) {
        assert_eq!(target.matches("dryRun=All").count(), 1, "{target}");
        assert!(!target.contains("dryRun=&"), "{target}");
    }
    let writes = server.count();
    request(client.get()).name("a").send().await.unwrap();
    client.namespace::<ConfigMap>("shop").get("home").await.unwrap();
    assert!(targets(&server)[writes..].iter().all(|target| !target.contains("dryRun")));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing_so_it_is_tried_again_after_doubt() {
    let server = Server::with([Reply::Answer(504, ""), Reply::Answer(200, OBJECT)]);
    client(&server).dry_run().send(create()).await.unwrap();
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_bound_client_fills_in_its_namespace() {
    let server = Server::with([Reply::Answer(200, OBJECT)]);
    let client = client(&server).in_namespace("shop");
    let request = |request: Request| request.group_version("", "v1");
    request(client.get()).resource("configmaps").name("home").send().await.unwrap();
    request(client.get()).resource("pods").namespace("").send().await.unwrap();
    client.all::<ConfigMap>().get("home").await.unwrap();
    client.all::<ConfigMap>().create(&config_map(None)).await.unwrap();
    client.namespace::<ConfigMap>("shop").get("home").await.unwrap();
    assert_eq!(
        targets(&server),
        [
            "/api/v1/namespaces/shop/configmaps/home",
            "/api/v1/namespaces/shop/pods",
            "/api/v1/namespaces/shop/configmaps/home",
            "/api/v1/namespaces/shop/configmaps?fieldManager=windlass",
            "/api/v1/namespaces/shop/configmaps/home",
        ]
    );
    assert_eq!(client.default_namespace(), "shop");
}

#[tokio::test(start_paused = true)]
async fn a_bound_client_refuses_other_namespaces_and_what_it_cannot_judge() {
    let server = Server::with([Reply::Answer(200, OBJECT)]);
    let client = client(&server).in_namespace("shop");
    let get = || client.get().group_version("", "v1");
    for (request, why) in [
        (get().namespace("other").resource("pods"), "it is in namespace \"other\""),
        (client.get().abs_path(["/api/v1/namespaces/other/pods"]), "it is in namespace \"other\""),
        (client.get().request_uri("/api/v1/namespaces/oth%65r/pods"), "in namespace \"other\""),
        (client.get().request_uri("/api/v1/namespaces/shop%2fpods"), "does not clearly name"),
        (client.get().request_uri("//api/v1/pods"), "does not clearly name"),
        (client.get().abs_path(["/api/v1/pods"]), "whether its kind lives in namespaces"),
        (client.get().abs_path(["/apis/apps/v1/deployments/a"]), "whether its kind lives"),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.to_string().contains("bound to namespace \"shop\""), "{error}");
    }
    let other = client.namespace::<ConfigMap>("other");
    for error in [
        other.get("home").await.unwrap_err(),
        other.list().await.unwrap_err(),
        other.create(&config_map(None)).await.unwrap_err(),
        client.stream(Prepared::get("/api/v1/namespaces/other/pods", "try")).await.unwrap_err(),
        client.all::<ConfigMap>().create(&config_map(Some("other"))).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bound_client_lets_cluster_scoped_kinds_and_discovery_pass() {
    let server = Server::with([Reply::Answer(200, r#"{"metadata":{"name":"a"}}"#)]);
    let client = client(&server).in_namespace("shop");
    let get = || client.get().group_version("", "v1");
    get().resource("nodes").namespace_if_scoped("shop", false).name("a").send().await.unwrap();
    get().resource("namespaces").name("shop").send().await.unwrap();
    client.all::<Node>().get("a").await.unwrap();
    for path in ["/version", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3"] {
        client.get().abs_path([path]).send().await.unwrap();
    }
    assert_eq!(server.count(), 8);
    assert!(targets(&server).iter().all(|target| !target.contains("namespaces/shop/")));
}

#[tokio::test(start_paused = true)]
async fn a_client_behind_a_path_stays_behind_it_when_bound() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = Client::builder()
        .config(ClientConfig::new("https://proxy/clusters/c1").unwrap())
        .connector(Arc::new(Wire(Arc::clone(&server))))
        .build()
        .unwrap()
        .in_namespace("shop");
    client.get().request_uri("/clusters/c1/api/v1/namespaces/shop/pods").send().await.unwrap();
    for uri in ["/clusters/c2/api/v1/namespaces/shop/pods", "/clusters/c1/api/v1/pods"] {
        let error = client.get().request_uri(uri).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{uri}");
    }
    assert_eq!(targets(&server), ["/clusters/c1/api/v1/namespaces/shop/pods"]);
}

#[tokio::test(start_paused = true)]
async fn wrappers_compose_and_a_second_namespace_opens_none() {
    let server = Server::with([Reply::Answer(200, OBJECT)]);
    let plain = client(&server);
    let both = plain.field_manager("me").in_namespace("shop").dry_run();
    let put = both.put().group_version("", "v1").resource("configmaps").name("home");
    put.object(&json!({})).send().await.unwrap();
    assert_eq!(
        targets(&server),
        ["/api/v1/namespaces/shop/configmaps/home?dryRun=All&fieldManager=me"]
    );
    let twice = both.in_namespace("other");
    for namespace in ["shop", "other"] {
        let error = twice.namespace::<ConfigMap>(namespace).get("home").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    // The original client is unchanged.
    plain.namespace::<ConfigMap>("other").create(&config_map(None)).await.unwrap();
    assert_eq!(targets(&server)[1], "/api/v1/namespaces/other/configmaps?fieldManager=windlass");
}

#[tokio::test(start_paused = true)]
async fn raw_writes_carry_the_field_manager_unless_they_name_one_and_deletes_do_not() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server).field_manager("me");
    client.post().abs_path(["/a"]).send().await.unwrap();
    client.patch(PatchType::Merge).abs_path(["/b"]).send().await.unwrap();
    client.put().abs_path(["/c"]).param("fieldManager", "you").send().await.unwrap();
    client.delete().abs_path(["/d"]).send().await.unwrap();
    client.get().abs_path(["/e"]).send().await.unwrap();
    assert_eq!(
        targets(&server),
        ["/a?fieldManager=me", "/b?fieldManager=me", "/c?fieldManager=you", "/d", "/e"]
    );
}

/// Returns the bodies of the requests.
fn bodies(server: &Server) -> Vec<serde_json::Value> {
    let read = |seen: Seen| serde_json::from_slice(&seen.body).unwrap_or_default();
    server.seen().into_iter().map(read).collect()
}

/// Upstream: an API server that gets options in the body ignores those of the query.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_a_dry_run_says_so_in_its_body_too_where_it_has_one() {
    let server = Server::with([Reply::Answer(200, r#"{"kind":"Status","status":"Success"}"#)]);
    let plain = client(&server);
    let dry = plain.dry_run();
    let maps = dry.namespace::<ConfigMap>("shop");
    maps.delete("home").uid("u").await.unwrap();
    maps.delete_collection().propagation(crate::api::Propagation::Orphan).await.unwrap();
    plain.namespace::<ConfigMap>("shop").delete("home").uid("u").dry_run().await.unwrap();
    let raw = |client: &Client| client.delete().group_version("", "v1").resource("nodes").name("a");
    let options = json!({ "gracePeriodSeconds": 0, "dryRun": [] });
    raw(&dry).object(&options).send().await.unwrap();
    raw(&plain).object(&options).param("dryRun", "All").send().await.unwrap();
    for body in bodies(&server) {
        assert_eq!(body["dryRun"], json!(["All"]), "{body}");
    }
    assert_eq!(bodies(&server)[0]["preconditions"], json!({ "uid": "u" }));
    assert_eq!(bodies(&server)[3]["gracePeriodSeconds"], 0);
    assert!(targets(&server).iter().all(|target| target.contains("dryRun=All")));
    let sent = server.count();
    for body in [&b"k8s\0protobuf"[..], b"[]", b"kind: DeleteOptions"] {
        let error = raw(&dry).body(Bytes::from_static(body)).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    let streamed = raw(&dry).body(crate::client::Body::reader(&b"{}"[..]));
    assert_eq!(streamed.send().await.unwrap_err().kind(), ErrorKind::Usage);
    // Without a body the query counts.
    raw(&dry).send().await.unwrap();
    assert_eq!(server.count(), sent + 1);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_client_sends_nothing_that_knows_no_dry_run() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server).dry_run();
    let pod = |request: Request| {
        request.group_version("", "v1").namespace("shop").resource("pods").name("a")
    };
    let service = |request: Request| {
        request.group_version("", "v1").namespace("shop").resource("services").name("web")
    };
    for request in [
        pod(client.post()).subresource(["exec"]),
        pod(client.get()).subresource(["exec"]).param("command", "rm"),
        pod(client.get()).subresource(["attach"]),
        pod(client.get()).subresource(["portforward"]),
        service(client.post()).subresource(["proxy", "orders"]),
        service(client.delete()).subresource(["proxy"]),
        client.post().abs_path(["/debug/flags/v"]),
        client.put().abs_path(["/apis"]),
    ] {
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("dry run"), "{error}");
    }
    assert_eq!(server.count(), 0);
    service(client.get()).subresource(["proxy", "orders"]).send().await.unwrap();
    pod(client.post()).subresource(["eviction"]).object(&json!({})).send().await.unwrap();
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_verb_that_reads_sends_no_method_that_writes() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let plain = client(&server);
    for client in [plain.clone(), plain.dry_run()] {
        for method in [Method::DELETE, Method::POST, Method::PUT, Method::PATCH] {
            let path = "/api/v1/nodes/a".to_owned();
            let request = Prepared::new(Verb::Get, method, path, "delete it".to_owned());
            let error = client.send(request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        }
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bound_client_refuses_paths_that_are_spelled_in_disguise() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let bound = client(&server).in_namespace("shop");
    for uri in [
        "/api/v1/%6eamespaces/other/pods",
        "/%61pi/v1/namespaces/other/pods",
        "/api/v1/namespace%73/other/pods/a",
        "/api%2Fv1/namespaces/other/pods",
        "/api/v1/watch/namespaces/other/pods",
        "/api/v1/watch/pods",
        "/api/v1/namespaces/shop/%2e%2e/other/pods",
        "/api/v1/namespaces/shop/%2E/../other/pods",
    ] {
        for request in [
            bound.get().request_uri(uri),
            bound.get().request_uri(uri).namespace_if_scoped("", false),
        ] {
            let error = request.send().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{uri}: {error}");
        }
    }
    assert_eq!(server.count(), 0);
    // A name may contain characters that have to be encoded.
    let name = "/api/v1/namespaces/shop/configmaps/a%20b";
    bound.get().request_uri(name).send().await.unwrap();
    assert_eq!(targets(&server), [name]);
}

#[tokio::test(start_paused = true)]
async fn a_client_cannot_be_bound_to_what_is_no_namespace() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    for namespace in ["", "a/pods/b", "..", "a%2fb", "a?b"] {
        let bound = client(&server).in_namespace(namespace);
        for error in [
            bound.all::<ConfigMap>().get("home").await.unwrap_err(),
            bound.all::<ConfigMap>().list().await.unwrap_err(),
            bound.get().group_version("", "v1").resource("pods").send().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Usage, "{namespace:?}: {error}");
        }
    }
    assert_eq!(server.count(), 0);
}
