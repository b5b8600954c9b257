use serde_json::{Value, json};

use crate::http::test_support::*;

fn intent(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

/// Returns `manager/operation/subresource` of every owner.
fn owners(reply: &Reply) -> Vec<String> {
    let entries = reply.value["metadata"]["managedFields"].as_array();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let name = |entry: &Value| {
        format!(
            "{}/{}/{}",
            text(entry, "manager"),
            text(entry, "operation"),
            text(entry, "subresource")
        )
    };
    entries.into_iter().flatten().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn apply_creates_updates_and_gives_up_what_it_no_longer_names() {
    let (_server, mut client) = start().await;
    let url = format!("{MAPS}/a?fieldManager=m1");
    let made = client.patch("apply", &url, intent(json!({"k": "1", "l": "2"}))).await;
    assert_eq!((made.code, owners(&made)), (201, vec!["m1/Apply/".to_owned()]));
    let same = client.patch("apply", &url, intent(json!({"k": "1", "l": "2"}))).await;
    assert_eq!((same.code, same.version()), (200, made.version()), "nothing changed");
    let less = client.patch("apply", &url, intent(json!({"k": "1"}))).await;
    assert_eq!(less.value["data"], json!({"k": "1"}));
}

#[tokio::test(start_paused = true)]
async fn apply_conflicts_with_another_manager_until_forced() {
    let (_server, mut client) = start().await;
    client.patch("apply", &format!("{MAPS}/a?fieldManager=m1"), intent(json!({"k": "1"}))).await;
    let other = format!("{MAPS}/a?fieldManager=m2");
    let reply = client.patch("apply", &other, intent(json!({"k": "2"}))).await;
    assert_eq!(
        (reply.code, reply.message()),
        (409, "Apply failed with 1 conflict: conflict with \"m1\": .data.k")
    );
    let cause = &reply.value["details"]["causes"][0];
    assert_eq!(
        (&cause["reason"], &cause["field"]),
        (&json!("FieldManagerConflict"), &json!(".data.k"))
    );
    let forced =
        client.patch("apply", &format!("{other}&force=true"), intent(json!({"k": "2"}))).await;
    assert_eq!((forced.code, owners(&forced)), (200, vec!["m2/Apply/".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn apply_bodies_must_say_what_they_are_and_nothing_about_owners() {
    let (_server, mut client) = start().await;
    let url = format!("{MAPS}/a?fieldManager=m");
    let mut owned = intent(json!({}));
    owned["metadata"]["managedFields"] = json!([]);
    let mut versioned = intent(json!({}));
    versioned["apiVersion"] = json!("v2");
    let mut nameless = intent(json!({}));
    nameless["metadata"] = json!({});
    let mut known = intent(json!({}));
    known["metadata"]["uid"] = json!("u");
    for (body, code, message) in [
        (owned, 400, "metadata.managedFields must be nil"),
        (versioned, 400, "invalid object type: /v2, Kind=ConfigMap"),
        (
            nameless,
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            known,
            409,
            "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid u, and no existing object was found",
        ),
    ] {
        let reply = client.patch("apply", &url, body).await;
        assert_eq!((reply.code, reply.message()), (code, message));
    }
    let anonymous = client.patch("apply", &format!("{MAPS}/a"), intent(json!({}))).await;
    assert_eq!(
        anonymous.message(),
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
}

#[tokio::test(start_paused = true)]
async fn updates_are_owned_by_the_agent_and_status_apart() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    let media = [("content-type", "application/json"), ("user-agent", "robot/1.2 (x)")];
    let body = widget("a", json!({"size": 1})).to_string();
    let made = client.send("POST", WIDGETS, &media, body).await;
    assert_eq!(owners(&made), ["robot/Update/"]);
    let status = format!("{WIDGETS}/a/status?fieldManager=reporter");
    let reported = client.merge(&status, json!({"status": {"ready": 1}})).await;
    assert_eq!(owners(&reported), ["reporter/Update/status", "robot/Update/"].map(str::to_owned));
}

#[tokio::test(start_paused = true)]
async fn an_object_created_owning_nothing_is_not_tracked() {
    let (_server, mut client) = start().await;
    let made = client.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!(owners(&made), Vec::<String>::new());
    let patched = client.merge(&format!("{MAPS}/a"), json!({"data": {"r": "1"}})).await;
    assert_eq!(owners(&patched), Vec::<String>::new());
    let applied = client
        .patch("apply", &format!("{MAPS}/a?fieldManager=app"), intent(json!({"q": "1"})))
        .await;
    assert_eq!(owners(&applied), ["app/Apply/", "before-first-apply/Update/"].map(str::to_owned));
}

#[tokio::test(start_paused = true)]
async fn unknown_and_repeated_fields_warn_or_fail_as_asked() {
    let (_server, mut client) = start().await;
    let body = "{\"metadata\":{\"name\":\"a\"},\"bogus\":1,\"data\":{\"k\":\"1\",\"k\":\"2\"}}";
    let warned = client.send("POST", &format!("{MAPS}?dryRun=All"), &[], body).await;
    assert_eq!(
        warned.warnings(),
        ["299 - \"unknown field \\\"bogus\\\"\"", "299 - \"duplicate field \\\"data.k\\\"\""]
    );
    let quiet =
        client.send("POST", &format!("{MAPS}?dryRun=All&fieldValidation=Ignore"), &[], body).await;
    assert_eq!(quiet.warnings(), Vec::<&str>::new());
    let strict = client.send("POST", &format!("{MAPS}?fieldValidation=Strict"), &[], body).await;
    assert_eq!(
        (strict.code, strict.message()),
        (
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"bogus\", duplicate field \"data.k\""
        )
    );
    client.post(MAPS, map("a")).await;
    let patched =
        client.merge(&format!("{MAPS}/a?fieldValidation=Strict"), json!({"bogus": 1})).await;
    assert_eq!(
        (patched.code, patched.value["details"]["causes"][0]["field"].as_str()),
        (422, Some("patch"))
    );
    assert!(patched.message().ends_with("strict decoding error: unknown field \"bogus\""));
}

#[tokio::test(start_paused = true)]
async fn json_patches_test_and_fail_without_details() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let url = format!("{MAPS}/a");
    let wrong = json!([{"op": "test", "path": "/data/k", "value": "x"}]);
    let reply = client.patch("json", &url, wrong).await;
    assert_eq!(
        (reply.code, reply.message(), &reply.value["details"]),
        (422, "the server rejected our request due to an error in our request", &json!({}))
    );
    let right = json!([{"op": "test", "path": "/data/k", "value": "v"}, {"op": "add", "path": "/data/l", "value": "w"}]);
    assert_eq!(client.patch("json", &url, right).await.value["data"], json!({"k": "v", "l": "w"}));
    let reply = client.patch("json", &url, json!({"op": "add"})).await;
    assert_eq!(
        reply.message(),
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    );
    let many = Value::Array(vec![json!({"op": "test", "path": "/data/k", "value": "v"}); 10_001]);
    assert_eq!(client.patch("json", &url, many).await.code, 413);
}

#[tokio::test(start_paused = true)]
async fn strategic_patches_merge_lists_by_their_keys() {
    let (_server, mut client) = start().await;
    client.post(DEPLOYMENTS, deployment("d", 1)).await;
    let sidecar =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "b"}]}}}});
    let patched = client.patch("strategic-merge", &format!("{DEPLOYMENTS}/d"), sidecar).await;
    let containers = patched.value["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let names: Vec<_> = containers.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["side", "main"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_version_in_a_patch_must_be_the_present_one() {
    let (_server, mut client) = start().await;
    let made = client.post(MAPS, map("a")).await;
    let url = format!("{MAPS}/a");
    let with =
        |version: &str| json!({"metadata": {"resourceVersion": version}, "data": {"x": "y"}});
    assert_eq!(client.merge(&url, with("1")).await.code, 409);
    assert_eq!(client.merge(&url, with(&made.version().to_string())).await.code, 200);
    let junk = client.merge(&url, with("abc")).await;
    assert_eq!(
        (junk.code, junk.message()),
        (500, "strconv.ParseUint: parsing \"abc\": invalid syntax")
    );
}

