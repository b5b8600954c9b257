//! Definitions that others manage too, and the losses if this program's own replaced them.
//!
//! A definition that a chart, `kubectl apply` or Argo CD keeps may serve versions and have fields
//! that this program's definition does not have. A replacement would remove the versions, and the
//! API server would prune the fields from each object at its next write, without a message; the
//! values could not be restored. So the stored definition is compared with the one that would be
//! written, by the rules of the API server's own pruning. A constraint that becomes stricter or
//! looser (`required`, patterns, bounds, rules) loses nothing that is stored; the log names dropped
//! rules and defaults.

// DESIGN.md, 84: A foreign definition is replaced only if nothing is lost

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Largest number of losses that a text names.
const MOST_NAMED: usize = 20;
/// Fields that every object has, with any schema.
const COMMON_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether a field manager other than `manager` owns a part of the `spec`. True without managed
/// fields: then the managers are not known.
pub(super) fn is_managed_by_others(stored: &CustomResourceDefinition, manager: &str) -> bool {
    let owns_spec = |entry: &ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some())
    };
    let entries = stored.metadata.managed_fields.as_deref().unwrap_or_default();
    let mut managers = entries.iter().filter(|entry| owns_spec(entry)).peekable();
    managers.peek().is_none() || managers.any(|entry| entry.manager.as_deref() != Some(manager))
}

/// Returns each loss if `own` replaced `stored`, in words: versions, names, and properties by their
/// paths.
pub(super) fn losses(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let value = |definition: &CustomResourceDefinition| {
        serde_json::to_value(&definition.spec).unwrap_or_default()
    };
    let (own, spec) = (value(own), value(stored));
    let mut losses = Vec::new();
    compare_names(&own, &spec, &mut losses);
    let status = stored.status.as_ref().and_then(|status| status.stored_versions.as_deref());
    for version in list(&spec["versions"]) {
        let name = text(&version["name"]);
        let is_stored = status.is_some_and(|names| names.iter().any(|stored| stored == name));
        let same = list(&own["versions"]).iter().find(|own| own["name"] == version["name"]);
        let is_served = version["served"] == true;
        match same {
            Some(same) if is_served && same["served"] != true => {
                losses.push(format!("the served version {name}"));
            }
            Some(same) => {
                losses.extend(absent_features(name, same, version));
                let schema = compare_schemas(same, version).into_iter();
                losses.extend(schema.map(|loss| format!("{} of {name}", loss.as_loss())));
            }
            None if is_served => losses.push(format!("the served version {name}")),
            None if is_stored || version["storage"] == true => {
                losses.push(format!("the version {name}, in which objects are stored"));
            }
            None => {}
        }
    }
    losses
}

/// Returns the rules of CEL and the defaults that `stored` has and `own` has not, by their paths.
/// No object loses data without them, but objects that a rule refused are accepted.
pub(super) fn removed_rules(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let of = |definition: &CustomResourceDefinition| {
        let versions = serde_json::to_value(&definition.spec.versions).unwrap_or_default();
        let mut found = Vec::new();
        for version in list(&versions) {
            let schema = &version["schema"]["openAPIV3Schema"];
            collect_rules(schema, text(&version["name"]), "", &mut found);
        }
        found
    };
    let own = of(own);
    of(stored).into_iter().filter(|rule| !own.contains(rule)).collect()
}

/// Collects the rules and defaults at `path` of a version and below it, in words.
fn collect_rules(schema: &Value, version: &str, path: &str, found: &mut Vec<String>) {
    let at = if path.is_empty() { "the object" } else { path };
    for rule in list(&schema["x-kubernetes-validations"]) {
        found.push(format!("the rule {:?} on {at} of {version}", text(&rule["rule"])));
    }
    if !schema["default"].is_null() {
        found.push(format!("the default of {at} of {version}"));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        collect_rules(field, version, &format!("{path}.{name}"), found);
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[key].is_object() {
            collect_rules(&schema[key], version, &format!("{path}{step}"), found);
        }
    }
}

/// Parts of this program's versions that the stored definition does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MissingParts {
    /// Properties that the API server prunes from every object that is written.
    pruned: Vec<String>,
    /// Subresources, selectable fields and types. Nothing is pruned for want of them: the API
    /// server refuses the requests that need them.
    absent: Vec<String>,
}

impl MissingParts {
    /// Describes the parts, each class with its consequence; empty when no part is missing.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        if !self.pruned.is_empty() {
            let pruned = join(&self.pruned);
            let _ = write!(
                text,
                "; it has not, so the API server drops from all that is written: {pruned}"
            );
        }
        if !self.absent.is_empty() {
            let _ = write!(text, "; it does not have: {}", join(&self.absent));
        }
        text
    }
}

