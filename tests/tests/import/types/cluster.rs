// Rust types of clusters.cluster.x-k8s.io, version v1beta2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)
// - the version v1beta1 is left out
// - the conversion by a webhook is left out

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    namespaced,
    plural = "clusters",
    short = "cl",
    category = "cluster-api"
)]
pub struct Cluster {
    pub metadata: ObjectMeta,
    pub spec: Option<ClusterSpec>,
    pub status: Option<ClusterStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(properties(min = 1))]
pub struct ClusterSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network: Option<ClusterClusterNetwork>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ClusterControlPlaneEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<ClusterTopology>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClusterNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<ClusterClusterNetworkPods>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClusterNetworkPods {
    #[schema(items(min = 1, max = 100), each(length(min = 1, max = 43)), atomic)]
    pub cidr_blocks: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(properties(min = 1))]
pub struct ClusterControlPlaneEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterTopology {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(name)))]
    pub variables: Option<Vec<ClusterTopologyVariable>>,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<ClusterTopologyWorkers>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ClusterTopologyVariable {
    pub name: String,
    /// Value of the variable, of any type.
    #[schema(preserve)]
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTopologyWorkers {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_deployments: Option<Vec<ClusterTopologyWorkersMachineDeployment>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTopologyWorkersMachineDeployment {
    pub class: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unhealthy: Option<IntOrString>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(properties(min = 1))]
pub struct ClusterStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(r#type)))]
    pub conditions: Option<Vec<ClusterStatusCondition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterStatusPhase>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatusCondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 0)]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: ClusterStatusConditionStatus,
    #[schema(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ClusterStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum ClusterStatusPhase {
    Pending,
    Provisioning,
    Provisioned,
    Deleting,
    Failed,
    Unknown,
}
