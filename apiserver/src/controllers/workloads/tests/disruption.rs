//! Disruption budgets, and evictions that they allow.

use serde_json::{Value, json};

use super::*;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn budget(name: &str, limit: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    for (field, value) in limit.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn status(server: &ApiServer, name: &str) -> Value {
    get(server, "policy", "poddisruptionbudgets", name)["status"].clone()
}

async fn evict(server: &ApiServer, client: &mut Client, name: &str) -> u16 {
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let reply = client.post(&format!("{CORE}/pods/{name}/eviction"), eviction).await;
    settle(server).await;
    reply.code
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_its_pods_and_says_how_many_may_go() {
    let (server, mut client) = start().await;
    make(&server, &mut client, BUDGETS, budget("b", json!({"minAvailable": 2}))).await;
    let empty = status(&server, "b");
    assert_eq!((&empty["expectedPods"], &empty["disruptionsAllowed"]), (&json!(0), &json!(0)));
    assert_eq!(empty["conditions"][0]["reason"], "InsufficientPods");
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 3)).await;
    assert_eq!(
        status(&server, "b"),
        json!({"expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 3,
            "disruptionsAllowed": 1, "observedGeneration": 1, "conditions": [{
                "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods",
                "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    );
}

#[tokio::test(start_paused = true)]
async fn evictions_go_on_as_the_pods_come_back() {
    let (server, mut client) = start().await;
    make(&server, &mut client, BUDGETS, budget("b", json!({"maxUnavailable": 1}))).await;
    make(&server, &mut client, &format!("{APPS}/deployments"), workload("web", 2)).await;
    let old = pods(&server);
    for name in &old {
        assert_eq!(evict(&server, &mut client, name).await, 201, "{name}");
    }
    assert!(pods(&server).iter().all(|name| !old.contains(name)));
    assert_eq!(status(&server, "b")["disruptionsAllowed"], 1);
    assert_eq!(status(&server, "b").get("disruptedPods"), None);
}

#[tokio::test(start_paused = true)]
async fn shares_are_of_the_wanted_replicas_and_rounded_up() {
    let (server, mut client) = start().await;
    make(&server, &mut client, BUDGETS, budget("least", json!({"minAvailable": "50%"}))).await;
    make(&server, &mut client, BUDGETS, budget("most", json!({"maxUnavailable": "34%"}))).await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("web", 5)).await;
    let of = |name: &str| {
        let status = status(&server, name);
        ["expectedPods", "desiredHealthy", "disruptionsAllowed"]
            .map(|field| status[field].as_i64().unwrap())
    };
    assert_eq!((of("least"), of("most")), ([5, 3, 2], [5, 3, 2]));
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_an_unknown_controller_makes_a_share_fail() {
    let (server, mut client) = start().await;
    make(&server, &mut client, BUDGETS, budget("b", json!({"maxUnavailable": 1}))).await;
    let map = json!({"metadata": {"name": "m"}});
    let map = make(&server, &mut client, &format!("{CORE}/configmaps"), map).await;
    let mut pod = template("web", "Always", json!({}));
    pod["metadata"]["name"] = json!("p");
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "m", "uid": map["metadata"]["uid"], "controller": true}]);
    make(&server, &mut client, &format!("{CORE}/pods"), pod).await;
    let condition = &status(&server, "b")["conditions"][0];
    assert_eq!(condition["reason"], "SyncFailed");
    assert_eq!(condition["message"], "found no controllers for pod \"p\"");
    assert_eq!(evict(&server, &mut client, "p").await, 429);
}
