// Rust types of options.shapes.example.dev, version v1, printed by `windlass import`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "shapes.example.dev",
    version = "v1",
    namespaced,
    kind = "Option",
    plural = "options",
    singular = "opt"
)]
pub struct OptionObject {
    pub metadata: ObjectMeta,
    pub spec: OptionObjectSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct OptionObjectSpec {
    #[serde(rename = "$ref")]
    pub r#ref: String,
    pub _3d: bool,
    #[serde(rename = "HostName", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub host_name: Option<String>,
    #[serde(rename = "Self", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub self_: Option<String>,
    pub crate_: String,
    #[serde(rename = "host-name", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub host_name_2: Option<String>,
    #[serde(rename = "hostName", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub host_name_3: Option<String>,
    #[serde(rename = "host_name", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub host_name_4: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = OptionObjectMatch, extend("nullable" = false))]
    pub r#match: Option<OptionObjectMatch>,
    #[serde(rename = "podIPs", skip_serializing_if = "Option::is_none")]
    #[schema(with = Vec<String>, extend("nullable" = false))]
    pub pod_ips: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub rest: Option<String>,
    #[serde(rename = "self")]
    pub self_2: String,
    pub r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = OptionObjectValue, extend("nullable" = false))]
    pub value: Option<OptionObjectValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        with = Vec<Vec<Vec<String>>>,
        extend(
            "items" = { "items": { "items": { "minLength": 1, "type": "string" }, "type": "array" }, "type": "array" },
            "nullable" = false
        )
    )]
    pub vec: Option<Vec<Vec<Vec<String>>>>,
    #[serde(rename = "x-y", skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub x_y: Option<String>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest_2: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum OptionObjectMatch {
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct OptionObjectValue {
    pub value: OptionObjectValueValue,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct OptionObjectValueValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub string: Option<String>,
}
