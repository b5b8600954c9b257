//! Warnings about objects that describe the cluster, and about fields and labels that have others
//! in their place.

use serde_json::Value;

use super::{addresses, items, text};
use crate::kinds::Kind;
use crate::kinds::quantity::Quantity;

/// Labels of nodes with others in their place, and the warnings about them.
const LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];
/// Annotation that binds accounts to Secrets.
const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
/// Sources of volumes that nothing provides any more, and the warnings about them.
const SOURCES: [(&str, &str); 6] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
];

/// Returns the warning about a label of nodes that has another in its place.
pub(in crate::kinds::validate) fn node_label(key: &str) -> Option<&'static str> {
    LABELS.iter().find(|(label, _)| *label == key).map(|(_, text)| *text)
}

/// Returns the warnings about an object that is written; `old` is the present state, if any.
pub(in crate::kinds::validate) fn warnings(
    kind: &Kind,
    old: Option<&Value>,
    object: &Value,
) -> Vec<String> {
    let spec = &object["spec"];
    let mut found = Vec::new();
    match (kind.served.group.as_str(), kind.name()) {
        ("", "Node") if !text(spec, "externalID").is_empty() => {
            let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
            found.push(text.to_owned());
        }
        ("", "ServiceAccount") => {
            let has = |object: &Value| object["metadata"]["annotations"][MOUNTABLE].is_string();
            if has(object) && !old.is_some_and(has) {
                found.push(format!(
                    "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
                ));
            }
        }
        ("", "PersistentVolume") => volume(object, &mut found),
        ("", "PersistentVolumeClaim") => claim(spec, "spec", &mut found),
        ("apps", "StatefulSet") => stateful(spec, &mut found),
        ("discovery.k8s.io", "EndpointSlice") => endpoints(old, object, &mut found),
        ("networking.k8s.io", "NetworkPolicy") => blocks(spec, &mut found),
        ("node.k8s.io", "RuntimeClass") => {
            let labels = object["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
            let texts = labels.filter_map(|(key, _)| node_label(key));
            found.extend(texts.map(|text| format!("scheduling.nodeSelector: {text}")));
        }
        ("storage.k8s.io", "StorageClass") => {
            for (index, term) in items(&object["allowedTopologies"]) {
                for (number, one) in items(&term["matchLabelExpressions"]) {
                    let at =
                        format!("allowedTopologies[{index}].matchLabelExpressions[{number}].key");
                    let warnings = node_label(text(one, "key"));
                    found.extend(warnings.map(|text| format!("{at}: {text}")));
                }
            }
        }
        ("storage.k8s.io", "CSIDriver")
            if spec["tokenRequests"].get(0).is_some()
                && spec["serviceAccountTokenInSecrets"].is_null() =>
        {
            let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
            found.push(text.to_owned());
        }
        ("storage.k8s.io", "CSIStorageCapacity") => {
            let topology = &object["nodeTopology"];
            term(topology, "nodeTopology", &mut found);
            for (key, _) in topology["matchLabels"].as_object().into_iter().flatten() {
                let warnings = node_label(key);
                found
                    .extend(warnings.map(|text| format!("nodeTopology.matchLabels.{key}: {text}")));
            }
        }
        _ => {}
    }
    found
}

/// Appends the warnings about a term that selects nodes.
pub(in crate::kinds::validate) fn term(term: &Value, at: &str, found: &mut Vec<String>) {
    for (index, one) in items(&term["matchExpressions"]) {
        let key = text(one, "key");
        let warnings = node_label(key);
        found.extend(
            warnings.map(|text| format!("{at}.matchExpressions[{index}].key: {key} is {text}")),
        );
    }
}

/// Appends the warnings about blocks of addresses of a `NetworkPolicy`.
fn blocks(spec: &Value, found: &mut Vec<String>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in items(&spec[direction]) {
            for (number, peer) in items(&rule[peers]) {
                let at = format!("spec.{direction}[{index}].{peers}[{number}].ipBlock");
                let block = &peer["ipBlock"];
                found.extend(addresses::block_warning(&format!("{at}.cidr"), text(block, "cidr")));
                for (place, one) in items(&block["except"]) {
                    let text = one.as_str().unwrap_or_default();
                    found.extend(addresses::block_warning(&format!("{at}.except[{place}]"), text));
                }
            }
        }
    }
}

