//! A stand-in for scheduler and kubelet: Pods get a node and run, without containers.
//!
//! Annotations of a Pod say how it runs: `windlass.dev/pod-state` (`Running`, `NotReady`, `Pending`,
//! `Failed`, `Succeeded`), `windlass.dev/run-seconds` and `windlass.dev/exit-code`. Without them a Pod
//! that is restarted always is ready at once, and any other one succeeds at once.

mod status;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{self, NODES, PODS};
use super::{Done, daemonsets};
use crate::core::Core;
use crate::kinds::meta;
use crate::status::ApiError;
use crate::verbs::decode::Body;
use crate::verbs::{Call, actions};

/// Name of the node that the stand-in registers.
const NODE: &str = "windlass";
/// Address of that node: one that nobody has.
const NODE_ADDRESS: &str = "192.0.2.1";

/// Registers the node of the stand-in, unless there is one already.
pub(super) fn register(core: &Core) {
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
    let made = objects::create(core, NODES, "", node)
        .and_then(|node| objects::set_status(core, NODES, &node, &status));
    if let Err(error) = made {
        tracing::warn!(%error, "the stand-in for a kubelet could not register its node {NODE}");
    }
}

/// Gives a Pod a node, lets it run, or lets it go.
pub(super) fn sync(core: &Core, namespace: &str, name: &str) -> Done {
    let Some(held) = objects::get(core, PODS, namespace, name) else { return Ok(None) };
    let pod = &held.value;
    if meta::terminating(pod) {
        // Nothing runs that could take its time.
        return objects::remove(core, PODS, pod, Some(0)).map(|()| None);
    }
    if super::pods::is_finished(pod) {
        return Ok(None);
    }
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return bind(core, pod).map(|()| None);
    }
    let ip = match pod["status"]["podIP"].as_str().filter(|ip| !ip.is_empty()) {
        Some(ip) => ip.to_owned(),
        None if pod["spec"]["hostNetwork"] == true => NODE_ADDRESS.to_owned(),
        None => free_address(core),
    };
    let (status, again) = status::next(core, pod, NODE_ADDRESS, &ip);
    objects::set_status(core, PODS, pod, &status)?;
    Ok(again)
}

/// Assigns a Pod to the first node that suits it; without one it waits.
fn bind(core: &Core, pod: &Value) -> Result<(), ApiError> {
    let spec = &pod["spec"];
    let is_gated = !objects::items(spec, "schedulingGates").is_empty();
    // Another scheduler decides about the Pods that name it.
    if is_gated || spec["schedulerName"] != "default-scheduler" {
        return Ok(());
    }
    let target = daemonsets::target(pod);
    let selector = spec["nodeSelector"].as_object();
    let nodes = objects::list(core, NODES, "");
    let chosen = nodes.iter().find(|node| {
        let node = &node.value;
        let labels = &node["metadata"]["labels"];
        let is_target = target.is_none_or(|name| name == meta::text(node, "name"));
        // The Pods of a DaemonSet also run where nothing else is placed.
        let is_open = target.is_some() || node["spec"]["unschedulable"] != true;
        is_target
            && is_open
            && selector.into_iter().flatten().all(|(key, value)| labels[key] == *value)
    });
    let Some(node) = chosen else { return Ok(()) };
    let (namespace, name) = (meta::text(pod, "namespace"), meta::text(pod, "name"));
    let mut call = Call::by_server(core, PODS.0, PODS.1, namespace, name)?;
    "binding".clone_into(&mut call.subresource);
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": meta::text(&node.value, "name")},
    });
    actions::act(core, &call, &Body::from(binding), &mut Vec::new()).map(|_| ())
}

/// Returns the first address of the Pods' network that no Pod has.
fn free_address(core: &Core) -> String {
    let pods = objects::list(core, PODS, "");
    let used: BTreeSet<&str> =
        pods.iter().filter_map(|pod| pod.value["status"]["podIP"].as_str()).collect();
    let all = (0..=255_u8).flat_map(|high| (0..=255_u8).map(move |low| (high, low)));
    // The first is that of the network, the second that of the node's bridge.
    let mut all = all.skip(2).map(|(high, low)| format!("10.244.{high}.{low}"));
    all.find(|address| !used.contains(address.as_str())).unwrap_or_default()
}
