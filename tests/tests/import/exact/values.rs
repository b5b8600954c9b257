// Rust types of values.shapes.example.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - .spec.either: `anyOf` is left out
// - .spec.odd: `title` is left out
// - .spec.odd: `example` is left out
// - .spec.odd: the format "int-or-string" is left out: API servers do not know it
// - .status: it is not required, as no status is
// - .status.phase: its default is left out: it would be stored with the first write of another field
// - .status: no field of a status is required, because a status is stored in part

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "shapes.example.dev", version = "v1", namespaced, kind = "Value", plural = "values")]
pub struct ValueObject {
    pub metadata: ObjectMeta,
    /// # Not a title
    pub spec: ValueObjectSpec,
    pub status: Option<ValueObjectStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectSpec {
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub anything: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<ValueObjectSpecCode>", extend("items" = serde_json::from_str::<serde_json::Value>(r#"{"enum":["b1","b2","b3","b4","b5","b6","b7","b8","b9","b10","b11","b12","b13","b14","b15","b16","b17","b18"],"maxLength":3,"type":"string"}"#).unwrap_or_default()))]
    pub codes: Option<Vec<ValueObjectSpecCode>>,
    /// Tab    here, trailing
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", description = "Tab\there, trailing  ")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueObjectSpecEither")]
    pub either: Option<ValueObjectSpecEither>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", extend("exclusiveMinimum" = true, "format" = null, "maximum" = 5000000000i64, "minimum" = 0))]
    pub exclusive: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueObjectSpecLarge")]
    pub large: Option<ValueObjectSpecLarge>,
    #[schemars(extend("enum" = [1, 2, 3], "format" = null))]
    pub level: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<i32>", extend("items" = { "description": "At most seven.", "format": "int32", "maximum": 7, "type": "integer" }))]
    pub list: Option<Vec<i32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, ValueObjectSpecMapItem>")]
    pub map: Option<BTreeMap<String, ValueObjectSpecMapItem>>,
    #[serde(default = "default_value_object_spec_multiple")]
    #[schemars(extend("format" = null, "multipleOf" = 0.5))]
    pub multiple: f64,
    #[serde(default = "default_value_object_spec_negative")]
    #[schemars(range(min = -5))]
    pub negative: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nullable: Option<ValueObjectSpecNullable>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, i64>", extend("additionalProperties" = { "type": "integer" }))]
    pub numbers: Option<BTreeMap<String, i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub odd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueObjectSpecOne")]
    pub one: Option<ValueObjectSpecOne>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueObjectSpecOptional", extend("default" = {}))]
    pub optional: Option<ValueObjectSpecOptional>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 9), regex(pattern = "^a"))]
    pub parts: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = r##"^"#\\w+"$"##))]
    pub quoted: Option<String>,
    #[schemars(range(min = 0.25, max = 0.75))]
    pub ratio: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub time: Option<String>,
}

fn default_value_object_spec_multiple() -> f64 {
    1.5
}

fn default_value_object_spec_negative() -> i32 {
    -1
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ValueObjectSpecCode {
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectSpecEither {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub a: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub b: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectSpecLarge {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ValueObjectSpecLargeA")]
    pub a: Option<ValueObjectSpecLargeA>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ValueObjectSpecLargeA {
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectSpecMapItem {
    #[schemars(range(max = 7))]
    pub a: i32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ValueObjectSpecNullable {
    #[serde(rename = "x")]
    X,
    #[serde(rename = "z")]
    Z,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{ "required": ["a"] }, { "required": ["b"] }]))]
pub struct ValueObjectSpecOne {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub a: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub b: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectSpecOptional {
    #[serde(default = "default_value_object_spec_optional_a")]
    pub a: String,
}

fn default_value_object_spec_optional_a() -> String {
    r#"say "hi"\n"#.to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueObjectStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub ready: Option<i32>,
}
