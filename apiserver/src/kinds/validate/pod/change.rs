//! Checks of changes of Pods, whose spec is mostly fixed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{items, padded, text, tolerations};
use crate::kinds::Kind;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required};
use crate::typed::{internal, line_diff};

/// Returns the faults of a Pod whose update changes more than allowed.
pub(crate) fn change(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for list in ["containers", "initContainers"] {
        let field = format!("spec.{list}");
        if count(old, list) != count(new, list) {
            let why = "pod updates may not add or remove containers";
            causes.push(forbidden_field(&field, why));
            return causes;
        }
        // Reported once more than for a new Pod.
        for (index, container) in items(&new["spec"][list]) {
            let at = format!("{field}[{index}]");
            if text(container, "image").is_empty() {
                causes.push(required(&format!("{at}.image"), ""));
            }
            padded(container, &at, &mut causes);
        }
    }
    let late = deadline(old, new);
    let stops = late.is_some() && !new["spec"]["activeDeadlineSeconds"].is_null();
    causes.extend(late);
    // Upstream stops at a bad new deadline, but not at a removed deadline.
    if stops {
        return causes;
    }
    added(old, new, &mut causes);
    annotated(old, new, &mut causes);
    let mut allowed = new["spec"].clone();
    take_mutable(old, &mut allowed);
    if count(old, "schedulingGates") > 0 {
        placement(kind, &old["spec"], &mut allowed, &mut causes);
    }
    if !kind.types.same("spec", &old["spec"], &allowed) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
                   (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
                   (allow it to be set to 1 if it was previously negative)";
        let [before, after] =
            [&old["spec"], &allowed].map(|spec| internal::lines("core.PodSpec", spec));
        let why = format!("{why}\n{}", line_diff::unified(&before, &after));
        causes.push(forbidden_field("spec", &why));
    }
    causes
}

/// Appends the faults of changes of annotations that are fixed at creation, and once more those of
/// all.
fn annotated(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
    let held =
        |pod: &Value| pod["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let (before, after) = (held(old), held(new));
    let mut refuse = |key: &String, how: &str| {
        let what = match key.as_str() {
            MIRROR => "mirror pod annotation",
            key if key.starts_with(APP_ARMOR) => "AppArmor annotations",
            _ => return,
        };
        let at = format!("metadata.annotations[{key}]");
        causes.push(forbidden_field(&at, &format!("may not {how} {what}")));
    };
    for (key, value) in &before {
        if after.get(key) != Some(value) {
            refuse(key, "remove or update");
        }
    }
    for key in after.keys().filter(|key| !before.contains_key(*key)) {
        refuse(key, "add");
    }
    super::annotations(new, "metadata", causes);
}

/// Returns the number of items of a list of a Pod's spec.
fn count(pod: &Value, list: &str) -> usize {
    pod["spec"][list].as_array().map_or(0, Vec::len)
}

/// Sets a field, or removes it without a value.
fn put(spec: &mut Value, field: &str, value: &Value) {
    match spec.as_object_mut() {
        Some(fields) if value.is_null() => drop(fields.remove(field)),
        Some(fields) => drop(fields.insert(field.to_owned(), value.clone())),
        None => {}
    }
}

/// Gives a new spec the old values of the fields that may change.
fn take_mutable(old: &Value, spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        let before = old["spec"][list].as_array().cloned().unwrap_or_default();
        let after = spec.get_mut(list).and_then(Value::as_array_mut);
        for (container, held) in after.into_iter().flatten().zip(before) {
            put(container, "image", &held["image"]);
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        put(spec, field, &old["spec"][field]);
    }
    // A negative period means one second.
    let period = "terminationGracePeriodSeconds";
    let held = &old["spec"][period];
    if held.as_i64().is_some_and(|seconds| seconds < 0) && spec[period] == 1 {
        put(spec, period, held);
    }
}

/// Appends the faults of a new node selector and node affinity of a Pod that is not scheduled yet:
/// both may only become narrower. The new spec gets the old values.
fn placement(kind: &Kind, old: &Value, spec: &mut Value, causes: &mut Vec<Cause>) {
    let selector = "nodeSelector";
    let mut held = old[selector].as_object().into_iter().flatten();
    if held.any(|(key, value)| spec[selector][key] != *value) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.push(invalid_value("spec.nodeSelector", &spec[selector], why));
    }
    // Upstream takes an empty selector for none here, and keeps it, but prints it as another value.
    if !kind.types.same("spec.nodeSelector", &old[selector], &spec[selector]) {
        put(spec, selector, &old[selector]);
    }
    let of = |spec: &Value| spec["affinity"]["nodeAffinity"].clone();
    let (before, after) = (of(old), of(spec));
    if kind.types.same("spec.affinity.nodeAffinity", &before, &after) {
        return;
    }
    affinity(&before, &after, causes);
    let others = ["podAffinity", "podAntiAffinity"];
    let has_others = others.iter().any(|field| !spec["affinity"][*field].is_null());
    if spec["affinity"].is_null() || old["affinity"].is_null() && !has_others {
        put(spec, "affinity", &old["affinity"]);
    } else if let Some(affinity) = spec.get_mut("affinity") {
        put(affinity, "nodeAffinity", &before);
    }
}

