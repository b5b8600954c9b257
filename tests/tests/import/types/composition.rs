// Rust types of compositions.apiextensions.crossplane.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 6 optional fields accept null as well (`--exact` prevents it)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "apiextensions.crossplane.io", version = "v1", cluster, plural = "compositions", short = "comp", category = "crossplane")]
#[resource(column(name = "XR-KIND", path = ".spec.compositeTypeRef.kind", type = "string"))]
pub struct Composition {
    pub metadata: ObjectMeta,
    pub spec: Option<CompositionSpec>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositionSpec {
    pub composite_type_ref: CompositionSpecCompositeTypeRef,
    #[serde(default = "default_composition_spec_mode")]
    pub mode: CompositionSpecMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["step"], "x-kubernetes-list-type" = "map"))]
    pub pipeline: Option<Vec<CompositionSpecPipelineItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = [{ "matchCondition": { "status": "True", "type": "Ready" }, "type": "MatchCondition" }]))]
    pub readiness_checks: Option<Vec<CompositionSpecReadinessCheck>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_connection_secrets_to_namespace: Option<String>,
}

fn default_composition_spec_mode() -> CompositionSpecMode {
    CompositionSpecMode::Resources
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{ "message": "Value is immutable", "rule": "self == oldSelf" }]))]
pub struct CompositionSpecCompositeTypeRef {
    pub api_version: String,
    pub kind: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CompositionSpecMode {
    Resources,
    Pipeline,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositionSpecPipelineItem {
    pub function_ref: CompositionSpecPipelineItemFunctionRef,
    /// Input of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object", "x-kubernetes-embedded-resource" = true, "x-kubernetes-preserve-unknown-fields" = true))]
    pub input: Option<Value>,
    pub step: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompositionSpecPipelineItemFunctionRef {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct CompositionSpecReadinessCheck {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_condition: Option<CompositionSpecReadinessCheckMatchCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_integer: Option<i64>,
    #[serde(default = "default_composition_spec_readiness_check_type")]
    pub r#type: CompositionSpecReadinessCheckType,
}

fn default_composition_spec_readiness_check_type() -> CompositionSpecReadinessCheckType {
    CompositionSpecReadinessCheckType::MatchCondition
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["status", "type"]))]
pub struct CompositionSpecReadinessCheckMatchCondition {
    #[serde(default = "default_composition_spec_readiness_check_match_condition_status")]
    pub status: String,
    #[serde(default = "default_composition_spec_readiness_check_match_condition_type")]
    pub r#type: String,
}

fn default_composition_spec_readiness_check_match_condition_status() -> String {
    "True".to_owned()
}

fn default_composition_spec_readiness_check_match_condition_type() -> String {
    "Ready".to_owned()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CompositionSpecReadinessCheckType {
    MatchCondition,
    NonEmpty,
    None,
}
