//! Changes of names, versions and features.

use super::*;

/// The definition with the value at a JSON pointer replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut definition = definition(&json!({ "type": "object" }));
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = definition.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(list) => list.push(value),
        _ => parent[key] = value,
    }
    definition
}

/// The changes when the value at `pointer` becomes `new`, and back.
#[track_caller]
fn change(pointer: &str, old: Value, new: Value, there: &[&str], back: &[&str]) {
    check(&with(pointer, old), &with(pointer, new), there, back);
}

#[test]
fn names_and_scope_identify_the_kind() {
    let twice = |rule: &'static str| [rule];
    for (pointer, old, new) in [
        ("/spec/group", "example.dev", "example.org"),
        ("/spec/names/kind", "Site", "Page"),
        ("/spec/names/plural", "sites", "pages"),
        ("/spec/names/singular", "site", "page"),
        ("/spec/names/listKind", "SiteList", "PageList"),
    ] {
        let named = twice("name-changed");
        change(pointer, json!(old), json!(new), &named, &named);
    }
    let scope = twice("scope-changed");
    change("/spec/scope", json!("Namespaced"), json!("Cluster"), &scope, &scope);
}

#[test]
fn names_that_an_api_server_fills_in_are_no_change() {
    change("/spec/names/listKind", json!("SiteList"), Value::Null, &[], &[]);
    change("/spec/conversion", json!({ "strategy": "None" }), Value::Null, &[], &[]);
    change("/spec/preserveUnknownFields", json!(false), Value::Null, &[], &[]);
}

#[test]
fn short_names_and_categories_are_names_for_commands() {
    for pointer in ["/spec/names/shortNames", "/spec/names/categories"] {
        change(pointer, json!(["a", "b"]), json!(["b"]), &["alias-removed"], &["alias-added"]);
    }
}

#[test]
fn a_conversion_and_unknown_fields_are_kept() {
    let webhook = |path: &str| {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": { "url": format!("https://example.dev/{path}") },
            },
        })
    };
    let none = json!({ "strategy": "None" });
    let (removed, changed) = (["conversion-removed"], ["conversion-changed"]);
    change("/spec/conversion", webhook("a"), none, &removed, &changed);
    change("/spec/conversion", webhook("a"), webhook("b"), &changed, &changed);
    change("/spec/preserveUnknownFields", json!(true), json!(false), &["pruning-started"], &[]);
}

#[test]
fn features_of_a_version_come_and_go() {
    let at = |field: &str| format!("/spec/versions/0/{field}");
    let (removed, separated) = (["subresource-removed"], ["status-separated"]);
    change(&at("subresources"), json!({ "status": {} }), json!({}), &removed, &separated);
    let scale = |spec: &str| json!({ "scale": { "specReplicasPath": spec, "statusReplicasPath": ".status.replicas" } });
    change(&at("subresources"), scale(".spec.a"), json!({}), &removed, &["scale-added"]);
    let changed = ["scale-changed"];
    change(&at("subresources"), scale(".spec.a"), scale(".spec.b"), &changed, &changed);
    let mut selecting = scale(".spec.a");
    selecting["scale"]["labelSelectorPath"] = json!(".status.selector");
    change(&at("subresources"), scale(".spec.a"), selecting, &["scale-added"], &changed);
    change(
        &at("selectableFields"),
        json!([{ "jsonPath": ".spec.host" }]),
        json!([]),
        &["selectable-field-removed"],
        &["selectable-field-added"],
    );
    let column = json!([{ "name": "Host", "type": "string", "jsonPath": ".spec.host" }]);
    let columns = ["columns-changed"];
    change(&at("additionalPrinterColumns"), column, json!([]), &columns, &columns);
}

#[test]
fn versions_are_served_deprecated_and_removed() {
    let empty = json!({ "type": "object" });
    let v2 = |served: bool, deprecated: bool| {
        let mut v2 = version("v2", &empty);
        v2["served"] = json!(served);
        v2["deprecated"] = json!(deprecated);
        with("/spec/versions/-", v2)
    };
    let one = definition(&empty);
    check(&one, &v2(true, false), &["version-added"], &["version-removed"]);
    check(&one, &v2(false, false), &["version-added"], &["unused-version-removed"]);
    check(&v2(true, false), &v2(false, false), &["version-unserved"], &["version-served"]);
    check(&v2(true, false), &v2(true, true), &["version-deprecated"], &[]);
    let mut stored = v2(false, false);
    stored["status"] = json!({
        "storedVersions": ["v1", "v2"], "acceptedNames": { "kind": "Site", "plural": "sites" },
        "conditions": [],
    });
    assert_eq!(between(&stored, &one), ["version-removed"], "objects may be stored in it");
}

#[test]
fn another_storage_version_must_keep_every_field() {
    let of = |stored: &str, v2: &Value| {
        let v1 = json!({ "type": "object", "properties": { "host": { "type": "string" } } });
        let mut definition = definition(&v1);
        definition["spec"]["versions"] = json!([version("v1", &v1), version("v2", v2)]);
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            version["storage"] = json!(version["name"] == stored);
        }
        definition
    };
    let same = json!({ "type": "object", "properties": { "host": { "type": "string" } } });
    let changed = ["storage-version-changed"];
    check(&of("v1", &same), &of("v2", &same), &changed, &changed);
    let other = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let lossy = ["storage-version-lossy"];
    check(&of("v1", &other), &of("v2", &other), &lossy, &lossy);
    let mut converted = of("v2", &other);
    converted["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    let mut before = of("v1", &other);
    before["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    check(&before, &converted, &changed, &changed);
}

#[test]
fn the_names_of_objects_may_be_limited() {
    let metadata = |name: Value| json!({ "type": "object", "properties": { "name": name } });
    change(
        "/spec/versions/0/schema/openAPIV3Schema/properties/metadata",
        json!({ "type": "object" }),
        metadata(json!({ "type": "string", "maxLength": 20 })),
        &["bound-tightened .metadata.name"],
        &["bound-loosened .metadata.name"],
    );
}
