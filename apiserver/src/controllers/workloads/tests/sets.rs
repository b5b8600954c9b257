use serde_json::{Value, json};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_a_replica_set_and_its_pods() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 2)).await;
    let sets = server.list_objects("apps", "replicasets", "default");
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0]["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(
        sets[0]["status"],
        json!({"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2, "observedGeneration": 1, "terminatingReplicas": 0})
    );
    assert_eq!(pods(&server).len(), 2);
    let web = get(&server, "apps", "deployments", "web");
    let status = &web["status"];
    assert_eq!(status["availableReplicas"], 2);
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(web["metadata"]["generation"], 1);
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(status["unavailableReplicas"], Value::Null);
    assert_eq!(status["conditions"][0]["reason"], "MinimumReplicasAvailable");
    let text = format!(
        "ReplicaSet \"{}\" has successfully progressed.",
        sets[0]["metadata"]["name"].as_str().unwrap()
    );
    assert_eq!(status["conditions"][1]["message"], text);
    assert_eq!(reasons(&server, "web"), ["ScalingReplicaSet"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_has_changed() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 2)).await;
    make(&server, &mut client, &format!("{APPS}/statefulsets"), workload("db", 2)).await;
    let mut agent = workload("agent", 1);
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    make(&server, &mut client, &format!("{APPS}/daemonsets"), agent).await;
    let seen = server.revision();
    // Seen by all controllers, and of no importance to any.
    for (plural, name) in [("deployments", "web"), ("statefulsets", "db"), ("daemonsets", "agent")]
    {
        let label = json!({"metadata": {"labels": {"seen": "yes"}}});
        merge(&server, &mut client, &format!("{APPS}/{plural}/{name}"), label).await;
    }
    assert_eq!(server.revision(), seen + 3);
    // Less than the hour after which the Events of the controllers end.
    tokio::time::sleep(std::time::Duration::from_secs(3000)).await;
    settle(&server).await;
    // Only the lease of the node is renewed.
    let leases = server.resource_revision("coordination.k8s.io", "leases");
    assert!(leases > seen + 3);
    for (group, plural) in [
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("apps", "controllerrevisions"),
        ("", "pods"),
        ("", "nodes"),
        ("", "events"),
    ] {
        assert!(server.resource_revision(group, plural) <= seen + 3, "{plural}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_template_replaces_the_pods_of_the_old_one() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/deployments");
    make(&server, &mut client, &url, workload("web", 3)).await;
    let old = pods(&server);
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    merge(&server, &mut client, &format!("{url}/web"), image).await;
    let new = server.list_objects("", "pods", "default");
    assert_eq!(new.len(), 3);
    assert!(new.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "j"));
    assert!(names(&new).iter().all(|name| !old.contains(name)));
    let sets = server.list_objects("apps", "replicasets", "default");
    let mut replicas: Vec<i64> =
        sets.iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect();
    replicas.sort_unstable();
    assert_eq!(replicas, [0, 3]);
    let status = &get(&server, "apps", "deployments", "web")["status"];
    assert_eq!((&status["replicas"], &status["updatedReplicas"]), (&json!(3), &json!(3)));
    // Back again: the old set is taken up, and no third set made.
    let image = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 8080, "protocol": "TCP"}]}]}}}});
    merge(&server, &mut client, &format!("{url}/web"), image).await;
    assert_eq!(server.list_objects("apps", "replicasets", "default").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_broken_new_template_leaves_most_old_pods_alone() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/deployments");
    make(&server, &mut client, &url, workload("web", 4)).await;
    let broken = json!({"spec": {"template": {"metadata": {
        "annotations": {"windlass.dev/pod-state": "NotReady"}}}}});
    merge(&server, &mut client, &format!("{url}/web"), broken).await;
    let status = &get(&server, "apps", "deployments", "web")["status"];
    // A quarter may be missing, and a quarter may be too many.
    assert_eq!(status["availableReplicas"], 3, "{status}");
    assert_eq!(status["replicas"], 5);
    assert_eq!(status["conditions"][0]["status"], "True");
    assert_eq!(status["conditions"][1]["reason"], "ReplicaSetUpdated");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_recreates_is_not_available_without_its_pods() {
    let (server, mut client) = start().await;
    let mut web = workload("web", 1);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    web["spec"]["template"]["metadata"]["annotations"] =
        json!({"windlass.dev/pod-state": "NotReady"});
    make(&server, &mut client, &format!("{APPS}/deployments"), web).await;
    let status = &get(&server, "apps", "deployments", "web")["status"];
    assert_eq!(status["replicas"], 1, "{status}");
    assert_eq!(status["conditions"][0]["reason"], "MinimumReplicasUnavailable");
}

#[tokio::test(start_paused = true)]
async fn a_new_replica_set_that_begins_without_pods_has_no_event() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/deployments");
    let mut web = workload("web", 2);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    make(&server, &mut client, &url, web).await;
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    merge(&server, &mut client, &format!("{url}/web"), image).await;
    let events = server.list_objects("", "events", "default");
    let about = events.iter().filter(|event| event["involvedObject"]["name"] == "web");
    let texts: Vec<&str> = about.filter_map(|event| event["message"].as_str()).collect();
    assert!(texts.len() > 2, "{texts:?}");
    assert!(texts.iter().all(|text| !text.ends_with("from 0 to 0")), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_replica_set_come_back_and_go_with_it() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("rs", 2)).await;
    let before = pods(&server);
    client.delete(&format!("{CORE}/pods/{}", before[0])).await;
    settle(&server).await;
    let after = pods(&server);
    assert_eq!(after.len(), 2);
    assert!(!after.contains(&before[0]) && after.contains(&before[1]));
    let scale = json!({"spec": {"replicas": 0}});
    merge(&server, &mut client, &format!("{APPS}/replicasets/rs"), scale).await;
    assert_eq!(pods(&server), Vec::<String>::new());
    let status = &get(&server, "apps", "replicasets", "rs")["status"];
    assert_eq!(*status, json!({"replicas": 0, "observedGeneration": 2, "terminatingReplicas": 0}));
}

