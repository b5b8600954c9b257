// Rust types of clusters.cluster.x-k8s.io, version v1beta2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 19 optional fields accept null as well (`--exact` prevents it)
// - the versions v1beta1 are left out
// - the conversion by a webhook is left out

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "cluster.x-k8s.io", version = "v1beta2", namespaced, plural = "clusters", short = "cl", category = "cluster-api")]
pub struct Cluster {
    pub metadata: ObjectMeta,
    pub spec: Option<ClusterSpec>,
    pub status: Option<ClusterStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterSpecClusterNetwork>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ClusterSpecControlPlaneEndpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<ClusterSpecTopology>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpecClusterNetwork {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<ClusterSpecClusterNetworkPods>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpecClusterNetworkPods {
    #[schemars(length(min = 1, max = 100), extend("items" = { "maxLength": 43, "minLength": 1, "type": "string" }, "x-kubernetes-list-type" = "atomic"))]
    pub cidr_blocks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterSpecControlPlaneEndpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterSpecTopology {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
    pub variables: Option<Vec<ClusterSpecTopologyVariable>>,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<ClusterSpecTopologyWorkers>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterSpecTopologyVariable {
    pub name: String,
    /// Value of the variable, of any type.
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpecTopologyWorkers {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_deployments: Option<Vec<ClusterSpecTopologyWorkersMachineDeployment>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpecTopologyWorkersMachineDeployment {
    pub class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>", extend("x-kubernetes-int-or-string" = true))]
    pub max_unhealthy: Option<IntOrString>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
    pub conditions: Option<Vec<ClusterStatusCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterStatusPhase>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatusCondition {
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
    pub status: ClusterStatusConditionStatus,
    #[schemars(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterStatusPhase {
    Pending,
    Provisioning,
    Provisioned,
    Deleting,
    Failed,
    Unknown,
}