/// Appends the faults of a new node affinity, whose terms may only get more requirements.
fn affinity(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    const TERMS: &str = "/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = |affinity: &Value| {
        let list = affinity.pointer(TERMS).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    let (before, after) = (terms(old), terms(new));
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
              .nodeSelectorTerms";
    if !before.is_empty() && before.len() != after.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.push(invalid_value(at, &after.into(), why));
        return;
    }
    for (index, (held, sent)) in before.iter().zip(&after).enumerate() {
        let only_grows = ["matchExpressions", "matchFields"].iter().all(|field| {
            let list = |term: &Value| term[*field].as_array().cloned().unwrap_or_default();
            // Additions stand behind the present items.
            list(sent).starts_with(&list(held))
        });
        let is_new = super::fields::is_empty(held);
        if !only_grows || is_new && !super::fields::is_empty(sent) {
            let why = "only additions are allowed (no mutations or deletions)";
            causes.push(invalid_value(&format!("{at}[{index}]"), sent, why));
        }
    }
}

/// Returns the fault of a change of a Pod's deadline, which may only be set or brought forward.
fn deadline(old: &Value, new: &Value) -> Option<Cause> {
    let field = "spec.activeDeadlineSeconds";
    let seconds = |pod: &Value| pod["spec"]["activeDeadlineSeconds"].as_i64();
    let why = match (seconds(old), seconds(new)) {
        (_, Some(new)) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            "must be between 0 and 2147483647, inclusive"
        }
        (Some(old), Some(new)) if old < new => "must be less than or equal to previous value",
        (Some(_), None) => "must not update from a positive integer to nil value",
        _ => return None,
    };
    Some(invalid_value(field, &new["spec"]["activeDeadlineSeconds"], why))
}

