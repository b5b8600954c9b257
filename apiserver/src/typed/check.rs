//! Check of values against the JSON type that their schema declares.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Number, Value};
use windlass_cel::library::timestamp::Timestamp;

use super::TypeSchema;
use super::table::{Id, ObjectType, ScalarType, TypeShape, TypeTable};
use crate::go;

/// Go's named string types, by structure and field.
static NAMES: LazyLock<BTreeMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lines = include_str!("names.txt").lines().filter(|line| !line.starts_with('#'));
    let parts = lines
        .filter_map(|line| line.split_once(' ')?.1.split_once(' ').zip(line.split(' ').next()));
    parts.map(|((field, name), owner)| ((owner, field), name)).collect()
});

/// Returns the first value of a wrong type, in the words of Go's decoder. Nulls fit everywhere.
///
/// Metadata of the root object is checked by the caller.
pub(super) fn mismatch(schema: &TypeSchema, value: &Value) -> Option<String> {
    let mut checker = Checker {
        table: schema.table(),
        owner: String::new(),
        path: String::new(),
        top: true,
        converts: false,
    };
    checker.check(schema.root(), value)
}

/// Returns the first value of a wrong type, in the words of the converter of strategic merge
/// patches.
pub(super) fn unconvertible(schema: &TypeSchema, value: &Value) -> Option<String> {
    let mut checker = Checker {
        table: schema.table(),
        owner: String::new(),
        path: String::new(),
        top: true,
        converts: true,
    };
    let why = checker.check(schema.root(), value)?;
    let source = if why.starts_with("illegal base64") { "error decoding from json: " } else { "" };
    Some(format!("{source}{why}"))
}

/// Returns the reason why the converter cannot make a value of the type that Go calls `named`.
fn conversion(table: &TypeTable, id: Id, value: &Value, named: &str) -> String {
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) | Value::Null => "map",
    };
    match table.shape(id) {
        TypeShape::List(..) => format!("cannot restore slice from {found}"),
        TypeShape::Object(_) if table.node(id).name.is_some() => {
            format!("cannot restore struct from: {found}")
        }
        TypeShape::Object(_) => format!("cannot restore map from {found}"),
        _ => {
            let wanted = go_type(table, id);
            match (wanted.as_str(), value) {
                // Go converts between these types, but the converter does not.
                ("string", Value::Number(_)) => format!("cannot convert {found} to {named}"),
                ("int32" | "int64", Value::Number(_)) => {
                    format!("cannot convert {found} to {wanted}")
                }
                ("[]uint8", _) => format!("cannot restore slice from {found}"),
                _ => format!("unrecognized type: {wanted}"),
            }
        }
    }
}

/// A walk over a value that tracks the position.
struct Checker<'a> {
    table: &'a TypeTable,
    /// Name of the innermost structure, such as `PodSpec`.
    owner: String,
    /// Fields on the way to the value, without keys and indices.
    path: String,
    /// Whether the value is the root object.
    top: bool,
    /// Whether texts are those of the converter, and not of the decoder.
    converts: bool,
}

