// Rust types of scaledobjects.keda.sh, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 15 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "keda.sh", version = "v1alpha1", namespaced, plural = "scaledobjects", short = "so")]
#[resource(column(name = "Min", path = ".spec.minReplicaCount", type = "integer"))]
#[resource(column(name = "Authentication", path = ".spec.triggers[*].authenticationRef.name", type = "string"))]
pub struct ScaledObject {
    pub metadata: ObjectMeta,
    pub spec: ScaledObjectSpec,
    pub status: Option<ScaledObjectStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advanced: Option<ScaledObjectSpecAdvanced>,
    #[serde(default = "default_scaled_object_spec_cooldown_period")]
    pub cooldown_period: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ScaledObjectSpecFallback>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    pub scale_target_ref: ScaledObjectSpecScaleTargetRef,
    pub triggers: Vec<ScaledObjectSpecTrigger>,
}

fn default_scaled_object_spec_cooldown_period() -> i32 {
    300
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpecAdvanced {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling_modifiers: Option<ScaledObjectSpecAdvancedScalingModifiers>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpecAdvancedScalingModifiers {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_type: Option<ScaledObjectSpecAdvancedScalingModifiersMetricType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ScaledObjectSpecAdvancedScalingModifiersMetricType {
    AverageValue,
    Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpecFallback {
    #[serde(default = "default_scaled_object_spec_fallback_behavior")]
    pub behavior: ScaledObjectSpecFallbackBehavior,
    pub failure_threshold: i32,
    pub replicas: i32,
}

fn default_scaled_object_spec_fallback_behavior() -> ScaledObjectSpecFallbackBehavior {
    ScaledObjectSpecFallbackBehavior::Static
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ScaledObjectSpecFallbackBehavior {
    #[serde(rename = "static")]
    Static,
    #[serde(rename = "currentReplicas")]
    CurrentReplicas,
    #[serde(rename = "currentReplicasIfHigher")]
    CurrentReplicasIfHigher,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpecScaleTargetRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpecTrigger {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<ScaledObjectSpecTriggerAuthenticationRef>,
    pub metadata: BTreeMap<String, String>,
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_cached_metrics: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScaledObjectSpecTriggerAuthenticationRef {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_metric_names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<BTreeMap<String, ScaledObjectStatusHealthItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_active_time: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatusHealthItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_failures: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