/// Returns the parts of `own`'s versions that `stored` does not have.
pub(super) fn missing(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> MissingParts {
    let versions = |definition: &CustomResourceDefinition| {
        serde_json::to_value(&definition.spec.versions).unwrap_or_default()
    };
    let (own, stored) = (versions(own), versions(stored));
    let mut missing = MissingParts::default();
    for version in list(&own) {
        let same = list(&stored).iter().find(|stored| stored["name"] == version["name"]);
        let Some(same) = same else { continue };
        let name = text(&version["name"]);
        missing.absent.extend(absent_features(name, same, version));
        for loss in compare_schemas(same, version) {
            match loss {
                SchemaLoss::Pruned(path) => missing.pruned.push(format!("{path} of {name}")),
                SchemaLoss::Retyped { path, from, to } => {
                    missing.absent.push(format!("{path} as {from} (there it is {to}) of {name}"));
                }
            }
        }
    }
    missing
}

/// Joins the first of `losses` into one text, and counts the others.
pub(super) fn join(losses: &[String]) -> String {
    let mut text = losses[..losses.len().min(MOST_NAMED)].join(", ");
    if losses.len() > MOST_NAMED {
        let _ = write!(text, " and {} more", losses.len() - MOST_NAMED);
    }
    text
}

/// Compares scope, names and conversion.
fn compare_names(own: &Value, stored: &Value, losses: &mut Vec<String>) {
    if own["scope"] != stored["scope"] {
        losses.push(format!("the scope {}", text(&stored["scope"])));
    }
    let (own_names, stored_names) = (&own["names"], &stored["names"]);
    for field in ["kind", "plural", "singular", "listKind"] {
        let (own, stored) = (text(&own_names[field]), text(&stored_names[field]));
        // The API server fills in names that are empty.
        if !own.is_empty() && !stored.is_empty() && own != stored {
            losses.push(format!("the {field} {stored:?}"));
        }
    }
    for (field, label) in [("shortNames", "short name"), ("categories", "category")] {
        let gone = list(&stored_names[field]).iter();
        for name in gone.filter(|name| !list(&own_names[field]).contains(name)) {
            losses.push(format!("the {label} {name}"));
        }
    }
    if stored["conversion"]["strategy"] == "Webhook" && own["conversion"]["strategy"] != "Webhook" {
        losses.push("the conversion by a webhook".to_owned());
    }
    if stored["preserveUnknownFields"] == true && own["preserveUnknownFields"] != true {
        losses.push("every field that is in no schema (`preserveUnknownFields`)".to_owned());
    }
}

/// Returns the subresources and selectable fields of a version that `stored` has and `own` has not.
fn absent_features(name: &str, own: &Value, stored: &Value) -> Vec<String> {
    let mut absent = Vec::new();
    for subresource in ["status", "scale"] {
        let has = |version: &Value| version["subresources"][subresource].is_object();
        if has(stored) && !has(own) {
            absent.push(format!("the subresource {subresource} of {name}"));
        }
    }
    let selectable = |version: &Value| -> Vec<String> {
        let fields = list(&version["selectableFields"]).iter();
        fields.map(|field| text(&field["jsonPath"]).to_owned()).collect()
    };
    let own_selectable = selectable(own);
    for path in selectable(stored).iter().filter(|path| !own_selectable.contains(path)) {
        absent.push(format!("the selectable field {path} of {name}"));
    }
    absent
}

/// A value that one schema of a version keeps and the other does not.
enum SchemaLoss {
    /// The field at this path is pruned.
    Pruned(String),
    /// Values at this path are of another type: they are refused, not pruned.
    Retyped { path: String, from: String, to: String },
}

impl SchemaLoss {
    /// Returns the words for a loss of the stored definition under this program's own.
    fn as_loss(&self) -> String {
        match self {
            Self::Pruned(path) => path.clone(),
            Self::Retyped { path, from, to } => format!("{path} as {from} (here it is {to})"),
        }
    }
}

/// Returns the values that the schema of the version `stored` keeps and that of `own` does not.
fn compare_schemas(own: &Value, stored: &Value) -> Vec<SchemaLoss> {
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let (own, stored) = (SchemaNode::root(&schema(own)), SchemaNode::root(&schema(stored)));
    let mut losses = Vec::new();
    own.compare(&stored, "", &mut losses);
    losses
}

/// A schema, as pruning reads it: it keeps fields of a value and drops others.
struct SchemaNode {
    schema: Map<String, Value>,
    is_root: bool,
}

impl SchemaNode {
    /// Creates the node of the whole object, whose common fields are kept without being named.
    fn root(schema: &Value) -> Self {
        Self { is_root: true, ..Self::of(schema) }
    }

    /// Creates the node of a schema below the root. A schema of `true`, which allows any value,
    /// keeps no field of an object: it names none.
    fn of(schema: &Value) -> Self {
        Self { schema: schema.as_object().cloned().unwrap_or_default(), is_root: false }
    }

    /// Whether the extension `key` is set to true.
    fn is(&self, key: &str) -> bool {
        self.schema.get(key) == Some(&Value::Bool(true))
    }

    /// Whether fields are kept that no schema names.
    fn keeps_unknown(&self) -> bool {
        self.is("x-kubernetes-preserve-unknown-fields")
    }

    /// Returns the named fields.
    fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// Returns the schema of fields that are not named; `None`: there are none.
    fn additional_properties(&self) -> Option<Self> {
        match self.schema.get("additionalProperties")? {
            Value::Bool(false) => None,
            schema => Some(Self::of(schema)),
        }
    }

    /// Whether the field is common to all objects: an embedded object keeps it without naming it.
    fn is_common_field(&self, field: &str) -> bool {
        (self.is_root || self.is("x-kubernetes-embedded-resource"))
            && COMMON_FIELDS.contains(&field)
    }

    /// Returns the schema of a field; `Ok(None)`: it is kept as it is.
    ///
    /// # Errors
    /// The field is pruned.
    fn field(&self, name: &str) -> Result<Option<Self>, ()> {
        let named = self.schema.get("properties").and_then(|all| all.get(name)).map(Self::of);
        match named.or_else(|| self.additional_properties()) {
            _ if self.is_common_field(name) => Ok(None),
            Some(node) => Ok(Some(node)),
            None if self.keeps_unknown() => Ok(None),
            None => Err(()),
        }
    }

    /// Collects the paths below `path` that `stored` keeps and this schema does not.
    fn compare(&self, stored: &Self, path: &str, losses: &mut Vec<SchemaLoss>) {
        self.compare_types(stored, path, losses);
        if stored.keeps_unknown() && !self.keeps_unknown() {
            losses.push(SchemaLoss::Pruned(format!("{path}.* (fields of any name)")));
        } else if let Some(others) = stored.additional_properties() {
            match self.additional_properties() {
                Some(own) => own.compare(&others, &format!("{path}.*"), losses),
                None if self.keeps_unknown() => {}
                None => {
                    losses.push(SchemaLoss::Pruned(format!("{path}.* (fields of any name)")));
                }
            }
            // A name that only this schema has covers a value that `stored` keeps under
            // `additionalProperties`.
            for (name, own) in self.properties().filter(|(name, _)| !stored.has_property(name)) {
                Self::of(own).compare(&others, &format!("{path}.{name}"), losses);
            }
        }
        for (name, field) in stored.properties().filter(|(name, _)| !stored.is_common_field(name)) {
            let below = format!("{path}.{name}");
            match self.field(name) {
                Ok(Some(own)) => own.compare(&Self::of(field), &below, losses),
                Ok(None) => {}
                Err(()) => losses.push(SchemaLoss::Pruned(below)),
            }
        }
        if stored.is("x-kubernetes-embedded-resource") {
            let pruned = COMMON_FIELDS.iter().filter(|name| self.field(name).is_err());
            losses.extend(pruned.map(|name| SchemaLoss::Pruned(format!("{path}.{name}"))));
        }
        if let Some(items) = stored.schema.get("items").filter(|items| items.is_object()) {
            let below = format!("{path}[]");
            match self.schema.get("items") {
                Some(own) => Self::of(own).compare(&Self::of(items), &below, losses),
                None if self.keeps_unknown() => {}
                None => losses.push(SchemaLoss::Pruned(below)),
            }
        }
    }

    /// Whether the schema names the field.
    fn has_property(&self, field: &str) -> bool {
        self.schema.get("properties").is_some_and(|all| all.get(field).is_some())
    }

    /// Compares the types of a value: another type is no loss if it is one of the own types as
    /// well.
    fn compare_types(&self, stored: &Self, path: &str, losses: &mut Vec<SchemaLoss>) {
        let (own, stored) = (self.value_type(), stored.value_type());
        let fits = own == stored
            || own == "any"
            || (own, stored) == ("number", "integer")
            || (own == "int-or-string" && matches!(stored, "integer" | "string"));
        if !fits {
            let path = if path.is_empty() { "the object" } else { path };
            let (from, to) = (stored.to_owned(), own.to_owned());
            losses.push(SchemaLoss::Retyped { path: path.to_owned(), from, to });
        }
    }

    /// Returns the type of values, `any` without one.
    fn value_type(&self) -> &str {
        match self.schema.get("type").and_then(Value::as_str) {
            _ if self.is("x-kubernetes-int-or-string") => "int-or-string",
            Some(name) => name,
            None => "any",
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
