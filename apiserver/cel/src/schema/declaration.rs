//! The part of a structural schema that expressions can see.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::sizes::{self, DATE, MIN_BOOL, MIN_DATE_TIME, MIN_DURATION, MIN_NUMBER, MIN_STRING};
use super::{is_set, text};
use crate::syntax::identifiers::escape;
use crate::types::shape::{ListKind, ListShape, ObjectShape, Property, Shape};
use crate::types::{FieldType, ObjectType, Type};

/// Deepest schema that is read; deeper parts cannot be selected. The JSON of a definition is
/// bounded by the parser.
const MAX_DEPTH: usize = 200;

/// A schema as expressions see it. Parts that have no type (unknown fields, items without a schema)
/// are left out.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The type with its parts.
    pub content: Content,
    /// Largest number of characters, items or entries; 0 where there are none.
    pub max_elements: u64,
    /// Least bytes of JSON.
    pub min_size: u64,
}

/// The type of a declaration.
#[derive(Debug, Clone)]
pub enum Content {
    /// A type without parts, and its shape.
    Scalar(Type, Shape),
    /// A list of items.
    List(Box<Declaration>, ListKind),
    /// A map from texts to values.
    Map(Box<Declaration>),
    /// An object with its properties, sorted by their names in expressions.
    Object(Vec<Field>),
}

/// A property of a declaration.
#[derive(Debug, Clone)]
pub struct Field {
    /// Name in JSON.
    pub json_name: String,
    /// Name in expressions; of a field that is not selectable the name in JSON.
    pub name: String,
    /// Whether an expression can name the field: `1a` is found by `dyn(self)['1a']` only.
    pub is_selectable: bool,
    /// Whether null is a value of the type.
    pub is_nullable: bool,
    /// The declaration of the property.
    pub declaration: Declaration,
}

impl Declaration {
    /// Reads a structural schema; `is_resource` for the root of a resource, which has `kind`,
    /// `apiVersion` and `metadata` with name and generateName, regardless of the schema.
    ///
    /// `None` if expressions cannot see such data, as a list without a schema of its items.
    pub fn of_schema(schema: &Value, is_resource: bool) -> Option<Declaration> {
        read(schema, is_resource, 0)
    }

    /// The declaration of a property by its name in expressions.
    pub fn field(&self, name: &str) -> Option<&Declaration> {
        let Content::Object(fields) = &self.content else { return None };
        let at = fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok()?;
        fields.get(at).filter(|field| field.is_selectable).map(|field| &field.declaration)
    }

    /// The declaration of the items of a list, or of the values of a map.
    pub fn element(&self) -> Option<&Declaration> {
        match &self.content {
            Content::List(element, _) | Content::Map(element) => Some(element),
            Content::Scalar(..) | Content::Object(_) => None,
        }
    }

    /// The type under a name: `Object` gives `Object.spec` to the property `spec`, `@idx` and
    /// `@elem` to the parts of lists and maps.
    pub fn to_type(&self, name: &str) -> Type {
        self.to_type_and_shape(name).0
    }

    /// Type and shape; both share the object types.
    pub fn to_type_and_shape(&self, name: &str) -> (Type, Shape) {
        match &self.content {
            Content::Scalar(ty, shape) => (ty.clone(), shape.clone()),
            Content::List(items, kind) => {
                let (ty, items) = items.to_type_and_shape(&format!("{name}.@idx"));
                let shape = ListShape { items, kind: kind.clone() };
                (Type::List(Arc::new(ty)), Shape::List(Arc::new(shape)))
            }
            Content::Map(values) => {
                let (ty, values) = values.to_type_and_shape(&format!("{name}.@elem"));
                (Type::Map(Arc::new(Type::String), Arc::new(ty)), Shape::Map(Arc::new(values)))
            }
            Content::Object(fields) => object(fields, name),
        }
    }
}

