// Rust types of applications.argoproj.io, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 33 optional fields accept null as well (`--exact` prevents it)
// - the status becomes a subresource, as each derived status is
// - the column "Owner" is left out: there is no `.status.owner.name`

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "argoproj.io",
    version = "v1alpha1",
    namespaced,
    plural = "applications",
    short = ["app", "apps"]
)]
#[resource(column("Sync Status", status.sync.status))]
#[resource(column("Health Status", status.health.status))]
pub struct Application {
    pub metadata: ObjectMeta,
    /// Operation that was requested last.
    pub operation: Option<ApplicationOperation>,
    pub spec: ApplicationSpec,
    pub status: Option<ApplicationStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationOperation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Vec<ApplicationOperationInfoItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<ApplicationOperationRetry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationOperationInfoItem {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationOperationRetry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    pub destination: ApplicationDestination,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_differences: Option<Vec<ApplicationIgnoreDifference>>,
    pub project: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<ApplicationSource2>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_policy: Option<ApplicationSyncPolicy>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationDestination {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// URL of the cluster, such as https://kubernetes.default.svc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationIgnoreDifference {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jq_path_expressions: Option<Vec<String>>,
    pub kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationSource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helm: Option<ApplicationSourceHelm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
    #[serde(rename = "repoURL")]
    pub repo_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSourceHelm {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<ApplicationSourceHelmParameter>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_object: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSourceHelmParameter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_string: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationSource2 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
    #[serde(rename = "repoURL")]
    pub repo_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSyncPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated: Option<ApplicationSyncPolicyAutomated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<ApplicationSyncPolicyRetry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_options: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSyncPolicyAutomated {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_heal: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationSyncPolicyRetry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<ApplicationSyncPolicyRetryBackoff>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationSyncPolicyRetryBackoff {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<ApplicationStatusHealth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<ApplicationStatusSync>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationStatusHealth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ApplicationStatusSync {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub status: String,
}
