//! The node of the stand-in, and its lease.

use serde_json::json;

use super::super::WorkResult;
use super::super::objects::{self, NODES, Resource};
use crate::core::ServerCore;

const LEASES: Resource = ("coordination.k8s.io", "leases");
/// Namespace of the leases of nodes.
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Seconds for which a lease counts, and after which the lease is renewed: the defaults of a
/// kubelet.
const DURATION: i64 = 40;
const PERIOD: i64 = 10;
/// Name of the node that the stand-in registers.
pub(in super::super) const NODE: &str = "windlass";
/// Address of that node, which no host has.
pub(super) const NODE_ADDRESS: &str = "192.0.2.1";

/// Registers the node of the stand-in, unless already present.
pub(in super::super) fn register(core: &ServerCore) {
    if !objects::list(core, NODES, "").is_empty() {
        return;
    }
    let now = core.clock.rfc3339();
    let capacity = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": {
            "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}},
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"]},
    });
    let status = json!({
        "capacity": capacity, "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS},
            {"type": "Hostname", "address": NODE}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now, "lastTransitionTime": now}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "kubeletVersion": "v1.36.3", "operatingSystem": "linux", "architecture": "amd64",
            "osImage": "Windlass", "kernelVersion": "0", "containerRuntimeVersion": "windlass://0",
            "bootID": "", "kubeProxyVersion": "", "machineID": "", "systemUUID": ""},
    });
    let made = objects::create(core, NODES, "", node).and_then(|node| {
        objects::set_status(core, NODES, &node, &status)?;
        // Admission adds the taint to each new node; a ready node loses the taint.
        objects::change(core, NODES, &node, "", |node| {
            if let Some(spec) = node["spec"].as_object_mut() {
                spec.remove("taints");
            }
        })
    });
    if let Err(error) = made {
        tracing::warn!(%error, "the stand-in for a kubelet could not register its node {NODE}");
    }
}

/// Renews the lease of the node, or makes the lease; returns the time of the next renewal.
pub(super) fn renew(core: &ServerCore, name: &str) -> WorkResult {
    let now = core.clock.seconds();
    let Some(node) = objects::get(core, NODES, "", name) else { return Ok(Some(now + PERIOD)) };
    let time = core.clock.rfc3339_micros();
    match objects::get(core, LEASES, LEASE_NAMESPACE, name) {
        Some(stored) => objects::change(core, LEASES, &stored.value, "", |lease| {
            lease["spec"]["renewTime"] = json!(time);
        })?,
        None => objects::create_if_absent(
            core,
            LEASES,
            LEASE_NAMESPACE,
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node",
                    "name": name, "uid": node.value["metadata"]["uid"]}]},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": DURATION, "renewTime": time},
            }),
        )?,
    }
    Ok(Some(now + PERIOD))
}
