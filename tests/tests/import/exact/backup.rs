// Rust types of backups.velero.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - .spec: it accepts null as well, as it is optional
// - the status becomes a subresource, as each derived status is

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "velero.io", version = "v1", namespaced, plural = "backups")]
pub struct Backup {
    pub metadata: ObjectMeta,
    /// BackupSpec defines the specification for a Velero backup.
    pub spec: Option<BackupSpec>,
    pub status: Option<BackupStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_volumes_to_fs_backup: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_namespaces: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = BackupHooks, extend("nullable" = false))]
    pub hooks: Option<BackupHooks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or_label_selectors: Option<Vec<Option<BackupHooksResourceLabelSelector>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered_resources: Option<BTreeMap<String, String>>,
    pub ttl: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct BackupHooks {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<BackupHooksResource>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct BackupHooksResource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<BackupHooksResourceLabelSelector>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<BackupHooksResourceOnError>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(atomic)]
pub struct BackupHooksResourceLabelSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = BTreeMap<String, String>, extend("nullable" = false))]
    pub match_labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum BackupHooksResourceOnError {
    Continue,
    Fail,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = BackupStatusPhase, extend("nullable" = false))]
    pub phase: Option<BackupStatusPhase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_errors: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum BackupStatusPhase {
    New,
    FailedValidation,
    InProgress,
    Completed,
    Failed,
    Deleting,
}