/// Appends the faults of changes of lists: tolerations are only added, scheduling gates only
/// removed.
fn added(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let list = |pod: &Value, name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    let timeless = |mut toleration: Value| {
        if let Value::Object(fields) = &mut toleration {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let kept: Vec<Value> = list(new, "tolerations").into_iter().map(timeless).collect();
    if list(old, "tolerations").into_iter().any(|held| !kept.contains(&timeless(held))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(forbidden_field("spec.tolerations", why));
    } else {
        // Reported once more than for a new Pod.
        tolerations(&new["spec"]["tolerations"], "spec.tolerations", causes);
    }
    let gates = list(old, "schedulingGates");
    let held: Vec<&str> = gates.iter().map(|gate| text(gate, "name")).collect();
    let sent = items(&new["spec"]["schedulingGates"]);
    // Among gates with equal names the last is reported.
    let sent: BTreeMap<&str, usize> =
        sent.map(|(index, gate)| (text(gate, "name"), index)).collect();
    for (name, index) in sent.into_iter().filter(|(name, _)| !held.contains(name)) {
        let field = format!("spec.schedulingGates[{index}].name");
        let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        causes.push(forbidden_field(&field, &why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::builtin;

    fn kind() -> Kind {
        builtin::kinds().into_iter().find(|kind| kind.name() == "Pod").unwrap()
    }

    fn fields(old: &Value, new: &Value) -> Vec<String> {
        let pod = |spec: &Value| {
            let mut pod = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
            for (field, value) in spec.as_object().into_iter().flatten() {
                pod["spec"][field] = value.clone();
            }
            pod
        };
        change(&kind(), &pod(old), &pod(new)).into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn only_a_pod_that_waits_for_gates_gets_a_node_selector() {
        let gates = json!([{"name": "g"}]);
        let with = |selector: Value| json!({"schedulingGates": gates, "nodeSelector": selector});
        assert_eq!(fields(&with(json!({"a": "b"})), &with(json!({"a": "b", "c": "d"}))), [""; 0]);
        assert_eq!(
            fields(&with(json!({"a": "b"})), &with(json!({"a": "x"}))),
            ["spec.nodeSelector"]
        );
        let (without, bare) = (json!({}), json!({"nodeSelector": {"a": "b"}}));
        assert_eq!(fields(&without, &bare), ["spec"]);
    }

    #[test]
    fn an_empty_list_or_map_is_no_change_but_an_empty_structure_is_one() {
        let volume = |source: Value| json!({"volumes": [source]});
        let same = [
            (json!({}), json!({"nodeSelector": {}})),
            (json!({"hostAliases": []}), json!({})),
            (
                volume(json!({"name": "v", "csi": {"driver": "d", "volumeAttributes": {}}})),
                volume(json!({"name": "v", "csi": {"driver": "d"}})),
            ),
        ];
        for (old, new) in same {
            assert_eq!(fields(&old, &new), [""; 0], "{old} to {new}");
        }
        let (old, new) = (json!({"name": "v"}), json!({"name": "v", "emptyDir": {}}));
        assert_eq!(fields(&volume(old), &volume(new)), ["spec"]);
        assert_eq!(
            fields(&json!({"nodeSelector": {}}), &json!({"nodeSelector": {"a": ""}})),
            ["spec"]
        );
    }

    #[test]
    fn an_amount_in_another_spelling_is_no_change() {
        let with = |amount: &str| json!({"overhead": {"memory": amount}});
        assert_eq!(fields(&with("1Gi"), &with("1073741824")), [""; 0]);
        assert_eq!(fields(&with("1Gi"), &with("1G")), ["spec"]);
    }

    #[test]
    fn a_negative_grace_period_may_become_what_it_means() {
        let with = |seconds: i64| json!({"terminationGracePeriodSeconds": seconds});
        assert_eq!(fields(&with(-5), &with(1)), [""; 0]);
        assert_eq!(fields(&with(-5), &with(2)), ["spec"]);
        assert_eq!(fields(&with(5), &with(1)), ["spec"]);
    }

    #[test]
    fn a_new_gate_is_told_once() {
        let gates = json!({"schedulingGates": [{"name": "g"}, {"name": "g"}]});
        assert_eq!(fields(&json!({}), &gates), ["spec.schedulingGates[1].name"]);
    }

    #[test]
    fn an_affinity_of_a_pod_that_waits_only_gets_more_requirements() {
        let term = |keys: &[&str]| {
            let keys: Vec<Value> =
                keys.iter().map(|key| json!({"key": key, "operator": "Exists"})).collect();
            let terms = json!([{"matchExpressions": keys}]);
            json!({"schedulingGates": [{"name": "g"}], "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        assert_eq!(fields(&term(&["a"]), &term(&["a", "b"])), [""; 0]);
        let found = fields(&term(&["a"]), &term(&["b"]));
        assert!(found[0].ends_with("nodeSelectorTerms[0]"), "{found:?}");
    }

    #[test]
    fn an_empty_node_selector_is_printed_as_one_in_a_refused_change() {
        let gates = json!([{"name": "g"}]);
        let pod = |selector: Value, name: &str| {
            json!({"spec": {"schedulingGates": gates, "nodeSelector": selector,
                "schedulerName": name, "containers": [{"name": "c", "image": "i"}]}})
        };
        let printed = |selector: Value| {
            let found = change(&kind(), &pod(Value::Null, "a"), &pod(selector, "b"));
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].message.clone()
        };
        assert!(printed(json!({})).contains("+ \"NodeSelector\": {},"));
        assert!(!printed(json!({"a": "b"})).contains("+ \"NodeSelector\""));
    }

    #[test]
    fn a_deadline_comes_no_later_and_stays() {
        let with = |seconds: i64| json!({"activeDeadlineSeconds": seconds});
        assert_eq!(fields(&with(5), &with(4)), [""; 0]);
        assert_eq!(fields(&with(5), &with(6)), ["spec.activeDeadlineSeconds"]);
        assert_eq!(fields(&with(5), &json!({})), ["spec.activeDeadlineSeconds"]);
    }
}
