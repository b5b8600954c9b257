//! Expectations: per parent object, own writes to children that the parent's view does not show
//! yet.
//!
//! The cache shows own writes before the watch does, but not all of them and not for ever: a write
//! that the watch does not confirm within ten seconds lapses, a cache that is limited by a selector
//! shows no own write, and a child whose create was not answered has a name that only the API
//! server knows. A reconcile that counts children has to know that the count is too low.
//!
//! Nothing here survives the process: the first view of a new process is complete.

// DESIGN.md, 50: `Context::expectations` counts writes that a cache does not show yet

mod pending_create;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::pending_create::PendingCreate;
use super::sparse_lock::ShardedMap;
use windlass_cache::informer::{Informer, InformerRegistry};
use windlass_cache::store::Unconfirmed;
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};

/// Time after which an expectation expires: `ExpectationsTimeout` of kube-controller-manager.
const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for which a confirmed creation is remembered, so that a late event is recognised.
const CONFIRMED_RETENTION: Duration = Duration::from_secs(10);
/// Most writes remembered per parent and kind; beyond that the first in the order of keys is taken
/// as confirmed.
const MAX_WRITES: usize = 4096;

/// The creates and deletes that the cache does not show yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Objects that were created, or may have been, and are not shown yet.
    pub created: usize,
    /// Objects that were deleted and are still shown as not deleted.
    pub deleted: usize,
    /// Time until the last of them expires; `None` when nothing is missing.
    pub expires_in: Option<Duration>,
}

impl Pending {
    /// Whether nothing is missing.
    pub fn is_none(&self) -> bool {
        self.created + self.deleted == 0
    }
}

/// Effect of a write on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEffect {
    Changed,
    Created,
    Deleted,
}

/// State of a write in a cache. With several caches, the state that is furthest from confirmed
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WriteVisibility {
    /// The watch has shown the write, or a later state.
    Confirmed,
    /// Readers see the write.
    Shown,
    /// Readers do not see the write.
    Missing,
    /// Readers saw the write and no longer do, because the watch has not confirmed the write in
    /// time.
    Expired,
}

/// One write that was not confirmed at the last check.
#[derive(Debug)]
struct SentWrite {
    effect: WriteEffect,
    uid: String,
    at: Instant,
    /// Time of the first check that found the write confirmed. A creation is remembered for a while
    /// after that, because the event may still be on the way, and must not be taken for the event
    /// of a child of unknown name.
    confirmed: Option<Instant>,
    /// Time of the first check that found the creation confirmed, if the object was changed since.
    creation_confirmed: Option<Instant>,
    /// The watch has delivered the object since, though the object may be gone again.
    is_delivered: bool,
}

/// A kind of written objects, and the function that checks the kind's cache.
#[derive(Clone, Debug)]
pub(crate) struct WrittenKind {
    name: String,
    check: fn(&InformerRegistry, &mut dyn Iterator<Item = CacheCheck<'_>>),
}

/// One question to a cache, and the slot for the answer.
struct CacheCheck<'a> {
    key: &'a ObjectKey,
    sent: &'a SentWrite,
    view: &'a mut WriteVisibility,
}

impl WrittenKind {
    /// `None` when the kind is known at run time only: controllers do not cache such kinds.
    pub(crate) fn of<K: Resource>() -> Option<Self> {
        let info = K::static_info()?;
        Some(Self { name: info.group_resource(), check: check_cache::<K> })
    }
}

/// One parent's writes to objects of one kind, and the expectations. Open while creates under
/// generated names are unanswered.
#[derive(Debug)]
struct KindExpectations {
    kind: WrittenKind,
    sent: BTreeMap<ObjectKey, SentWrite>,
    /// Creates under generated names that are not answered yet.
    in_flight: usize,
    /// Creates without an answer, and objects that the user announced.
    unnamed: usize,
    /// Uids that appeared while any of these were open, and that no answer has claimed.
    unclaimed: BTreeSet<String>,
    /// Time at which the last of these was opened.
    opened: Option<Instant>,
}

/// A parent's writes, by kind.
#[derive(Debug)]
struct Parent {
    uid: String,
    kinds: Vec<KindExpectations>,
}

/// The writes of all parents.
#[derive(Debug, Default)]
pub(crate) struct ExpectationTracker {
    parents: ShardedMap<BTreeMap<ObjectKey, Parent>>,
    /// Number of open expectations of a parent and kind, which wait for objects of unknown names.
    /// While the number is 0, an object that appears costs no lock.
    open: AtomicUsize,
}

/// The parent object whose writes are recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentRef<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a str,
}

