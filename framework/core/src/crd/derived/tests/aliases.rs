//! Keys of fields whose type is a list or a map under another name.

#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::check_crd;
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

/// A type without a schema.
#[derive(Serialize, Deserialize)]
struct Foreign {
    field: i32,
}

type Items = Vec<Foreign>;
type ByName = BTreeMap<u16, Foreign>;
type Chain = Vec<HashMap<String, [Foreign; 2]>>;

#[derive(Serialize, Deserialize)]
struct Wrapped(Vec<Foreign>);

/// A list of itself.
#[derive(Serialize, Deserialize)]
struct Deep(Vec<Self>);

/// A struct that serde reads as a map.
#[derive(Serialize, Deserialize)]
struct Unstructured {
    kind: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize, Deserialize, Schema)]
struct Kept {
    #[schema(opaque)]
    alias: Items,
    #[schema(opaque)]
    array: [Foreign; 2],
    #[schema(opaque)]
    boxed: Box<[Foreign]>,
    #[schema(opaque)]
    newtype: Option<Wrapped>,
    #[schema(opaque)]
    by_name: ByName,
    #[schema(opaque)]
    chain: Chain,
    #[schema(opaque)]
    deep: Deep,
    #[schema(opaque)]
    untagged: OneOrMany,
    #[schema(opaque)]
    texts: Vec<OneOrMany>,
    #[schema(opaque)]
    plain: Foreign,
    #[schema(embedded)]
    objects: Items,
    #[schema(embedded)]
    object: Unstructured,
    #[schema(embedded)]
    objects_by_name: ByName,
    #[schema(int_or_string)]
    ports: [Foreign; 2],
    #[schema(int_or_string)]
    ports_by_name: HashMap<String, Foreign>,
    #[schema(int_or_string)]
    port: Foreign,
}

fn lowered() -> Value {
    structural_schema::<Kept>().unwrap().schema["properties"].clone()
}

#[derive(Serialize, Deserialize, Schema)]
struct Generic<T> {
    #[schema(opaque)]
    value: T,
}

#[test]
fn an_opaque_value_of_a_type_parameter_may_be_any() {
    let found = structural_schema::<Generic<Foreign>>().unwrap().schema;
    let value = &found["properties"]["value"];
    assert_eq!(value["x-kubernetes-preserve-unknown-fields"], true, "{value:#}");
    assert_eq!(value["type"], Value::Null, "{value:#}");
}

#[test]
fn an_opaque_value_has_the_form_that_serde_reads() {
    let object = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let list = |items: &Value| json!({ "type": "array", "items": items, "x-kubernetes-list-type": "atomic" });
    let map = |values: &Value| json!({ "type": "object", "additionalProperties": values });
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true });
    let inside = json!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true });
    let found = lowered();
    for name in ["alias", "boxed"] {
        assert_eq!(found[name], list(&object), "{name}");
    }
    // The positions of an array may be those of a tuple.
    assert_eq!(found["array"], list(&inside));
    assert_eq!(found["newtype"]["type"], "array");
    assert_eq!(found["by_name"], map(&object));
    assert_eq!(found["chain"], list(&map(&list(&inside))));
    assert_eq!(found["deep"], list(&list(&list(&list(&list(&inside))))));
    assert_eq!(found["untagged"], any);
    assert_eq!(found["texts"], list(&inside));
    assert_eq!(found["plain"], object);
}

#[test]
fn objects_and_ports_stand_in_the_lists_and_maps_that_serde_reads() {
    let found = lowered();
    let embedded = "x-kubernetes-embedded-resource";
    assert_eq!(found["objects"]["items"][embedded], true);
    assert_eq!(found["object"][embedded], true, "{:#}", found["object"]);
    assert_eq!(found["objects_by_name"]["additionalProperties"][embedded], true);
    let port = "x-kubernetes-int-or-string";
    assert_eq!(found["ports"]["items"][port], true);
    assert_eq!(found["ports_by_name"]["additionalProperties"][port], true);
    assert_eq!(found["port"][port], true);
}

#[test]
fn a_server_accepts_kept_values_of_every_form() {
    let found = structural_schema::<Kept>().unwrap();
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
    for name in ["alias.[]", "untagged", "by_name.*"] {
        let place = format!(".{name}: an API server stores any ");
        assert!(found.warnings.iter().any(|it| it.starts_with(&place)), "{:#?}", found.warnings);
    }
}

type Names = Vec<String>;
type Labels = BTreeMap<String, String>;

#[derive(Serialize, Deserialize, Schema)]
#[schema(atomic)]
struct Hosts(Vec<String>);

#[derive(Serialize, Deserialize, Schema)]
struct Addresses(Vec<String>);

#[derive(Serialize, Deserialize, Schema)]
#[schema(atomic)]
struct Size {
    width: i32,
}

#[derive(Serialize, Deserialize, Schema)]
struct Atomic {
    #[schema(atomic)]
    alias: Names,
    #[schema(atomic)]
    array: [i32; 2],
    #[schema(atomic)]
    newtype: Addresses,
    #[schema(atomic)]
    optional: Option<Addresses>,
    hosts: Hosts,
    #[schema(atomic)]
    labels: Labels,
    #[schema(atomic)]
    whole: Size,
    size: Size,
}

#[test]
fn a_list_or_map_of_any_name_is_atomic() {
    let found = structural_schema::<Atomic>().unwrap();
    let fields = &found.schema["properties"];
    for name in ["alias", "array", "newtype", "optional", "hosts"] {
        let field = &fields[name];
        assert_eq!(field["x-kubernetes-list-type"], "atomic", "{name}: {field:#}");
        assert_eq!(field["x-kubernetes-map-type"], Value::Null, "{name}");
    }
    for name in ["labels", "whole", "size"] {
        assert_eq!(fields[name]["x-kubernetes-map-type"], "atomic", "{name}");
        assert_eq!(fields[name]["x-kubernetes-list-type"], Value::Null, "{name}");
    }
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}
