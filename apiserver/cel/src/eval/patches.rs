//! Literals of mutating policies: `Object{}` with the types of the fields, and `JSONPatch{}`.
//!
//! Nothing knows the fields of an `Object`; a name of a type that does not agree with the place of
//! the value is an error when the patch is applied. The values in a literal are copied, since a
//! value of a library owns its parts.

use std::any::Any;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::error::{EvalError, deeper};
use super::functions::Function;
use super::map::{Entries, Map};
use super::value::{Opaque, Value};
use super::work::WorkBudget;
use crate::library::base64;

/// Name of the type of an object.
pub(crate) const OBJECT: &str = "Object";
/// Name of the type of an operation.
pub(crate) const OPERATION: &str = "JSONPatch";
/// Deepest value that is turned into JSON.
const DEEPEST: usize = 512;

/// A literal of a mutating policy.
#[derive(Debug)]
pub(crate) struct PolicyLiteral {
    name: Arc<str>,
    fields: Vec<(Arc<str>, Value<'static>)>,
}

/// Whether a name is that of a type of literals.
pub(crate) fn is_literal(name: &str) -> bool {
    name == OPERATION || is_object(name)
}

/// Whether a name is that of a type of objects: `Object`, `Object.spec`.
pub(crate) fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value of a literal with these fields.
///
/// # Errors
///
/// A field of an operation of the wrong type, and a value that takes too much work.
pub(super) fn construct<'a>(
    name: &str,
    fields: Vec<(&str, Value<'a>)>,
    work: &WorkBudget,
) -> Result<Value<'a>, EvalError> {
    let mut held: Vec<(Arc<str>, Value<'static>)> = Vec::with_capacity(fields.len());
    for (field, value) in fields {
        work.elements(1)?;
        if name == OPERATION && field != "value" && !matches!(value, Value::String(_)) {
            let ty = value.type_name();
            return Err(EvalError::new(format!(
                "unexpected type {ty} for JSONPatchType '{field}' field"
            )));
        }
        let value = owned(&value, 0, work)?;
        held.retain(|(known, _)| **known != *field);
        held.push((field.into(), value));
    }
    Ok(Value::Opaque(Arc::new(PolicyLiteral { name: name.into(), fields: held })))
}

/// A value that borrows nothing.
fn owned(value: &Value<'_>, depth: usize, work: &WorkBudget) -> Result<Value<'static>, EvalError> {
    let depth = deeper(depth)?;
    work.elements(1)?;
    Ok(match value {
        Value::Null => Value::Null,
        Value::Bool(value) => Value::Bool(*value),
        Value::Int(value) => Value::Int(*value),
        Value::Uint(value) => Value::Uint(*value),
        Value::Double(value) => Value::Double(*value),
        Value::String(text) => {
            work.copy(text.len())?;
            Value::text(&**text)
        }
        Value::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Value::Timestamp(time) => Value::Timestamp(*time),
        Value::Duration(duration) => Value::Duration(*duration),
        Value::Type(name) => Value::Type(name.clone()),
        Value::List(list) => {
            let items = list.iter().map(|item| owned(&item?, depth, work));
            Value::list(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let mut entries = Entries::default();
            for key in map.keys() {
                let value = map.find(&key)?.unwrap_or(Value::Null);
                entries.set(owned(&key, depth, work)?, owned(&value, depth, work)?)?;
            }
            Value::Map(Map::Entries(Arc::new(entries)))
        }
        Value::Optional(None) => Value::Optional(None),
        Value::Optional(Some(content)) => Value::some(owned(content, depth, work)?),
        Value::Opaque(value) => Value::Opaque(value.clone()),
    })
}

impl PolicyLiteral {
    /// The literal that a value is.
    pub(crate) fn of<'v>(value: &'v Value<'_>) -> Option<&'v PolicyLiteral> {
        match value {
            Value::Opaque(value) => value.as_any().downcast_ref::<PolicyLiteral>(),
            _ => None,
        }
    }

    /// The value of a field that is set.
    pub(crate) fn field(&self, name: &str) -> Option<&Value<'static>> {
        self.fields.iter().find(|(field, _)| **field == *name).map(|(_, value)| value)
    }

    /// The text of a field of an operation; empty without the field.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Some(Value::String(text)) => text,
            _ => "",
        }
    }

