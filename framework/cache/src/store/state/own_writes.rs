//! Own writes that the watch has not shown yet, overlaid on the state shown by the watch.

// DESIGN.md, 61: Own writes are cached from the response body
// DESIGN.md, 66: An own deletion hides all earlier versions of the object's name

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::store::index::{ValueRange, Values};
use crate::store::object::Object;
use crate::store::version::order;
use windlass_core::resource::ObjectKey;

/// Longest time for which readers see an own write that the watch has not confirmed.
pub(crate) const OWN_WRITE_VALID: Duration = Duration::from_secs(10);
/// Time for which an unconfirmed write is remembered as stale, by default.
///
/// 21 minutes.
const OWN_WRITE_RETENTION: Duration = Duration::from_secs(1260);

/// Shortest time between two searches for expired writes.
///
/// A search visits all writes; without an interval, each write would pay for a search.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);

/// Own deletions that are remembered for a key.
///
/// Several, since an object can be deleted, created by another client and deleted again before the
/// watch shows the first of these.
const DELETIONS: usize = 4;

/// An own write.
#[derive(Debug)]
struct OwnWriteEntry {
    /// The object or the deletion that the write left.
    state: OwnWrite,
    /// Time of the write; readers see it for [`OWN_WRITE_VALID`] from here.
    at: Instant,
    /// Whether the watch's state was from before the server's store was set back. Then the write
    /// wins, regardless of the versions.
    outranks: bool,
    /// Whether the write was a dry run, which no watch shows: readers see it until the write is
    /// withdrawn.
    is_dry_run: bool,
    /// The entries of this write in `by_value`.
    terms: Vec<IndexTerm>,
}

/// The number of an index, and a value in it.
type IndexTerm = (usize, Box<str>);

/// State of an own write that the watch has not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// Readers see the write.
    Shown,
    /// The write was not confirmed in time: readers see the state before the write.
    Expired,
}

/// The state that an own write left.
enum OwnWrite {
    /// The object of the answer to a create, an update or a patch.
    Object(Arc<Object>),
    /// No object: the write was a deletion.
    Gone(OwnDeletion),
}

/// An own deletion.
struct OwnDeletion {
    /// Uids of the last deleted objects, the newest last.
    uids: Vec<Box<str>>,
    /// The last version of the deleted object that was known. States up to this version are gone,
    /// too.
    until: Box<str>,
}

impl OwnDeletion {
    /// Whether the object of that uid is gone.
    fn was(&self, uid: &str) -> bool {
        self.uids.iter().any(|gone| **gone == *uid)
    }

    /// Whether readers do not see `object` because of this deletion.
    fn hides(&self, object: &Object) -> bool {
        self.was(object.metadata().uid())
            || order(object.version(), &self.until).is_some_and(Ordering::is_le)
    }
}

impl std::fmt::Debug for OwnWrite {
    /// Shows names, uids and versions only: the content of a Secret must not reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{}@{}", object.key(), object.version()),
            Self::Gone(gone) => write!(f, "gone {:?}@{}", gone.uids, gone.until),
        }
    }
}

/// Own writes by key; few, because the watch removes them again.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// The newest write of each key: an answer with an older version does not replace that write.
    writes: BTreeMap<ObjectKey, OwnWriteEntry>,
    /// Keys of the written objects by index value, so that a lookup need not search all writes.
    by_value: BTreeMap<IndexTerm, BTreeSet<ObjectKey>>,
    /// Keys that were written before the newest index was added.
    unindexed: BTreeSet<ObjectKey>,
    /// Time of the last search for expired writes; `None` before the first.
    pruned: Option<Instant>,
    /// Time for which an unconfirmed write is remembered as stale, before being forgotten. Longer
    /// than a watch can be silent, as otherwise a write that was never shown would count as
    /// confirmed.
    kept: Duration,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            writes: BTreeMap::new(),
            by_value: BTreeMap::new(),
            unindexed: BTreeSet::new(),
            pruned: None,
            kept: OWN_WRITE_RETENTION,
        }
    }
}

impl Overlay {
    /// Returns whether no write is remembered, stale writes included. Reads then skip the overlay.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the number of remembered writes, stale writes included.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Records a write; `values` has the object's values in the first `tables` indexes of the
    /// store.
    pub(crate) fn wrote(
        &mut self,
        object: Arc<Object>,
        (values, part, tables): (&Values, &ValueRange, usize),
        now: Instant,
        outranks: bool,
    ) {
        self.prune(now);
        let is_over = match self.writes.get(object.key()).map(|own| &own.state) {
            Some(OwnWrite::Object(known)) => {
                order(object.version(), known.version()) == Some(Ordering::Less)
            }
            // The answer belongs to a write from before the deletion.
            Some(OwnWrite::Gone(gone)) => gone.hides(&object),
            None => false,
        };
        if !is_over {
            self.insert(object, (values, part, tables), now, outranks);
        }
    }

