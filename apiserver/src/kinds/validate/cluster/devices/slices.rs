//! Checks of slices of devices.

use serde_json::Value;

use super::{EFFECTS, fits, items, once, qualified_name, storage, text, too_long};
use crate::kinds::validate::fields::named;
use crate::kinds::validate::pod;
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required, unsupported};

/// Longest name of a pool, in bytes.
const LONGEST_POOL: usize = 253;
/// Most devices of a slice.
const MOST_DEVICES: usize = 128;
/// Most devices of a slice with taints or counters.
const MOST_ADVANCED: usize = 64;
/// Most attributes and capacities of a device.
const MOST_ATTRIBUTES: usize = 32;
/// Most taints of a device.
const MOST_TAINTS: usize = 16;
/// Longest text of an attribute, in bytes.
const LONGEST_TEXT: usize = 64;
/// Fields of an attribute that have a value.
const VALUES: [&str; 8] =
    ["bool", "int", "string", "version", "bools", "ints", "strings", "versions"];

/// Appends the faults of a slice.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    storage::driver_name(text(spec, "driver"), "spec.driver", causes);
    pool(&spec["pool"], causes);
    place(spec, causes);
    if spec["sharedCounters"].is_array() && spec["devices"].is_array() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        causes.push(invalid_value("spec", &"".into(), why));
    }
    let is_advanced = items(&spec["devices"]).any(|(_, device)| {
        ["taints", "consumesCounters"]
            .iter()
            .any(|field| device[*field].as_array().is_some_and(|list| !list.is_empty()))
    });
    let most = if is_advanced { MOST_ADVANCED } else { MOST_DEVICES };
    if fits(&spec["devices"], "spec.devices", most, causes) {
        for (index, one) in items(&spec["devices"]) {
            device(one, &format!("spec.devices[{index}]"), spec, causes);
        }
        once(&spec["devices"], "spec.devices", |device| text(device, "name"), causes);
    }
}

/// Appends the faults of the pool of a slice.
fn pool(pool: &Value, causes: &mut Vec<Cause>) {
    let (name, at) = (text(pool, "name"), "spec.pool.name");
    if name.is_empty() {
        causes.push(required(at, ""));
    } else {
        if name.len() > LONGEST_POOL {
            causes.push(too_long(at, LONGEST_POOL));
        }
        for part in name.split('/') {
            named(names::subdomain(part), &part.into(), at, causes);
        }
    }
    let number = |field: &str| pool[field].as_i64().unwrap_or_default();
    let count = number("resourceSliceCount");
    if count <= 0 {
        let at = "spec.pool.resourceSliceCount";
        causes.push(invalid_value(at, &count.into(), "must be greater than zero"));
    }
    let generation = number("generation");
    if generation < 0 {
        let why = "must be greater than or equal to zero";
        causes.push(invalid_value("spec.pool.generation", &generation.into(), why));
    }
}

/// Appends the faults of the nodes of a slice.
fn place(spec: &Value, causes: &mut Vec<Cause>) {
    let mut set = Vec::new();
    match spec["nodeName"].as_str() {
        None => {}
        Some("") => {
            let why = "must be either unset or set to a non-empty string";
            causes.push(invalid_value("spec.nodeName", &"".into(), why));
        }
        Some(name) => {
            set.push("`nodeName`");
            named(names::subdomain(name), &name.into(), "spec.nodeName", causes);
        }
    }
    let selector = &spec["nodeSelector"];
    if selector.is_object() {
        set.push("`nodeSelector`");
        pod::node_selector(selector, "spec.nodeSelector", causes);
        if selector["nodeSelectorTerms"].as_array().map_or(0, Vec::len) != 1 {
            let at = "spec.nodeSelector.nodeSelectorTerms";
            let why = "must have exactly one node selector term";
            causes.push(invalid_value(at, &selector["nodeSelectorTerms"], why));
        }
    }
    for (field, shown) in
        [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        match spec[field].as_bool() {
            None => {}
            Some(true) => set.push(shown),
            Some(false) => {
                let why = "must be either unset or set to true";
                causes.push(invalid_value(&format!("spec.{field}"), &false.into(), why));
            }
        }
    }
    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
               required";
    if set.is_empty() {
        causes.push(required("spec", why));
    } else if set.len() > 1 {
        let shown = format!("{{{}}}", set.join(", "));
        let why = format!("{why}, but multiple fields are set");
        causes.push(invalid_value("spec", &shown.into(), &why));
    }
}

