//! Tests of the types and of the questions that they answer.

use serde_json::{Value, json};

use super::TypeSchema;
use std::sync::Arc;

fn builtin(api_version: &str, kind: &str) -> Arc<TypeSchema> {
    TypeSchema::builtin(api_version, kind).expect("a built-in kind")
}

fn widget() -> TypeSchema {
    TypeSchema::from_openapi(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": { "type": "integer", "format": "int32", "default": 1 },
                    "port": { "x-kubernetes-int-or-string": true },
                    "tags": { "type": "array", "items": { "type": "string" },
                              "x-kubernetes-list-type": "set" },
                    "rules": { "type": "array", "x-kubernetes-list-type": "map",
                               "x-kubernetes-list-map-keys": ["name"],
                               "items": { "type": "object",
                                          "properties": { "name": { "type": "string" } } } },
                    "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                              "properties": { "in": { "type": "object",
                                  "properties": { "x": { "type": "string" } } } } },
                    "bare": { "type": "object" },
                    "map": { "type": "object", "additionalProperties": { "type": "object",
                             "properties": { "y": { "type": "string" } } } },
                    "template": { "type": "object", "x-kubernetes-embedded-resource": true,
                                  "properties": { "spec": { "type": "object",
                                      "x-kubernetes-preserve-unknown-fields": true } } },
                },
            },
        },
    }))
}

#[test]
fn every_kind_of_the_common_groups_is_known() {
    for (api_version, kinds) in [
        ("v1", "Pod Service ConfigMap Secret Namespace Node ServiceAccount Event Endpoints"),
        ("v1", "PersistentVolume PersistentVolumeClaim ReplicationController ResourceQuota"),
        ("v1", "LimitRange PodTemplate"),
        ("apps/v1", "Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision"),
        ("batch/v1", "Job CronJob"),
        ("networking.k8s.io/v1", "Ingress IngressClass NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget Eviction"),
        ("rbac.authorization.k8s.io/v1", "Role RoleBinding ClusterRole ClusterRoleBinding"),
        ("coordination.k8s.io/v1", "Lease"),
        ("autoscaling/v1", "HorizontalPodAutoscaler Scale"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("events.k8s.io/v1", "Event"),
        ("storage.k8s.io/v1", "StorageClass CSIDriver VolumeAttachment"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ] {
        for kind in kinds.split(' ') {
            let schema = TypeSchema::builtin(api_version, kind);
            assert!(schema.is_some_and(|s| s.is_builtin()), "{api_version} {kind}");
        }
    }
    assert!(TypeSchema::builtin_kinds().contains(&("v1".to_owned(), "Pod".to_owned())));
}

#[test]
fn a_kind_that_the_server_does_not_have_is_unknown() {
    assert!(TypeSchema::builtin("apps/v1beta1", "Deployment").is_none());
    assert!(TypeSchema::builtin("v1", "Widget").is_none());
}

#[test]
fn a_known_object_has_no_unknown_fields() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "labels": { "any": "thing" }, "managedFields": [
            { "manager": "m", "fieldsV1": { "f:spec": { "f:x": {} } } },
        ] },
        "spec": { "containers": [{ "name": "c", "image": "i",
            "resources": { "limits": { "example.com/gpu": "1" } } }],
            "nodeSelector": { "a": "b" } },
        "status": { "phase": "Running" },
    });
    assert_eq!(builtin("v1", "Pod").unknown_fields(&pod), Vec::<String>::new());
}

#[test]
fn unknown_fields_are_named_with_their_path() {
    let pod = json!({
        "bogus": 1,
        "metadata": { "nope": 1 },
        "spec": { "containers": [{ "name": "c" }, { "name": "d", "imagee": "i", "ports": [
            { "containerPort": 1, "x": { "y": 1 } } ] }] },
    });
    assert_eq!(
        builtin("v1", "Pod").unknown_fields(&pod),
        ["bogus", "metadata.nope", "spec.containers[1].imagee", "spec.containers[1].ports[0].x"]
    );
}

#[test]
fn dropping_unknown_fields_keeps_the_known_ones() {
    let mut object = json!({
        "kind": "ConfigMap", "bogus": 1, "data": { "a": "b" }, "metadata": { "nope": 1, "name": "c" },
    });
    let dropped = builtin("v1", "ConfigMap").drop_unknown(&mut object);
    assert_eq!(dropped, ["bogus", "metadata.nope"]);
    assert_eq!(
        object,
        json!({ "kind": "ConfigMap", "data": { "a": "b" }, "metadata": { "name": "c" } })
    );
}

