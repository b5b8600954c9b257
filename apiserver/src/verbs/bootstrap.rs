//! Objects that exist from the start, created by the server itself.

use serde_json::{Value, json};

use super::{Call, addresses, create};
use crate::core::Core;
use crate::kinds::meta;

/// Namespaces that exist from the start.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Creates the initial namespaces and the Service `kubernetes`.
pub(crate) fn run(core: &Core) {
    for name in NAMESPACES {
        seed(core, "", "namespaces", "", json!({"metadata": {"name": name}}));
    }
    let service = json!({
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": addresses::FIRST,
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
    });
    seed(core, "", "services", "default", service);
}

/// Creates an object as the server itself, unless there is one with its name. A failure is logged.
pub(crate) fn seed(core: &Core, group: &str, resource: &str, namespace: &str, object: Value) {
    let name = meta::text(&object, "name").to_owned();
    let made = Call::by_server(core, group, resource, namespace, &name);
    // A data file has it already, perhaps as users have changed it.
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