/// Appends the warnings about a volume.
fn volume(object: &Value, found: &mut Vec<String>) {
    let options = "volume.beta.kubernetes.io/mount-options";
    if object["metadata"]["annotations"][options].is_string() {
        found.push(format!(
            "metadata.annotations[{options}]: deprecated since v1.31; use \"mountOptions\" attribute instead"
        ));
    }
    let terms = &object["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    for (index, one) in items(terms) {
        let at = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        term(one, &at, found);
    }
    for (field, text) in SOURCES.iter().filter(|(field, _)| object["spec"][*field].is_object()) {
        let shown = if *field == "storageos" { "storageOS" } else { field };
        found.push(format!("spec.{shown}: {text}"));
    }
}

/// Appends the warnings about the spec of a claim.
pub(in crate::kinds::validate) fn claim(spec: &Value, at: &str, found: &mut Vec<String>) {
    for part in ["requests", "limits"] {
        let amount = Quantity::parse(&spec["resources"][part]["storage"]);
        if let Some(held) = amount.filter(|held| !held.is_whole()) {
            let held = held.to_string();
            found.push(format!(
                "{at}.resources.{part}[storage]: fractional byte value {held:?} is invalid, must be an integer"
            ));
        }
    }
}

/// Appends the warnings about a `StatefulSet`.
fn stateful(spec: &Value, found: &mut Vec<String>) {
    for (index, one) in items(&spec["volumeClaimTemplates"]) {
        // The path lacks the spec, upstream too.
        claim(&one["spec"], &format!("spec.volumeClaimTemplates[{index}]"), found);
    }
    if spec["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        let text = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
        found.push(text.to_owned());
    }
}

/// Appends the warnings about a slice of endpoints.
fn endpoints(old: Option<&Value>, object: &Value, found: &mut Vec<String>) {
    if old.is_none() && object["addressType"] == "FQDN" {
        found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let owner = &object["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"];
    let own = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if own.iter().any(|name| owner == name) {
        return;
    }
    for (index, endpoint) in items(&object["endpoints"]) {
        for (number, address) in items(&endpoint["addresses"]) {
            let at = format!("endpoints[{index}].addresses[{number}]");
            found.extend(addresses::ip_warning(&at, address.as_str().unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::builtin;

    fn count(name: &str, old: Option<&Value>, object: &Value) -> usize {
        let kind = builtin::kinds().into_iter().find(|kind| kind.name() == name).unwrap();
        warnings(&kind, old, object).len()
    }

    #[test]
    fn only_new_slices_are_told_of_their_type() {
        let slice = json!({"addressType": "FQDN"});
        assert_eq!(count("EndpointSlice", None, &slice), 1);
        assert_eq!(count("EndpointSlice", Some(&slice), &slice), 0);
    }

    #[test]
    fn an_annotation_of_accounts_is_told_once() {
        let account = json!({"metadata": {"annotations": {MOUNTABLE: "true"}}});
        assert_eq!(count("ServiceAccount", None, &account), 1);
        assert_eq!(count("ServiceAccount", Some(&account), &account), 0);
        assert_eq!(count("ServiceAccount", Some(&json!({})), &account), 1);
    }

    #[test]
    fn a_negative_limit_of_revisions_is_no_limit() {
        let set = |limit: i64| json!({"spec": {"revisionHistoryLimit": limit}});
        assert_eq!(count("StatefulSet", None, &set(0)), 0);
        assert_eq!(count("StatefulSet", None, &set(-1)), 1);
    }
}
