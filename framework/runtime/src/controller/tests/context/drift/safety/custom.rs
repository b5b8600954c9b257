//! Intents of kinds that a definition describes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_macros::Schema;

use super::*;

pub(super) fn widget(choices: &Choices) -> Value {
    let mut spec = json!({});
    choices.put(&mut spec, "name", &[json!(""), json!("a"), json!("b")]);
    choices.put(&mut spec, "count", &[json!(0), json!(1), json!(2)]);
    choices.put(&mut spec, "flag", &[json!(false), json!(true)]);
    let ports = [
        json!({ "port": 80 }),
        json!({ "port": 80, "protocol": "UDP" }),
        json!({ "port": 81, "note": "" }),
    ];
    if !choices.one_in(3) {
        spec["ports"] = choices.some(&ports).into();
    }
    if !choices.one_in(3) {
        spec["tags"] = choices.some(&[json!("a"), json!("b"), json!("c")]).into();
    }
    choices.put(&mut spec, "args", &[json!(["a"]), json!(["a", "b"]), json!([])]);
    choices.put(
        &mut spec,
        "whole",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(
        &mut spec,
        "parts",
        &[json!({ "x": { "a": 1 } }), json!({ "x": { "b": 1 }, "y": {} }), json!({ "x": {} })],
    );
    choices.put(
        &mut spec,
        "free",
        &[
            json!({ "limits": { "cpu": "1000m" } }),
            json!({ "limits": { "cpu": "1" } }),
            json!([1, { "a": 0 }]),
        ],
    );
    choices.put(&mut spec, "nothing", &[Value::Null, json!("a")]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn widget_definition() -> CustomResourceDefinition {
    let text = json!({ "type": "string" });
    let parts = json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } });
    let port = json!({ "type": "object", "required": ["port"], "properties": { "port": { "type": "integer" },
        "protocol": { "type": "string", "default": "TCP" }, "note": text } });
    let spec = json!({ "type": "object", "properties": {
        "name": text, "count": { "type": "integer", "default": 1 }, "flag": { "type": "boolean" },
        "ports": { "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port },
        "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
        "args": { "type": "array", "items": text },
        "whole": { "type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic" },
        "parts": { "type": "object", "additionalProperties": parts },
        "free": { "x-kubernetes-preserve-unknown-fields": true },
        "nothing": { "type": "string", "nullable": true } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema });
    let definition = json!({ "metadata": { "name": "widgets.example.dev" }, "spec": { "group": "example.dev",
        "scope": "Namespaced", "versions": [version],
        "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" } } });
    serde_json::from_value(definition).expect("a definition")
}

/// A kind with the usual forms of fields; its intents are written by its type.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub(super) struct Gadget {
    metadata: ObjectMeta,
    spec: GadgetSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct GadgetSpec {
    name: String,
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i64>,
    #[serde(default)]
    is_on: bool,
    #[schema(default = 1)]
    count: i32,
    #[serde(default)]
    #[schema(list(map, keys(port, protocol)))]
    ports: Vec<Port>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(set)]
    tags: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    resources: Option<ResourceRequirements>,
    selector: Option<LabelSelector>,
    mode: Option<Mode>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Port {
    port: u16,
    #[schema(default = Protocol::Tcp)]
    protocol: Protocol,
    note: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Fixed { replicas: i32 },
    Scaled { least: i32, most: Option<i32> },
}

pub(super) fn gadget(choices: &Choices) -> Value {
    let count = choices.of(&[json!(0), json!(1), json!(2)]);
    let mut spec = json!({ "name": choices.of(&[json!(""), json!("a")]), "count": count });
    choices.put(&mut spec, "note", &[json!(""), json!("b")]);
    choices.put(&mut spec, "size", &[json!(0), json!(1)]);
    choices.put(&mut spec, "isOn", &[json!(false), json!(true)]);
    let ports = [
        json!({ "port": 80, "protocol": "Tcp" }),
        json!({ "port": 80, "protocol": "Udp", "note": "x" }),
        json!({ "port": 81, "protocol": "Tcp", "note": "" }),
    ];
    choices.put(&mut spec, "ports", &[json!(choices.some(&ports))]);
    choices.put(&mut spec, "tags", &[json!(choices.some(&[json!("a"), json!("b"), json!("c")]))]);
    choices.put(&mut spec, "labels", &[json!({ "a": "1" }), json!({ "b": "" })]);
    choices.put(
        &mut spec,
        "resources",
        &[json!({}), json!({ "limits": { "cpu": "1000m" } }), json!({ "limits": { "cpu": "1" } })],
    );
    choices.put(
        &mut spec,
        "selector",
        &[
            json!({}),
            json!({ "matchLabels": { "a": "1" } }),
            json!({ "matchExpressions": [{ "key": "a", "operator": "Exists" }] }),
        ],
    );
    choices.put(
        &mut spec,
        "mode",
        &[
            json!({ "fixed": { "replicas": 1 } }),
            json!({ "scaled": { "least": 1, "most": null } }),
            json!({ "scaled": { "least": 2, "most": 3 } }),
        ],
    );
    let gadget: Gadget =
        serde_json::from_value(json!({ "metadata": metadata(choices), "spec": spec }))
            .expect("a gadget");
    serde_json::to_value(&gadget).expect("it encodes")
}
