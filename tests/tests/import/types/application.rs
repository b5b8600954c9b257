// Rust types of applications.argoproj.io, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 32 optional fields accept null as well (`--exact` prevents it)
// - the column "Owner" is left out: the schema has no .status.owner.name
// - the status becomes a subresource, as each derived status is

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "argoproj.io", version = "v1alpha1", namespaced, plural = "applications", short = ["app", "apps"])]
#[resource(column(name = "Sync Status", path = ".status.sync.status", type = "string"))]
#[resource(column(name = "Health Status", path = ".status.health.status", type = "string"))]
pub struct Application {
    pub metadata: ObjectMeta,
    /// Operation that was requested last.
    pub operation: Option<ApplicationOperation>,
    pub spec: ApplicationSpec,
    pub status: Option<ApplicationStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationOperation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<Vec<ApplicationOperationInfoItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ApplicationOperationRetry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationOperationInfoItem {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationOperationRetry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    pub destination: ApplicationSpecDestination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_differences: Option<Vec<ApplicationSpecIgnoreDifference>>,
    pub project: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ApplicationSpecSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<ApplicationSpecSource2>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_policy: Option<ApplicationSpecSyncPolicy>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationSpecDestination {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// URL of the cluster, such as https://kubernetes.default.svc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecIgnoreDifference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jq_path_expressions: Option<Vec<String>>,
    pub kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<ApplicationSpecSourceHelm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
    #[serde(rename = "repoURL")]
    pub repo_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSourceHelm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<ApplicationSpecSourceHelmParameter>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
    pub values_object: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSourceHelmParameter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_string: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSource2 {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#ref: Option<String>,
    #[serde(rename = "repoURL")]
    pub repo_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSyncPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automated: Option<ApplicationSpecSyncPolicyAutomated>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<ApplicationSpecSyncPolicyRetry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_options: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpecSyncPolicyAutomated {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_heal: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationSpecSyncPolicyRetry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<ApplicationSpecSyncPolicyRetryBackoff>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationSpecSyncPolicyRetryBackoff {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ApplicationStatusHealth>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<ApplicationStatusSync>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationStatusHealth {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationStatusSync {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub status: String,
}
