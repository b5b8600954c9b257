//! Store of objects, with history and a revision counter for all objects.
//!
//! Every write makes a new snapshot of the resource that shares structure with the previous one, so
//! that pages and `Exact` lists keep reading their initial state. The log of changes feeds watches
//! that pull from that log: a slow watcher costs nothing and can neither lose nor repeat a change,
//! but can fall off the end of a bounded log. The store does not interpret objects.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rpds::RedBlackTreeMapSync;
use serde_json::{Value, json};

use crate::signal::{Receiver, Signal};

mod backup;
mod collected_writes;
mod journal;
mod object;
mod resource;
#[cfg(test)]
mod tests;

pub(crate) use backup::Backup;
pub(crate) use collected_writes::{CollectedWrites, Listener, by_server, by_user, collect};
pub(crate) use journal::{Batch, Journal};
pub(crate) use object::{StoredObject, size};
use resource::Resource;
pub(crate) use resource::StoredChange;

/// Objects of a resource by `namespace/name` (or `name`), in list order.
pub(crate) type Snapshot = RedBlackTreeMapSync<Arc<str>, Arc<StoredObject>>;

/// A batch of changes of a resource.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Changes in revision order.
    pub(crate) changes: Vec<StoredChange>,
    /// Whether the resource is no longer served; no change will follow.
    pub(crate) ended: bool,
}

/// Failure of a write: the key does not hold the expected state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PreconditionFailed;

/// Failure of a read: the history no longer reaches back to the requested revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The newest revision.
    pub(crate) current: u64,
}

/// Revision of an empty store; etcd's first.
const FIRST: u64 = 1;
/// Largest revision that a store begins with: half of those that etcd has are left.
pub(crate) const LARGEST: u64 = i64::MAX.unsigned_abs() / 2;
/// Number of changes that each resource keeps in the log.
const HISTORY: usize = 8192;
/// Bytes of objects, about, that the logs of all resources keep.
const HISTORY_BYTES: usize = 64 << 20;

/// The objects of all resources.
#[derive(Debug)]
pub(crate) struct Store {
    /// State of all resources. A single lock, so that revisions are given in order.
    inner: Mutex<Inner>,
    /// Notified of each new revision of any resource.
    newest: Arc<Signal>,
    /// Writes on their way to the data file; empty for a store in memory.
    journal: OnceLock<Arc<Journal>>,
    /// Listener of all writes, if a test installed one.
    listener: OnceLock<Listener>,
}

/// Ends the thread that writes the data file, after the writes so far.
impl Drop for Store {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.get() {
            journal.close();
        }
    }
}

/// Everything behind the store's lock.
#[derive(Debug)]
struct Inner {
    revision: u64,
    /// Whether a watch from a revision that does not exist yet is refused, rather than left
    /// waiting.
    refuses_future: bool,
    resources: BTreeMap<String, Resource>,
}

impl Inner {
    /// Drops old changes of the resource with the largest log while all logs are too large: a
    /// reader that has not read them is answered as compacted.
    fn bound(&mut self) {
        let mut total: usize = self.resources.values().map(|state| state.bytes).sum();
        while total > HISTORY_BYTES {
            let largest = self.resources.values_mut().max_by_key(|state| state.bytes);
            // The newest change stays: a watch must see it.
            let Some(largest) = largest.filter(|state| state.log.len() > 1) else { return };
            total -= largest.bytes;
            largest.forget_oldest();
            total += largest.bytes;
        }
    }
}

/// Position of a reader in a resource's history.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Revision up to which all changes have been read.
    pub(crate) revision: u64,
    incarnation: u64,
    wake: Receiver,
}

impl Cursor {
    /// Waits until the resource changes. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        self.wake.next().await;
    }
}

