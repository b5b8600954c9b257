//! Objects, their history and one revision counter for all of them.
//!
//! Every write makes a new snapshot of its resource that shares structure with the one before, so
//! pages and `Exact` lists read what they began with, and the log of changes feeds watches by pulling:
//! a slow watcher costs nothing and can neither lose nor repeat a change, it only falls off the end
//! of a bounded log. What objects mean is not known here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rpds::RedBlackTreeMapSync;
use serde_json::{Value, json};

use crate::signal::{Ear, Signal};

#[cfg(test)]
mod tests;

/// Objects of one resource by `namespace/name` (or `name`), in the order lists show.
pub(crate) type Snapshot = RedBlackTreeMapSync<Arc<str>, Arc<Object>>;

/// A stored object; never changes.
pub(crate) struct Object {
    /// The whole object, in its storage version, with its resourceVersion.
    pub(crate) value: Value,
    /// Revision of the write that made it.
    pub(crate) revision: u64,
}

/// Not the value: it may be a Secret's, and backups hold all of them.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// One write, for watches.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Its revision.
    pub(crate) revision: u64,
    /// Key of the object.
    pub(crate) key: Arc<str>,
    /// State before; `None` when it was created.
    pub(crate) before: Option<Arc<Object>>,
    /// State after; `None` when it was deleted.
    pub(crate) after: Option<Arc<Object>>,
    snapshot: Snapshot,
}

/// A batch of changes.
#[derive(Debug)]
pub(crate) struct Changes {
    /// In revision order.
    pub(crate) changes: Vec<Change>,
    /// The resource is no longer served; nothing will follow.
    pub(crate) ended: bool,
}

/// The expected state of a key was not what it holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raced;

/// History no longer reaches back to the asked revision; `current` is the newest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The newest revision.
    pub(crate) current: u64,
}

/// All objects at one revision.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    revision: u64,
    resources: BTreeMap<String, Snapshot>,
}

impl Backup {
    /// The newest revision in it.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

/// How many changes each resource remembers.
const HISTORY: usize = 8192;

/// The objects of all resources.
#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    newest: Arc<Signal>,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    /// Is a watch from a revision that does not exist yet refused, rather than left waiting?
    refuses_future: bool,
    resources: BTreeMap<String, Resource>,
}

#[derive(Debug)]
struct Resource {
    current: Snapshot,
    /// State at `floor`.
    base: Snapshot,
    log: VecDeque<Change>,
    /// Changes up to here may be forgotten.
    floor: u64,
    /// Revision of its last write.
    revision: u64,
    served: bool,
    /// Grows each time it is served anew.
    incarnation: u64,
    wake: Arc<Signal>,
}

/// A place in a resource's history.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Everything up to here has been seen.
    pub(crate) revision: u64,
    incarnation: u64,
    wake: Ear,
}

impl Cursor {
    /// Waits until the resource changes. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        self.wake.next().await;
    }
}

impl Resource {
    fn new(floor: u64, incarnation: u64) -> Self {
        Self {
            current: Snapshot::new_sync(),
            base: Snapshot::new_sync(),
            log: VecDeque::new(),
            floor,
            revision: floor,
            served: true,
            incarnation,
            wake: Arc::default(),
        }
    }

    fn record(&mut self, change: Change) {
        self.revision = change.revision;
        self.current = change.snapshot.clone();
        self.log.push_back(change);
        while self.log.len() > HISTORY {
            self.forget_oldest();
        }
        self.wake.tell();
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.log.pop_front() {
            self.floor = oldest.revision;
            self.base = oldest.snapshot;
        }
    }

    fn compact(&mut self, upto: u64) {
        while self.log.front().is_some_and(|change| change.revision <= upto) {
            self.forget_oldest();
        }
        self.floor = self.floor.max(upto);
    }
}

impl Store {
    /// An empty store at revision 1, etcd's first.
    pub(crate) fn new() -> Self {
        let inner = Inner { revision: 1, refuses_future: false, resources: BTreeMap::new() };
        Self { inner: Mutex::new(inner), newest: Arc::default() }
    }

