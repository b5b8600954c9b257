//! Old values that belong to new ones: `oldSelf` of transition rules, and the values that
//! ratcheting compares.

use std::cell::OnceCell;

use serde_json::Value;

use crate::schema::is_too_deep;

/// `x-kubernetes-list-map-keys` of a schema, if its list is of type map.
pub(super) fn map_keys(schema: &Value) -> Option<Vec<String>> {
    if schema.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
        return None;
    }
    let keys = schema.get("x-kubernetes-list-map-keys")?.as_array()?;
    let keys: Vec<String> = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    (!keys.is_empty()).then_some(keys)
}

/// Whether the entries of a map belong to those of the old one: for both kinds of map that exist.
pub(super) fn is_correlatable_map(schema: &Value) -> bool {
    let kind = schema.get("x-kubernetes-map-type").and_then(Value::as_str);
    kind.is_none_or(|kind| matches!(kind, "granular" | "atomic"))
}

/// The elements of a list of type map, found by their keys.
pub(super) struct MapList<'a> {
    keys: Vec<String>,
    items: Vec<(Vec<String>, &'a Value)>,
}

impl<'a> MapList<'a> {
    /// The elements that have all keys; of several elements with the same keys the first is found.
    pub(super) fn new(keys: Vec<String>, items: &'a [Value]) -> MapList<'a> {
        let keyed = items.iter().filter_map(|item| Some((composite_key(&keys, item)?, item)));
        let mut items: Vec<_> = keyed.collect();
        // Stable, so that the first of equal elements stays first.
        items.sort_by(|left, right| left.0.cmp(&right.0));
        MapList { keys, items }
    }

    /// The element with the same keys as `item`.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        let key = composite_key(&self.keys, item)?;
        let at = self.items.partition_point(|(other, _)| *other < key);
        self.items.get(at).filter(|(other, _)| *other == key).map(|(_, item)| *item)
    }
}

/// The values of the keys with a mark of their type; `None` if a value is missing or no scalar.
fn composite_key(keys: &[String], item: &Value) -> Option<Vec<String>> {
    let part = |key: &String| match item.get(key)? {
        Value::Bool(value) => Some(format!("b{value}")),
        Value::String(value) => Some(format!("s{value}")),
        Value::Number(value) if value.is_f64() => {
            let value = value.as_f64()?;
            // kube-apiserver compares a single key exactly, and several keys with six digits.
            Some(if keys.len() == 1 { format!("f{value}") } else { format!("f{value:.6}") })
        }
        Value::Number(value) => Some(format!("i{value}")),
        _ => None,
    };
    keys.iter().map(part).collect()
}

/// A new value with the old one that belongs to it.
pub(super) struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    schema: &'a Value,
    is_unchanged: OnceCell<bool>,
    /// The old elements by key: the index serves all elements of the new list.
    old_items: OnceCell<Option<MapList<'a>>>,
}

impl<'a> Correlated<'a> {
    /// The two values under their schema.
    pub(super) fn new(new: &'a Value, old: &'a Value, schema: &'a Value) -> Correlated<'a> {
        Correlated { new, old, schema, is_unchanged: OnceCell::new(), old_items: OnceCell::new() }
    }

    /// The values of a property; `None` if either is missing or without a schema.
    pub(super) fn key(&self, key: &str) -> Option<Correlated<'a>> {
        let (new, old) = (self.new.as_object()?.get(key)?, self.old.as_object()?.get(key)?);
        let property = self.schema.get("properties").and_then(|properties| properties.get(key));
        let values = || self.schema.get("additionalProperties").filter(|values| values.is_object());
        Some(Correlated::new(new, old, property.or_else(values)?))
    }

    /// The values of an element; `None` unless the list is of type map and the old list has the
    /// element.
    pub(super) fn index(&self, index: usize) -> Option<Correlated<'a>> {
        let new = self.new.as_array()?.get(index)?;
        let list = || Some(MapList::new(map_keys(self.schema)?, self.old.as_array()?));
        let old = self.old_items.get_or_init(list).as_ref()?.get(new)?;
        Some(Correlated::new(new, old, self.schema.get("items")?))
    }

    /// Whether the value equals the old value; lists of type map may be in another order.
    pub(super) fn is_unchanged(&self) -> bool {
        *self.is_unchanged.get_or_init(|| is_unchanged(self.new, self.old, Some(self.schema)))
    }
}

