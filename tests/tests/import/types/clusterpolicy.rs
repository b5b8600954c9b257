// Rust types of clusterpolicies.kyverno.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 13 optional fields accept null as well (`--exact` prevents it)
// - .spec.rules[].match: `not` is left out

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "kyverno.io",
    version = "v1",
    cluster,
    plural = "clusterpolicies",
    short = "cpol",
    category = "kyverno"
)]
pub struct ClusterPolicy {
    pub metadata: ObjectMeta,
    pub spec: ClusterPolicySpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicySpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<ClusterPolicyFailurePolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<ClusterPolicyRule>>,
    #[serde(default)]
    pub validation_failure_action: ClusterPolicyValidationFailureAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_timeout_seconds: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ClusterPolicyFailurePolicy {
    Ignore,
    Fail,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterPolicyRule {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ClusterPolicyRuleContextItem>>,
    pub r#match: ClusterPolicyRuleMatch,
    #[schema(length(max = 63))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validate: Option<ClusterPolicyRuleValidate>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(extend("oneOf" = [{ "required": ["variable"] }, { "required": ["configMap"] }]))]
pub struct ClusterPolicyRuleContextItem {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<ClusterPolicyRuleContextItemVariable>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicyRuleContextItemVariable {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jmes_path: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterPolicyRuleMatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Map<String, Value>>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPolicyRuleValidate {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub any_pattern: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<ClusterPolicyRuleValidateDeny>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub pattern: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterPolicyRuleValidateDeny {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<ClusterPolicyRuleValidateDenyCondition>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterPolicyRuleValidateDenyCondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub key: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<ClusterPolicyRuleValidateDenyConditionOperator>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub value: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ClusterPolicyRuleValidateDenyConditionOperator {
    Equals,
    NotEquals,
    In,
    AnyIn,
    GreaterThan,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ClusterPolicyValidationFailureAction {
    #[serde(rename = "audit")]
    Audit,
    #[serde(rename = "enforce")]
    Enforce,
    #[default]
    #[serde(rename = "Audit")]
    Audit2,
    #[serde(rename = "Enforce")]
    Enforce2,
}
