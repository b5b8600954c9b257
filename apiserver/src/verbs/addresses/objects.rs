//! `IPAddresses`: an object for each cluster IP of a Service.
//!
//! As in kube-apiserver the object comes before the Service, and an address that an object names is
//! taken.

// DESIGN.md, 300: Objects that the server makes by itself are written with their cause

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::storage::{self, StoredObject};
use crate::verbs::options::DeleteOptions;
use crate::verbs::{VerbCall, bootstrap, delete};

const GROUP: &str = "networking.k8s.io";
const PLURAL: &str = "ipaddresses";
/// Store resource of the objects.
const STORAGE: &str = "ipaddresses.networking.k8s.io";

/// Returns the addresses that have an object.
pub(super) fn all(core: &ServerCore) -> BTreeSet<String> {
    core.store.snapshot(STORAGE).0.keys().map(ToString::to_string).collect()
}

/// Creates the objects of Services that have none, such as those of an older data file.
pub(crate) fn seed(core: &ServerCore) {
    let (services, _) = core.store.snapshot("services");
    for (_, held) in &services {
        addresses(&held.value).iter().for_each(|address| create(core, &held.value, address));
    }
}

/// Creates the objects of a Service's addresses that have none, and returns these addresses.
pub(super) fn announce(core: &ServerCore, service: &Value) -> Vec<String> {
    let held = |address: &String| core.store.get(STORAGE, address).is_some();
    let new: Vec<String> =
        addresses(service).into_iter().filter(|address| !held(address)).collect();
    storage::by_server(|| new.iter().for_each(|address| create(core, service, address)));
    new
}

/// Deletes the objects of addresses whose Service has not been stored.
pub(super) fn withdraw(core: &ServerCore, addresses: &[String]) {
    storage::by_server(|| addresses.iter().for_each(|address| release(core, address)));
}

/// Acts on a write of a Service: addresses without an object get one, others lose theirs.
pub(crate) fn observe(
    core: &ServerCore,
    kind: &Kind,
    before: Option<&Arc<StoredObject>>,
    after: Option<&Arc<StoredObject>>,
) {
    if !kind.is("", "services") {
        return;
    }
    let [held, now] =
        [before, after].map(|state| state.map(|state| addresses(&state.value)).unwrap_or_default());
    for address in held.difference(&now) {
        release(core, address);
    }
    if let Some(state) = after {
        now.iter().for_each(|address| create(core, &state.value, address));
    }
}

/// Returns the cluster IPs of a Service.
fn addresses(service: &Value) -> BTreeSet<String> {
    let all = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    let all = all.filter_map(Value::as_str).filter(|one| !one.is_empty() && *one != "None");
    all.map(str::to_owned).collect()
}

/// Creates the object of an address of a Service.
fn create(core: &ServerCore, service: &Value, address: &str) {
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    let (namespace, name) = (meta::text(service, "namespace"), meta::text(service, "name"));
    let object = json!({
        "metadata": {"name": address, "labels": {
            "ipaddress.kubernetes.io/ip-family": family,
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }},
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    });
    bootstrap::seed(core, GROUP, PLURAL, "", object);
}

/// Deletes the object of an address.
fn release(core: &ServerCore, address: &str) {
    let deleted = VerbCall::by_server(core, GROUP, PLURAL, "", address).and_then(|call| {
        let asked = delete::DeletionRequest::Other;
        delete::delete_as(core, &call, &DeleteOptions::default(), asked, &mut Vec::new())
    });
    if let Err(error) = deleted {
        tracing::debug!(address, %error, "could not delete the object of an address");
    }
}
