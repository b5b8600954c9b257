//! Registered reads: the objects and index values that the last reconcile of each object read, and
//! the way back from a change to the readers.
//!
//! Each read is registered before the cache is asked, and carries the number of the run. A run that
//! succeeds removes the reads of earlier runs; a run that fails, or is dropped, removes none, so
//! the union of both is kept. A read holds a source, and thereby the cache: with the last read of a
//! kind the cache stops. Sources are dropped outside of the lock, because the end of a source runs
//! code of the cache.
//!
//! Bounds: an object with too many reads, or a new object when all objects together have too many,
//! reads the whole kind instead: each change of the kind then wakes the object.

// DESIGN.md, 155: Reads are registered before the cache is asked
// DESIGN.md, 299: A read that repeats the former runs sets a bit

mod repeated;
mod selections;
mod tables;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release, SeqCst},
};
use std::sync::{Arc, OnceLock};

pub(crate) use self::repeated::AttemptReads;
use self::repeated::{ListedReads, RepeatedReads};
pub(crate) use self::selections::{Labels, ReadSelection};
use self::tables::Tables;
use windlass_core::metrics::{CounterSeries, GaugeSeries};
use windlass_core::resource::ObjectKey;
use windlass_core::sync::Mutex;

/// Most reads of one object; with more the object reads whole kinds.
const MOST_PER_OBJECT: usize = 1_000;
/// Most reads of all objects of a controller; further reads are of whole kinds.
const MOST: usize = 250_000;
/// Most changes that are named as reasons of a reconcile.
const MOST_CAUSES: usize = 4;

/// Target of a read within a source. The order is one for lookups: that of objects is by the hashes
/// of their keys, whose texts most often begin alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadTarget {
    /// All objects of the kind.
    Kind,
    /// An object, whether it exists or not.
    Object(ObjectKey),
    /// The objects with a value in the index of that number.
    Value(usize, Arc<str>),
    /// The objects of a namespace, or of all, that a label selector matches.
    Selection(Arc<ReadSelection>),
}

impl ReadTarget {
    /// Returns the place of the variant in the order.
    fn rank(&self) -> u8 {
        match self {
            Self::Object(_) => 0,
            Self::Kind => 1,
            Self::Value(..) => 2,
            Self::Selection(_) => 3,
        }
    }

    /// Returns the text behind the name of the resource in a plan.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Kind => String::new(),
            Self::Object(key) => format!(" {key}"),
            Self::Value(_, value) => format!(" by {value}"),
            Self::Selection(selection) => {
                let within = selection.namespace.as_ref().map(|namespace| format!(" {namespace}"));
                let labels = &selection.labels;
                let labels =
                    if labels.is_empty() { String::new() } else { format!(" by {labels}") };
                format!("{}{labels}", within.unwrap_or_default())
            }
        }
    }
}

