//! Sources of keys: changes of the object, of children, of other kinds.
//!
//! The object's own key and its children's owner are read from metadata when a change is applied,
//! with the old and the new state at hand: the queue of keys is the only buffer. Mappers are user
//! code: each runs on a separate task, and a slow mapper delays no other source.

// DESIGN.md, 39: Predicates are not called for deletions and the pause annotation
// DESIGN.md, 55: An event of a child wakes the owner even after an own write

use std::sync::Arc;

use super::enqueue::{EnqueueReason, Enqueuer};
use super::paused::is_pause_change;
use super::predicates::Predicate;
use super::reasons::Reason;
use crate::controller::state::{ApplyCache, ObservedChild, OwnWriteFilter};
use crate::owner::{controller_key, marked_index, marked_key};
use windlass_cache::informer::{Informer, InformerRegistry, Registration, states};
use windlass_cache::store::{Cached, Index, IndexValue, Object, StoreEvent};
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};

/// The environment that sources are connected to.
pub(crate) struct Attach<'a> {
    pub(crate) controller: &'a str,
    pub(crate) informers: &'a InformerRegistry,
    pub(crate) enqueuer: &'a Enqueuer,
    pub(crate) applied: &'a Arc<ApplyCache>,
}

/// Connects a source, for as long as the returned registrations are held. Fails when the source
/// cannot be built as declared.
pub(crate) type Source = Box<dyn Fn(&Attach<'_>) -> Result<Vec<Registration>, Error> + Send + Sync>;

/// Connects the reconciled kind; leaves out events of the controller's own writes, and changes that
/// `when` does not pass.
pub(crate) fn main<K: Resource>(
    at: &Attach<'_>,
    own_writes: Arc<OwnWriteFilter>,
    when: Option<&Predicate<K>>,
) -> Registration {
    let is_change = move |event: &StoreEvent| match event {
        StoreEvent::Added { .. } | StoreEvent::Deleted { .. } => true,
        StoreEvent::Updated { old, new } => {
            // A successor of the same name is never the result of an own write.
            !old.metadata().has_uid_of(&new.metadata())
                || !own_writes.is_own_change(new.key(), || (old.version(), new.version()))
        }
    };
    let informer = at.informers.informer::<K>();
    // The reconcile reports objects that do not decode, with advice on finalizers.
    informer.is_reported_elsewhere();
    let enqueuer = at.enqueuer.clone();
    let Some(when) = when.cloned() else {
        // No user code: runs where the change is applied, without a task.
        return informer.listen().inline(Box::new(move |events| {
            let mut keys = Vec::with_capacity(events.len());
            let changes = events.iter().filter(|event| is_change(event));
            keys.extend(changes.map(|event| (event.key().clone(), cause(event))));
            enqueuer.enqueue(keys);
        }));
    };
    let is_quick = when.is_quick();
    let enqueue = move |events: &[StoreEvent], is_summed: bool| {
        let changes = numbered(events, is_summed).filter(|(event, is_sum)| {
            is_change(event) && (*is_sum || must_pass(event) || when.passes_event(event))
        });
        enqueuer.enqueue(changes.map(|(event, _)| (event.key().clone(), cause(event))).collect());
    };
    listen_by(&informer, is_quick, enqueue)
}

/// Numbers changes, and marks a change that is the sum of several: each of these might have passed
/// alone, so a sum passes without asking the predicate.
fn numbered(events: &[StoreEvent], is_summed: bool) -> impl Iterator<Item = (&StoreEvent, bool)> {
    // The first change is kept apart; the second is the sum of the others.
    events.iter().enumerate().map(move |(at, event)| (event, is_summed && at == 1))
}

/// Returns the changes that `when` passes.
fn passing<'a, K: Resource>(
    events: &'a [StoreEvent],
    is_summed: bool,
    when: &Predicate<K>,
) -> impl Iterator<Item = &'a StoreEvent> {
    let numbered = numbered(events, is_summed);
    let passing = numbered.filter(move |(event, is_sum)| *is_sum || when.passes_event(event));
    passing.map(|(event, _)| event)
}

/// Listens inline if `enqueue` runs only the framework's code; user code runs on a separate task.
fn listen_by<K: Resource>(
    informer: &Informer<K>,
    is_quick: bool,
    enqueue: impl Fn(&[StoreEvent], bool) + Send + Sync + 'static,
) -> Registration {
    let listen = informer.listen().name("predicate of a controller");
    if !is_quick {
        return listen.on_steps(enqueue);
    }
    listen.inline(Box::new(move |events| enqueue(events, false)))
}