fn object(fields: &[Field], name: &str) -> (Type, Shape) {
    let (mut types, mut properties) = (Vec::new(), Vec::new());
    for field in fields {
        let (ty, shape) = field.declaration.to_type_and_shape(&format!("{name}.{}", field.name));
        let field_name: Arc<str> = field.name.as_str().into();
        let max_size = Some(field.declaration.max_elements);
        if field.is_selectable {
            types.push((Arc::clone(&field_name), FieldType { ty, max_size }));
        }
        let json_name = field.json_name.as_str().into();
        properties.push(Property {
            json_name,
            name: field_name,
            shape,
            is_nullable: field.is_nullable,
        });
    }
    let ty = Arc::new(ObjectType { name: name.into(), fields: types });
    let shape = ObjectShape { ty: Arc::clone(&ty), properties };
    (Type::Object(ty), Shape::Object(Arc::new(shape)))
}

fn scalar(ty: Type, shape: Shape, max_elements: u64, min_size: u64) -> Option<Declaration> {
    Some(Declaration { content: Content::Scalar(ty, shape), max_elements, min_size })
}

fn read(schema: &Value, is_resource: bool, depth: usize) -> Option<Declaration> {
    if depth > MAX_DEPTH {
        return None;
    }
    if is_set(schema, "x-kubernetes-int-or-string") {
        return scalar(Type::Dyn, Shape::IntOrString, sizes::max_text(schema), 1);
    }
    match text(schema, "type") {
        // Type and metadata make an object of the root even if the schema does not say so.
        "object" if is_resource => fields(&with_metadata(schema), schema, depth),
        "array" => list(schema, depth),
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => map(schema, values, depth),
            None => fields(properties(schema), schema, depth),
        },
        "string" => string(schema),
        "boolean" => scalar(Type::Bool, Shape::Bool, 0, MIN_BOOL),
        "number" => scalar(Type::Double, Shape::Double, 0, MIN_NUMBER),
        "integer" => scalar(Type::Int, Shape::Int, 0, MIN_NUMBER),
        _ => None,
    }
}

fn read_inner(schema: &Value, depth: usize) -> Option<Declaration> {
    read(schema, is_set(schema, "x-kubernetes-embedded-resource"), depth + 1)
}

fn list(schema: &Value, depth: usize) -> Option<Declaration> {
    let items = read_inner(schema.get("items")?, depth)?;
    let keys = || schema.get("x-kubernetes-list-map-keys")?.as_array();
    let kind = match text(schema, "x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => {
            let keys = keys().into_iter().flatten().filter_map(Value::as_str);
            // The server looks for the escaped names in the data (`escapeKeyProps`), and finds no
            // key that has an escape: all elements then have one key.
            let name = |key: &str| escape(key).unwrap_or_else(|| key.to_owned());
            ListKind::Map(keys.map(name).map(Arc::from).collect())
        }
        _ => ListKind::Atomic,
    };
    let max_elements = sizes::max_items(schema, items.min_size);
    Some(Declaration { content: Content::List(Box::new(items), kind), max_elements, min_size: 2 })
}

fn map(schema: &Value, values: &Value, depth: usize) -> Option<Declaration> {
    let values = read_inner(values, depth)?;
    let max_elements = sizes::max_properties(schema, values.min_size);
    Some(Declaration { content: Content::Map(Box::new(values)), max_elements, min_size: 2 })
}

fn string(schema: &Value) -> Option<Declaration> {
    let request = sizes::max_of_request(schema);
    match text(schema, "format") {
        // The length of bytes is not multiplied: base64 has one byte for each character.
        "byte" => {
            let max = sizes::limit(schema, "maxLength").unwrap_or(request);
            scalar(Type::Bytes, Shape::Bytes, max, MIN_STRING)
        }
        "duration" => scalar(Type::Duration, Shape::Duration, request, MIN_DURATION),
        "date" => scalar(Type::Timestamp, Shape::Timestamp, request, DATE),
        "date-time" => scalar(Type::Timestamp, Shape::Timestamp, request, MIN_DATE_TIME),
        _ => scalar(Type::String, Shape::String, sizes::max_text(schema), MIN_STRING),
    }
}

fn properties(schema: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema.get("properties").and_then(Value::as_object).unwrap_or(&NONE)
}

