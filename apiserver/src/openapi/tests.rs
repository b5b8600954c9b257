use std::sync::Arc;

use serde_json::{Value, json};

use super::{v3_document, v3_index};
use crate::served::{Served, Subresource};

fn served(group: &str, kind: &str, plural: &str, custom: bool) -> Served {
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    Served {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: vec![],
        categories: vec![],
        namespaced: true,
        verbs: verbs.map(str::to_owned).to_vec(),
        subresources: vec![Subresource {
            name: "status".into(),
            group: String::new(),
            version: "v1".into(),
            kind: kind.into(),
            verbs: vec!["get".into(), "patch".into(), "update".into()],
            paths: vec![],
        }],
        custom,
        schema: custom.then(|| {
            Arc::new(json!({"type": "object", "properties": {"spec": {"type": "object"}}}))
        }),
        columns: vec![],
        selectable: vec![],
        stored_as: String::new(),
        deprecated: None,
    }
}

fn all() -> Vec<Served> {
    vec![
        served("", "ConfigMap", "configmaps", false),
        served("apps", "Deployment", "deployments", false),
        served("ex.com", "Widget", "widgets", true),
    ]
}

/// Collects every `$ref` of a document.
fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref", Value::String(s)) => {
                        out.push(s.trim_start_matches("#/components/schemas/").to_owned());
                    }
                    _ => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

#[test]
fn every_reference_of_a_document_can_be_followed() {
    for (group, version) in [("", "v1"), ("apps", "v1"), ("ex.com", "v1")] {
        let document = v3_document(&all(), group, version).unwrap();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for name in found {
            assert!(document["components"]["schemas"].get(&name).is_some(), "{group}: {name}");
        }
    }
    assert_eq!(v3_document(&all(), "ex.com", "v2"), None);
}

#[test]
fn patch_says_that_fields_are_validated_and_which_patches_it_takes() {
    let document = v3_document(&all(), "apps", "v1").unwrap();
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert!(
        patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some()
    );
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    let custom = v3_document(&all(), "ex.com", "v1").unwrap();
    let patch = &custom["paths"]["/apis/ex.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert!(
        patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none()
    );
    assert_eq!(patch["operationId"], "patchExComV1NamespacedWidget");
}

#[test]
fn schemas_name_their_kind_and_have_metadata() {
    let document = v3_document(&all(), "ex.com", "v1").unwrap();
    let widget = &document["components"]["schemas"]["com.ex.v1.Widget"];
    assert_eq!(
        widget["x-kubernetes-group-version-kind"],
        json!([{"group": "ex.com", "version": "v1", "kind": "Widget"}])
    );
    assert_eq!(widget["properties"]["spec"], json!({"type": "object"}));
    assert!(widget["properties"]["metadata"]["allOf"].is_array());
    let apps = v3_document(&all(), "apps", "v1").unwrap();
    let deployment = &apps["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(deployment["x-kubernetes-group-version-kind"][0]["kind"], "Deployment");
    let spec = &apps["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"];
    assert_eq!(spec["properties"]["containers"]["x-kubernetes-patch-merge-key"], "name");
}

#[test]
fn the_index_changes_its_hash_when_a_schema_changes() {
    let before = v3_index(&all());
    let mut changed = all();
    changed[2].schema = Some(Arc::new(json!({"type": "object"})));
    let after = v3_index(&changed);
    let url = |index: &Value, key: &str| index["paths"][key]["serverRelativeURL"].clone();
    assert!(
        url(&before, "apis/ex.com/v1")
            .as_str()
            .unwrap()
            .starts_with("/openapi/v3/apis/ex.com/v1?hash=")
    );
    assert_ne!(url(&before, "apis/ex.com/v1"), url(&after, "apis/ex.com/v1"));
    assert_eq!(url(&before, "api/v1"), url(&after, "api/v1"));
}

#[test]
fn every_reference_of_version_two_can_be_followed_and_nothing_is_an_alternative() {
    let document = super::v2_document(&all());
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for name in found {
        let name = name.strip_prefix("#/definitions/").unwrap_or_else(|| panic!("{name}"));
        assert!(document["definitions"].get(name).is_some(), "{name}");
    }
    let text = document.to_string();
    for key in ["oneOf", "anyOf", "requestBody", "nullable"] {
        assert!(!text.contains(&format!("\"{key}\":")), "{key}");
    }
}