#[test]
fn a_custom_resource_has_typed_metadata_whatever_its_schema_says() {
    let object = json!({
        "apiVersion": "g/v1", "kind": "Widget", "metadata": { "name": "a", "bad": 1 },
    });
    assert_eq!(widget().unknown_fields(&object), ["metadata.bad"]);
}

#[test]
fn preserved_unknown_fields_stay_but_known_siblings_are_still_checked() {
    let object = json!({ "spec": { "open": { "free": { "a": 1 }, "in": { "x": "1", "z": 1 } } } });
    assert_eq!(widget().unknown_fields(&object), ["spec.open.in.z"]);
}

#[test]
fn an_object_schema_without_properties_keeps_nothing() {
    let object = json!({ "spec": { "bare": { "a": 1 } } });
    assert_eq!(widget().unknown_fields(&object), ["spec.bare.a"]);
}

#[test]
fn map_values_and_embedded_resources_are_checked() {
    let object = json!({ "spec": {
        "map": { "k": { "y": "1", "q": 1 } },
        "template": { "apiVersion": "v1", "kind": "Pod", "metadata": { "bad": 1 }, "x": 1,
                      "spec": { "a": 1 } },
    } });
    assert_eq!(
        widget().unknown_fields(&object),
        ["spec.map.k.q", "spec.template.metadata.bad", "spec.template.x"]
    );
}

#[test]
fn without_a_schema_every_field_is_known() {
    assert!(TypeSchema::untyped().unknown_fields(&json!({ "a": { "b": [1] } })).is_empty());
}

#[test]
fn an_empty_object_shows_what_is_always_written() {
    assert_eq!(builtin("v1", "ConfigMap").empty_object(), json!({ "metadata": {} }));
    assert_eq!(
        builtin("apps/v1", "Deployment").empty_object(),
        json!({
            "metadata": {},
            "spec": { "selector": null, "strategy": {},
                      "template": { "metadata": {}, "spec": { "containers": null } } },
            "status": {},
        })
    );
    let event = builtin("v1", "Event").empty_object();
    assert_eq!(
        (&event["reportingComponent"], &event["firstTimestamp"]),
        (&json!(""), &Value::Null)
    );
    assert_eq!(TypeSchema::untyped().empty_object(), json!({}));
}

#[test]
fn a_canonical_object_has_no_empty_optional_parts() {
    let mut pod = json!({
        "metadata": { "name": "p", "labels": {}, "finalizers": [], "annotations": { "a": null } },
        "spec": { "containers": [{ "image": "i", "args": [], "securityContext": {} }],
                  "volumes": [{ "name": "v", "emptyDir": {} }], "nodeName": null },
        "status": {},
    });
    builtin("v1", "Pod").canonicalize(&mut pod);
    assert_eq!(
        pod,
        json!({
            "metadata": { "name": "p", "annotations": { "a": "" } },
            "spec": {
                "containers": [{ "name": "", "image": "i", "resources": {}, "securityContext": {} }],
                "volumes": [{ "name": "v", "emptyDir": {} }],
            },
            "status": {},
        })
    );
}

#[test]
fn a_custom_resource_is_canonical_as_it_is() {
    let mut object = json!({ "spec": { "tags": [], "bare": null } });
    widget().canonicalize(&mut object);
    assert_eq!(object, json!({ "spec": { "tags": [], "bare": null } }));
}

