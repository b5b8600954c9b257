// Rust types of kustomizations.kustomize.toolkit.fluxcd.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 15 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "kustomize.toolkit.fluxcd.io",
    version = "v1",
    namespaced,
    plural = "kustomizations",
    short = "ks"
)]
#[resource(column("Age", metadata.creation_timestamp))]
#[resource(column(name = "Ready", path = r#".status.conditions[?(@.type=="Ready")].status"#))]
pub struct Kustomization {
    pub metadata: ObjectMeta,
    pub spec: Option<KustomizationSpec>,
    pub status: Option<KustomizationStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption: Option<KustomizationDecryption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<KustomizationDeletionPolicy>,
    /// Replace objects with immutable fields.
    #[serde(default)]
    pub force: bool,
    #[schema(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
    pub interval: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_build: Option<KustomizationPostBuild>,
    pub prune: bool,
    pub source_ref: KustomizationSourceRef,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct KustomizationDecryption {
    pub provider: KustomizationDecryptionProvider,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KustomizationDecryptionProvider {
    #[serde(rename = "sops")]
    Sops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KustomizationDeletionPolicy {
    MirrorPrune,
    Delete,
    WaitForTermination,
    Orphan,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationPostBuild {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substitute: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substitute_from: Option<Vec<KustomizationPostBuildSubstituteFromItem>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct KustomizationPostBuildSubstituteFromItem {
    pub kind: KustomizationPostBuildSubstituteFromItemKind,
    #[schema(length(min = 1, max = 253))]
    pub name: String,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KustomizationPostBuildSubstituteFromItemKind {
    Secret,
    ConfigMap,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSourceRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    pub kind: KustomizationSourceRefKind,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KustomizationSourceRefKind {
    #[serde(rename = "OCIRepository")]
    OciRepository,
    GitRepository,
    Bucket,
    ExternalArtifact,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(extend("default" = { "observedGeneration": -1 }))]
pub struct KustomizationStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(r#type)))]
    pub conditions: Option<Vec<KustomizationStatusCondition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<KustomizationStatusInventory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationStatusCondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 0)]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: KustomizationStatusConditionStatus,
    #[schema(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KustomizationStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct KustomizationStatusInventory {
    pub entries: Vec<KustomizationStatusInventoryEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct KustomizationStatusInventoryEntry {
    pub id: String,
    pub v: String,
}
