//! What all queues of this module have in common.

use std::fmt::Debug;
use std::sync::Arc;

use super::known::Known;
use super::object_delta::{Deleted, ObjectDelta};
use super::rules::{Refused, Rules};

/// How the processing of a popped item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<E> {
    /// It is done.
    Done,
    /// It should be tried again: the item goes back, see the queue for its place. In [`Fifo`] and
    /// [`DeltaFifo`] only if nothing newer of the key is queued.
    ///
    /// [`Fifo`]: super::Fifo
    /// [`DeltaFifo`]: super::DeltaFifo
    Requeue,
    /// It failed, and does not come back; the error is for whoever popped.
    Failed(E),
}

/// Something that was taken out of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<P> {
    /// What.
    pub item: P,
    /// Does it belong to the first list?
    pub is_initial: bool,
}

/// A list that takes the place of everything before it, its objects named and transformed.
#[derive(Clone, Debug)]
pub struct Replacement<K, T> {
    /// The objects, in the list's order.
    pub objects: Vec<(K, T)>,
    /// Are these all objects of the list? If not, what is missing may still exist, and nothing is
    /// taken for deleted.
    pub is_whole: bool,
    /// The list's version.
    pub resource_version: Arc<str>,
}

impl<K: Debug, T> Replacement<K, T> {
    /// Admits the objects of a list, and says which were refused.
    pub fn admit(
        rules: &Rules<K, T>,
        list: impl IntoIterator<Item = T>,
        resource_version: &str,
    ) -> (Self, Vec<Refused<T>>) {
        let (mut objects, mut refused) = (Vec::new(), Vec::new());
        for object in list {
            match rules.admit(object) {
                Ok(admitted) => objects.push(admitted),
                Err(refusal) => refused.push(refusal),
            }
        }
        let is_whole = refused.is_empty();
        (Self { objects, is_whole, resource_version: Arc::from(resource_version) }, refused)
    }
}

/// A queue of changes of objects, each under a key.
///
/// Producers call [`add`](Self::add), [`update`](Self::update), [`delete`](Self::delete),
/// [`replace`](Self::replace) and [`resync`](Self::resync); a consumer calls [`pop`](Self::pop).
/// Several tasks share one through [`Shared`](super::Shared), which also closes it.
///
/// The methods without a body are what a queue is made of, and what a shell calls: they get objects
/// that have passed the queue's [`Rules`].
pub trait Queue {
    /// What objects are named by.
    type Key: Ord + Clone + Debug;
    /// The objects. Cloned for tombstones, syncs and returned items: an `Arc` is well chosen.
    type Object: Clone;
    /// What one pop hands out.
    type Popped;

    /// How objects are named and transformed.
    fn rules(&self) -> &Rules<Self::Key, Self::Object>;

    /// Queues one change.
    fn enter(
        &mut self,
        key: Self::Key,
        delta: ObjectDelta<Self::Object>,
        known: &dyn Known<Self::Key, Self::Object>,
    );

    /// Queues a list.
    fn enter_list(
        &mut self,
        list: Replacement<Self::Key, Self::Object>,
        known: &dyn Known<Self::Key, Self::Object>,
    );

    /// Queues what is known again, as the queue's own rules say.
    fn resync(&mut self, known: &dyn Known<Self::Key, Self::Object>);

    /// Takes out the next item.
    fn take(&mut self) -> Option<Taken<Self::Popped>>;

    /// Puts an item back whose processing asked for it.
    fn give_back(&mut self, taken: Taken<Self::Popped>);

    /// The states in which a consumer knows the objects of `item` once it has processed it; `None`
    /// for a deleted one.
    fn states(item: &Self::Popped) -> Vec<(Self::Key, Option<Self::Object>)>;

    /// Was the first list taken out whole? Also true when something was added before any list.
    fn has_synced(&self) -> bool;

    /// How many items wait.
    fn len(&self) -> usize;

    /// Does nothing wait?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// May something be added? Always true of a queue without a bound.
    fn has_room(&self) -> bool {
        true
    }

    /// The object came.
    ///
    /// # Errors
    /// The object is refused: its key cannot be read, its transform failed, the queue is full.
    fn add(&mut self, object: Self::Object) -> Result<(), Refused<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Added(object), &());
        Ok(())
    }

    /// The object changed.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn update(&mut self, object: Self::Object) -> Result<(), Refused<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Updated(object), &());
        Ok(())
    }

    /// The object went; this is its final state.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn delete(
        &mut self,
        object: Self::Object,
        known: &dyn Known<Self::Key, Self::Object>,
    ) -> Result<(), Refused<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Deleted(Deleted::seen(object)), known);
        Ok(())
    }

    /// A list at `resource_version` shows these objects and no others. Returns what was refused:
    /// each costs itself only, but then nothing is taken for deleted, for what could not be named
    /// may be what seems to be missing. A full queue refuses the whole list; an empty one it takes, as
    /// there is nothing to give back that would say otherwise.
    fn replace(
        &mut self,
        list: Vec<Self::Object>,
        resource_version: &str,
        known: &dyn Known<Self::Key, Self::Object>,
    ) -> Vec<Refused<Self::Object>> {
        if !self.has_room() && !list.is_empty() {
            return list.into_iter().map(Refused::Full).collect();
        }
        let (list, refused) = Replacement::admit(self.rules(), list, resource_version);
        self.enter_list(list, known);
        refused
    }

    /// Takes out the next item and lets `process` see it, and whether it belongs to the first list.
    /// `None` when nothing waits.
    fn pop<E>(
        &mut self,
        process: impl FnOnce(&Self::Popped, bool) -> Outcome<E>,
    ) -> Option<Outcome<E>>
    where
        Self: Sized,
    {
        let taken = self.take()?;
        let outcome = process(&taken.item, taken.is_initial);
        if matches!(outcome, Outcome::Requeue) {
            self.give_back(taken);
        }
        Some(outcome)
    }
}

/// What has passed the rules of a queue: key and object.
pub(super) type Admitted<Q> = (<Q as Queue>::Key, <Q as Queue>::Object);

fn admit<Q: Queue + ?Sized>(
    queue: &Q,
    object: Q::Object,
) -> Result<Admitted<Q>, Refused<Q::Object>> {
    if !queue.has_room() {
        return Err(Refused::Full(object));
    }
    queue.rules().admit(object)
}