impl PartialOrd for ReadTarget {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReadTarget {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Object(one), Self::Object(two)) => {
                KeyHasher::of(one).cmp(&KeyHasher::of(two)).then_with(|| one.cmp(two))
            }
            (Self::Value(one, value), Self::Value(two, other)) => {
                one.cmp(two).then_with(|| value.cmp(other))
            }
            (Self::Selection(one), Self::Selection(two)) => one.cmp(two),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Takes the hash that a key carries.
#[derive(Default)]
struct KeyHasher(u64);

impl KeyHasher {
    /// Returns the hash that a key carries.
    fn of(key: &ObjectKey) -> u64 {
        let mut hasher = Self::default();
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl Hasher for KeyHasher {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// State that a reader found, which is compared with later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundVersion {
    /// The cache is not filled: the reader waits, and reads the cache afterwards.
    Awaited,
    /// The reader is about to read: every change counts.
    Unread,
    /// Several states, or the states of several objects: every change counts.
    Several,
    /// No object.
    Absent,
    /// The object in this version.
    Version(Box<str>),
}

impl FoundVersion {
    /// Whether a change from `old` to `new`, both versions, makes a difference to the reader.
    fn differs(&self, old: Option<&str>, new: Option<&str>) -> bool {
        match self {
            Self::Awaited => false,
            Self::Unread | Self::Several => true,
            Self::Absent => new.is_some(),
            // The watch shows a state that was read already, as after a write of the reader. A
            // server that was set back may use the same version for two states.
            Self::Version(version) => new != Some(version) || old == Some(version),
        }
    }
}

/// A source of changes: the number, and a reference that keeps the source running.
#[derive(Clone)]
pub(crate) struct ReadSourceRef {
    pub(crate) number: u64,
    pub(crate) holder: Arc<dyn Any + Send + Sync>,
}

/// A reader in a run.
#[derive(Clone, Copy)]
pub(crate) struct RunRef<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a str,
    pub(crate) run: u64,
}

/// A change of an object, for readers.
#[derive(Debug)]
pub(crate) struct ReadChange<'a> {
    pub(crate) key: &'a ObjectKey,
    /// Version before the change; `None` if there was no object.
    pub(crate) old: Option<&'a str>,
    /// Version after the change; `None` if the object is gone.
    pub(crate) new: Option<&'a str>,
    /// Values before and after the change, with the numbers of their indexes.
    pub(crate) values: Vec<(usize, String)>,
    /// Labels before and after the change, of the states that existed; not read for a source
    /// without selections.
    pub(crate) labels: [Option<Labels<'a>>; 2],
}

/// Registered reads of a controller's objects.
#[derive(Default)]
pub(crate) struct RegisteredReads {
    tables: Mutex<Tables>,
    /// Number of reads when the lock was last released: without reads nothing takes the lock.
    reads: AtomicUsize,
    runs: AtomicU64,
    /// Number of times at which reads of readers were forgotten: lists from before are not used.
    forgotten: AtomicU64,
    meters: OnceLock<ReadMeters>,
    limits: ReadLimits,
}

/// Bounds of the tables.
struct ReadLimits {
    per_object: usize,
    in_total: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { per_object: MOST_PER_OBJECT, in_total: MOST }
    }
}

/// Metrics of registered reads.
#[derive(Debug)]
pub(crate) struct ReadMeters {
    /// Registered reads.
    pub(crate) reads: GaugeSeries,
    /// Readers that were woken.
    pub(crate) wakes: CounterSeries,
    /// Reads of single objects that became reads of a kind.
    pub(crate) widened: CounterSeries,
}

impl std::fmt::Debug for RegisteredReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredReads").field("reads", &self.reads).finish_non_exhaustive()
    }
}

impl RegisteredReads {
    /// Sets the metrics.
    pub(crate) fn set_meters(&self, meters: ReadMeters) {
        let _ = self.meters.set(meters);
    }

    /// Returns the number of a new run; never 0.
    pub(crate) fn new_run(&self) -> u64 {
        // Relaxed: the number guards no data.
        self.runs.fetch_add(1, Relaxed) + 1
    }

    /// Registers a read before the read itself. Without `is_ready` the cache is not filled: changes
    /// do not wake the reader before the read.
    pub(crate) fn register(
        &self,
        reader: RunRef<'_>,
        source: &ReadSourceRef,
        target: ReadTarget,
        is_ready: bool,
    ) {
        let mut tables = self.tables.lock();
        let before = tables.reads();
        let registered = tables.register(reader, source, target, (is_ready, &self.limits));
        self.publish(&tables, before);
        drop(tables);
        if registered.is_widened {
            if let Some(meters) = self.meters.get() {
                meters.widened.count(1);
            }
            tracing::warn!(
                object = %reader.key,
                limit = self.limits.per_object,
                limit_of_all = self.limits.in_total,
                "too many reads are registered: from now on every change of the kind reconciles the \
                 object"
            );
        }
        // After the lock: this may be the last reference to a cache.
        drop(registered.removed);
    }

    /// Makes a registered read a read of this run if it found the version that the reader has found
    /// now, which is given with its serial number in the cache; false if a registration is needed.
    /// Such a read need not be registered again: it was registered all the time, and any other
    /// version wakes the reader.
    pub(crate) fn confirm(
        &self,
        reader: RunRef<'_>,
        place: &(u64, ReadTarget),
        found: Option<(&str, u64)>,
    ) -> bool {
        !self.is_empty() && self.tables.lock().confirm(reader, place, found)
    }