impl Store {
    /// Returns an empty store at revision 1, etcd's first.
    pub(crate) fn new() -> Self {
        let inner = Inner { revision: FIRST, refuses_future: false, resources: BTreeMap::new() };
        Self {
            inner: Mutex::new(inner),
            newest: Arc::default(),
            journal: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }

    /// Goes on from the state of a data file, and writes that file from now on.
    pub(crate) fn load(&self, backup: &Backup, journal: Arc<Journal>) {
        self.begin(backup);
        // Set once: a store has a single file.
        drop(self.journal.set(journal));
    }

    /// Goes on from a state whose history is not known.
    pub(crate) fn begin(&self, backup: &Backup) {
        let mut inner = self.inner.lock();
        inner.revision = inner.revision.max(backup.revision);
        let floor = inner.revision;
        for (name, snapshot) in &backup.resources {
            let fresh = || Resource::new(floor, 0);
            inner.resources.entry(name.clone()).or_insert_with(fresh).current = snapshot.clone();
        }
        for state in inner.resources.values_mut().filter(|_| floor > FIRST) {
            (state.floor, state.revision) = (floor, floor);
            state.base = state.current.clone();
        }
    }

    /// Returns the writes on their way to the data file; `None` for a store in memory.
    pub(crate) fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.get()
    }

    /// Waits until all writes so far are in the data file, if the store has one. Cancel safe.
    pub(crate) async fn durable(&self) {
        self.durable_until(self.ticket()).await;
    }

    /// Returns the number of writes so far; 0 for a store in memory.
    pub(crate) fn ticket(&self) -> u64 {
        self.journal.get().map_or(0, |journal| journal.ticket())
    }

    /// Waits until the first `ticket` writes are in the data file, if the store has one. Cancel
    /// safe.
    pub(crate) async fn durable_until(&self, ticket: u64) {
        if let Some(journal) = self.journal.get() {
            journal.reached(ticket).await;
        }
    }

    /// Installs the listener of all writes, which is called under the store's lock; the first
    /// listener stays.
    pub(crate) fn listen(&self, listener: Listener) {
        drop(self.listener.set(listener));
    }

    /// Reports a write to collectors and listeners, before any watch reads the change.
    fn report(&self, resource: &str, change: &StoredChange) {
        collected_writes::note(resource, change);
        if let Some(listener) = self.listener.get() {
            listener.call(resource, change);
        }
    }

    /// Whether a listener of writes is installed.
    pub(crate) fn is_listened(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Refuses later watches from a revision that does not exist yet.
    pub(crate) fn refuse_future(&self) {
        self.inner.lock().refuses_future = true;
    }

    /// Begins to serve a resource; with `fresh` it has no history from before now.
    pub(crate) fn serve(&self, resource: &str, fresh: bool) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        let floor = if fresh { revision } else { 0 };
        let slot = inner.resources.entry(resource.to_owned());
        let state = slot.or_insert_with(|| Resource::new(floor, 0));
        if !state.served {
            // The signal stays the same: cursors of the earlier incarnation wait on the signal and
            // must wake to find that they have ended.
            let wake = Arc::clone(&state.wake);
            if let Some(journal) = self.journal.get() {
                for (key, _) in &state.current {
                    journal.write(resource, key.clone(), None, revision);
                }
            }
            *state = Resource { wake, ..Resource::new(floor, state.incarnation + 1) };
        }
    }

    /// Stops serving a resource. Its watches end after the last change.
    pub(crate) fn end(&self, resource: &str) {
        if let Some(state) = self.inner.lock().resources.get_mut(resource) {
            state.served = false;
            state.wake.notify();
        }
    }

    /// Returns the newest revision of any resource.
    pub(crate) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Waits until `revision` exists. Cancel safe.
    pub(crate) async fn reached(&self, revision: u64) {
        // The receiver is made before the first look: a write in between is then not missed.
        let mut newest = self.newest.subscribe();
        while self.revision() < revision {
            newest.next().await;
        }
    }

    /// Returns the revision of the last write to a resource.
    pub(crate) fn resource_revision(&self, resource: &str) -> u64 {
        self.inner.lock().resources.get(resource).map_or(0, |state| state.revision)
    }

    /// Returns an object.
    pub(crate) fn get(&self, resource: &str, key: &str) -> Option<Arc<StoredObject>> {
        self.inner.lock().resources.get(resource)?.current.get(key).cloned()
    }

