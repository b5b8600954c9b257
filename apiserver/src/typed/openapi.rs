//! Conversion of OpenAPI v3 schemas to types and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::TypeSchema;
use super::builtin;
use super::table::{
    Id, ListMerge, ObjectType, ScalarType, Strategy, TypeShape, TypeTable, TypedField, UnsetValue,
};

/// Depth beyond which a schema is read as "anything"; real schemas stay below 30.
const MAX_DEPTH: usize = 128;

/// Reads the schema of a custom resource.
pub(super) fn read(schema: &Value) -> TypeSchema {
    let mut reader = SchemaReader { table: TypeTable::new(), meta: None };
    let mut object = match reader.shape(schema, false, 0) {
        TypeShape::Object(object) => object,
        _ => ObjectType { element: Some(TypeTable::ANY), ..ObjectType::default() },
    };
    // The root is always a resource, whether or not the schema says so.
    reader.embed(&mut object);
    let root = reader.table.add(None, TypeShape::Object(object));
    TypeSchema::new(Arc::new(reader.table), root, None, false)
}

/// State of a conversion from a schema.
struct SchemaReader {
    table: TypeTable,
    /// The type of metadata, once imported.
    meta: Option<Id>,
}

impl SchemaReader {
    /// Adds the type of a schema and returns its number.
    fn node(&mut self, schema: &Value, open: bool, depth: usize) -> Id {
        // The schema comes from a client: without a limit the recursion could overflow the stack.
        if depth > MAX_DEPTH {
            return TypeTable::ANY;
        }
        match self.shape(schema, open, depth) {
            TypeShape::Any => TypeTable::ANY,
            shape => self.table.add(None, shape),
        }
    }

    /// Returns the shape of a schema. `open` if a schema above preserves unknown fields, which
    /// apply tolerates further below too.
    fn shape(&mut self, schema: &Value, open: bool, depth: usize) -> TypeShape {
        if flag(schema, "x-kubernetes-int-or-string") {
            // Independent of `type`.
            return TypeShape::Scalar(ScalarType::IntOrStringExtension, None);
        }
        let format = || schema.get("format").and_then(Value::as_str).map(Into::into);
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(schema, open, depth),
            Some("array") => self.list(schema, open, depth),
            Some("string") => TypeShape::Scalar(ScalarType::String, format()),
            Some("integer") => TypeShape::Scalar(ScalarType::Integer, format()),
            Some("number") => TypeShape::Scalar(ScalarType::Number, format()),
            Some("boolean") => TypeShape::Scalar(ScalarType::Boolean, None),
            _ => TypeShape::Any,
        }
    }

    /// Returns the shape of a schema of type `object`.
    fn object(&mut self, schema: &Value, open: bool, depth: usize) -> TypeShape {
        let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
        let open = open || preserve;
        let mut object = ObjectType {
            atomic: text(schema, "x-kubernetes-map-type") == Some("atomic"),
            ..ObjectType::default()
        };
        let required = schema.get("required").and_then(Value::as_array);
        let required = |name: &str| {
            required.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name)))
        };
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let field = TypedField {
                    node: self.node(property, open, depth + 1),
                    required: required(name),
                    default: property.get("default").cloned(),
                    written: UnsetValue::Default,
                    strategy: Strategy::default(),
                    map_type: None,
                    wire: "",
                };
                object.fields.insert(name.as_str().into(), field);
            }
        }
        match schema.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => {
                object.element = Some(self.node(schema, open, depth + 1));
            }
            Some(Value::Bool(true)) => object.element = Some(TypeTable::ANY),
            Some(_) => {}
            None if open || object.fields.is_empty() => {
                object.element = Some(TypeTable::ANY);
                // Undeclared keys are tolerated by apply, but pruned unless the schema preserves
                // them.
                object.implied = !preserve;
            }
            None => {}
        }
        if flag(schema, "x-kubernetes-embedded-resource") {
            self.embed(&mut object);
        }
        TypeShape::Object(object)
    }

    /// Returns the shape of a schema of type `array`.
    fn list(&mut self, schema: &Value, open: bool, depth: usize) -> TypeShape {
        let kind = match text(schema, "x-kubernetes-list-type") {
            Some("set") => ListMerge::Set,
            Some("map") => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                ListMerge::Map(keys.map(str::to_owned).collect())
            }
            Some(_) => ListMerge::Atomic(true),
            None => ListMerge::Atomic(false),
        };
        let items = schema.get("items").map_or(TypeTable::ANY, |s| self.node(s, open, depth + 1));
        TypeShape::List(kind, items)
    }

    /// Adds apiVersion, kind and metadata, which every object has.
    fn embed(&mut self, object: &mut ObjectType) {
        let meta = self.object_meta();
        let string = self.table.add(None, TypeShape::Scalar(ScalarType::String, None));
        for (name, node) in [("apiVersion", string), ("kind", string), ("metadata", meta)] {
            let field = TypedField {
                node,
                required: false,
                default: None,
                written: UnsetValue::Default,
                strategy: Strategy::default(),
                map_type: None,
                wire: "",
            };
            object.fields.insert(name.into(), field);
        }
    }

    /// Returns the type of metadata; imported on first use.
    fn object_meta(&mut self) -> Id {
        // A single copy serves the object and all embedded resources.
        match self.meta {
            Some(id) => id,
            None => {
                let (table, id) = builtin::object_meta();
                let id = self.table.import(table, id, &mut BTreeMap::new());
                self.meta = Some(id);
                id
            }
        }
    }
}