    /// Returns the list of the reads that the last runs of an object have made alike, if they have.
    fn listed(&self, key: &ObjectKey, uid: &str) -> Option<ListedReads> {
        if self.is_empty() {
            return None;
        }
        let tables = self.tables.lock();
        let forgotten = self.forgotten.load(Relaxed);
        tables.repeated(key, uid).map(|reads| ListedReads { reads, forgotten })
    }

    /// Makes these reads of a list reads of this run.
    fn mark(&self, reader: RunRef<'_>, reads: &RepeatedReads, made: u64) {
        self.tables.lock().mark(reader, reads, made);
    }

    /// Records the state that was found by a registered read.
    pub(crate) fn found(
        &self,
        reader: RunRef<'_>,
        source: u64,
        target: &ReadTarget,
        found: FoundVersion,
    ) {
        self.tables.lock().found(reader, source, target, found);
    }

    /// Replaces the reads of an object by those of a run that succeeded; 0 for a run without reads.
    pub(crate) fn commit(&self, key: &ObjectKey, run: u64) {
        self.change_if_any(|tables| tables.commit(key, run));
    }

    /// Forgets the reads of an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.change_if_any(|tables| {
            self.forgotten.fetch_add(1, Release);
            tables.forget(key)
        });
    }

    /// Forgets all reads.
    pub(crate) fn clear(&self) {
        self.change_if_any(|tables| {
            self.forgotten.fetch_add(1, Release);
            std::mem::take(&mut *tables)
        });
    }

    /// Returns the readers that these changes of a source concern, and notes `name` of each change
    /// as their reason.
    pub(crate) fn changed(
        &self,
        source: u64,
        changes: &[ReadChange<'_>],
        name: impl Fn(&ObjectKey) -> Arc<str>,
    ) -> Vec<ObjectKey> {
        if self.is_empty() {
            return Vec::new();
        }
        let woken = self.tables.lock().changed(source, changes, name);
        if let Some(meters) = self.meters.get() {
            meters.wakes.count(woken.len() as u64);
        }
        woken
    }

    /// Makes the changes since the last reconcile of an object the reasons of the reconcile that
    /// begins.
    pub(crate) fn take_causes(&self, key: &ObjectKey) {
        if !self.is_empty() {
            self.tables.lock().take_causes(key);
        }
    }

    /// Returns the names of the changes for which the last reconcile of an object began.
    pub(crate) fn causes(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        if self.is_empty() { Vec::new() } else { self.tables.lock().causes(key) }
    }

    /// Returns the names of the changes for which an object is going to be reconciled.
    pub(crate) fn next_causes(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        if self.is_empty() { Vec::new() } else { self.tables.lock().next_causes(key) }
    }

    /// Returns the numbers of readers and of reads.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let tables = self.tables.lock();
        (tables.readers(), tables.reads())
    }

    /// Whether no read is registered.
    pub(crate) fn is_empty(&self) -> bool {
        // A reader registers and then reads the cache; a delivery changes the cache and then loads
        // this. One that loads 0 has changed the cache before the read, as the lock of the cache
        // shows the registration otherwise. The reads of a key are ordered by the work queue.
        // `SeqCst` is stronger than needed, and a plain load on common processors.
        self.reads.load(SeqCst) == 0
    }

    /// Changes the tables, unless they are empty; drops the returned parts after the lock.
    fn change_if_any<T>(&self, change: impl FnOnce(&mut Tables) -> T) {
        if self.is_empty() {
            return;
        }
        let mut tables = self.tables.lock();
        let before = tables.reads();
        let removed = change(&mut tables);
        self.publish(&tables, before);
        drop(tables);
        drop(removed);
    }

    /// Publishes the sizes if they differ from `before`; called under the lock.
    fn publish(&self, tables: &Tables, before: usize) {
        if tables.reads() == before {
            return;
        }
        // Under the lock, so that no earlier number overwrites a later one; see `is_empty`.
        self.reads.store(tables.reads(), SeqCst);
        if let Some(meters) = self.meters.get() {
            meters.reads.set(tables.reads() as f64);
        }
    }
}