impl Checker<'_> {
    /// Checks a value.
    fn check(&mut self, id: Id, value: &Value) -> Option<String> {
        let table = self.table;
        match (table.shape(id), value) {
            (TypeShape::Any, _) | (_, Value::Null) => None,
            // Go keeps any text of JSON there.
            _ if table.is_raw(id) => None,
            (TypeShape::Object(object), Value::Object(_)) => self.check_map(id, object, value),
            (TypeShape::List(_, items), Value::Array(list)) => {
                list.iter().find_map(|item| self.check(*items, item))
            }
            (TypeShape::Scalar(ScalarType::Quantity, _), Value::String(text)) => {
                go::quantity_fault(text).map(str::to_owned)
            }
            (TypeShape::Scalar(ScalarType::String, Some(format)), Value::String(text)) => {
                self.check_format(id, format, text)
            }
            (TypeShape::Scalar(ScalarType::Integer, format), Value::Number(number))
                if !is_integer(number, format.as_deref()) && !self.converts =>
            {
                let field = format!("{}.{}", self.owner, self.path);
                let wanted = go_type(table, id);
                Some(format!(
                    "json: cannot unmarshal number {number} into Go struct field {field} of type {wanted}"
                ))
            }
            // The converter truncates a number that is too large, and refuses a fraction.
            (TypeShape::Scalar(ScalarType::Integer, _), Value::Number(number))
                if number.as_f64().is_some_and(|number| number.fract() != 0.0) =>
            {
                Some(conversion(table, id, value, ""))
            }
            (TypeShape::Scalar(scalar, _), value) if fits(*scalar, value) => None,
            (_, other) if self.converts => {
                Some(conversion(table, id, other, &self.named(go_type(table, id))))
            }
            (_, other) => {
                let field = format!("{}.{}", self.owner, self.path);
                Some(go::mismatch(other, &field, &self.named(go_type(table, id))))
            }
        }
    }

    /// Returns the name of a type in Go: the named type of the visited field, if there is one.
    fn named(&self, plain: String) -> String {
        let field = self.path.rsplit('.').next().unwrap_or_default();
        match (plain.as_str(), NAMES.get(&(self.owner.as_str(), field))) {
            ("string", Some(name)) => (*name).to_owned(),
            ("[]string", Some(name)) => format!("[]{name}"),
            _ => plain,
        }
    }

    /// Checks a text that Go decodes into bytes or a time.
    fn check_format(&self, id: Id, format: &str, text: &str) -> Option<String> {
        let name = self.table.node(id).name.as_deref().unwrap_or_default();
        match format {
            "byte" => go::base64_fault(text),
            "date-time" if name.ends_with(".MicroTime") => {
                Timestamp::parse_rfc3339_micro(text).err()
            }
            "date-time" => Timestamp::parse_rfc3339(text).err(),
            _ => None,
        }
    }

    /// Checks the values of a map.
    fn check_map(&mut self, id: Id, object: &ObjectType, value: &Value) -> Option<String> {
        let top = std::mem::replace(&mut self.top, false);
        let name = self.table.node(id).name.as_deref();
        let inner = name.map(|name| name.rsplit('.').next().unwrap_or(name).to_owned());
        // An unnamed map belongs to the structure whose field it is.
        let outer = inner.map(|inner| std::mem::replace(&mut self.owner, inner));
        let found = value.as_object().into_iter().flatten().find_map(|(key, value)| {
            match object.fields.get(key.as_str()) {
                // Checked by the caller, with texts that the converter lacks.
                Some(_) if top && key == "metadata" && !self.converts => None,
                Some(field) => self.below(key, field.node, value),
                None => object.element.and_then(|element| self.check(element, value)),
            }
        });
        if let Some(outer) = outer {
            self.owner = outer;
        }
        found
    }

    /// Checks a field.
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

/// Whether a number is an integer in the range of the format.
fn is_integer(number: &Number, format: Option<&str>) -> bool {
    match (number.as_i64(), format) {
        (Some(number), Some("int32")) => i32::try_from(number).is_ok(),
        (held, _) => held.is_some(),
    }
}

/// Whether a value is a scalar of this kind.
fn fits(scalar: ScalarType, value: &Value) -> bool {
    match scalar {
        ScalarType::String => value.is_string(),
        ScalarType::Integer | ScalarType::Number => value.is_number(),
        ScalarType::Boolean => value.is_boolean(),
        ScalarType::IntOrString | ScalarType::Quantity => value.is_string() || value.is_number(),
        ScalarType::IntOrStringExtension => true,
    }
}

/// Returns Go's name of a type, as far as the schema determines it.
fn go_type(table: &TypeTable, id: Id) -> String {
    let node = table.node(id);
    if let Some(name) = node.name.as_deref() {
        // Go decodes these types from a string.
        if name.ends_with(".v1.Time") || name.ends_with(".v1.MicroTime") {
            return "string".to_owned();
        }
        let mut parts = name.rsplit('.');
        let last = parts.next().unwrap_or_default();
        let package = parts.next().unwrap_or_default();
        return format!("{package}.{last}");
    }
    match &node.shape {
        TypeShape::Any => "interface {}".to_owned(),
        TypeShape::List(_, items) => format!("[]{}", go_type(table, *items)),
        TypeShape::Object(object) => {
            let element = object.element.map(|element| go_type(table, element));
            format!("map[string]{}", element.as_deref().unwrap_or("interface {}"))
        }
        TypeShape::Scalar(scalar, format) => match scalar {
            ScalarType::Integer | ScalarType::Number => {
                format.as_deref().unwrap_or("int64").to_owned()
            }
            ScalarType::Boolean => "bool".to_owned(),
            ScalarType::String if format.as_deref() == Some("byte") => "[]uint8".to_owned(),
            ScalarType::String => "string".to_owned(),
            ScalarType::IntOrString | ScalarType::IntOrStringExtension => {
                "intstr.IntOrString".to_owned()
            }
            ScalarType::Quantity => "resource.Quantity".to_owned(),
        },
    }
}
