//! Equality of values of a built-in type as the server's own types have it: empty lists and maps
//! are the same as none, and quantities are compared by their amounts.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{is_map, is_zero, zero};
use crate::typed::table::{Id, ObjectType, ScalarType, TypeShape, TypeTable, TypedField};
use crate::typed::{TypeSchema, quantity};

/// The form that Go has in the place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoFieldKind {
    /// The value itself, which is zero if there is none.
    Plain,
    /// A pointer: none is another value than zero.
    Pointer,
}

impl GoFieldKind {
    /// Returns the place of a field.
    fn of(field: &TypedField) -> Self {
        if field.wire.contains('*') { Self::Pointer } else { Self::Plain }
    }
}

/// Whether two values at a path, such as `spec.template` or `spec.containers[]`, are equal.
pub(in crate::typed) fn same(schema: &TypeSchema, path: &str, a: &Value, b: &Value) -> bool {
    let table = schema.table();
    let (mut id, mut place) = (schema.root(), GoFieldKind::Plain);
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let (name, is_item) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
        let field = table.object(id).and_then(|object| object.fields.get(name));
        // A value without a type is compared as it is.
        let Some(field) = field else { return a == b };
        (id, place) = (field.node, GoFieldKind::of(field));
        if let (true, TypeShape::List(_, items)) = (is_item, table.shape(id)) {
            (id, place) = (*items, GoFieldKind::Plain);
        }
    }
    equal(table, id, place, a, b)
}

/// Whether two values of a type are equal; null is none.
fn equal(table: &TypeTable, id: Id, place: GoFieldKind, a: &Value, b: &Value) -> bool {
    if a == b {
        return true;
    }
    if place == GoFieldKind::Pointer && a.is_null() != b.is_null() {
        return false;
    }
    match table.shape(id) {
        TypeShape::Any => false,
        TypeShape::Scalar(ScalarType::Quantity, _) => amount(a) == amount(b),
        TypeShape::Scalar(..) if place == GoFieldKind::Pointer => false,
        // Fields that are always written have zeros, and others none.
        TypeShape::Scalar(..) => [a, b].iter().all(|value| value.is_null() || is_zero(value)),
        TypeShape::List(_, items) => lists(table, *items, a, b),
        TypeShape::Object(object) => maps(table, object, a, b),
    }
}

/// Returns the amount of a quantity; texts that are no quantities are equal to themselves alone.
fn amount(value: &Value) -> Result<i128, &Value> {
    match value {
        Value::Null => Ok(0),
        Value::String(text) => quantity::amount(text).ok_or(value),
        Value::Number(number) => quantity::amount(&number.to_string()).ok_or(value),
        _ => Err(value),
    }
}

/// Whether two lists are equal.
fn lists(table: &TypeTable, items: Id, a: &Value, b: &Value) -> bool {
    let is_same = |(a, b): (&Value, &Value)| {
        let filled = |value: &Value| match value {
            Value::Null => zero(table.shape(items)),
            value => value.clone(),
        };
        match a.is_null() || b.is_null() {
            true => equal(table, items, GoFieldKind::Plain, &filled(a), &filled(b)),
            false => equal(table, items, GoFieldKind::Plain, a, b),
        }
    };
    match (list_of(a), list_of(b)) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(is_same),
        _ => false,
    }
}

/// Returns the items of a list; an absent list has none.
fn list_of(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Null => Some(&[]),
        Value::Array(list) => Some(list),
        _ => None,
    }
}

