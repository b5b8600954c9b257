//! Schemas of all shapes, and the values that they refuse.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::structural_schema;

fn schema<T: JsonSchema>() -> Value {
    structural_schema::<T>().unwrap().schema
}

fn fault<T: JsonSchema>() -> String {
    structural_schema::<T>().unwrap_err().to_string()
}

fn warnings<T: JsonSchema>() -> Vec<String> {
    structural_schema::<T>().unwrap().warnings
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[allow(dead_code)]
enum Source {
    Git { url: String },
    Image { image: String },
}

#[test]
fn a_tagged_enum_lists_its_fields_once_and_says_what_each_variant_requires() {
    let expected = json!({
        "type": "object",
        "properties": {
            "type": { "type": "string", "enum": ["Git", "Image"] },
            "url": { "type": "string" },
            "image": { "type": "string" }
        },
        "required": ["type"],
        "oneOf": [
            { "required": ["type", "url"], "properties": { "type": { "enum": ["Git"] } } },
            { "required": ["type", "image"], "properties": { "type": { "enum": ["Image"] } } }
        ]
    });
    assert_eq!(schema::<Source>(), expected);
}

#[derive(JsonSchema)]
#[serde(tag = "type")]
#[allow(dead_code)]
enum Clash {
    Number { value: i64 },
    Text { value: String },
    Flag { value: bool },
}

#[test]
fn a_field_of_several_types_has_no_type_and_is_checked_for_each_variant() {
    let found = schema::<Clash>();
    assert_eq!(
        found["properties"]["value"],
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    );
    let number = json!({ "not": { "minimum": 1, "maximum": 0 }, "multipleOf": 1 });
    assert_eq!(found["oneOf"][0]["properties"]["value"], number);
    let text = json!({ "not": { "pattern": "[^\\x00-\\x{10FFFF}]" } });
    assert_eq!(found["oneOf"][1]["properties"]["value"], text);
    assert_eq!(found["oneOf"][2]["properties"]["value"], json!({ "enum": [true, false] }));
    assert!(warnings::<Clash>().is_empty());
}

#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.size > 0" }]))]
#[allow(dead_code)]
struct Sized {
    size: i64,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum Ruled {
    Some(Sized),
    Other { more: bool },
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum SameRule {
    One(Sized),
    Other(Sized),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.size < 9" }]))]
#[allow(dead_code)]
enum RuledTwice {
    One(Sized),
    Other(Sized),
}

#[test]
fn a_rule_of_all_alternatives_is_kept_and_one_that_is_lost_is_warned_of() {
    let lost = "is lost, since an API server has rules for the whole field only";
    assert!(
        warnings::<Ruled>().iter().any(|text| text.contains(lost)),
        "{:?}",
        warnings::<Ruled>()
    );
    assert_eq!(schema::<SameRule>()["x-kubernetes-validations"][0]["rule"], "self.size > 0");
    assert!(warnings::<SameRule>().is_empty(), "{:?}", warnings::<SameRule>());
    let both = json!([{ "rule": "self.size < 9" }, { "rule": "self.size > 0" }]);
    assert_eq!(schema::<RuledTwice>()["x-kubernetes-validations"], both);
    assert!(warnings::<Source>().is_empty());
}

#[derive(JsonSchema)]
#[allow(dead_code)]
enum Colour {
    /// Stop.
    Red,
    /// Go.
    Green,
}

#[test]
fn documented_variants_become_one_enum_with_their_texts() {
    let expected = json!({
        "type": "string",
        "enum": ["Red", "Green"],
        "description": "- `Red`: Stop.\n- `Green`: Go."
    });
    assert_eq!(schema::<Colour>(), expected);
}

#[test]
fn the_values_of_an_optional_enum_are_listed_where_the_server_does_not_apply_them_to_null() {
    let found = schema::<Option<Colour>>();
    assert_eq!((&found["type"], &found["nullable"]), (&json!("string"), &json!(true)));
    assert_eq!(found["anyOf"], json!([{ "enum": ["Red", "Green"] }]));
}

#[test]
fn an_option_is_nullable() {
    assert_eq!(schema::<Option<String>>(), json!({ "type": "string", "nullable": true }));
}

#[test]
fn numbers_are_bounded_where_the_server_knows_no_format() {
    assert_eq!(
        schema::<u32>(),
        json!({ "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32 })
    );
    assert_eq!(
        schema::<u64>(),
        json!({ "type": "integer", "minimum": 0, "maximum": 9_223_372_036_854_774_784_i64 })
    );
    assert_eq!(schema::<i64>(), json!({ "type": "integer", "format": "int64" }));
    assert_eq!(
        schema::<std::net::IpAddr>(),
        json!({
            "type": "string",
            "pattern": crate::crd::kubernetes::address("ip"),
            "allOf": [{ "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] }]
        })
    );
}

#[test]
fn maps_and_sets_say_what_they_hold() {
    assert_eq!(
        schema::<BTreeMap<i32, String>>(),
        json!({ "type": "object", "additionalProperties": { "type": "string" } })
    );
    assert_eq!(
        schema::<BTreeSet<String>>(),
        json!({ "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set" })
    );
    assert_eq!(
        schema::<BTreeMap<String, Value>>(),
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    );
}

#[test]
fn tuples_and_unions_of_numbers_and_texts_are_int_or_string() {
    let items = &schema::<(i64, String)>()["items"];
    assert_eq!(items, &json!({ "x-kubernetes-int-or-string": true }));
    assert_eq!(schema::<(i32, i32)>()["items"]["type"], "integer");
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Tree {
    children: Vec<Tree>,
}

#[test]
fn a_type_that_contains_itself_is_cut_with_a_warning() {
    let found = schema::<Tree>().to_string();
    assert!(found.contains("x-kubernetes-preserve-unknown-fields"), "{found}");
    assert!(warnings::<Tree>()[0].contains("contains itself"));
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct BadDefault {
    #[serde(default)]
    #[schemars(range(min = 1))]
    replicas: i32,
    inner: Inner,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Inner {
    #[serde(default)]
    #[schemars(length(min = 1))]
    name: String,
}

#[test]
fn a_default_that_breaks_its_own_rule_is_refused_with_all_others() {
    let text = fault::<BadDefault>();
    assert!(text.contains(".replicas: its default 0 is below minimum 1"), "{text}");
    assert!(text.contains(".inner.name: its default \"\" is below minLength 1"), "{text}");
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct LooksAround {
    #[schemars(regex(pattern = "^(?!x)"))]
    name: String,
}

#[test]
fn a_pattern_that_the_server_cannot_read_is_refused() {
    assert!(fault::<LooksAround>().contains(".name: its pattern uses `(?!`"));
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Beside {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    source: Source,
}

#[test]
fn a_name_in_a_struct_and_in_the_enum_flattened_into_it_is_refused() {
    let text = fault::<Beside>();
    assert!(text.contains(".type: the name stands in the struct and in the enum"), "{text}");
}

struct Impossible;

impl JsonSchema for Impossible {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Impossible".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "allOf": [{ "type": "string" }, { "type": "integer" }] })
    }
}

#[test]
fn a_schema_of_two_types_at_once_is_refused() {
    assert!(fault::<Impossible>().contains("of type"));
}

#[derive(JsonSchema)]
#[allow(dead_code)]
enum Mode {
    Off,
    Quiet,
    Timed { hours: u8 },
}

#[test]
fn variants_with_and_without_data_are_told_apart_by_name() {
    let expected = json!({
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "Timed": {
                "type": "object",
                "required": ["hours"],
                "properties": { "hours": { "type": "integer", "minimum": 0, "maximum": 255 } }
            }
        },
        "oneOf": [
            { "enum": ["Off", "Quiet"] },
            {
                "required": ["Timed"],
                "maxProperties": 1,
                "not": { "minProperties": 1, "maxProperties": 0 }
            }
        ]
    });
    assert_eq!(schema::<Mode>(), expected);
    assert!(warnings::<Mode>().is_empty());
}

#[test]
fn the_server_refuses_what_no_variant_allows() {
    use windlass_apiserver::crd_schema::Schema;
    let refuses = |schema: &Value, value: Value| {
        let compiled = Schema::compile(&super::root(schema));
        !compiled.validate(&json!({ "spec": { "field": value } }), None).causes.is_empty()
    };
    let source = schema::<Source>();
    assert!(refuses(&source, json!({ "type": "Git", "image": "x" })));
    assert!(refuses(&source, json!({ "type": "Other", "image": "x" })));
    let mode = schema::<Mode>();
    assert!(refuses(&mode, json!("Loud")));
    assert!(refuses(&mode, json!({ "Loud": {} })));
    assert!(!refuses(&mode, json!({ "Timed": { "hours": 3 } })));
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum Period {
    Exact(std::time::Duration),
    Named(String),
}

// `Deserialize` of `Duration` refuses unknown fields, which the schema allows.
#[test]
fn a_duration_among_alternatives_has_no_fields_beside_its_own() {
    let schema = schema::<Period>();
    let exact = &schema["anyOf"][0];
    assert_eq!(exact["required"], json!(["secs", "nanos"]), "{schema}");
    assert_eq!(exact["maxProperties"], 2, "{schema}");
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum PortRef {
    Number(bool),
    Name(String),
}

#[derive(JsonSchema)]
#[serde(tag = "type")]
#[allow(dead_code)]
enum Points {
    Texts { points: Vec<String> },
    Numbers { points: Vec<f64> },
}

// kube-apiserver 1.36.3 stores `[null]` there: for null the server checks the type and an `enum`
// alone.
#[test]
fn null_among_items_of_several_types_is_warned_of() {
    let found = warnings::<Vec<PortRef>>();
    assert!(
        found.iter().any(|text| text.contains("[]: an API server takes null for items")),
        "{found:?}"
    );
    let found = warnings::<Points>();
    assert!(
        found.iter().any(|text| text.starts_with(".points.[]: an API server takes null")),
        "{found:?}"
    );
    assert_eq!(warnings::<Vec<serde_json::Value>>(), Vec::<String>::new());
    assert_eq!(warnings::<Vec<Option<PortRef>>>(), Vec::<String>::new());
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Addressed {
    #[schemars(extend("format" = "ipv4"))]
    address: String,
    name: Option<String>,
}

// kube-apiserver 1.36.3 stores `["x"]` for `{ type: string, format: ipv4 }`.
#[test]
fn a_list_is_refused_where_a_text_with_a_format_is_expected() {
    let found = schema::<Addressed>();
    let definition = json!({ "type": "object", "properties": { "spec": found } });
    let compiled = windlass_apiserver::crd_schema::Schema::compile(&definition);
    let refuses = |address: Value| {
        !compiled.validate(&json!({ "spec": { "address": address } }), None).causes.is_empty()
    };
    assert!(!refuses(json!("10.0.0.1")));
    assert!(refuses(json!("10.0.0.x")));
    assert!(refuses(json!(["10.0.0.1"])));
    assert!(refuses(json!([])));
    assert_eq!(found["properties"]["name"], json!({ "type": "string", "nullable": true }));
    // Only the operator writes a status: no rules are added to the schema of a status.
    let mut faults = crate::crd::faults::Faults::default();
    let generate =
        |generator: &mut schemars::SchemaGenerator| generator.subschema_for::<Addressed>();
    let (status, _) = super::super::field_schema("status", generate, &mut faults);
    let address = status["properties"]["address"].as_object().unwrap();
    assert_eq!(address.keys().collect::<Vec<_>>(), ["format", "pattern", "type"]);
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Exact {
    seconds: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum InnerChoice {
    Exact(Exact),
    Named { name: String },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum OuterChoice {
    Timed { label: String, number: i64 },
    Inner(InnerChoice),
}

#[test]
fn a_variant_of_a_nested_enum_refuses_the_fields_of_the_outer_one_as_serde_does() {
    let schema = schema::<OuterChoice>();
    for (value, is_read) in [
        (json!({ "seconds": 1 }), true),
        (json!({ "seconds": 1, "label": "a" }), false),
        (json!({ "label": "a", "number": 1 }), true),
        (json!({ "label": "a", "name": "b" }), true),
    ] {
        assert_eq!(serde_json::from_value::<OuterChoice>(value.clone()).is_ok(), is_read);
        assert_eq!(crate::crd::misfit(&value, &schema).is_none(), is_read, "{value} {schema}");
    }
}
