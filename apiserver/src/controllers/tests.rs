use serde_json::{Value, json};

use crate::http::test_support::{CRDS, Client, DEPLOYMENTS, MAPS, WIDGETS, widgets};
use crate::{ApiServer, Builder};

fn server(stand_ins: bool) -> ApiServer {
    Builder::default().seed(1).epoch(1_767_225_600).stand_ins(stand_ins).start()
}

async fn start() -> (ApiServer, Client) {
    let server = server(false);
    let client = Client::of(&server).await;
    (server, client)
}

/// Waits until the controllers have done all their work.
async fn settle(server: &ApiServer) {
    let mut seen = 0;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        if server.revision() != seen {
            seen = server.revision();
        }
    }
}

fn maps(server: &ApiServer, namespace: &str) -> Vec<String> {
    let all = server.list_objects("", "configmaps", namespace);
    let names = all.iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name != "kube-root-ca.crt").collect()
}

fn owner(kind: &str, object: &Value, block: bool) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "name": object["metadata"]["name"],
           "uid": object["metadata"]["uid"], "blockOwnerDeletion": block})
}

fn owned(name: &str, owners: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

async fn make(client: &mut Client, name: &str, owners: &[Value]) -> Value {
    let reply = client.post(MAPS, owned(name, owners)).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    reply.value
}

#[tokio::test(start_paused = true)]
async fn every_namespace_gets_a_service_account_and_the_root_certificate() {
    let (server, mut client) = start().await;
    let has = |namespace: &str| {
        let account = server.get_object("", "serviceaccounts", namespace, "default").is_some();
        account && server.get_object("", "configmaps", namespace, "kube-root-ca.crt").is_some()
    };
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert!(has(namespace), "{namespace} from the start");
    }
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "new"}})).await;
    settle(&server).await;
    assert!(has("new"));
    client.delete("/api/v1/namespaces/new/serviceaccounts/default").await;
    settle(&server).await;
    assert!(has("new"), "a lost one comes back");
}

#[tokio::test(start_paused = true)]
async fn dependents_go_in_the_background_down_the_whole_line() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    let b = make(&mut client, "b", &[owner("ConfigMap", &a, true)]).await;
    make(&mut client, "c", &[owner("ConfigMap", &b, true)]).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), ["a", "b", "c"]);
    client.delete(&format!("{MAPS}/a")).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_owner_with_another_uid_or_in_another_namespace_is_none() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    let mut wrong = owner("ConfigMap", &a, false);
    wrong["uid"] = json!("00000000-0000-0000-0000-000000000000");
    make(&mut client, "wrong-uid", &[wrong]).await;
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    client.post(elsewhere, owned("cross", &[owner("ConfigMap", &a, false)])).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), ["a"]);
    assert_eq!(maps(&server, "kube-public"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_lost_owner_among_several_is_forgotten() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    let b = make(&mut client, "b", &[]).await;
    let owners = [owner("ConfigMap", &a, true), owner("ConfigMap", &b, true)];
    make(&mut client, "c", &owners).await;
    client.delete(&format!("{MAPS}/a")).await;
    settle(&server).await;
    let c = server.get_object("", "configmaps", "default", "c").unwrap();
    let left = c["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["name"]), (1, &json!("b")));
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_those_that_block() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    let mut blocked = owned("blocks", &[owner("ConfigMap", &a, true)]);
    blocked["metadata"]["finalizers"] = json!(["x.io/hold"]);
    client.post(MAPS, blocked).await;
    make(&mut client, "free", &[owner("ConfigMap", &a, false)]).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    client.delete_with(&format!("{MAPS}/a"), foreground).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), ["a", "blocks"], "held by a finalizer");
    client.merge(&format!("{MAPS}/blocks"), json!({"metadata": {"finalizers": null}})).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn orphans_lose_their_owner_and_stay() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    make(&mut client, "b", &[owner("ConfigMap", &a, true)]).await;
    client.delete_with(&format!("{MAPS}/a"), json!({"propagationPolicy": "Orphan"})).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), ["b"]);
    let b = server.get_object("", "configmaps", "default", "b").unwrap();
    assert!(b["metadata"].get("ownerReferences").is_none());
}

