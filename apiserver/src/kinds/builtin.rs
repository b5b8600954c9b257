//! Table of built-in kinds.
//!
//! A row per kind and version, in discovery's order of groups. Rows state differences from a plain
//! kind; everything else follows from [`KindStrategy::PLAIN`].

use std::sync::Arc;

use super::Kind;
use super::rows::{ROWS, Row};
use crate::served::{Served, Subresource};
use crate::typed::TypeSchema;

/// Returns all built-in kinds.
pub(crate) fn kinds() -> Vec<Kind> {
    ROWS.iter().map(kind).collect()
}

/// Returns a kind that exists only as the body of a subresource.
pub(crate) fn body_kind(api_version: &'static str, name: &'static str) -> Kind {
    kind(&Row::body(api_version, name))
}

/// Splits a text into the non-empty words.
fn words(text: &str, by: char) -> Vec<String> {
    text.split(by).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Returns the kind of a row.
fn kind(row: &Row) -> Kind {
    let (group, version) = row.api_version.split_once('/').unwrap_or(("", row.api_version));
    let types = TypeSchema::builtin(row.api_version, row.kind);
    let served = Served {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: words(row.short, ','),
        categories: words(row.categories, ','),
        namespaced: !row.cluster,
        verbs: words(row.verbs, ' '),
        subresources: row
            .subresources
            .iter()
            .map(|sub| subresource(row, group, version, *sub))
            .collect(),
        custom: false,
        schema: None,
        columns: Vec::new(),
        selectable: row.facts.fields.iter().map(|field| format!(".{field}")).collect(),
        stored_as: stored_as(group, version, row.kind),
        deprecated: deprecation(row.kind),
    };
    // Both event APIs show the same stored objects, which are kept in the core version.
    let (storage, stored_as) = if row.kind == "Event" {
        ("events".to_owned(), "v1".to_owned())
    } else if row.kind == "HorizontalPodAutoscaler" {
        // Both versions show the same objects, too.
        (served.group_resource(), "autoscaling/v2".to_owned())
    } else {
        (served.group_resource(), row.api_version.to_owned())
    };
    Kind {
        served,
        storage,
        stored_as,
        facts: row.facts,
        // Kinds without recorded types merge like objects without a schema.
        types: types.unwrap_or_else(|| Arc::new(TypeSchema::untyped())),
        custom: None,
    }
}

/// Returns the warning about a kind that has another in its place, or none at all.
fn deprecation(kind: &str) -> Option<String> {
    let text = match kind {
        "Endpoints" => {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        }
        "ComponentStatus" => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Returns group, version and kind in which a real server stores the objects of a kind.
fn stored_as(group: &str, version: &str, kind: &str) -> String {
    let (group, version) = match (group, kind) {
        ("autoscaling", _) => (group, "v2"),
        ("events.k8s.io", _) => ("", "v1"),
        (
            _,
            "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding"
            | "CustomResourceDefinition",
        ) => (group, "v1beta1"),
        _ => (group, version),
    };
    format!("{group}/{version}/{kind}")
}

/// Returns the subresource that a pair of a row describes.
fn subresource(row: &Row, group: &str, version: &str, (name, what): (&str, &str)) -> Subresource {
    let own = |verbs: &str| Subresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: row.kind.to_owned(),
        verbs: words(verbs, ' '),
        paths: Vec::new(),
    };
    match what {
        "" => own("get patch update"),
        "put" => own("update"),
        "get" => own("get"),
        _ => {
            let (api_version, kind) = what.split_once(' ').unwrap_or((what, ""));
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            Subresource {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
                ..own(match name {
                    "scale" => "get patch update",
                    "attach" | "exec" | "portforward" => "create get",
                    "proxy" => "create delete get patch update",
                    _ => "create",
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_autoscalers_have_two_views_and_no_other_kinds_do() {
        let mut seen = std::collections::BTreeMap::new();
        for kind in kinds() {
            seen.entry(kind.storage.clone())
                .or_insert_with(Vec::new)
                .push(kind.served.api_version());
        }
        let shared: Vec<_> = seen.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
        assert_eq!(
            shared,
            [
                ("events".to_owned(), vec!["v1".to_owned(), "events.k8s.io/v1".to_owned()]),
                (
                    "horizontalpodautoscalers.autoscaling".to_owned(),
                    vec!["autoscaling/v2".to_owned(), "autoscaling/v1".to_owned()]
                ),
            ]
        );
    }

    #[test]
    fn a_subresource_of_another_kind_says_which() {
        let deployment = kinds().into_iter().find(|kind| kind.name() == "Deployment").unwrap();
        let scale = deployment.subresource("scale").unwrap();
        assert_eq!((scale.group.as_str(), scale.kind.as_str()), ("autoscaling", "Scale"));
        assert_eq!(deployment.subresource("status").unwrap().kind, "Deployment");
    }
}
