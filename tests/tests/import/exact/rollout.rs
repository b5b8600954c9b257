// Rust types of rollouts.argoproj.io, version v1alpha1, printed by `windlass import`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "argoproj.io", version = "v1alpha1", namespaced, plural = "rollouts", short = "ro")]
#[resource(column(name = "Desired", path = ".spec.replicas", type = "integer", description = "Number of desired pods"))]
#[resource(scale(spec = ".spec.replicas", status = ".status.HPAReplicas", selector = ".status.selector"))]
pub struct Rollout {
    pub metadata: ObjectMeta,
    pub spec: RolloutSpec,
    pub status: Option<RolloutStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub min_ready_seconds: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecSelector")]
    pub selector: Option<RolloutSpecSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecStrategy")]
    pub strategy: Option<RolloutSpecStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecTemplate")]
    pub template: Option<RolloutSpecTemplate>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct RolloutSpecSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<RolloutSpecSelectorMatchExpression>", extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<RolloutSpecSelectorMatchExpression>>,
    pub match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSpecSelectorMatchExpression {
    pub key: String,
    pub operator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>", extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpecStrategy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecStrategyBlueGreen")]
    pub blue_green: Option<RolloutSpecStrategyBlueGreen>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecStrategyCanary")]
    pub canary: Option<RolloutSpecStrategyCanary>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpecStrategyBlueGreen {
    pub active_service: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub auto_promotion_enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpecStrategyCanary {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>", extend("x-kubernetes-int-or-string" = true))]
    pub max_surge: Option<IntOrString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>", extend("default" = "25%", "x-kubernetes-int-or-string" = true))]
    pub max_unavailable: Option<IntOrString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<RolloutSpecStrategyCanaryStep>")]
    pub steps: Option<Vec<RolloutSpecStrategyCanaryStep>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpecStrategyCanaryStep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecStrategyCanaryStepPause")]
    pub pause: Option<RolloutSpecStrategyCanaryStepPause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub set_weight: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSpecStrategyCanaryStepPause {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>", extend("x-kubernetes-int-or-string" = true))]
    pub duration: Option<IntOrString>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSpecTemplate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RolloutSpecTemplateMetadata")]
    pub metadata: Option<RolloutSpecTemplateMetadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
    pub spec: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSpecTemplateMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    #[serde(rename = "HPAReplicas", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub hpa_replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub available_replicas: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub selector: Option<String>,
}
