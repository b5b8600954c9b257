use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::http::tests::webhooks::support::{Hooks, MUTATING, VALIDATING, configure, hook, patch};

/// Rules for objects that workloads create.
fn rules(resources: &[&str]) -> Value {
    json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
        "operations": ["CREATE"]}]})
}

/// Starts a server with all controllers and these webhooks.
async fn with(hooks: &Hooks) -> (ApiServer, Client) {
    let server = hooks.builder().controller_set(ControllerSet::ALL).start();
    let client = Client::of(&server).await;
    (server, client)
}

/// Waits until time passes without any work that is due now.
async fn rest(server: &ApiServer) {
    settle(server).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    settle(server).await;
}

/// Returns a Job with a single Pod.
fn job(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"template": template(name, "Never", json!({}))}})
}

#[tokio::test(start_paused = true)]
async fn webhooks_change_and_see_what_each_workload_creates() {
    let hooks = Hooks::answering(|request| {
        if request["name"] == "" || request["object"]["metadata"]["labels"]["seen"].is_null() {
            return patch(json!([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}]));
        }
        json!({"allowed": true})
    });
    let (server, mut client) = with(&hooks).await;
    configure(&mut client, MUTATING, "c", &[hook("a", rules(&["pods", "replicasets", "jobs"]))])
        .await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 3)).await;
    make(&server, &mut client, &format!("{APPS}/statefulsets"), workload("db", 2)).await;
    make(&server, &mut client, &format!("{APPS}/daemonsets"), {
        let mut set = workload("agent", 1);
        set["spec"].as_object_mut().unwrap().remove("replicas");
        set
    })
    .await;
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("once")).await;
    rest(&server).await;
    let pods = server.list_objects("", "pods", "default");
    assert_eq!(pods.len(), 7, "{:?}", names(&pods));
    let unseen = pods.iter().filter(|pod| pod["metadata"]["labels"]["seen"] != "yes");
    assert_eq!(names(&unseen.cloned().collect::<Vec<_>>()), [""; 0]);
    let sets = server.list_objects("apps", "replicasets", "default");
    assert_eq!(sets[0]["metadata"]["labels"]["seen"], "yes");
    let mut users: Vec<(String, String)> = hooks
        .requests()
        .iter()
        .map(|request| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&request["userInfo"]["username"]), text(&request["kind"]["kind"]))
        })
        .collect();
    users.dedup();
    let account = |name: &str, kind: &str| {
        (format!("system:serviceaccount:kube-system:{name}"), kind.to_owned())
    };
    assert_eq!(
        users,
        [
            account("deployment-controller", "ReplicaSet"),
            account("replicaset-controller", "Pod"),
            account("statefulset-controller", "Pod"),
            account("daemon-set-controller", "Pod"),
            ("system:admin".to_owned(), "Job".to_owned()),
            account("job-controller", "Pod"),
        ]
    );
    let groups = &hooks.requests()[0]["userInfo"]["groups"];
    assert_eq!(
        groups,
        &json!([
            "system:serviceaccounts",
            "system:serviceaccounts:kube-system",
            "system:authenticated"
        ])
    );
    assert_eq!(get(&server, "apps", "deployments", "web")["status"]["readyReplicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_refused_pod_is_an_event_and_a_condition_and_is_tried_again() {
    let allows = Arc::new(AtomicBool::new(false));
    let decided = allows.clone();
    let hooks = Hooks::answering(move |_| match decided.load(Ordering::SeqCst) {
        true => json!({"allowed": true}),
        false => json!({"allowed": false, "status": {"message": "no"}}),
    });
    let (server, mut client) = with(&hooks).await;
    configure(&mut client, VALIDATING, "c", &[hook("a", rules(&["pods"]))]).await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 1)).await;
    make(&server, &mut client, &format!("{APPS}/statefulsets"), workload("db", 1)).await;
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("once")).await;
    rest(&server).await;
    assert_eq!(pods(&server), [""; 0]);
    let why = "admission webhook \"a.example.com\" denied the request: no";
    let set = &server.list_objects("apps", "replicasets", "default")[0];
    let condition = &set["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"], &condition["message"]),
        (&json!("ReplicaFailure"), &json!("FailedCreate"), &json!(why))
    );
    let web = get(&server, "apps", "deployments", "web");
    assert_eq!(web["status"]["conditions"][2]["message"], why);
    let set = set["metadata"]["name"].as_str().unwrap();
    for (name, text) in [
        (set, format!("Error creating: {why}")),
        ("once", format!("Error creating: {why}")),
        ("db", format!("create Pod db-0 in StatefulSet db failed error: {why}")),
    ] {
        let mut events = server.list_objects("", "events", "default");
        events.retain(|event| event["involvedObject"]["name"] == *name);
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(
            (&event["type"], &event["reason"], &event["message"]),
            (&json!("Warning"), &json!("FailedCreate"), &json!(text))
        );
    }
    // 5 s later, and 10 s after that: the same event, counted.
    tokio::time::sleep(Duration::from_secs(16)).await;
    settle(&server).await;
    let mut events = server.list_objects("", "events", "default");
    events.retain(|event| event["involvedObject"]["name"] == "once");
    assert_eq!((events.len(), &events[0]["count"]), (1, &json!(3)));
    allows.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(60)).await;
    settle(&server).await;
    assert_eq!(pods(&server).len(), 3);
    let set = &server.list_objects("apps", "replicasets", "default")[0];
    assert_eq!(set["status"].get("conditions"), None);
}

