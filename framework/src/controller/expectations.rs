//! Remembers what a parent's reconciles wrote, and what its view of its children lacks of it.
//!
//! The cache shows own writes before the watch does, but not all of them and not for ever: a write
//! that the watch does not confirm within ten seconds lapses, a cache that is limited by a selector
//! shows none, and a child whose create was not answered has a name that only the API server knows.
//! A reconcile that counts its children has to know that the count is short.
//!
//! Nothing here survives the process: the first view of a new one is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Pending;
use super::rare::ByKey;
use crate::informer::{Informer, InformerRegistry};
use crate::resource::{ObjectKey, Resource, ResourceInfo};
use crate::store::Unseen;

/// So long a creation or deletion is waited for: `ExpectationsTimeout` of kube-controller-manager.
const EXPIRE: Duration = Duration::from_secs(300);
/// So long after a creation was confirmed its event is known not to be another's.
const LINGER: Duration = Duration::from_secs(10);
/// Writes remembered per parent and kind; of those beyond, the first in the order of keys are taken
/// for seen.
const WRITES: usize = 4096;

/// What a write did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Changed,
    Created,
    Deleted,
}

/// How a cache stands to a write. Of several caches the one that lacks most counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum View {
    /// The watch has shown it, or what came after it.
    Confirmed,
    /// Readers see it.
    Shown,
    /// Readers do not see it.
    Missing,
    /// Readers saw it, and do not any more, because the watch has not confirmed it in time.
    Lapsed,
}

/// One write that was not confirmed when somebody looked last.
#[derive(Debug)]
struct Sent {
    what: What,
    uid: String,
    at: Instant,
    /// When it was first found to be confirmed. A creation is remembered for a while after that: its
    /// event may still be on its way, and must not pass for that of a child whose name is not known.
    confirmed: Option<Instant>,
    /// When its creation was first found to be confirmed, if it was changed since.
    born: Option<Instant>,
    /// The watch has told of it since: it was seen, though it may be gone again.
    is_told: bool,
}

/// A kind of objects that are written, and how to look at its cache.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    name: String,
    look: fn(&InformerRegistry, &mut dyn Iterator<Item = Look<'_>>),
}

/// One question to a cache, and the place of its answer.
struct Look<'a> {
    key: &'a ObjectKey,
    sent: &'a Sent,
    view: &'a mut View,
}

impl Kind {
    /// `None` when the kind is known at run time only: such are not cached for a controller.
    pub(super) fn of<K: Resource>() -> Option<Self> {
        let info = K::static_info()?;
        Some(Self { name: info.group_resource(), look: look::<K> })
    }
}

/// What one parent wrote of one kind.
#[derive(Debug)]
struct Room {
    kind: Kind,
    sent: BTreeMap<ObjectKey, Sent>,
    /// Creations under names that the API server chooses, which are not answered yet.
    in_flight: usize,
    /// Those whose answer never came, and those that a user announced.
    unnamed: usize,
    /// Uids that appeared while any of these were open, and that no answer has claimed.
    strangers: BTreeSet<String>,
    /// When the last of these was opened.
    opened: Option<Instant>,
}

#[derive(Debug)]
struct Parent {
    uid: String,
    rooms: Vec<Room>,
}

/// The writes of all parents.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    parents: ByKey<BTreeMap<ObjectKey, Parent>>,
    /// Rooms that wait for objects of unknown names: while there is none, nobody takes the lock for
    /// an object that appears.
    open: AtomicUsize,
}

/// Whose writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a str,
}