/// The properties of a resource's root: those of the schema if they have all types, or with these
/// put in place.
fn with_metadata(schema: &Value) -> Map<String, Value> {
    let mut all = properties(schema).clone();
    let is = |at: &[&str], wanted: &str| {
        let mut part = all.get(*at.first()?)?;
        for name in at.get(1..)? {
            part = part.get("properties")?.get(name)?;
        }
        (text(part, "type") == wanted).then_some(())
    };
    let is_complete = is(&["kind"], "string").is_some()
        && is(&["apiVersion"], "string").is_some()
        && is(&["metadata"], "object").is_some()
        && is(&["metadata", "name"], "string").is_some()
        && is(&["metadata", "generateName"], "string").is_some();
    if !is_complete {
        let string = json!({"type": "string"});
        let names = json!({"name": string, "generateName": string});
        all.insert("kind".to_owned(), string.clone());
        all.insert("apiVersion".to_owned(), string);
        all.insert("metadata".to_owned(), json!({"type": "object", "properties": names}));
    }
    all
}

fn fields(properties: &Map<String, Value>, schema: &Value, depth: usize) -> Option<Declaration> {
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    // An empty object is `{}`.
    let mut min_size: u64 = 2;
    let mut fields = Vec::new();
    for (json_name, property) in properties {
        let Some(declaration) = read_inner(property, depth) else { continue };
        // The server fills in defaults, so that these need not be in a request.
        if required.contains(&json_name.as_str())
            && property.get("default").is_none_or(Value::is_null)
        {
            let size =
                (json_name.len() as u64).saturating_add(declaration.min_size).saturating_add(4);
            min_size = min_size.saturating_add(size);
        }
        let escaped = escape(json_name);
        fields.push(Field {
            json_name: json_name.clone(),
            is_selectable: escaped.is_some(),
            name: escaped.unwrap_or_else(|| json_name.clone()),
            is_nullable: is_set(property, "nullable"),
            declaration,
        });
    }
    fields.sort_by(|left, right| left.name.cmp(&right.name));
    Some(Declaration { content: Content::Object(fields), max_elements: 0, min_size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(schema: Value) -> Declaration {
        Declaration::of_schema(&schema, false).expect("a declaration")
    }

    #[test]
    fn sizes_are_those_of_kube_apiserver() {
        for (schema, max_elements, min_size) in [
            (json!({"type": "string"}), 3_145_726, 2),
            (json!({"type": "string", "maxLength": 10}), 40, 2),
            (json!({"type": "string", "enum": ["a", "bcd"]}), 3, 2),
            (json!({"type": "string", "format": "byte", "maxLength": 10}), 10, 2),
            (json!({"type": "string", "format": "date-time"}), 32, 21),
            (json!({"type": "string", "format": "duration"}), 32, 3),
            (json!({"type": "array", "items": {"type": "integer"}}), 1_572_863, 2),
            (json!({"type": "array", "items": {"type": "integer"}, "maxItems": 4}), 4, 2),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), 393_215, 2),
            (json!({"x-kubernetes-int-or-string": true}), 3_145_726, 1),
        ] {
            let found = declaration(schema.clone());
            assert_eq!((found.max_elements, found.min_size), (max_elements, min_size), "{schema}");
        }
    }

    #[test]
    fn required_properties_without_a_default_count_for_the_least_size() {
        let schema = json!({"type": "object", "required": ["ab", "c"], "properties": {
            "ab": {"type": "integer"}, "c": {"type": "string", "default": ""}, "d": {"type": "string"}}});
        assert_eq!(declaration(schema).min_size, 2 + 2 + 1 + 4);
    }

    #[test]
    fn parts_without_a_type_are_left_out() {
        let schema = json!({"type": "object", "properties": {
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}},
            "min-size": {"type": "integer"}, "a b": {"type": "string"}}});
        let found = declaration(schema);
        assert!(found.field("any").is_none() && found.field("list").is_none());
        assert!(found.field("min__dash__size").is_some());
        let Content::Object(fields) = &found.content else { panic!("an object") };
        let names: Vec<_> = fields.iter().map(|it| (it.name.as_str(), it.is_selectable)).collect();
        assert_eq!(names, [("a b", false), ("min__dash__size", true)]);
    }

    #[test]
    fn the_root_of_a_resource_has_a_name_and_no_other_metadata() {
        let root = Declaration::of_schema(&json!({"type": "object"}), true).expect("a declaration");
        assert_eq!(root.to_type("Object").to_string(), "Object");
        let metadata = root.field("metadata").expect("metadata");
        assert!(metadata.field("name").is_some() && metadata.field("labels").is_none());
    }
}
