//! A schema, in the view of pruning, which keeps fields of a value and drops others.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// Fields that every object has, with any schema.
pub(super) const COMMON_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The schema that names nothing.
static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// A schema at a path.
#[derive(Clone, Copy)]
pub(super) struct SchemaAtPath<'a> {
    pub(super) schema: &'a Map<String, Value>,
    /// Whether the schema describes the whole object.
    pub(super) is_root: bool,
}

impl<'a> SchemaAtPath<'a> {
    /// Creates the node of the whole object, whose common fields are kept without being named.
    pub(super) fn root(schema: &'a Value) -> Self {
        Self { is_root: true, ..Self::of(schema) }
    }

    /// Creates the node of a schema below the root. A schema of `true`, which allows any value,
    /// keeps no field of an object, because the schema names none.
    pub(super) fn of(schema: &'a Value) -> Self {
        Self { schema: schema.as_object().unwrap_or(&EMPTY), is_root: false }
    }

    /// Whether the extension `key` is set to true.
    pub(super) fn is(self, key: &str) -> bool {
        self.schema.get(key) == Some(&Value::Bool(true))
    }

    /// Whether fields are kept that no schema names.
    pub(super) fn keeps_unknown(self) -> bool {
        self.is("x-kubernetes-preserve-unknown-fields")
    }

    /// Returns the named fields.
    pub(super) fn properties(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    /// Returns the schema of a named field.
    pub(super) fn property(self, name: &str) -> Option<Self> {
        self.schema.get("properties").and_then(|all| all.get(name)).map(Self::of)
    }

    /// Returns the schema of fields that are not named; `None`: there are none.
    pub(super) fn additional_properties(self) -> Option<Self> {
        match self.schema.get("additionalProperties")? {
            Value::Bool(false) => None,
            schema => Some(Self::of(schema)),
        }
    }

    /// Whether the field is common to all objects: an embedded object keeps the field although the
    /// schema does not name it.
    pub(super) fn is_common_field(self, field: &str) -> bool {
        (self.is_root || self.is("x-kubernetes-embedded-resource"))
            && COMMON_FIELDS.contains(&field)
    }

    /// Returns the schema of a field; `Ok(None)`: the field is kept unchanged.
    ///
    /// # Errors
    /// The field is pruned.
    pub(super) fn field(self, name: &str) -> Result<Option<Self>, ()> {
        match self.property(name).or_else(|| self.additional_properties()) {
            _ if self.is_common_field(name) => Ok(None),
            Some(node) => Ok(Some(node)),
            None if self.keeps_unknown() => Ok(None),
            None => Err(()),
        }
    }

    /// Returns the type of values, `any` if the schema has no type.
    pub(super) fn value_type(self) -> &'a str {
        match self.schema.get("type").and_then(Value::as_str) {
            _ if self.is("x-kubernetes-int-or-string") => "int-or-string",
            Some(name) => name,
            None => "any",
        }
    }

    /// Whether fields of some valid value are dropped, at any depth.
    pub(super) fn prunes(self) -> bool {
        let items = self.schema.get("items").map(Self::of);
        let parts = self.properties().map(|(_, field)| Self::of(field));
        let mut below = parts.chain(self.additional_properties()).chain(items);
        let is_closed = !self.keeps_unknown() && self.additional_properties().is_none();
        (self.value_type() == "object" && is_closed) || below.any(Self::prunes)
    }

    /// Whether the schema restricts no value.
    pub(super) fn is_free(self) -> bool {
        let is_remark = |key: &str| matches!(key, "description" | "title" | "example" | "nullable");
        self.keeps_unknown()
            && self
                .schema
                .keys()
                .all(|key| is_remark(key) || key == "x-kubernetes-preserve-unknown-fields")
    }
}

/// Returns the elements of a list; none of any other value.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text; the empty text for any other value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Turns whole floating-point numbers into integers: bounds in schemas are floating-point, and a
/// definition is written with 50, not with 50.0.
#[doc(hidden)]
pub fn plain_numbers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain_numbers),
        Value::Object(fields) => fields.values_mut().for_each(plain_numbers),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < EXACT);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        _ => {}
    }
}
