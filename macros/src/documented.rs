//! Tests that the tables of keys in `docs/`, which are the macros' documentation and a page of the
//! book, name every key that the derives understand, and no other.

use std::collections::BTreeSet;

use crate::{controller, projection, resource, schema};

const RESOURCE: &str = include_str!("../docs/custom_resource.md");
const CONTROLLER: &str = include_str!("../docs/controller.md");
const PROJECTION: &str = include_str!("../docs/projection.md");
const SCHEMA: &str = include_str!("../docs/schema.md");
const PAGE: &str = include_str!("../../book/src/reference/derives.md");

/// Returns the code in the first cells of the tables of a text: a row for each element.
fn first_cells(text: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let code = |row: &str| {
        let cell = row.trim_start_matches('|').split(" | ").next().unwrap_or_default();
        cell.split('`').skip(1).step_by(2).collect::<Vec<_>>().join("\n")
    };
    rows.map(code).collect()
}

/// Returns the identifiers in a piece of code, without the contents of its texts.
fn words(code: &str) -> Vec<&str> {
    let outside = code.split('"').step_by(2);
    let parts = outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    parts.filter(|word| !word.is_empty()).collect()
}

#[track_caller]
fn all_are_named(table: &str, keys: &[&str]) {
    let cells = first_cells(table);
    let named: BTreeSet<&str> = cells.iter().flat_map(|cell| words(cell)).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !named.contains(*key)).collect();
    assert!(missing.is_empty(), "no first cell of a table names {missing:?}: {cells:#?}");
}

/// Checks that the first word of each piece of code in a first cell is a key.
#[track_caller]
fn nothing_else_begins_a_row(table: &str, keys: &[&str]) {
    for cell in first_cells(table) {
        for code in cell.lines() {
            let head = words(code)[0];
            assert!(keys.contains(&head), "`{code}` is no key of the derive");
        }
    }
}

#[test]
fn every_key_of_resource_is_documented() {
    use resource::attrs::KEYS;
    use resource::place::{COLUMN_KEYS, RULE_KEYS, SCALE_KEYS};
    let (keys, index) = RESOURCE.split_once("### `#[index(").expect("a section for the indexes");
    for known in [KEYS, COLUMN_KEYS, RULE_KEYS, SCALE_KEYS] {
        all_are_named(keys, known);
    }
    nothing_else_begins_a_row(keys, KEYS);
    // An index has forms instead of keys: field, list, map, path, and the type of its values.
    for form in
        ["spec.host", "spec.ports[].number", ".keys()", ".values()", "\".spec.host\"", ": i32"]
    {
        let cells = first_cells(index);
        assert!(cells.iter().any(|cell| cell.contains(form)), "no row shows `{form}`: {cells:?}");
    }
}

#[test]
fn every_key_of_controller_is_documented() {
    use controller::attrs::{KEYS, MAPPER_KEYS, WATCH_KEYS};
    use controller::grants::{ESCALATING, METHODS, SUBRESOURCES, VERBS};
    use controller::settings::{GROUPS, SINGLE};
    let (keys, grants) = CONTROLLER.split_once("### `can(").expect("a section for the grants");
    for known in [KEYS, MAPPER_KEYS, WATCH_KEYS, SINGLE] {
        all_are_named(keys, known);
    }
    for group in GROUPS {
        all_are_named(keys, &[group.key]);
        all_are_named(keys, group.arguments);
    }
    nothing_else_begins_a_row(keys, KEYS);
    for verb in [VERBS, ESCALATING, METHODS].concat() {
        assert!(grants.contains(&format!("`{verb}`")), "the verb `{verb}` is not named");
    }
    let subresources: Vec<&str> = SUBRESOURCES.iter().map(|(name, _)| *name).collect();
    all_are_named(grants, &subresources);
}

#[test]
fn every_key_of_projection_is_documented() {
    use projection::attrs::{FIELD_KEYS, KEYS, SKIPPABLE};
    let parts = PROJECTION.split_once("on a field\n").expect("a section for the fields");
    let (on_the_struct, on_a_field) = parts;
    for known in [KEYS, SKIPPABLE] {
        all_are_named(on_the_struct, known);
    }
    nothing_else_begins_a_row(on_the_struct, KEYS);
    all_are_named(on_a_field, FIELD_KEYS);
    nothing_else_begins_a_row(on_a_field, FIELD_KEYS);
}

#[test]
fn every_key_of_schema_is_documented() {
    use schema::attrs::{COLUMN_KEYS, EACH_KEYS, FIELD_KEYS, RULE_KEYS, TYPE_KEYS, VARIANT_KEYS};
    let (on_a_field, on_the_type) =
        SCHEMA.split_once("on the type\n").expect("a section for the type");
    let (on_a_field, of_a_rule) =
        on_a_field.split_once("`rule` has further parts").expect("a table for the parts of a rule");
    all_are_named(on_a_field, FIELD_KEYS);
    nothing_else_begins_a_row(on_a_field, FIELD_KEYS);
    for key in EACH_KEYS {
        assert!(on_a_field.contains(&format!("`{key}`")), "`{key}` of `each` is not named");
    }
    for key in COLUMN_KEYS {
        assert!(on_a_field.contains(&format!("{key} = ")), "`{key}` of `column` is not named");
    }
    all_are_named(of_a_rule, RULE_KEYS);
    nothing_else_begins_a_row(of_a_rule, RULE_KEYS);
    all_are_named(on_the_type, TYPE_KEYS);
    nothing_else_begins_a_row(on_the_type, TYPE_KEYS);
    for key in VARIANT_KEYS {
        assert!(on_the_type.contains(&format!("`{key}`")), "`{key}` of a variant is not named");
    }
}

#[test]
fn the_book_holds_all_tables() {
    for file in [
        "custom_resource",
        "schema",
        "controller",
        "projection",
        "apply_configuration",
        "condition_type",
        "object",
    ] {
        let line = format!("\n{{{{#include ../../../macros/docs/{file}.md}}}}\n");
        assert!(PAGE.contains(&line), "book/src/reference/derives.md does not include {file}.md");
    }
    let summary = include_str!("../../book/src/SUMMARY.md");
    assert!(summary.contains("(reference/derives.md)"), "the page is in no table of contents");
}

#[test]
fn a_row_without_its_key_is_noticed() {
    let table = "| key |\n|---|\n| `owns(Pod, by = \"when\")` | x |\n| text | `can` |\n";
    assert_eq!(first_cells(table), ["owns(Pod, by = \"when\")"]);
    assert_eq!(words("owns(Pod, by = \"when\")"), ["owns", "Pod", "by"]);
}
