//! Parts of a definition that name fields: columns, scale, selectable fields and rules of the
//! object.
//!
//! A field is named as in Rust, which the compiler checks; a path that Rust cannot walk is a text.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
};
use serde_json::Value;

use super::keys::AttributeKey;
use super::literals::string;
use super::module::{SchemaNode, Types};
use super::names::FieldName;
use super::rules;
use windlass_core::crd::{column_type_at, field_type_at};

/// Fields of the metadata that a path may name.
const METADATA: [(&str, &str); 3] =
    [("name", "name"), ("namespace", "namespace"), ("creationTimestamp", "creation_timestamp")];

/// The fields of a kind, as the definition names them.
pub(super) struct KindFields<'a> {
    pub(super) version: &'a CustomResourceDefinitionVersion,
    pub(super) schema: &'a SchemaNode,
    /// Fields of the kind beside the metadata.
    pub(super) fields: &'a [FieldName],
    pub(super) types: &'a mut Types,
}

impl KindFields<'_> {
    /// Returns the keys, each of which is printed as a separate attribute.
    pub(super) fn keys(&mut self) -> Vec<AttributeKey> {
        let columns = self.version.additional_printer_columns.iter().flatten();
        let mut keys: Vec<AttributeKey> =
            columns.filter_map(|column| self.column(column)).collect();
        let subresources = self.version.subresources.as_ref();
        if let Some(scale) = subresources.and_then(|all| all.scale.as_ref()) {
            keys.extend(self.scale(scale));
        }
        keys.extend(self.selectable());
        keys.extend(self.rules());
        keys
    }

    /// Returns `column(…)`, if the field exists.
    fn column(&mut self, column: &CustomResourceColumnDefinition) -> Option<AttributeKey> {
        let CustomResourceColumnDefinition { name, json_path, type_, .. } = column;
        let implied = match column_type_at(self.schema, json_path, type_) {
            Ok(implied) => implied,
            Err(why) => {
                let why = why.split(':').next().unwrap_or_default();
                self.types.warnings.push(format!("the column {name:?} is left out: {why}"));
                return None;
            }
        };
        let mut parts = match self.rust(json_path) {
            Some(fields) => vec![AttributeKey::Plain(string(name)), AttributeKey::Plain(fields)],
            None => vec![
                AttributeKey::value("name", string(name)),
                AttributeKey::value("path", string(json_path)),
            ],
        };
        if implied != type_ {
            parts.push(AttributeKey::value("type", string(type_)));
        }
        parts.extend(
            column.format.as_ref().map(|format| AttributeKey::value("format", string(format))),
        );
        if let Some(priority) = column.priority.filter(|priority| *priority != 0) {
            parts.push(AttributeKey::value("priority", priority));
        }
        let description = column.description.as_ref();
        parts.extend(description.map(|text| AttributeKey::value("description", string(text))));
        Some(AttributeKey::call("column", parts))
    }

    /// Returns `scale(…)`, if the fields of the subresource exist.
    fn scale(&mut self, scale: &CustomResourceSubresourceScale) -> Option<AttributeKey> {
        let selector = scale.label_selector_path.as_deref();
        let counts = [&scale.spec_replicas_path, &scale.status_replicas_path].map(String::as_str);
        let fields = counts.map(|path| (path, "integer"));
        for (path, wanted) in fields.into_iter().chain(selector.map(|path| (path, "string"))) {
            let found = field_type_at(self.schema, path);
            let text = match found {
                Ok(found) if found.as_deref().is_none_or(|found| found == wanted) => continue,
                Ok(_) => format!("`{path}` is not of type {wanted}"),
                Err(_) => format!("there is no `{path}`"),
            };
            self.types.warnings.push(format!("the scale subresource is left out: {text}"));
            return None;
        }
        let mut parts = counts.map(|path| AttributeKey::Plain(self.place(path))).to_vec();
        parts.extend(selector.map(|path| AttributeKey::value("selector", self.place(path))));
        Some(AttributeKey::call("scale", parts))
    }

    /// Returns `selectable(…)` with the fields that exist.
    fn selectable(&mut self) -> Option<AttributeKey> {
        let mut parts = Vec::new();
        for field in self.version.selectable_fields.iter().flatten() {
            let path = &field.json_path;
            if field_type_at(self.schema, path).is_ok() {
                parts.push(AttributeKey::Plain(self.place(path)));
            } else {
                let text =
                    format!("the selectable field {path} is left out: there is no such field");
                self.types.warnings.push(text);
            }
        }
        (!parts.is_empty()).then(|| AttributeKey::call("selectable", parts))
    }

    /// Returns `rule(…)` for each rule of the whole object.
    fn rules(&mut self) -> Vec<AttributeKey> {
        let rules = self.schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let mut keys = Vec::new();
        for rule in rules.into_iter().flatten() {
            match rules::key(rule, |path| self.place(path)) {
                Some(key) => keys.push(key),
                None => self.types.warnings.push(format!("the rule {rule} is left out")),
            }
        }
        keys
    }

    /// Returns a path as fields in Rust, or as a text.
    fn place(&self, path: &str) -> String {
        self.rust(path).unwrap_or_else(|| string(path))
    }

    /// Returns a path as fields in Rust; `None` if a step is no field of a printed type.
    fn rust(&self, path: &str) -> Option<String> {
        let mut steps = path.strip_prefix('.')?.split('.').peekable();
        if steps.next_if_eq(&"metadata").is_some() {
            let (_, rust) = METADATA.iter().find(|(json, _)| steps.peek() == Some(json))?;
            return (steps.count() == 1).then(|| format!("metadata.{rust}"));
        }
        let mut fields = self.fields.to_vec();
        let mut rust = Vec::new();
        while let Some(step) = steps.next() {
            let (name, position) = step.split_once('[').map_or((step, None), |(name, rest)| {
                (name, Some(rest.strip_suffix(']').unwrap_or("?")))
            });
            let field = fields.iter().find(|field| field.json == name)?;
            let mark = match position {
                None => String::new(),
                Some("*") => "[]".to_owned(),
                Some(place) => format!("[{}]", place.parse::<usize>().ok()?),
            };
            let is_list = ["Vec<", "Option<Vec<"].iter().any(|it| field.rust.starts_with(it));
            let ends_in_list = is_list && steps.peek().is_none();
            if is_list == mark.is_empty() && !ends_in_list {
                return None;
            }
            rust.push(format!("{}{mark}", field.identifier));
            fields = self.types.fields_of(&field.rust);
        }
        Some(rust.join("."))
    }
}