#[tokio::test(start_paused = true)]
async fn policies_judge_the_account_of_the_controller() {
    let (server, mut client) = start().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "p"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["pods"], "operations": ["CREATE"]}]},
        "validations": [{"expression":
            "request.userInfo.username != 'system:serviceaccount:kube-system:replicaset-controller'"}]}});
    let binding = json!({"metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    make(&server, &mut client, &format!("{group}/validatingadmissionpolicies"), policy).await;
    make(&server, &mut client, &format!("{group}/validatingadmissionpolicybindings"), binding)
        .await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("web", 1)).await;
    make(&server, &mut client, &format!("{APPS}/statefulsets"), workload("db", 1)).await;
    rest(&server).await;
    assert_eq!(pods(&server), ["db-0"]);
    assert_eq!(reasons(&server, "web"), ["FailedCreate"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_delays_only_the_workloads_that_wait_for_it() {
    let hooks = Hooks::new(|_, review| {
        let hangs = review["request"]["object"]["metadata"]["labels"]["app"] == "slow";
        (!hangs).then(|| {
            crate::http::tests::webhooks::support::answer(review, json!({"allowed": true}))
        })
    });
    let (server, mut client) = with(&hooks).await;
    let mut fields = rules(&["pods"]);
    fields["timeoutSeconds"] = json!(3);
    configure(&mut client, VALIDATING, "c", &[hook("a", fields)]).await;
    let begun = tokio::time::Instant::now();
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("slow", 1)).await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("quick", 1)).await;
    assert_eq!((pods(&server).len(), begun.elapsed().as_secs()), (1, 0));
    tokio::time::sleep(Duration::from_secs(4)).await;
    settle(&server).await;
    assert_eq!(reasons(&server, "slow"), ["FailedCreate"]);
    let event = &server.list_objects("", "events", "default").into_iter();
    let mut late = event.clone().filter(|event| event["reason"] == "FailedCreate");
    let text = late.next().unwrap()["message"].as_str().unwrap().to_owned();
    assert!(text.contains("context deadline exceeded"), "{text}");
    server.delete_object("apps", "replicasets", "default", "slow").unwrap();
    rest(&server).await;
    assert_eq!(pods(&server).len(), 1);
}
