//! Changes of a definition that are a loss, and changes that are none.

use serde_json::{Value, json};

use super::*;

/// A definition of a version with this schema of `spec`.
fn definition(spec: &Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "spec": spec, "metadata": { "type": "object" } },
    });
    json!({
        "metadata": { "name": "sites.example.dev" },
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": { "kind": "Site", "plural": "sites", "singular": "site", "shortNames": ["st"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
            }],
        },
        "status": { "storedVersions": ["v1"] },
    })
}

fn read(definition: &Value) -> CustomResourceDefinition {
    serde_json::from_value(definition.clone()).unwrap()
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// Returns the losses of `stored`'s `spec` under the schema `own`.
fn losses_of(own: &Value, stored: &Value) -> Vec<String> {
    losses(&read(&definition(own)), &read(&definition(stored)))
}

/// `own` loses `losses` of `stored`, and `stored` loses nothing of `own`.
#[track_caller]
fn widens(own: &Value, stored: &Value, losses: &[&str]) {
    assert_eq!(losses_of(own, stored), losses);
    assert_eq!(losses_of(stored, own), [""; 0]);
    assert_eq!(losses_of(own, own), [""; 0]);
    assert_eq!(losses_of(stored, stored), [""; 0]);
}

#[test]
fn rules_and_defaults_that_only_the_stored_schema_has_are_named_and_no_loss() {
    let rule = json!([{ "rule": "self.host != 'a'" }]);
    let stored = json!({
        "type": "object",
        "x-kubernetes-validations": rule,
        "properties": {
            "host": { "type": "string" },
            "ports": { "type": "array", "items": { "type": "integer", "default": 80 } },
        },
    });
    let own = object(json!({
        "host": { "type": "string" },
        "ports": { "type": "array", "items": { "type": "integer" } },
    }));
    assert_eq!(losses_of(&own, &stored), [""; 0]);
    let [own, stored] = [own, stored].map(|spec| read(&definition(&spec)));
    assert_eq!(
        removed_rules(&own, &stored),
        [r#"the rule "self.host != 'a'" on .spec of v1"#, "the default of .spec.ports[] of v1"]
    );
    assert_eq!(removed_rules(&stored, &own), [""; 0]);
    assert_eq!(removed_rules(&stored, &stored), [""; 0]);
}

#[test]
fn a_property_that_only_the_stored_schema_has_is_named_by_its_path() {
    let text = json!({ "type": "string" });
    widens(
        &object(json!({ "host": text })),
        &object(json!({ "host": text, "extra": text })),
        &[".spec.extra of v1"],
    );
    widens(
        &object(json!({ "tls": object(json!({})) })),
        &object(json!({ "tls": object(json!({ "issuer": text })) })),
        &[".spec.tls.issuer of v1"],
    );
    let items = |properties: Value| json!({ "type": "array", "items": object(properties) });
    widens(
        &object(json!({ "ports": items(json!({ "name": text })) })),
        &object(json!({ "ports": items(json!({ "name": text, "port": text })) })),
        &[".spec.ports[].port of v1"],
    );
    let map =
        |properties: Value| json!({ "type": "object", "additionalProperties": object(properties) });
    widens(
        &object(json!({ "hosts": map(json!({})) })),
        &object(json!({ "hosts": map(json!({ "alias": text })) })),
        &[".spec.hosts.*.alias of v1"],
    );
}

#[test]
fn a_schema_that_keeps_any_field_loses_nothing_and_its_end_is_a_loss() {
    let text = json!({ "type": "string" });
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let map = json!({ "type": "object", "additionalProperties": text });
    let closed = object(json!({ "a": text }));
    let lost = [".spec.* (fields of any name) of v1"];
    widens(&closed, &any, &lost);
    assert_eq!(losses_of(&closed, &map), lost);
    assert_eq!(losses_of(&any, &map), [""; 0]);
    assert_eq!(losses_of(&map, &any), lost);
    assert_eq!(losses_of(&any, &closed), [""; 0]);
    // Fields in the schema are pruned by the schema, though other fields are kept.
    let mut known = any.clone();
    known["properties"] = json!({ "tls": object(json!({})) });
    let stored = object(json!({ "tls": object(json!({ "issuer": text })), "other": text }));
    assert_eq!(losses_of(&known, &stored), [".spec.tls.issuer of v1"]);
}

/// Beside fields that are kept without a schema, the API server prunes below those with a schema.
#[test]
fn a_schema_for_a_field_that_was_kept_without_one_is_a_loss_if_it_prunes() {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let with = |field: Value| {
        let mut own = any.clone();
        own["properties"] = json!({ "tls": field });
        own
    };
    let text = json!({ "type": "string" });
    let closed = object(json!({ "issuer": text }));
    let lost = [".spec.tls.* (fields of any name) of v1"];
    assert_eq!(losses_of(&with(closed.clone()), &any), lost);
    assert_eq!(losses_of(&with(json!({ "type": "object" })), &any), lost);
    let list = json!({ "type": "array", "items": closed });
    assert_eq!(losses_of(&with(list), &any), lost);
    let map = json!({ "type": "object", "additionalProperties": closed });
    assert_eq!(losses_of(&with(map), &any), lost);
    let mut open = closed.clone();
    open["x-kubernetes-preserve-unknown-fields"] = json!(true);
    let map = json!({ "type": "object", "additionalProperties": text });
    for field in [text, open, map, any.clone()] {
        assert_eq!(losses_of(&with(field.clone()), &any), [""; 0], "{field}");
    }
}

/// Without a webhook an object is stored with the fields of the storage version.
#[test]
fn another_storage_version_is_a_loss_if_its_schema_has_fewer_fields() {
    let text = json!({ "type": "string" });
    let mut stored = definition(&object(json!({ "host": text, "extra": text })));
    let mut second = definition(&object(json!({ "host": text })))["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    stored["spec"]["versions"].as_array_mut().unwrap().push(second);
    let mut own = stored.clone();
    for (version, is_storage) in [(0, false), (1, true)] {
        own["spec"]["versions"][version]["storage"] = json!(is_storage);
    }
    assert_eq!(
        losses(&read(&own), &read(&stored)),
        [".spec.extra as stored in v1 (here objects are stored in v2)"]
    );
    assert_eq!(losses(&read(&stored), &read(&own)), [""; 0]);
}

#[test]
fn a_field_of_an_open_map_that_gets_a_schema_of_its_own_is_compared_with_the_maps() {
    let map = json!({ "type": "object", "additionalProperties": object(json!({ "a": { "type": "string" } })) });
    let mut named = map.clone();
    named["properties"] = json!({ "x": object(json!({})) });
    assert_eq!(losses_of(&named, &map), [".spec.x.a of v1"]);
}

#[test]
fn another_type_is_a_loss_unless_it_is_wider() {
    let of = |schema: Value| object(json!({ "port": schema }));
    let typed = |name: &str| of(json!({ "type": name }));
    let either = of(json!({ "x-kubernetes-int-or-string": true }));
    widens(&typed("string"), &either, &[".spec.port as int-or-string (here it is string) of v1"]);
    widens(&typed("integer"), &either, &[".spec.port as int-or-string (here it is integer) of v1"]);
    widens(
        &typed("integer"),
        &typed("number"),
        &[".spec.port as number (here it is integer) of v1"],
    );
    assert_eq!(losses_of(&typed("boolean"), &typed("string")).len(), 1);
    let anything = of(json!({ "x-kubernetes-preserve-unknown-fields": true }));
    assert_eq!(losses_of(&anything, &typed("string")), [""; 0]);
    assert!(losses_of(&typed("string"), &anything)[0].contains("as any"));
}

#[test]
fn an_embedded_object_keeps_its_head_without_naming_it() {
    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "properties": { "spec": { "type": "object" } },
    });
    let plain = object(json!({ "spec": { "type": "object" } }));
    let heads = [".spec.apiVersion of v1", ".spec.kind of v1", ".spec.metadata of v1"];
    assert_eq!(losses_of(&plain, &embedded), heads);
    let with_head = object(json!({
        "apiVersion": { "type": "string" }, "kind": { "type": "string" },
        "metadata": { "type": "object" }, "spec": { "type": "object" },
    }));
    assert_eq!(losses_of(&embedded, &with_head), [""; 0]);
}

#[test]
fn a_stricter_or_otherwise_described_schema_loses_nothing() {
    let stored =
        object(json!({ "host": { "type": "string", "nullable": true, "description": "a" } }));
    let mut own = object(json!({ "host": { "type": "string", "maxLength": 3, "default": "x" } }));
    own["required"] = json!(["host"]);
    assert_eq!(losses_of(&own, &stored), [""; 0]);
}

#[test]
fn versions_names_subresources_and_conversion_are_losses() {
    let own = definition(&object(json!({})));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut stored = own.clone();
        change(&mut stored);
        losses(&read(&own), &read(&stored))
    };
    let version = |name: &str, served: bool| {
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        json!({ "name": name, "served": served, "storage": false, "schema": schema })
    };
    let add = |stored: &mut Value, version: Value| {
        stored["spec"]["versions"].as_array_mut().unwrap().push(version);
    };
    assert_eq!(with(&|stored| add(stored, version("v2", true))), ["the served version v2"]);
    assert_eq!(with(&|stored| add(stored, version("v2", false))), [""; 0]);
    let old = with(&|stored| {
        add(stored, version("v0", false));
        stored["status"]["storedVersions"] = json!(["v0", "v1"]);
    });
    assert_eq!(old, ["the version v0, in which objects are stored"]);
    assert_eq!(with(&|stored| stored["spec"]["scope"] = json!("Cluster")), ["the scope Cluster"]);
    assert_eq!(
        with(&|stored| stored["spec"]["names"]["shortNames"] = json!(["st", "web"])),
        ["the short name \"web\""]
    );
    assert_eq!(
        with(&|stored| stored["spec"]["names"]["categories"] = json!(["all"])),
        ["the category \"all\""]
    );
    assert_eq!(
        with(&|stored| stored["spec"]["names"]["kind"] = json!("Web")),
        ["the kind \"Web\""]
    );
    let scale = json!({ "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } });
    assert_eq!(
        with(&|stored| stored["spec"]["versions"][0]["subresources"] = scale.clone()),
        ["the subresource scale of v1"]
    );
    assert_eq!(
        with(&|stored| stored["spec"]["versions"][0]["selectableFields"] =
            json!([{ "jsonPath": ".spec.a" }])),
        ["the selectable field .spec.a of v1"]
    );
    assert_eq!(
        with(&|stored| stored["spec"]["conversion"] = json!({ "strategy": "Webhook" })),
        ["the conversion by a webhook"]
    );
    assert_eq!(with(&|stored| stored["spec"]["preserveUnknownFields"] = json!(true)).len(), 1);
}

#[test]
fn a_version_that_is_served_no_more_is_a_loss() {
    let stored = definition(&object(json!({})));
    let mut own = stored.clone();
    own["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(losses(&read(&own), &read(&stored)), ["the served version v1"]);
}

#[test]
fn fields_that_the_stored_schema_lacks_would_be_pruned() {
    let text = json!({ "type": "string" });
    let own = read(&definition(&object(json!({ "host": text, "new": text }))));
    let stored = read(&definition(&object(json!({ "host": text, "old": text }))));
    let expected = MissingParts { pruned: vec![".spec.new of v1".to_owned()], absent: Vec::new() };
    assert_eq!(missing(&own, &stored), expected);
    assert_eq!(losses(&own, &stored), [".spec.old of v1"]);
}

#[test]
fn subresources_selectable_fields_and_types_that_the_stored_version_lacks_are_not_pruned() {
    let port = |name: &str| definition(&object(json!({ "port": { "type": name } })));
    let (mut own, stored) = (port("integer"), port("string"));
    let version = &mut own["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({ "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" });
    version["selectableFields"] = json!([{ "jsonPath": ".spec.port" }]);
    let missing = missing(&read(&own), &read(&stored));
    assert_eq!(missing.pruned, [""; 0]);
    let absent = [
        "the subresource scale of v1",
        "the selectable field .spec.port of v1",
        ".spec.port as integer (there it is string) of v1",
    ];
    assert_eq!(missing.absent, absent);
    assert_eq!(missing.describe(), format!("; it does not have: {}", absent.join(", ")));
    assert_eq!(MissingParts::default().describe(), "");
}

#[test]
fn only_those_count_as_managers_that_say_something_about_the_spec() {
    let managed = |entries: Value| {
        let mut stored = definition(&object(json!({})));
        stored["metadata"]["managedFields"] = entries;
        is_managed_by_others(&read(&stored), "windlass")
    };
    let entry = |manager: &str, operation: &str, subresource: &str, fields: Value| json!({ "manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields });
    let spec = json!({ "f:spec": { "f:group": {} } });
    let ours = entry("windlass", "Apply", "", spec.clone());
    let server = entry("kube-apiserver", "Update", "status", json!({ "f:status": {} }));
    let labels = entry("kubectl-label", "Update", "", json!({ "f:metadata": {} }));
    assert!(!managed(json!([ours, server, labels])));
    for other in
        [entry("helm", "Update", "", spec.clone()), entry("argocd-controller", "Apply", "", spec)]
    {
        assert!(managed(json!([ours, server, other])), "{other}");
    }
    assert!(managed(json!([])), "the manager is unknown");
}

#[test]
fn a_text_names_the_first_losses_and_counts_the_rest() {
    let losses: Vec<String> = (0..25).map(|n| format!(".spec.f{n} of v1")).collect();
    let text = join(&losses);
    assert!(text.ends_with(".spec.f19 of v1 and 5 more"), "{text}");
}