#[tokio::test(start_paused = true)]
async fn without_replica_sets_a_deployment_is_reported_available_at_once() {
    let set = "*,deployment".parse().unwrap();
    let (server, mut client) = start_with(set).await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 2)).await;
    assert_eq!(get(&server, "apps", "deployments", "web")["status"]["availableReplicas"], 2);
    assert_eq!(pods(&server), Vec::<String>::new());
}

/// Returns a `StatefulSet` with a claim for each Pod.
fn stateful(name: &str, replicas: u32) -> Value {
    let mut set = workload(name, replicas);
    set["spec"]["serviceName"] = json!(name);
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    set
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_makes_pods_and_claims_in_order() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{APPS}/statefulsets"), stateful("db", 2)).await;
    assert_eq!(pods(&server), ["db-0", "db-1"]);
    let claims = server.list_objects("", "persistentvolumeclaims", "default");
    assert_eq!(names(&claims), ["data-db-0", "data-db-1"]);
    assert_eq!(claims[0]["metadata"]["labels"], json!({"app": "db"}));
    let pod = get(&server, "", "pods", "db-1");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"], "db-1");
    assert_eq!(
        (&pod["spec"]["hostname"], &pod["spec"]["subdomain"]),
        (&json!("db-1"), &json!("db"))
    );
    assert_eq!(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-db-1");
    let status = &get(&server, "apps", "statefulsets", "db")["status"];
    let revision = &status["updateRevision"];
    assert_eq!(
        *status,
        json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "currentReplicas": 2,
            "updatedReplicas": 2, "collisionCount": 0, "observedGeneration": 1,
            "currentRevision": revision, "updateRevision": revision})
    );
    assert_eq!(pod["metadata"]["labels"]["controller-revision-hash"], *revision);
    assert_eq!(reasons(&server, "db"), ["SuccessfulCreate"; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_waits_for_each_pod_and_shrinks_from_the_end() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/statefulsets");
    let mut slow = workload("db", 3);
    slow["spec"]["template"] =
        template("db", "Always", json!({"windlass.dev/pod-state": "NotReady"}));
    make(&server, &mut client, &url, slow).await;
    assert_eq!(pods(&server), ["db-0"], "the second waits for the first");
    let ready = json!({"metadata": {"annotations": {"windlass.dev/pod-state": "Running"}}});
    for (name, wanted) in [("db-0", 2), ("db-1", 3), ("db-2", 3)] {
        merge(&server, &mut client, &format!("{CORE}/pods/{name}"), ready.clone()).await;
        assert_eq!(pods(&server).len(), wanted);
    }
    merge(&server, &mut client, &format!("{url}/db"), json!({"spec": {"replicas": 1}})).await;
    assert_eq!(pods(&server), ["db-0"]);
    client.delete(&format!("{CORE}/pods/db-0")).await;
    settle(&server).await;
    assert_eq!(pods(&server), ["db-0"], "it comes back under its name");
}

#[tokio::test(start_paused = true)]
async fn an_update_of_a_stateful_set_begins_at_the_end_and_stops_at_the_partition() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/statefulsets");
    make(&server, &mut client, &url, workload("db", 3)).await;
    let image = |pod: &str| {
        get(&server, "", "pods", pod)["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    let mut patch = json!({"spec": {
        "updateStrategy": {"rollingUpdate": {"partition": 2}},
        "template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    merge(&server, &mut client, &format!("{url}/db"), patch.clone()).await;
    assert_eq!(["db-0", "db-1", "db-2"].map(image), ["i", "i", "j"]);
    let status = get(&server, "apps", "statefulsets", "db")["status"].clone();
    assert_ne!(status["currentRevision"], status["updateRevision"]);
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(2), &json!(1)));
    client.delete(&format!("{CORE}/pods/db-0")).await;
    settle(&server).await;
    assert_eq!(image("db-0"), "i", "below the partition the old template counts");
    patch["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = json!(0);
    merge(&server, &mut client, &format!("{url}/db"), patch).await;
    assert_eq!(["db-0", "db-1", "db-2"].map(image), ["j", "j", "j"]);
    let status = get(&server, "apps", "statefulsets", "db")["status"].clone();
    assert_eq!(status["currentRevision"], status["updateRevision"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_each_node() {
    let (server, mut client) = start().await;
    let mut agent = workload("agent", 1);
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    make(&server, &mut client, &format!("{APPS}/daemonsets"), agent).await;
    let status = |server: &ApiServer| get(server, "apps", "daemonsets", "agent")["status"].clone();
    assert_eq!(
        status(&server),
        json!({"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0,
            "numberReady": 1, "numberAvailable": 1, "updatedNumberScheduled": 1,
            "observedGeneration": 1})
    );
    make(&server, &mut client, "/api/v1/nodes", json!({"metadata": {"name": "other"}})).await;
    assert_eq!(status(&server)["numberReady"], 2);
    let nodes: Vec<Value> = server
        .list_objects("", "pods", "default")
        .iter()
        .map(|pod| pod["spec"]["nodeName"].clone())
        .collect();
    assert!(nodes.contains(&json!("other")) && nodes.contains(&json!("windlass")), "{nodes:?}");
    client.delete("/api/v1/nodes/other").await;
    settle(&server).await;
    assert_eq!(pods(&server).len(), 1);
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}});
    merge(&server, &mut client, &format!("{APPS}/daemonsets/agent"), image).await;
    let pods = server.list_objects("", "pods", "default");
    assert_eq!((pods.len(), &pods[0]["spec"]["containers"][0]["image"]), (1, &json!("j")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_available_after_it_has_been_ready_for_long_enough() {
    let (server, mut client) = start().await;
    let mut web = workload("web", 1);
    web["spec"]["minReadySeconds"] = json!(30);
    make(&server, &mut client, &format!("{APPS}/deployments"), web).await;
    let status = |server: &ApiServer| get(server, "apps", "deployments", "web")["status"].clone();
    assert_eq!(
        (&status(&server)["readyReplicas"], &status(&server)["availableReplicas"]),
        (&json!(1), &Value::Null)
    );
    tokio::time::sleep(std::time::Duration::from_secs(31)).await;
    settle(&server).await;
    assert_eq!(status(&server)["availableReplicas"], 1);
}

#[tokio::test(start_paused = true)]
async fn more_pods_than_one_look_makes_are_made_by_the_next_ones() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("many", 50)).await;
    let mut set = workload("all", 45);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set["spec"]["serviceName"] = json!("all");
    make(&server, &mut client, &format!("{APPS}/statefulsets"), set).await;
    let job = json!({"metadata": {"name": "wide"}, "spec": {
        "parallelism": 43, "completions": 43, "completionMode": "Indexed",
        "template": template("wide", "Never", json!({"windlass.dev/run-seconds": "1000"}))}});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job).await;
    settle(&server).await;
    let count = |prefix: &str| pods(&server).iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!((count("many-"), count("all-"), count("wide-")), (50, 45, 43));
    merge(
        &server,
        &mut client,
        &format!("{APPS}/replicasets/many"),
        json!({"spec": {"replicas": 1}}),
    )
    .await;
    assert_eq!(count("many-"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_revision_for_each_template_and_goes_back_to_one() {
    let (server, mut client) = start().await;
    let url = format!("{APPS}/daemonsets");
    let mut agent = workload("agent", 1);
    agent["spec"].as_object_mut().unwrap().remove("replicas");
    agent["spec"]["revisionHistoryLimit"] = json!(1);
    make(&server, &mut client, &url, agent).await;
    let revisions = || {
        let mut all = server.list_objects("apps", "controllerrevisions", "default");
        all.sort_by_key(|one| one["revision"].as_i64());
        all
    };
    let first = revisions()[0].clone();
    assert_eq!((revisions().len(), &first["revision"]), (1, &json!(1)));
    assert_eq!(first["data"]["spec"]["template"]["$patch"], "replace");
    let pod = &server.list_objects("", "pods", "default")[0];
    let label = "controller-revision-hash";
    assert_eq!(first["metadata"]["labels"][label], pod["metadata"]["labels"][label]);
    let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    merge(&server, &mut client, &format!("{url}/agent"), image("j")).await;
    assert_eq!(revisions().len(), 2);
    // As `kubectl rollout undo` does.
    let undo = first["data"].to_string();
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let reply = client.send("PATCH", &format!("{url}/agent"), &strategic, undo).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    settle(&server).await;
    let names: Vec<Value> = revisions().iter().map(|one| one["metadata"]["name"].clone()).collect();
    assert_eq!((names.len(), &names[1]), (2, &first["metadata"]["name"]));
    assert_eq!(revisions()[1]["revision"], 3);
    merge(&server, &mut client, &format!("{url}/agent"), image("k")).await;
    assert_eq!(revisions().len(), 2, "one besides the present one");
}