    /// From now on a watch from a revision that does not exist yet is refused.
    pub(crate) fn refuse_future(&self) {
        self.inner.lock().refuses_future = true;
    }

    /// Begins to serve a resource; `fresh` ones have no history from before now.
    pub(crate) fn serve(&self, resource: &str, fresh: bool) {
        let mut inner = self.inner.lock();
        let floor = if fresh { inner.revision } else { 0 };
        let slot = inner.resources.entry(resource.to_owned());
        let state = slot.or_insert_with(|| Resource::new(floor, 0));
        if !state.served {
            let wake = Arc::clone(&state.wake);
            *state = Resource { wake, ..Resource::new(floor, state.incarnation + 1) };
        }
    }

    /// Stops serving a resource: its watches end once they have seen what happened.
    pub(crate) fn end(&self, resource: &str) {
        if let Some(state) = self.inner.lock().resources.get_mut(resource) {
            state.served = false;
            state.wake.tell();
        }
    }

    /// The newest revision of anything.
    pub(crate) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Waits until `revision` exists. Cancel safe.
    pub(crate) async fn reached(&self, revision: u64) {
        let mut newest = self.newest.ear();
        while self.revision() < revision {
            newest.next().await;
        }
    }

    /// Revision of the last write to a resource.
    pub(crate) fn resource_revision(&self, resource: &str) -> u64 {
        self.inner.lock().resources.get(resource).map_or(0, |state| state.revision)
    }

    /// One object.
    pub(crate) fn get(&self, resource: &str, key: &str) -> Option<Arc<Object>> {
        self.inner.lock().resources.get(resource)?.current.get(key).cloned()
    }

    /// All objects of a resource now, and the revision of that moment.
    pub(crate) fn snapshot(&self, resource: &str) -> (Snapshot, u64) {
        let inner = self.inner.lock();
        let current = inner.resources.get(resource).map(|state| state.current.clone());
        (current.unwrap_or_default(), inner.revision)
    }

    /// All objects of a resource as they were at `revision`.
    pub(crate) fn snapshot_at(&self, resource: &str, revision: u64) -> Result<Snapshot, Compacted> {
        let inner = self.inner.lock();
        let Some(state) = inner.resources.get(resource) else { return Ok(Snapshot::new_sync()) };
        if revision < state.floor {
            return Err(Compacted { current: inner.revision });
        }
        let after = state.log.partition_point(|change| change.revision <= revision);
        let last = after.checked_sub(1).and_then(|index| state.log.get(index));
        Ok(last.map_or_else(|| state.base.clone(), |change| change.snapshot.clone()))
    }

