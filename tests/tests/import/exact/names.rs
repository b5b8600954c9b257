// Rust types of options.shapes.example.dev, version v1, printed by `windlass import`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "shapes.example.dev", version = "v1", namespaced, kind = "Option", plural = "options", singular = "opt")]
pub struct OptionObject {
    pub metadata: ObjectMeta,
    pub spec: OptionObjectSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OptionObjectSpec {
    #[serde(rename = "$ref")]
    pub r#ref: String,
    pub _3d: bool,
    #[serde(rename = "HostName", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub host_name: Option<String>,
    #[serde(rename = "Self", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub self_: Option<String>,
    pub crate_: String,
    #[serde(rename = "host-name", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub host_name_2: Option<String>,
    #[serde(rename = "hostName", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub host_name_3: Option<String>,
    #[serde(rename = "host_name", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub host_name_4: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OptionObjectSpecMatch")]
    pub r#match: Option<OptionObjectSpecMatch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub pod_i_ps: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub rest: Option<String>,
    #[serde(rename = "self")]
    pub self_2: String,
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OptionObjectSpecValue")]
    pub value: Option<OptionObjectSpecValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Vec<Vec<String>>>", extend("items" = { "items": { "items": { "minLength": 1, "type": "string" }, "type": "array" }, "type": "array" }))]
    pub vec: Option<Vec<Vec<Vec<String>>>>,
    #[serde(rename = "x-y", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub x_y: Option<String>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest_2: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum OptionObjectSpecMatch {
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "*")]
    Other,
    #[serde(rename = "a")]
    A,
    #[serde(rename = "A")]
    A2,
    #[serde(rename = "a-")]
    A3,
    #[serde(rename = "1")]
    V1,
    #[serde(rename = "self")]
    SelfValue,
    #[serde(rename = "Self")]
    SelfValue2,
    #[serde(rename = "null")]
    Null,
    #[serde(rename = "true")]
    True,
    #[serde(rename = "a b")]
    AB,
    #[serde(rename = "ä")]
    Other2,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptionObjectSpecValue {
    pub value: OptionObjectSpecValueValue,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptionObjectSpecValueValue {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub string: Option<String>,
}