/// Returns a boolean; false when absent.
fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Returns a text.
fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}

/// Returns the schema of a type: a reference if the type has a name.
pub(super) fn write(table: &TypeTable, id: Id) -> Value {
    Writer { table, named: false }.reference(id)
}

/// Returns the schemas of all named types that a type needs, by name.
pub(super) fn components(table: &TypeTable, root: Id) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut seen = vec![false; table.len()];
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        // Types can be recursive: each is visited once.
        if seen.get(id).copied().unwrap_or(true) {
            continue;
        }
        seen[id] = true;
        let node = table.node(id);
        if let Some(name) = &node.name {
            let write = || Writer { table, named: true }.definition(id);
            found.entry(name.to_string()).or_insert_with(write);
        }
        match &node.shape {
            TypeShape::List(_, items) => open.push(*items),
            TypeShape::Object(object) => {
                open.extend(object.fields.values().map(|field| field.node));
                open.extend(object.element);
            }
            TypeShape::Any | TypeShape::Scalar(..) => {}
        }
    }
    found
}

/// Writes schemas; `named` for the server's own types.
#[derive(Clone, Copy)]
struct Writer<'a> {
    table: &'a TypeTable,
    named: bool,
}

impl Writer<'_> {
    /// Returns a reference to a named type, or the schema of an unnamed type.
    fn reference(self, id: Id) -> Value {
        match &self.table.node(id).name {
            Some(name) => json!({ "$ref": format!("#/components/schemas/{name}") }),
            None => self.definition(id),
        }
    }

    /// Returns the schema of a type, spelled out up to the next named types.
    fn definition(self, id: Id) -> Value {
        match self.table.shape(id) {
            // Schemas of the server's own types do not mention unknown fields.
            TypeShape::Any if self.named => json!({}),
            TypeShape::Any => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            TypeShape::Scalar(scalar, format) => write_scalar(*scalar, format.as_deref()),
            TypeShape::List(kind, items) => self.list(kind, *items),
            TypeShape::Object(object) => self.object(object),
        }
    }

    /// Returns the schema of a list.
    fn list(self, kind: &ListMerge, items: Id) -> Value {
        let mut schema = Map::new();
        schema.insert("type".into(), "array".into());
        schema.insert("items".into(), self.element(items));
        match kind {
            ListMerge::Atomic(false) => {}
            ListMerge::Atomic(true) => {
                schema.insert("x-kubernetes-list-type".into(), "atomic".into());
            }
            ListMerge::Set => {
                schema.insert("x-kubernetes-list-type".into(), "set".into());
            }
            ListMerge::Map(keys) => {
                schema.insert("x-kubernetes-list-type".into(), "map".into());
                schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            }
        }
        Value::Object(schema)
    }

    /// Returns the schema of list items or map values; those of the server's own types have a zero
    /// default.
    fn element(self, id: Id) -> Value {
        let schema = self.reference(id);
        if !self.named {
            return schema;
        }
        let named = self.table.node(id).name.is_some();
        let default = match self.table.shape(id) {
            TypeShape::Object(object) if named && !object.fields.is_empty() => json!({}),
            TypeShape::Scalar(ScalarType::String, None) if !named => json!(""),
            TypeShape::Scalar(ScalarType::Integer | ScalarType::Number, _) if !named => json!(0),
            TypeShape::Scalar(ScalarType::Boolean, _) if !named => json!(false),
            _ => return schema,
        };
        let mut schema = wrapped(schema);
        schema["default"] = default;
        schema
    }

    /// Returns the schema of a map.
    fn object(self, object: &ObjectType) -> Value {
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        let required = object.fields.iter().filter(|(_, field)| field.required);
        let required: Vec<&str> = required.map(|(name, _)| &**name).collect();
        if !required.is_empty() {
            schema.insert("required".into(), json!(required));
        }
        if !object.fields.is_empty() {
            let fields = object.fields.iter();
            let fields = fields.map(|(name, field)| (name.to_string(), self.field(field)));
            schema.insert("properties".into(), Value::Object(fields.collect()));
        }
        if object.atomic {
            schema.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        match object.element {
            Some(TypeTable::ANY) if object.implied || self.named => {}
            Some(TypeTable::ANY) => {
                schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            }
            Some(id) => {
                schema.insert("additionalProperties".into(), self.element(id));
            }
            None => {}
        }
        Value::Object(schema)
    }

    /// Returns the schema of a field, with default and merge strategy.
    fn field(self, field: &TypedField) -> Value {
        let mut schema = match wrapped(self.reference(field.node)) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        if let Some(default) = &field.default {
            schema.insert("default".into(), default.clone());
        }
        if let Some(map_type) = field.map_type {
            schema.insert("x-kubernetes-map-type".into(), map_type.into());
        }
        let strategy = &field.strategy;
        let names: Vec<&str> = [
            (strategy.merge, "merge"),
            (strategy.retain_keys, "retainKeys"),
            (strategy.replace, "replace"),
        ]
        .into_iter()
        .filter_map(|(on, name)| on.then_some(name))
        .collect();
        if !names.is_empty() {
            schema.insert("x-kubernetes-patch-strategy".into(), names.join(",").into());
        }
        if let Some(key) = &strategy.key {
            schema.insert("x-kubernetes-patch-merge-key".into(), (**key).into());
        }
        Value::Object(schema)
    }
}

/// Returns the schema of a scalar.
fn write_scalar(scalar: ScalarType, format: Option<&str>) -> Value {
    let name = match scalar {
        ScalarType::String => "string",
        ScalarType::Integer => "integer",
        ScalarType::Number => "number",
        ScalarType::Boolean => "boolean",
        ScalarType::IntOrString => {
            return json!({
                "format": "int-or-string",
                "oneOf": [{ "type": "integer" }, { "type": "string" }],
            });
        }
        ScalarType::IntOrStringExtension => {
            return json!({ "x-kubernetes-int-or-string": true });
        }
        ScalarType::Quantity => {
            return json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] });
        }
    };
    match format {
        Some(format) => json!({ "type": name, "format": format }),
        None => json!({ "type": name }),
    }
}

/// Returns a reference wrapped in `allOf`, so that other keywords may stand beside the reference.
fn wrapped(schema: Value) -> Value {
    if schema.get("$ref").is_some() { json!({ "allOf": [schema] }) } else { schema }
}
