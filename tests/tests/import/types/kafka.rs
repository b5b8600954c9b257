// Rust types of kafkas.kafka.strimzi.io, version v1beta2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 19 optional fields accept null as well (`--exact` prevents it)
// - 5 numbers get the format of their Rust type (`--exact` prevents it)
// - the versions v1 are left out

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "kafka.strimzi.io", version = "v1beta2", namespaced, plural = "kafkas", short = "k", category = "strimzi")]
pub struct Kafka {
    pub metadata: ObjectMeta,
    pub spec: Option<KafkaSpec>,
    pub status: Option<KafkaStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSpec {
    pub kafka: KafkaSpecKafka,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_time_windows: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSpecKafka {
    /// Broker properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
    pub config: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jvm_options: Option<KafkaSpecKafkaJvmOptions>,
    #[schemars(length(min = 1))]
    pub listeners: Vec<KafkaSpecKafkaListener>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<KafkaSpecKafkaLivenessProbe>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<KafkaSpecKafkaLivenessProbe>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<KafkaSpecKafkaStorage>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSpecKafkaJvmOptions {
    #[serde(rename = "-XX", default, skip_serializing_if = "Option::is_none")]
    pub xx: Option<BTreeMap<String, String>>,
    #[serde(rename = "-Xmx", default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[mMgG]?$"))]
    pub xmx: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gc_logging_enabled: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KafkaSpecKafkaListener {
    #[schemars(regex(pattern = "^[a-z0-9]{1,11}$"))]
    pub name: String,
    #[schemars(range(min = 9092))]
    pub port: i64,
    pub tls: bool,
    pub r#type: KafkaSpecKafkaListenerType,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KafkaSpecKafkaListenerType {
    #[serde(rename = "internal")]
    Internal,
    #[serde(rename = "route")]
    Route,
    #[serde(rename = "loadbalancer")]
    Loadbalancer,
    #[serde(rename = "nodeport")]
    Nodeport,
    #[serde(rename = "ingress")]
    Ingress,
    #[serde(rename = "cluster-ip")]
    ClusterIp,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSpecKafkaLivenessProbe {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub initial_delay_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KafkaSpecKafkaStorage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub id: Option<i64>,
    pub r#type: KafkaSpecKafkaStorageType,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum KafkaSpecKafkaStorageType {
    #[serde(rename = "ephemeral")]
    Ephemeral,
    #[serde(rename = "persistent-claim")]
    PersistentClaim,
    #[serde(rename = "jbod")]
    Jbod,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listeners: Option<Vec<KafkaStatusListener>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KafkaStatusListener {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<KafkaStatusListenerAddress>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KafkaStatusListenerAddress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
}
