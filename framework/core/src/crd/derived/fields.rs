//! The schema of an object, field by field.

// DESIGN.md, 218: A number that JSON does not have is no default

use schemars::{Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use super::keys::{Keys, SchemaNode, in_json, object_of};
use super::merge::{flatten, has_field};
use super::shape::{FieldSchema, Flat};
use crate::crd::shapes::{NEEDED, REFILLED, REFUSED, same_name};

/// An object schema under construction.
#[derive(Debug)]
pub struct Fields<'g> {
    generator: &'g mut SchemaGenerator,
    /// Whether the values that serde writes are described, not those that it reads.
    is_written: bool,
    object: Map<String, Value>,
    /// The field that was added last, until the next one.
    current: Option<PendingField>,
}

/// A field under construction.
#[derive(Debug)]
struct PendingField {
    name: &'static str,
    is_required: bool,
    /// Whether serde refuses an object without the field, unless the field has a default.
    is_needed: bool,
    /// Whether serde reads null.
    takes_null: fn() -> bool,
    node: Map<String, Value>,
}

impl<'g> Fields<'g> {
    /// Begins an object; with `closed`, serde refuses other fields.
    pub fn new(generator: &'g mut SchemaGenerator, closed: bool) -> Self {
        let mut object = Map::new();
        object.insert("type".to_owned(), "object".into());
        if closed {
            object.insert("additionalProperties".to_owned(), false.into());
        }
        let is_written = generator.contract().is_serialize();
        Self { generator, is_written, object, current: None }
    }

    /// Adds a field, required if serde refuses an object without it.
    #[must_use]
    pub fn field(mut self, name: &'static str, shape: FieldSchema) -> Self {
        self.close();
        let node = nullable((shape.schema)(self.generator), shape);
        let is_required = self.is_written || !(shape.absent)();
        let is_needed = is_required && !self.is_written;
        let takes_null = shape.null;
        self.current = Some(PendingField { name, is_required, is_needed, takes_null, node });
        self
    }

    /// Adds the fields of a flattened field.
    #[must_use]
    pub fn flat(mut self, schema: Flat) -> Self {
        self.close();
        flatten(&mut self.object, schema(self.generator));
        self
    }

    /// The field may be absent.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.set_required(false);
        self
    }

    /// The field must be there, even if serde accepts an object without the field.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.set_required(true);
        self
    }

    /// Serde leaves some values of the field out.
    #[must_use]
    pub fn left_out(mut self) -> Self {
        if self.is_written {
            self.set_required(false);
        }
        self
    }

    /// Serde writes the field but does not read it.
    #[must_use]
    pub fn not_read(self) -> Self {
        self.only_if(true, "readOnly")
    }

    /// Serde reads the field but does not write it.
    #[must_use]
    pub fn not_written(self) -> Self {
        self.only_if(false, "writeOnly")
    }

    /// Keeps the field in one description, of reading or of writing, with a remark.
    fn only_if(mut self, is_written: bool, remark: &str) -> Self {
        if self.is_written == is_written {
            self.keyword(remark, true)
        } else {
            self.current = None;
            self
        }
    }

    fn set_required(&mut self, is_required: bool) {
        if let Some(field) = &mut self.current {
            field.is_required = is_required;
        }
    }

    /// The field may be absent, and the server fills in this value.
    #[must_use]
    pub fn default<T: Serialize>(self, value: T) -> Self {
        self.default_unless(value, |_| false)
    }

    /// As `default`, unless serde leaves that value out.
    #[must_use]
    pub fn default_unless<T: Serialize>(
        self,
        value: T,
        is_left_out: impl FnOnce(&T) -> bool,
    ) -> Self {
        let value = if is_left_out(&value) { None } else { in_json(&value) };
        let is_number = is_number_type::<T>();
        self.default_of(value, is_number)
    }

    /// Serde leaves some values of the field out; `is_default` says that the default is one of
    /// them.
    #[must_use]
    pub fn left_out_as_default(mut self, is_default: bool) -> Self {
        if !is_default && !self.is_written && self.node().contains_key("default") {
            self.node().insert(REFILLED.to_owned(), true.into());
        }
        self.left_out()
    }

    /// As `default`, with the value in JSON.
    #[must_use]
    pub fn default_json(self, value: Option<Value>) -> Self {
        self.default_of(value, false)
    }

    /// The default, which may be known to be a number.
    fn default_of(mut self, value: Option<Value>, is_number: bool) -> Self {
        if !self.is_written {
            self.set_required(false);
        }
        let Some(value) = value else { return self };
        if value.is_null() && (is_number || self.is_number_without_null()) {
            self.node().insert(REFUSED.to_owned(), NO_NUMBER.into());
        } else {
            self.node().insert("default".to_owned(), value);
        }
        self
    }

    /// Whether the current field is a number, maybe behind a name, that serde does not read from
    /// null.
    fn is_number_without_null(&self) -> bool {
        let Some(PendingField { node, takes_null, .. }) = &self.current else { return false };
        let name =
            node.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let named = name.and_then(|name| self.generator.definitions().get(name)?.as_object());
        is_number_schema(named.unwrap_or(node)) && !takes_null()
    }

    /// The default stands in the schema alone: where no server fills the default in, serde needs
    /// the field.
    #[must_use]
    pub fn default_of_schema(mut self) -> Self {
        if self.current.as_ref().is_some_and(|field| field.is_needed) {
            self.node().insert(NEEDED.to_owned(), true.into());
        }
        self
    }

    /// Ends the fields: further keys apply to the object.
    #[must_use]
    pub fn whole(mut self) -> SchemaNode {
        self.close();
        SchemaNode(self.object)
    }

    /// Returns the finished schema.
    #[must_use]
    pub fn finish(self) -> Schema {
        self.whole().finish()
    }

    /// Ends the current field.
    fn close(&mut self) {
        let Some(field) = self.current.take() else { return };
        if has_field(&self.object, field.name) {
            self.object.insert(REFUSED.to_owned(), same_name(field.name).into());
        }
        let properties =
            self.object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            // Without keywords: any value, in schemars' spelling.
            let node = if field.node.is_empty() { true.into() } else { Value::Object(field.node) };
            properties.insert(field.name.to_owned(), node);
        }
        let required = self.object.entry("required");
        if field.is_required
            && let Value::Array(required) = required.or_insert_with(|| Value::Array(Vec::new()))
        {
            required.push(field.name.into());
        }
    }
}

