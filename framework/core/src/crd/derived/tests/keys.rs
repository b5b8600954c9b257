//! Each key of `#[schema(…)]` and the key's effect.

#![allow(dead_code)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_macros::Schema;

use windlass_apiserver::crd_schema::check_crd;

use super::{definition, field, schema};

const MOST: i32 = 10;

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct Port {
    port_name: String,
    number: i32,
}

#[derive(Serialize, Deserialize, Schema)]
struct Fields {
    #[schema(min = 1, max = MOST)]
    bounds: i32,
    #[schema(range(min = -1, max = 9))]
    range: Option<i32>,
    #[schema(exclusive_min = 0, exclusive_max = 1.5, multiple_of = 0.5)]
    open: f64,
    #[schema(length(min = 1, max = 63), pattern = "^[a-z]+$")]
    text: String,
    #[schema(length(equal = 2))]
    code: String,
    #[schema(format = "uri")]
    url: String,
    #[schema(items(max = 3), each(pattern = "^a", length(max = 5)))]
    list: Vec<String>,
    #[schema(length(max = 4))]
    length_of_list: Vec<String>,
    #[schema(properties(min = 1, max = 2))]
    map: BTreeMap<String, String>,
    #[schema(list(map, keys(port_name)))]
    ports: Vec<Port>,
    #[schema(list(map, keys(port_name, number)))]
    optional_ports: Option<Vec<Port>>,
    #[schema(set)]
    set: Vec<String>,
    #[schema(atomic)]
    atomic_list: Vec<String>,
    #[schema(atomic)]
    atomic_map: BTreeMap<String, String>,
    #[schema(atomic, rule("self.number > 0", path = ".number"))]
    atomic_struct: Port,
    #[schema(list(atomic))]
    list_atomic: Option<Vec<String>>,
    #[schema(map(granular))]
    granular: BTreeMap<String, String>,
    #[schema(rule("self > 0", message = "positive", reason = "FieldValueForbidden"))]
    #[schema(rule(
        "!oldSelf.hasValue() || self >= oldSelf.value()",
        message_expression = "self < 0 ? 'negative' : 'smaller than before'",
        optional_old_self
    ))]
    ruled: i32,
    #[schema(immutable)]
    immutable: String,
    #[schema(default = 3)]
    three: i64,
    #[schema(default = "nginx")]
    image: String,
    #[schema(default = "x")]
    optional_image: Option<String>,
    #[schema(default = Some(4))]
    four: Option<i32>,
    #[schema(default = vec![Port { port_name: "a".to_owned(), number: 1 }])]
    port_list: Vec<Port>,
    #[schema(example = "a", example = "b", title = "The title", docs = "https://example.dev")]
    remarks: String,
    #[schema(preserve)]
    preserve: Port,
    #[schema(embedded)]
    embedded: Value,
    #[schema(int_or_string)]
    port: Option<Value>,
    #[schema(with = String, nullable)]
    #[serde(deserialize_with = "empty_of_null")]
    nullable: String,
    #[schema(skip)]
    #[serde(default)]
    skipped: i32,
    #[schema(extend("x-kubernetes-map-type" = "atomic", "x-other" = [1, 2]))]
    extended: BTreeMap<String, i32>,
    #[schema(transform = shorten)]
    transformed: String,
}

fn empty_of_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    <Option<String> as serde::Deserialize>::deserialize(from).map(Option::unwrap_or_default)
}

fn shorten(schema: &mut schemars::Schema) {
    schema.insert("maxLength".to_owned(), 1.into());
}

#[track_caller]
fn has(name: &str, expected: Value) {
    let found = field::<Fields>(name);
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&found[key], value, "{key} of {name}: {found:#}");
    }
}

