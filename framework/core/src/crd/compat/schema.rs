//! The walk through two schemas of the same version.

use serde_json::{Value, json};

use super::change::DefinitionChange;
use super::node::{COMMON_FIELDS, SchemaAtPath, list, text};
use super::rule::{ChangeKind, CompatRule};
use super::walk::Walk;
use super::{rules, values};

/// Compares two schemas of a whole object.
pub(super) fn compare(
    old: SchemaAtPath<'_>,
    new: SchemaAtPath<'_>,
    found: &mut Vec<DefinitionChange>,
) {
    Walk { found }.node(old, new, "");
}

impl Walk<'_> {
    /// Compares two schemas of the value at `path`, and all values below.
    fn node(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        self.types(old, new, path);
        values::compare(self, old, new, path);
        self.default(old, new, path);
        self.lists(old, new, path);
        rules::compare(self, old, new, path);
        self.other_keywords(old, new, path);
        self.open_fields(old, new, path);
        self.required(old, new, path);
        self.properties(old, new, path);
        self.common_fields(old, new, path);
        self.embedded(old, new, path);
        self.items(old, new, path);
    }

    /// Compares the types of a value: another type is no break if the new types include the old
    /// type.
    fn types(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let (from, to) = (old.value_type(), new.value_type());
        if from == to {
            return;
        }
        let fits = to == "any"
            || (from, to) == ("integer", "number")
            || (to == "int-or-string" && matches!(from, "integer" | "string"));
        let rule = if fits { CompatRule::TypeWidened } else { CompatRule::TypeChanged };
        self.add(rule, path, format!("the type changes from {from} to {to}"));
        if let Some(change) = self.found.last_mut() {
            change.types = Some((from.to_owned(), to.to_owned()));
        }
    }

    /// Compares the default values of a field.
    fn default(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        match (old.schema.get("default"), new.schema.get("default")) {
            (None, Some(value)) => {
                self.add(CompatRule::DefaultAdded, path, format!("the default {value} is new"));
            }
            (Some(value), None) => {
                let text = format!("the default {value} is removed");
                self.add_part(CompatRule::DefaultRemoved, path, "the default".to_owned(), text);
            }
            (Some(old), Some(new)) if old != new => {
                let text = format!("the default changes from {old} to {new}");
                self.add(CompatRule::DefaultChanged, path, text);
            }
            _ => {}
        }
    }

    /// Compares list types, their keys, and map types.
    fn lists(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let value = |node: SchemaAtPath<'_>, key: &str, default: &str| {
            let found = node.schema.get(key).and_then(Value::as_str);
            found.unwrap_or(default).to_owned()
        };
        for (key, default, rule) in [
            ("x-kubernetes-list-type", "atomic", CompatRule::ListTypeChanged),
            ("x-kubernetes-map-type", "granular", CompatRule::MapTypeChanged),
        ] {
            let (from, to) = (value(old, key, default), value(new, key, default));
            if from != to {
                self.add(rule, path, format!("`{key}` changes from {from} to {to}"));
            }
        }
        let keys = |node: SchemaAtPath<'_>| {
            let keys = node.schema.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null);
            let mut keys: Vec<&str> = list(keys).iter().map(text).collect();
            keys.sort_unstable();
            keys.join(", ")
        };
        let (from, to) = (keys(old), keys(new));
        if from != to && !from.is_empty() && !to.is_empty() {
            self.add(
                CompatRule::ListTypeChanged,
                path,
                format!("the keys of its elements change from {from} to {to}"),
            );
        }
    }

    /// Compares remarks, and every keyword that no other function compares.
    fn other_keywords(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let value = |node: SchemaAtPath<'_>, key: &str| {
            node.schema.get(key).filter(|value| **value != Value::Bool(false)).cloned()
        };
        let mut keys: Vec<&String> = old.schema.keys().chain(new.schema.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut is_described = false;
        for key in keys {
            if value(old, key) == value(new, key) || is_compared(key) {
                continue;
            }
            if matches!(key.as_str(), "description" | "title" | "example" | "externalDocs") {
                is_described = true;
            } else {
                self.add(CompatRule::KeywordChanged, path, format!("`{key}` changes"));
            }
        }
        if is_described {
            self.add(CompatRule::Described, path, "the description changes");
        }
    }

    /// Compares the fields that no schema names.
    fn open_fields(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let any = format!("{path}.*");
        if old.keeps_unknown() && !new.keeps_unknown() {
            let text = "fields of any name are no longer kept \
                        (`x-kubernetes-preserve-unknown-fields`)";
            self.add(CompatRule::OpenFieldsRemoved, &any, text);
        } else if let Some(others) = old.additional_properties() {
            match new.additional_properties() {
                Some(new) => self.node(others, new, &any),
                None if new.keeps_unknown() => self.released(others, &any),
                None => {
                    let text = "fields of any name are no longer kept (`additionalProperties`)";
                    self.add(CompatRule::OpenFieldsRemoved, &any, text);
                }
            }
            // A name that only the new schema has covers a value that the old schema kept under
            // `additionalProperties`.
            for (name, field) in new.properties().filter(|(name, _)| old.property(name).is_none()) {
                self.node(others, SchemaAtPath::of(field), &format!("{path}.{name}"));
            }
        }
        if (new.keeps_unknown() && !old.keeps_unknown())
            || (new.additional_properties().is_some()
                && old.additional_properties().is_none()
                && !old.keeps_unknown())
        {
            self.add(CompatRule::OpenFieldsAdded, &any, "fields of any name are kept");
        }
    }

    /// Compares the names of required fields.
    fn required(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let names = |node: SchemaAtPath<'_>| {
            let names = node.schema.get("required").unwrap_or(&Value::Null);
            list(names).iter().map(|name| text(name).to_owned()).collect::<Vec<_>>()
        };
        let (before, after) = (names(old), names(new));
        for name in after.iter().filter(|name| !before.contains(name)) {
            let at = format!("{path}.{name}");
            let default = new.property(name).and_then(|field| field.schema.get("default"));
            match default {
                Some(default) => {
                    let text = format!("the field becomes required, and has the default {default}");
                    self.add(CompatRule::RequiredWithDefault, &at, text);
                }
                None => self.add(CompatRule::RequiredAdded, &at, "the field becomes required"),
            }
        }
        for name in before.iter().filter(|name| !after.contains(name)) {
            // A removed field is named as such.
            if new.property(name).is_some() {
                let text = "the field is no longer required";
                self.add(CompatRule::RequiredRemoved, &format!("{path}.{name}"), text);
            }
        }
    }

    /// Compares the named fields.
    fn properties(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let added = || new.properties().filter(|(name, _)| old.property(name).is_none());
        for (name, field) in old.properties().filter(|(name, _)| !old.is_common_field(name)) {
            let below = format!("{path}.{name}");
            match new.field(name) {
                Ok(Some(new)) => self.node(SchemaAtPath::of(field), new, &below),
                Ok(None) => {
                    if !new.is_common_field(name) && !SchemaAtPath::of(field).is_free() {
                        let text = "the field is kept without a schema";
                        self.add(CompatRule::ConstraintRemoved, &below, text);
                        self.released(SchemaAtPath::of(field), &below);
                    }
                }
                Err(()) => {
                    let same = added().find(|(_, new)| has_same_shape(field, new));
                    let text = match same {
                        Some((new, _)) => format!(
                            "the field is removed (renamed to `{new}`, which is new and of the same shape?)"
                        ),
                        None => "the field is removed".to_owned(),
                    };
                    self.add(CompatRule::FieldRemoved, &below, text);
                }
            }
        }
        let is_required = |name: &str| {
            let names = new.schema.get("required").unwrap_or(&Value::Null);
            list(names).iter().any(|required| text(required) == name)
        };
        for (name, field) in added() {
            let below = format!("{path}.{name}");
            if old.is_common_field(name) || old.additional_properties().is_some() {
                continue;
            }
            if old.keeps_unknown() {
                self.described(SchemaAtPath::of(field), &below);
            } else if !is_required(name) {
                self.add(CompatRule::FieldAdded, &below, "the field is new");
            }
        }
    }

    /// Adds the schema of a field that was kept without one. The constraints are ratcheted; values
    /// that are dropped, filled in, or bound to earlier values are not.
    fn described(&mut self, field: SchemaAtPath<'_>, path: &str) {
        if field.is_free() {
            return;
        }
        self.add(
            CompatRule::FieldDescribed,
            path,
            "the field, which was kept without a schema, gets one",
        );
        if field.prunes() {
            let text = "fields that the new schema does not name are no longer kept";
            self.add(CompatRule::OpenFieldsRemoved, &format!("{path}.*"), text);
        }
        self.imposed(field, path);
    }

    /// Adds the defaults and the CEL rules of a schema and of all schemas below.
    fn imposed(&mut self, field: SchemaAtPath<'_>, path: &str) {
        let none = json!({});
        self.default(SchemaAtPath::of(&none), field, path);
        rules::compare(self, SchemaAtPath::of(&none), field, path);
        for (name, below) in field.properties() {
            self.imposed(SchemaAtPath::of(below), &format!("{path}.{name}"));
        }
        if let Some(others) = field.additional_properties() {
            self.imposed(others, &format!("{path}.*"));
        }
        if let Some(items) = field.schema.get("items") {
            self.imposed(SchemaAtPath::of(items), &format!("{path}[]"));
        }
    }

    /// Adds the defaults and the list types that a field loses with its schema.
    fn released(&mut self, field: SchemaAtPath<'_>, path: &str) {
        let none = json!({});
        self.default(field, SchemaAtPath::of(&none), path);
        self.lists(field, SchemaAtPath::of(&none), path);
        for (name, below) in field.properties() {
            self.released(SchemaAtPath::of(below), &format!("{path}.{name}"));
        }
        if let Some(others) = field.additional_properties() {
            self.released(others, &format!("{path}.*"));
        }
        if let Some(items) = field.schema.get("items") {
            self.released(SchemaAtPath::of(items), &format!("{path}[]"));
        }
    }

    /// Compares the constraints of the fields that the root and embedded objects have in common:
    /// the kind, its version, and the name. The rest of the metadata has no schema of a definition.
    fn common_fields(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        if !(old.is_common_field("kind") && new.is_common_field("kind")) {
            return;
        }
        let text = json!({ "type": "string" });
        let none = SchemaAtPath::of(&text);
        for name in ["apiVersion", "kind"] {
            let (before, after) = (old.property(name), new.property(name));
            let (before, after) = (before.unwrap_or(none), after.unwrap_or(none));
            let below = format!("{path}.{name}");
            // Descriptions of these fields are the same for all kinds, and often left out.
            values::compare(self, before, after, &below);
            rules::compare(self, before, after, &below);
        }
        for name in ["name", "generateName"] {
            let before = old.property("metadata").and_then(|metadata| metadata.property(name));
            let after = new.property("metadata").and_then(|metadata| metadata.property(name));
            if before.is_some() || after.is_some() {
                let (before, after) = (before.unwrap_or(none), after.unwrap_or(none));
                self.node(before, after, &format!("{path}.metadata.{name}"));
            }
        }
    }

    /// Compares whether a value is a whole object with metadata.
    fn embedded(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        const KEY: &str = "x-kubernetes-embedded-resource";
        match (old.is(KEY), new.is(KEY)) {
            (true, false) => {
                for name in COMMON_FIELDS.iter().filter(|name| new.field(name).is_err()) {
                    let text = "the field is removed";
                    self.add(CompatRule::FieldRemoved, &format!("{path}.{name}"), text);
                }
                self.add(CompatRule::EmbeddedRemoved, path, format!("`{KEY}` is removed"));
            }
            (false, true) => self.add(CompatRule::EmbeddedAdded, path, format!("`{KEY}` is new")),
            _ => {}
        }
    }

    /// Compares the elements of a list.
    fn items(&mut self, old: SchemaAtPath<'_>, new: SchemaAtPath<'_>, path: &str) {
        let Some(items) = old.schema.get("items").filter(|items| items.is_object()) else {
            return;
        };
        let below = format!("{path}[]");
        match new.schema.get("items") {
            Some(new) => self.node(SchemaAtPath::of(items), SchemaAtPath::of(new), &below),
            None if new.keeps_unknown() => self.released(SchemaAtPath::of(items), &below),
            None => {
                self.add(CompatRule::FieldRemoved, &below, "the elements are no longer described")
            }
        }
    }
}

/// Whether two schemas describe the same values.
fn has_same_shape(old: &Value, new: &Value) -> bool {
    let mut ignored = Vec::new();
    Walk { found: &mut ignored }.node(SchemaAtPath::of(old), SchemaAtPath::of(new), "");
    ignored.iter().all(|change| {
        change.kind == ChangeKind::Compatible && matches!(change.rule, CompatRule::Described)
    })
}

/// Whether a function of this module, or a function called from here, compares the keyword.
fn is_compared(key: &str) -> bool {
    values::is_compared(key)
        || matches!(
            key,
            "additionalProperties"
                | "default"
                | "items"
                | "properties"
                | "required"
                | "type"
                | "x-kubernetes-embedded-resource"
                | "x-kubernetes-int-or-string"
                | "x-kubernetes-list-map-keys"
                | "x-kubernetes-list-type"
                | "x-kubernetes-map-type"
                | "x-kubernetes-preserve-unknown-fields"
                | "x-kubernetes-validations"
        )
}
