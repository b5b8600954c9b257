// Rust types of externalsecrets.external-secrets.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 10 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "external-secrets.io",
    version = "v1",
    namespaced,
    plural = "externalsecrets",
    short = "es",
    category = "external-secrets"
)]
#[resource(selectable(spec.secret_store_ref.name))]
pub struct ExternalSecret {
    pub metadata: ObjectMeta,
    pub spec: Option<ExternalSecretSpec>,
    pub status: Option<ExternalSecretStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<ExternalSecretDataItem>>,
    #[serde(default = "default_refresh_interval")]
    pub refresh_interval: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_store_ref: Option<ExternalSecretSecretStoreRef>,
    #[serde(default)]
    pub target: ExternalSecretTarget,
}

fn default_refresh_interval() -> String {
    "1h".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretDataItem {
    pub remote_ref: ExternalSecretDataItemRemoteRef,
    #[schema(length(min = 1, max = 253), pattern = "^[-._a-zA-Z0-9]+$")]
    pub secret_key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretDataItemRemoteRef {
    #[serde(default)]
    pub conversion_strategy: ExternalSecretDataItemRemoteRefConversionStrategy,
    pub key: String,
    #[serde(default)]
    pub metadata_policy: ExternalSecretDataItemRemoteRefMetadataPolicy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretDataItemRemoteRefConversionStrategy {
    #[default]
    Default,
    Unicode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretDataItemRemoteRefMetadataPolicy {
    #[default]
    None,
    Fetch,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ExternalSecretSecretStoreRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExternalSecretSecretStoreRefKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretSecretStoreRefKind {
    SecretStore,
    ClusterSecretStore,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretTarget {
    #[serde(default)]
    pub creation_policy: ExternalSecretTargetCreationPolicy,
    #[serde(default)]
    pub deletion_policy: ExternalSecretTargetDeletionPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ExternalSecretTargetTemplate>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretTargetCreationPolicy {
    #[default]
    Owner,
    Orphan,
    Merge,
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretTargetDeletionPolicy {
    Delete,
    Merge,
    #[default]
    Retain,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretTargetTemplate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub engine_version: ExternalSecretTargetTemplateEngineVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ExternalSecretTargetTemplateEngineVersion {
    #[default]
    #[serde(rename = "v2")]
    V2,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<ExternalSecretStatusBinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_time: Option<ApiTime>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(atomic)]
pub struct ExternalSecretStatusBinding {
    #[serde(default)]
    pub name: String,
}
