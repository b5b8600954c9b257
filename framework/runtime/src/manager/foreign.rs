//! Definitions that others manage too, and the losses if this program's own took their place.
//!
//! A definition that a chart, `kubectl apply` or Argo CD keeps may serve versions and have fields
//! that this program does not know. Applied over it, the versions would be gone, and the API server
//! would prune the fields from each object at its next write, without a message, and with no way to
//! bring them back. So the stored definition is compared with the one that would be written, by the
//! rules of the API server's own pruning. A constraint that becomes stricter or looser (`required`,
//! patterns, bounds, rules) loses nothing that is stored; the log names dropped rules and defaults.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Largest number of losses that a text names.
const MOST_NAMED: usize = 20;
/// Fields that every object has, with any schema.
const HEAD: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether a field manager other than `manager` owns a part of the `spec`. True without managed
/// fields: then the managers are not known.
pub(super) fn is_managed_by_others(stored: &CustomResourceDefinition, manager: &str) -> bool {
    let says = |entry: &ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some())
    };
    let entries = stored.metadata.managed_fields.as_deref().unwrap_or_default();
    let mut managers = entries.iter().filter(|entry| says(entry)).peekable();
    managers.peek().is_none() || managers.any(|entry| entry.manager.as_deref() != Some(manager))
}

