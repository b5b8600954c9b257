//! Tests that the tables of keys in `docs/`, which are the macros' documentation and a page of the
//! book, name every key that the derives understand, and no other.

use std::collections::BTreeSet;

use crate::{conditions, controller, convert, dependents, projection, resource, schema};

const RESOURCE: &str = include_str!("../docs/custom_resource.md");
const CONTROLLER: &str = include_str!("../docs/controller.md");
const CONDITIONS: &str = include_str!("../docs/conditions.md");
const CONVERTIBLE: &str = include_str!("../docs/convertible.md");
const DEPENDENTS: &str = include_str!("../docs/dependents.md");
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

/// Returns the identifiers in a piece of code, without the contents of the texts.
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
            assert!(keys.contains(&head), "`{code}` is not a key of the derive");
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
    // An index has forms instead of keys: field, list, map, path, and the type of the values.
    for form in
        ["spec.host", "spec.ports[].number", ".keys()", ".values()", "\".spec.host\"", ": i32"]
    {
        let cells = first_cells(index);
        assert!(cells.iter().any(|cell| cell.contains(form)), "no row shows `{form}`: {cells:?}");
    }
}

#[test]
fn every_key_of_controller_is_documented() {
    use controller::attrs::{HANDLER_KEYS, KEYS, MAPPER_KEYS, WATCH_KEYS};
    use controller::grants::{ESCALATING, METHODS, SUBRESOURCES, VERBS};
    use controller::settings::{GROUPS, SINGLE};
    let (keys, grants) = CONTROLLER.split_once("### `can(").expect("a section for the grants");
    for known in [KEYS, MAPPER_KEYS, WATCH_KEYS, HANDLER_KEYS, SINGLE] {
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
fn every_key_of_conditions_is_documented() {
    use conditions::set::{KEYS, READY_KEYS};
    all_are_named(CONDITIONS, KEYS);
    all_are_named(CONDITIONS, READY_KEYS);
    nothing_else_begins_a_row(CONDITIONS, &[KEYS, READY_KEYS].concat());
}

#[test]
fn every_key_of_convertible_is_documented() {
    use convert::attrs::{FIELD_KEYS, TYPE_KEYS, VARIANT_KEYS};
    let (_, tables) = CONVERTIBLE.split_once("on the type\n").expect("a section for the type");
    let (on_the_type, rest) = tables.split_once("on a field\n").expect("a section for fields");
    let (on_a_field, on_a_variant) =
        rest.split_once("on a variant\n").expect("a section for variants");
    for (table, keys) in
        [(on_the_type, TYPE_KEYS), (on_a_field, FIELD_KEYS), (on_a_variant, VARIANT_KEYS)]
    {
        all_are_named(table, keys);
        nothing_else_begins_a_row(table, keys);
    }
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
fn every_key_of_dependents_is_documented() {
    use dependents::attrs::{FIELD_KEYS, KEYS};
    let parts = DEPENDENTS.split_once("on a field\n").expect("a section for the fields");
    let (on_the_struct, on_a_field) = parts;
    all_are_named(on_the_struct, KEYS);
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

/// Parts of keys that have no row of their own.
const PARTS: &[(&str, &str, &str)] = &[
    ("resource", "name", "`column(name = \"Host\", …)`: the heading."),
    (
        "resource",
        "path",
        "`column(path = \".spec.host\", …)`: a JSON path. `rule(\"…\", path = spec.host)`: the field that a refusal names.",
    ),
    ("resource", "format", "`column(…, format = \"date\")`: format of the column."),
    ("resource", "priority", "`column(…, priority = 1)`: 0 is always shown, more with `-o wide`."),
    (
        "resource",
        "description",
        "`column(…, description = \"…\")`: text for clients that explain columns.",
    ),
    ("resource", "spec", "`scale(spec = spec.replicas, …)`: the wanted number."),
    ("resource", "status", "`scale(status = status.replicas, …)`: the present number."),
    ("resource", "selector", "`scale(…, selector = status.selector)`: a selector as text."),
    ("resource", "message", "`rule(\"…\", message = \"…\")`: text of the refusal, one line."),
    (
        "resource",
        "message_expression",
        "`rule(\"…\", message_expression = \"…\")`: the text as a CEL expression.",
    ),
    ("resource", "reason", "`rule(\"…\", reason = \"FieldValueInvalid\")`: reason of the refusal."),
    (
        "resource",
        "optional_old_self",
        "`rule(\"…\", optional_old_self)`: a rule with `oldSelf` holds for new objects, too.",
    ),
    ("schema", "name", "`column(name = \"Host\", …)`: the heading."),
    ("schema", "format", "`column(…, format = \"date\")`: format of the column."),
    ("schema", "priority", "`column(…, priority = 1)`: 0 is always shown, more with `-o wide`."),
    (
        "schema",
        "description",
        "`column(…, description = \"…\")`: text for clients that explain columns.",
    ),
    (
        "schema",
        "min",
        "`length(min = 1)`, `items(min = 1)`, `properties(min = 1)`: the smallest size.",
    ),
    (
        "schema",
        "max",
        "`length(max = 63)`, `items(max = 10)`, `properties(max = 10)`: the largest size.",
    ),
];

/// The rows of a text that document a key: the code that begins with the key, and the effect.
fn rows_of(text: &str, key: &str) -> Vec<String> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let found = rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let codes = cells.first()?.split('`').skip(1).step_by(2);
        let mine: Vec<String> =
            codes.filter(|code| words(code)[0] == key).map(|code| format!("`{code}`")).collect();
        let effect = cells.get(1)?.replace("\\|", "|");
        (!mine.is_empty()).then(|| format!("{}: {}", mine.join(", "), effect.trim()))
    });
    found.collect()
}

/// The source of the constants that document keys.
fn modules() -> String {
    let derives: [(&str, &str, Vec<&[&str]>); 7] = [
        (
            "resource",
            RESOURCE,
            vec![
                resource::attrs::KEYS,
                resource::place::COLUMN_KEYS,
                resource::place::SCALE_KEYS,
                resource::place::RULE_KEYS,
            ],
        ),
        (
            "schema",
            SCHEMA,
            vec![
                schema::attrs::FIELD_KEYS,
                schema::attrs::TYPE_KEYS,
                schema::attrs::RULE_KEYS,
                schema::attrs::EACH_KEYS,
                schema::attrs::COLUMN_KEYS,
            ],
        ),
        ("controller", CONTROLLER, vec![controller::attrs::KEYS]),
        ("conditions", CONDITIONS, vec![conditions::set::KEYS, conditions::set::READY_KEYS]),
        (
            "convert",
            CONVERTIBLE,
            vec![
                convert::attrs::TYPE_KEYS,
                convert::attrs::FIELD_KEYS,
                convert::attrs::VARIANT_KEYS,
            ],
        ),
        ("dependents", DEPENDENTS, vec![dependents::attrs::KEYS, dependents::attrs::FIELD_KEYS]),
        ("projection", PROJECTION, vec![projection::attrs::KEYS, projection::attrs::FIELD_KEYS]),
    ];
    let mut source = "//! Documentation of the derives' keys, for editors: generated code refers to a constant here at the\n\
                      //! position of each key. Written by a test of `windlass-macros` from the \
                      tables in its `docs/`.\n\n\
                      #![allow(missing_docs, non_upper_case_globals)]\n"
        .to_owned();
    for (derive, text, keys) in derives {
        let keys: BTreeSet<&str> = keys.concat().into_iter().collect();
        source += &format!("\npub mod {derive} {{\n");
        for key in keys.into_iter().filter(|key| !crate::keys::RUST_WORDS.contains(key)) {
            let mut rows = rows_of(text, key);
            let part = PARTS.iter().find(|part| (part.0, part.1) == (derive, key));
            rows.extend(part.map(|part| part.2.to_owned()));
            assert!(!rows.is_empty(), "`{key}` of {derive} has neither a row nor a part");
            source +=
                &format!("    #[doc = {:?}]\n    pub const {key}: () = ();\n", rows.join("\n\n"));
        }
        source += "}\n";
    }
    source
}

#[test]
fn editors_find_the_documentation_of_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../framework/core/src/__private/keys.rs");
    let modules = modules();
    if std::env::var_os("WINDLASS_KEYS").is_some_and(|value| value == "accept") {
        std::fs::write(path, &modules).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    assert!(
        plain(&found) == plain(&modules),
        "{path} differs: WINDLASS_KEYS=accept writes it anew"
    );
}

#[test]
fn the_book_holds_all_tables() {
    for file in [
        "custom_resource",
        "convertible",
        "schema",
        "controller",
        "dependents",
        "projection",
        "apply_configuration",
        "condition_type",
        "conditions",
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
