use serde_json::json;

use super::*;

fn served(group: &str, version: &str, kind: &str, plural: &str, custom: bool) -> Served {
    Served {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: true,
        verbs: vec!["get".into(), "list".into(), "watch".into()],
        subresources: vec![],
        custom,
        schema: None,
        columns: vec![],
        selectable: vec![],
        stored_as: format!("{group}/{version}/{kind}"),
        deprecated: None,
    }
}

fn sub(name: &str, group: &str, kind: &str) -> Subresource {
    Subresource {
        name: name.into(),
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        verbs: vec!["get".into()],
        paths: vec![],
    }
}

fn all() -> Vec<Served> {
    let mut widget = served("ex.com", "v1", "Widget", "widgets", true);
    widget.subresources = vec![sub("status", "", "Widget"), sub("scale", "autoscaling", "Scale")];
    let mut pods = served("", "v1", "Pod", "pods", false);
    pods.short_names = vec!["po".into()];
    pods.subresources = vec![sub("status", "", "Pod"), sub("eviction", "policy", "Eviction")];
    vec![
        widget,
        served("ex.com", "v1beta2", "Widget", "widgets", true),
        served("ex.com", "v1alpha1", "Widget", "widgets", true),
        served("ex.com", "v2", "Widget", "widgets", true),
        served("batch", "v1", "Job", "jobs", false),
        served("apps", "v1", "Deployment", "deployments", false),
        served("", "v1", "ConfigMap", "configmaps", false),
        pods,
    ]
}

#[test]
fn groups_stand_in_the_order_of_a_real_server_and_stable_versions_first() {
    let list = group_list(&all());
    let names: Vec<&str> =
        list["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["apps", "batch", "ex.com"]);
    let group = group(&all(), "ex.com").unwrap();
    let versions: Vec<&str> = group["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["v2", "v1", "v1beta2", "v1alpha1"]);
    assert_eq!(group["preferredVersion"], json!({"groupVersion": "ex.com/v2", "version": "v2"}));
    assert_eq!(super::group(&all(), "nope"), None);
    assert_eq!(super::group(&all(), ""), None);
}

#[test]
fn resources_are_listed_with_subresources_and_the_hash_of_a_real_server() {
    let list = resource_list(&all(), "", "v1").unwrap();
    assert_eq!(list["groupVersion"], "v1");
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["configmaps", "pods", "pods/eviction", "pods/status"]);
    assert_eq!(list["resources"][0]["storageVersionHash"], "qFsyl6wFWjQ=");
    assert_eq!(list["resources"][2]["group"], "policy");
    assert!(list["resources"][3].get("group").is_none());
    let custom = resource_list(&all(), "ex.com", "v1").unwrap();
    assert_eq!(custom["resources"][2]["name"], "widgets/scale");
    assert_eq!(resource_list(&all(), "ex.com", "v9"), None);
}

#[test]
fn the_aggregated_form_says_kinds_in_full_only_where_they_are_foreign_or_custom() {
    let core = aggregated(&all(), true);
    let pods = &core["items"][0]["versions"][0]["resources"][1];
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(pods["responseKind"], json!({"group": "", "version": "", "kind": "Pod"}));
    assert_eq!(pods["subresources"][0]["responseKind"]["group"], "policy");
    let apis = aggregated(&all(), false);
    assert_eq!(apis["items"].as_array().unwrap().len(), 3);
    let widgets = &apis["items"][2]["versions"][1]["resources"][0];
    assert_eq!(
        widgets["subresources"],
        json!([
            {"subresource": "status", "responseKind": {"group": "ex.com", "version": "v1", "kind": "Widget"}, "verbs": ["get"]},
            {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": ["get"]},
        ])
    );
}
