//! What this process wrote and the watch has not shown yet, laid over what the watch has shown.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::object::Object;
use super::values::{Part, Values};
use super::version::order;
use crate::resource::ObjectKey;

/// So long an own write counts before the watch has confirmed it.
pub(crate) const OWN_WRITE_VALID: Duration = Duration::from_secs(10);
/// So long an unconfirmed write is remembered as stale, unless told otherwise.
const OWN_WRITE_KEPT: Duration = Duration::from_secs(1260);

/// Writes that are remembered are looked through for those that are over this often.
const PRUNED_EVERY: Duration = Duration::from_secs(10);

/// So many own deletions at one key are remembered.
const DELETIONS: usize = 4;

#[derive(Debug)]
struct Own {
    state: Written,
    at: Instant,
    /// Was what the watch had shown from before the server's store was set back? Then it counts for
    /// more, whatever the versions.
    outranks: bool,
    /// Where `by_value` has it.
    terms: Vec<Term>,
}

/// The number of a table, and a value in it.
type Term = (usize, Box<str>);

/// What is known of an own write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// Readers are shown it.
    Shown,
    /// It was not confirmed in time: readers are shown what was before.
    Lapsed,
}

enum Written {
    Object(Arc<Object>),
    Gone(Gone),
}

/// An own deletion.
struct Gone {
    /// The last few that were deleted, the newest last.
    uids: Vec<Box<str>>,
    /// The last version of the deleted object that anybody knew. What was there before is gone, too.
    until: Box<str>,
}

impl Gone {
    /// Is it the object of that uid that is gone?
    fn was(&self, uid: &str) -> bool {
        self.uids.iter().any(|gone| **gone == *uid)
    }

    fn hides(&self, object: &Object) -> bool {
        self.was(object.head().uid())
            || order(object.version(), &self.until).is_some_and(Ordering::is_le)
    }
}

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{}@{}", object.key(), object.version()),
            Self::Gone(gone) => write!(f, "gone {:?}@{}", gone.uids, gone.until),
        }
    }
}

