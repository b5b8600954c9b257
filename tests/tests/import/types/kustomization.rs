// Rust types of kustomizations.kustomize.toolkit.fluxcd.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 15 optional fields accept null as well (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "kustomize.toolkit.fluxcd.io", version = "v1", namespaced, plural = "kustomizations", short = "ks")]
#[resource(column(name = "Age", path = ".metadata.creationTimestamp", type = "date"))]
#[resource(column(name = "Ready", path = r#".status.conditions[?(@.type=="Ready")].status"#, type = "string"))]
pub struct Kustomization {
    pub metadata: ObjectMeta,
    pub spec: Option<KustomizationSpec>,
    pub status: Option<KustomizationStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<KustomizationSpecDecryption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<KustomizationSpecDeletionPolicy>,
    /// Replace objects with immutable fields.
    #[serde(default = "default_kustomization_spec_force")]
    pub force: bool,
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_build: Option<KustomizationSpecPostBuild>,
    pub prune: bool,
    pub source_ref: KustomizationSpecSourceRef,
}

fn default_kustomization_spec_force() -> bool {
    false
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizationSpecDecryption {
    pub provider: KustomizationSpecDecryptionProvider,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KustomizationSpecDecryptionProvider {
    #[serde(rename = "sops")]
    Sops,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KustomizationSpecDeletionPolicy {
    MirrorPrune,
    Delete,
    WaitForTermination,
    Orphan,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpecPostBuild {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute_from: Option<Vec<KustomizationSpecPostBuildSubstituteFromItem>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizationSpecPostBuildSubstituteFromItem {
    pub kind: KustomizationSpecPostBuildSubstituteFromItemKind,
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    #[serde(default = "default_kustomization_spec_post_build_substitute_from_item_optional")]
    pub optional: bool,
}

fn default_kustomization_spec_post_build_substitute_from_item_optional() -> bool {
    false
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KustomizationSpecPostBuildSubstituteFromItemKind {
    Secret,
    ConfigMap,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpecSourceRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    pub kind: KustomizationSpecSourceRefKind,
    pub name: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KustomizationSpecSourceRefKind {
    #[serde(rename = "OCIRepository")]
    OciRepository,
    GitRepository,
    Bucket,
    ExternalArtifact,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = { "observedGeneration": -1 }))]
pub struct KustomizationStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
    pub conditions: Option<Vec<KustomizationStatusCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<KustomizationStatusInventory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationStatusCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: KustomizationStatusConditionStatus,
    #[schemars(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KustomizationStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizationStatusInventory {
    pub entries: Vec<KustomizationStatusInventoryEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizationStatusInventoryEntry {
    pub id: String,
    pub v: String,
}
