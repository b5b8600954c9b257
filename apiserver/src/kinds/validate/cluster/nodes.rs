//! Checks of Nodes and runtime classes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{addresses, items, text};
use crate::kinds::validate::fields::named;
use crate::kinds::validate::pod;
use crate::kinds::validate::workload::go_order;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Effects of taints.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Appends the faults of a Node.
pub(super) fn node(object: &Value, causes: &mut Vec<Cause>) {
    // The path is that of the annotation from before there was a field.
    taints(&object["spec"]["taints"], "metadata.taints", causes);
    resources(&object["status"], causes);
    let at = "spec.podCIDRs";
    let blocks = &object["spec"]["podCIDRs"];
    for (index, block) in items(blocks) {
        let faults = addresses::block_faults(block.as_str().unwrap_or_default());
        named(faults, block, &format!("{at}[{index}]"), causes);
    }
    let count = blocks.as_array().map_or(0, Vec::len);
    if count > 2 || count == 2 && addresses::share_family(blocks) {
        let why = "may specify no more than one CIDR for each IP family";
        causes.push(invalid_value(at, blocks, why));
    }
}

/// Appends the faults of the amounts that a Node has; once more for changes.
pub(super) fn resources(status: &Value, causes: &mut Vec<Cause>) {
    for part in ["capacity", "allocatable"] {
        for (name, amount) in status[part].as_object().into_iter().flatten() {
            pod::amount(name, amount, &format!("status.{part}.{name}"), causes);
        }
    }
}

/// Appends the faults of taints.
pub(super) fn taints(taints: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, taint) in items(taints) {
        let at = format!("{at}[{index}]");
        let [key, value, effect] = ["key", "value", "effect"].map(|field| text(taint, field));
        named(names::qualified(key), &key.into(), &format!("{at}.key"), causes);
        let faults = names::label_value(value);
        if !faults.is_empty() {
            let why = faults.join(";");
            causes.push(invalid_value(&format!("{at}.value"), &value.into(), &why));
        }
        let at_effect = format!("{at}.effect");
        if effect.is_empty() {
            causes.push(required(&at_effect, ""));
        } else if !EFFECTS.contains(&effect) {
            causes.push(unsupported(&at_effect, effect, &EFFECTS));
        }
        if !seen.insert((key, effect)) {
            let shown = json!({
                "Key": key, "Value": value, "Effect": effect, "TimeAdded": taint["timeAdded"],
            });
            let shown = go_order(&shown, &["Key", "Value", "Effect", "TimeAdded"]);
            let message =
                format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            causes.push(cause("FieldValueDuplicate", &at, message));
        }
    }
}

/// Returns the faults of a change of a Node.
pub(super) fn change(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    resources(&new["status"], &mut causes);
    let (held, sent) = (&old["spec"], &new["spec"]);
    let list = |spec: &Value| spec["podCIDRs"].as_array().cloned().unwrap_or_default();
    let (before, after) = (list(held), list(sent));
    let changes = match (before.len(), after.len()) {
        (0, _) => 0,
        (all, now) if all != now => 1,
        _ => before.iter().zip(&after).filter(|(before, after)| before != after).count(),
    };
    let why = "node updates may not change podCIDR except from \"\" to valid";
    causes.extend((0..changes).map(|_| forbidden_field("spec.podCIDRs", why)));
    let provider = text(held, "providerID");
    if !provider.is_empty() && provider != text(sent, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        causes.push(forbidden_field("spec.providerID", why));
    }
    taints(&sent["taints"], "metadata.taints", &mut causes);
    if text(held, "externalID") != text(sent, "externalID") {
        causes.push(forbidden_field("spec.externalID", "may not be updated"));
    }
    causes
}

/// Appends the faults of the addresses in a Node's status, each of which is there once.
pub(super) fn addresses_of(status: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, one) in items(&status["addresses"]) {
        let (kind, address) = (text(one, "type"), text(one, "address"));
        if !seen.insert((kind, address)) {
            let shown = json!({ "Type": kind, "Address": address });
            let shown = go_order(&shown, &["Type", "Address"]);
            let at = format!("status.addresses[{index}]");
            causes.push(cause("FieldValueDuplicate", &at, format!("Duplicate value: {shown}")));
        }
    }
}

/// Appends the faults of a runtime class.
pub(super) fn runtime(object: &Value, causes: &mut Vec<Cause>) {
    let fixed = &object["overhead"]["podFixed"];
    if fixed.is_object() {
        pod::requirements(&json!({ "limits": fixed }), "overhead", causes);
    }
    let (list, at) = (&object["scheduling"]["tolerations"], "scheduling.tolerations");
    pod::tolerations(list, at, causes);
    let mut seen = BTreeSet::new();
    for (index, one) in items(list) {
        if !seen.insert(["key", "operator", "value", "effect"].map(|field| text(one, field))) {
            let shown = json!({
                "Key": text(one, "key"), "Operator": text(one, "operator"),
                "Value": text(one, "value"), "Effect": text(one, "effect"),
                "TolerationSeconds": one["tolerationSeconds"],
            });
            let fields = ["Key", "Operator", "Value", "Effect", "TolerationSeconds"];
            let shown = go_order(&shown, &fields);
            let message = format!("Duplicate value: {shown}");
            causes.push(cause("FieldValueDuplicate", &format!("{at}[{index}]"), message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: Value) -> Vec<String> {
        let mut causes = Vec::new();
        node(&json!({ "spec": spec }), &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn taints_have_a_key_and_an_effect_and_are_there_once() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        assert_eq!(faults(json!({ "taints": [taint] })), [""; 0]);
        assert_eq!(faults(json!({ "taints": [taint, taint] })), ["metadata.taints[1]"]);
        let bad = json!({"key": "a", "effect": "X", "value": "$"});
        assert_eq!(
            faults(json!({ "taints": [bad] })),
            ["metadata.taints[0].value", "metadata.taints[0].effect"]
        );
    }

    #[test]
    fn a_node_keeps_its_blocks_of_addresses() {
        let with = |blocks: Value| json!({"spec": {"podCIDRs": blocks}});
        let (one, other) = (with(json!(["10.1.0.0/16"])), with(json!(["10.2.0.0/16"])));
        assert_eq!(change(&with(json!([])), &one), []);
        assert_eq!(change(&one, &one), []);
        assert_eq!(change(&one, &other)[0].field, "spec.podCIDRs");
        assert_eq!(faults(other["spec"].clone()), [""; 0]);
        let two = json!({"podCIDRs": ["10.1.0.0/16", "10.2.0.0/16"]});
        assert_eq!(faults(two), ["spec.podCIDRs"]);
    }
}
