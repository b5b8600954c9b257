// Rust types of helmreleases.helm.toolkit.fluxcd.io, version v2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 14 optional fields accept null as well (`--exact` prevents it)
// - 2 numbers get the format of their Rust type (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "helm.toolkit.fluxcd.io",
    version = "v2",
    namespaced,
    plural = "helmreleases",
    short = "hr"
)]
pub struct HelmRelease {
    pub metadata: ObjectMeta,
    pub spec: Option<HelmReleaseSpec>,
    pub status: Option<HelmReleaseStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule(
    "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))",
    message = "either chart or chartRef must be set"
))]
pub struct HelmReleaseSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<HelmReleaseChart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_ref: Option<HelmReleaseChartRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<HelmReleaseDependsOnItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<HelmReleaseInstall>,
    pub interval: String,
    #[serde(default = "default_max_history")]
    pub max_history: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub values: Option<Value>,
}

fn default_max_history() -> i64 {
    5
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseChart {
    pub spec: HelmReleaseChartSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseChartSpec {
    pub chart: String,
    #[serde(default = "default_version")]
    pub version: String,
}

fn default_version() -> String {
    "*".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseChartRef {
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseDependsOnItem {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseInstall {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crds: Option<HelmReleaseInstallCrds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<HelmReleaseInstallRemediation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum HelmReleaseInstallCrds {
    Skip,
    Create,
    CreateReplace,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseInstallRemediation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<HelmReleaseStatusHistoryItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseStatusHistoryItem {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_hooks: Option<BTreeMap<String, HelmReleaseStatusHistoryItemTestHook>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HelmReleaseStatusHistoryItemTestHook {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}