    /// The fields as JSON.
    ///
    /// # Errors
    ///
    /// A value that no JSON stands for.
    pub(crate) fn json(&self) -> Result<Json, String> {
        self.json_at(0)
    }

    fn json_at(&self, depth: usize) -> Result<Json, String> {
        let field = |(name, value): &(Arc<str>, Value<'_>)| {
            let value = json(value, depth + 1);
            value
                .map(|value| (name.to_string(), value))
                .map_err(|why| format!("fail to convert field {name:?}: {why}"))
        };
        self.fields.iter().map(field).collect::<Result<JsonMap<_, _>, _>>().map(Json::Object)
    }

    /// The faults of the names of types, which must be the places of their values.
    pub(crate) fn misnamed(&self) -> Vec<String> {
        let mut found = Vec::new();
        named(&Value::Opaque(Arc::new(self.copy())), &self.name, 0, &mut found);
        found
    }

    fn copy(&self) -> PolicyLiteral {
        PolicyLiteral { name: self.name.clone(), fields: self.fields.clone() }
    }
}

/// Adds the faults of the names of types in a value at a place.
fn named(value: &Value<'_>, place: &str, depth: usize, found: &mut Vec<String>) {
    if depth > DEEPEST {
        return;
    }
    if let Some(literal) = PolicyLiteral::of(value) {
        if *literal.name != *place {
            found.push(format!(
                "unexpected type name {:?}, expected {place:?}, which matches field name path from root Object type",
                &*literal.name
            ));
        }
        for (field, value) in &literal.fields {
            named(value, &format!("{place}.{field}"), depth + 1, found);
        }
    }
    match value {
        Value::List(list) => {
            list.iter().flatten().for_each(|item| named(&item, place, depth + 1, found))
        }
        Value::Map(map) => {
            let values = map.keys().into_iter().filter_map(|key| map.find(&key).ok().flatten());
            values.for_each(|value| named(&value, place, depth + 1, found));
        }
        _ => {}
    }
}

/// A value as JSON.
///
/// # Errors
///
/// A value that no JSON stands for.
pub(crate) fn json(value: &Value<'_>, depth: usize) -> Result<Json, String> {
    if depth > DEEPEST {
        return Err("the value is nested too deeply".to_owned());
    }
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Uint(value) => (*value).into(),
        Value::Double(value) => serde_json::Number::from_f64(*value)
            .map(Json::Number)
            .ok_or_else(|| format!("unsupported value: {value}"))?,
        Value::String(text) => (**text).into(),
        Value::Bytes(bytes) => base64::encode(bytes).into(),
        Value::Timestamp(time) => time.to_rfc3339_utc().into(),
        Value::Duration(duration) => duration.to_cel_string().into(),
        Value::Optional(Some(content)) => json(content, depth + 1)?,
        Value::List(list) => {
            let item = |item: Result<Value<'_>, EvalError>| {
                json(&item.map_err(|error| error.to_string())?, depth + 1)
            };
            Json::Array(list.iter().map(item).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => json_map(map, depth)?,
        other => match PolicyLiteral::of(other) {
            Some(literal) => literal.json_at(depth)?,
            None => return Err(format!("unsupported type {}", other.type_name())),
        },
    })
}

