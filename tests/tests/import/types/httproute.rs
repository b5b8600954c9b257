// Rust types of httproutes.gateway.networking.k8s.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 11 optional fields accept null as well (`--exact` prevents it)
// - the versions v1beta1 are left out
// - .status: no field of a status is required, because a status is stored in part
// - the derive refuses groups of the Kubernetes project: the kind has no `crd()`

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRoute {
    #[serde(default = "HTTPRoute::api_version")]
    pub api_version: String,
    #[serde(default = "HTTPRoute::kind")]
    pub kind: String,
    pub metadata: ObjectMeta,
    pub spec: HTTPRouteSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<HTTPRouteStatus>,
}

impl HTTPRoute {
    fn api_version() -> String {
        "gateway.networking.k8s.io/v1".to_owned()
    }

    fn kind() -> String {
        "HTTPRoute".to_owned()
    }
}

impl k8s_openapi::Resource for HTTPRoute {
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const GROUP: &'static str = "gateway.networking.k8s.io";
    const KIND: &'static str = "HTTPRoute";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "httproutes";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for HTTPRoute {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("items" = { "maxLength": 253, "minLength": 1, "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "type": "string" }))]
    pub hostnames: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-validations" = [{ "message": "parents must differ", "rule": "self.all(p1, self.exists_one(p2, p1.name == p2.name))" }]))]
    pub parent_refs: Option<Vec<HTTPRouteSpecParentRef>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("default" = [{ "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }] }]))]
    pub rules: Option<Vec<HTTPRouteSpecRule>>,
}

/// Gateway that a route attaches to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteSpecParentRef {
    #[serde(default = "default_http_route_spec_parent_ref_group")]
    #[schemars(length(max = 253), regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub group: String,
    #[serde(default = "default_http_route_spec_parent_ref_kind")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

fn default_http_route_spec_parent_ref_group() -> String {
    "gateway.networking.k8s.io".to_owned()
}

fn default_http_route_spec_parent_ref_kind() -> String {
    "Gateway".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("default" = [{ "path": { "type": "PathPrefix", "value": "/" } }]))]
    pub matches: Option<Vec<HTTPRouteSpecRuleMatch>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HTTPRouteSpecRuleTimeouts>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRuleMatch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["name"], "x-kubernetes-list-type" = "map"))]
    pub headers: Option<Vec<HTTPRouteSpecRuleMatchHeader>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<HTTPRouteSpecRuleMatchMethod>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = { "type": "PathPrefix", "value": "/" }))]
    pub path: Option<HTTPRouteSpecRuleMatchPath>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRuleMatchHeader {
    #[schemars(regex(pattern = r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$"))]
    pub name: String,
    pub value: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum HTTPRouteSpecRuleMatchMethod {
    #[serde(rename = "GET")]
    Get,
    #[serde(rename = "HEAD")]
    Head,
    #[serde(rename = "POST")]
    Post,
    #[serde(rename = "PUT")]
    Put,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "message": "value must be an absolute path", "rule": "(self.type in ['Exact','PathPrefix']) ? self.value.startsWith('/') : true" }]))]
pub struct HTTPRouteSpecRuleMatchPath {
    #[serde(default = "default_http_route_spec_rule_match_path_type")]
    pub r#type: HTTPRouteSpecRuleMatchPathType,
    #[serde(default = "default_http_route_spec_rule_match_path_value")]
    #[schemars(length(max = 1024))]
    pub value: String,
}

fn default_http_route_spec_rule_match_path_type() -> HTTPRouteSpecRuleMatchPathType {
    HTTPRouteSpecRuleMatchPathType::PathPrefix
}

fn default_http_route_spec_rule_match_path_value() -> String {
    "/".to_owned()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum HTTPRouteSpecRuleMatchPathType {
    Exact,
    PathPrefix,
    RegularExpression,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteSpecRuleTimeouts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([0-9]{1,5}(h|m|s|ms)){1,4}$"))]
    pub request: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HTTPRouteStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parents: Option<Vec<HTTPRouteStatusParent>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteStatusParent {
    pub controller_name: String,
    pub parent_ref: HTTPRouteStatusParentParentRef,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HTTPRouteStatusParentParentRef {
    #[serde(default = "default_http_route_status_parent_parent_ref_group")]
    #[schemars(length(max = 253), regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub group: String,
    #[serde(default = "default_http_route_status_parent_parent_ref_kind")]
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
}

fn default_http_route_status_parent_parent_ref_group() -> String {
    "gateway.networking.k8s.io".to_owned()
}

fn default_http_route_status_parent_parent_ref_kind() -> String {
    "Gateway".to_owned()
}