impl Ledger {
    /// The parent wrote, created or deleted the object of that key and uid.
    pub(super) fn sent(
        &self,
        parent: Whose<'_>,
        kind: Kind,
        (what, key, uid): (What, &ObjectKey, &str),
        now: Instant,
    ) {
        let mut parents = self.parents.of(parent.key).lock();
        let room = self.room(&mut parents, parent, kind);
        if let Some(sent) = room.sent.get_mut(key)
            && sent.uid == uid
            && what == What::Changed
            && !sent.is_told
            && sent.confirmed.is_none()
        {
            // A child that was created and then changed is still to be seen as created.
            sent.at = now;
            return;
        }
        let known = room.sent.get(key).filter(|sent| sent.uid == uid && what == What::Changed);
        let born = known.and_then(|sent| match sent.what {
            What::Created => sent.confirmed,
            _ => sent.born,
        });
        if room.sent.len() >= WRITES && !room.sent.contains_key(key) {
            room.sent.pop_first();
        }
        let sent =
            Sent { what, uid: uid.to_owned(), at: now, confirmed: None, born, is_told: false };
        room.sent.insert(key.clone(), sent);
    }

    /// The parent is about to create an object under a name that the API server chooses. What
    /// becomes of it is to be told to the flight; dropping that says that nobody knows.
    pub(super) fn creating<'a>(
        &'a self,
        parent: Whose<'a>,
        kind: Kind,
        now: Instant,
    ) -> Flight<'a> {
        let mut parents = self.parents.of(parent.key).lock();
        let room = self.room(&mut parents, parent, kind.clone());
        self.change(room, |room| {
            room.in_flight += 1;
            room.opened = Some(now);
        });
        Flight { ledger: self, parent, kind, is_over: false }
    }

    /// So many more objects, or fewer, are to appear for the parent.
    pub(super) fn announce(&self, parent: Whose<'_>, kind: Kind, more: isize, now: Instant) {
        let mut parents = self.parents.of(parent.key).lock();
        let room = self.room(&mut parents, parent, kind);
        self.change(room, |room| {
            room.unnamed = room.unnamed.saturating_add_signed(more);
            if more > 0 {
                room.opened = Some(now);
            }
        });
    }

    /// The watch has told of a child of the parent that it came, or is gone.
    pub(super) fn told(&self, parent: &ObjectKey, kind: &ResourceInfo, child: Told<'_>) {
        let Some(mut parents) = self.parents.of(parent).lock_if_any() else { return };
        let Some(known) = parents.get_mut(parent) else { return };
        let name = kind.group_resource();
        let Some(room) = known.rooms.iter_mut().find(|room| room.kind.name == name) else { return };
        let sent = room.sent.get_mut(child.key).filter(|sent| sent.uid == child.uid);
        if let Some(sent) = sent.filter(|sent| child.is_gone || sent.what == What::Created) {
            sent.is_told = true;
        }
    }

    /// The watch has shown a new child of the parent.
    pub(super) fn appeared(&self, parent: &ObjectKey, kind: &ResourceInfo, uid: &str) {
        if self.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        let name = kind.group_resource();
        let Some(mut parents) = self.parents.of(parent).lock_if_any() else { return };
        let Some(known) = parents.get_mut(parent) else { return };
        let Some(room) = known.rooms.iter_mut().find(|room| room.kind.name == name) else { return };
        let is_known = room.sent.values().any(|sent| sent.uid == uid);
        if room.is_open() && !is_known && room.strangers.len() < WRITES {
            self.change(room, |room| {
                room.strangers.insert(uid.to_owned());
            });
        }
    }

    /// A reconcile of the parent begins: what is confirmed or too old is forgotten.
    pub(super) fn begin(&self, parent: Whose<'_>, informers: &InformerRegistry, now: Instant) {
        let Some(mut parents) = self.parents.of(parent.key).lock_if_any() else { return };
        let Some(known) = parents.get_mut(parent.key) else { return };
        if known.uid != parent.uid {
            self.clear(parents.remove(parent.key));
            return;
        }
        for room in &mut known.rooms {
            room.settle(informers, now);
            if room.opened.is_some_and(|opened| now >= opened + EXPIRE) {
                let (kind, missing) = (&room.kind.name, room.missing());
                tracing::warn!(%kind, missing, "children that were created never appeared, and are waited for no longer");
                self.change(room, |room| (room.in_flight, room.unnamed) = (0, 0));
            }
        }
        known.rooms.retain(|room| room.is_open() || !room.sent.is_empty());
        if known.rooms.is_empty() {
            parents.remove(parent.key);
        }
    }

    /// Has one of the parent's writes lapsed before the watch has shown it?
    pub(super) fn is_stale(&self, parent: &ObjectKey, informers: &InformerRegistry) -> bool {
        let Some(parents) = self.parents.of(parent).lock_if_any() else { return false };
        let Some(known) = parents.get(parent) else { return false };
        known.rooms.iter().any(|room| room.views(informers).any(|(.., view)| view == View::Lapsed))
    }

    /// What the parent's view lacks.
    pub(super) fn pending(
        &self,
        parent: &ObjectKey,
        informers: &InformerRegistry,
        now: Instant,
    ) -> Pending {
        let mut pending = Pending::default();
        let Some(parents) = self.parents.of(parent).lock_if_any() else { return pending };
        let Some(known) = parents.get(parent) else { return pending };
        let mut until = None;
        let mut note = |at: Instant| until = until.max(Some(at + EXPIRE));
        for room in &known.rooms {
            for (_, sent, view) in room.views(informers) {
                let is_missing = matches!(view, View::Missing | View::Lapsed);
                if !is_missing || now >= sent.at + EXPIRE {
                    continue;
                }
                match sent.what {
                    What::Changed => continue,
                    What::Created => pending.created += 1,
                    What::Deleted => pending.deleted += 1,
                }
                note(sent.at);
            }
            if let Some(opened) = room.opened.filter(|opened| now < *opened + EXPIRE)
                && room.missing() > 0
            {
                pending.created += room.missing();
                note(opened);
            }
        }
        pending.expires_in = until.map(|until: Instant| until.saturating_duration_since(now));
        pending
    }

    /// The parent is gone.
    pub(super) fn forget(&self, parent: &ObjectKey) {
        let known =
            self.parents.of(parent).lock_if_any().and_then(|mut parents| parents.remove(parent));
        self.clear(known);
    }

    fn clear(&self, parent: Option<Parent>) {
        let open = parent.iter().flat_map(|parent| &parent.rooms).filter(|room| room.is_open());
        self.open.fetch_sub(open.count(), Ordering::SeqCst);
    }

    fn room<'a>(
        &self,
        parents: &'a mut BTreeMap<ObjectKey, Parent>,
        parent: Whose<'_>,
        kind: Kind,
    ) -> &'a mut Room {
        let fresh = || Parent { uid: parent.uid.to_owned(), rooms: Vec::new() };
        let known = parents.entry(parent.key.clone()).or_insert_with(fresh);
        if known.uid != parent.uid {
            // Another object of that name.
            self.clear(Some(std::mem::replace(known, fresh())));
        }
        let at = known.rooms.iter().position(|room| room.kind.name == kind.name);
        let at = at.unwrap_or_else(|| {
            known.rooms.push(Room::new(kind));
            known.rooms.len() - 1
        });
        &mut known.rooms[at]
    }

    /// Changes a room, closes it when nothing is missing, and counts the open ones.
    fn change(&self, room: &mut Room, change: impl FnOnce(&mut Room)) {
        let was_open = room.is_open();
        change(room);
        if room.missing() == 0 {
            room.unnamed = 0;
            room.strangers.clear();
            room.opened = None;
        }
        match (was_open, room.is_open()) {
            (false, true) => drop(self.open.fetch_add(1, Ordering::SeqCst)),
            (true, false) => drop(self.open.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
    }
}

impl Room {
    fn new(kind: Kind) -> Self {
        let (sent, strangers) = (BTreeMap::new(), BTreeSet::new());
        Self { kind, sent, in_flight: 0, unnamed: 0, strangers, opened: None }
    }

    /// Does it wait for objects whose names are not known?
    fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// How many objects of unknown names have not appeared. A creation that is not answered counts
    /// whatever has appeared: its answer says whether that was it.
    fn missing(&self) -> usize {
        self.in_flight + self.unnamed.saturating_sub(self.strangers.len())
    }

    /// Forgets what is confirmed, and what was missing for too long.
    fn settle(&mut self, informers: &InformerRegistry, now: Instant) {
        let views: Vec<View> = self.views(informers).map(|(.., view)| view).collect();
        let mut views = views.into_iter();
        self.sent.retain(|_, sent| {
            let view = views.next().unwrap_or(View::Confirmed);
            if view == View::Confirmed {
                let at = *sent.confirmed.get_or_insert(now);
                let created = if sent.what == What::Created { Some(at) } else { sent.born };
                return created.is_some_and(|created| now < created + LINGER);
            }
            // What the cache itself remembers ends by itself.
            view != View::Missing || now < sent.at + EXPIRE
        });
    }

    /// How the cache stands to each write.
    fn views(
        &self,
        informers: &InformerRegistry,
    ) -> impl Iterator<Item = (&ObjectKey, &Sent, View)> {
        let mut views = vec![View::Confirmed; self.sent.len()];
        let asked = self.sent.iter().zip(&mut views);
        let asked = asked.filter(|((_, sent), _)| sent.confirmed.is_none() && !sent.is_told);
        (self.kind.look)(informers, &mut asked.map(|((key, sent), view)| Look { key, sent, view }));
        self.sent.iter().zip(views).map(|((key, sent), view)| (key, sent, view))
    }
}

/// A child that the watch has told of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) uid: &'a str,
    pub(super) is_gone: bool,
}