/// A map as JSON.
fn json_map(map: &Map<'_>, depth: usize) -> Result<Json, String> {
    let mut out = JsonMap::new();
    for key in map.keys() {
        let Value::String(name) = &key else {
            let ty = key.type_name();
            return Err(format!("map key is of type {ty}, not string"));
        };
        let value = map.find(&key).map_err(|error| error.to_string())?;
        out.insert(name.to_string(), json(&value.unwrap_or(Value::Null), depth + 1)?);
    }
    Ok(Json::Object(out))
}

impl Opaque for PolicyLiteral {
    fn type_name(&self) -> &str {
        &self.name
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let Some(other) = other.as_any().downcast_ref::<PolicyLiteral>() else { return false };
        self.name == other.name && self.json().is_ok_and(|json| other.json() == Ok(json))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns the body of the function of patches with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    (name == "jsonpatch.escapeKey").then_some(|call| {
        let text = call.text(0)?;
        call.work.copy(text.len())?;
        Ok(Value::text(text.replace('~', "~0").replace('/', "~1")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Environment;
    use crate::eval::{Limits, Program, Variables};

    fn evaluated(text: &str) -> Result<Json, String> {
        let environment = Environment::kubernetes().with_patches();
        let checked = environment.compile(text).map_err(|issues| issues.to_string())?;
        let program = Program::new(&checked).map_err(|error| error.to_string())?;
        let variables = Variables::new();
        let outcome = program.evaluate(&variables, Limits::new(10_000));
        json(&outcome.result.map_err(|error| error.to_string())?, 0)
    }

    #[test]
    fn an_object_has_any_fields_and_its_fields_can_be_read() {
        let cases = [
            ("Object{}", "{}"),
            ("Object{spec: Object.spec{replicas: 3}}", r#"{"spec":{"replicas":3}}"#),
            ("Object{a: {'k': 'v'}, b: [Object.b{c: 1u}]}", r#"{"a":{"k":"v"},"b":[{"c":1}]}"#),
            ("Object{intList: [1, 2, 3]}.intList.sum()", "6"),
            ("has(Object{a: 1}.a) && !has(Object{a: 1}.b)", "true"),
            ("Object{spec: Object.spec{a: 3}} == Object{spec: Object.spec{a: 1 + 2}}", "true"),
            ("Object{?a: optional.none(), ?b: optional.of(1)}", r#"{"b":1}"#),
            ("JSONPatch{op: 'add', path: '/a', value: Object{b: 1}}.path", "\"/a\""),
            ("jsonpatch.escapeKey('k8s.io/my~label')", "\"k8s.io~1my~0label\""),
        ];
        for (text, expected) in cases {
            assert_eq!(
                evaluated(text).map(|json| json.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn literals_of_other_types_and_fields_of_other_types_are_refused() {
        assert!(evaluated("Invalid{}").unwrap_err().contains("undeclared reference to 'Invalid'"));
        let found = evaluated("JSONPatch{op: 1}").unwrap_err();
        let expected = "expected type of field 'op' is 'string' but provided type is 'int'";
        assert!(found.contains(expected), "{found}");
        let found = evaluated("JSONPatch{op: dyn(1)}").unwrap_err();
        assert!(found.contains("JSONPatchType 'op' field"), "{found}");
        // Outside of mutating policies there are no such types.
        let found = Environment::kubernetes().compile("Object{}").unwrap_err().to_string();
        assert!(found.contains("undeclared reference to 'Object'"), "{found}");
    }

    #[test]
    fn the_name_of_a_type_is_the_place_of_its_value() {
        let environment = Environment::kubernetes().with_patches();
        let checked = environment.compile("Object{a: [Object.a{b: Object.c{}}]}").unwrap();
        let program = Program::new(&checked).unwrap();
        let variables = Variables::new();
        let value = program.evaluate(&variables, Limits::new(10_000)).result.unwrap();
        let expected = "unexpected type name \"Object.c\", expected \"Object.a.b\", which matches \
                        field name path from root Object type";
        assert_eq!(PolicyLiteral::of(&value).unwrap().misnamed(), [expected]);
    }
}
