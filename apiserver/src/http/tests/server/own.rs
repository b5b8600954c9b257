//! Objects and pages that the server makes by itself.

use serde_json::json;

use crate::http::test_support::*;

const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const APISERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const SERVICES: &str = "/api/v1/namespaces/default/services";

#[tokio::test(start_paused = true)]
async fn an_address_of_a_service_is_an_object_until_the_service_is_gone() {
    let (_server, mut client) = start().await;
    let first = client.get(&format!("{ADDRESSES}/10.0.0.1")).await;
    assert_eq!(first.value["spec"]["parentRef"]["name"], "kubernetes", "{}", first.text);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = client.post(SERVICES, service).await;
    let address = made.value["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert_eq!(address, "10.0.0.17", "those that people choose are given out last");
    let url = format!("{ADDRESSES}/{address}");
    let held = client.get(&url).await;
    assert!(held.version() < made.version(), "the address is there before the Service");
    let parent = json!({"resource": "services", "namespace": "default", "name": "s"});
    assert_eq!(held.value["spec"]["parentRef"], parent, "{}", held.text);
    let change = json!({"spec": {"type": "ExternalName", "externalName": "x.example"}});
    client.merge(&format!("{SERVICES}/s"), change).await;
    assert_eq!(client.get(&url).await.code, 404);
    let change = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    client.merge(&format!("{SERVICES}/s"), change).await;
    assert_eq!(client.get(&url).await.code, 200);
    client.delete(&format!("{SERVICES}/s")).await;
    assert_eq!(client.get(&url).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_stored_leaves_no_address() {
    let (_server, mut client) = start().await;
    let service = |name: &str, ip: &str| json!({"metadata": {"name": name}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}});
    assert_eq!(client.post(SERVICES, service("s", "10.0.0.30")).await.code, 201);
    assert_eq!(client.post(SERVICES, service("s", "10.0.0.31")).await.code, 409);
    let bad = json!({"metadata": {"name": "t"}, "spec": {"clusterIP": "10.0.0.31"}});
    assert_eq!(client.post(SERVICES, bad).await.code, 422);
    let dry = format!("{SERVICES}?dryRun=All");
    assert_eq!(client.post(&dry, service("t", "10.0.0.31")).await.code, 201);
    assert_eq!(client.get(&format!("{ADDRESSES}/10.0.0.31")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn there_is_no_profile_and_no_flag_to_set() {
    let (_server, mut client) = start().await;
    let moved = client.get("/debug/pprof").await;
    assert_eq!((moved.code, &moved.headers["location"]), (302, &"/debug/pprof/".parse().unwrap()));
    for (url, code, text) in [
        ("/debug/pprof/", 200, "This server has no profiles."),
        ("/debug/pprof/heap", 404, "Unknown profile"),
        ("/debug/flags", 200, "full flags configurable"),
        ("/debug/flags/v", 200, "full flags configurable"),
        ("/debug/other", 404, "404 page not found"),
        ("/debug", 404, "404 page not found"),
    ] {
        let reply = client.get(url).await;
        assert_eq!((reply.code, reply.text.contains(text)), (code, true), "{url}: {}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_an_object_names_is_taken() {
    let (_server, mut client) = start().await;
    let parent = json!({"resource": "services", "namespace": "default", "name": "other"});
    let object = json!({"metadata": {"name": "10.0.0.9"}, "spec": {"parentRef": parent}});
    assert_eq!(client.post(ADDRESSES, object).await.code, 201);
    let spec = json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]});
    let refused = client.post(SERVICES, json!({"metadata": {"name": "s"}, "spec": spec})).await;
    assert!(refused.message().ends_with("provided IP is already allocated"), "{}", refused.text);
}

#[tokio::test(start_paused = true)]
async fn a_range_has_addresses_unless_its_status_says_otherwise() {
    let (_server, mut client) = start().await;
    const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
    let spec = json!({"clusterIP": "10.96.7.3", "ports": [{"port": 80}]});
    let service = json!({"metadata": {"name": "s"}, "spec": spec});
    let range = json!({"metadata": {"name": "r"}, "spec": {"cidrs": ["10.96.7.0/28"]}});
    assert_eq!(client.post(RANGES, range).await.code, 201);
    let ready = |status: &str| {
        let condition = json!({"type": "Ready", "status": status, "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({"status": {"conditions": [condition]}})
    };
    for (status, code) in [("False", 422), ("True", 201)] {
        let written = client.merge(&format!("{RANGES}/r/status"), ready(status)).await;
        assert_eq!(written.code, 200, "{}", written.text);
        assert_eq!(client.post(SERVICES, service.clone()).await.code, code);
    }
    assert_eq!(client.get(&format!("{ADDRESSES}/10.96.7.3")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn each_group_and_version_has_an_api_service() {
    let (_server, mut client) = start().await;
    let apps = client.get(&format!("{APISERVICES}/v1.apps")).await;
    assert_eq!(apps.value["spec"]["groupPriorityMinimum"], 17_800, "{}", apps.text);
    let state = &apps.value["status"]["conditions"][0];
    assert_eq!((&state["status"], &state["reason"]), (&json!("True"), &json!("Local")));
    let owners = apps.value["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "nobody owns the condition: {owners:?}");
    assert_eq!(client.get(&format!("{APISERVICES}/v1.")).await.code, 200);

    let own = format!("{APISERVICES}/v1.g.io");
    client.post(CRDS, widgets()).await;
    let wanted = json!({"group": "g.io", "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 100});
    assert_eq!(client.get(&own).await.value["spec"], wanted);
    client.merge(&own, json!({"spec": {"versionPriority": 5}})).await;
    assert_eq!(client.get(&own).await.value["spec"], wanted);
    client.delete(&own).await;
    assert_eq!(client.get(&own).await.value["spec"], wanted);
    client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    client.delete(&format!("{CRDS}/widgets.g.io")).await;
    assert_eq!(client.get(&own).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn an_api_service_of_another_server_is_not_available() {
    let (_server, mut client) = start().await;
    let spec = json!({"group": "x.io", "version": "v1", "groupPriorityMinimum": 1,
        "versionPriority": 1, "service": {"namespace": "default", "name": "x"}});
    let made =
        client.post(APISERVICES, json!({"metadata": {"name": "v1.x.io"}, "spec": spec})).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let held = client.get(&format!("{APISERVICES}/v1.x.io")).await;
    let state = &held.value["status"]["conditions"][0];
    assert_eq!((&state["status"], &state["reason"]), (&json!("False"), &json!("ServiceNotFound")));
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_version_that_is_gone_are_refused_and_can_still_be_deleted_by_the_server() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    let definition = format!("{CRDS}/widgets.g.io");
    let mut first = widgets()["spec"]["versions"][0].clone();
    let mut second = first.clone();
    second["name"] = json!("v2");
    first["storage"] = json!(false);
    client.merge(&definition, json!({"spec": {"versions": [first, second]}})).await;
    let gone = json!({"spec": {"versions": [second]}});
    assert_eq!(client.merge(&definition, gone.clone()).await.code, 422);
    let status = json!({"status": {"storedVersions": ["v2"]}});
    client.merge(&format!("{definition}/status"), status).await;
    assert_eq!(client.merge(&definition, gone).await.code, 200);
    let all = WIDGETS.replace("/v1/", "/v2/");
    let why = "request to convert CR from an invalid group/version: g.io/v1";
    let one = client.get(&format!("{all}/a")).await;
    assert_eq!((one.code, one.message()), (500, why));
    for url in [format!("{all}?watch=1"), all] {
        let reply = client.get(&url).await;
        let text =
            format!("storage is (re)initializing: failed to list g.io/v2, Kind=Widget: {why}");
        assert_eq!((reply.code, reply.message()), (429, text.as_str()), "{url}");
    }
    client.delete(&definition).await;
    assert_eq!(client.get(&definition).await.code, 404);
}
