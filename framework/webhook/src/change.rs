//! The change of a typed object, as a change of the JSON that it was read from.
//!
//! A type writes other JSON than it has read: fields that it does not know are gone, defaults are
//! written out. Only the difference of two writings, before and after the handler, is the
//! handler's.

use serde_json::{Map, Value};

/// Returns `raw` with the difference from `before` to `after`; the rest stays as it is.
pub(crate) fn carry(raw: &Value, before: &Value, after: &Value) -> Value {
    match (raw, before, after) {
        _ if before == after => raw.clone(),
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            Value::Object(carry_members(raw, before, after))
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after))
            if raw.len() == before.len() =>
        {
            Value::Array(carry_items(raw, before, after))
        }
        _ => after.clone(),
    }
}

fn carry_members(
    raw: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut carried = raw.clone();
    carried.retain(|name, _| after.contains_key(name) || !before.contains_key(name));
    for (name, value) in after {
        let old = before.get(name);
        if old == Some(value) {
            continue;
        }
        let new = match (raw.get(name), old) {
            (Some(raw), Some(old)) => carry(raw, old, value),
            _ => value.clone(),
        };
        carried.insert(name.clone(), new);
    }
    carried
}

/// Carries the change of a list: an element keeps the fields of the element that it was before.
fn carry_items(raw: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let (start, end) = common(before, after);
    let is_shifted = before.len() != after.len();
    let mut is_used = vec![false; before.len()];
    let mut carried = Vec::with_capacity(after.len());
    for (at, value) in after.iter().enumerate() {
        let origin = if at < start {
            Some(at)
        } else if at >= after.len() - end {
            Some(at + before.len() - after.len())
        } else {
            let middle = start..before.len() - end;
            origin(before, &is_used, middle, value, (!is_shifted).then_some(at))
        };
        let of = |place: usize| Some((place, raw.get(place)?, before.get(place)?));
        match origin.and_then(of) {
            Some((place, raw, old)) => {
                is_used[place] = true;
                carried.push(carry(raw, old, value));
            }
            None => carried.push(value.clone()),
        }
    }
    carried
}

/// Returns the place that an element of the changed list had: of an equal element, of one with the
/// same `name`, or `same`, the own place in a list that became neither longer nor shorter.
fn origin(
    before: &[Value],
    is_used: &[bool],
    middle: std::ops::Range<usize>,
    value: &Value,
    same: Option<usize>,
) -> Option<usize> {
    let find = |fits: &dyn Fn(&Value) -> bool| {
        middle.clone().find(|place| !is_used[*place] && fits(&before[*place]))
    };
    let name = value.get("name");
    let is_nameless = |old: &Value| name.is_none() && old.get("name").is_none();
    find(&|old: &Value| old == value)
        .or_else(|| find(&|old: &Value| name.is_some() && old.get("name") == name))
        .or_else(|| same.filter(|place| !is_used[*place] && is_nameless(&before[*place])))
}

/// Returns the numbers of equal elements at the start and at the end of two lists.
pub(crate) fn common(one: &[Value], other: &[Value]) -> (usize, usize) {
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let most = one.len().min(other.len()) - start;
    let back = one.iter().rev().zip(other.iter().rev());
    let end = back.take(most).take_while(|(one, other)| one == other).count();
    (start, end)
}