/// Returns the cause with which a change of an object enqueues that object.
fn cause(event: &StoreEvent) -> EnqueueReason {
    match event {
        StoreEvent::Added { is_initial: true, .. } => EnqueueReason::periodic(Reason::STARTED),
        StoreEvent::Updated { old, new } if Arc::ptr_eq(old, new) => {
            EnqueueReason::periodic(Reason::RESYNC)
        }
        StoreEvent::Deleted { .. } => EnqueueReason::changed(Reason::DELETED),
        _ => EnqueueReason::changed(Reason::CHANGED),
    }
}

/// As [`cause`], for a change of an object that is mapped to another object.
fn cause_for(event: &StoreEvent, reason: Reason) -> EnqueueReason {
    match event {
        StoreEvent::Added { is_initial: true, .. } => EnqueueReason::periodic(reason),
        StoreEvent::Updated { old, new } if Arc::ptr_eq(old, new) => {
            EnqueueReason::periodic(reason)
        }
        _ => EnqueueReason::changed(reason),
    }
}

/// Whether a change passes whatever the predicate returns: a clean-up may wait for the change, as
/// may an object that was paused; and per-object state has to end with the object.
fn must_pass(event: &StoreEvent) -> bool {
    match event {
        StoreEvent::Added { new, .. } => new.metadata().is_terminating(),
        StoreEvent::Updated { old, new } => {
            new.metadata().is_terminating() && !old.metadata().is_terminating()
                || is_pause_change(event)
        }
        StoreEvent::Deleted { .. } => true,
    }
}

/// Owners of a kind of children.
#[derive(Clone)]
pub(crate) struct Owners {
    pub(crate) kind: ResourceInfo,
    /// Whether children without an owner reference are looked for by their marks.
    pub(crate) has_marks: bool,
}

impl Owners {
    /// Returns the key of the owner of a child.
    fn of(&self, child: &Object) -> Option<ObjectKey> {
        let metadata = child.metadata();
        let owner = controller_key(metadata.owners(), &self.kind, child.key());
        owner.or_else(|| self.has_marks.then(|| marked_key(child, &self.kind))?)
    }
}

/// Connects children: a change enqueues the object that controls the child.
pub(crate) fn owned<K: Resource>(
    parent: Owners,
    reason: Reason,
    when: Option<Predicate<K>>,
) -> Source {
    Box::new(move |at| {
        let informer = at.informers.informer::<K>();
        if parent.has_marks {
            informer.store().ensure_index(marked_index::<K>())?;
        }
        // Children are compared with their intents by the fields that were applied; a projection is
        // never applied.
        if K::projection().is_none() {
            informer.keep_applied_fields(at.controller);
        }
        let (enqueuer, applied, parent) =
            (at.enqueuer.clone(), Arc::clone(at.applied), parent.clone());
        let Some(when) = when.clone() else {
            return Ok(vec![informer.listen().inline(Box::new(move |events| {
                observe::<K>(events, &parent, &applied);
                enqueuer.enqueue(concerned(events.iter(), &parent, reason));
            }))]);
        };
        // Expectations need every event of a child, also those that the predicate drops.
        let kind = parent.clone();
        let observing = informer.listen().inline(Box::new(move |events| {
            observe::<K>(events, &kind, &applied);
        }));
        let changes = listen_by(&informer, when.is_quick(), move |events, is_summed| {
            enqueuer.enqueue(concerned(passing(events, is_summed, &when), &parent, reason));
        });
        Ok(vec![observing, changes])
    })
}

/// Returns the parents that changes of children concern.
fn concerned<'a>(
    events: impl Iterator<Item = &'a StoreEvent>,
    parent: &Owners,
    reason: Reason,
) -> Vec<(ObjectKey, EnqueueReason)> {
    let owners = events.flat_map(|event| {
        let cause = cause_for(event, reason);
        owners(event, parent).into_iter().flatten().map(move |owner| (owner, cause))
    });
    owners.collect()
}

