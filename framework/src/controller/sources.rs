//! Where keys come from: changes of the object, of its children, of other kinds.
//!
//! The object's own key and its children's owner are read off metadata, where a change is applied,
//! with the old and the new state in hand: the queue of keys is all the buffer they need. Mappers
//! are code of users: each runs on a task of its own, and a slow one delays nobody else.

use std::sync::Arc;

use super::applied::Applied;
use super::echoes::Echoes;
use crate::error::Error;
use crate::informer::{Informer, InformerRegistry, Registration};
use crate::owner::controller_key;
use crate::resource::{ObjectKey, Resource, ResourceInfo};
use crate::store::{Cached, Event, Index, IndexValue, Object};
use crate::workqueue::WorkQueue;

/// Connects one source to the queue, for as long as what it returns is held. Fails when the source
/// cannot be had as it was wired.
pub(super) type Source = Box<
    dyn Fn(
            &InformerRegistry,
            &WorkQueue<ObjectKey>,
            &Arc<Applied>,
        ) -> Result<Option<Registration>, Error>
        + Send
        + Sync,
>;

/// The object itself; echoes of the controller's own writes are left out.
pub(super) fn main<K: Resource>(
    informers: &InformerRegistry,
    queue: &WorkQueue<ObjectKey>,
    echoes: Arc<Echoes>,
) -> Registration {
    let queue = queue.clone();
    let is_news = move |event: &&Event| match event {
        Event::Added { .. } | Event::Deleted { .. } => true,
        Event::Updated { old, new } => {
            !old.head().has_uid_of(&new.head())
                || !echoes.is_echo(new.key(), || (old.version(), new.version()))
        }
    };
    let informer = informers.informer::<K>();
    // Its reconcile says so, with advice on finalizers.
    informer.is_reported_elsewhere();
    informer.listen().inline(Box::new(move |events| {
        let mut keys = Vec::with_capacity(events.len());
        keys.extend(events.iter().filter(&is_news).map(|event| event.key().clone()));
        queue.add_all(keys);
    }))
}

/// Children: the object that controls one is told.
pub(super) fn owned<K: Resource>(parent: ResourceInfo) -> Source {
    Box::new(move |informers, queue, applied| {
        let (queue, memory, parent) = (queue.clone(), Arc::clone(applied), parent.clone());
        let owner =
            move |child: &Object| controller_key(child.head().owners(), &parent, child.key());
        let concerned = move |event: &Event| match event {
            Event::Added { new, .. } => [owner(new), None],
            // A child that changes hands concerns both.
            Event::Updated { old, new } => {
                let (before, after) = (owner(old), owner(new));
                let before = before.filter(|before| after.as_ref() != Some(before));
                [before, after]
            }
            Event::Deleted { last, .. } => {
                let parent = owner(last);
                if let (Some(parent), Some(info)) = (&parent, K::static_info()) {
                    memory.forget_child(parent, &(info, last.key().clone()));
                }
                [parent, None]
            }
        };
        let told = informers.informer::<K>().listen().inline(Box::new(move |events| {
            queue.add_all(events.iter().flat_map(&concerned).flatten());
        }));
        Ok(Some(told))
    })
}

/// Other objects: the keys that `mapper` makes of one are told.
pub(super) fn watched<K: Resource>(mapper: fn(&Cached<K>) -> Vec<ObjectKey>) -> Source {
    Box::new(move |informers, queue, _| Ok(Some(mapped(&informers.informer::<K>(), queue, mapper))))
}

/// Other objects: those parents are told whose index values name one.
pub(super) fn watched_by<K: Resource, P: Resource, V: IndexValue>(index: Index<P, V>) -> Source {
    Box::new(move |informers, queue, _| {
        let parents = informers.informer::<P>().store();
        parents.ensure_index(index)?;
        let mapper = move |other: &Cached<K>| {
            let found = parents.by_text(index, other.key().name());
            let keys = found.iter().map(|parent| parent.key().clone());
            keys.filter(|key| near(key, other.key())).collect()
        };
        Ok(Some(mapped(&informers.informer::<K>(), queue, mapper)))
    })
}

/// In one namespace, as far as both have one?
fn near(a: &ObjectKey, b: &ObjectKey) -> bool {
    a.namespace().is_none() || b.namespace().is_none() || a.namespace() == b.namespace()
}

/// Builds an index early.
pub(super) fn indexed<K: Resource, V: IndexValue>(index: Index<K, V>) -> Source {
    Box::new(move |informers, _, _| {
        informers.pinned::<K>().store().ensure_index(index)?;
        Ok(None)
    })
}

/// Of each state that a reader of the cache could have seen, the keys that it concerns.
pub(super) fn mapped<K: Resource>(
    informer: &Informer<K>,
    queue: &WorkQueue<ObjectKey>,
    mapper: impl Fn(&Cached<K>) -> Vec<ObjectKey> + Send + Sync + 'static,
) -> Registration {
    let queue = queue.clone();
    informer
        .listen()
        .name("mapper of a controller")
        .on_state(move |state| queue.add_all(mapper(state)))
}
