// Rust types of servicemonitors.monitoring.coreos.com, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 16 optional fields accept null as well (`--exact` prevents it)

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
    plural = "servicemonitors",
    short = "smon",
    category = "prometheus-operator"
)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(extend(
    "description" = "Targets to scrape.\n\n```\nendpoints:\n  - port: web\n```\n\nAn example that is *no* test."
))]
pub struct ServiceMonitorSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attach_metadata: Option<ServiceMonitorAttachMetadata>,
    pub endpoints: Vec<ServiceMonitorEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(set)]
    pub scrape_protocols: Option<Vec<ServiceMonitorScrapeProtocol>>,
    pub selector: ServiceMonitorSelector,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceMonitorAttachMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<ServiceMonitorEndpointBasicAuth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"
    )]
    pub interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<BTreeMap<String, Vec<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(items(min = 1))]
    pub relabelings: Option<Vec<ServiceMonitorEndpointRelabeling>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<ServiceMonitorEndpointScheme>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceMonitorEndpointBasicAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<ServiceMonitorEndpointBasicAuthPassword>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<ServiceMonitorEndpointBasicAuthPassword>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(atomic)]
pub struct ServiceMonitorEndpointBasicAuthPassword {
    pub key: String,
    #[serde(default)]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMonitorEndpointRelabeling {
    #[serde(default)]
    pub action: ServiceMonitorEndpointRelabelingAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modulus: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(each(pattern = "^(([a-zA-Z_])([a-zA-Z0-9_])*)$"))]
    pub source_labels: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ServiceMonitorEndpointRelabelingAction {
    #[default]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ServiceMonitorEndpointScheme {
    #[serde(rename = "http")]
    Http,
    #[serde(rename = "https")]
    Https,
    #[serde(rename = "HTTP")]
    Http2,
    #[serde(rename = "HTTPS")]
    Https2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ServiceMonitorScrapeProtocol {
    PrometheusProto,
    #[serde(rename = "OpenMetricsText0.0.1")]
    OpenMetricsText001,
    #[serde(rename = "OpenMetricsText1.0.0")]
    OpenMetricsText100,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(atomic)]
pub struct ServiceMonitorSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
}