#[test]
fn a_server_accepts_all_keys() {
    let found = crate::crd::structural_schema::<Fields>().unwrap();
    let is_opaque =
        |warning: &&String| warning.starts_with(".embedded: ") || warning.starts_with(".port: ");
    assert_eq!(found.warnings.iter().filter(is_opaque).count(), 2);
    let is_of_fractions = |warning: &&String| warning.starts_with(".open: API servers ");
    assert_eq!(found.warnings.iter().filter(is_of_fractions).count(), 2);
    assert_eq!(found.warnings.len(), 4, "{:?}", found.warnings);
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn bounds_lengths_patterns_and_formats() {
    has("bounds", json!({ "minimum": 1, "maximum": 10 }));
    has("range", json!({ "minimum": -1, "maximum": 9 }));
    has("open", json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.5 }));
    has("text", json!({ "minLength": 1, "maxLength": 63, "pattern": "^[a-z]+$" }));
    has("code", json!({ "minLength": 2, "maxLength": 2 }));
    has("url", json!({ "format": "uri" }));
    has("map", json!({ "minProperties": 1, "maxProperties": 2 }));
    has(
        "list",
        json!({ "maxItems": 3, "items": { "type": "string", "pattern": "^a", "maxLength": 5 } }),
    );
    has("length_of_list", json!({ "maxItems": 4 }));
}

#[test]
fn kinds_of_lists_and_maps() {
    let map = |keys: &[&str]| json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys });
    has("ports", map(&["portName"]));
    has("optional_ports", map(&["portName", "number"]));
    has("set", json!({ "x-kubernetes-list-type": "set" }));
    has("atomic_list", json!({ "x-kubernetes-list-type": "atomic" }));
    has("list_atomic", json!({ "x-kubernetes-list-type": "atomic" }));
    has("atomic_map", json!({ "x-kubernetes-map-type": "atomic" }));
    let found = crate::crd::structural_schema::<Fields>().unwrap().schema;
    assert_eq!(found["properties"]["atomic_struct"]["x-kubernetes-map-type"], "atomic");
    has("granular", json!({ "x-kubernetes-map-type": "granular" }));
}

#[test]
fn rules_of_a_field() {
    let rules = json!([
        { "rule": "self > 0", "message": "positive", "reason": "FieldValueForbidden" },
        {
            "rule": "!oldSelf.hasValue() || self >= oldSelf.value()",
            "messageExpression": "self < 0 ? 'negative' : 'smaller than before'",
            "optionalOldSelf": true
        },
    ]);
    has("ruled", json!({ "x-kubernetes-validations": rules }));
    let rule = json!([{ "rule": "self == oldSelf", "message": "field is immutable" }]);
    has(
        "atomic_struct",
        json!({ "x-kubernetes-validations": [{ "rule": "self.number > 0", "fieldPath": ".number" }] }),
    );
    has("immutable", json!({ "x-kubernetes-validations": rule }));
}