    /// Records a dry run whose answer was `object`. The version in the answer says nothing: that of
    /// an update is the old version, and a creation has none.
    pub(crate) fn wrote_in_dry_run(
        &mut self,
        object: Arc<Object>,
        values: (&Values, &ValueRange, usize),
        now: Instant,
    ) {
        let key = object.key().clone();
        self.insert(object, values, now, true);
        if let Some(own) = self.writes.get_mut(&key) {
            own.is_dry_run = true;
        }
    }

    /// Records a deletion by a dry run.
    pub(crate) fn deleted_in_dry_run(&mut self, key: &ObjectKey, uid: &str, now: Instant) {
        let state = OwnWrite::Gone(OwnDeletion { uids: vec![uid.into()], until: Box::default() });
        self.remove(key);
        let own =
            OwnWriteEntry { state, at: now, outranks: false, is_dry_run: true, terms: Vec::new() };
        self.writes.insert(key.clone(), own);
    }

    /// Withdraws a dry run: readers see the stored state again.
    pub(crate) fn withdraw(&mut self, key: &ObjectKey) {
        if self.is_dry_run(key) {
            self.remove(key);
        }
    }

    fn is_dry_run(&self, key: &ObjectKey) -> bool {
        self.writes.get(key).is_some_and(|own| own.is_dry_run)
    }

    /// Inserts a write in place of an earlier write.
    fn insert(
        &mut self,
        object: Arc<Object>,
        (values, part, tables): (&Values, &ValueRange, usize),
        now: Instant,
        outranks: bool,
    ) {
        let key = object.key().clone();
        self.remove(&key);
        let terms = (0..tables).flat_map(|table| {
            values.of(part, table).iter().map(move |text| (table, Box::from(text)))
        });
        let terms: Vec<IndexTerm> = terms.collect();
        for term in &terms {
            self.by_value.entry(term.clone()).or_default().insert(key.clone());
        }
        let state = OwnWrite::Object(object);
        self.writes
            .insert(key, OwnWriteEntry { state, at: now, outranks, is_dry_run: false, terms });
    }

    /// Marks all writes as unindexed: the store has another index, without their values.
    pub(crate) fn unindex(&mut self) {
        self.by_value.clear();
        for (key, own) in &mut self.writes {
            own.terms.clear();
            self.unindexed.insert(key.clone());
        }
    }

    /// Returns the keys of written objects that may have this value in the index of that number.
    pub(crate) fn with_value(&self, table: usize, text: &str) -> impl Iterator<Item = &ObjectKey> {
        let term = (table, Box::from(text));
        // Most of the time there are no own writes: the text is not hashed then.
        let known = if self.by_value.is_empty() { None } else { self.by_value.get(&term) };
        known.into_iter().flatten().chain(&self.unindexed)
    }

