//! Checks of the drivers of storage, and of the objects that they write.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{duplicate, items, text, too_long};
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::fields::{self, FieldCheck, is_empty, named};
use crate::kinds::validate::volumes;
use crate::names;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required, unsupported};

/// Longest name of a driver, in bytes.
const LONGEST_DRIVER: usize = 63;
/// Longest name that a driver has for a node, in bytes.
const LONGEST_NODE: usize = 256;
/// Most parameters of a class.
const MOST_PARAMETERS: usize = 512;
/// Most bytes of the parameters of a class.
const MOST_BYTES: usize = 256 * 1024;

/// Appends the faults of an object of the group.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "CSIDriver" => driver(spec, causes),
        "CSINode" => node(spec, causes),
        "StorageClass" => {
            provisioner(&object["provisioner"], "provisioner", causes);
            parameters(&object["parameters"], causes);
            volumes::class(object, causes);
            topologies(&object["allowedTopologies"], causes);
        }
        "VolumeAttachment" => attachment(spec, causes),
        "VolumeAttributesClass" => {
            provisioner(&object["driverName"], "driverName", causes);
            parameters(&object["parameters"], causes);
            if is_empty(&object["parameters"]) {
                let why = "must contain at least one key/value pair";
                causes.push(required("parameters", why));
            }
        }
        "CSIStorageCapacity" => {
            if object["nodeTopology"].is_object() {
                fields::judge(
                    &FieldCheck::Selector,
                    &object["nodeTopology"],
                    "nodeTopology",
                    causes,
                );
            }
            if let Some(held) = Quantity::parse(&object["capacity"]).filter(|h| h.is_negative()) {
                let why = "must be greater than or equal to 0";
                causes.push(invalid_value("capacity", &held.to_string().into(), why));
            }
        }
        _ => {}
    }
}

/// Appends the faults of a driver's name, where upper case counts as lower case.
pub(in crate::kinds::validate) fn driver_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        causes.push(required(at, ""));
        return;
    }
    if name.len() > LONGEST_DRIVER {
        causes.push(too_long(at, LONGEST_DRIVER));
    }
    named(names::subdomain(&name.to_lowercase()), &name.into(), at, causes);
}

/// Appends the faults of the name of a provisioner.
fn provisioner(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = value.as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(required(at, ""));
    } else {
        // Judged, and shown, in lower case.
        let name = name.to_lowercase();
        named(names::qualified(&name), &name.as_str().into(), at, causes);
    }
}

/// Appends the faults of the parameters of a class.
fn parameters(parameters: &Value, causes: &mut Vec<Cause>) {
    let Some(held) = parameters.as_object() else { return };
    if held.len() > MOST_PARAMETERS {
        causes.push(too_long("parameters", MOST_PARAMETERS));
        return;
    }
    if held.contains_key("") {
        causes.push(invalid_value("parameters", &"".into(), "field can not be empty."));
    }
    let size = |value: &Value| value.as_str().map_or(0, str::len);
    if held.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>() > MOST_BYTES {
        causes.push(too_long("parameters", MOST_BYTES));
    }
}

/// Appends the faults of terms about places that are there twice.
fn topologies(list: &Value, causes: &mut Vec<Cause>) {
    type Term<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;
    // Upstream compares with as many empty terms as there are terms.
    let mut seen: Vec<Term<'_>> = items(list).map(|_| Term::new()).collect();
    for (index, term) in items(list) {
        let requirements = items(&term["matchLabelExpressions"]);
        let made: Term<'_> = requirements
            .map(|(_, one)| {
                let values = items(&one["values"]).filter_map(|(_, value)| value.as_str());
                (text(one, "key"), values.collect())
            })
            .collect();
        let at = format!("allowedTopologies[{index}].matchLabelExpressions");
        let same = seen.iter().filter(|other| **other == made).count();
        causes.extend((0..same).map(|_| duplicate(&at, &"".into())));
        seen.push(made);
    }
}

/// Appends the faults of a driver.
fn driver(spec: &Value, causes: &mut Vec<Cause>) {
    let known = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec["fsGroupPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        causes.push(unsupported("spec.fsGroupPolicy", policy, &known));
    }
    let mut seen = BTreeSet::new();
    for (index, one) in items(&spec["tokenRequests"]) {
        let at = format!("spec.tokenRequests[{index}]");
        let audience = text(one, "audience");
        if !seen.insert(audience) {
            causes.push(duplicate(&format!("{at}.audience"), &audience.into()));
            continue;
        }
        volumes::token_time(&one["expirationSeconds"], &at, causes);
    }
    for (_, mode) in items(&spec["volumeLifecycleModes"]) {
        let (mode, known) = (mode.as_str().unwrap_or_default(), ["Persistent", "Ephemeral"]);
        if !known.contains(&mode) {
            causes.push(unsupported("spec.volumeLifecycleModes", mode, &known));
        }
    }
    let period = &spec["nodeAllocatableUpdatePeriodSeconds"];
    if period.as_i64().is_some_and(|seconds| seconds < 10) {
        let at = "spec.nodeAllocatableUpdatePeriodSeconds";
        causes.push(invalid_value(at, period, "must be greater than or equal to 10 seconds"));
    }
    let hidden = &spec["serviceAccountTokenInSecrets"];
    if !hidden.is_null() && is_empty(&spec["tokenRequests"]) {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.push(invalid_value("spec.serviceAccountTokenInSecrets", hidden, why));
    }
}

