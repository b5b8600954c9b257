//! The verdict on each sort of change, in both directions.

mod parts;
mod schemas;

use serde_json::{Value, json};

use super::rule::CompatRule;
use super::*;

/// A definition of a single version with this schema of `spec`.
fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "sites.example.dev" },
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": {
                "kind": "Site", "plural": "sites", "singular": "site",
                "shortNames": ["st"], "categories": ["all"],
            },
            "versions": [version("v1", spec)],
        },
    })
}

/// A version with this schema of `spec`; the version `v1` is the stored version.
fn version(name: &str, spec: &Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": { "spec": spec, "metadata": { "type": "object" } },
    });
    json!({
        "name": name, "served": true, "storage": name == "v1",
        "schema": { "openAPIV3Schema": schema },
    })
}

fn read(definition: &Value) -> CustomResourceDefinition {
    serde_json::from_value(definition.clone()).unwrap()
}

/// Returns rule and path of each change between two definitions.
fn between(old: &Value, new: &Value) -> Vec<String> {
    let changes = changes(&read(old), &read(new));
    let print = |change: &DefinitionChange| format!("{} {}", change.rule(), change.path());
    changes.all().iter().map(|change| print(change).trim_end().to_owned()).collect()
}

/// The changes from `old` to `new` are `there`, those back are `back`, and a definition does not
/// differ from itself.
#[track_caller]
fn check(old: &Value, new: &Value, there: &[&str], back: &[&str]) {
    assert_eq!(between(old, new), there, "from the old to the new one");
    assert_eq!(between(new, old), back, "from the new to the old one");
    assert_eq!(between(old, old), [""; 0]);
    assert_eq!(between(new, new), [""; 0]);
}

/// The page of the book with all rules.
const PAGE: &str = include_str!("../../../../../../book/src/running/changing-a-crd.md");

#[test]
fn every_rule_stands_in_the_book_with_its_kind() {
    for rule in CompatRule::ALL {
        let id = format!("`{}`", rule.id());
        let row = PAGE.lines().find(|line| line.starts_with("| `") && line.contains(&id));
        let cells: Vec<&str> =
            row.unwrap_or_else(|| panic!("no row for {id}")).split(" | ").collect();
        // A row of two kinds has two groups of rules.
        let group =
            usize::from(cells[0].split(" / ").nth(1).is_some_and(|group| group.contains(&id)));
        assert_eq!(
            cells[1].split(" / ").nth(group),
            Some(rule.kind().to_string().as_str()),
            "{id}"
        );
    }
}

#[test]
fn every_rule_has_an_identifier_of_its_own_and_every_break_a_remedy() {
    let mut ids = Vec::new();
    for rule in CompatRule::ALL {
        assert!(!ids.contains(&rule.id()), "{}", rule.id());
        ids.push(rule.id());
        if rule.kind() != ChangeKind::Compatible {
            assert!(!rule.remedy().is_empty() && !rule.reason().is_empty(), "{}", rule.id());
        }
    }
}

#[test]
fn a_change_is_printed_with_its_place_its_consequence_and_its_remedy() {
    let old =
        definition(&json!({ "type": "object", "properties": { "host": { "type": "string" } } }));
    let new =
        definition(&json!({ "type": "object", "properties": { "port": { "type": "integer" } } }));
    let changes = changes(&read(&old), &read(&new));
    let text = changes.to_string();
    assert_eq!(
        text,
        "sites.example.dev:\n  \
         breaking [field-removed] v1 .spec.host: the field is removed; the API server drops the field from every \
         object that is read or written, without an error; keep the field, and mark it as deprecated in its \
         description\n  \
         compatible [field-added] v1 .spec.port: the field is new"
    );
    assert_eq!(changes.count(ChangeKind::Breaking), 1);
    let same = super::changes(&read(&old), &read(&old));
    assert_eq!(same.to_string(), "sites.example.dev: no change");
    assert!(same.is_compatible());
}
