//! The order of faults where upstream judges fields in another order than the checks here do.

use crate::kinds::Kind;
use crate::served::Cause;

/// The request after which faults have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JudgedWrite {
    Any,
    Creation,
    Change,
}

use JudgedWrite::{Any, Change, Creation};

/// Fields of a kind in the order in which upstream judges them; a field stands for all below it
/// that the row does not have, and one with a bracket only for those below. A field with `[]` is
/// one of each item: upstream judges all fields of an item before those of the next.
type FieldOrder = (&'static str, &'static str, JudgedWrite, &'static [&'static str]);

// DESIGN.md, 323: The order of faults is a table
/// The orders, by group and kind.
const ORDERS: [FieldOrder; 13] = [
    ("", "ConfigMap", Change, &["immutable", "data", "binaryData", "data[", "binaryData["]),
    ("", "Secret", Change, &["type", "immutable", "data", "data["]),
    (
        "",
        "Service",
        Any,
        &[
            "spec.ports[].name",
            "spec.ports[].port",
            "spec.ports[].protocol",
            "spec.ports[].targetPort",
            "spec.ports[].appProtocol",
        ],
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", Any, BINDING),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", Any, BINDING),
    ("apps", "DaemonSet", Change, &["spec.selector", "spec"]),
    (
        "apps",
        "StatefulSet",
        Any,
        &[
            "spec.podManagementPolicy",
            "spec.updateStrategy",
            "spec.persistentVolumeClaimRetentionPolicy",
            "spec.volumeClaimTemplates",
            "spec.replicas",
            "spec.minReadySeconds",
            "spec.ordinals",
            "spec.serviceName",
            "spec.selector",
            "spec.template",
        ],
    ),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        Any,
        &[
            "spec.minReplicas",
            "spec.maxReplicas",
            "spec.scaleTargetRef.kind",
            "spec.scaleTargetRef.name",
            "spec.scaleTargetRef.apiVersion",
        ],
    ),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        Any,
        &["spec.request", "spec.usages", "spec.signerName", "spec.expirationSeconds"],
    ),
    (
        "events.k8s.io",
        "Event",
        Creation,
        &[
            "involvedObject",
            "reportingController",
            "reportingInstance",
            "action",
            "reason",
            "message",
            "metadata",
            "series",
            "eventTime",
            "type",
        ],
    ),
    ("events.k8s.io", "Event", Change, &["involvedObject.namespace", "metadata"]),
    ("rbac.authorization.k8s.io", "RoleBinding", Any, SUBJECTS),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", Any, SUBJECTS),
];

/// Fields of the bindings of both kinds of roles.
const SUBJECTS: &[&str] = &[
    "roleRef",
    "subjects[].name",
    "subjects[].apiGroup",
    "subjects[].namespace",
    "subjects[].kind",
];

/// Fields of the bindings of both kinds of policies.
const BINDING: &[&str] = &[
    "spec.policyName",
    "spec.paramRef.name",
    "spec.paramRef.selector",
    "spec.paramRef",
    "spec.paramRef.parameterNotFoundAction",
    "spec.matchResources",
    "spec.validationActions",
];

/// Brings the faults of a new or changed object into upstream's order. Faults of fields that no row
/// has keep their places.
pub(crate) fn order(kind: &Kind, is_change: bool, causes: &mut [Cause]) {
    if causes.len() < 2 || kind.custom.is_some() {
        return;
    }
    let write = if is_change { Change } else { Creation };
    let of = (kind.served.group.as_str(), kind.name());
    let row = ORDERS.iter().find(|row| (row.0, row.1) == of && (row.2 == Any || row.2 == write));
    if let Some((.., fields)) = row {
        arrange(fields, causes);
    }
}

/// Sorts the faults of some fields among the places that they have.
fn arrange(fields: &[&str], causes: &mut [Cause]) {
    let ranks: Vec<Option<Rank>> = causes.iter().map(|cause| rank(fields, &cause.field)).collect();
    let mut ranked: Vec<(Rank, Cause)> = ranks
        .iter()
        .zip(&*causes)
        .filter_map(|(rank, cause)| Some(((*rank)?, cause.clone())))
        .collect();
    // Stable: faults of a field keep their order.
    ranked.sort_by_key(|(rank, _)| *rank);
    let places = ranks.iter().zip(causes).filter(|(rank, _)| rank.is_some());
    for ((_, place), (_, cause)) in places.zip(ranked) {
        *place = cause;
    }
}

/// Place of a fault: that of the field or of the list, the item, and the field of the item.
type Rank = (usize, usize, usize);

/// Returns the place of the longest of the fields that a field is or is below.
fn rank(fields: &[&str], field: &str) -> Option<Rank> {
    let above = fields.iter().enumerate().filter_map(|(place, above)| {
        let (item, rest) = below(above, field)?;
        let ends = above.ends_with('[');
        let is_below = ends || rest.is_empty() || rest.starts_with(['.', '[']);
        is_below.then_some((above.len(), place, item))
    });
    let (_, place, item) = above.max_by_key(|(length, ..)| *length)?;
    let Some(item) = item else { return Some((place, 0, 0)) };
    let list = fields[place].split_once("[]").map_or("", |(list, _)| list);
    let first = fields.iter().position(|field| field.split("[]").next() == Some(list));
    Some((first.unwrap_or(place), item, place))
}

/// Returns the part of the path `field` below `above`, and the index of the item if `above` names
/// a field of items.
fn below<'a>(above: &str, field: &'a str) -> Option<(Option<usize>, &'a str)> {
    let Some((list, name)) = above.split_once("[]") else {
        return Some((None, field.strip_prefix(above)?));
    };
    let (item, rest) = field.strip_prefix(list)?.strip_prefix('[')?.split_once(']')?;
    Some((Some(item.parse().ok()?), rest.strip_prefix(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::required;

    /// Returns the order of faults of a row.
    fn arranged<'a>(fields: &[&str], causes: &[&'a str]) -> Vec<String> {
        let mut causes: Vec<Cause> =
            causes.iter().map(|field: &&'a str| required(field, "")).collect();
        arrange(fields, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_field_stands_for_those_below_that_the_row_does_not_have() {
        let given = ["spec.b.x", "spec.a[1]", "spec.a.c", "spec.a[0]", "spec.ab"];
        assert_eq!(
            arranged(&["spec.a", "spec.b", "spec.a.c"], &given),
            ["spec.a[1]", "spec.a[0]", "spec.b.x", "spec.a.c", "spec.ab"]
        );
    }

    #[test]
    fn a_bracket_names_the_items_without_the_field() {
        assert_eq!(arranged(&["a", "b", "a["], &["a[k]", "b", "a"]), ["a", "b", "a[k]"]);
    }

    #[test]
    fn all_fields_of_an_item_come_before_those_of_the_next_item() {
        let given = ["l[0].b.x", "l[1].a", "l[10].a", "l[2].b", "l[0].a", "l[2].c"];
        assert_eq!(
            arranged(&["l[].a", "l[].b"], &given),
            ["l[0].a", "l[0].b.x", "l[1].a", "l[2].b", "l[10].a", "l[2].c"]
        );
    }

    #[test]
    fn faults_of_other_fields_keep_their_places() {
        assert_eq!(arranged(&["a", "b"], &["x", "b", "y", "a", "z"]), ["x", "a", "y", "b", "z"]);
    }
}