/// Own writes by key; small, because the watch takes them out again.
#[derive(Debug)]
pub(crate) struct Overlay {
    writes: BTreeMap<ObjectKey, Own>,
    /// Where the store's indexes have the written objects, so that a lookup does not go through all.
    by_value: BTreeMap<Term, BTreeSet<ObjectKey>>,
    /// Written before the newest index was there.
    unindexed: BTreeSet<ObjectKey>,
    pruned: Option<Instant>,
    /// So long an unconfirmed write is remembered as stale, then it is forgotten. Longer than a
    /// watch can be silent, or a write that was never shown would pass for confirmed.
    kept: Duration,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            writes: BTreeMap::new(),
            by_value: BTreeMap::new(),
            unindexed: BTreeSet::new(),
            pruned: None,
            kept: OWN_WRITE_KEPT,
        }
    }
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// `values` has the object's values in the first `tables` indexes of the store.
    pub(crate) fn wrote(
        &mut self,
        object: Arc<Object>,
        (values, part, tables): (&Values, &Part, usize),
        now: Instant,
        outranks: bool,
    ) {
        self.prune(now);
        let is_over = match self.writes.get(object.key()).map(|own| &own.state) {
            Some(Written::Object(known)) => {
                order(object.version(), known.version()) == Some(Ordering::Less)
            }
            // The answer to an earlier write than the deletion.
            Some(Written::Gone(gone)) => gone.hides(&object),
            None => false,
        };
        if is_over {
            return;
        }
        let key = object.key().clone();
        self.remove(&key);
        let terms = (0..tables).flat_map(|table| {
            values.of(part, table).iter().map(move |text| (table, Box::from(text)))
        });
        let terms: Vec<Term> = terms.collect();
        for term in &terms {
            self.by_value.entry(term.clone()).or_default().insert(key.clone());
        }
        let state = Written::Object(object);
        self.writes.insert(key, Own { state, at: now, outranks, terms });
    }

    /// The store has another index: what was written before is not in it.
    pub(crate) fn unindex(&mut self) {
        self.by_value.clear();
        for (key, own) in &mut self.writes {
            own.terms.clear();
            self.unindexed.insert(key.clone());
        }
    }

    /// The keys of written objects that may have this value in the index of that number.
    pub(crate) fn with_value(&self, table: usize, text: &str) -> impl Iterator<Item = &ObjectKey> {
        let term = (table, Box::from(text));
        let known = if self.by_value.is_empty() { None } else { self.by_value.get(&term) };
        known.into_iter().flatten().chain(&self.unindexed)
    }

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

    /// Removes the writes of which `keep` says no.
    fn retain(&mut self, keep: impl Fn(&ObjectKey, &Own) -> bool) {
        let over = self.writes.iter().filter(|(key, own)| !keep(key, own));
        let over: Vec<ObjectKey> = over.map(|(key, _)| key.clone()).collect();
        over.iter().for_each(|key| self.remove(key));
    }

    /// The object of that uid is deleted; the watch has shown `seen` at its key.
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
            Some(Written::Gone(gone)) => gone.uids.clone(),
            _ => Vec::new(),
        };
        uids.push(uid.into());
        if uids.len() > DELETIONS {
            uids.remove(0);
        }
        let state = Written::Gone(Gone { uids, until });
        self.remove(key);
        self.writes.insert(key.clone(), Own { state, at: now, outranks: false, terms: Vec::new() });
    }

    /// The last known version of an object that was deleted; `None` when there is nothing to hide.
    fn last_known(
        &self,
        key: &ObjectKey,
        uid: &str,
        seen: Option<&Object>,
        now: Instant,
    ) -> Option<Box<str>> {
        let seen = seen.filter(|seen| seen.head().uid() == uid);
        let own = self.writes.get(key);
        let version = match own.map(|own| (&own.state, now < own.at + OWN_WRITE_VALID)) {
            // Also one that readers are not shown any more.
            Some((Written::Object(own), _)) if own.head().uid() == uid => own.version(),
            // A successor of the deleted object: it hides that already.
            Some((Written::Object(_), true)) => return None,
            Some((Written::Gone(gone), true)) => match seen {
                Some(seen) if gone.hides(seen) => return None,
                Some(seen) => seen.version(),
                None => &gone.until,
            },
            _ => seen?.version(),
        };
        Some(version.into())
    }

    /// What readers see of `key` when the watch has shown `seen`.
    pub(crate) fn resolve<'a>(
        &'a self,
        key: &ObjectKey,
        seen: Option<&'a Arc<Object>>,
        now: Instant,
    ) -> Option<&'a Arc<Object>> {
        match self.writes.get(key) {
            Some(own) if now < own.at + OWN_WRITE_VALID => match (&own.state, seen) {
                (Written::Object(own), None) => Some(own),
                (Written::Object(own_object), Some(_)) if own.outranks => Some(own_object),
                (Written::Object(own), Some(seen)) => match order(own.version(), seen.version()) {
                    Some(Ordering::Less | Ordering::Equal) => Some(seen),
                    _ => Some(own),
                },
                (Written::Gone(gone), Some(seen)) if gone.hides(seen) => None,
                (Written::Gone(_), seen) => seen,
            },
            _ => seen,
        }
    }

    /// The keys with a write that readers may see.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.writes.keys()
    }

    /// What is known of a write that the watch has not shown; `None` when there is none.
    pub(crate) fn unseen(&self, key: &ObjectKey, now: Instant) -> Option<Unseen> {
        self.writes.get(key)?;
        Some(if self.is_stale(key, now) { Unseen::Lapsed } else { Unseen::Shown })
    }

    /// Is there a write that the watch has not shown in time?
    pub(crate) fn is_stale(&self, key: &ObjectKey, now: Instant) -> bool {
        self.writes.get(key).is_some_and(|own| now >= own.at + OWN_WRITE_VALID)
    }

    /// The watch has shown `object`.
    pub(crate) fn seen(&mut self, object: &Object) {
        let caught_up = match self.writes.get(object.key()).map(|own| &own.state) {
            Some(Written::Object(own)) => {
                matches!(
                    order(object.version(), own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                )
            }
            Some(Written::Gone(gone)) => !gone.hides(object),
            None => false,
        };
        if caught_up {
            self.remove(object.key());
        } else if let Some(own) = self.writes.get_mut(object.key()) {
            own.outranks = false;
        }
    }

    /// The watch has shown the deletion of `key`, at `version`.
    pub(crate) fn seen_gone(&mut self, key: &ObjectKey, uid: &str, version: &str) {
        let caught_up = match self.writes.get(key).map(|own| &own.state) {
            Some(Written::Object(own)) => match order(version, own.version()) {
                Some(order) => order != Ordering::Less,
                None => own.head().uid() == uid,
            },
            // Not that of an object that was there before.
            Some(Written::Gone(gone)) => {
                gone.was(uid) || order(version, &gone.until).is_none_or(Ordering::is_gt)
            }
            None => false,
        };
        if caught_up {
            self.remove(key);
        }
    }

    /// A list at `version` has shown that `absent` keys are not there.
    pub(crate) fn listed(&mut self, version: &str, absent: &dyn Fn(&ObjectKey) -> bool) {
        self.retain(|key, own| {
            if !absent(key) {
                return true;
            }
            match &own.state {
                Written::Object(own) => !matches!(
                    order(version, own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                ),
                Written::Gone(gone) => order(version, &gone.until) == Some(Ordering::Less),
            }
        });
    }

    /// Versions have lost their order: forgets the writes that `within` says.
    pub(crate) fn forget(&mut self, within: &dyn Fn(&ObjectKey) -> bool) {
        self.retain(|key, _| !within(key));
    }

    /// How long an unconfirmed write is remembered.
    pub(crate) fn keep_for(&mut self, kept: Duration) {
        self.kept = kept;
    }

    fn prune(&mut self, now: Instant) {
        if self.pruned.is_some_and(|last| now < last + PRUNED_EVERY) {
            return;
        }
        self.pruned = Some(now);
        let kept = self.kept;
        self.retain(|_, own| now < own.at + kept);
    }
}
