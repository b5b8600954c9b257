// Rust types of rollouts.argoproj.io, version v1alpha1, printed by `windlass import`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "argoproj.io",
    version = "v1alpha1",
    namespaced,
    plural = "rollouts",
    short = "ro"
)]
#[resource(column("Desired", spec.replicas, description = "Number of desired pods"))]
#[resource(scale(spec.replicas, status.hpa_replicas, selector = status.selector))]
pub struct Rollout {
    pub metadata: ObjectMeta,
    pub spec: RolloutSpec,
    pub status: Option<RolloutStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = i32, extend("nullable" = false))]
    pub min_ready_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = i32, extend("nullable" = false))]
    pub replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutSelector, extend("nullable" = false))]
    pub selector: Option<RolloutSelector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutStrategy, extend("nullable" = false))]
    pub strategy: Option<RolloutStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutTemplate, extend("nullable" = false))]
    pub template: Option<RolloutTemplate>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(atomic)]
pub struct RolloutSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = Vec<RolloutSelectorMatchExpression>, atomic, extend("nullable" = false))]
    pub match_expressions: Option<Vec<RolloutSelectorMatchExpression>>,
    pub match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct RolloutSelectorMatchExpression {
    pub key: String,
    pub operator: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = Vec<String>, atomic, extend("nullable" = false))]
    pub values: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutStrategyBlueGreen, extend("nullable" = false))]
    pub blue_green: Option<RolloutStrategyBlueGreen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutStrategyCanary, extend("nullable" = false))]
    pub canary: Option<RolloutStrategyCanary>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategyBlueGreen {
    pub active_service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = bool, extend("nullable" = false))]
    pub auto_promotion_enabled: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategyCanary {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = IntOrString, extend("nullable" = false))]
    pub max_surge: Option<IntOrString>,
    #[serde(default = "default_max_unavailable")]
    pub max_unavailable: IntOrString,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = Vec<RolloutStrategyCanaryStep>, extend("nullable" = false))]
    pub steps: Option<Vec<RolloutStrategyCanaryStep>>,
}

fn default_max_unavailable() -> IntOrString {
    IntOrString::String("25%".to_owned())
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategyCanaryStep {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutStrategyCanaryStepPause, extend("nullable" = false))]
    pub pause: Option<RolloutStrategyCanaryStepPause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = i32, extend("nullable" = false))]
    pub set_weight: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct RolloutStrategyCanaryStepPause {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = IntOrString, extend("nullable" = false))]
    pub duration: Option<IntOrString>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct RolloutTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = RolloutTemplateMetadata, extend("nullable" = false))]
    pub metadata: Option<RolloutTemplateMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = Map<String, Value>, extend("nullable" = false))]
    pub spec: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct RolloutTemplateMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = BTreeMap<String, String>, extend("nullable" = false))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    #[serde(rename = "HPAReplicas", skip_serializing_if = "Option::is_none")]
    #[schema(with = i32, extend("nullable" = false))]
    pub hpa_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = i32, extend("nullable" = false))]
    pub available_replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub selector: Option<String>,
}
