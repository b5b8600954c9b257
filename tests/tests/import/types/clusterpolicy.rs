// Rust types of clusterpolicies.kyverno.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 13 optional fields accept null as well (`--exact` prevents it)
// - .spec.rules[].match: `not` is left out

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "kyverno.io", version = "v1", cluster, plural = "clusterpolicies", short = "cpol", category = "kyverno")]
pub struct ClusterPolicy {
    pub metadata: ObjectMeta,
    pub spec: ClusterPolicySpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicySpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<ClusterPolicySpecFailurePolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<ClusterPolicySpecRule>>,
    #[serde(default = "default_cluster_policy_spec_validation_failure_action")]
    pub validation_failure_action: ClusterPolicySpecValidationFailureAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_timeout_seconds: Option<i32>,
}

fn default_cluster_policy_spec_validation_failure_action() -> ClusterPolicySpecValidationFailureAction {
    ClusterPolicySpecValidationFailureAction::Audit2
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPolicySpecFailurePolicy {
    Ignore,
    Fail,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPolicySpecRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ClusterPolicySpecRuleContextItem>>,
    pub r#match: ClusterPolicySpecRuleMatch,
    #[schemars(length(max = 63))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validate: Option<ClusterPolicySpecRuleValidate>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{ "required": ["variable"] }, { "required": ["configMap"] }]))]
pub struct ClusterPolicySpecRuleContextItem {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<ClusterPolicySpecRuleContextItemVariable>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicySpecRuleContextItemVariable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPolicySpecRuleMatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = { "type": "object", "x-kubernetes-preserve-unknown-fields": true }))]
    pub all: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = { "type": "object", "x-kubernetes-preserve-unknown-fields": true }))]
    pub any: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicySpecRuleValidate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub any_pattern: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<ClusterPolicySpecRuleValidateDeny>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub pattern: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPolicySpecRuleValidateDeny {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<ClusterPolicySpecRuleValidateDenyCondition>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPolicySpecRuleValidateDenyCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub key: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<ClusterPolicySpecRuleValidateDenyConditionOperator>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Option<Value>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPolicySpecRuleValidateDenyConditionOperator {
    Equals,
    NotEquals,
    In,
    AnyIn,
    GreaterThan,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPolicySpecValidationFailureAction {
    #[serde(rename = "audit")]
    Audit,
    #[serde(rename = "enforce")]
    Enforce,
    #[serde(rename = "Audit")]
    Audit2,
    #[serde(rename = "Enforce")]
    Enforce2,
}
