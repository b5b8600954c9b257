use serde_json::json;

use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn autoscalers_have_two_versions_of_one_object() {
    let (_server, mut client) = start().await;
    let older = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let newer = older.replace("/v1/", "/v2/");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let spec =
        json!({"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 50});
    let made = client.post(older, json!({"metadata": {"name": "a"}, "spec": spec})).await;
    assert_eq!((made.code, &made.value["apiVersion"]), (201, &json!("autoscaling/v1")));
    let url = format!("{newer}/a");
    let shown = client.get(&url).await;
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
    assert_eq!(shown.value["spec"]["metrics"], json!([{"type": "Resource", "resource": cpu}]));
    let pods =
        json!({"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}});
    let metrics = json!([{"type": "Pods", "pods": pods}]);
    let changed = client.merge(&url, json!({"spec": {"metrics": metrics}})).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    // A write of the older version keeps fields unknown to that version.
    let url = format!("{older}/a");
    let changed = client.merge(&url, json!({"spec": {"maxReplicas": 4}})).await;
    assert_eq!((changed.code, &changed.value["spec"]["maxReplicas"]), (200, &json!(4)));
    let shown = client.get(&format!("{newer}/a")).await;
    assert_eq!(shown.value["spec"]["metrics"], metrics);
    assert_eq!(shown.value["metadata"].get("annotations"), None);
}
