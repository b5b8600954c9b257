// Rust types of gateways.gateway.networking.example.dev, version v1, printed by `windlass import`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "gateway.networking.example.dev", version = "v1", namespaced, plural = "gateways", short = "gtw")]
pub struct Gateway {
    pub metadata: ObjectMeta,
    pub spec: GatewaySpec,
    pub status: Option<GatewayStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    #[schemars(length(min = 1))]
    pub gateway_class_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewaySpecInfrastructure")]
    pub infrastructure: Option<GatewaySpecInfrastructure>,
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map", "x-kubernetes-validations" = [{ "message": "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']", "rule": "self.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.tls) : true)" }, { "fieldPath": "", "messageExpression": "self.size() > 1 ? 'one port is above 0' : 'the port is above 0'", "reason": "FieldValueInvalid", "rule": "self.exists(l, l.port > 0)" }]))]
    pub listeners: Vec<GatewaySpecListener>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewaySpecInfrastructure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>", extend("additionalProperties" = { "maxLength": 63, "minLength": 0, "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", "type": "string" }, "maxProperties" = 8, "x-kubernetes-validations" = [{ "message": "keys must not be empty", "rule": "self.all(key, key.size() > 0)" }]))]
    pub labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct GatewaySpecListener {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewaySpecListenerAllowedRoutes", extend("default" = { "namespaces": { "from": "Same" } }))]
    pub allowed_routes: Option<GatewaySpecListenerAllowedRoutes>,
    pub name: String,
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    pub protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewaySpecListenerTls")]
    pub tls: Option<GatewaySpecListenerTls>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewaySpecListenerAllowedRoutes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewaySpecListenerAllowedRoutesNamespaces", extend("default" = { "from": "Same" }))]
    pub namespaces: Option<GatewaySpecListenerAllowedRoutesNamespaces>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewaySpecListenerAllowedRoutesNamespaces {
    #[serde(default = "default_gateway_spec_listener_allowed_routes_namespaces_from")]
    pub from: GatewaySpecListenerAllowedRoutesNamespacesFrom,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "GatewaySpecListenerAllowedRoutesNamespacesSelector")]
    pub selector: Option<GatewaySpecListenerAllowedRoutesNamespacesSelector>,
}

fn default_gateway_spec_listener_allowed_routes_namespaces_from() -> GatewaySpecListenerAllowedRoutesNamespacesFrom {
    GatewaySpecListenerAllowedRoutesNamespacesFrom::Same
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum GatewaySpecListenerAllowedRoutesNamespacesFrom {
    All,
    Selector,
    Same,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct GatewaySpecListenerAllowedRoutesNamespacesSelector {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub match_labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewaySpecListenerTls {
    #[serde(default = "default_gateway_spec_listener_tls_mode")]
    pub mode: GatewaySpecListenerTlsMode,
}

fn default_gateway_spec_listener_tls_mode() -> GatewaySpecListenerTlsMode {
    GatewaySpecListenerTlsMode::Terminate
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum GatewaySpecListenerTlsMode {
    Terminate,
    Passthrough,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("default" = { "conditions": [{ "status": "Unknown", "type": "Accepted" }] }))]
pub struct GatewayStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<GatewayStatusCondition>", extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
    pub conditions: Option<Vec<GatewayStatusCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<GatewayStatusListener>", extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
    pub listeners: Option<Vec<GatewayStatusListener>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayStatusCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
    pub status: GatewayStatusConditionStatus,
    #[schemars(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum GatewayStatusConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayStatusListener {
    pub name: String,
}
