//! Lists in strategic merge patches, which merge by key or as sets.

use serde_json::{Map, Value};

use super::PatchError;
use super::strategic::{MergeStrategy, Merger, PATCH, bad_patch_type};
use crate::apply::go_plain;

/// Merges a patch list into a list; with `delete` removes the patch's items instead.
pub(super) fn merge(
    merger: Merger<'_>,
    mut original: Vec<Value>,
    mut patch: Vec<Value>,
    how: &MergeStrategy<'_>,
    delete: bool,
) -> Result<Vec<Value>, PatchError> {
    // Without items there is no type that could decide.
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let maps = of_maps(&original, &patch)?;
    if delete {
        original.retain(|item| !patch.contains(item));
        return Ok(original);
    }
    let key = if maps {
        Some(how.key.ok_or_else(|| {
            PatchError::internal("cannot merge lists without merge key for struct")
        })?)
    } else {
        None
    };
    let merged = match key {
        None => union(&original, &patch),
        Some(key) => {
            (original, patch) = special_items(original, patch, key)?;
            merge_maps(merger, original.clone(), &patch, how, key)?
        }
    };
    reorder(merged, &patch, &original, key)
}

/// Whether the items are maps; fails for lists of lists and for items of different types.
fn of_maps(original: &[Value], patch: &[Value]) -> Result<bool, PatchError> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::rejected());
    }
    if all.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let list = |list: &[Value]| go_plain(&Value::Array(list.to_vec()));
        return Err(PatchError::internal(format!(
            "list element types are not identical: [{} {}]",
            list(original),
            list(patch)
        )));
    }
    Ok(first.is_object())
}

/// Returns the items of both lists, each value once.
fn union(original: &[Value], patch: &[Value]) -> Vec<Value> {
    let mut seen = std::collections::BTreeSet::new();
    let all = original.iter().chain(patch);
    all.filter(|item| seen.insert(item.to_string())).cloned().collect()
}

/// Executes the items that carry `$patch`; returns the list and the other items.
fn special_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Some(map) = item.as_object() else { continue };
        let Some(directive) = map.get(PATCH) else {
            rest.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                original.retain(|item| item.get(key) != Some(value));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::internal(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => return Err(bad_patch_type(directive, map)),
        }
    }
    Ok(if replace { (rest, Vec::new()) } else { (original, rest) })
}

/// Merges items into those with the same key; items with new keys are appended.
fn merge_maps(
    merger: Merger<'_>,
    mut list: Vec<Value>,
    patch: &[Value],
    how: &MergeStrategy<'_>,
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    for item in patch {
        let Some(map) = item.as_object() else { continue };
        let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
        match list.iter_mut().find(|old| old.get(key) == Some(value)) {
            Some(slot) => {
                let old = slot.as_object().cloned().unwrap_or_default();
                *slot = Value::Object(merger.map(old, map.clone(), how.id)?);
            }
            None => list.push(item.clone()),
        }
    }
    Ok(list)
}

/// Returns the failure for an item without the merge key.
fn no_merge_key(map: &Map<String, Value>, key: &str) -> PatchError {
    let map = Value::Object(map.clone());
    PatchError::internal(format!(
        "map: {} does not contain declared merge key: {key}",
        go_plain(&map)
    ))
}

/// Orders a merged list. Items named in `order` come in that order; the others keep the server's
/// order, and come before the first named item that the server has later. Items that the server did
/// not have come first.
pub(super) fn reorder(
    list: Vec<Value>,
    order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let odd = order.iter().position(|item| key.is_some() && !item.is_object());
    if let Some(index) = odd.filter(|_| !list.is_empty()) {
        return Err(PatchError::internal(format!("value for key {index} is not a map")));
    }
    let identity = |item: &Value| -> Result<Value, PatchError> {
        match (key, item) {
            (None, item) => Ok(item.clone()),
            (Some(key), Value::Object(map)) => {
                map.get(key).cloned().ok_or_else(|| no_merge_key(map, key))
            }
            (Some(_), other) => Err(PatchError::internal(format!(
                "expected a map[string]interface {{}}, but received {}",
                go_plain(other)
            ))),
        }
    };
    let positions = |list: &[Value]| -> Result<Positions, PatchError> {
        let mut positions = Positions::new();
        for (index, item) in list.iter().enumerate() {
            // The first position counts when an item occurs twice.
            positions.entry(identity(item)?.to_string()).or_insert(index);
        }
        Ok(positions)
    };
    let (order, server) = (positions(order)?, positions(server_order)?);
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in list {
        let name = identity(&item)?.to_string();
        let at_server = server.get(&name).copied();
        match order.get(&name) {
            Some(position) => named.push((*position, at_server, item)),
            None => others.push((at_server, item)),
        }
    }
    named.sort_by_key(|(position, _, _)| *position);
    others.sort_by_key(|(at_server, _)| *at_server);
    Ok(interleave(named, others))
}

/// Positions of items by their identity.
type Positions = std::collections::BTreeMap<String, usize>;

/// Interleaves named items with others, each in the given order.
fn interleave(
    named: Vec<(usize, Option<usize>, Value)>,
    others: Vec<(Option<usize>, Value)>,
) -> Vec<Value> {
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, at_server, item) in named {
        while let Some((other, _)) = others.peek() {
            let before = matches!((other, at_server), (Some(a), Some(b)) if *a < b);
            if !before {
                break;
            }
            out.extend(others.next().map(|(_, item)| item));
        }
        out.push(item);
    }
    out.extend(others.map(|(_, item)| item));
    out
}

/// Checks that the patch's items come in the order that the patch gives.
pub(super) fn check_order(
    patch: &[Value],
    order: &[Value],
    key: Option<&str>,
) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let identity = |item: &Value| match (key, item) {
        (None, item) => Ok(item.clone()),
        (Some(key), item) => item.get(key).cloned().ok_or_else(|| match item {
            Value::Object(map) => no_merge_key(map, key),
            other => PatchError::internal(format!(
                "expected a map[string]interface {{}}, but received {}",
                go_plain(other)
            )),
        }),
    };
    let mut wanted = order.iter();
    // Items with a directive are no items of the result.
    let kept = patch.iter().filter(|item| key.is_none() || item.get(PATCH).is_none());
    for item in kept {
        let item_key = identity(item)?;
        let mut found = false;
        // Goes on behind the last item found: the patch must be a subsequence of the order.
        for next in wanted.by_ref() {
            if identity(next)? == item_key {
                found = true;
                break;
            }
        }
        if !found {
            let list = |list: &[Value]| go_plain(&Value::Array(list.to_vec()));
            return Err(PatchError::internal(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                list(patch),
                list(order)
            )));
        }
    }
    Ok(())
}
