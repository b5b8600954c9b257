use serde_json::{Value, json};

use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn a_created_object_can_be_read_listed_replaced_patched_and_deleted() {
    let (_server, mut client) = start().await;
    let made = client.post(MAPS, map("a")).await;
    assert_eq!((made.code, made.value["metadata"]["namespace"].as_str()), (201, Some("default")));
    assert_eq!(made.value["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    let got = client.get(&format!("{MAPS}/a")).await;
    assert_eq!((got.code, &got.value), (200, &made.value));
    let mut next = got.value.clone();
    next["data"]["k"] = json!("w");
    let put = client.put(&format!("{MAPS}/a"), next).await;
    assert_eq!(put.code, 200);
    assert!(put.version() > got.version());
    let patched = client.merge(&format!("{MAPS}/a"), json!({"data": {"k": null, "l": "x"}})).await;
    assert_eq!((patched.code, &patched.value["data"]), (200, &json!({"l": "x"})));
    let list = client.get(MAPS).await;
    assert_eq!(list.names(), ["a"]);
    assert_eq!(list.value["items"][0].get("kind"), None);
    let gone = client.delete(&format!("{MAPS}/a")).await;
    assert_eq!(
        gone.value["details"],
        json!({"name": "a", "kind": "configmaps", "uid": made.value["metadata"]["uid"]})
    );
    assert_eq!(client.get(&format!("{MAPS}/a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_owns_is_set_at_creation_whatever_the_client_says() {
    let (_server, mut client) = start().await;
    let mut body = map("a");
    body["metadata"]["uid"] = json!("mine");
    body["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
    body["metadata"]["generation"] = json!(9);
    let made = client.post(MAPS, body).await;
    let metadata = &made.value["metadata"];
    assert_ne!(metadata["uid"], "mine");
    assert_eq!(metadata.get("deletionTimestamp"), None);
    assert_eq!(metadata["generation"], 9, "ConfigMaps have no generation of their own");
    let mut body = deployment("d", 1);
    body["metadata"]["generation"] = json!(9);
    assert_eq!(client.post(DEPLOYMENTS, body).await.value["metadata"]["generation"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_stale_put_conflicts_and_one_without_a_version_depends_on_the_kind() {
    let (_server, mut client) = start().await;
    let made = client.post(MAPS, map("a")).await;
    client.merge(&format!("{MAPS}/a"), json!({"data": {"x": "y"}})).await;
    let stale = client.put(&format!("{MAPS}/a"), made.value.clone()).await;
    assert_eq!(stale.code, 409);
    assert_eq!(
        stale.message(),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
    assert_eq!(stale.value["details"], json!({"name": "a", "kind": "configmaps"}));
    assert_eq!(client.put(&format!("{MAPS}/a"), map("a")).await.code, 200);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    assert_eq!(
        client.put(&format!("{LEASES}/l"), lease.clone()).await.code,
        201,
        "a PUT may create a Lease"
    );
    let reply = client.put(&format!("{LEASES}/l"), lease).await;
    assert_eq!(reply.code, 422);
    assert_eq!(
        reply.message(),
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    let mut other = made.value.clone();
    other["metadata"]["uid"] = json!("u");
    other["metadata"]["resourceVersion"] = Value::Null;
    let reply = client.put(&format!("{MAPS}/a"), other).await;
    assert_eq!(reply.code, 409);
    assert!(
        reply
            .message()
            .contains("Precondition failed: UID in precondition: u, UID in object meta: ")
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_keeps_the_version_and_sends_no_event() {
    let (server, mut client) = start().await;
    let made = client.post(MAPS, map("a")).await;
    let mut watch =
        Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={}", made.version())).await;
    let put = client.put(&format!("{MAPS}/a"), made.value.clone()).await;
    assert_eq!(put.version(), made.version());
    let patched = client
        .merge(&format!("{MAPS}/a"), json!({"data": {"k": "v"}, "metadata": {"labels": {}}}))
        .await;
    assert_eq!(patched.version(), made.version());
    assert!(watch.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_keeps_its_base_and_differs_each_time() {
    let (_server, mut client) = start().await;
    let body = json!({"metadata": {"generateName": "web-"}});
    let first = client.post(MAPS, body.clone()).await;
    let second = client.post(MAPS, body).await;
    let name = |reply: &Reply| reply.value["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name(&first).starts_with("web-") && name(&first).len() == 9);
    assert_ne!(name(&first), name(&second));
    assert_eq!(first.value["metadata"]["generateName"], "web-");
    let long = json!({"metadata": {"generateName": "a".repeat(250)}});
    assert_eq!(name(&client.post(MAPS, long).await).len(), 63);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let (server, mut client) = start().await;
    let mut body = map("a");
    body["metadata"]["finalizers"] = json!(["x.io/f"]);
    let made = client.post(MAPS, body.clone()).await;
    let mut watch =
        Watch::open(&server, &format!("{MAPS}?watch=1&resourceVersion={}", made.version())).await;
    let marked = client.delete(&format!("{MAPS}/a")).await;
    assert_eq!((marked.code, &marked.value["kind"]), (200, &json!("ConfigMap")));
    assert_eq!(marked.value["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = client.delete(&format!("{MAPS}/a")).await;
    assert_eq!(again.value, marked.value, "a second DELETE changes nothing");
    let create = client.post(MAPS, body).await;
    assert_eq!(create.message(), "object is being deleted: configmaps \"a\" already exists");
    let added = client
        .merge(&format!("{MAPS}/a"), json!({"metadata": {"finalizers": ["x.io/f", "new.io/f"]}}))
        .await;
    assert_eq!(
        (added.code, added.value["details"]["causes"].as_array().map(Vec::len)),
        (422, Some(2))
    );
    let freed = client.merge(&format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!((freed.code, freed.version()), (200, marked.version()), "nothing was written");
    assert_eq!(client.get(&format!("{MAPS}/a")).await.code, 404);
    assert_eq!(watch.brief().await, "MODIFIED a");
    let gone = watch.event().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["finalizers"], json!(["x.io/f"]));
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], server.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn deletion_policies_become_finalizers_and_replace_each_other() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let url = format!("{MAPS}/a");
    let foreground = client.delete(&format!("{url}?propagationPolicy=Foreground")).await;
    assert_eq!(foreground.value["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let orphan = client.delete_with(&url, json!({"propagationPolicy": "Orphan"})).await;
    assert_eq!(orphan.value["metadata"]["finalizers"], json!(["orphan"]));
    let background = client.delete(&format!("{url}?propagationPolicy=Background")).await;
    assert_eq!(background.value["status"], "Success");
    assert_eq!(client.get(&url).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn delete_preconditions_must_hold() {
    let (_server, mut client) = start().await;
    let made = client.post(MAPS, map("a")).await;
    let url = format!("{MAPS}/a");
    let wrong = client.delete_with(&url, json!({"preconditions": {"uid": "x"}})).await;
    assert_eq!(wrong.code, 409);
    assert_eq!(wrong.value["details"]["kind"], "ConfigMap");
    let stale = client.delete_with(&url, json!({"preconditions": {"resourceVersion": "1"}})).await;
    assert!(stale.message().contains("the ResourceVersion in the precondition (1) does not match"));
    let right = json!({"preconditions": {"uid": made.value["metadata"]["uid"]}});
    assert_eq!(client.delete_with(&url, right).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector_and_listed_in_the_answer() {
    let (_server, mut client) = start().await;
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        client.post(MAPS, json!({"metadata": {"name": name, "labels": {"l": label}}})).await;
    }
    let gone = client.delete(&format!("{MAPS}?labelSelector=l%3Dx")).await;
    assert_eq!(
        (gone.value["kind"].as_str(), gone.names()),
        (Some("ConfigMapList"), vec!["a".to_owned(), "c".to_owned()])
    );
    assert_eq!(client.get(MAPS).await.names(), ["b"]);
    assert_eq!(client.delete("/api/v1/namespaces").await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn generation_counts_specs_and_status_has_its_own_endpoint() {
    let (_server, mut client) = start().await;
    let mut body = deployment("d", 2);
    body["status"] = json!({"replicas": 7});
    let made = client.post(DEPLOYMENTS, body).await;
    assert_eq!(made.value["status"], json!({}), "a new object has no status");
    let url = format!("{DEPLOYMENTS}/d");
    let generation = |reply: &Reply| reply.value["metadata"]["generation"].as_i64().unwrap();
    let labelled = client.merge(&url, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(generation(&labelled), 1);
    let annotated = client.merge(&url, json!({"metadata": {"annotations": {"a": "b"}}})).await;
    assert_eq!(generation(&annotated), 2, "annotations count for Deployments");
    let scaled = client.merge(&url, json!({"spec": {"replicas": 3}})).await;
    assert_eq!(generation(&scaled), 3);
    let ignored = client.merge(&url, json!({"status": {"replicas": 3}})).await;
    assert_eq!(ignored.version(), scaled.version());
    let status = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}, "metadata": {"labels": {"c": "d"}}});
    let reported = client.merge(&format!("{url}/status"), status).await;
    assert_eq!(reported.value["status"]["replicas"], 3);
    assert_eq!((generation(&reported), &reported.value["spec"]["replicas"]), (3, &json!(3)));
    assert_eq!(reported.value["metadata"]["labels"], json!({"a": "b"}));
}

#[tokio::test(start_paused = true)]
async fn scale_shows_and_sets_replicas() {
    let (_server, mut client) = start().await;
    let body = deployment("d", 2);
    client.post(DEPLOYMENTS, body).await;
    let url = format!("{DEPLOYMENTS}/d/scale");
    let scale = client.get(&url).await;
    assert_eq!(scale.value["spec"], json!({"replicas": 2}));
    assert_eq!(scale.value["status"], json!({"replicas": 0, "selector": "app=d"}));
    let mut next = scale.value.clone();
    next["spec"]["replicas"] = json!(5);
    assert_eq!(client.put(&url, next.clone()).await.value["spec"]["replicas"], 5);
    assert_eq!(client.put(&url, next).await.code, 409, "the version is old now");
    client.merge(&url, json!({"spec": {"replicas": 6}})).await;
    let deployment = client.get(&format!("{DEPLOYMENTS}/d")).await;
    assert_eq!(deployment.value["spec"]["replicas"], 6);
}

#[tokio::test(start_paused = true)]
async fn both_event_apis_show_the_same_events() {
    let (_server, mut client) = start().await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "Made", "message": "hi", "type": "Normal"});
    client.post("/api/v1/namespaces/default/events", event).await;
    let list = client
        .get("/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp")
        .await;
    assert_eq!(list.names(), ["e"]);
    assert_eq!(list.value["items"][0]["note"], "hi");
    assert_eq!(list.value["items"][0]["eventTime"], Value::Null);
    let newer = json!({"metadata": {"name": "f"}, "regarding": {"name": "q"}, "note": "ho",
        "eventTime": "2026-01-01T00:00:00.000001Z", "reportingController": "example.com/c",
        "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal"});
    client.post("/apis/events.k8s.io/v1/namespaces/default/events", newer).await;
    let core = client.get("/api/v1/namespaces/default/events/f").await;
    assert_eq!(
        (core.value["message"].as_str(), core.value["apiVersion"].as_str()),
        (Some("ho"), Some("v1"))
    );
    assert_eq!(core.value["eventTime"], "2026-01-01T00:00:00.000001Z");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_if_and_stores_nothing() {
    let (server, mut client) = start().await;
    let before = server.revision();
    let made = client.post(&format!("{MAPS}?dryRun=All"), map("a")).await;
    assert_eq!(made.code, 201);
    assert!(made.value["metadata"]["uid"].is_string());
    assert_eq!(made.value["metadata"].get("resourceVersion"), None);
    assert_eq!(server.revision(), before);
    client.post(MAPS, map("a")).await;
    let now = server.revision();
    let url = format!("{MAPS}/a?dryRun=All");
    assert_eq!(client.merge(&url, json!({"data": {"k": "z"}})).await.value["data"]["k"], "z");
    assert_eq!(client.delete(&url).await.value["status"], "Success");
    assert_eq!(server.revision(), now);
    let bad = client.post(&format!("{MAPS}?dryRun=Some"), map("b")).await;
    assert_eq!((bad.code, bad.value["details"]["kind"].as_str()), (422, Some("CreateOptions")));
}

#[tokio::test(start_paused = true)]
async fn a_full_page_goes_on_if_any_object_stands_behind_it() {
    let (_server, mut client) = start().await;
    for (name, label) in [("a", "1"), ("b", "2")] {
        let metadata = json!({"name": name, "labels": {"l": label}});
        client.post(MAPS, json!({"metadata": metadata})).await;
    }
    for (query, goes_on) in [
        ("labelSelector=l%3D1", true),
        ("labelSelector=l%3D2", false),
        ("fieldSelector=metadata.name%3Da", false),
    ] {
        let page = client.get(&format!("{MAPS}?limit=1&{query}")).await.value;
        assert_eq!(page["items"].as_array().map_or(0, Vec::len), 1, "{query}");
        assert_eq!(page["metadata"]["continue"].is_string(), goes_on, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_one_snapshot_and_expire_with_the_history() {
    let (server, mut client) = start().await;
    for name in ["a", "b", "c", "d", "e"] {
        client.post(MAPS, map(name)).await;
    }
    let first = client.get(&format!("{MAPS}?limit=2")).await;
    assert_eq!(
        (first.names(), &first.value["metadata"]["remainingItemCount"]),
        (vec!["a".into(), "b".into()], &json!(3))
    );
    let token = first.value["metadata"]["continue"].as_str().unwrap().to_owned();
    client.delete(&format!("{MAPS}/c")).await;
    let second = client.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(second.names(), ["c", "d"], "a page still shows what went since the first");
    assert_eq!(second.version(), first.version());
    let whole = client.get(&format!("{MAPS}?limit=2&resourceVersion=0")).await;
    assert_eq!(whole.names(), ["a", "b", "d", "e"], "any version is served whole");
    let both = client.get(&format!("{MAPS}?continue={token}&resourceVersion=3")).await;
    assert_eq!(both.message(), "specifying resource version is not allowed when using continue");
    server.compact();
    let late = client.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((late.code, late.value["reason"].as_str()), (410, Some("Expired")));
    let fresh = late.value["metadata"]["continue"].as_str().unwrap();
    let rest = client.get(&format!("{MAPS}?continue={fresh}")).await;
    assert_eq!(rest.names(), ["d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_can_ask_for_an_exact_a_newer_and_a_future_version() {
    let (server, mut client) = start().await;
    let a = client.post(MAPS, map("a")).await.version();
    client.post(MAPS, map("b")).await;
    let exact = client.get(&format!("{MAPS}?resourceVersion={a}&resourceVersionMatch=Exact")).await;
    assert_eq!((exact.names(), exact.version()), (vec!["a".to_owned()], a));
    let newer = client.get(&format!("{MAPS}?resourceVersion={a}")).await;
    assert_eq!(newer.names(), ["a", "b"]);
    let started = tokio::time::Instant::now();
    let future = client.get(&format!("{MAPS}?resourceVersion=99999")).await;
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!((future.code, future.headers["retry-after"].to_str().unwrap()), (504, "1"));
    assert_eq!(
        future.message(),
        format!("Timeout: Too large resource version: 99999, current: {}", server.revision())
    );
    assert_eq!(future.value["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    server.compact();
    let old = client.get(&format!("{MAPS}?resourceVersion={a}&resourceVersionMatch=Exact")).await;
    assert_eq!(
        (old.code, old.message()),
        (410, "The resourceVersion for the provided list is too old.")
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_an_address_nobody_else_has() {
    let (_server, mut client) = start().await;
    let services = "/api/v1/namespaces/default/services";
    let body = |name: &str| json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let first = client.post(services, body("a")).await;
    let second = client.post(services, body("b")).await;
    let ip = |reply: &Reply| reply.value["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(ip(&first).starts_with("10.0.0.") && ip(&first) != ip(&second));
    let put = client.put(&format!("{services}/a"), body("a")).await;
    assert_eq!(ip(&put), ip(&first), "a PUT without an address keeps it");
    assert_eq!(ip(&client.get(&format!("{services}/kubernetes")).await), "10.0.0.1");
}

#[tokio::test(start_paused = true)]
async fn namespaces_have_labels_and_go_through_finalize() {
    let (_server, mut client) = start().await;
    let made = client.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    assert_eq!(made.value["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!(made.value["spec"], json!({"finalizers": ["kubernetes"]}));
    let going = client.delete("/api/v1/namespaces/n").await;
    assert_eq!(going.value["status"]["phase"], "Terminating");
    let late = client.post("/api/v1/namespaces/n/configmaps", map("a")).await;
    assert_eq!(late.code, 403);
    assert_eq!(late.value["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let mut next = going.value.clone();
    next["spec"]["finalizers"] = json!([]);
    assert_eq!(client.put("/api/v1/namespaces/n/finalize", next).await.code, 200);
    assert_eq!(client.get("/api/v1/namespaces/n").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pod_is_given_time_and_an_idle_one_none() {
    let (_server, mut client) = start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, node: &str| {
        json!({"metadata": {"name": name}, "spec": {"nodeName": node,
        "containers": [{"name": "c", "image": "i"}]}})
    };
    client.post(pods, pod("busy", "n1")).await;
    let going = client.delete(&format!("{pods}/busy")).await;
    assert_eq!(going.value["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(going.value["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    let longer = client.delete(&format!("{pods}/busy?gracePeriodSeconds=60")).await;
    assert_eq!(longer.value, going.value);
    client.delete(&format!("{pods}/busy?gracePeriodSeconds=0")).await;
    assert_eq!(client.get(&format!("{pods}/busy")).await.code, 404);
    client.post(pods, json!({"metadata": {"name": "idle"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).await;
    client.delete(&format!("{pods}/idle")).await;
    assert_eq!(client.get(&format!("{pods}/idle")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn yaml_comes_in_and_goes_out() {
    let (_server, mut client) = start().await;
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  a: \"1\"\n";
    let made = client.send("POST", MAPS, &[("content-type", "application/yaml")], yaml).await;
    assert_eq!((made.code, &made.value["data"]["a"]), (201, &json!("1")), "{}", made.text);
    let out =
        client.send("GET", &format!("{MAPS}/web"), &[("accept", "application/yaml")], "").await;
    assert_eq!(out.headers["content-type"], "application/yaml");
    assert!(out.text.contains("kind: ConfigMap"), "{}", out.text);
}

#[tokio::test(start_paused = true)]
async fn reads_in_metadata_shape_carry_nothing_else() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let reply = client.send("GET", &format!("{MAPS}/a"), &[("accept", one)], "").await;
    assert_eq!(
        (reply.value["kind"].as_str(), reply.value.get("data")),
        (Some("PartialObjectMetadata"), None)
    );
    let many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let reply = client.send("GET", MAPS, &[("accept", many)], "").await;
    assert_eq!(
        (reply.value["kind"].as_str(), reply.names()),
        (Some("PartialObjectMetadataList"), vec!["a".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn health_and_version_answer_without_kinds() {
    let (_server, mut client) = start().await;
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping"] {
        let reply = client.get(path).await;
        assert_eq!((reply.code, reply.text.as_str()), (200, "ok"), "{path}");
    }
    assert!(client.get("/readyz?verbose").await.text.ends_with("readyz check passed\n"));
    assert_eq!(client.get("/version/").await.value["gitVersion"], "v1.36.3");
    assert_eq!(client.get("/version").await.value["minor"], "36");
}

#[tokio::test(start_paused = true)]
async fn racing_patches_of_different_keys_all_land() {
    let (server, mut client) = start().await;
    client.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let mut racers = tokio::task::JoinSet::new();
    for index in 0..8 {
        let mut client = Client::of(&server).await;
        racers.spawn(async move {
            let patch = json!({"data": {format!("k{index}"): "v"}});
            client.merge(&format!("{MAPS}/a"), patch).await.code
        });
    }
    assert!(racers.join_all().await.into_iter().all(|code| code == 200));
    assert_eq!(client.get(&format!("{MAPS}/a")).await.value["data"].as_object().unwrap().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn an_openapi_document_is_kept_under_its_hash() {
    let (_server, mut client) = start().await;
    let index = client.get("/openapi/v3").await;
    let url = index.value["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let named = client.get(url).await;
    assert_eq!(named.headers["cache-control"], "public, immutable");
    assert_eq!(named.headers["expires"], "Fri, 01 Jan 2027 00:00:00 GMT");
    let hash = url.rsplit('=').next().unwrap();
    let tag = format!("\"{hash}\"");
    assert_eq!(named.headers["etag"], tag);
    assert_eq!(named.headers["vary"], "Accept");
    let path = "/openapi/v3/apis/apps/v1";
    let plain = client.get(path).await;
    assert_eq!((plain.code, &plain.headers["etag"]), (200, &named.headers["etag"]));
    assert_eq!(plain.headers["cache-control"], "no-cache, private");
    let moved = client.get(&format!("{path}?hash=X")).await;
    assert_eq!((moved.code, moved.text.as_str()), (301, ""));
    assert_eq!(moved.headers["location"], url);
    let kept = client.send("GET", path, &[("if-none-match", &tag)], "").await;
    assert_eq!((kept.code, kept.text.as_str()), (304, ""));
    let refused = client.send("GET", path, &[("accept", "text/html")], "").await;
    assert_eq!((refused.code, refused.text.as_str()), (406, ""));
    assert!(!refused.headers.contains_key("content-type"));
    let absent = client.get("/openapi/v3/apis/apps/v9").await;
    assert_eq!((absent.code, absent.text.as_str()), (404, ""));
    let binary = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let bytes = client.send("GET", path, &[("accept", binary)], "").await;
    assert_eq!(bytes.headers["content-type"], binary.replace('@', "."));
    assert!(bytes.text.starts_with("\n\u{5}3.0.0\u{12}"), "openapi and info");
    assert_eq!(bytes.headers["etag"], tag);
}

#[tokio::test(start_paused = true)]
async fn the_openapi_document_of_version_two_holds_all_kinds() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    let plain = client.get("/openapi/v2").await;
    assert_eq!((plain.code, &plain.value["swagger"]), (200, &json!("2.0")));
    assert_eq!(plain.headers["vary"], "Accept");
    let definitions = &plain.value["definitions"];
    assert_eq!(definitions["io.g.v1.Widget"]["type"], "object");
    let metadata = &definitions["io.k8s.api.core.v1.Pod"]["properties"]["metadata"]["$ref"];
    assert_eq!(metadata, "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    let patch =
        &plain.value["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["parameters"][0]["in"], "body");
    let strategic = json!("application/strategic-merge-patch+json");
    assert!(patch["consumes"].as_array().unwrap().contains(&strategic));
    let binary = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let accept = format!("{binary},application/json;q=0.5");
    let bytes = client.send("GET", "/openapi/v2", &[("accept", &accept)], "").await;
    assert_eq!(bytes.headers["content-type"], binary.replace('@', "."));
    assert!(bytes.text.starts_with("\n\u{3}2.0\u{12}"), "swagger and info");
    let tag = plain.headers["etag"].to_str().unwrap();
    let kept = client.send("GET", "/openapi/v2", &[("if-none-match", tag)], "").await;
    assert_eq!(kept.code, 304);
    let refused = client.send("GET", "/openapi/v2", &[("accept", "text/html")], "").await;
    assert_eq!((refused.code, refused.text.as_str()), (406, ""));
}
