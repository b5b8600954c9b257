// Rust types of values.shapes.example.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 22 optional fields accept null as well (`--exact` prevents it)
// - 4 numbers get the format of their Rust type (`--exact` prevents it)
// - .spec.either: `anyOf` is left out
// - .spec.odd: the format "int-or-string" is left out: API servers do not know it
// - .status: it is not required, as no status is
// - .status.phase: its default is left out: it would be stored with the first write of another field
// - .status: no field of a status is required, because a status is stored in part

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "shapes.example.dev",
    version = "v1",
    namespaced,
    kind = "Value",
    plural = "values"
)]
pub struct ValueObject {
    pub metadata: ObjectMeta,
    /// # Not a title
    pub spec: ValueObjectSpec,
    pub status: Option<ValueObjectStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectSpec {
    #[schema(preserve)]
    pub anything: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(each(length(max = 3)))]
    pub codes: Option<Vec<ValueObjectCode>>,
    /// Tab    here, trailing
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend("description" = "Tab\there, trailing  "))]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub either: Option<ValueObjectEither>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(embedded)]
    pub embedded: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_min = 0, max = 5_000_000_000_i64)]
    pub exclusive: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large: Option<ValueObjectLarge>,
    #[schema(extend("enum" = [1, 2, 3]))]
    pub level: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend(
        "items" = { "description": "At most seven.", "format": "int32", "maximum": 7, "type": "integer" }
    ))]
    pub list: Option<Vec<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<BTreeMap<String, ValueObjectMapItem>>,
    #[serde(default = "default_multiple")]
    #[schema(multiple_of = 0.5)]
    pub multiple: f64,
    #[serde(default = "default_negative")]
    #[schema(min = -5)]
    pub negative: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nullable: Option<ValueObjectNullable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<BTreeMap<String, i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(title = "Odd", example = "x")]
    pub odd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one: Option<ValueObjectOne>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend("default" = {}))]
    pub optional: Option<ValueObjectOptional>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(min = 1, max = 9), pattern = "^a")]
    pub parts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r##"^"#\\w+"$"##)]
    pub quoted: Option<String>,
    #[schema(range(min = 0.25, max = 0.75))]
    pub ratio: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<ApiTime>,
}

fn default_multiple() -> f64 {
    1.5
}

fn default_negative() -> i32 {
    -1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ValueObjectCode {
    #[serde(rename = "b1")]
    B1,
    #[serde(rename = "b2")]
    B2,
    #[serde(rename = "b3")]
    B3,
    #[serde(rename = "b4")]
    B4,
    #[serde(rename = "b5")]
    B5,
    #[serde(rename = "b6")]
    B6,
    #[serde(rename = "b7")]
    B7,
    #[serde(rename = "b8")]
    B8,
    #[serde(rename = "b9")]
    B9,
    #[serde(rename = "b10")]
    B10,
    #[serde(rename = "b11")]
    B11,
    #[serde(rename = "b12")]
    B12,
    #[serde(rename = "b13")]
    B13,
    #[serde(rename = "b14")]
    B14,
    #[serde(rename = "b15")]
    B15,
    #[serde(rename = "b16")]
    B16,
    #[serde(rename = "b17")]
    B17,
    #[serde(rename = "b18")]
    B18,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectEither {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectLarge {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<ValueObjectLargeA>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ValueObjectLargeA {
    #[serde(rename = "a1")]
    A1,
    #[serde(rename = "a2")]
    A2,
    #[serde(rename = "a3")]
    A3,
    #[serde(rename = "a4")]
    A4,
    #[serde(rename = "a5")]
    A5,
    #[serde(rename = "a6")]
    A6,
    #[serde(rename = "a7")]
    A7,
    #[serde(rename = "a8")]
    A8,
    #[serde(rename = "a9")]
    A9,
    #[serde(rename = "a10")]
    A10,
    #[serde(rename = "a11")]
    A11,
    #[serde(rename = "a12")]
    A12,
    #[serde(rename = "a13")]
    A13,
    #[serde(rename = "a14")]
    A14,
    #[serde(rename = "a15")]
    A15,
    #[serde(rename = "a16")]
    A16,
    #[serde(rename = "a17")]
    A17,
    #[serde(rename = "a18")]
    A18,
}

/// One entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectMapItem {
    #[schema(max = 7)]
    pub a: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ValueObjectNullable {
    #[serde(rename = "x")]
    X,
    #[serde(rename = "z")]
    Z,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(extend("oneOf" = [{ "required": ["a"] }, { "required": ["b"] }]))]
pub struct ValueObjectOne {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectOptional {
    #[serde(default = "default_a")]
    pub a: String,
}

fn default_a() -> String {
    r#"say "hi"\n"#.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ValueObjectStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
}
