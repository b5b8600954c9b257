// Rust types of prometheusrules.monitoring.coreos.com, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 9 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "monitoring.coreos.com",
    version = "v1",
    namespaced,
    plural = "prometheusrules",
    short = "promrule"
)]
pub struct PrometheusRule {
    pub metadata: ObjectMeta,
    pub spec: PrometheusRuleSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PrometheusRuleSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(name)))]
    pub groups: Option<Vec<PrometheusRuleGroup>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PrometheusRuleGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
    )]
    pub interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    #[schema(length(min = 1))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<PrometheusRuleGroupRule>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PrometheusRuleGroupRule {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    pub expr: IntOrString,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
    )]
    pub r#for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(min = 1))]
    pub keep_firing_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}
