//! Endpoints and `EndpointSlices`: the addresses of the Pods that a Service selects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::objects::{self, ENDPOINTS, PODS, SERVICES, SLICES};
use super::{WorkResult, pods};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::selectors::selects;
use crate::storage::StoredObject;

/// Annotation with the time of the last change.
const CHANGED: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Labels that the controllers of upstream write.
const MANAGED: &str = "endpoints.kubernetes.io/managed-by";
const SLICE_MANAGED: &str = "endpointslice.kubernetes.io/managed-by";
/// Most addresses of an object.
const MOST: usize = 1000;

/// An address of a Service.
#[derive(Debug)]
struct Address {
    ip: String,
    pod: Value,
    /// Whether the Pod is ready, or the Service takes Pods that are not.
    is_ready: bool,
    ports: Vec<Value>,
}

/// Returns the names of the Services that select any of the states of a Pod.
pub(super) fn services_of<'a>(
    core: &ServerCore,
    namespace: &str,
    states: impl Iterator<Item = &'a Arc<StoredObject>> + Clone,
) -> Vec<String> {
    let all = objects::list(core, SERVICES, namespace).into_iter();
    all.filter(|stored| states.clone().any(|state| chooses(&stored.value, &state.value)))
        .map(|stored| meta::text(&stored.value, "name").to_owned())
        .collect()
}

/// Whether a Service selects a Pod.
fn chooses(service: &Value, pod: &Value) -> bool {
    let selector = &service["spec"]["selector"];
    selector.as_object().is_some_and(|all| !all.is_empty())
        && selects(&json!({"matchLabels": selector}), pod)
}

/// Returns a Service whose addresses are to be written.
fn service(core: &ServerCore, namespace: &str, name: &str) -> Option<Arc<StoredObject>> {
    let stored = objects::get(core, SERVICES, namespace, name)?;
    let spec = &stored.value["spec"];
    let selects = spec["selector"].as_object().is_some_and(|all| !all.is_empty());
    let is_fine = selects && spec["type"] != "ExternalName" && !meta::terminating(&stored.value);
    is_fine.then_some(stored)
}

/// Returns the addresses of a Service, in order of the Pods' names.
fn addresses(core: &ServerCore, service: &Value) -> Vec<Address> {
    let takes_all = service["spec"]["publishNotReadyAddresses"] == true;
    let all = objects::list(core, PODS, meta::text(service, "namespace")).into_iter();
    let chosen = all.filter(|pod| chooses(service, &pod.value) && !pods::is_finished(&pod.value));
    let placed = chosen.filter_map(|pod| {
        let ip = pod.value["status"]["podIP"].as_str().filter(|ip| !ip.is_empty())?.to_owned();
        let pod = pod.value.clone();
        let is_ready = takes_all || (pods::is_ready(&pod) && !meta::terminating(&pod));
        Some(Address { ip, is_ready, ports: ports(service, &pod), pod })
    });
    placed.take(MOST).collect()
}

/// Returns the ports of a Service at a Pod. A name stands for that of a container's port.
fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let mut ports = Vec::new();
    for port in objects::items(&service["spec"], "ports") {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let number = match &port["targetPort"] {
            Value::String(name) => objects::items(&pod["spec"], "containers")
                .iter()
                .flat_map(|container| objects::items(container, "ports"))
                .find(|it| it["name"] == name.as_str() && it["protocol"] == protocol)
                .and_then(|it| it["containerPort"].as_i64()),
            Value::Number(number) => number.as_i64(),
            _ => port["port"].as_i64(),
        };
        let Some(number) = number else { continue };
        let mut entry = json!({"port": number, "protocol": protocol});
        for field in ["name", "appProtocol"] {
            if port[field].as_str().is_some_and(|text| !text.is_empty()) {
                entry[field] = port[field].clone();
            }
        }
        ports.push(entry);
    }
    ports
}

/// Returns the reference to a Pod.
fn target(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!({"kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"],
        "uid": metadata["uid"]})
}

/// Returns the labels of a Service and those that the controllers add.
fn labels(service: &Value, more: &[(&str, &str)]) -> Value {
    let mut labels = service["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    for (name, value) in more {
        labels.insert((*name).to_owned(), json!(value));
    }
    if service["spec"]["clusterIP"] == "None" {
        labels.insert("service.kubernetes.io/headless".to_owned(), json!(""));
    }
    Value::Object(labels)
}

