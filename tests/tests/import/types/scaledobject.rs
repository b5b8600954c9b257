// Rust types of scaledobjects.keda.sh, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 15 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "keda.sh",
    version = "v1alpha1",
    namespaced,
    plural = "scaledobjects",
    short = "so"
)]
#[resource(column("Min", spec.min_replica_count))]
#[resource(column("Authentication", spec.triggers[].authentication_ref.name))]
pub struct ScaledObject {
    pub metadata: ObjectMeta,
    pub spec: ScaledObjectSpec,
    pub status: Option<ScaledObjectStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advanced: Option<ScaledObjectAdvanced>,
    #[serde(default = "default_cooldown_period")]
    pub cooldown_period: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ScaledObjectFallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    pub scale_target_ref: ScaledObjectScaleTargetRef,
    pub triggers: Vec<ScaledObjectTrigger>,
}

fn default_cooldown_period() -> i32 {
    300
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectAdvanced {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling_modifiers: Option<ScaledObjectAdvancedScalingModifiers>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectAdvancedScalingModifiers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_type: Option<ScaledObjectAdvancedScalingModifiersMetricType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ScaledObjectAdvancedScalingModifiersMetricType {
    AverageValue,
    Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectFallback {
    #[serde(default)]
    pub behavior: ScaledObjectFallbackBehavior,
    pub failure_threshold: i32,
    pub replicas: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ScaledObjectFallbackBehavior {
    #[default]
    #[serde(rename = "static")]
    Static,
    #[serde(rename = "currentReplicas")]
    CurrentReplicas,
    #[serde(rename = "currentReplicasIfHigher")]
    CurrentReplicasIfHigher,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectScaleTargetRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectTrigger {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<ScaledObjectTriggerAuthenticationRef>,
    pub metadata: BTreeMap<String, String>,
    pub r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_cached_metrics: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ScaledObjectTriggerAuthenticationRef {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_metric_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<BTreeMap<String, ScaledObjectStatusHealthItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<ApiTime>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ScaledObjectStatusHealthItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_failures: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}