    /// Removes the write of a key together with the entries in `by_value` and `unindexed`. Values
    /// without keys are removed as well: otherwise the map would keep every value that was ever
    /// written.
    fn remove(&mut self, key: &ObjectKey) {
        let Some(own) = self.writes.remove(key) else { return };
        self.unindexed.remove(key);
        for term in &own.terms {
            if let Some(keys) = self.by_value.get_mut(term) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_value.remove(term);
                }
            }
        }
    }

    /// Removes the writes for which `keep` returns false.
    fn retain(&mut self, keep: impl Fn(&ObjectKey, &OwnWriteEntry) -> bool) {
        let over = self.writes.iter().filter(|(key, own)| !own.is_dry_run && !keep(key, own));
        let over: Vec<ObjectKey> = over.map(|(key, _)| key.clone()).collect();
        over.iter().for_each(|key| self.remove(key));
    }

    /// Records the deletion of the object of that uid; `seen` is the watch's state of the key.
    pub(crate) fn deleted(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        seen: Option<&Object>,
        now: Instant,
    ) {
        self.prune(now);
        let Some(until) = self.last_known(key, uid, seen, now) else { return };
        let mut uids = match self.writes.get(key).map(|own| &own.state) {
            Some(OwnWrite::Gone(gone)) => gone.uids.clone(),
            _ => Vec::new(),
        };
        uids.push(uid.into());
        if uids.len() > DELETIONS {
            uids.remove(0);
        }
        let state = OwnWrite::Gone(OwnDeletion { uids, until });
        self.remove(key);
        let own =
            OwnWriteEntry { state, at: now, outranks: false, is_dry_run: false, terms: Vec::new() };
        self.writes.insert(key.clone(), own);
    }

    /// Returns the last known version of a deleted object; `None` when there is nothing to hide.
    fn last_known(
        &self,
        key: &ObjectKey,
        uid: &str,
        seen: Option<&Object>,
        now: Instant,
    ) -> Option<Box<str>> {
        let seen = seen.filter(|seen| seen.metadata().uid() == uid);
        let own = self.writes.get(key);
        let version = match own.map(|own| (&own.state, now < own.at + OWN_WRITE_VALID)) {
            // Also a write that readers do not see any more.
            Some((OwnWrite::Object(own), _)) if own.metadata().uid() == uid => own.version(),
            // A successor of the deleted object was written, and hides the deleted object already.
            Some((OwnWrite::Object(_), true)) => return None,
            Some((OwnWrite::Gone(gone), true)) => match seen {
                Some(seen) if gone.hides(seen) => return None,
                Some(seen) => seen.version(),
                None => &gone.until,
            },
            _ => seen?.version(),
        };
        Some(version.into())
    }

    /// Returns the object that readers see at `key` when the watch has shown `seen`.
    pub(crate) fn resolve<'a>(
        &'a self,
        key: &ObjectKey,
        seen: Option<&'a Arc<Object>>,
        now: Instant,
    ) -> Option<&'a Arc<Object>> {
        match self.writes.get(key) {
            Some(own) if own.is_dry_run || now < own.at + OWN_WRITE_VALID => {
                match (&own.state, seen) {
                    (OwnWrite::Object(own), None) => Some(own),
                    (OwnWrite::Object(own_object), Some(_)) if own.outranks => Some(own_object),
                    (OwnWrite::Object(own), Some(seen)) => {
                        match order(own.version(), seen.version()) {
                            Some(Ordering::Less | Ordering::Equal) => Some(seen),
                            _ => Some(own),
                        }
                    }
                    (OwnWrite::Gone(gone), Some(seen)) if gone.hides(seen) => None,
                    // Nothing, or a later object than the deleted object.
                    (OwnWrite::Gone(_), seen) => seen,
                }
            }
            _ => seen,
        }
    }

    /// The keys with an own write, which readers may see.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.writes.keys()
    }

    /// Returns the state of a write that the watch has not shown; `None` when there is none.
    pub(crate) fn unseen(&self, key: &ObjectKey, now: Instant) -> Option<Unconfirmed> {
        self.writes.get(key).filter(|own| !own.is_dry_run)?;
        Some(if self.is_stale(key, now) { Unconfirmed::Expired } else { Unconfirmed::Shown })
    }

    /// Whether there is a write that the watch has not shown in time.
    pub(crate) fn is_stale(&self, key: &ObjectKey, now: Instant) -> bool {
        let own = self.writes.get(key).filter(|own| !own.is_dry_run);
        own.is_some_and(|own| now >= own.at + OWN_WRITE_VALID)
    }

    /// Handles an object that the watch has shown: removes the write confirmed by this object.
    pub(crate) fn seen(&mut self, object: &Object) {
        if self.is_dry_run(object.key()) {
            return;
        }
        let caught_up = match self.writes.get(object.key()).map(|own| &own.state) {
            Some(OwnWrite::Object(own)) => {
                matches!(
                    order(object.version(), own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                )
            }
            Some(OwnWrite::Gone(gone)) => !gone.hides(object),
            None => false,
        };
        if caught_up {
            self.remove(object.key());
        // The watch is in the new epoch now: from here on versions decide.
        } else if let Some(own) = self.writes.get_mut(object.key()) {
            own.outranks = false;
        }
    }

    /// Handles a deletion of `key` at `version` that the watch has shown.
    pub(crate) fn observe_deleted(&mut self, key: &ObjectKey, uid: &str, version: &str) {
        if self.is_dry_run(key) {
            return;
        }
        let caught_up = match self.writes.get(key).map(|own| &own.state) {
            Some(OwnWrite::Object(own)) => match order(version, own.version()) {
                Some(order) => order != Ordering::Less,
                None => own.metadata().uid() == uid,
            },
            // The deletion of an earlier object of that key does not confirm this deletion.
            Some(OwnWrite::Gone(gone)) => {
                gone.was(uid) || order(version, &gone.until).is_none_or(Ordering::is_gt)
            }
            None => false,
        };
        if caught_up {
            self.remove(key);
        }
    }

    /// Handles a list at `version` that did not show the `absent` keys.
    pub(crate) fn listed(&mut self, version: &str, absent: &dyn Fn(&ObjectKey) -> bool) {
        self.retain(|key, own| {
            if !absent(key) {
                return true;
            }
            match &own.state {
                OwnWrite::Object(own) => !matches!(
                    order(version, own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                ),
                OwnWrite::Gone(gone) => order(version, &gone.until) == Some(Ordering::Less),
            }
        });
    }

    /// Forgets the writes of the keys for which `within` is true, because versions have lost their
    /// order.
    pub(crate) fn forget(&mut self, within: &dyn Fn(&ObjectKey) -> bool) {
        self.retain(|key, _| !within(key));
    }

    /// Sets how long an unconfirmed write is remembered.
    pub(crate) fn set_retention(&mut self, kept: Duration) {
        self.kept = kept;
    }

    /// Forgets writes that were not confirmed for too long; at most once in [`PRUNE_INTERVAL`].
    fn prune(&mut self, now: Instant) {
        if self.pruned.is_some_and(|last| now < last + PRUNE_INTERVAL) {
            return;
        }
        self.pruned = Some(now);
        let kept = self.kept;
        self.retain(|_, own| now < own.at + kept);
    }
}
