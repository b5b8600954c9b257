// Rust types of helmreleases.helm.toolkit.fluxcd.io, version v2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 14 optional fields accept null as well (`--exact` prevents it)
// - 2 numbers get the format of their Rust type (`--exact` prevents it)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "helm.toolkit.fluxcd.io", version = "v2", namespaced, plural = "helmreleases", short = "hr")]
pub struct HelmRelease {
    pub metadata: ObjectMeta,
    pub spec: Option<HelmReleaseSpec>,
    pub status: Option<HelmReleaseStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{ "message": "either chart or chartRef must be set", "rule": "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))" }]))]
pub struct HelmReleaseSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<HelmReleaseSpecChart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_ref: Option<HelmReleaseSpecChartRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<HelmReleaseSpecDependsOnItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<HelmReleaseSpecInstall>,
    pub interval: String,
    #[serde(default = "default_helm_release_spec_max_history")]
    pub max_history: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub values: Option<Value>,
}

fn default_helm_release_spec_max_history() -> i64 {
    5
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecChart {
    pub spec: HelmReleaseSpecChartSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecChartSpec {
    pub chart: String,
    #[serde(default = "default_helm_release_spec_chart_spec_version")]
    pub version: String,
}

fn default_helm_release_spec_chart_spec_version() -> String {
    "*".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecChartRef {
    pub kind: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecDependsOnItem {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecInstall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<HelmReleaseSpecInstallCrds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<HelmReleaseSpecInstallRemediation>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum HelmReleaseSpecInstallCrds {
    Skip,
    Create,
    CreateReplace,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseSpecInstallRemediation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<HelmReleaseStatusHistoryItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseStatusHistoryItem {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_hooks: Option<BTreeMap<String, HelmReleaseStatusHistoryItemTestHook>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmReleaseStatusHistoryItemTestHook {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}
