// Rust types of gateways.gateway.networking.example.dev, version v1, printed by `windlass import`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "gateway.networking.example.dev",
    version = "v1",
    namespaced,
    plural = "gateways",
    short = "gtw"
)]
pub struct Gateway {
    pub metadata: ObjectMeta,
    pub spec: GatewaySpec,
    pub status: Option<GatewayStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    #[schema(length(min = 1))]
    pub gateway_class_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = GatewayInfrastructure, extend("nullable" = false))]
    pub infrastructure: Option<GatewayInfrastructure>,
    #[schema(items(min = 1, max = 64), list(map, keys(name)))]
    #[schema(rule(
        "self.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.tls) : true)",
        message = "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']"
    ))]
    #[schema(rule(
        "self.exists(l, l.port > 0)",
        message_expression = "self.size() > 1 ? 'one port is above 0' : 'the port is above 0'",
        reason = "FieldValueInvalid"
    ))]
    pub listeners: Vec<GatewayListener>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct GatewayInfrastructure {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        with = BTreeMap<String, String>,
        properties(max = 8),
        extend(
            "additionalProperties" = { "maxLength": 63, "minLength": 0, "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", "type": "string" },
            "nullable" = false
        )
    )]
    #[schema(rule("self.all(key, key.size() > 0)", message = "keys must not be empty"))]
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(atomic)]
pub struct GatewayListener {
    #[serde(default)]
    pub allowed_routes: GatewayListenerAllowedRoutes,
    pub name: String,
    #[schema(range(min = 1, max = 65535))]
    pub port: i32,
    pub protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = GatewayListenerTls, extend("nullable" = false))]
    pub tls: Option<GatewayListenerTls>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct GatewayListenerAllowedRoutes {
    #[serde(default)]
    pub namespaces: GatewayListenerAllowedRoutesNamespaces,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct GatewayListenerAllowedRoutesNamespaces {
    #[serde(default)]
    pub from: GatewayListenerAllowedRoutesNamespacesFrom,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = GatewayListenerAllowedRoutesNamespacesSelector, extend("nullable" = false))]
    pub selector: Option<GatewayListenerAllowedRoutesNamespacesSelector>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum GatewayListenerAllowedRoutesNamespacesFrom {
    All,
    Selector,
    #[default]
    Same,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(atomic)]
pub struct GatewayListenerAllowedRoutesNamespacesSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = BTreeMap<String, String>, extend("nullable" = false))]
    pub match_labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct GatewayListenerTls {
    #[serde(default)]
    pub mode: GatewayListenerTlsMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum GatewayListenerTlsMode {
    #[default]
    Terminate,
    Passthrough,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(extend("default" = { "conditions": [{ "status": "Unknown", "type": "Accepted" }] }))]
pub struct GatewayStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        with = Vec<GatewayStatusCondition>,
        list(map, keys(r#type)),
        extend("nullable" = false)
    )]
    pub conditions: Option<Vec<GatewayStatusCondition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = Vec<GatewayStatusListener>, list(map, keys(name)), extend("nullable" = false))]
    pub listeners: Option<Vec<GatewayStatusListener>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayStatusCondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = ApiTime, extend("nullable" = false))]
    pub last_transition_time: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = i64, min = 0, extend("nullable" = false))]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(with = String, extend("nullable" = false))]
    pub reason: Option<String>,
    pub status: GatewayStatusConditionStatus,
    #[schema(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum GatewayStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct GatewayStatusListener {
    pub name: String,
}
