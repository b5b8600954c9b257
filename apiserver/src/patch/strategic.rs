//! Maps and directives in strategic merge patches. Lists are in `lists`.

use serde_json::{Map, Value};

use super::{PatchError, lists};
use crate::apply::go_plain;
use crate::go;
use crate::typed::{Id, TypeSchema, TypeShape, TypeTable, TypedField};

/// Directive that deletes or replaces a map or an item.
pub(super) const PATCH: &str = "$patch";
/// Directive that lists the keys to keep.
const RETAIN_KEYS: &str = "$retainKeys";
/// Prefix of directives with the order of a list.
const SET_ORDER: &str = "$setElementOrder";
/// Prefix of directives with items to remove from a list of scalars.
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// A JSON object.
type JsonMap = Map<String, Value>;

/// Applies a strategic merge patch.
pub(super) fn apply(schema: &TypeSchema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch.clone(),
        Value::Null => JsonMap::new(),
        _ => return Err(PatchError::bad_request("invalid JSON document")),
    };
    let doc = doc.as_object().cloned().unwrap_or_default();
    let merger = Merger { table: schema.table() };
    merger.map(doc, patch, Some(schema.root())).map(Value::Object)
}

/// The merge strategy of a field.
pub(super) struct MergeStrategy<'a> {
    /// Type of the field, or of the items of a list.
    pub(super) id: Option<Id>,
    /// Whether lists merge item by item.
    pub(super) merge: bool,
    /// Whether the patch replaces the value.
    pub(super) replace: bool,
    /// Field by which the items of a list merge.
    pub(super) key: Option<&'a str>,
}

/// Merges by the types of a table.
#[derive(Clone, Copy)]
pub(super) struct Merger<'a> {
    pub(super) table: &'a TypeTable,
}

impl<'a> Merger<'a> {
    /// Merges a patch into a map of a type; `None` if the type is unknown.
    pub(super) fn map(
        self,
        mut original: JsonMap,
        mut patch: JsonMap,
        id: Option<Id>,
    ) -> Result<JsonMap, PatchError> {
        if let Some(directive) = patch.get(PATCH) {
            return match directive.as_str() {
                Some("replace") => {
                    patch.remove(PATCH);
                    Ok(patch)
                }
                Some("delete") => Ok(JsonMap::new()),
                _ => Err(bad_patch_type(directive, &patch)),
            };
        }
        // First: these directives take their keys out of the patch before the fields are merged.
        retain_keys(&mut original, &mut patch)?;
        self.ordered_lists(&mut original, &mut patch, id)?;
        for (key, value) in patch {
            self.field(&mut original, &key, value, id)?;
        }
        Ok(original)
    }