/// Returns each loss if `own` replaced `stored`, in words: versions, names, and properties by their
/// paths.
pub(super) fn lost(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let value = |definition: &CustomResourceDefinition| {
        serde_json::to_value(&definition.spec).unwrap_or_default()
    };
    let (own, spec) = (value(own), value(stored));
    let mut losses = Vec::new();
    names(&own, &spec, &mut losses);
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
            Some(same) => of_version(name, same, version, &mut losses),
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
/// No object loses data with them, but objects that they kept out come in.
pub(super) fn loosened(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let of = |definition: &CustomResourceDefinition| {
        let versions = serde_json::to_value(&definition.spec.versions).unwrap_or_default();
        let mut found = Vec::new();
        for version in list(&versions) {
            let schema = &version["schema"]["openAPIV3Schema"];
            conditions(schema, text(&version["name"]), "", &mut found);
        }
        found
    };
    let own = of(own);
    of(stored).into_iter().filter(|condition| !own.contains(condition)).collect()
}

/// Collects the rules and defaults at `path` of a version and below it, in words.
fn conditions(schema: &Value, version: &str, path: &str, found: &mut Vec<String>) {
    let at = if path.is_empty() { "the object" } else { path };
    for rule in list(&schema["x-kubernetes-validations"]) {
        found.push(format!("the rule {:?} on {at} of {version}", text(&rule["rule"])));
    }
    if !schema["default"].is_null() {
        found.push(format!("the default of {at} of {version}"));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        conditions(field, version, &format!("{path}.{name}"), found);
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if schema[key].is_object() {
            conditions(&schema[key], version, &format!("{path}{step}"), found);
        }
    }
}

/// Returns the properties of `own`'s versions that `stored` does not keep: written, they would be
/// pruned.
pub(super) fn pruned(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let versions = |definition: &CustomResourceDefinition| {
        serde_json::to_value(&definition.spec.versions).unwrap_or_default()
    };
    let (own, stored) = (versions(own), versions(stored));
    let mut losses = Vec::new();
    for version in list(&own) {
        if let Some(same) = list(&stored).iter().find(|stored| stored["name"] == version["name"]) {
            of_version(text(&version["name"]), same, version, &mut losses);
        }
    }
    losses
}

/// Joins the first of `losses` into one text.
pub(super) fn named(losses: &[String]) -> String {
    let mut text = losses[..losses.len().min(MOST_NAMED)].join(", ");
    if losses.len() > MOST_NAMED {
        let _ = write!(text, " and {} more", losses.len() - MOST_NAMED);
    }
    text
}

/// Compares scope, names and conversion.
fn names(own: &Value, stored: &Value, losses: &mut Vec<String>) {
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
    for (field, what) in [("shortNames", "short name"), ("categories", "category")] {
        let gone = list(&stored_names[field]).iter();
        for name in gone.filter(|name| !list(&own_names[field]).contains(name)) {
            losses.push(format!("the {what} {name}"));
        }
    }
    if stored["conversion"]["strategy"] == "Webhook" && own["conversion"]["strategy"] != "Webhook" {
        losses.push("the conversion by a webhook".to_owned());
    }
    if stored["preserveUnknownFields"] == true && own["preserveUnknownFields"] != true {
        losses.push("every field that is in no schema (`preserveUnknownFields`)".to_owned());
    }
}

/// Compares subresources, selectable fields and schemas of one version.
fn of_version(name: &str, own: &Value, stored: &Value, losses: &mut Vec<String>) {
    for subresource in ["status", "scale"] {
        let has = |version: &Value| version["subresources"][subresource].is_object();
        if has(stored) && !has(own) {
            losses.push(format!("the subresource {subresource} of {name}"));
        }
    }
    let selectable = |version: &Value| -> Vec<String> {
        let fields = list(&version["selectableFields"]).iter();
        fields.map(|field| text(&field["jsonPath"]).to_owned()).collect()
    };
    let own_selectable = selectable(own);
    for path in selectable(stored).iter().filter(|path| !own_selectable.contains(path)) {
        losses.push(format!("the selectable field {path} of {name}"));
    }
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let (own, stored) = (Node::root(&schema(own)), Node::root(&schema(stored)));
    let mut gone = Vec::new();
    own.compare(&stored, "", &mut gone);
    losses.extend(gone.into_iter().map(|path| format!("{path} of {name}")));
}

/// A schema, as pruning reads it: it keeps fields of a value and drops others.
struct Node {
    schema: Map<String, Value>,
    is_root: bool,
}

impl Node {
    /// Creates the node of the whole object, whose head is kept without being named.
    fn root(schema: &Value) -> Self {
        Self { is_root: true, ..Self::of(schema) }
    }

    /// A schema of `true`, which allows any value below a name, keeps no field of an object: it
    /// names none.
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
    fn others(&self) -> Option<Self> {
        match self.schema.get("additionalProperties")? {
            Value::Bool(false) => None,
            schema => Some(Self::of(schema)),
        }
    }

    /// Whether the field is part of an embedded object's head, which is kept without being named.
    fn is_head(&self, field: &str) -> bool {
        (self.is_root || self.is("x-kubernetes-embedded-resource")) && HEAD.contains(&field)
    }

    /// Returns the schema of a field; `Ok(None)`: it is kept as it is.
    ///
    /// # Errors
    /// The field is pruned.
    fn field(&self, name: &str) -> Result<Option<Self>, ()> {
        let named = self.schema.get("properties").and_then(|all| all.get(name)).map(Self::of);
        match named.or_else(|| self.others()) {
            _ if self.is_head(name) => Ok(None),
            Some(node) => Ok(Some(node)),
            None if self.keeps_unknown() => Ok(None),
            None => Err(()),
        }
    }

    /// Collects the paths below `path` that `stored` keeps and this schema does not.
    fn compare(&self, stored: &Self, path: &str, gone: &mut Vec<String>) {
        self.compare_types(stored, path, gone);
        if stored.keeps_unknown() && !self.keeps_unknown() {
            gone.push(format!("{path}.* (fields of any name)"));
        } else if let Some(others) = stored.others() {
            match self.others() {
                Some(own) => own.compare(&others, &format!("{path}.*"), gone),
                None if self.keeps_unknown() => {}
                None => gone.push(format!("{path}.* (fields of any name)")),
            }
            // A name that only this schema has covers a value that `stored` keeps under
            // `additionalProperties`.
            for (name, own) in self.properties().filter(|(name, _)| !stored.names(name)) {
                Self::of(own).compare(&others, &format!("{path}.{name}"), gone);
            }
        }
        for (name, field) in stored.properties().filter(|(name, _)| !stored.is_head(name)) {
            let below = format!("{path}.{name}");
            match self.field(name) {
                Ok(Some(own)) => own.compare(&Self::of(field), &below, gone),
                Ok(None) => {}
                Err(()) => gone.push(below),
            }
        }
        if stored.is("x-kubernetes-embedded-resource") {
            let heads = HEAD.iter().filter(|name| self.field(name).is_err());
            gone.extend(heads.map(|name| format!("{path}.{name}")));
        }
        if let Some(items) = stored.schema.get("items").filter(|items| items.is_object()) {
            let below = format!("{path}[]");
            match self.schema.get("items") {
                Some(own) => Self::of(own).compare(&Self::of(items), &below, gone),
                None if self.keeps_unknown() => {}
                None => gone.push(below),
            }
        }
    }

    /// Whether the schema names the field.
    fn names(&self, field: &str) -> bool {
        self.schema.get("properties").is_some_and(|all| all.get(field).is_some())
    }

    /// Compares the types of a value: another type is no loss if it is one of the own types as
    /// well.
    fn compare_types(&self, stored: &Self, path: &str, gone: &mut Vec<String>) {
        let (own, stored) = (self.value_type(), stored.value_type());
        let fits = own == stored
            || own == "any"
            || (own, stored) == ("number", "integer")
            || (own == "int-or-string" && matches!(stored, "integer" | "string"));
        if !fits {
            let path = if path.is_empty() { "the object" } else { path };
            gone.push(format!("{path} as {stored} (here it is {own})"));
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
