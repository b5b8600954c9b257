// Rust types of compositions.apiextensions.crossplane.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 7 optional fields accept null as well (`--exact` prevents it)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "apiextensions.crossplane.io",
    version = "v1",
    cluster,
    plural = "compositions",
    short = "comp",
    category = "crossplane"
)]
#[resource(column("XR-KIND", spec.composite_type_ref.kind))]
pub struct Composition {
    pub metadata: ObjectMeta,
    pub spec: Option<CompositionSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CompositionSpec {
    pub composite_type_ref: CompositionCompositeTypeRef,
    #[serde(default)]
    pub mode: CompositionMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(step)))]
    pub pipeline: Option<Vec<CompositionPipelineItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend(
        "default" = [{ "matchCondition": { "status": "True", "type": "Ready" }, "type": "MatchCondition" }]
    ))]
    pub readiness_checks: Option<Vec<CompositionReadinessCheck>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_connection_secrets_to_namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule("self == oldSelf", message = "Value is immutable"))]
pub struct CompositionCompositeTypeRef {
    pub api_version: String,
    pub kind: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CompositionMode {
    #[default]
    Resources,
    Pipeline,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CompositionPipelineItem {
    pub function_ref: CompositionPipelineItemFunctionRef,
    /// Input of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(embedded)]
    pub input: Option<Map<String, Value>>,
    /// An object that the step creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend(
        "properties" = { "spec": { "properties": { "size": { "format": "int64", "minimum": 1, "type": "integer" } }, "type": "object" } },
        "type" = "object",
        "x-kubernetes-embedded-resource" = true
    ))]
    pub object: Option<Value>,
    pub step: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct CompositionPipelineItemFunctionRef {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CompositionReadinessCheck {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_condition: Option<CompositionReadinessCheckMatchCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_integer: Option<i64>,
    #[serde(default)]
    #[schema(required, extend("default" = "MatchCondition"))]
    pub r#type: CompositionReadinessCheckType,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct CompositionReadinessCheckMatchCondition {
    #[serde(default = "default_status")]
    #[schema(required, extend("default" = "True"))]
    pub status: String,
    #[serde(default = "default_type")]
    #[schema(required, extend("default" = "Ready"))]
    pub r#type: String,
}

fn default_status() -> String {
    "True".to_owned()
}

fn default_type() -> String {
    "Ready".to_owned()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CompositionReadinessCheckType {
    #[default]
    MatchCondition,
    NonEmpty,
    None,
}