/// Whether JSON is equal. JSON that is nested too deeply counts as changed: the comparison would
/// exhaust the stack.
fn is_equal(new: &Value, old: &Value) -> bool {
    !is_too_deep(new) && new == old
}

/// Compares as ratcheting does. The recursion is as deep as the schema.
fn is_unchanged(new: &Value, old: &Value, schema: Option<&Value>) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) if new.len() != old.len() => false,
        (Value::Array(new_items), Value::Array(old_items)) => {
            let Some(keys) = schema.and_then(map_keys) else { return is_equal(new, old) };
            let items = schema.and_then(|schema| schema.get("items"));
            let list = MapList::new(keys, old_items);
            let is_same = |item| list.get(item).is_some_and(|old| is_unchanged(item, old, items));
            new_items.iter().all(is_same)
        }
        (Value::Object(new), Value::Object(old)) => {
            // A property without a schema counts as changed: upstream finds no old value for it.
            let is_same = |(key, value): (&String, &Value)| {
                let property = schema.and_then(|schema| schema.get("properties")?.get(key));
                let values = || schema.and_then(|schema| schema.get("additionalProperties"));
                let schema = property.or_else(values).filter(|schema| schema.is_object());
                match (old.get(key), schema) {
                    (Some(old), Some(schema)) => is_unchanged(value, old, Some(schema)),
                    _ => false,
                }
            };
            new.len() == old.len() && new.iter().all(is_same)
        }
        (new, old) => is_equal(new, old),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports() -> Value {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"properties": {"name": {}, "port": {}}}})
    }

    #[test]
    fn an_element_of_a_list_of_type_map_is_found_by_its_keys() {
        let items = [json!({"name": "a", "port": 1}), json!({"name": "b"}), json!({"name": "a"})];
        let keys = map_keys(&ports()).unwrap();
        let list = MapList::new(keys, &items);
        assert_eq!(list.get(&json!({"name": "a"})), Some(&items[0]));
        assert_eq!(list.get(&json!({"name": "c"})), None);
        assert_eq!(list.get(&json!({"name": {}})), None);
        assert_eq!(list.get(&json!("a")), None);
    }

    #[test]
    fn keys_of_different_types_are_different() {
        let keys = vec!["k".to_owned()];
        let items = [json!({"k": "1"}), json!({"k": 1.5}), json!({"k": true})];
        let list = MapList::new(keys, &items);
        assert_eq!(list.get(&json!({"k": 1})), None);
        assert_eq!(list.get(&json!({"k": "true"})), None);
        assert_eq!(list.get(&json!({"k": 1.5})), Some(&items[1]));
    }

    #[test]
    fn a_list_of_type_map_is_unchanged_in_another_order() {
        let (schema, old) = (ports(), json!([{"name": "a", "port": 1}, {"name": "b"}]));
        let new = json!([{"name": "b"}, {"name": "a", "port": 1}]);
        assert!(Correlated::new(&new, &old, &schema).is_unchanged());
        let new = json!([{"name": "b"}, {"name": "a", "port": 2}]);
        assert!(!Correlated::new(&new, &old, &schema).is_unchanged());
    }

    #[test]
    fn a_property_without_schema_counts_as_changed() {
        let value = json!({"a": 1});
        assert!(!Correlated::new(&value, &value, &json!({})).is_unchanged());
        assert!(Correlated::new(&value, &value, &json!({"properties": {"a": {}}})).is_unchanged());
    }

    #[test]
    fn elements_of_atomic_lists_have_no_old_value() {
        let (schema, list) = (json!({"type": "array", "items": {}}), json!([1]));
        assert!(Correlated::new(&list, &list, &schema).index(0).is_none());
        assert!(Correlated::new(&list, &list, &schema).is_unchanged());
    }
}