impl ExpectationTracker {
    /// Records that the parent wrote, created or deleted the object of that key and uid.
    pub(crate) fn sent(
        &self,
        parent: ParentRef<'_>,
        kind: WrittenKind,
        (effect, key, uid): (WriteEffect, &ObjectKey, &str),
        now: Instant,
    ) {
        let mut parents = self.parents.of(parent.key).lock();
        let expected = self.expected(&mut parents, parent, kind);
        if let Some(sent) = expected.sent.get_mut(key)
            && sent.uid == uid
            && effect == WriteEffect::Changed
            && !sent.is_delivered
            && sent.confirmed.is_none()
        {
            // A child that was created and then changed still has to be confirmed as created.
            sent.at = now;
            return;
        }
        let known =
            expected.sent.get(key).filter(|sent| sent.uid == uid && effect == WriteEffect::Changed);
        let creation_confirmed = known.and_then(|sent| match sent.effect {
            WriteEffect::Created => sent.confirmed,
            _ => sent.creation_confirmed,
        });
        if expected.sent.len() >= MAX_WRITES && !expected.sent.contains_key(key) {
            expected.sent.pop_first();
        }
        let sent = SentWrite {
            effect,
            uid: uid.to_owned(),
            at: now,
            confirmed: None,
            creation_confirmed,
            is_delivered: false,
        };
        expected.sent.insert(key.clone(), sent);
    }

