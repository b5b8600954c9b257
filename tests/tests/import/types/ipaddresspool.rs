// Rust types of ipaddresspools.metallb.io, version v1beta1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 5 optional fields accept null as well (`--exact` prevents it)
// - 1 number gets the format of its Rust type (`--exact` prevents it)
// - .status: no field of a status is required, because a status is stored in part

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "metallb.io", version = "v1beta1", namespaced, plural = "ipaddresspools")]
pub struct IPAddressPool {
    pub metadata: ObjectMeta,
    pub spec: IPAddressPoolSpec,
    pub status: Option<IPAddressPoolStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressPoolSpec {
    pub addresses: Vec<String>,
    #[serde(default = "default_auto_assign")]
    pub auto_assign: bool,
    #[serde(rename = "avoidBuggyIPs", default)]
    pub avoid_buggy_ips: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_allocation: Option<IPAddressPoolServiceAllocation>,
}

fn default_auto_assign() -> bool {
    true
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct IPAddressPoolServiceAllocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressPoolStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_i_pv4: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_i_pv4: Option<i64>,
}
