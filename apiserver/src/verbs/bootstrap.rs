//! Objects that exist from the start, created by the server.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::update::{self, NextState};
use super::{VerbCall, addresses, admit, apiservices, create, flow, patch};
use crate::core::ServerCore;
use crate::kinds::meta;

/// Name of the Service of the server, and of the objects with its address.
const NAME: &str = "kubernetes";

/// Namespaces that exist from the start.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the initial namespaces and the Service `kubernetes`.
pub(crate) fn run(core: &ServerCore) {
    for name in NAMESPACES {
        seed(core, "", "namespaces", "", json!({"metadata": {"name": name}}));
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": addresses::FIRST,
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    });
    // First: the Service has an address of the range.
    range(core);
    seed(core, "", "services", "default", service);
    addresses::objects::seed(core);
    flow::seed(core);
    priorities(core);
    apiservices::seed(core);
}

/// Creates the priority classes of Pods that the cluster needs.
fn priorities(core: &ServerCore) {
    const TEXTS: [&str; 2] = [
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        "Used for system critical pods that must not be moved from their current node.",
    ];
    for ((name, value), text) in admit::priority::SYSTEM.iter().zip(TEXTS) {
        let class = json!({"metadata": {"name": name}, "value": value, "description": text});
        seed(core, "scheduling.k8s.io", "priorityclasses", "", class);
    }
}

/// Creates the range of addresses of Services, and says that the range is ready.
fn range(core: &ServerCore) {
    const GROUP: &str = "networking.k8s.io";
    const KIND: &str = "servicecidrs";
    let range = json!({"metadata": {"name": NAME}, "spec": {"cidrs": [addresses::RANGE]}});
    seed(core, GROUP, KIND, "", range);
    let state = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ServiceCIDR", "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": core.clock.rfc3339(),
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    });
    let written = VerbCall::by_server(core, GROUP, KIND, "", NAME).and_then(|mut call| {
        let held = call.find(core)?;
        let conditions = held.value["status"]["conditions"].as_array().into_iter().flatten();
        if conditions.into_iter().any(|one| one["type"] == "Ready") {
            return Ok(());
        }
        "status".clone_into(&mut call.subresource);
        "kubernetes-service-cidr-controller".clone_into(&mut call.options.manager);
        call.options.force = true;
        patch::patch(core, &call, patch::PatchType::Apply, &state.into(), &mut Vec::new()).map(drop)
    });
    if let Err(error) = written {
        tracing::warn!(%error, "could not write the state of the range of addresses");
    }
}

/// Writes the address of the server: Endpoints and `EndpointSlice` of the Service `kubernetes`, and
/// the Service's target port.
///
/// A loopback address is written as well, because clients on this machine reach that address;
/// kube-apiserver, whose clients are on other machines, refuses to advertise a loopback address.
pub(crate) fn advertise(core: &ServerCore, addr: SocketAddr) {
    let (ip, port) = (addr.ip().to_string(), addr.port());
    let family = if addr.is_ipv6() { "IPv6" } else { "IPv4" };
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": NAME, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    put(core, "", "endpoints", &endpoints, &["subsets"]);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": family, "ports": ports,
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
    });
    put(core, "discovery.k8s.io", "endpointslices", &slice, &["addressType", "endpoints", "ports"]);
    let changed = VerbCall::by_server(core, "", "services", "default", NAME).and_then(|call| {
        update::change(core, &call, |held| {
            let mut next = held.cloned().ok_or_else(|| call.not_found())?;
            next["spec"]["ports"][0]["targetPort"] = json!(port);
            Ok(NextState::Update(next))
        })
    });
    if let Err(error) = changed {
        tracing::warn!(%error, "could not write the port of the Service {NAME}");
    }
}

/// Creates an object, or writes the given fields of the existing object.
fn put(core: &ServerCore, group: &str, resource: &str, object: &Value, fields: &[&str]) {
    let written = VerbCall::by_server(core, group, resource, "default", NAME).and_then(|call| {
        update::change(core, &call, |held| {
            let Some(mut next) = held.cloned() else {
                return Ok(NextState::Update(object.clone()));
            };
            for field in fields {
                next[*field] = object[*field].clone();
            }
            Ok(NextState::Update(next))
        })
    });
    if let Err(error) = written {
        tracing::warn!(resource, %error, "could not write the address of the server");
    }
}

/// Whether an object of a name is stored: a data file may have it already, perhaps changed by
/// users.
pub(crate) fn is_there(
    core: &ServerCore,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> bool {
    let call = VerbCall::by_server(core, group, resource, namespace, name);
    call.is_ok_and(|call| call.find(core).is_ok())
}

/// Creates an object as the server, unless the name is taken. A failure is logged.
pub(crate) fn seed(core: &ServerCore, group: &str, resource: &str, namespace: &str, object: Value) {
    let name = meta::text(&object, "name").to_owned();
    let made = VerbCall::by_server(core, group, resource, namespace, &name);
    // A data file may have the object already, perhaps changed by users.
    if made.as_ref().is_ok_and(|call| call.find(core).is_ok()) {
        return;
    }
    let made = made.and_then(|mut call| {
        call.name.clear();
        create::create(core, &call, object, &mut Vec::new())
    });
    if let Err(error) = made {
        tracing::warn!(resource, namespace, %error, "could not create an object that exists from the start");
    }
}