    /// Returns all objects of a resource now, and the newest revision at the same moment.
    pub(crate) fn snapshot(&self, resource: &str) -> (Snapshot, u64) {
        let inner = self.inner.lock();
        let current = inner.resources.get(resource).map(|state| state.current.clone());
        (current.unwrap_or_default(), inner.revision)
    }

    /// Returns all objects of a resource as they were at `revision`.
    pub(crate) fn snapshot_at(&self, resource: &str, revision: u64) -> Result<Snapshot, Compacted> {
        let inner = self.inner.lock();
        let Some(state) = inner.resources.get(resource) else { return Ok(Snapshot::new_sync()) };
        if revision < state.floor {
            return Err(Compacted { current: inner.revision });
        }
        // The last change at or before `revision` holds the state; without such a change `base`
        // does.
        let after = state.log.partition_point(|change| change.revision <= revision);
        let last = after.checked_sub(1).and_then(|index| state.log.get(index));
        Ok(last.map_or_else(|| state.base.clone(), |change| change.snapshot.clone()))
    }

    /// Stores `value` with the next revision as the resourceVersion, if the key still holds
    /// `expected` (`None`: no object).
    pub(crate) fn put(
        &self,
        resource: &str,
        key: &str,
        expected: Option<&Arc<StoredObject>>,
        mut value: Value,
    ) -> Result<Arc<StoredObject>, PreconditionFailed> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let state =
            inner.resources.entry(resource.to_owned()).or_insert_with(|| Resource::new(0, 0));
        // Before anything changes: a lost race must not use up a revision.
        check(state, key, expected)?;
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        let is_first = expected.is_none();
        let object = Arc::new(StoredObject { is_first, ..StoredObject::new(value, revision) });
        let key: Arc<str> = key.into();
        let change = StoredChange {
            revision,
            key: key.clone(),
            before: expected.cloned(),
            after: Some(object.clone()),
            snapshot: state.current.insert(key.clone(), object.clone()),
        };
        self.report(resource, &change);
        state.record(change);
        inner.revision = revision;
        inner.bound();
        if let Some(journal) = self.journal.get() {
            journal.write(resource, key, Some(object.clone()), revision);
        }
        self.newest.notify();
        Ok(object)
    }

    /// Removes a key if the key still holds `expected`, and returns the revision of the deletion.
    pub(crate) fn remove(
        &self,
        resource: &str,
        key: &str,
        expected: &Arc<StoredObject>,
    ) -> Result<u64, PreconditionFailed> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let state = inner.resources.get_mut(resource).ok_or(PreconditionFailed)?;
        check(state, key, Some(expected))?;
        let change = StoredChange {
            revision,
            key: key.into(),
            before: Some(expected.clone()),
            after: None,
            snapshot: state.current.remove(key),
        };
        self.report(resource, &change);
        state.record(change);
        inner.revision = revision;
        if let Some(journal) = self.journal.get() {
            journal.write(resource, key.into(), None, revision);
        }
        self.newest.notify();
        Ok(revision)
    }

    /// Returns the present objects and a cursor that reads every later change.
    pub(crate) fn follow(&self, resource: &str) -> (Snapshot, Cursor) {
        // A single lock for both: no change can fall between the snapshot and the cursor.
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        let state =
            inner.resources.entry(resource.to_owned()).or_insert_with(|| Resource::new(0, 0));
        let cursor =
            Cursor { revision, incarnation: state.incarnation, wake: state.wake.subscribe() };
        (state.current.clone(), cursor)
    }

    /// Returns a cursor that reads every change after `revision`, which may not exist yet.
    pub(crate) fn follow_from(&self, resource: &str, revision: u64) -> Result<Cursor, Compacted> {
        // The lock is taken a second time below: a change in between wakes the cursor, whose signal
        // is older.
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

    /// Returns at most `limit` changes after the cursor, and moves the cursor behind them.
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
        // The resource was served anew, or the store restored, since the cursor was made.
        if state.incarnation != cursor.incarnation {
            return Ok(ended);
        }
        if cursor.revision < state.floor {
            return Err(Compacted { current });
        }
        // Marked under the lock: a later write notifies again, so that no change is slept through.
        cursor.wake.mark_unchanged();
        let first = state.log.partition_point(|change| change.revision <= cursor.revision);
        let changes: Vec<StoredChange> =
            state.log.iter().skip(first).take(limit).cloned().collect();
        let all = first + changes.len() == state.log.len();
        // A cursor at a future revision stays there and hides the changes before it.
        let upto = if all { current } else { changes.last().map_or(current, |c| c.revision) };
        cursor.revision = cursor.revision.max(upto);
        // A reader gets all changes before the end is reported.
        Ok(Changes { changes, ended: all && !state.served })
    }

    /// Returns the numbers of objects and of changes in the history, and the history's bytes,
    /// about.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let inner = self.inner.lock();
        inner.resources.values().fold((0, 0, 0), |(objects, changes, bytes), state| {
            (objects + state.current.size(), changes + state.log.len(), bytes + state.bytes)
        })
    }

    /// Returns a backup of everything that is stored now.
    pub(crate) fn backup(&self) -> Backup {
        let inner = self.inner.lock();
        let resources =
            inner.resources.iter().map(|(name, state)| (name.clone(), state.current.clone()));
        Backup { revision: inner.revision, resources: resources.collect() }
    }

    /// Goes back to a backup. Open cursors end.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut inner = self.inner.lock();
        inner.revision = backup.revision;
        for name in backup.resources.keys() {
            let fresh = || Resource::new(backup.revision, 0);
            inner.resources.entry(name.clone()).or_insert_with(fresh);
        }
        for (name, state) in &mut inner.resources {
            let snapshot = backup.resources.get(name).cloned().unwrap_or_default();
            *state = Resource {
                current: snapshot.clone(),
                base: snapshot,
                // Objects come back with their definitions; an end would drop them when they are
                // served.
                served: state.served || backup.resources.contains_key(name),
                // The signal stays: readers wait on the signal, and must wake to find an ended
                // cursor.
                wake: Arc::clone(&state.wake),
                // A new incarnation ends open cursors: their revisions may exist again with other
                // contents.
                ..Resource::new(backup.revision, state.incarnation + 1)
            };
            state.wake.notify();
        }
        if let Some(journal) = self.journal.get() {
            journal.replace(backup.clone());
        }
        self.newest.notify();
    }

    /// Drops the history of all resources up to now.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        for state in inner.resources.values_mut() {
            state.compact(revision);
            // Woken watches that have not read the dropped changes find that they are compacted.
            state.wake.notify();
        }
    }
}