    /// Records that the parent is about to create an object under a generated name. The returned
    /// guard takes the outcome; dropping it means that the outcome is unknown.
    pub(crate) fn creating<'a>(
        &'a self,
        parent: ParentRef<'a>,
        kind: WrittenKind,
        now: Instant,
    ) -> PendingCreate<'a> {
        let mut parents = self.parents.of(parent.key).lock();
        let expected = self.expected(&mut parents, parent, kind.clone());
        self.change(expected, |expected| {
            expected.in_flight += 1;
            expected.opened = Some(now);
        });
        PendingCreate { tracker: self, parent, kind, is_over: false }
    }

    /// Adds to the number of announced objects, or subtracts from it.
    pub(crate) fn announce(
        &self,
        parent: ParentRef<'_>,
        kind: WrittenKind,
        more: isize,
        now: Instant,
    ) {
        let mut parents = self.parents.of(parent.key).lock();
        let expected = self.expected(&mut parents, parent, kind);
        self.change(expected, |expected| {
            expected.unnamed = expected.unnamed.saturating_add_signed(more);
            if more > 0 {
                expected.opened = Some(now);
            }
        });
    }

    /// Notes that the watch has delivered the addition or the deletion of a child.
    pub(crate) fn observe(
        &self,
        parent: &ObjectKey,
        kind: &ResourceInfo,
        child: ObservedChild<'_>,
    ) {
        let Some(mut parents) = self.parents.of(parent).lock_if_any() else { return };
        // No write to a child of this parent awaits the watch: there is nothing to confirm.
        let Some(known) = parents.get_mut(parent) else { return };
        let name = kind.group_resource();
        let Some(expected) = known.kinds.iter_mut().find(|expected| expected.kind.name == name)
        else {
            return;
        };
        let sent = expected.sent.get_mut(child.key).filter(|sent| sent.uid == child.uid);
        if let Some(sent) = sent.filter(|sent| child.is_gone || sent.effect == WriteEffect::Created)
        {
            sent.is_delivered = true;
        }
    }

    /// Notes that the watch has shown a new child of the parent.
    pub(crate) fn observe_new(&self, parent: &ObjectKey, kind: &ResourceInfo, uid: &str) {
        // The counter is raised before the create is sent, so a zero here proves that the new child
        // was not created by us. `SeqCst`: the worker raises the counter and then sends; this task
        // has received the event and then reads. No lock orders the two.
        if self.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        let name = kind.group_resource();
        let Some(mut parents) = self.parents.of(parent).lock_if_any() else { return };
        let Some(known) = parents.get_mut(parent) else { return };
        let Some(expected) = known.kinds.iter_mut().find(|expected| expected.kind.name == name)
        else {
            return;
        };
        let is_known = expected.sent.values().any(|sent| sent.uid == uid);
        // Bounded, because foreign children may appear in any number.
        if expected.is_open() && !is_known && expected.unclaimed.len() < MAX_WRITES {
            self.change(expected, |expected| {
                expected.unclaimed.insert(uid.to_owned());
            });
        }
    }

    /// Begins a reconcile of the parent: confirmed and expired writes are forgotten.
    pub(crate) fn begin(&self, parent: ParentRef<'_>, informers: &InformerRegistry, now: Instant) {
        let Some(mut parents) = self.parents.of(parent.key).lock_if_any() else { return };
        let Some(known) = parents.get_mut(parent.key) else { return };
        if known.uid != parent.uid {
            self.clear(parents.remove(parent.key));
            return;
        }
        for expected in &mut known.kinds {
            expected.forget_confirmed(informers, now);
            if expected.opened.is_some_and(|opened| now >= opened + EXPECTATION_TIMEOUT) {
                let (kind, missing) = (&expected.kind.name, expected.missing());
                tracing::warn!(%kind, missing, "created children did not appear within 300 s; they are no longer expected");
                self.change(expected, |expected| (expected.in_flight, expected.unnamed) = (0, 0));
            }
        }
        known.kinds.retain(|expected| expected.is_open() || !expected.sent.is_empty());
        if known.kinds.is_empty() {
            parents.remove(parent.key);
        }
    }

    /// Whether one of the parent's writes expired before the watch delivered it.
    pub(crate) fn is_stale(&self, parent: &ObjectKey, informers: &InformerRegistry) -> bool {
        let Some(parents) = self.parents.of(parent).lock_if_any() else { return false };
        let Some(known) = parents.get(parent) else { return false };
        known.kinds.iter().any(|expected| {
            expected.views(informers).any(|(.., view)| view == WriteVisibility::Expired)
        })
    }

    /// Returns the creates and deletes that the caches of the parent's children do not show yet.
    pub(crate) fn pending(
        &self,
        parent: &ObjectKey,
        informers: &InformerRegistry,
        now: Instant,
    ) -> Pending {
        let mut pending = Pending::default();
        let Some(parents) = self.parents.of(parent).lock_if_any() else { return pending };
        let Some(known) = parents.get(parent) else { return pending };
        let mut until = None;
        let mut note = |at: Instant| until = until.max(Some(at + EXPECTATION_TIMEOUT));
        for expected in &known.kinds {
            for (_, sent, view) in expected.views(informers) {
                let is_missing =
                    matches!(view, WriteVisibility::Missing | WriteVisibility::Expired);
                if !is_missing || now >= sent.at + EXPECTATION_TIMEOUT {
                    continue;
                }
                match sent.effect {
                    WriteEffect::Changed => continue,
                    WriteEffect::Created => pending.created += 1,
                    WriteEffect::Deleted => pending.deleted += 1,
                }
                note(sent.at);
            }
            if let Some(opened) =
                expected.opened.filter(|opened| now < *opened + EXPECTATION_TIMEOUT)
                && expected.missing() > 0
            {
                pending.created += expected.missing();
                note(opened);
            }
        }
        pending.expires_in = until.map(|until: Instant| until.saturating_duration_since(now));
        pending
    }

    /// Forgets a parent that is gone.
    pub(crate) fn forget(&self, parent: &ObjectKey) {
        let known =
            self.parents.of(parent).lock_if_any().and_then(|mut parents| parents.remove(parent));
        self.clear(known);
    }

    /// Subtracts a forgotten parent's open expectations from their number.
    fn clear(&self, parent: Option<Parent>) {
        // As in `change`.
        let open =
            parent.iter().flat_map(|parent| &parent.kinds).filter(|expected| expected.is_open());
        self.open.fetch_sub(open.count(), Ordering::SeqCst);
    }

    /// Returns the parent's expectations for this kind; creates them if there are none.
    fn expected<'a>(
        &self,
        parents: &'a mut BTreeMap<ObjectKey, Parent>,
        parent: ParentRef<'_>,
        kind: WrittenKind,
    ) -> &'a mut KindExpectations {
        let fresh = || Parent { uid: parent.uid.to_owned(), kinds: Vec::new() };
        let known = parents.entry(parent.key.clone()).or_insert_with(fresh);
        if known.uid != parent.uid {
            // Another object took the parent's name: the writes of the predecessor do not count.
            self.clear(Some(std::mem::replace(known, fresh())));
        }
        let at = known.kinds.iter().position(|expected| expected.kind.name == kind.name);
        let at = at.unwrap_or_else(|| {
            known.kinds.push(KindExpectations::new(kind));
            known.kinds.len() - 1
        });
        &mut known.kinds[at]
    }

    /// Changes the expectations of a kind, closes them when nothing is missing, and updates the
    /// number of open ones.
    fn change(&self, expected: &mut KindExpectations, change: impl FnOnce(&mut KindExpectations)) {
        let was_open = expected.is_open();
        change(expected);
        if expected.missing() == 0 {
            expected.unnamed = 0;
            expected.unclaimed.clear();
            expected.opened = None;
        }
        // Under the parent's lock, so that no kind is counted twice. `SeqCst` pairs with the load
        // in `observe_new`: a create whose counter was raised here is sent only afterwards, so the
        // event of its child finds a counter above zero.
        match (was_open, expected.is_open()) {
            (false, true) => drop(self.open.fetch_add(1, Ordering::SeqCst)),
            (true, false) => drop(self.open.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
    }
}

impl KindExpectations {
    fn new(kind: WrittenKind) -> Self {
        let (sent, unclaimed) = (BTreeMap::new(), BTreeSet::new());
        Self { kind, sent, in_flight: 0, unnamed: 0, unclaimed, opened: None }
    }

    /// Whether the kind waits for objects of unknown names.
    fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// Number of objects of unknown names that have not appeared. An unanswered create counts in
    /// any case: only its answer shows whether an appeared object is the created one.
    fn missing(&self) -> usize {
        self.in_flight + self.unnamed.saturating_sub(self.unclaimed.len())
    }

    /// Forgets confirmed writes, and writes that were missing for too long.
    fn forget_confirmed(&mut self, informers: &InformerRegistry, now: Instant) {
        let views: Vec<WriteVisibility> = self.views(informers).map(|(.., view)| view).collect();
        let mut views = views.into_iter();
        self.sent.retain(|_, sent| {
            let view = views.next().unwrap_or(WriteVisibility::Confirmed);
            if view == WriteVisibility::Confirmed {
                let at = *sent.confirmed.get_or_insert(now);
                let created = if sent.effect == WriteEffect::Created {
                    Some(at)
                } else {
                    sent.creation_confirmed
                };
                return created.is_some_and(|created| now < created + CONFIRMED_RETENTION);
            }
            // A write that the cache overlays expires in the cache.
            view != WriteVisibility::Missing || now < sent.at + EXPECTATION_TIMEOUT
        });
    }

    /// Returns the state of each write in the caches.
    fn views(
        &self,
        informers: &InformerRegistry,
    ) -> impl Iterator<Item = (&ObjectKey, &SentWrite, WriteVisibility)> {
        let mut views = vec![WriteVisibility::Confirmed; self.sent.len()];
        let checks = self.sent.iter().zip(&mut views);
        let checks = checks.filter(|((_, sent), _)| sent.confirmed.is_none() && !sent.is_delivered);
        (self.kind.check)(
            informers,
            &mut checks.map(|((key, sent), view)| CacheCheck { key, sent, view }),
        );
        self.sent.iter().zip(views).map(|((key, sent), view)| (key, sent, view))
    }
}

/// A child that the watch has delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedChild<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) uid: &'a str,
    pub(crate) is_gone: bool,
}

