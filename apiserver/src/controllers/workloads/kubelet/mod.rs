//! A stand-in for scheduler and kubelet: Pods get a node and run, without containers.
//!
//! Annotations of a Pod control its run: `windlass.dev/pod-state` (`Running`, `NotReady`,
//! `Pending`, `Failed`, `Succeeded`), `windlass.dev/run-seconds` and `windlass.dev/exit-code`.
//! Without them a Pod that is restarted always is ready at once, and any other Pod succeeds at
//! once. A value that is none of these is ignored, and an event of the Pod reports that.

mod events;
mod node;
mod status;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{self, NODES, PODS};
use super::{WorkResult, daemonsets};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;
use crate::verbs::decode::Body;
use crate::verbs::{VerbCall, actions};
use node::NODE_ADDRESS;
pub(super) use node::{NODE, register};

/// Gives a Pod a node, lets the Pod run, or removes it.
///
/// Without a namespace the name is that of the node, whose lease is renewed.
pub(super) fn sync(core: &ServerCore, namespace: &str, name: &str) -> WorkResult {
    if namespace.is_empty() {
        return node::renew(core, name);
    }
    let Some(stored) = objects::get(core, PODS, namespace, name) else { return Ok(None) };
    let pod = &stored.value;
    if meta::terminating(pod) {
        // Nothing runs that would need time to end.
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
    if let Some(why) = status::fault(pod) {
        events::write(core, pod, ("Warning", "InvalidAnnotation"), "", &why);
    }
    let (status, again) = status::next(core, pod, NODE_ADDRESS, &ip);
    objects::set_status(core, PODS, pod, &status)?;
    events::started(core, pod, &status);
    Ok(again)
}

/// Assigns a Pod to the first node that suits the Pod; without such a node the Pod waits.
fn bind(core: &ServerCore, pod: &Value) -> Result<(), ApiError> {
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
    let mut call = VerbCall::by_server(core, PODS.0, PODS.1, namespace, name)?;
    "binding".clone_into(&mut call.subresource);
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": meta::text(&node.value, "name")},
    });
    actions::act(core, &call, &Body::from(binding), &mut Vec::new())?;
    let node = meta::text(&node.value, "name");
    let text = format!("Successfully assigned {namespace}/{name} to {node}");
    events::write(core, pod, ("Normal", "Scheduled"), "", &text);
    Ok(())
}

/// Returns the first address of the Pods' network that no Pod has.
fn free_address(core: &ServerCore) -> String {
    let pods = objects::list(core, PODS, "");
    let used: BTreeSet<&str> =
        pods.iter().filter_map(|pod| pod.value["status"]["podIP"].as_str()).collect();
    let all = (0..=255_u8).flat_map(|high| (0..=255_u8).map(move |low| (high, low)));
    // The first is that of the network, the second that of the node's bridge.
    let mut all = all.skip(2).map(|(high, low)| format!("10.244.{high}.{low}"));
    all.find(|address| !used.contains(address.as_str())).unwrap_or_default()
}