#[test]
fn the_path_of_a_rule_quotes_a_name_that_is_no_part_of_a_path() {
    #[derive(Serialize, Deserialize, Schema)]
    #[schema(rule("self.plain > 0", path = dotted), rule("self.plain > 1", path = quoted))]
    #[schema(rule("self.plain > 2", path = dashed))]
    struct Names {
        plain: i32,
        #[serde(rename = "a.b")]
        dotted: i32,
        #[serde(rename = "it's[0]")]
        quoted: i32,
        #[serde(rename = "a-b")]
        dashed: i32,
    }
    let found = crate::crd::structural_schema::<Names>().unwrap();
    let rules = found.schema["x-kubernetes-validations"].as_array().unwrap();
    let paths: Vec<_> = rules.iter().map(|rule| rule["fieldPath"].as_str().unwrap()).collect();
    assert_eq!(paths, ["['a.b']", r"['it\'s[0]']", ".a-b"]);
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_default_is_an_expression_of_the_type() {
    has("three", json!({ "default": 3 }));
    has("image", json!({ "default": "nginx" }));
    has("optional_image", json!({ "default": "x" }));
    has("four", json!({ "default": 4 }));
    has("port_list", json!({ "default": [{ "portName": "a", "number": 1 }] }));
    let required = schema::<Fields>()["required"].clone();
    let required: Vec<_> = required.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in ["three", "image", "four", "port_list", "range", "port", "skipped"] {
        assert!(!required.contains(&name), "{name}");
    }
}

#[test]
fn remarks_and_escapes() {
    has("remarks", json!({ "examples": ["a", "b"], "title": "The title" }));
    has("remarks", json!({ "externalDocs": { "url": "https://example.dev" } }));
    has("preserve", json!({ "x-kubernetes-preserve-unknown-fields": true, "type": "object" }));
    has("embedded", json!({ "x-kubernetes-embedded-resource": true, "type": "object" }));
    has("port", json!({ "x-kubernetes-int-or-string": true, "nullable": true }));
    has("nullable", json!({ "nullable": true, "type": "string" }));
    has("extended", json!({ "x-kubernetes-map-type": "atomic", "x-other": [1, 2] }));
    has("transformed", json!({ "maxLength": 1 }));
    assert_eq!(field::<Fields>("skipped"), Value::Null);
}

#[test]
fn keys_of_a_type() {
    #[derive(Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    #[schema(rule("self.minSize <= self.maxSize", message = "min is above max", path = min_size))]
    #[schema(
        one_of(first_way, second),
        at_most_one_of(first_way, third),
        at_least_one_of(second, third)
    )]
    #[schema(title = "Sizes", atomic, preserve, properties(max = 9), example = json!({ "minSize": 1 }))]
    struct Sizes {
        min_size: i32,
        max_size: i32,
        first_way: Option<i32>,
        second: Option<i32>,
        third: Option<i32>,
    }
    let found = schema::<Sizes>();
    let expected = json!([
        { "rule": "self.minSize <= self.maxSize", "message": "min is above max", "fieldPath": ".minSize" },
        {
            "rule": "[has(self.firstWay),has(self.second)].filter(x,x==true).size() == 1",
            "message": "exactly one of the fields in [firstWay second] must be set"
        },
        {
            "rule": "[has(self.firstWay),has(self.third)].filter(x,x==true).size() <= 1",
            "message": "at most one of the fields in [firstWay third] may be set"
        },
        {
            "rule": "[has(self.second),has(self.third)].filter(x,x==true).size() >= 1",
            "message": "at least one of the fields in [second third] must be set"
        },
    ]);
    assert_eq!(found["x-kubernetes-validations"], expected);
    assert_eq!(found["title"], "Sizes");
    assert_eq!(found["x-kubernetes-map-type"], "atomic");
    assert_eq!(found["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(found["maxProperties"], 9);
    assert_eq!(found["examples"], json!([{ "minSize": 1 }]));
}

#[test]
fn rules_of_a_type_and_of_the_field_with_that_type_both_hold() {
    #[derive(Serialize, Deserialize, Schema)]
    #[schema(rule("self.a > 0"))]
    struct Inner {
        a: i32,
    }
    #[derive(Serialize, Deserialize, Schema)]
    struct Outer {
        #[schema(rule("self.a < 9"))]
        inner: Inner,
        #[serde(flatten)]
        flat: Inner,
    }
    let rules = |schema: &Value| schema["x-kubernetes-validations"].as_array().map_or(0, Vec::len);
    let structural = crate::crd::structural_schema::<Outer>().unwrap().schema;
    assert_eq!(rules(&structural["properties"]["inner"]), 2, "{structural:#}");
    assert_eq!(rules(&structural), 1, "{structural:#}");
}

#[test]
fn remarks_reach_the_definition() {
    let structural = crate::crd::structural_schema::<Fields>().unwrap().schema;
    let field = &structural["properties"]["remarks"];
    assert_eq!(field["title"], "The title", "{field:#}");
    assert_eq!(field["example"], "a", "the first of the examples");
    assert_eq!(field["externalDocs"], json!({ "url": "https://example.dev" }));
    assert_eq!(field.get("examples"), None, "{field:#}");
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(transparent)]
struct Short(#[schema(length(max = 5), pattern = "^a")] String);

#[derive(Serialize, Deserialize, Schema)]
struct Loosened {
    #[schema(min = 0)]
    port: std::num::NonZeroU16,
    #[schema(items(min = 1, max = 9))]
    three: [i32; 3],
    #[schema(length(max = 5))]
    letter: char,
    #[schema(length(max = 10), pattern = "z$")]
    short: Short,
    #[schema(length(max = 4))]
    shorter: Short,
}

#[test]
fn a_key_does_not_loosen_what_the_type_demands() {
    let found = schema::<Loosened>();
    let field = |name: &str| found["properties"][name].clone();
    assert_eq!(field("port")["minimum"], 1);
    assert_eq!(
        (field("three")["minItems"].clone(), field("three")["maxItems"].clone()),
        (json!(3), json!(3))
    );
    assert_eq!(field("letter")["maxLength"], 1);
    assert_eq!(field("short")["maxLength"], 5);
    assert_eq!(field("short")["pattern"], "z$");
    assert_eq!(field("short")["allOf"], json!([{ "pattern": "^a" }]));
    assert_eq!(field("shorter")["maxLength"], 4);
}

type Hosts = Vec<String>;

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Number(i32);

#[derive(Serialize, Deserialize, Schema)]
struct Hidden {
    #[schema(length(min = 1, max = 2))]
    hosts: Hosts,
    #[schema(length(equal = 2))]
    pair: [String; 2],
    #[schema(each(length(min = 2)))]
    nested: Vec<Vec<String>>,
    #[schema(pattern = "^8")]
    number: Number,
    #[schema(each(pattern = "^x$"))]
    names: Names,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Names(Vec<String>);

#[test]
fn a_length_of_a_list_behind_another_name_is_a_number_of_items_and_an_idle_key_is_warned_of() {
    let found = crate::crd::structural_schema::<Hidden>().unwrap();
    let field = |name: &str| found.schema["properties"][name].clone();
    assert_eq!(
        (field("hosts")["minItems"].clone(), field("hosts")["maxItems"].clone()),
        (json!(1), json!(2))
    );
    assert_eq!(field("pair")["maxItems"], 2);
    assert_eq!(field("nested")["items"]["minItems"], 2);
    assert_eq!(field("names")["items"]["pattern"], "^x$");
    assert_eq!(
        found.warnings,
        [".number: `pattern` restricts no value of type integer, so it has no effect"]
    );
}

#[derive(Serialize, Deserialize, Schema)]
struct Exemplary {
    #[schema(pattern = "^[a-z]+$", example = "home")]
    good: String,
    #[schema(pattern = "^[a-z]+$", example = "Home")]
    bad: Option<String>,
    #[schema(rule("self != 'home'", message = "not home"), example = "home")]
    ruled: String,
}

#[test]
fn an_example_that_its_own_schema_refuses_is_warned_of() {
    let found = crate::crd::structural_schema::<Exemplary>().unwrap();
    let [refused, ruled] = found.warnings.as_slice() else { panic!("{:?}", found.warnings) };
    assert!(refused.starts_with(".bad: its example \"Home\" "), "{refused}");
    let expected = ".ruled: its example \"home\" breaks a rule of its own: not home; change the example or the rule";
    assert_eq!(ruled, expected);
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(tag = "t")]
enum Source {
    Git {
        #[schema(default = "main".to_owned())]
        branch: String,
    },
    Image {
        tag: String,
    },
}

#[test]
fn a_field_that_serde_needs_stays_required_where_no_default_is_filled_in() {
    let found = crate::crd::structural_schema::<Source>().unwrap().schema;
    let branches = found["oneOf"].as_array().unwrap();
    let requires = |name: &str| {
        let names = branches.iter().filter_map(|branch| branch["required"].as_array());
        names.flatten().any(|found| found == name)
    };
    assert!(requires("branch") && requires("tag"), "{found:#}");
    assert!(!found.to_string().contains("default"), "{found:#}");
}

#[derive(Serialize, Deserialize, Schema)]
#[schema(rule("self.z > 3"))]
struct Ruled {
    #[schema(default = 4)]
    z: i32,
}

#[derive(Serialize, Deserialize, Schema)]
struct Around {
    x: i32,
    #[serde(flatten)]
    ruled: Option<Ruled>,
    #[serde(skip_serializing)]
    secret: String,
}

#[test]
fn a_flattened_option_has_no_defaults_and_its_rules_are_warned_of() {
    let found = crate::crd::structural_schema::<Around>().unwrap();
    assert!(found.schema["properties"]["z"]["default"].is_null(), "{:#}", found.schema);
    let has = |text: &str| found.warnings.iter().any(|warning| warning.contains(text));
    assert!(has("the rules of a flattened option"), "{:?}", found.warnings);
    assert!(has("serde never writes \"secret\" (`skip_serializing`)"), "{:?}", found.warnings);
}
