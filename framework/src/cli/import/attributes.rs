//! Attributes of generated types: the only place that knows which derive describes a schema.
//!
//! Today that is schemars' `JsonSchema` with `#[schemars(…)]`. For another derive, change [`DERIVE`],
//! [`IMPORTS`] and the functions of this file.

use serde_json::{Map, Value};

use super::literals::{json, number_literal, string};

/// Derives of every nested type.
pub(super) const DERIVE: &str = "Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema";
/// Imports for these derives.
pub(super) const IMPORTS: [&str; 2] =
    ["use schemars::JsonSchema;", "use serde::{Deserialize, Serialize};"];

/// Schema attributes of one field or type.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaAttributes {
    /// Type that describes the field instead of its own.
    pub(super) with: Option<String>,
    /// Whether the type of the field has a schema of one type, to which bounds can be added.
    pub(super) is_typed: bool,
    /// Description, where the doc comment does not print as it is.
    pub(super) description: Option<String>,
    /// Keywords that the type does not have by itself.
    pub(super) keywords: Map<String, Value>,
}

impl SchemaAttributes {
    /// Adds the lines of the attributes.
    pub(super) fn print(&self, indent: &str, out: &mut String) {
        let mut parts = Vec::new();
        if let Some(with) = &self.with {
            parts.push(format!("with = {with:?}"));
        }
        if let Some(description) = &self.description {
            parts.push(format!("description = {}", string(description)));
        }
        let mut rest = self.keywords.clone();
        if self.is_typed {
            parts.extend(range(&mut rest));
            parts.extend(length(&mut rest));
            if let Some(Value::String(pattern)) = rest.remove("pattern") {
                parts.push(format!("regex(pattern = {})", string(&pattern)));
            }
        }
        let extended: Vec<String> =
            rest.iter().map(|(key, value)| format!("{key:?} = {}", json(value))).collect();
        if !extended.is_empty() {
            parts.push(format!("extend({})", extended.join(", ")));
        }
        if !parts.is_empty() {
            out.push_str(&format!("{indent}#[schemars({})]\n", parts.join(", ")));
        }
    }
}

/// Takes inclusive bounds of a number.
fn range(rest: &mut Map<String, Value>) -> Option<String> {
    if rest.contains_key("exclusiveMinimum") || rest.contains_key("exclusiveMaximum") {
        return None;
    }
    let mut bound = |key: &str, name: &str| match rest.remove(key) {
        Some(Value::Number(number)) => Some(format!("{name} = {}", number_literal(&number))),
        _ => None,
    };
    let bounds = [bound("minimum", "min"), bound("maximum", "max")];
    group("range", bounds.into_iter().flatten().collect())
}

/// Takes bounds of the length of a text or list.
fn length(rest: &mut Map<String, Value>) -> Option<String> {
    let mut bounds = Vec::new();
    for (name, keys) in [("min", ["minLength", "minItems"]), ("max", ["maxLength", "maxItems"])] {
        let found = keys.iter().find_map(|key| rest.get(*key)?.as_u64().map(|value| (*key, value)));
        if let Some((key, value)) = found.filter(|(_, value)| i32::try_from(*value).is_ok()) {
            rest.remove(key);
            bounds.push(format!("{name} = {value}"));
        }
    }
    group("length", bounds)
}

/// Prints `name(parts)`; `None` without a part.
fn group(name: &str, parts: Vec<String>) -> Option<String> {
    (!parts.is_empty()).then(|| format!("{name}({})", parts.join(", ")))
}
