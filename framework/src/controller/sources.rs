//! Where keys come from: changes of the object, of its children, of other kinds.
//!
//! Mapping happens when a change is applied, with the old and the new state in hand, so no listener
//! needs a buffer: the queue of keys is the buffer.

use std::sync::Arc;

use super::applied::Applied;
use super::echoes::Echoes;
use crate::informer::{Change, InformerRegistry};
use crate::owner::controller_key;
use crate::resource::{ObjectKey, Resource, ResourceInfo};
use crate::store::{Cached, Index, IndexValue};
use crate::workqueue::WorkQueue;

/// Connects one source to the queue.
pub(super) type Source =
    Box<dyn Fn(&InformerRegistry, &WorkQueue<ObjectKey>, &Arc<Applied>) + Send + Sync>;

/// The object itself; echoes of the controller's own writes are left out.
pub(super) fn main<K: Resource>(
    informers: &InformerRegistry,
    queue: &WorkQueue<ObjectKey>,
    echoes: Arc<Echoes>,
) {
    let queue = queue.clone();
    informers.informer::<K>().on_change(move |change| match change {
        Change::Added { new, .. } => queue.add(new.key().clone()),
        Change::Deleted { last, .. } => queue.add(last.key().clone()),
        Change::Updated { old, new } => {
            let (from, to) = (old.head().resource_version(), new.head().resource_version());
            if old.head().uid() != new.head().uid() || !echoes.is_echo(new.key(), from, to) {
                queue.add(new.key().clone());
            }
        }
    });
}

/// Children: the object that controls one is told.
pub(super) fn owned<K: Resource>(parent: ResourceInfo) -> Source {
    let mapping = mapped::<K>({
        let parent = parent.clone();
        move |_| {
            let parent = parent.clone();
            Box::new(move |child| {
                controller_key(child.head().owners(), &parent, child.key()).into_iter().collect()
            })
        }
    });
    Box::new(move |informers, queue, applied| {
        let (parent, memory) = (parent.clone(), Arc::clone(applied));
        informers.informer::<K>().on_change(move |change| {
            if let (Change::Deleted { last, .. }, Some(info)) = (change, K::static_info())
                && let Some(parent) = controller_key(last.head().owners(), &parent, last.key())
            {
                memory.forget_child(&parent, &(info, last.key().clone()));
            }
        });
        mapping(informers, queue, applied);
    })
}

/// Other objects: the keys that `mapper` makes of one are told.
pub(super) fn watched<K: Resource>(mapper: fn(&Cached<K>) -> Vec<ObjectKey>) -> Source {
    mapped::<K>(move |_| Box::new(mapper))
}

/// Other objects: those parents are told whose index values name one.
pub(super) fn watched_by<K: Resource, P: Resource, V: IndexValue>(index: Index<P, V>) -> Source {
    mapped::<K>(move |informers| {
        let parents = informers.informer::<P>().store();
        Box::new(move |other| {
            let found = parents.by_index(index, other.key().name());
            let keys = found.iter().map(|parent| parent.key().clone());
            keys.filter(|key| near(key, other.key())).collect()
        })
    })
}

/// In one namespace, as far as both have one?
fn near(a: &ObjectKey, b: &ObjectKey) -> bool {
    a.namespace().is_none() || b.namespace().is_none() || a.namespace() == b.namespace()
}

/// Builds an index early.
pub(super) fn indexed<K: Resource, V: IndexValue>(index: Index<K, V>) -> Source {
    Box::new(move |informers, _, _| {
        informers.informer::<K>().store().ensure_index(index);
    })
}

/// From an object to the keys of those it concerns.
type Mapper<K> = Box<dyn Fn(&Cached<K>) -> Vec<ObjectKey> + Send + Sync>;

fn mapped<K: Resource>(
    mapper: impl Fn(&InformerRegistry) -> Mapper<K> + Send + Sync + 'static,
) -> Source {
    Box::new(move |informers, queue, _| {
        let (queue, mapper) = (queue.clone(), mapper(informers));
        informers.informer::<K>().on_change(move |change| match change {
            Change::Added { new, .. } => queue.add_all(mapper(new)),
            Change::Deleted { last, .. } => queue.add_all(mapper(last)),
            // A child that changes hands concerns both.
            Change::Updated { old, new } => {
                queue.add_all(mapper(old).into_iter().chain(mapper(new)));
            }
        });
    })
}
