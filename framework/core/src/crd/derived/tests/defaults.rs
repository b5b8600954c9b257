//! Defaults that an API server fills in, and what serde makes of them.

#![allow(dead_code)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::Schema as Compiled;
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

fn warnings<T: schemars::JsonSchema>() -> Vec<String> {
    structural_schema::<T>().unwrap().warnings
}

/// The value as an API server stores it.
fn stored<T: schemars::JsonSchema>(mut value: Value) -> Value {
    let schema = structural_schema::<T>().unwrap().schema;
    let faults = windlass_apiserver::crd_schema::check_crd(&definition(&schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
    Compiled::compile(&schema).default(&mut value);
    value
}

#[derive(Serialize, Deserialize, Schema)]
struct OfAnyValue {
    #[schema(default = json!({ "a": 1 }))]
    any: Value,
    #[schema(default = json!("x"))]
    option: Option<Value>,
    #[schema(opaque, default = Part { n: 1 })]
    opaque: Part,
}

#[derive(Debug, Serialize, Deserialize, Schema)]
struct Part {
    n: i32,
}

#[test]
fn the_default_of_any_value_is_in_the_schema() {
    let filled = stored::<OfAnyValue>(json!({}));
    assert_eq!(filled, json!({ "any": { "a": 1 }, "option": "x", "opaque": { "n": 1 } }));
    serde_json::from_value::<OfAnyValue>(filled).unwrap();
}

#[derive(Serialize, Deserialize, Schema)]
struct List {
    first: Chain,
}

#[derive(Serialize, Deserialize, Schema)]
enum Chain {
    End,
    Next(Box<Link>),
}

#[derive(Serialize, Deserialize, Schema)]
struct Link {
    #[schema(default = Chain::End)]
    next: Chain,
}

#[test]
fn a_default_stays_where_a_type_that_contains_itself_is_cut() {
    let filled = stored::<List>(json!({ "first": { "Next": {} } }));
    assert_eq!(filled, json!({ "first": { "Next": { "next": "End" } } }));
    serde_json::from_value::<List>(filled).unwrap();
}

fn five() -> i32 {
    5
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[derive(Default, Serialize, Deserialize, Schema)]
struct Inner {
    #[serde(default = "five", skip_serializing_if = "is_zero")]
    n: i32,
    name: Option<String>,
}

#[derive(Serialize, Deserialize, Schema)]
struct FilledIn {
    #[serde(default)]
    inner: Inner,
    #[schema(default = Some(3))]
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i32>,
    #[schema(default = "x")]
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[test]
fn a_default_in_the_place_of_a_value_that_serde_leaves_out_is_a_warning() {
    let warnings = warnings::<FilledIn>().join("\n");
    for expected in [
        ".inner.n: serde leaves some values of this field out (`skip_serializing_if`), and an API server stores the default 5 \
         in their place",
        ".number: serde leaves",
        ".text: serde leaves",
    ] {
        assert!(warnings.contains(expected), "{expected} in {warnings}");
    }
}

#[derive(Default, Serialize, Deserialize, Schema)]
struct LeftOutAsTheDefault {
    #[schema(default = 0)]
    #[serde(default, skip_serializing_if = "is_zero")]
    n: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    list: Vec<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    option: Option<i32>,
    #[serde(default, with = "in_quotes", skip_serializing_if = "Option::is_none")]
    #[schema(with = Option<String>, pattern = "^-?[0-9]{1,9}$")]
    quoted: Option<i32>,
}

/// Numbers as texts.
mod in_quotes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &Option<i32>, to: S) -> Result<S::Ok, S::Error> {
        number.map(|number| number.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct Around {
    #[serde(default)]
    inner: LeftOutAsTheDefault,
}

#[test]
fn a_value_that_is_left_out_and_is_the_default_is_no_warning() {
    assert_eq!(warnings::<Around>(), [""; 0]);
    assert_eq!(stored::<Around>(json!({})), json!({ "inner": { "n": 0 } }));
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Port {
    name: String,
    #[schema(default = 80)]
    number: i32,
}

fn ports() -> Vec<Port> {
    let port = Port { name: "a".to_owned(), number: 80 };
    vec![port.clone(), port]
}

#[derive(Serialize, Deserialize, Schema)]
struct Repeated {
    #[schema(list(map, keys(name, number)), default = ports())]
    ports: Vec<Port>,
    #[schema(set, default = vec![1, 1])]
    numbers: Vec<i32>,
}

#[test]
fn a_default_with_two_items_of_one_key_is_a_fault() {
    let fault = structural_schema::<Repeated>().unwrap_err().to_string();
    assert!(
        fault.contains(".ports: its default")
            && fault.contains("at [1] has the key of an item before it"),
        "{fault}"
    );
    assert!(fault.contains(".numbers: its default [1,1] at [1] is an item before it"), "{fault}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Numbers {
    #[schema(default = 0.1)]
    small: f32,
    #[serde(default = "tenth")]
    of_serde: f32,
    #[schema(default = 0.1)]
    large: f64,
    #[schema(default = vec![0.3])]
    list: Vec<f32>,
    #[schema(with = f32)]
    #[serde(default = "tenth", with = "as_is")]
    with: f32,
    #[schema(with = f32)]
    #[serde(
        default = "tenth",
        serialize_with = "as_is::serialize",
        skip_serializing_if = "is_none"
    )]
    with_skip: f32,
}

fn is_none(value: &f32) -> bool {
    value.is_nan()
}

/// Numbers, as serde reads and writes them.
mod as_is {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &f32, to: S) -> Result<S::Ok, S::Error> {
        number.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
        f32::deserialize(from)
    }
}

fn tenth() -> f32 {
    0.1
}

#[test]
fn the_default_of_a_number_is_written_as_in_rust() {
    let filled = stored::<Numbers>(json!({}));
    let expected =
        r#"{"large":0.1,"list":[0.3],"of_serde":0.1,"small":0.1,"with":0.1,"with_skip":0.1}"#;
    assert_eq!(filled.to_string(), expected);
}

#[derive(Serialize, Deserialize, Schema)]
struct Durations {
    #[schema(format = "duration", default = "P1D")]
    iso: String,
    #[schema(format = "duration", default = "2 Hours")]
    words: String,
    #[schema(format = "duration", default = "1h30m")]
    go: String,
}

#[derive(Serialize, Deserialize, Schema)]
struct NoDuration {
    #[schema(format = "duration", default = "soon")]
    text: String,
}

#[test]
fn a_default_may_be_every_duration_that_api_servers_read() {
    structural_schema::<Durations>().unwrap();
    let fault = structural_schema::<NoDuration>().unwrap_err().to_string();
    assert!(fault.contains("must be of type duration"), "{fault}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Ratio(f64);

#[derive(Serialize, Deserialize, Schema)]
#[serde(default)]
struct Endless {
    whole: f64,
}

impl Default for Endless {
    fn default() -> Self {
        Self { whole: f64::NEG_INFINITY }
    }
}

fn endless() -> f32 {
    f32::INFINITY
}

fn ratio() -> Ratio {
    Ratio(f64::NAN)
}

#[derive(Serialize, Deserialize, Schema)]
struct NoNumbers {
    #[serde(default = "endless")]
    by_serde: f32,
    inner: Endless,
    #[schema(default = vec![f64::INFINITY])]
    list: Vec<f64>,
    #[schema(default = f64::NAN)]
    of_an_option: Option<f64>,
    #[schema(default = f64::INFINITY)]
    of_the_schema: f64,
    #[serde(default = "ratio")]
    ratio: Ratio,
}

#[test]
fn a_default_that_is_no_number_of_json_is_a_fault_with_its_place() {
    let fault = structural_schema::<NoNumbers>().unwrap_err().to_string();
    for field in ["by_serde", "inner.whole", "of_an_option", "of_the_schema", "ratio"] {
        let expected =
            format!(".{field}: its default is infinite or `NaN`, which no number of JSON is");
        assert!(fault.contains(&expected), "{expected} in {fault}");
    }
    let of_list =
        ".list: its default [null] at [0] is null, as serde writes infinite numbers and `NaN`";
    assert!(fault.contains(of_list), "{fault}");
}

#[derive(Serialize, Deserialize, Schema)]
struct OfOptions<T: Default> {
    #[serde(default)]
    any: T,
    #[serde(default)]
    option: Option<f64>,
}

#[test]
fn the_default_of_an_option_of_a_number_is_no_fault() {
    let found = structural_schema::<OfOptions<Option<f64>>>().unwrap();
    assert_eq!(stored::<OfOptions<Option<f64>>>(json!({})), json!({}));
    assert!(found.warnings.iter().all(|it| it.contains("API servers ")), "{:?}", found.warnings);
}