#[test]
fn openapi_of_a_builtin_kind_refers_to_its_components() {
    let schema = builtin("v1", "Pod");
    assert_eq!(schema.openapi_name(), Some("io.k8s.api.core.v1.Pod"));
    assert_eq!(
        schema.to_openapi(),
        json!({ "$ref": "#/components/schemas/io.k8s.api.core.v1.Pod" })
    );
    let components = schema.components();
    let container = &components["io.k8s.api.core.v1.Container"];
    assert_eq!(container["required"], json!(["name"]));
    let ports = &container["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    assert_eq!(ports["x-kubernetes-patch-strategy"], "merge");
    let port = &components["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!(port["protocol"], json!({ "type": "string", "default": "TCP" }));
    assert_eq!(port["hostPort"], json!({ "type": "integer", "format": "int32" }));
}

#[test]
fn every_reference_in_the_components_is_defined() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    for (api_version, kind) in TypeSchema::builtin_kinds() {
        let components = builtin(&api_version, &kind).components();
        let mut found = Vec::new();
        components.values().for_each(|value| references(value, &mut found));
        for name in found {
            let name = name.trim_start_matches("#/components/schemas/");
            assert!(components.contains_key(name), "{kind} needs {name}");
        }
    }
}

#[test]
fn openapi_of_a_custom_resource_says_what_its_schema_says() {
    let spec = widget().to_openapi()["properties"]["spec"].clone();
    let fields = &spec["properties"];
    assert_eq!(spec["required"], json!(["size"]));
    assert_eq!(fields["size"], json!({ "type": "integer", "format": "int32", "default": 1 }));
    assert_eq!(fields["port"], json!({ "x-kubernetes-int-or-string": true }));
    assert_eq!(fields["tags"]["x-kubernetes-list-type"], "set");
    assert_eq!(fields["rules"]["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(fields["open"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(fields["bare"], json!({ "type": "object" }));
}

#[test]
fn a_recursive_type_is_read_and_written() {
    let schema = builtin("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let components = schema.components();
    assert!(components.keys().any(|name| name.ends_with("v1.JSONSchemaProps")));
}

#[test]
fn a_schema_nested_without_end_is_cut_off() {
    let mut schema = json!({ "type": "object" });
    for _ in 0..400 {
        schema = json!({ "type": "object", "properties": { "a": schema } });
    }
    assert!(TypeSchema::from_openapi(&schema).unknown_fields(&json!({ "a": {} })).is_empty());
}

#[test]
fn texts_with_a_type_of_their_own_are_named_in_both_wordings() {
    let types = TypeSchema::builtin("v1", "Service").unwrap();
    let of = |value| json!({"spec": value});
    let decoded = |value| types.mismatch(&of(value)).unwrap();
    let converted = |value| types.unconvertible(&of(value)).unwrap();
    let at = "json: cannot unmarshal number into Go struct field ServiceSpec.spec";
    assert_eq!(decoded(json!({"type": 3})), format!("{at}.type of type v1.ServiceType"));
    assert_eq!(decoded(json!({"clusterIP": 3})), format!("{at}.clusterIP of type string"));
    assert_eq!(converted(json!({"type": 3})), "cannot convert int64 to v1.ServiceType");
    assert_eq!(converted(json!({"type": true})), "unrecognized type: string");
}

#[test]
fn the_converter_cuts_no_fraction_and_makes_bytes_of_texts_only() {
    let types = TypeSchema::builtin("apps/v1", "Deployment").unwrap();
    let replicas = |value| types.unconvertible(&json!({"spec": {"replicas": value}}));
    assert_eq!(replicas(json!(1.5)).unwrap(), "cannot convert float64 to int32");
    assert_eq!(replicas(json!(2.0)), None);
    let types = TypeSchema::builtin("v1", "ConfigMap").unwrap();
    let found = types.unconvertible(&json!({"binaryData": {"k": 4}})).unwrap();
    assert_eq!(found, "cannot restore slice from int64");
}

#[test]
fn a_null_item_of_a_list_is_gos_zero_value() {
    let pod = TypeSchema::builtin("v1", "Pod").unwrap();
    let mut object = json!({"spec": {"containers": [null, {"name": "c", "args": [null, "a"]}]}});
    pod.fill(&mut object);
    let containers = json!([{}, {"name": "c", "args": ["", "a"]}]);
    assert_eq!(object["spec"]["containers"], containers);
}

#[test]
fn a_divisor_is_written_and_a_pointer_that_is_unset_is_not() {
    let pod = TypeSchema::builtin("v1", "Pod").unwrap();
    let source = json!({"resourceFieldRef": {"resource": "limits.cpu"}});
    let mut object = json!({"spec": {"containers": [{"name": "c", "env": [
        {"name": "A", "valueFrom": source}]}]}});
    pod.canonicalize(&mut object);
    let path = "/spec/containers/0/env/0/valueFrom/resourceFieldRef/divisor";
    assert_eq!(object.pointer(path), Some(&json!("0")));
    let address = TypeSchema::builtin("networking.k8s.io/v1", "IPAddress").unwrap();
    assert_eq!(address.empty_object()["spec"].get("parentRef"), None);
}