/// Returns the parents that a change of a child concerns: both, if the child changed the owner.
fn owners(event: &StoreEvent, parent: &Owners) -> [Option<ObjectKey>; 2] {
    let owner = |child: &Object| parent.of(child);
    match event {
        StoreEvent::Added { new, .. } => [owner(new), None],
        StoreEvent::Updated { old, new } => {
            let (before, after) = (owner(old), owner(new));
            let before = before.filter(|before| after.as_ref() != Some(before));
            [before, after]
        }
        StoreEvent::Deleted { last, .. } => [owner(last), None],
    }
}

/// Records additions and deletions of children for the expectations.
fn observe<K: Resource>(events: &[StoreEvent], parent: &Owners, applied: &ApplyCache) {
    for event in events {
        let (object, is_gone) = match event {
            StoreEvent::Added { new, .. } => (new, false),
            StoreEvent::Updated { .. } => continue,
            StoreEvent::Deleted { last, .. } => (last, true),
        };
        let Some(owner) = parent.of(object) else { continue };
        let Some(info) = K::static_info() else { continue };
        if is_gone {
            applied.child_ended(&owner, &(info.clone(), object.key().clone()));
        } else {
            applied.expectations.observe_new(&owner, &info, object.metadata().uid());
        }
        let metadata = object.metadata();
        let child = ObservedChild { key: object.key(), uid: metadata.uid(), is_gone };
        applied.expectations.observe(&owner, &info, child);
    }
}

/// Connects other objects: a change enqueues the keys that `mapper` returns for the object.
pub(crate) fn watched<K: Resource>(
    mapper: fn(&Cached<K>) -> Vec<ObjectKey>,
    reason: Reason,
    when: Option<Predicate<K>>,
) -> Source {
    Box::new(move |at| {
        Ok(vec![mapped(&at.informers.informer::<K>(), at.enqueuer, reason, when.clone(), mapper)])
    })
}

/// Connects other objects: a change enqueues the parents whose index values name the object.
pub(crate) fn watched_by<K: Resource, P: Resource, V: IndexValue>(
    index: Index<P, V>,
    reason: Reason,
    when: Option<Predicate<K>>,
) -> Source {
    Box::new(move |at| {
        let parents = at.informers.informer::<P>().store();
        parents.ensure_index(index)?;
        let mapper = move |other: &Cached<K>| {
            let found = parents.by_text(index, other.key().name());
            let keys = found.iter().map(|parent| parent.key().clone());
            keys.filter(|key| near(key, other.key())).collect()
        };
        Ok(vec![mapped(&at.informers.informer::<K>(), at.enqueuer, reason, when.clone(), mapper)])
    })
}

/// Whether both keys are in the same namespace, as far as both have a namespace.
fn near(a: &ObjectKey, b: &ObjectKey) -> bool {
    a.namespace().is_none() || b.namespace().is_none() || a.namespace() == b.namespace()
}

/// Builds an index before the controller starts.
pub(crate) fn indexed<K: Resource, V: IndexValue>(index: Index<K, V>) -> Source {
    Box::new(move |at| {
        at.informers.pinned::<K>().store().ensure_index(index)?;
        Ok(Vec::new())
    })
}

/// Connects a mapper: enqueues the keys that the mapper returns for each state that a reader of the
/// cache could have seen.
pub(crate) fn mapped<K: Resource>(
    informer: &Informer<K>,
    enqueuer: &Enqueuer,
    reason: Reason,
    when: Option<Predicate<K>>,
    mapper: impl Fn(&Cached<K>) -> Vec<ObjectKey> + Send + Sync + 'static,
) -> Registration {
    let enqueuer = enqueuer.clone();
    let listen = informer.listen().name("mapper of a controller");
    // Every state: a state in between may be mapped to other keys than the last state.
    listen.on_steps(move |events, is_summed| {
        let passed: Vec<StoreEvent>;
        let events = match &when {
            None => events,
            Some(when) => {
                passed = passing(events, is_summed, when).cloned().collect();
                &passed
            }
        };
        // The objects of a first list are no changes: their keys get low priority.
        let is_change = events.iter().any(|event| cause_for(event, reason).is_change());
        let cause = if is_change {
            EnqueueReason::changed(reason)
        } else {
            EnqueueReason::periodic(reason)
        };
        for state in states(events) {
            let keys = mapper(&Cached::new(Arc::clone(state)));
            enqueuer.enqueue(keys.into_iter().map(|key| (key, cause)).collect());
        }
    })
}