/// A creation under way.
#[must_use]
pub(super) struct Flight<'a> {
    ledger: &'a Ledger,
    parent: Whose<'a>,
    kind: Kind,
    is_over: bool,
}

impl Flight<'_> {
    /// It was answered: the object of that key and uid is there.
    pub(super) fn landed(mut self, key: &ObjectKey, uid: &str, now: Instant) {
        let has_appeared = self.end(|room| room.strangers.remove(uid));
        if !has_appeared {
            let created = (What::Created, key, uid);
            self.ledger.sent(self.parent, self.kind.clone(), created, now);
        }
    }

    /// It was refused: there is no object.
    pub(super) fn refused(mut self) {
        self.end(|_| false);
    }

    fn end(&mut self, how: impl FnOnce(&mut Room) -> bool) -> bool {
        self.is_over = true;
        let mut parents = self.ledger.parents.of(self.parent.key).lock();
        let Some(known) = parents.get_mut(self.parent.key) else { return false };
        let mut rooms = known.rooms.iter_mut();
        // Without it the flight was given up, or its parent is another object by now.
        let Some(room) = rooms.find(|room| room.kind.name == self.kind.name) else { return false };
        let mut answer = false;
        self.ledger.change(room, |room| {
            answer = how(room);
            room.in_flight = room.in_flight.saturating_sub(1);
        });
        answer
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(|room| {
                room.unnamed += 1;
                false
            });
        }
    }
}