#[tokio::test(start_paused = true)]
async fn tables_and_discovery_are_served_as_kubectl_asks_for_them() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let reply = client.send("GET", MAPS, &[("accept", table)], "").await;
    assert_eq!(
        (&reply.value["kind"], &reply.value["rows"][0]["cells"][0]),
        (&json!("Table"), &json!("a"))
    );
    let bad =
        client.send("GET", &format!("{MAPS}?includeObject=All"), &[("accept", table)], "").await;
    assert_eq!(bad.code, 400);
    let aggregated =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let reply = client.send("GET", "/apis", &[("accept", aggregated)], "").await;
    assert_eq!(reply.value["kind"], "APIGroupDiscoveryList");
    assert_eq!(
        reply.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    assert_eq!(
        (&reply.headers["vary"], &reply.headers["cache-control"]),
        (&"Accept".parse().unwrap(), &"public".parse().unwrap())
    );
    let tag = reply.headers["etag"].to_str().unwrap().to_owned();
    let again =
        client.send("GET", "/apis", &[("accept", aggregated), ("if-none-match", &tag)], "").await;
    assert_eq!((again.code, again.text.as_str()), (304, ""));
    client.post(CRDS, widgets()).await;
    let changed =
        client.send("GET", "/apis", &[("accept", aggregated), ("if-none-match", &tag)], "").await;
    assert_eq!(changed.code, 200, "a new kind changes the document");
    assert_eq!(client.get("/apis/g.io/v1").await.value["kind"], "APIResourceList");
    assert!(client.get("/openapi/v3").await.text.contains("apis/g.io/v1"));
}

#[tokio::test(start_paused = true)]
async fn a_scale_to_zero_leaves_the_replicas_without_an_owner() {
    let (_server, mut client) = start().await;
    let url = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}});
    let spec =
        json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    client.post(url, json!({"metadata": {"name": "d"}, "spec": spec})).await;
    for (replicas, owners) in [(2, 2), (0, 1)] {
        let scale = json!({"spec": {"replicas": replicas}});
        client.patch("merge", &format!("{url}/d/scale"), scale).await;
        let held = client.get(&format!("{url}/d")).await.value;
        assert_eq!(held["spec"]["replicas"], replicas);
        let managers = held["metadata"]["managedFields"].as_array().map_or(0, Vec::len);
        assert_eq!(managers, owners, "{replicas}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_applied_number_with_a_fraction_is_told_as_the_converter_does() {
    let (_server, mut client) = start().await;
    let url = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=m";
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1.5}});
    let reply = client.patch("apply", url, body).await;
    assert!(reply.message().ends_with("cannot convert float64 to int32"), "{}", reply.text);
}
