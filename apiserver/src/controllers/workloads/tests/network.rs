use serde_json::{Value, json};

use super::*;

/// Returns a Service of the Pods of an application.
fn service(app: &str) -> Value {
    json!({"metadata": {"name": app}, "spec": {"selector": {"app": app},
        "ports": [{"name": "http", "port": 80, "targetPort": "web"}]}})
}

/// Returns the `EndpointSlices` of the namespace `default` that a controller wrote.
fn slices(server: &ApiServer) -> Vec<Value> {
    let mut all = server.list_objects("discovery.k8s.io", "endpointslices", "default");
    all.retain(|one| one["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
    all
}

#[tokio::test(start_paused = true)]
async fn a_service_has_the_addresses_of_its_ready_pods() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{CORE}/services"), service("web")).await;
    let endpoints = get(&server, "", "endpoints", "web");
    assert_eq!(endpoints["subsets"], Value::Null);
    assert_eq!(
        endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"],
        "endpoint-controller"
    );
    assert_eq!(slices(&server)[0]["endpoints"], Value::Null);
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("web", 2)).await;
    let names = pods(&server);
    let subset = get(&server, "", "endpoints", "web")["subsets"][0].clone();
    assert_eq!(subset["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    let first = &subset["addresses"][0];
    assert_eq!(
        (&first["nodeName"], &first["targetRef"]["name"]),
        (&json!("windlass"), &json!(names[0]))
    );
    let slice = &slices(&server)[0];
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(slice["ports"], subset["ports"]);
    assert_eq!(slice["endpoints"][1]["targetRef"]["name"], names[1].as_str());
    assert_eq!(
        slice["endpoints"][1]["conditions"],
        json!({"ready": true, "serving": true, "terminating": false})
    );
    assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Service");
}

#[tokio::test(start_paused = true)]
async fn a_port_without_a_name_has_an_empty_one_in_slices() {
    let (server, mut client) = start().await;
    let mut plain = service("web");
    plain["spec"]["ports"] = json!([{"port": 80}]);
    make(&server, &mut client, &format!("{CORE}/services"), plain).await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("web", 1)).await;
    let port = json!([{"name": "", "port": 80, "protocol": "TCP"}]);
    assert_eq!(slices(&server)[0]["ports"], port);
    let port = json!([{"port": 80, "protocol": "TCP"}]);
    assert_eq!(get(&server, "", "endpoints", "web")["subsets"][0]["ports"], port);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_not_ready_moves_aside() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{CORE}/services"), service("web")).await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("web", 2)).await;
    let name = pods(&server)[0].clone();
    let unready = json!({"metadata": {"annotations": {"windlass.dev/pod-state": "NotReady"}}});
    merge(&server, &mut client, &format!("{CORE}/pods/{name}"), unready).await;
    let subset = get(&server, "", "endpoints", "web")["subsets"][0].clone();
    assert_eq!(subset["notReadyAddresses"][0]["targetRef"]["name"], name.as_str());
    assert_eq!(subset["addresses"].as_array().unwrap().len(), 1);
    assert_eq!(slices(&server)[0]["endpoints"][0]["conditions"]["ready"], false);
    let all = json!({"spec": {"publishNotReadyAddresses": true}});
    merge(&server, &mut client, &format!("{CORE}/services/web"), all).await;
    let subset = get(&server, "", "endpoints", "web")["subsets"][0].clone();
    assert_eq!(subset["addresses"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn endpoints_go_with_their_service_and_those_of_others_stay() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{CORE}/services"), service("web")).await;
    client.delete(&format!("{CORE}/services/web")).await;
    settle(&server).await;
    assert_eq!(get(&server, "", "endpoints", "web"), Value::Null);
    assert!(slices(&server).is_empty());
    let mut plain = service("own");
    plain["spec"].as_object_mut().unwrap().remove("selector");
    make(&server, &mut client, &format!("{CORE}/services"), plain).await;
    assert_eq!(get(&server, "", "endpoints", "own"), Value::Null);
    let own = json!({"metadata": {"name": "own"}, "subsets": []});
    make(&server, &mut client, &format!("{CORE}/endpoints"), own).await;
    client.delete(&format!("{CORE}/services/own")).await;
    settle(&server).await;
    assert_eq!(get(&server, "", "endpoints", "own")["metadata"]["name"], "own");
}

/// Returns a claim of a size.
fn claim(name: &str, size: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}}}})
}

/// Returns a volume of a size.
fn volume(name: &str, size: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size}, "hostPath": {"path": "/x"}}})
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_the_smallest_volume_that_fits() {
    let (server, mut client) = start().await;
    for (name, size) in [("large", "10Gi"), ("small", "1Gi"), ("middle", "5Gi")] {
        make(&server, &mut client, "/api/v1/persistentvolumes", volume(name, size)).await;
    }
    let claims = format!("{CORE}/persistentvolumeclaims");
    make(&server, &mut client, &claims, claim("data", "2Gi")).await;
    let data = get(&server, "", "persistentvolumeclaims", "data");
    assert_eq!(data["spec"]["volumeName"], "middle");
    assert_eq!(data["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"], "yes");
    assert_eq!(
        data["status"],
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}})
    );
    let bound = server.get_object("", "persistentvolumes", "", "middle").unwrap();
    assert_eq!(bound["status"]["phase"], "Bound");
    assert_eq!(bound["spec"]["claimRef"]["uid"], data["metadata"]["uid"]);
    client.delete(&format!("{claims}/data")).await;
    settle(&server).await;
    let released = server.get_object("", "persistentvolumes", "", "middle").unwrap();
    assert_eq!(released["status"]["phase"], "Released");
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_fitting_volume_gets_one_made() {
    let (server, mut client) = start().await;
    let claims = format!("{CORE}/persistentvolumeclaims");
    make(&server, &mut client, &claims, claim("data", "2Gi")).await;
    let bound = get(&server, "", "persistentvolumeclaims", "data");
    let name = format!("pvc-{}", bound["metadata"]["uid"].as_str().unwrap());
    assert_eq!(bound["spec"]["volumeName"], name.as_str());
    assert_eq!(bound["status"]["phase"], "Bound");
    let made = server.get_object("", "persistentvolumes", "", &name).unwrap();
    assert_eq!(made["spec"]["capacity"]["storage"], "2Gi");
    client.delete(&format!("{claims}/data")).await;
    settle(&server).await;
    assert!(server.get_object("", "persistentvolumes", "", &name).is_none(), "it was made for it");
    let mut by_hand = claim("hand", "1Gi");
    by_hand["spec"]["storageClassName"] = json!("");
    make(&server, &mut client, &claims, by_hand).await;
    assert_eq!(get(&server, "", "persistentvolumeclaims", "hand")["status"]["phase"], "Pending");
    make(&server, &mut client, "/api/v1/persistentvolumes", volume("late", "1Gi")).await;
    assert_eq!(get(&server, "", "persistentvolumeclaims", "hand")["spec"]["volumeName"], "late");
}
