// Rust types of virtualservices.networking.istio.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)
// - 3 numbers get the format of their Rust type (`--exact` prevents it)
// - .spec.http[].fault.abort: `oneOf` is left out
// - .spec.http[].weight: the format "uint32" is left out: API servers do not know it
// - the versions v1beta1 are left out

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "networking.istio.io", version = "v1", namespaced, plural = "virtualservices", short = "vs", category = ["istio-io", "networking-istio-io"])]
pub struct VirtualService {
    pub metadata: ObjectMeta,
    /// Configuration affecting label/content routing, sni routing, etc. See more details at: https://istio.io/docs
    pub spec: Option<VirtualServiceSpec>,
    pub status: Option<VirtualServiceStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_to: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Vec<VirtualServiceSpecHttpItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceSpecHttpItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<VirtualServiceSpecHttpItemFault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#match: Option<Vec<VirtualServiceSpecHttpItemMatchItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4294967295i64))]
    pub mirror_percent: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{ "message": "must be a valid duration greater than 1ms", "rule": "duration(self) >= duration('1ms')" }]))]
    pub timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualServiceSpecHttpItemFault {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<VirtualServiceSpecHttpItemFaultAbort>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceSpecHttpItemFaultAbort {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<VirtualServiceSpecHttpItemFaultAbortPercentage>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualServiceSpecHttpItemFaultAbortPercentage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualServiceSpecHttpItemMatchItem {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, VirtualServiceSpecHttpItemMatchItemHeader>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4294967295i64))]
    pub port: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<VirtualServiceSpecHttpItemMatchItemUri>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualServiceSpecHttpItemMatchItemHeader {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{ "required": ["exact"] }, { "required": ["prefix"] }]))]
pub struct VirtualServiceSpecHttpItemMatchItemUri {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
pub struct VirtualServiceStatus(pub Value);
