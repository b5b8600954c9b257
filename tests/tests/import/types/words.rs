// Rust types of words.shapes.example.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 51 optional fields accept null as well (`--exact` prevents it)
// - 6 numbers get the format of their Rust type (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "shapes.example.dev", version = "v1", namespaced, plural = "words")]
#[resource(column("Type", spec.r#type))]
#[resource(column("Self", spec.self_.super_2))]
#[resource(column("Foo", spec.foo_bar_4.a))]
#[resource(scale(spec.r#yield, status.super_))]
#[resource(selectable(spec.r#async))]
pub struct Word {
    pub metadata: ObjectMeta,
    pub spec: WordSpec,
    pub status: Option<WordStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct WordSpec {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    #[serde(rename = "-f", skip_serializing_if = "Option::is_none")]
    pub f: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub _0: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub _007: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub _9lives: Option<String>,
    #[serde(rename = "A", skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
    #[serde(rename = "FooBar", skip_serializing_if = "Option::is_none")]
    pub foo_bar: Option<WordFooBar>,
    #[serde(rename = "_", skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(rename = "__", skip_serializing_if = "Option::is_none")]
    pub field_2: Option<String>,
    #[serde(rename = "_a", skip_serializing_if = "Option::is_none")]
    pub a_2: Option<String>,
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub a_3: Option<String>,
    #[serde(rename = "a-", skip_serializing_if = "Option::is_none")]
    pub a_4: Option<String>,
    #[serde(rename = "a_", skip_serializing_if = "Option::is_none")]
    pub a_5: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#async: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#await: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend("enum" = [true]))]
    pub boolean: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<WordChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crate_: Option<BTreeMap<String, String>>,
    #[serde(default = "default_dyn")]
    pub r#dyn: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#enum: Option<WordEnum>,
    #[serde(default)]
    pub enum_default: WordEnumDefault,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enum_null: Option<WordEnumNull>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enum_one: Option<WordEnumOne>,
    #[serde(rename = "foo-bar", skip_serializing_if = "Option::is_none")]
    pub foo_bar_2: Option<Vec<WordFooBarItem>>,
    #[serde(rename = "fooBar", skip_serializing_if = "Option::is_none")]
    pub foo_bar_3: Option<WordFooBar2>,
    #[serde(rename = "foo_bar", skip_serializing_if = "Option::is_none")]
    pub foo_bar_4: Option<WordFooBar2>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#gen: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(r#type, self_)))]
    pub list: Option<Vec<WordListItem>>,
    #[serde(rename = "macro_rules", skip_serializing_if = "Option::is_none")]
    pub macro_rules: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#match: Option<WordMatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend("enum" = [1, 2, -1]))]
    pub number: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_: Option<WordSelf>,
    pub super_: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#try: Option<f64>,
    pub r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub union: Option<String>,
    #[serde(rename = "x y", skip_serializing_if = "Option::is_none")]
    pub x_y: Option<String>,
    #[serde(rename = "x.y", skip_serializing_if = "Option::is_none")]
    pub x_y_2: Option<String>,
    #[serde(rename = "x/y", skip_serializing_if = "Option::is_none")]
    pub x_y_3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#yield: Option<i64>,
    #[serde(rename = "été", skip_serializing_if = "Option::is_none")]
    pub t: Option<String>,
    #[serde(rename = "日本", skip_serializing_if = "Option::is_none")]
    pub field_3: Option<String>,
}

fn default_dyn() -> i32 {
    3
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct WordFooBar {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(extend(
    "oneOf" = [{ "required": ["type"] }, { "required": ["self"] }, { "required": ["box"] }]
))]
pub struct WordChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#box: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum WordEnum {
    #[serde(rename = "+Inf")]
    Inf,
    #[serde(rename = "-Inf")]
    Inf2,
    #[serde(rename = "1.5")]
    V15,
    #[serde(rename = "1_5")]
    V152,
    #[serde(rename = "15")]
    V153,
    #[serde(rename = "01")]
    V01,
    #[serde(rename = "a-b")]
    AB,
    #[serde(rename = "a_b")]
    AB2,
    #[serde(rename = "a b")]
    AB3,
    #[serde(rename = "aB")]
    AB4,
    #[serde(rename = "AB")]
    Ab,
    #[serde(rename = "ab")]
    Ab2,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum WordEnumDefault {
    V1,
    #[serde(rename = "1")]
    V12,
    Default,
    #[default]
    #[serde(rename = "default")]
    Default2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum WordEnumNull {
    None,
    Some,
    Ok,
    Err,
    Other,
    Other2,
    #[serde(rename = "*")]
    Other3,
    #[serde(rename = "?")]
    Other4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum WordEnumOne {
    #[serde(rename = "")]
    Empty,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct WordFooBarItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct WordFooBar2 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct WordListItem {
    pub self_: String,
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum WordMatch {
    #[serde(rename = "type")]
    Type,
    #[serde(rename = "self")]
    SelfValue,
    #[serde(rename = "Self")]
    SelfValue2,
    #[serde(rename = "crate")]
    Crate,
    #[serde(rename = "super")]
    Super,
    #[serde(rename = "async")]
    Async,
    #[serde(rename = "gen")]
    Gen,
    #[serde(rename = "dyn")]
    Dyn,
    #[serde(rename = "true")]
    True,
    #[serde(rename = "_")]
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule("self.super != ''", message = "super is empty", path = super_2))]
pub struct WordSelf {
    #[serde(rename = "Super", skip_serializing_if = "Option::is_none")]
    pub super_: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crate_: Option<Vec<WordSelfCrateItem>>,
    #[serde(rename = "super")]
    pub super_2: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct WordSelfCrateItem {
    #[serde(rename = "Self", skip_serializing_if = "Option::is_none")]
    pub self_: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct WordStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#fn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub super_: Option<i64>,
}
