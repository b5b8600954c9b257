// Rust types of virtualservices.networking.istio.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)
// - 3 numbers get the format of their Rust type (`--exact` prevents it)
// - .spec.http[].fault.abort: `oneOf` is left out
// - .spec.http[].weight: the format "uint32" is left out: API servers do not know it
// - the version v1beta1 is left out

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "networking.istio.io",
    version = "v1",
    namespaced,
    plural = "virtualservices",
    short = "vs",
    category = ["istio-io", "networking-istio-io"]
)]
pub struct VirtualService {
    pub metadata: ObjectMeta,
    /// Configuration affecting label/content routing, sni routing, etc. See more details at: https://istio.io/docs
    pub spec: Option<VirtualServiceSpec>,
    pub status: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_to: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Vec<VirtualServiceHttpItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceHttpItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<VirtualServiceHttpItemFault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#match: Option<Vec<VirtualServiceHttpItemMatchItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(range(min = 0, max = 4_294_967_295_i64))]
    pub mirror_percent: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(rule(
        "duration(self) >= duration('1ms')",
        message = "must be a valid duration greater than 1ms"
    ))]
    pub timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct VirtualServiceHttpItemFault {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<VirtualServiceHttpItemFaultAbort>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceHttpItemFaultAbort {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentage: Option<VirtualServiceHttpItemFaultAbortPercentage>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct VirtualServiceHttpItemFaultAbortPercentage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct VirtualServiceHttpItemMatchItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, VirtualServiceHttpItemMatchItemHeader>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(range(min = 0, max = 4_294_967_295_i64))]
    pub port: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<VirtualServiceHttpItemMatchItemUri>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct VirtualServiceHttpItemMatchItemHeader {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[schema(extend("oneOf" = [{ "required": ["exact"] }, { "required": ["prefix"] }]))]
pub struct VirtualServiceHttpItemMatchItemUri {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}
