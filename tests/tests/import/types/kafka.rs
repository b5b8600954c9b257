// Rust types of kafkas.kafka.strimzi.io, version v1beta2, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)
// - 5 numbers get the format of their Rust type (`--exact` prevents it)
// - the version v1 is left out

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "kafka.strimzi.io",
    version = "v1beta2",
    namespaced,
    plural = "kafkas",
    short = "k",
    category = "strimzi"
)]
pub struct Kafka {
    pub metadata: ObjectMeta,
    pub spec: Option<KafkaSpec>,
    pub status: Option<KafkaStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSpec {
    pub kafka: KafkaKafka,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance_time_windows: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaKafka {
    /// Broker properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jvm_options: Option<KafkaKafkaJvmOptions>,
    #[schema(items(min = 1))]
    pub listeners: Vec<KafkaKafkaListener>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<KafkaKafkaLivenessProbe>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<KafkaKafkaLivenessProbe>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<KafkaKafkaStorage>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaKafkaJvmOptions {
    #[serde(rename = "-XX", skip_serializing_if = "Option::is_none")]
    pub xx: Option<BTreeMap<String, String>>,
    #[serde(rename = "-Xmx", skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]+[mMgG]?$")]
    pub xmx: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_logging_enabled: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct KafkaKafkaListener {
    #[schema(pattern = "^[a-z0-9]{1,11}$")]
    pub name: String,
    #[schema(min = 9092)]
    pub port: i64,
    pub tls: bool,
    pub r#type: KafkaKafkaListenerType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KafkaKafkaListenerType {
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaKafkaLivenessProbe {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 0)]
    pub initial_delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 1)]
    pub timeout_seconds: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct KafkaKafkaStorage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 0)]
    pub id: Option<i64>,
    pub r#type: KafkaKafkaStorageType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum KafkaKafkaStorageType {
    #[serde(rename = "ephemeral")]
    Ephemeral,
    #[serde(rename = "persistent-claim")]
    PersistentClaim,
    #[serde(rename = "jbod")]
    Jbod,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listeners: Option<Vec<KafkaStatusListener>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct KafkaStatusListener {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<KafkaStatusListenerAddress>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct KafkaStatusListenerAddress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
}
