// Rust types of services.serving.knative.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "serving.knative.dev",
    version = "v1",
    namespaced,
    plural = "services",
    short = ["kservice", "ksvc"],
    category = ["all", "knative", "serving"],
    label("app.kubernetes.io/name" = "knative-serving"),
    label("duck.knative.dev/podspecable" = "true"),
    annotation("example.dev/owner" = r#"the "serving" team"#)
)]
pub struct Service {
    pub metadata: ObjectMeta,
    pub spec: Option<ServiceSpec>,
    pub status: Option<ServiceStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ServiceTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Vec<ServiceTrafficItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ServiceTemplateMetadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<ServiceTemplateSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceTemplateMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplateSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_concurrency: Option<i64>,
    pub containers: Vec<ServiceTemplateSpecContainer>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceTemplateSpecContainer {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(atomic)]
    pub args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ServiceTemplateSpecContainerResources>,
    /// Fields that have no schema.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceTemplateSpecContainerResources {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend(
        "additionalProperties" = { "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))$", "x-kubernetes-int-or-string": true }
    ))]
    pub limits: Option<BTreeMap<String, IntOrString>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTrafficItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<ServiceStatusAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ServiceStatusAddress {
    #[serde(rename = "CACerts", skip_serializing_if = "Option::is_none")]
    pub ca_certs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}