impl Keys for Fields<'_> {
    fn node(&mut self) -> &mut Map<String, Value> {
        match &mut self.current {
            Some(field) => &mut field.node,
            None => &mut self.object,
        }
    }
}

impl FieldSchema {
    /// Returns the schema of a field of a kind.
    #[must_use]
    pub fn of_root(self, generator: &mut SchemaGenerator) -> Schema {
        nullable((self.schema)(generator), self).into()
    }

    /// As [`of_root`](Self::of_root), of a field for which serde fills in a value, unless serde
    /// leaves that value out.
    #[must_use]
    pub fn of_root_or<T: Serialize>(
        self,
        generator: &mut SchemaGenerator,
        value: fn() -> T,
        is_left_out: Option<fn(&T) -> bool>,
    ) -> Schema {
        let mut schema = self.of_root(generator);
        let value = value();
        if !is_left_out.is_some_and(|is_left_out| is_left_out(&value))
            && let Some(value) = in_json(&value)
        {
            if is_left_out.is_some() {
                schema.insert(REFILLED.to_owned(), true.into());
            }
            let is_number =
                is_number_type::<T>() || schema.as_object().is_some_and(is_number_schema);
            if value.is_null() && is_number && !(self.null)() {
                schema.insert(REFUSED.to_owned(), NO_NUMBER.into());
            } else {
                schema.insert("default".to_owned(), value);
            }
        }
        schema
    }
}

/// The fault of a default that serde writes as null although it is a number.
const NO_NUMBER: &str = "its default is infinite or `NaN`, which no number of JSON is; give a finite default, or make the field an `Option`";

/// Whether null can only be a number that JSON does not have.
fn is_number_type<T>() -> bool {
    matches!(std::any::type_name::<T>().trim_start_matches('&'), "f64" | "f32")
}

/// Whether a schema is that of numbers, without null.
fn is_number_schema(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|name| name == "number") && !mentions_null(schema)
}

/// Marks a schema that does not mention null, if serde reads null.
///
/// Schemas of schemars mention null; the schemas of Kubernetes types, of functions and of the types
/// in `with` do not know whether an `Option` is around them.
fn nullable(schema: Schema, shape: FieldSchema) -> Map<String, Value> {
    let mut node = object_of(schema);
    let restricts = |key: &String| {
        key.starts_with("x-kubernetes-")
            || matches!(
                key.as_str(),
                "type" | "$ref" | "enum" | "const" | "allOf" | "anyOf" | "oneOf"
            )
    };
    // A schema without keywords takes null as it is.
    if node.keys().any(restricts) && !mentions_null(&node) && (shape.null)() {
        node.insert("nullable".to_owned(), true.into());
    }
    node
}

/// Whether a schema says that null is allowed.
fn mentions_null(node: &Map<String, Value>) -> bool {
    let lists_null = |key: &str| {
        let values = node.get(key).and_then(Value::as_array);
        values.is_some_and(|values| values.contains(&Value::Null))
    };
    let any_mentions = |key: &str| {
        let branches = node.get(key).and_then(Value::as_array).into_iter().flatten();
        branches.filter_map(Value::as_object).any(mentions_null)
    };
    node.contains_key("nullable")
        || match node.get("type") {
            Some(Value::Array(types)) => types.contains(&"null".into()),
            Some(Value::String(name)) => name == "null",
            _ => false,
        }
        || lists_null("enum")
        || any_mentions("anyOf")
        || any_mentions("oneOf")
}