    /// Stores `value` if the key still holds `expected` (`None`: nothing), with the next revision
    /// as its resourceVersion.
    pub(crate) fn put(
        &self,
        resource: &str,
        key: &str,
        expected: Option<&Arc<Object>>,
        mut value: Value,
    ) -> Result<Arc<Object>, Raced> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let state =
            inner.resources.entry(resource.to_owned()).or_insert_with(|| Resource::new(0, 0));
        check(state, key, expected)?;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let object = Arc::new(Object { value, revision });
        let key: Arc<str> = key.into();
        state.record(Change {
            revision,
            key: key.clone(),
            before: expected.cloned(),
            after: Some(object.clone()),
            snapshot: state.current.insert(key, object.clone()),
        });
        inner.revision = revision;
        self.newest.tell();
        Ok(object)
    }

    /// Removes a key if it still holds `expected`; gives the deletion's revision.
    pub(crate) fn remove(
        &self,
        resource: &str,
        key: &str,
        expected: &Arc<Object>,
    ) -> Result<u64, Raced> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let state = inner.resources.get_mut(resource).ok_or(Raced)?;
        check(state, key, Some(expected))?;
        state.record(Change {
            revision,
            key: key.into(),
            before: Some(expected.clone()),
            after: None,
            snapshot: state.current.remove(key),
        });
        inner.revision = revision;
        self.newest.tell();
        Ok(revision)
    }

    /// Objects now and a cursor that will see every later change.
    pub(crate) fn follow(&self, resource: &str) -> (Snapshot, Cursor) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        let state =
            inner.resources.entry(resource.to_owned()).or_insert_with(|| Resource::new(0, 0));
        let cursor = Cursor { revision, incarnation: state.incarnation, wake: state.wake.ear() };
        (state.current.clone(), cursor)
    }

    /// A cursor that will see every change after `revision`, which may be one that does not exist yet.
    pub(crate) fn follow_from(&self, resource: &str, revision: u64) -> Result<Cursor, Compacted> {
        let (_, cursor) = self.follow(resource);
        let inner = self.inner.lock();
        match inner.resources.get(resource) {
            Some(state) if revision < state.floor => Err(Compacted { current: inner.revision }),
            _ if inner.refuses_future && revision > inner.revision => {
                Err(Compacted { current: inner.revision })
            }
            _ => Ok(Cursor { revision, ..cursor }),
        }
    }

    /// Up to `limit` changes after the cursor, which moves on.
    pub(crate) fn changes(
        &self,
        resource: &str,
        cursor: &mut Cursor,
        limit: usize,
    ) -> Result<Changes, Compacted> {
        let inner = self.inner.lock();
        let current = inner.revision;
        let ended = Changes { changes: Vec::new(), ended: true };
        let Some(state) = inner.resources.get(resource) else { return Ok(ended) };
        if state.incarnation != cursor.incarnation {
            return Ok(ended);
        }
        if cursor.revision < state.floor {
            return Err(Compacted { current });
        }
        cursor.wake.hear();
        let first = state.log.partition_point(|change| change.revision <= cursor.revision);
        let changes: Vec<Change> = state.log.iter().skip(first).take(limit).cloned().collect();
        let all = first + changes.len() == state.log.len();
        // A cursor in the future stays there and hides what comes before it.
        let upto = if all { current } else { changes.last().map_or(current, |c| c.revision) };
        cursor.revision = cursor.revision.max(upto);
        Ok(Changes { changes, ended: all && !state.served })
    }

    /// Everything that is stored now.
    pub(crate) fn backup(&self) -> Backup {
        let inner = self.inner.lock();
        let resources =
            inner.resources.iter().map(|(name, state)| (name.clone(), state.current.clone()));
        Backup { revision: inner.revision, resources: resources.collect() }
    }

    /// Goes back to a backup; open cursors end.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut inner = self.inner.lock();
        inner.revision = backup.revision;
        for (name, state) in &mut inner.resources {
            let snapshot = backup.resources.get(name).cloned().unwrap_or_default();
            *state = Resource {
                current: snapshot.clone(),
                base: snapshot,
                served: state.served,
                wake: Arc::clone(&state.wake),
                ..Resource::new(backup.revision, state.incarnation + 1)
            };
            state.wake.tell();
        }
        self.newest.tell();
    }

    /// Forgets the history of everything up to now.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        for state in inner.resources.values_mut() {
            state.compact(revision);
            state.wake.tell();
        }
    }
}

fn check(state: &Resource, key: &str, expected: Option<&Arc<Object>>) -> Result<(), Raced> {
    let same = match (state.current.get(key), expected) {
        (None, None) => true,
        (Some(held), Some(wanted)) => Arc::ptr_eq(held, wanted),
        _ => false,
    };
    if same { Ok(()) } else { Err(Raced) }
}

/// The key of an object.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Objects of a namespace (all when empty), in key order.
pub(crate) fn in_namespace<'a>(
    snapshot: &'a Snapshot,
    namespace: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)> + use<'a> {
    let (start, end) = bounds(namespace);
    let start: Arc<str> = start.into();
    snapshot.range::<Arc<str>, _>(start..).take_while(move |(key, _)| within(key, end.as_deref()))
}

/// First key and first key behind a namespace.
fn bounds(namespace: &str) -> (String, Option<String>) {
    if namespace.is_empty() {
        (String::new(), None)
    } else {
        // '0' follows '/'.
        (format!("{namespace}/"), Some(format!("{namespace}0")))
    }
}

fn within(key: &str, end: Option<&str>) -> bool {
    end.is_none_or(|end| key < end)
}
