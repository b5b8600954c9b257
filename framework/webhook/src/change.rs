//! The change of a typed object, as a change of the JSON that it was read from.
//!
//! A type writes other JSON than it has read: fields that it does not know are gone, defaults are
//! written out. Only the difference of two writings, before and after the handler, is the
//! handler's.

// DESIGN.md, 295: The patch of a long list is made by an index, and has a bound of operations

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

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
    let mut known = FormerItems::new(before, start..before.len() - end);
    let mut carried = Vec::with_capacity(after.len());
    for (at, value) in after.iter().enumerate() {
        let origin = if at < start {
            Some(at)
        } else if at >= after.len() - end {
            Some(at + before.len() - after.len())
        } else {
            known.origin(value, (!is_shifted).then_some(at))
        };
        let of = |place: usize| Some((place, raw.get(place)?, before.get(place)?));
        match origin.and_then(of) {
            Some((place, raw, old)) => {
                known.is_used[place] = true;
                carried.push(carry(raw, old, value));
            }
            None => carried.push(value.clone()),
        }
    }
    carried
}

/// The elements of a list before its change, by their values and their names: a user decides how
/// many there are.
struct FormerItems<'a> {
    before: &'a [Value],
    is_used: Vec<bool>,
    by_value: Places,
    by_name: Places,
}

/// Places of elements in their order, by a hash.
type Places = BTreeMap<u64, VecDeque<usize>>;

impl<'a> FormerItems<'a> {
    /// Takes in the elements of the middle, which have no equal at the same place.
    fn new(before: &'a [Value], middle: Range<usize>) -> Self {
        let (mut by_value, mut by_name) = (Places::new(), Places::new());
        for place in middle {
            let value = &before[place];
            by_value.entry(hash(value)).or_default().push_back(place);
            if let Some(name) = value.get("name") {
                by_name.entry(hash(name)).or_default().push_back(place);
            }
        }
        Self { before, is_used: vec![false; before.len()], by_value, by_name }
    }

    /// Returns the place that an element of the changed list had: of an equal element, of one with
    /// the same `name`, or `same`, the own place in a list that became neither longer nor shorter.
    fn origin(&mut self, value: &Value, same: Option<usize>) -> Option<usize> {
        let Self { before, is_used, by_value, by_name } = self;
        let name = value.get("name");
        let is_nameless = |old: &Value| name.is_none() && old.get("name").is_none();
        let equal = first_unused(by_value, value, is_used);
        equal
            .filter(|place| before[*place] == *value)
            .or_else(|| {
                let place = first_unused(by_name, name?, is_used)?;
                (before[place].get("name") == name).then_some(place)
            })
            .or_else(|| same.filter(|place| !is_used[*place] && is_nameless(&before[*place])))
    }
}

/// Returns the first place of a value that is not used, and forgets those before it.
fn first_unused(places: &mut Places, value: &Value, is_used: &[bool]) -> Option<usize> {
    let places = places.get_mut(&hash(value))?;
    while places.front().is_some_and(|place| is_used[*place]) {
        places.pop_front();
    }
    places.front().copied()
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the numbers of equal elements at the start and at the end of two lists.
pub(crate) fn common(one: &[Value], other: &[Value]) -> (usize, usize) {
    let start = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let most = one.len().min(other.len()) - start;
    let back = one.iter().rev().zip(other.iter().rev());
    let end = back.take(most).take_while(|(one, other)| one == other).count();
    (start, end)
}
