//! Checks of kinds that describe the cluster: nodes, endpoints, addresses, drivers, flow control,
//! devices.

mod addresses;
mod apiservices;
mod devices;
mod endpoints;
mod flow;
mod immutable;
mod nodes;
mod storage;
mod warnings;

use serde_json::Value;

pub(in crate::kinds) use addresses::ip_warning;
pub(in crate::kinds::validate) use addresses::{block_faults, endpoint_faults, ip_faults};
pub(in crate::kinds::validate) use immutable::change;
pub(in crate::kinds::validate) use storage::driver_name;
pub(in crate::kinds::validate) use warnings::{claim, node_label, term, warnings};

use crate::served::Cause;
use crate::status::cause;

/// Appends the faults of an object of a group.
pub(super) fn check(group: &str, kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    match (group, kind) {
        ("", "Node") => nodes::node(object, causes),
        ("apiregistration.k8s.io", "APIService") => apiservices::check(object, causes),
        ("", "Endpoints") => endpoints::subsets(&object["subsets"], causes),
        ("discovery.k8s.io", "EndpointSlice") => endpoints::slice(object, causes),
        ("node.k8s.io", "RuntimeClass") => nodes::runtime(object, causes),
        ("networking.k8s.io", "ServiceCIDR") => addresses::blocks(&object["spec"]["cidrs"], causes),
        ("networking.k8s.io", "IPAddress") => {
            addresses::names(&object["metadata"], causes);
            addresses::parent(&object["spec"], causes);
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => flow::schema(object, causes),
        ("flowcontrol.apiserver.k8s.io", _) => flow::level(object, causes),
        ("storage.k8s.io", _) => storage::check(kind, object, causes),
        ("resource.k8s.io", _) => devices::check(kind, object, causes),
        _ => {}
    }
    if matches!(kind, "Endpoints" | "EndpointSlice") && is_of_server(object) {
        causes.retain(|cause| !cause.message.contains(addresses::LOOPBACK));
    }
}

/// Whether an object has the address of the server itself, which clients on this machine reach by
/// loopback (`advertise`); kube-apiserver advertises no such address.
fn is_of_server(object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["namespace"] == "default" && metadata["name"] == "kubernetes"
}

/// Appends the faults of the status of a Node.
pub(super) fn node_status(status: &Value, causes: &mut Vec<Cause>) {
    nodes::resources(status, causes);
    nodes::addresses_of(status, causes);
}

/// Iterates over a list with the positions of the items; an absent list has no items.
fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// Returns a text; an absent text is empty.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// Returns the fault of a value that is there twice.
fn duplicate(at: &str, value: &Value) -> Cause {
    cause("FieldValueDuplicate", at, format!("Duplicate value: {value}"))
}

/// Returns the fault of a list with too many items.
fn too_many(at: &str, held: usize, most: usize) -> Cause {
    let message = format!("Too many: {held}: must have at most {most} items");
    cause("FieldValueTooMany", at, message)
}

/// Returns the fault of a text with too many bytes.
fn too_long(at: &str, most: usize) -> Cause {
    cause("FieldValueTooLong", at, format!("Too long: may not be more than {most} bytes"))
}