/// Returns the entries of a map or structure; an absent one has none.
fn map_of(value: &Value) -> Option<&Map<String, Value>> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    match value {
        Value::Null => Some(&EMPTY),
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// Whether two maps or structures are equal.
fn maps(table: &TypeTable, object: &ObjectType, a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (map_of(a), map_of(b)) else { return false };
    // The keys of a map count, those of a structure are fields with or without a value.
    if object.fields.is_empty() && is_map(table, object) {
        let Some(element) = object.element else { return a == b };
        let is_same = |(key, value): (&String, &Value)| {
            b.get(key).is_some_and(|other| equal(table, element, GoFieldKind::Plain, value, other))
        };
        return a.len() == b.len() && a.iter().all(is_same);
    }
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    names.into_iter().all(|name| {
        let [a, b] = [a, b].map(|map| map.get(name).unwrap_or(&Value::Null));
        match object.fields.get(name.as_str()) {
            Some(field) => equal(table, field.node, GoFieldKind::of(field), a, b),
            None => a == b,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(api_version: &str, kind: &str) -> std::sync::Arc<TypeSchema> {
        TypeSchema::builtin(api_version, kind).unwrap()
    }

    #[test]
    fn empty_lists_and_maps_are_the_same_as_none() {
        let pod = of("v1", "Pod");
        for value in [
            json!({"nodeSelector": {}}),
            json!({"hostAliases": [], "tolerations": null}),
            json!({"overhead": {}}),
            json!({"nodeName": "", "hostNetwork": false, "containers": []}),
        ] {
            assert!(same(&pod, "spec", &json!({}), &value), "{value}");
            assert!(same(&pod, "spec", &value, &json!({})), "{value}");
        }
        let volume = |source: Value| json!({"volumes": [source]});
        let csi = |csi: Value| volume(json!({"name": "v", "csi": csi}));
        let with = json!({"driver": "d", "volumeAttributes": {}});
        assert!(same(&pod, "spec", &csi(with), &csi(json!({"driver": "d"}))));
        let sources = |list: Value| volume(json!({"name": "v", "projected": {"sources": list}}));
        assert!(same(&pod, "spec", &sources(json!([])), &sources(Value::Null)));
    }

    #[test]
    fn a_structure_behind_a_pointer_is_another_value_than_none() {
        let pod = of("v1", "Pod");
        let volume = |source: Value| json!({"volumes": [source]});
        let (none, empty) = (json!({"name": "v"}), json!({"name": "v", "emptyDir": {}}));
        assert!(!same(&pod, "spec", &volume(none), &volume(empty)));
        for value in [
            json!({"securityContext": {}}),
            json!({"enableServiceLinks": false}),
            json!({"priority": 0}),
        ] {
            assert!(!same(&pod, "spec", &json!({}), &value), "{value}");
        }
        let deployment = of("apps/v1", "Deployment");
        assert!(!same(&deployment, "spec.selector", &Value::Null, &json!({})));
        // The template is a value.
        assert!(same(&deployment, "spec.template", &Value::Null, &json!({"metadata": {}})));
    }

    #[test]
    fn quantities_are_compared_by_their_amounts() {
        let pod = of("v1", "Pod");
        let with =
            |amount: Value| json!({"containers": [{"resources": {"limits": {"cpu": amount}}}]});
        for (a, b) in [
            (json!("1"), json!("1000m")),
            (json!("1Gi"), json!("1073741824")),
            (json!(1), json!("1")),
            (json!("0"), json!("0m")),
        ] {
            assert!(same(&pod, "spec", &with(a.clone()), &with(b.clone())), "{a} and {b}");
        }
        assert!(!same(&pod, "spec", &with(json!("1")), &with(json!("1001m"))));
        let none = json!({"containers": [{"resources": {"limits": {}}}]});
        assert!(!same(&pod, "spec", &with(json!("0")), &none), "the keys of a map count");
    }

    #[test]
    fn other_values_and_other_orders_are_other_objects() {
        let pod = of("v1", "Pod");
        let with = |aliases: Value| json!({"hostAliases": aliases});
        let (a, b) = (json!({"ip": "10.0.0.1"}), json!({"ip": "10.0.0.2"}));
        assert!(!same(&pod, "spec", &with(json!([a, b])), &with(json!([b, a]))));
        let named = |name: &str| json!({"nodeSelector": {"a": name}});
        assert!(!same(&pod, "spec", &named("b"), &named("c")));
        assert!(!same(&pod, "spec", &named(""), &json!({"nodeSelector": {}})));
        let of = |list: Value| json!({"name": "c", "env": list});
        assert!(same(&pod, "spec.containers[]", &of(json!([])), &of(Value::Null)));
        assert!(same(&pod, "unknown", &json!([]), &json!([])));
        assert!(!same(&pod, "unknown", &json!([]), &Value::Null));
    }
}
