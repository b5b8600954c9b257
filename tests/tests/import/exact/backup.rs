// Rust types of backups.velero.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 1 optional fields accept null as well (`--exact` prevents it)
// - the status becomes a subresource, as each derived status is

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "velero.io", version = "v1", namespaced, plural = "backups")]
pub struct Backup {
    pub metadata: ObjectMeta,
    /// BackupSpec defines the specification for a Velero backup.
    pub spec: Option<BackupSpec>,
    pub status: Option<BackupStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_volumes_to_fs_backup: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BackupSpecHooks")]
    pub hooks: Option<BackupSpecHooks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or_label_selectors: Option<Vec<Option<BackupSpecHooksResourceLabelSelector>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_resources: Option<BTreeMap<String, String>>,
    pub ttl: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupSpecHooks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<BackupSpecHooksResource>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpecHooksResource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<BackupSpecHooksResourceLabelSelector>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<BackupSpecHooksResourceOnError>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct BackupSpecHooksResourceLabelSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub match_labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum BackupSpecHooksResourceOnError {
    Continue,
    Fail,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expiration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BackupStatusPhase")]
    pub phase: Option<BackupStatusPhase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_errors: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum BackupStatusPhase {
    New,
    FailedValidation,
    InProgress,
    Completed,
    Failed,
    Deleting,
}
