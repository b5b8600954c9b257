//! Versions of recent deletions, so that an older frame does not bring an object back (B6: older or
//! repeated frames).

// DESIGN.md, 72: Watch frames below the stream's position are dropped

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use crate::store::object::Object;
use crate::store::observed::ListGeneration;
use crate::store::version::order;
use windlass_core::resource::ObjectKey;

/// Largest number of deletions that are remembered, some hundred bytes each. The next list forgets
/// them all.
const MOST: usize = 4096;

/// Deletions since the last list, by key.
#[derive(Debug, Default)]
pub(in crate::store) struct Tombstones {
    /// Keys in the order of their first deletion, each once; the first is forgotten first.
    order: VecDeque<ObjectKey>,
    /// Version of the newest deletion of a key, and the run that saw the deletion.
    deleted: BTreeMap<ObjectKey, (Box<str>, ListGeneration)>,
}

impl Tombstones {
    /// Records a deletion; the oldest is forgotten when there are too many.
    pub(in crate::store) fn add(&mut self, key: &ObjectKey, version: &str, run: ListGeneration) {
        let is_older = |(known, seen): &(Box<str>, ListGeneration)| {
            seen.epoch == run.epoch && order(version, known) == Some(Ordering::Less)
        };
        // The deletion that is known is newer and stays.
        if self.deleted.get(key).is_some_and(is_older) {
            return;
        }
        if self.deleted.insert(key.clone(), (version.into(), run)).is_none() {
            self.order.push_back(key.clone());
        }
        while self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.deleted.remove(&oldest);
            }
        }
    }

    /// Returns the run that saw the deletion.
    pub(in crate::store) fn run(&self, key: &ObjectKey) -> Option<ListGeneration> {
        self.deleted.get(key).map(|(_, run)| *run)
    }

    /// Whether this object is older than the deletion of its key.
    ///
    /// An equal version counts as older. False for versions that do not compare.
    pub(in crate::store) fn covers(&self, object: &Object) -> bool {
        let deleted = self.deleted.get(object.key());
        deleted.is_some_and(|(version, _)| {
            order(object.version(), version).is_some_and(Ordering::is_le)
        })
    }

    /// Forgets the deletions of the keys for which `within` is true.
    pub(in crate::store) fn forget(&mut self, within: &dyn Fn(&ObjectKey) -> bool) {
        self.deleted.retain(|key, _| !within(key));
        let deleted = &self.deleted;
        self.order.retain(|key| deleted.contains_key(key));
    }

    /// Returns the number of remembered deletions.
    pub(in crate::store) fn len(&self) -> usize {
        self.deleted.len()
    }
}