/// Appends the faults of a device.
fn device(device: &Value, at: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let name = text(device, "name");
    named(names::label(name), &name.into(), &format!("{at}.name"), causes);
    let [attributes, capacity] = ["attributes", "capacity"].map(|field| &device[field]);
    let count = [attributes, capacity]
        .iter()
        .map(|map| map.as_object().map_or(0, serde_json::Map::len))
        .sum::<usize>();
    if count > MOST_ATTRIBUTES {
        let why = format!(
            "the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}"
        );
        causes.push(invalid_value(at, &count.into(), &why));
    }
    for (map, field) in [(attributes, "attributes"), (capacity, "capacity")] {
        for (key, value) in map.as_object().into_iter().flatten() {
            // The fault of a name is at the map, and that of a value at the name.
            qualified_name(key, &format!("{at}.{field}"), causes);
            if field == "attributes" {
                attribute(value, &format!("{at}.{field}[{key}]"), causes);
            }
        }
    }
    if fits(&device["taints"], &format!("{at}.taints"), MOST_TAINTS, causes) {
        for (index, one) in items(&device["taints"]) {
            taint(one, &format!("{at}.taints[{index}]"), causes);
        }
    }
    let fields = ["nodeName", "nodeSelector", "allNodes"];
    let set = fields.iter().filter(|field| !device[**field].is_null()).count();
    if spec["perDeviceNodeSelection"] == true {
        if set == 0 {
            let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            causes.push(required(at, why));
        }
    } else if set > 0 {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        causes.push(invalid_value(at, &Value::Null, why));
    }
}

/// Appends the faults of an attribute.
fn attribute(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    for field in ["string", "version"] {
        if text(value, field).len() > LONGEST_TEXT {
            causes.push(too_long(&format!("{at}.{field}"), LONGEST_TEXT));
        }
    }
    let held: Vec<&str> = VALUES.into_iter().filter(|field| !value[*field].is_null()).collect();
    let why = "exactly one value must be specified";
    match held.len() {
        0 => causes.push(invalid_value(at, &"".into(), why)),
        1 => {}
        _ => {
            let shown = crate::typed::internal::compact("resource.DeviceAttribute", value);
            let message = format!("Invalid value: {shown}: {why}");
            causes.push(crate::status::cause("FieldValueInvalid", at, message));
        }
    }
}

/// Appends the faults of a taint.
fn taint(taint: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, value, effect] = ["key", "value", "effect"].map(|field| text(taint, field));
    named(names::qualified(key), &key.into(), &format!("{at}.key"), causes);
    named(names::label_value(value), &value.into(), &format!("{at}.value"), causes);
    let at = format!("{at}.effect");
    if effect.is_empty() {
        causes.push(required(&at, ""));
    } else if !EFFECTS.contains(&effect) {
        causes.push(unsupported(&at, effect, &EFFECTS));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut spec = json!({"driver": "a.b", "allNodes": true,
            "pool": {"name": "p", "resourceSliceCount": 1}});
        change(&mut spec);
        let mut causes = Vec::new();
        check(&spec, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_slice_is_of_a_pool_and_of_nodes() {
        assert_eq!(faults(|_| {}), [""; 0]);
        assert_eq!(faults(|spec| spec["allNodes"] = Value::Null), ["spec"]);
        assert_eq!(faults(|spec| spec["nodeName"] = json!("n")), ["spec"]);
        assert_eq!(faults(|spec| spec["pool"]["name"] = json!("")), ["spec.pool.name"]);
    }

    #[test]
    fn an_attribute_has_one_value() {
        let with = |value: Value| {
            faults(|spec| {
                spec["devices"] = json!([{"name": "d", "attributes": {"a.b/c": value}}]);
            })
        };
        assert_eq!(with(json!({"int": 1})), [""; 0]);
        assert_eq!(with(json!({})), ["spec.devices[0].attributes[a.b/c]"]);
        assert_eq!(with(json!({"int": 1, "bool": true})), ["spec.devices[0].attributes[a.b/c]"]);
    }

    #[test]
    fn names_of_attributes_are_short() {
        let long = "x".repeat(super::super::LONGEST_ID + 1);
        let found = faults(|spec| {
            spec["devices"] = json!([{"name": "d", "attributes": { long: {"int": 1}}}]);
        });
        assert_eq!(found, ["spec.devices[0].attributes"]);
    }
}