/// Writes the Endpoints of a Service.
pub(super) fn sync_endpoints(core: &ServerCore, namespace: &str, name: &str) -> WorkResult {
    let stored = objects::get(core, ENDPOINTS, namespace, name);
    let Some(service) = service(core, namespace, name) else {
        // The Service is gone; endpoints of a Service without a selector belong to others.
        let is_gone = objects::get(core, SERVICES, namespace, name).is_none();
        if let Some(stored) = stored.filter(|stored| {
            is_gone && stored.value["metadata"]["labels"][MANAGED] == "endpoint-controller"
        }) {
            objects::remove(core, ENDPOINTS, &stored.value, None)?;
        }
        return Ok(None);
    };
    let subsets = subsets(&addresses(core, &service.value));
    let labels = labels(&service.value, &[(MANAGED, "endpoint-controller")]);
    let now = core.clock.rfc3339();
    match stored {
        None => objects::create_if_absent(
            core,
            ENDPOINTS,
            namespace,
            json!({
                "apiVersion": "v1", "kind": "Endpoints",
                "metadata": {"name": name, "labels": labels, "annotations": {CHANGED: now}},
                "subsets": subsets,
            }),
        )?,
        Some(stored)
            if stored.value["metadata"]["labels"] == labels
                && objects::items(&stored.value, "subsets")
                    == objects::items(&json!({"subsets": subsets}), "subsets") => {}
        Some(stored) => objects::change(core, ENDPOINTS, &stored.value, "", |next| {
            next["subsets"] = subsets.clone();
            next["metadata"]["labels"] = labels.clone();
            next["metadata"]["annotations"][CHANGED] = json!(now);
        })?,
    }
    Ok(None)
}

/// Returns addresses grouped by their ports.
fn subsets(addresses: &[Address]) -> Value {
    let mut groups: Vec<(Vec<Value>, [Vec<Value>; 2])> = Vec::new();
    for address in addresses {
        let at = groups.iter().position(|(ports, _)| *ports == address.ports);
        let at = at.unwrap_or_else(|| {
            groups.push((address.ports.clone(), [Vec::new(), Vec::new()]));
            groups.len() - 1
        });
        let mut entry = json!({"ip": address.ip, "targetRef": target(&address.pod)});
        for (field, from) in [("nodeName", "nodeName"), ("hostname", "hostname")] {
            if address.pod["spec"][from].is_string() {
                entry[field] = address.pod["spec"][from].clone();
            }
        }
        groups[at].1[usize::from(!address.is_ready)].push(entry);
    }
    let subsets = groups.into_iter().map(|(ports, [ready, unready])| {
        let mut subset = json!({});
        for (field, list) in
            [("addresses", ready), ("notReadyAddresses", unready), ("ports", ports)]
        {
            if !list.is_empty() {
                subset[field] = json!(list);
            }
        }
        subset
    });
    let subsets: Vec<Value> = subsets.collect();
    if subsets.is_empty() { Value::Null } else { json!(subsets) }
}

/// Writes the `EndpointSlice` of a Service: a single slice, for the family of the Service's
/// address.
pub(super) fn sync_slice(core: &ServerCore, namespace: &str, name: &str) -> WorkResult {
    // When the Service goes, garbage collection deletes the slice.
    let Some(service) = service(core, namespace, name) else { return Ok(None) };
    let service = &service.value;
    let owned = objects::owned(core, SLICES, service);
    let stored = owned
        .iter()
        .find(|one| one["metadata"]["labels"][SLICE_MANAGED] == "endpointslice-controller.k8s.io");
    let addresses = addresses(core, service);
    let endpoints: Vec<Value> = addresses.iter().map(endpoint).collect();
    let ports = addresses.first().map_or(Value::Null, |first| json!(named(&first.ports)));
    let endpoints = if endpoints.is_empty() { Value::Null } else { json!(endpoints) };
    let labels = labels(
        service,
        &[("kubernetes.io/service-name", name), (SLICE_MANAGED, "endpointslice-controller.k8s.io")],
    );
    let now = core.clock.rfc3339();
    match stored {
        None => {
            let is_ipv6 = service["spec"]["ipFamilies"][0] == "IPv6";
            objects::create(
                core,
                SLICES,
                namespace,
                json!({
                    "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                    "metadata": {
                        "generateName": format!("{name}-"), "labels": labels,
                        "annotations": {CHANGED: now},
                        "ownerReferences": objects::owner("v1", "Service", service),
                    },
                    "addressType": if is_ipv6 { "IPv6" } else { "IPv4" },
                    "endpoints": endpoints, "ports": ports,
                }),
            )?;
        }
        Some(stored)
            if stored["endpoints"] == endpoints
                && stored["ports"] == ports
                && stored["metadata"]["labels"] == labels => {}
        Some(stored) => objects::change(core, SLICES, stored, "", |next| {
            next["endpoints"] = endpoints.clone();
            next["ports"] = ports.clone();
            next["metadata"]["labels"] = labels.clone();
            next["metadata"]["annotations"][CHANGED] = json!(now);
        })?,
    }
    Ok(None)
}

/// Returns ports each of which has a name, which may be empty: clients rely on the field in slices.
fn named(ports: &[Value]) -> Vec<Value> {
    let mut ports = ports.to_vec();
    for port in &mut ports {
        if port["name"].is_null() {
            port["name"] = json!("");
        }
    }
    ports
}

/// Returns the endpoint of an address.
fn endpoint(address: &Address) -> Value {
    let pod = &address.pod;
    let mut endpoint = json!({
        "addresses": [address.ip],
        "conditions": {
            "ready": address.is_ready, "serving": pods::is_ready(pod),
            "terminating": meta::terminating(pod),
        },
        "targetRef": target(pod),
    });
    for field in ["nodeName", "hostname"] {
        if pod["spec"][field].is_string() {
            endpoint[field] = pod["spec"][field].clone();
        }
    }
    endpoint
}
