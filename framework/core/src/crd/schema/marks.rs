//! Marks that `#[derive(Schema)]` leaves in a schema: columns, selectable fields, and names that only
//! serde knows.
//!
//! A nested type does not know the kinds that contain it, so the derive leaves a mark in the schema,
//! and the definition of each kind collects the marks with their paths. They are collected where a
//! schema is translated, because alternatives merge the fields of their variants afterwards.

use serde_json::Value;

use super::lower::{Lower, Node};

/// Mark of a field with a column; its value has the column's keys.
const COLUMN: &str = "x-windlass-column";

/// Mark of a selectable field.
const SELECTABLE: &str = "x-windlass-selectable";

/// Mark of further names that serde reads: `#[serde(alias = "…")]`.
const ALIASES: &str = "x-windlass-aliases";

/// Mark of a variant that serde reads for every other name: `#[serde(other)]`.
const REST: &str = "x-windlass-rest";

/// Mark of a text that serde parses or a value that it converts; its value is the type of the result.
const PARSED: &str = "x-windlass-parsed";

/// Keywords by which a type says what its conversion accepts.
const CONDITIONS: [&str; 5] = ["pattern", "format", "enum", "x-kubernetes-validations", "not"];

/// A marked field.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::crd) struct Mark {
    /// Names in JSON from the root field on.
    pub(in crate::crd) path: Vec<String>,
    /// The keys of a column; `None` for a selectable field.
    pub(in crate::crd) column: Option<Value>,
}

impl Lower<'_> {
    /// Collects the marks at the current position, and warns of names that only serde knows.
    pub(super) fn marks(&mut self, raw: &Node) {
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
        if let Some(Value::String(name)) = raw.get(PARSED)
            && !CONDITIONS.iter().any(|keyword| raw.contains_key(*keyword))
        {
            self.warn(&format!(
                "serde makes {name} of the value, and its schema does not say which values are refused: give it a \
                 `pattern` or a `rule`"
            ));
        }
        for key in [COLUMN, SELECTABLE] {
            let Some(value) = raw.get(key) else { continue };
            // API servers show and select by single fields. The type may stand outside of a list, too.
            if self.path().iter().any(|step| step == "[]" || step == "*") {
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
}
