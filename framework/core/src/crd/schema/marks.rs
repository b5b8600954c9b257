//! Marks that `#[derive(Schema)]` leaves in a schema: columns, selectable fields, and names that
//! only serde knows.
//!
//! A nested type does not know the kinds that contain it, so the derive leaves a mark in the
//! schema, and the definition of each kind collects the marks with their paths. They are collected
//! where a schema is translated, because alternatives merge the fields of their variants
//! afterwards.

use serde_json::Value;

use super::lower::{Lower, Mark};
use super::node::{RULES, SchemaObject};
use crate::crd::shapes::{REFILLED, REFUSED, UNCHECKED, same_name};

/// Mark of a field with a column; its value has the column's keys.
const COLUMN: &str = "x-windlass-column";

/// Mark of a selectable field.
const SELECTABLE: &str = "x-windlass-selectable";

/// Mark of further names that serde reads: `#[serde(alias = "…")]`.
pub(super) const ALIASES: &str = "x-windlass-aliases";

/// Mark of a variant that serde reads for every other name: `#[serde(other)]`.
pub(super) const REST: &str = "x-windlass-rest";

/// Mark of a text that serde parses or a value that serde converts. The mark's value has the type
/// of the result, and the conditions that the value fulfils in any case.
pub(super) const PARSED: &str = "x-windlass-parsed";

/// Mark of a kind inside of another; its value has the faults of the kind's definition and the
/// remarks about it, at paths that begin at the kind.
pub(crate) const INSIDE: &str = "x-windlass-inside";

/// Keywords by which a schema describes the input of a conversion. The macros have the same list,
/// and a test of theirs compares both.
const CONDITIONS: [&str; 16] = [
    "pattern",
    "format",
    "enum",
    "not",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    RULES,
];

/// Returns the value of the mark for a type whose values have that schema before the type's own
/// keys. Behind a reference the conditions are not known, so that all may be there.
pub(in crate::crd) fn parsed(name: &str, schema: &SchemaObject) -> Value {
    let is_there = |keyword: &&&str| schema.contains_key("$ref") || schema.contains_key(**keyword);
    let had: Vec<&str> = CONDITIONS.iter().filter(is_there).copied().collect();
    serde_json::json!({ "type": name, "had": had })
}

/// Whether a schema has a condition that the type's values need not fulfil. A rule about
/// changes says nothing about a value.
pub(super) fn is_described(schema: &SchemaObject, had: &Value) -> bool {
    let says = |keyword: &str| match (keyword, schema.get(keyword)) {
        (_, None) => false,
        (RULES, Some(Value::Array(rules))) => {
            rules.iter().any(|rule| !rule["rule"].as_str().unwrap_or_default().contains("oldSelf"))
        }
        _ => true,
    };
    let is_own =
        |keyword: &str| had.as_array().is_none_or(|had| !had.iter().any(|it| it == keyword));
    CONDITIONS.iter().any(|keyword| is_own(keyword) && says(keyword))
}

/// The first name that an object requires twice: schemars merges the fields of flattened structs.
fn required_twice(raw: &SchemaObject) -> Option<&str> {
    let names = raw.get("required")?.as_array()?;
    let second = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
    second.and_then(|(_, name)| name.as_str())
}

impl Lower<'_> {
    /// Collects the marks at the current position, and warns of names that only serde knows.
    pub(super) fn marks(&mut self, raw: &SchemaObject) {
        if let Some(names) = raw.get(ALIASES) {
            self.warn(&format!(
                "serde also reads the names {names}, which no schema can say: an API server drops or refuses them"
            ));
        }
        if let Some(name) = raw.get(REST) {
            self.warn(&format!(
                "serde reads every other name as {name}, and an API server refuses it"
            ));
        }
        if let Some(mark) = raw.get(PARSED)
            && !is_described(raw, &mark["had"])
        {
            let name = mark["type"].as_str().unwrap_or("a type");
            let function = mark["function"].as_bool().map_or("", |_| "a function of ");
            self.warn(&format!(
                "{function}serde makes {name} of the value, and its schema does not say which values are refused: give it a \
                 `pattern` or a `rule`"
            ));
        }
        if let Some(Value::String(text)) = raw.get(REFUSED) {
            self.fault(text);
        } else if let Some(name) = required_twice(raw) {
            self.fault(&same_name(name));
        }
        // A null is what serde leaves out.
        let default = raw.get("default").filter(|default| !default.is_null());
        if let (Some(_), Some(default)) = (raw.get(REFILLED), default) {
            self.warn(&format!(
                "serde leaves some values of this field out (`skip_serializing_if`), and an API server stores the default \
                 {default} in their place; write them, or leave the default out"
            ));
        }
        if let Some(Value::String(text)) = raw.get(UNCHECKED) {
            self.note(text);
        }
        self.inside(&raw.get(INSIDE).cloned().unwrap_or_default());
        for key in [COLUMN, SELECTABLE] {
            let Some(value) = raw.get(key) else { continue };
            // No error: the type may stand outside of a list, too.
            if self.path().iter().any(|step| step == "[]" || step == "*") {
                let key = if key == COLUMN { "column" } else { "selectable" };
                self.warn(&format!(
                    "`{key}` has no effect below a list or a map: API servers show and select by single fields"
                ));
                continue;
            }
            let column = (key == COLUMN).then(|| value.clone());
            let mark = Mark { path: self.path().to_vec(), column };
            // A position may be translated more than once.
            if !self.marks.contains(&mark) {
                self.marks.push(mark);
            }
        }
    }

    /// Reports the findings about the kind inside, at its place.
    fn inside(&mut self, mark: &Value) {
        if let Some(fault) = mark["fault"].as_str() {
            self.fault(&format!("the kind inside has faults: {fault}"));
        }
        for (key, is_note) in [("warnings", false), ("notes", true)] {
            for text in mark[key].as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.remark(text, is_note);
            }
        }
    }
}
