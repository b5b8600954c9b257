// Rust types of ipaddresspools.metallb.io, version v1beta1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 3 optional fields accept null as well (`--exact` prevents it)
// - 1 numbers get the format of their Rust type (`--exact` prevents it)
// - .status: no field of a status is required, because a status is stored in part

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "metallb.io", version = "v1beta1", namespaced, plural = "ipaddresspools")]
pub struct IPAddressPool {
    pub metadata: ObjectMeta,
    pub spec: IPAddressPoolSpec,
    pub status: Option<IPAddressPoolStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressPoolSpec {
    pub addresses: Vec<String>,
    #[serde(default = "default_ip_address_pool_spec_auto_assign")]
    pub auto_assign: bool,
    #[serde(default = "default_ip_address_pool_spec_avoid_buggy_i_ps")]
    pub avoid_buggy_i_ps: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_allocation: Option<IPAddressPoolSpecServiceAllocation>,
}

fn default_ip_address_pool_spec_auto_assign() -> bool {
    true
}

fn default_ip_address_pool_spec_avoid_buggy_i_ps() -> bool {
    false
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IPAddressPoolSpecServiceAllocation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressPoolStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_i_pv4: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_i_pv4: Option<i64>,
}