/// Looks at the caches of `K`. What nobody caches is read from the API server.
fn look<K: Resource>(informers: &InformerRegistry, asked: &mut dyn Iterator<Item = Look<'_>>) {
    let caches = informers.caches_of::<K>();
    for Look { key, sent, view } in asked {
        // In a namespace that no cache reads, nobody will ever see it.
        let caches = caches.iter().filter(|cache| cache.covers(key.namespace()));
        *view = caches.map(|cache| look_at(cache, key, sent)).max().unwrap_or(View::Confirmed);
    }
}

fn look_at<K: Resource>(cache: &Informer<K>, key: &ObjectKey, sent: &Sent) -> View {
    let store = cache.store();
    let seen = || store.get_seen(key).filter(|seen| seen.head().uid() == sent.uid);
    match (store.unseen(key), sent.what) {
        (Some(Unseen::Shown), _) => View::Shown,
        (Some(Unseen::Lapsed), What::Deleted) if seen().is_none() => View::Confirmed,
        (Some(Unseen::Lapsed), _) => View::Lapsed,
        (None, What::Deleted) if seen().is_some_and(|seen| !seen.head().is_terminating()) => {
            View::Missing
        }
        (None, What::Created) if !cache.shows_own(key.namespace()) && seen().is_none() => {
            View::Missing
        }
        (None, _) => View::Confirmed,
    }
}

#[cfg(test)]
mod tests;