#[tokio::test(start_paused = true)]
async fn custom_resources_own_and_are_owned_and_go_with_their_definition() {
    let (server, mut client) = start().await;
    assert_eq!(client.post(CRDS, widgets()).await.code, 201);
    let widget =
        json!({"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
    let widget = client.post(WIDGETS, widget).await;
    assert_eq!(widget.code, 201, "{}", widget.text);
    let mut reference = owner("Widget", &widget.value, true);
    reference["apiVersion"] = json!("g.io/v1");
    make(&mut client, "of-widget", &[reference]).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), ["of-widget"]);
    client.delete(&format!("{CRDS}/widgets.g.io")).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_its_content_and_says_what_it_waits_for() {
    let (server, mut client) = start().await;
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let inside = "/api/v1/namespaces/n/configmaps";
    let held = json!({"metadata": {"name": "held", "finalizers": ["x.io/hold"]}});
    client.post(inside, held).await;
    client.post(inside, json!({"metadata": {"name": "plain"}})).await;
    client.delete("/api/v1/namespaces/n").await;
    settle(&server).await;
    assert_eq!(maps(&server, "n"), ["held"]);
    let namespace = server.get_object("", "namespaces", "", "n").unwrap();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let conditions = namespace["status"]["conditions"].as_array().unwrap();
    assert_eq!(
        conditions[3]["message"],
        "Some resources are remaining: configmaps has 1 resource instances"
    );
    client.merge(&format!("{inside}/held"), json!({"metadata": {"finalizers": null}})).await;
    settle(&server).await;
    assert_eq!(server.get_object("", "namespaces", "", "n"), None);
}

#[tokio::test(start_paused = true)]
async fn stand_ins_report_deployments_available_and_only_then() {
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    for stand_ins in [false, true] {
        let server = server(stand_ins);
        let mut client = Client::of(&server).await;
        assert_eq!(client.post(DEPLOYMENTS, deployment.clone()).await.code, 201);
        settle(&server).await;
        let status = |server: &ApiServer| {
            server.get_object("apps", "deployments", "default", "d").unwrap()["status"].clone()
        };
        if !stand_ins {
            assert_eq!(status(&server), json!({}));
            continue;
        }
        assert_eq!(status(&server)["availableReplicas"], 2);
        assert_eq!(status(&server)["observedGeneration"], 1);
        assert_eq!(status(&server)["conditions"][0]["type"], "Available");
        client.merge(&format!("{DEPLOYMENTS}/d"), json!({"spec": {"replicas": 5}})).await;
        settle(&server).await;
        assert_eq!(status(&server)["readyReplicas"], 5);
        assert_eq!(status(&server)["observedGeneration"], 2);
        let revision = server.revision();
        settle(&server).await;
        assert_eq!(server.revision(), revision, "and then there is peace");
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_with_the_right_label_widens_the_aggregated_one() {
    let (server, mut client) = start().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let rules = json!([{"verbs": ["get"], "apiGroups": ["g.io"], "resources": ["widgets"]}]);
    let role = json!({"metadata": {"name": "w", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": rules});
    assert_eq!(client.post(roles, role).await.code, 201);
    settle(&server).await;
    for name in ["view", "edit", "admin"] {
        let role =
            server.get_object("rbac.authorization.k8s.io", "clusterroles", "", name).unwrap();
        assert!(role["rules"].as_array().unwrap().contains(&rules[0]), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_is_collected_after_a_restart_too() {
    let (server, mut client) = start().await;
    let a = make(&mut client, "a", &[]).await;
    make(&mut client, "b", &[owner("ConfigMap", &a, true)]).await;
    server.restart().await;
    let mut client = Client::of(&server).await;
    client.delete(&format!("{MAPS}/a")).await;
    settle(&server).await;
    assert_eq!(maps(&server, "default"), Vec::<String>::new());
}

#[test]
fn a_panic_costs_one_piece_of_work_and_not_the_task() {
    assert_eq!(super::guard("x", || -> u8 { panic!("on purpose") }), None);
    assert_eq!(super::guard("x", || 5), Some(5));
}

#[tokio::test(start_paused = true)]
async fn without_controllers_the_server_is_a_lone_kube_apiserver() {
    let list = "serviceaccount";
    let names = |set: crate::ControllerSet| {
        let server = Builder::default().seed(1).controller_set(set).start();
        let has = |group: &str, kind: &str, namespace: &str, name: &str| {
            server.get_object(group, kind, namespace, name)
        };
        let roles = "rbac.authorization.k8s.io";
        let view = has(roles, "clusterroles", "", "view").unwrap();
        [
            has("", "configmaps", "default", "kube-root-ca.crt").is_some(),
            has("", "serviceaccounts", "default", "default").is_some(),
            view["rules"].as_array().is_some_and(|rules| !rules.is_empty()),
        ]
    };
    assert_eq!(names(crate::ControllerSet::NONE), [false; 3]);
    assert_eq!(names(crate::ControllerSet::default()), [true; 3]);
    assert_eq!(names(list.parse().unwrap()), [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_waits_for_the_pods_that_use_it() {
    let (server, mut client) = start().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let pods = "/api/v1/namespaces/default/pods";
    let claim = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    };
    for name in ["used", "free"] {
        assert_eq!(client.post(claims, claim(name)).await.code, 201);
    }
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "used"}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i"}], "volumes": [volume]}});
    assert_eq!(client.post(pods, pod).await.code, 201);
    for name in ["used", "free"] {
        assert_eq!(client.delete(&format!("{claims}/{name}")).await.code, 200);
    }
    settle(&server).await;
    assert_eq!(client.get(&format!("{claims}/free")).await.code, 404);
    let held = client.get(&format!("{claims}/used")).await;
    assert_eq!(held.value["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    client.delete(&format!("{pods}/p")).await;
    settle(&server).await;
    assert_eq!(client.get(&format!("{claims}/used")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_volume_goes_at_once_unless_it_is_bound_and_a_class_unless_it_is_named() {
    let (server, mut client) = start().await;
    let volumes = "/api/v1/persistentvolumes";
    let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
    let class = json!({"metadata": {"name": "c"}, "driverName": "d", "parameters": {"a": "b"}});
    assert_eq!(client.post(classes, class).await.code, 201);
    let volume = json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d", "volumeHandle": "h"}, "volumeAttributesClassName": "c"}});
    assert_eq!(client.post(volumes, volume).await.code, 201);
    let bound = |phase: &str| json!({"status": {"phase": phase}});
    client.merge(&format!("{volumes}/v/status"), bound("Bound")).await;
    client.delete(&format!("{volumes}/v")).await;
    client.delete(&format!("{classes}/c")).await;
    settle(&server).await;
    assert_eq!(client.get(&format!("{volumes}/v")).await.code, 200);
    assert_eq!(client.get(&format!("{classes}/c")).await.code, 200);
    client.merge(&format!("{volumes}/v/status"), bound("Released")).await;
    settle(&server).await;
    assert_eq!(client.get(&format!("{volumes}/v")).await.code, 404);
    assert_eq!(client.get(&format!("{classes}/c")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn without_its_controller_a_deleted_claim_stays_as_on_a_lone_server() {
    let server = Builder::default().seed(1).controllers(false).start();
    let mut client = Client::of(&server).await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"metadata": {"name": "a"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    client.post(claims, claim).await;
    let deleted = client.delete(&format!("{claims}/a")).await;
    assert!(deleted.value["metadata"]["deletionTimestamp"].is_string(), "{}", deleted.text);
    assert_eq!(client.get(&format!("{claims}/a")).await.code, 200);
    let free = json!({"metadata": {"finalizers": null}});
    assert_eq!(client.merge(&format!("{claims}/a"), free).await.code, 200);
    assert_eq!(client.get(&format!("{claims}/a")).await.code, 404);
}
