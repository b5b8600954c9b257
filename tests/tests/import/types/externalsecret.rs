// Rust types of externalsecrets.external-secrets.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 11 optional fields accept null as well (`--exact` prevents it)
// - the selectable field .spec.secretStoreRef.name is left out

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "external-secrets.io", version = "v1", namespaced, plural = "externalsecrets", short = "es", category = "external-secrets")]
pub struct ExternalSecret {
    pub metadata: ObjectMeta,
    pub spec: Option<ExternalSecretSpec>,
    pub status: Option<ExternalSecretStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<ExternalSecretSpecDataItem>>,
    #[serde(default = "default_external_secret_spec_refresh_interval")]
    pub refresh_interval: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_store_ref: Option<ExternalSecretSpecSecretStoreRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "creationPolicy": "Owner", "deletionPolicy": "Retain" }))]
    pub target: Option<ExternalSecretSpecTarget>,
}

fn default_external_secret_spec_refresh_interval() -> String {
    "1h".to_owned()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpecDataItem {
    pub remote_ref: ExternalSecretSpecDataItemRemoteRef,
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub secret_key: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpecDataItemRemoteRef {
    #[serde(default = "default_external_secret_spec_data_item_remote_ref_conversion_strategy")]
    pub conversion_strategy: ExternalSecretSpecDataItemRemoteRefConversionStrategy,
    pub key: String,
    #[serde(default = "default_external_secret_spec_data_item_remote_ref_metadata_policy")]
    pub metadata_policy: ExternalSecretSpecDataItemRemoteRefMetadataPolicy,
}

fn default_external_secret_spec_data_item_remote_ref_conversion_strategy() -> ExternalSecretSpecDataItemRemoteRefConversionStrategy {
    ExternalSecretSpecDataItemRemoteRefConversionStrategy::Default
}

fn default_external_secret_spec_data_item_remote_ref_metadata_policy() -> ExternalSecretSpecDataItemRemoteRefMetadataPolicy {
    ExternalSecretSpecDataItemRemoteRefMetadataPolicy::None
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecDataItemRemoteRefConversionStrategy {
    Default,
    Unicode,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecDataItemRemoteRefMetadataPolicy {
    None,
    Fetch,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalSecretSpecSecretStoreRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExternalSecretSpecSecretStoreRefKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecSecretStoreRefKind {
    SecretStore,
    ClusterSecretStore,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpecTarget {
    #[serde(default = "default_external_secret_spec_target_creation_policy")]
    pub creation_policy: ExternalSecretSpecTargetCreationPolicy,
    #[serde(default = "default_external_secret_spec_target_deletion_policy")]
    pub deletion_policy: ExternalSecretSpecTargetDeletionPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<ExternalSecretSpecTargetTemplate>,
}

fn default_external_secret_spec_target_creation_policy() -> ExternalSecretSpecTargetCreationPolicy {
    ExternalSecretSpecTargetCreationPolicy::Owner
}

fn default_external_secret_spec_target_deletion_policy() -> ExternalSecretSpecTargetDeletionPolicy {
    ExternalSecretSpecTargetDeletionPolicy::Retain
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecTargetCreationPolicy {
    Owner,
    Orphan,
    Merge,
    None,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecTargetDeletionPolicy {
    Delete,
    Merge,
    Retain,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretSpecTargetTemplate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, String>>,
    #[serde(default = "default_external_secret_spec_target_template_engine_version")]
    pub engine_version: ExternalSecretSpecTargetTemplateEngineVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

fn default_external_secret_spec_target_template_engine_version() -> ExternalSecretSpecTargetTemplateEngineVersion {
    ExternalSecretSpecTargetTemplateEngineVersion::V2
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalSecretSpecTargetTemplateEngineVersion {
    #[serde(rename = "v2")]
    V2,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSecretStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<ExternalSecretStatusBinding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub refresh_time: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ExternalSecretStatusBinding {
    #[serde(default = "default_external_secret_status_binding_name")]
    pub name: String,
}

fn default_external_secret_status_binding_name() -> String {
    "".to_owned()
}
