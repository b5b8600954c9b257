//! Keys of fields whose type is a list or a map under another name.

#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema as Compiled, check_crd};
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

/// A type without a schema.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Foreign {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    field: i32,
}

type Items = Vec<Foreign>;
type ByName = BTreeMap<u16, Foreign>;
type Chain = Vec<HashMap<String, [Foreign; 2]>>;

#[derive(Serialize, Deserialize)]
struct Wrapped(Vec<Foreign>);

/// A number or a text, of another crate.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ForeignPort {
    Number(i32),
    Name(String),
}

type ItemsOrNull = Vec<Option<Foreign>>;
type PortsOrNull = BTreeMap<String, Option<ForeignPort>>;

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
    #[schema(opaque)]
    items_or_null: ItemsOrNull,
    #[schema(opaque)]
    lists_or_null: BTreeMap<String, Option<Vec<Foreign>>>,
    #[schema(opaque)]
    list_or_null: Option<ItemsOrNull>,
    #[schema(embedded)]
    objects: Items,
    #[schema(embedded)]
    object: Unstructured,
    #[schema(embedded)]
    objects_by_name: ByName,
    #[schema(embedded)]
    objects_or_null: ItemsOrNull,
    #[schema(int_or_string)]
    ports: [ForeignPort; 2],
    #[schema(int_or_string)]
    ports_by_name: HashMap<String, ForeignPort>,
    #[schema(int_or_string)]
    ports_or_null: PortsOrNull,
    #[schema(int_or_string)]
    port: ForeignPort,
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
fn a_list_or_map_of_options_keeps_null() {
    let found = lowered();
    let object =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "nullable": true });
    assert_eq!(found["items_or_null"]["items"], object);
    assert_eq!(found["list_or_null"]["items"], object);
    assert_eq!(found["objects_or_null"]["items"]["nullable"], true);
    assert_eq!(found["ports_or_null"]["additionalProperties"]["nullable"], true);
    let list = &found["lists_or_null"]["additionalProperties"];
    assert_eq!(list["nullable"], true, "{list:#}");
    assert_eq!(list["items"]["nullable"], Value::Null, "{list:#}");
    // The field itself may be null as serde says.
    assert_eq!(found["list_or_null"]["nullable"], true);
    for name in ["items_or_null", "objects_or_null", "ports_or_null", "lists_or_null"] {
        assert_eq!(found[name]["nullable"], Value::Null, "{name}: {:#}", found[name]);
    }
}

/// A type that contains itself, and no list or map.
#[derive(Serialize, Deserialize)]
struct Endless(Option<Box<Self>>);

#[derive(Serialize, Deserialize, Schema)]
struct KeptEndless {
    #[schema(opaque)]
    endless: Endless,
    #[schema(opaque)]
    all: Vec<Endless>,
}

#[test]
fn a_type_that_contains_itself_in_an_option_is_any_value() {
    let fields = &structural_schema::<KeptEndless>().unwrap().schema["properties"];
    let any = json!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true });
    assert_eq!(fields["endless"], any);
    assert_eq!(fields["all"]["items"], any);
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

/// Returns each field with a value that serde reads, and a value of another form.
fn values() -> Vec<(&'static str, Value, Value)> {
    let foreign = json!({ "field": 1 });
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "field": 1 });
    vec![
        ("alias", json!([foreign]), foreign.clone()),
        ("array", json!([foreign, foreign]), json!({ "0": foreign })),
        ("boxed", json!([foreign]), json!("x")),
        ("newtype", json!([foreign]), json!({})),
        ("by_name", json!({ "1": foreign }), json!([foreign])),
        ("chain", json!([{ "a": [foreign, foreign] }]), json!([[foreign]])),
        ("deep", json!([[], [[]]]), json!([{}])),
        ("texts", json!(["x", ["y"]]), json!("x")),
        ("plain", foreign.clone(), json!("x")),
        ("items_or_null", json!([foreign, null]), json!([[]])),
        ("lists_or_null", json!({ "a": [foreign], "b": null }), json!({ "a": [null] })),
        ("list_or_null", json!([null]), json!({})),
        ("objects", json!([object]), object.clone()),
        ("object", object.clone(), json!([object])),
        ("objects_by_name", json!({ "1": object }), json!([object])),
        ("objects_or_null", json!([object, null]), json!([[]])),
        ("ports", json!([80, "http"]), json!(80)),
        ("ports_by_name", json!({ "a": 80 }), json!([80])),
        ("ports_or_null", json!({ "a": "http", "b": null }), json!({ "a": [] })),
        ("port", json!("http"), json!(["http"])),
        ("untagged", json!(["x"]), json!(1)),
    ]
}

#[test]
fn a_server_stores_kept_values_of_the_form_that_serde_reads_and_of_no_other() {
    let found = structural_schema::<Kept>().unwrap();
    let root = definition(&found.schema)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    let compiled = Compiled::compile(&root);
    let good: Value = values().into_iter().map(|(name, good, _)| (name.to_owned(), good)).collect();
    let fields = found.schema["properties"].as_object().unwrap();
    assert!(fields.keys().eq(good.as_object().unwrap().keys()), "a field has no value here");
    let is_read = |spec: &Value| serde_json::from_value::<Kept>(spec.clone()).is_ok();
    let refusal = |spec: &Value| compiled.validate(&json!({ "spec": spec }), None).causes;
    assert!(is_read(&good));
    assert!(refusal(&good).is_empty(), "{:?}", refusal(&good));
    for (name, _, bad) in values() {
        let mut spec = good.clone();
        spec[name] = bad;
        assert!(!is_read(&spec), "{name}: serde reads {}", spec[name]);
        // A value of several forms is not checked.
        let causes = refusal(&spec);
        assert_eq!(causes.is_empty(), name == "untagged", "{name}: {} {causes:?}", spec[name]);
    }
}

#[test]
fn a_server_accepts_the_definition_of_kept_values_and_checks_less_at_their_places() {
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

/// Serde reads no names of an enum without tags, and those of another type by `try_from`.
#[derive(Serialize, Deserialize, Schema)]
#[serde(untagged)]
enum NumberOrText {
    A(i32),
    #[serde(rename = "A")]
    B(String),
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(try_from = "String", into = "String", rename_all = "lowercase")]
enum Protocol {
    Http,
    #[serde(rename = "http")]
    Shouted,
}

impl TryFrom<String> for Protocol {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "http" => Ok(Self::Http),
            "HTTP" => Ok(Self::Shouted),
            _ => Err(text),
        }
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http => "http".to_owned(),
            Protocol::Shouted => "HTTP".to_owned(),
        }
    }
}

#[test]
fn names_that_serde_does_not_read_may_be_alike() {
    let read = |value| serde_json::from_value::<NumberOrText>(value).is_ok();
    assert!(read(serde_json::json!(1)) && read(serde_json::json!("a")));
    assert!(serde_json::from_str::<Protocol>("\"HTTP\"").is_ok());
}