/// Fails unless the key holds exactly the expected state, compared by identity.
fn check(
    state: &Resource,
    key: &str,
    expected: Option<&Arc<StoredObject>>,
) -> Result<(), PreconditionFailed> {
    let same = match (state.current.get(key), expected) {
        (None, None) => true,
        // By identity: each write makes a new object, so an equal object may stand for another
        // write.
        (Some(held), Some(wanted)) => Arc::ptr_eq(held, wanted),
        _ => false,
    };
    if same { Ok(()) } else { Err(PreconditionFailed) }
}

/// Returns the key of an object: `namespace/name`, or the name alone.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Iterates over the objects of a namespace (all when empty), in key order.
pub(crate) fn in_namespace<'a>(
    snapshot: &'a Snapshot,
    namespace: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<StoredObject>)> + use<'a> {
    let (start, end) = bounds(namespace);
    let start: Arc<str> = start.into();
    snapshot.range::<Arc<str>, _>(start..).take_while(move |(key, _)| within(key, end.as_deref()))
}

/// Returns the first key of a namespace and the first key behind it.
fn bounds(namespace: &str) -> (String, Option<String>) {
    if namespace.is_empty() {
        (String::new(), None)
    } else {
        // '0' is the character after '/'.
        (format!("{namespace}/"), Some(format!("{namespace}0")))
    }
}

/// Whether a key is before the end of a namespace.
fn within(key: &str, end: Option<&str>) -> bool {
    end.is_none_or(|end| key < end)
}
