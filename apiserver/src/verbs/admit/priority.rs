//! The priority of new Pods, by the name of a `PriorityClass`.

use serde_json::Value;

use crate::core::Core;
use crate::kinds::meta;
use crate::status::{About, ApiError};
use crate::verbs::Call;

/// Resource of priority classes in the store.
const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
/// Classes that every cluster has, with their values.
const SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Sets the priority of a new Pod that names a class.
pub(crate) fn apply(core: &Core, call: &Call, object: &mut Value) -> Result<(), ApiError> {
    if !call.kind.is("", "pods") {
        return Ok(());
    }
    let name = object["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Ok(());
    }
    if let Some(class) = core.store.get(CLASSES, &name) {
        object["spec"]["priority"] = class.value["value"].clone();
        object["spec"]["preemptionPolicy"] = class.value["preemptionPolicy"].clone();
        return Ok(());
    }
    if let Some((_, value)) = SYSTEM.iter().find(|(known, _)| *known == name) {
        object["spec"]["priority"] = (*value).into();
        return Ok(());
    }
    let names = ["name", "generateName"].map(|field| meta::text(object, field));
    let pod = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    let about = About::resource(&call.kind.served, pod);
    let why = format!("no PriorityClass with name {name} was found");
    Err(ApiError::forbidden(about, &why))
}