/// Appends the faults of the drivers of a node.
fn node(spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, driver) in items(&spec["drivers"]) {
        let at = format!("spec.drivers[{index}]");
        let (name, id) = (text(driver, "name"), text(driver, "nodeID"));
        driver_name(name, &format!("{at}.name"), causes);
        let at_id = format!("{at}.nodeID");
        if id.is_empty() {
            causes.push(required(&at_id, ""));
        }
        if id.len() > LONGEST_NODE {
            let why = format!("must be {LONGEST_NODE} characters or less");
            causes.push(invalid_value(&at_id, &id.into(), &why));
        }
        let count = &driver["allocatable"]["count"];
        fields::judge(&FieldCheck::Min(0), count, &format!("{at}.allocatable.count"), causes);
        if !seen.insert(name) {
            causes.push(duplicate(&format!("{at}.name"), &name.into()));
        }
        let mut keys = BTreeSet::new();
        for (_, key) in items(&driver["topologyKeys"]) {
            let key = key.as_str().unwrap_or_default();
            if key.is_empty() {
                causes.push(required(&at, ""));
            }
            if !keys.insert(key) {
                causes.push(duplicate(&at, &key.into()));
            }
            named(names::qualified(key), &key.into(), &at, causes);
        }
    }
}

/// Appends the faults of an attachment of a volume.
fn attachment(spec: &Value, causes: &mut Vec<Cause>) {
    driver_name(text(spec, "attacher"), "spec.attacher", causes);
    let (source, at) = (&spec["source"], "spec.source");
    let (inline, name) = (&source["inlineVolumeSpec"], &source["persistentVolumeName"]);
    let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_null(), name.as_str()) {
        (true, None) => causes.push(required(at, why)),
        (false, Some(_)) => causes.push(forbidden_field(at, why)),
        (true, Some("")) => {
            let why = "must specify non empty persistentVolumeName";
            causes.push(required(&format!("{at}.persistentVolumeName"), why));
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    named(names::subdomain(node), &node.into(), "spec.nodeName", causes);
    if let Some(held) = name.as_str() {
        named(names::subdomain(held), name, "spec.source.persistentVolumeName", causes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(kind: &str, object: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(kind, &object, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn drivers_of_a_node_are_there_once() {
        let driver = json!({"name": "A.b", "nodeID": "x", "topologyKeys": ["a"]});
        assert_eq!(faults("CSINode", json!({"spec": {"drivers": [driver]}})), [""; 0]);
        let two = json!({"spec": {"drivers": [driver, driver]}});
        assert_eq!(faults("CSINode", two), ["spec.drivers[1].name"]);
        let keys = json!({"name": "a", "nodeID": "x", "topologyKeys": ["a", "a"]});
        assert_eq!(faults("CSINode", json!({"spec": {"drivers": [keys]}})), ["spec.drivers[0]"]);
    }

    #[test]
    fn tokens_of_a_driver_are_for_different_audiences() {
        let with = |tokens: Value| faults("CSIDriver", json!({"spec": {"tokenRequests": tokens}}));
        assert_eq!(with(json!([{"audience": ""}, {"audience": "a"}])), [""; 0]);
        let twice = json!([{"audience": ""}, {"audience": ""}]);
        assert_eq!(with(twice), ["spec.tokenRequests[1].audience"]);
        let short = json!([{"audience": "a", "expirationSeconds": 1}]);
        assert_eq!(with(short), ["spec.tokenRequests[0].expirationSeconds"]);
    }

    #[test]
    fn terms_of_a_class_are_different_and_not_empty() {
        let with = |terms: Value| {
            let object = json!({"provisioner": "a.b/c", "allowedTopologies": terms,
                "volumeBindingMode": "Immediate"});
            faults("StorageClass", object)
        };
        let term = |key: &str| json!({"matchLabelExpressions": [{"key": key, "values": ["v"]}]});
        assert_eq!(with(json!([term("a"), term("b")])), [""; 0]);
        let at = "allowedTopologies[1].matchLabelExpressions";
        assert_eq!(with(json!([term("a"), term("a")])), [at]);
        assert_eq!(with(json!([{}])), ["allowedTopologies[0].matchLabelExpressions"]);
    }
}