    /// Merges a field.
    fn field(
        self,
        original: &mut JsonMap,
        key: &str,
        patch: Value,
        id: Option<Id>,
    ) -> Result<(), PatchError> {
        let deleted = deleted_from(key)?;
        let key = deleted.unwrap_or(key);
        if patch.is_null() {
            original.remove(key);
            return Ok(());
        }
        let merged = match (original.remove(key), patch) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let how = self.how(id, key)?;
                if how.replace {
                    Value::Object(new)
                } else {
                    Value::Object(self.map(old, new, how.id)?)
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let how = self.how_list(id, key)?;
                if deleted.is_some() || how.merge {
                    Value::Array(lists::merge(self, old, new, &how, deleted.is_some())?)
                } else {
                    Value::Array(new)
                }
            }
            // There is no list to delete from.
            (Some(old), _) if deleted.is_some() => old,
            (None, _) if deleted.is_some() => return Ok(()),
            // Scalars of the same type are replaced; the schema has no say in that.
            (Some(old), new) if !old.is_object() && !old.is_array() && same_type(&old, &new) => new,
            (_, mut new) => {
                // New content: there is nothing that nulls could delete.
                discard_nulls(&mut new);
                match without_directives(new) {
                    Some(new) => new,
                    None => return Ok(()),
                }
            }
        };
        original.insert(key.to_owned(), merged);
        Ok(())
    }

    /// Merges every list whose order the patch gives, and brings it into that order.
    fn ordered_lists(
        self,
        original: &mut JsonMap,
        patch: &mut JsonMap,
        id: Option<Id>,
    ) -> Result<(), PatchError> {
        let names: Vec<String> =
            patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
        for name in names {
            let Some(order) = patch.remove(&name) else { continue };
            let order = as_list(order)?;
            let key = name[SET_ORDER.len()..].strip_prefix('/').ok_or_else(|| {
                PatchError::bad_request("invalid patch format of setElementOrder list")
            })?;
            let old = original.get(key).cloned().map(as_list).transpose()?;
            let new = patch.get(key).cloned().map(as_list).transpose()?;
            let how = self.how_list(id, key)?;
            // Before the merge: the order must contain the patch's items in their order.
            lists::check_order(new.as_deref().unwrap_or_default(), &order, how.key)?;
            let merged = match (&old, &new) {
                (Some(old), None) => old.clone(),
                (None, Some(new)) => match without_directives(Value::Array(new.clone())) {
                    Some(Value::Array(list)) => list,
                    _ => continue,
                },
                (Some(old), Some(new)) if how.merge => {
                    lists::merge(self, old.clone(), new.clone(), &how, false)?
                }
                (Some(_), Some(new)) => new.clone(),
                (None, None) => continue,
            };
            let server_order = old.unwrap_or_default();
            let list = lists::reorder(merged, &order, &server_order, how.key)?;
            original.insert(key.to_owned(), Value::Array(list));
            // Merged here: the field-by-field merge that follows must not see the list again.
            patch.remove(key);
        }
        Ok(())
    }

    /// Returns the merge strategy of a field that is a map.
    fn how(self, id: Option<Id>, key: &str) -> Result<MergeStrategy<'a>, PatchError> {
        let Some((field, id)) = self.lookup(id, key)? else {
            return Ok(MergeStrategy { id: None, merge: false, replace: false, key: None });
        };
        let strategy = field.map(|field| &field.strategy);
        Ok(MergeStrategy {
            id: Some(id),
            merge: strategy.is_some_and(|strategy| strategy.merge),
            replace: strategy.is_some_and(|strategy| strategy.replace),
            key: strategy.and_then(|strategy| strategy.key.as_deref()),
        })
    }

    /// Returns the merge strategy of a field that is a list.
    fn how_list(self, id: Option<Id>, key: &str) -> Result<MergeStrategy<'a>, PatchError> {
        let mut how = self.how(id, key)?;
        how.id = how.id.and_then(|id| match self.table.shape(id) {
            TypeShape::List(_, items) => Some(*items),
            _ => None,
        });
        Ok(how)
    }

    /// Returns a field with the type. Keys of a map of values have no field; `None` if the type is
    /// unknown.
    fn lookup(
        self,
        id: Option<Id>,
        key: &str,
    ) -> Result<Option<(Option<&'a TypedField>, Id)>, PatchError> {
        let table: &'a TypeTable = self.table;
        let Some(object) = id.and_then(|id| table.object(id)) else { return Ok(None) };
        if let Some(field) = object.fields.get(key) {
            return Ok(Some((Some(field), field.node)));
        }
        let is_raw = id.is_some_and(|id| table.is_raw(id));
        match object.element.filter(|_| !is_raw) {
            Some(element) => Ok(Some((None, element))),
            None => {
                let name = id.and_then(|id| table.node(id).name.as_deref()).unwrap_or_default();
                let owner = name.rsplit('.').next().unwrap_or_default();
                let key = go::quote(key);
                Err(PatchError::internal(format!(
                    "unable to find api field in struct {owner} for the json field {key}"
                )))
            }
        }
    }
}

/// Returns the list that a key with `$deleteFromPrimitiveList/…` names; `None` for other keys.
fn deleted_from(key: &str) -> Result<Option<&str>, PatchError> {
    match key.strip_prefix(DELETE_PRIMITIVES) {
        None => Ok(None),
        Some(rest) => rest
            .strip_prefix('/')
            .map(Some)
            .ok_or_else(|| PatchError::bad_request("invalid patch format of primitive list")),
    }
}

/// Whether two values are of the same JSON type.
fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Returns a value as a list, or the failure of Go's decoder.
fn as_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(PatchError::internal(format!(
            "expected a []interface {{}}, but received a {}",
            match other {
                Value::Null => "<nil>",
                Value::Bool(_) => "bool",
                Value::Number(_) => "int64",
                Value::String(_) => "string",
                _ => "map[string]interface {}",
            }
        ))),
    }
}

/// Removes every key that the patch does not list under `$retainKeys`.
fn retain_keys(original: &mut JsonMap, patch: &mut JsonMap) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::bad_request("invalid patch format of retainKeys");
    let keys = directive.as_array().ok_or_else(bad)?;
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    for (name, value) in patch.iter() {
        let directive = name.starts_with(DELETE_PRIMITIVES) || name.starts_with(SET_ORDER);
        // A key that the patch sets must be among the kept keys.
        if !value.is_null() && !directive && !kept(name) {
            return Err(bad());
        }
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Returns the failure for an unknown `$patch` directive.
pub(super) fn bad_patch_type(directive: &Value, patch: &JsonMap) -> PatchError {
    let patch = Value::Object(patch.clone());
    // Go prints what is no text with its type.
    let directive = match directive {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) => format!("%!s(bool={directive})"),
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        other => go_plain(other),
    };
    PatchError::internal(format!("unknown patch type: {directive} in map: {}", go_plain(&patch)))
}

/// Removes null keys from new content.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Returns a value without the maps that carry `$patch`; `None` if the value itself is such a map.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter_map(|(key, value)| without_directives(value).map(|value| (key, value)))
                .collect(),
        )),
        Value::Array(list) => {
            Some(Value::Array(list.into_iter().filter_map(without_directives).collect()))
        }
        other => Some(other),
    }
}
