//! Hashes of values, and indexes of lists for the search of many places.
//!
//! Invariant: a search reads each list once, and hashes a value at most once for each value around
//! it (JSON nests at most 128 deep), whatever the number of places: anybody who may write
//! annotations chooses the places.

use std::collections::HashMap;

use serde_json::Value;

/// Indexes and hashes of a value that is searched, by the address of its parts.
#[derive(Debug, Default)]
pub(super) struct Indexes<'v> {
    lists: HashMap<*const Value, ListIndex<'v>>,
    hashes: HashMap<*const Value, u64>,
}

/// An index of the elements of a list.
#[derive(Debug)]
pub(super) struct ListIndex<'v> {
    list: &'v [Value],
    /// Hashes of the elements.
    hashes: Vec<u64>,
    /// Hashes and places, in order.
    sorted: Vec<(u64, usize)>,
    /// Places by name, none for a name of several elements; made for the first search by name.
    names: Option<HashMap<&'v str, Option<usize>>>,
}

impl<'v> Indexes<'v> {
    /// Returns the index of a list.
    pub(super) fn list(&mut self, list: &'v [Value]) -> &mut ListIndex<'v> {
        let Self { lists, hashes } = self;
        let index = || ListIndex::new(list, |element| hash_once(hashes, element));
        lists.entry(list.as_ptr()).or_insert_with(index)
    }

    /// Returns the hash of a value.
    pub(super) fn hash(&mut self, value: &'v Value) -> u64 {
        hash_once(&mut self.hashes, value)
    }
}

fn hash_once(hashes: &mut HashMap<*const Value, u64>, value: &Value) -> u64 {
    *hashes.entry(std::ptr::from_ref(value)).or_insert_with(|| hash(value))
}

impl<'v> ListIndex<'v> {
    fn new(list: &'v [Value], hash: impl FnMut(&'v Value) -> u64) -> Self {
        let hashes: Vec<u64> = list.iter().map(hash).collect();
        let mut sorted: Vec<_> = hashes.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self { list, hashes, sorted, names: None }
    }

    /// Returns the hash of the element at a place.
    pub(super) fn hash(&self, place: usize) -> Option<u64> {
        self.hashes.get(place).copied()
    }

    /// Returns the place of an element with a hash, with as many such elements before it.
    pub(super) fn equal(&self, hash: u64, before: usize) -> Option<usize> {
        let first = self.sorted.partition_point(|(other, _)| {
            work::count(1);
            *other < hash
        });
        let (other, place) = self.sorted.get(first.checked_add(before)?)?;
        (*other == hash).then_some(*place)
    }

    /// Returns the place of the only element with a name.
    pub(super) fn named(&mut self, name: &str) -> Option<usize> {
        let list = self.list;
        let names = self.names.get_or_insert_with(|| {
            let mut names = HashMap::new();
            work::count(list.len());
            for (place, element) in list.iter().enumerate() {
                if let Some(name) = name_of(element) {
                    names.entry(name).and_modify(|only| *only = None).or_insert(Some(place));
                }
            }
            names
        });
        names.get(name).copied().flatten()
    }
}

pub(super) fn name_of(element: &Value) -> Option<&str> {
    element.get("name").and_then(Value::as_str)
}

/// Returns the hash of a value, which stays the same in every release: FNV-1a of its JSON with
/// sorted names.
pub(super) fn hash(value: &Value) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325;
    hash_value(value, &mut state);
    state
}

fn hash_value(value: &Value, state: &mut u64) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hash_bytes(b"{", state);
            for name in names {
                hash_bytes(name.as_bytes(), state);
                hash_bytes(b"\0:", state);
                hash_value(&fields[name], state);
            }
            hash_bytes(b"}", state);
        }
        Value::Array(list) => {
            hash_bytes(b"[", state);
            for element in list {
                hash_value(element, state);
                hash_bytes(b",", state);
            }
            hash_bytes(b"]", state);
        }
        Value::String(text) => {
            hash_bytes(b"\"", state);
            hash_bytes(text.as_bytes(), state);
            hash_bytes(b"\0\"", state);
        }
        other => hash_bytes(other.to_string().as_bytes(), state),
    }
}

fn hash_bytes(bytes: &[u8], state: &mut u64) {
    work::count(bytes.len());
    for byte in bytes {
        *state = (*state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

#[cfg(not(test))]
mod work {
    pub(super) const fn count(_: usize) {}
}

/// Steps of searches, which tests count: bytes that are hashed, and elements that are compared.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::crd::versions) fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// Returns the steps of this thread since the last call.
    pub(in crate::crd::versions) fn take() -> usize {
        STEPS.take()
    }
}
