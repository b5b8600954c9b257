// Rust types of servicemonitors.monitoring.coreos.com, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 15 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "monitoring.coreos.com", version = "v1", namespaced, plural = "servicemonitors", short = "smon", category = "prometheus-operator")]
pub struct ServiceMonitor {
    pub metadata: ObjectMeta,
    pub spec: ServiceMonitorSpec,
}

/// Targets to scrape.
///
/// ```text
/// endpoints:
///   - port: web
/// ```
///
/// An example that is *no* test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(description = "Targets to scrape.\n\n```\nendpoints:\n  - port: web\n```\n\nAn example that is *no* test.")]
pub struct ServiceMonitorSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach_metadata: Option<ServiceMonitorSpecAttachMetadata>,
    pub endpoints: Vec<ServiceMonitorSpecEndpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub scrape_protocols: Option<Vec<ServiceMonitorSpecScrapeProtocol>>,
    pub selector: ServiceMonitorSpecSelector,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceMonitorSpecAttachMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorSpecEndpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<ServiceMonitorSpecEndpointBasicAuth>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"))]
    pub interval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<BTreeMap<String, Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub relabelings: Option<Vec<ServiceMonitorSpecEndpointRelabeling>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<ServiceMonitorSpecEndpointScheme>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>", extend("x-kubernetes-int-or-string" = true))]
    pub target_port: Option<IntOrString>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceMonitorSpecEndpointBasicAuth {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<ServiceMonitorSpecEndpointBasicAuthPassword>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<ServiceMonitorSpecEndpointBasicAuthPassword>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ServiceMonitorSpecEndpointBasicAuthPassword {
    pub key: String,
    #[serde(default = "default_service_monitor_spec_endpoint_basic_auth_password_name")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

fn default_service_monitor_spec_endpoint_basic_auth_password_name() -> String {
    "".to_owned()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorSpecEndpointRelabeling {
    #[serde(default = "default_service_monitor_spec_endpoint_relabeling_action")]
    pub action: ServiceMonitorSpecEndpointRelabelingAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulus: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("items" = { "pattern": "^(([a-zA-Z_])([a-zA-Z0-9_])*)$", "type": "string" }))]
    pub source_labels: Option<Vec<String>>,
}

fn default_service_monitor_spec_endpoint_relabeling_action() -> ServiceMonitorSpecEndpointRelabelingAction {
    ServiceMonitorSpecEndpointRelabelingAction::Replace
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceMonitorSpecEndpointRelabelingAction {
    #[serde(rename = "replace")]
    Replace,
    #[serde(rename = "Replace")]
    Replace2,
    #[serde(rename = "keep")]
    Keep,
    #[serde(rename = "Keep")]
    Keep2,
    #[serde(rename = "drop")]
    Drop,
    #[serde(rename = "Drop")]
    Drop2,
    #[serde(rename = "labelmap")]
    Labelmap,
    LabelMap,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceMonitorSpecEndpointScheme {
    #[serde(rename = "http")]
    Http,
    #[serde(rename = "https")]
    Https,
    #[serde(rename = "HTTP")]
    Http2,
    #[serde(rename = "HTTPS")]
    Https2,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceMonitorSpecScrapeProtocol {
    PrometheusProto,
    #[serde(rename = "OpenMetricsText0.0.1")]
    OpenMetricsText001,
    #[serde(rename = "OpenMetricsText1.0.0")]
    OpenMetricsText100,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ServiceMonitorSpecSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
}
