//! Attributes of generated types: serde's, and the keys of `#[schema(…)]` for keywords that a type
//! does not imply.
//!
//! A keyword for which there is no key is written as `extend("keyword" = value)`.

use serde_json::{Map, Value};

use super::keys::{AttributeKey, ValueClass, take_keys};
use super::literals::{json, string};
use super::names::FieldName;
use super::rules::{RuleSite, take_rules};

/// Derives of every nested type.
pub(super) const DERIVE: &str = "Clone, Debug, PartialEq, Serialize, Deserialize, Schema";
/// Longest line of an attribute that is not broken.
const MOST_COLUMNS: usize = 100;

/// Schema attributes of a field or type.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaAttributes {
    /// Form of the value.
    pub(super) class: ValueClass,
    /// Fields of the type, or of the items of a list.
    pub(super) names: Vec<FieldName>,
    /// Keywords of the items of a list that have keys.
    pub(super) each: Map<String, Value>,
    /// Type that describes the field instead of the field's type.
    pub(super) with: Option<String>,
    /// Finished keys, such as `required`.
    pub(super) keys: Vec<AttributeKey>,
    /// Description, where the doc comment does not print unchanged.
    pub(super) description: Option<String>,
    /// Keywords that the type does not imply.
    pub(super) keywords: Map<String, Value>,
}

impl SchemaAttributes {
    /// The attributes as lines; each rule has a separate line.
    pub(super) fn lines(&self, indent: &str) -> Vec<String> {
        let mut rest = self.keywords.clone();
        let mut parts: Vec<AttributeKey> = Vec::new();
        parts.extend(self.with.as_ref().map(|with| AttributeKey::value("with", with)));
        parts.extend(take_keys(&mut rest, self.class, &self.names, &self.each));
        parts.extend(self.keys.iter().cloned());
        let site = RuleSite { names: &self.names, is_type: self.class == ValueClass::Type };
        let rules = take_rules(&mut rest, &site);
        let description = self.description.as_ref().map(|text| ("description", string(text)));
        let rest = rest.iter().map(|(key, value)| (key.as_str(), json(value)));
        let extended: Vec<AttributeKey> = description
            .into_iter()
            .chain(rest)
            .map(|(key, value)| AttributeKey::value(&format!("{key:?}"), value))
            .collect();
        if !extended.is_empty() {
            parts.push(AttributeKey::call("extend", extended));
        }
        let mut lines = Vec::new();
        if !parts.is_empty() {
            lines.push(attribute(indent, "schema", parts));
        }
        lines.extend(rules.into_iter().map(|rule| attribute(indent, "schema", vec![rule])));
        lines
    }

    /// Adds the lines of the attributes.
    pub(super) fn print(&self, indent: &str, out: &mut String) {
        for line in self.lines(indent) {
            out.push_str(&format!("{line}\n"));
        }
    }
}

/// Returns `#[name(parts)]`.
pub(super) fn attribute(indent: &str, name: &str, parts: Vec<AttributeKey>) -> String {
    let key = AttributeKey::Call(name.to_owned(), parts);
    let line = format!("{indent}#[{key}]");
    if line.chars().count() <= MOST_COLUMNS {
        return line;
    }
    let AttributeKey::Call(_, parts) = key else { return line };
    if let [AttributeKey::Call(inner, parts)] = parts.as_slice() {
        return format!("{indent}#[{name}({inner}(\n{}\n{indent}))]", broken(indent, parts));
    }
    format!("{indent}#[{name}(\n{}\n{indent})]", broken(indent, &parts))
}

/// Returns one part per line; a part that is too long for a line is broken, too.
fn broken(indent: &str, parts: &[AttributeKey]) -> String {
    let indent = format!("{indent}    ");
    let lines = parts.iter().map(|part| {
        let line = format!("{indent}{part}");
        match part {
            AttributeKey::Call(name, parts) if line.chars().count() >= MOST_COLUMNS => {
                format!("{indent}{name}(\n{}\n{indent})", broken(&indent, parts))
            }
            _ => line,
        }
    });
    lines.collect::<Vec<_>>().join(",\n")
}