/// Checks the caches of `K`. Objects of a kind without a cache are read from the API server.
fn check_cache<K: Resource>(
    informers: &InformerRegistry,
    checks: &mut dyn Iterator<Item = CacheCheck<'_>>,
) {
    let caches = informers.caches_of::<K>();
    for CacheCheck { key, sent, view } in checks {
        // In a namespace that no cache covers, no view can lack the write.
        let caches = caches.iter().filter(|cache| cache.covers(key.namespace()));
        *view = caches
            .map(|cache| view_in(cache, key, sent))
            .max()
            .unwrap_or(WriteVisibility::Confirmed);
    }
}

/// Returns the state of a write in a cache.
fn view_in<K: Resource>(cache: &Informer<K>, key: &ObjectKey, sent: &SentWrite) -> WriteVisibility {
    let store = cache.store();
    let seen = || store.get_seen(key).filter(|seen| seen.metadata().uid() == sent.uid);
    match (store.unseen(key), sent.effect) {
        (Some(Unconfirmed::Shown), _) => WriteVisibility::Shown,
        // The watch does not show the object either: the deletion is confirmed.
        (Some(Unconfirmed::Expired), WriteEffect::Deleted) if seen().is_none() => {
            WriteVisibility::Confirmed
        }
        (Some(Unconfirmed::Expired), _) => WriteVisibility::Expired,
        (None, WriteEffect::Deleted)
            if seen().is_some_and(|seen| !seen.metadata().is_terminating()) =>
        {
            WriteVisibility::Missing
        }
        // A limited cache holds no own writes: only the watch shows the object.
        (None, WriteEffect::Created) if !cache.shows_own(key.namespace()) && seen().is_none() => {
            WriteVisibility::Missing
        }
        (None, _) => WriteVisibility::Confirmed,
    }
}

#[cfg(test)]
mod tests;
