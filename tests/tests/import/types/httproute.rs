// Rust types of httproutes.gateway.networking.k8s.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 12 optional fields accept null as well (`--exact` prevents it)
// - the version v1beta1 is left out
// - .status: no field of a status is required, because a status is stored in part

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "gateway.networking.k8s.io",
    version = "v1",
    namespaced,
    plural = "httproutes",
    category = "gateway-api",
    annotation(
        "api-approved.kubernetes.io" = "https://github.com/kubernetes-sigs/gateway-api/pull/3328"
    )
)]
pub struct HTTPRoute {
    pub metadata: ObjectMeta,
    pub spec: HTTPRouteSpec,
    pub status: Option<HTTPRouteStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        items(max = 16),
        each(length(min = 1, max = 253), pattern = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub hostnames: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(items(max = 32))]
    #[schema(rule(
        "self.all(p1, self.exists_one(p2, p1.name == p2.name))",
        message = "parents must differ"
    ))]
    pub parent_refs: Option<Vec<HTTPRouteParentRef>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        items(max = 16),
        extend("default" = [{ "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }] }])
    )]
    pub rules: Option<Vec<HTTPRouteRule>>,
}

/// Gateway that a route attaches to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteParentRef {
    #[serde(default = "default_group")]
    #[schema(
        length(max = 253),
        pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )]
    pub group: String,
    #[serde(default = "default_kind")]
    #[schema(length(min = 1, max = 63))]
    pub kind: String,
    #[schema(length(min = 1, max = 253))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

fn default_group() -> String {
    "gateway.networking.k8s.io".to_owned()
}

fn default_kind() -> String {
    "Gateway".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HTTPRouteRule {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        items(max = 64),
        extend("default" = [{ "path": { "type": "PathPrefix", "value": "/" } }])
    )]
    pub matches: Option<Vec<HTTPRouteRuleMatch>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HTTPRouteRuleTimeouts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HTTPRouteRuleMatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(name)))]
    pub headers: Option<Vec<HTTPRouteRuleMatchHeader>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<HTTPRouteRuleMatchMethod>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extend("default" = { "type": "PathPrefix", "value": "/" }))]
    pub path: Option<HTTPRouteRuleMatchPath>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HTTPRouteRuleMatchHeader {
    #[schema(pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$")]
    pub name: String,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum HTTPRouteRuleMatchMethod {
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "HEAD")]
    Head,
    #[serde(rename = "POST")]
    Post,
    #[serde(rename = "PUT")]
    Put,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[schema(rule(
    "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true",
    message = "value must be an absolute path"
))]
pub struct HTTPRouteRuleMatchPath {
    #[serde(default)]
    pub r#type: HTTPRouteRuleMatchPathType,
    #[serde(default = "default_value")]
    #[schema(length(max = 1024))]
    pub value: String,
}

fn default_value() -> String {
    "/".to_owned()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum HTTPRouteRuleMatchPathType {
    Exact,
    #[default]
    PathPrefix,
    RegularExpression,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HTTPRouteRuleTimeouts {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([0-9]{1,5}(h|m|s|ms)){1,4}$")]
    pub request: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HTTPRouteStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parents: Option<Vec<HTTPRouteStatusParent>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteStatusParent {
    pub controller_name: String,
    pub parent_ref: HTTPRouteStatusParentParentRef,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteStatusParentParentRef {
    #[serde(default = "default_group")]
    #[schema(
        length(max = 253),
        pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    )]
    pub group: String,
    #[serde(default = "default_kind")]
    #[schema(length(min = 1, max = 63))]
    pub kind: String,
    #[schema(length(min = 1, max = 253))]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}
