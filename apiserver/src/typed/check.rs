//! Values that are not what the type declares: an object, a list, a text, a number, a truth value.

use serde_json::Value;

use super::TypeSchema;
use super::table::{Id, Object, Scalar, Shape, Table};
use crate::go;

/// The first value of a wrong type, in the words of Go's decoder. Nulls fit everywhere.
///
/// Metadata of the object itself is left to whoever reads it.
pub(super) fn mismatch(schema: &TypeSchema, value: &Value) -> Option<String> {
    let mut checker =
        Checker { table: schema.table(), owner: String::new(), path: String::new(), top: true };
    checker.check(schema.root(), value)
}

struct Checker<'a> {
    table: &'a Table,
    /// The innermost structure, such as `PodSpec`.
    owner: String,
    /// Fields on the way, without keys and indices.
    path: String,
    top: bool,
}

impl Checker<'_> {
    fn check(&mut self, id: Id, value: &Value) -> Option<String> {
        let table = self.table;
        match (table.shape(id), value) {
            (Shape::Any, _) | (_, Value::Null) => None,
            (Shape::Object(object), Value::Object(_)) => self.check_map(id, object, value),
            (Shape::List(_, items), Value::Array(list)) => {
                list.iter().find_map(|item| self.check(*items, item))
            }
            (Shape::Scalar(scalar, _), value) if fits(*scalar, value) => None,
            (_, other) => {
                let field = format!("{}.{}", self.owner, self.path);
                Some(go::mismatch(other, &field, &go_type(table, id)))
            }
        }
    }

    fn check_map(&mut self, id: Id, object: &Object, value: &Value) -> Option<String> {
        let top = std::mem::replace(&mut self.top, false);
        let name = self.table.node(id).name.as_deref();
        let inner = name.map(|name| name.rsplit('.').next().unwrap_or(name).to_owned());
        let outer = inner.map(|inner| std::mem::replace(&mut self.owner, inner));
        let found = value.as_object().into_iter().flatten().find_map(|(key, value)| {
            match object.fields.get(key.as_str()) {
                Some(_) if top && key == "metadata" => None,
                Some(field) => self.below(key, field.node, value),
                None => object.element.and_then(|element| self.check(element, value)),
            }
        });
        if let Some(outer) = outer {
            self.owner = outer;
        }
        found
    }

    fn below(&mut self, key: &str, id: Id, value: &Value) -> Option<String> {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let found = self.check(id, value);
        self.path.truncate(length);
        found
    }
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::String => value.is_string(),
        Scalar::Integer | Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::IntOrString | Scalar::Quantity => value.is_string() || value.is_number(),
        Scalar::IntOrStringExtension => true,
    }
}

/// How Go calls a type, as near as its schema tells.
fn go_type(table: &Table, id: Id) -> String {
    let node = table.node(id);
    if let Some(name) = node.name.as_deref() {
        let mut parts = name.rsplit('.');
        let last = parts.next().unwrap_or_default();
        let package = parts.next().unwrap_or_default();
        return format!("{package}.{last}");
    }
    match &node.shape {
        Shape::Any => "interface {}".to_owned(),
        Shape::List(_, items) => format!("[]{}", go_type(table, *items)),
        Shape::Object(object) => {
            let element = object.element.map(|element| go_type(table, element));
            format!("map[string]{}", element.as_deref().unwrap_or("interface {}"))
        }
        Shape::Scalar(scalar, format) => match scalar {
            Scalar::Integer | Scalar::Number => format.as_deref().unwrap_or("int64").to_owned(),
            Scalar::Boolean => "bool".to_owned(),
            Scalar::String => "string".to_owned(),
            Scalar::IntOrString | Scalar::IntOrStringExtension => "intstr.IntOrString".to_owned(),
            Scalar::Quantity => "resource.Quantity".to_owned(),
        },
    }
}
