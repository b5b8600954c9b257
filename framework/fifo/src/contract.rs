//! The interface that the queues of this module share.

// DESIGN.md, 30: A list that contains an object without a key deletes nothing

use std::fmt::Debug;
use std::sync::Arc;

use super::key_lister::KeyListerGetter;
use super::object_delta::{Deleted, ObjectDelta};
use super::rules::{EnqueueError, Rules};

/// Outcome of processing a popped item.
///
/// client-go's `PopProcessFunc` returns an error, and `ErrRequeue` within the error for
/// [`Requeue`](Self::Requeue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOutcome<E> {
    /// The item was processed.
    Done,
    /// The item is to be tried again and goes back; see the queue for the item's place. In [`Fifo`]
    /// and [`DeltaFifo`] only if no newer delta of the key is queued.
    ///
    /// [`Fifo`]: super::Fifo
    /// [`DeltaFifo`]: super::DeltaFifo
    Requeue,
    /// Processing failed, and the item does not come back; the caller of the pop gets the error.
    Failed(E),
}

/// An item that was taken out of a queue.
///
/// Owned by the caller until the value is dropped, or returned by [`Queue::give_back`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueItem<P> {
    /// The item.
    pub item: P,
    /// Whether the item belongs to the first list.
    pub is_initial: bool,
}

/// A list that replaces everything before the list; the listed objects are named and transformed.
///
/// Made by [`admit`](Self::admit), so that the functions of the rules run before a queue is
/// changed.
#[derive(Clone, Debug)]
pub struct Replacement<K, T> {
    /// The objects, in the list's order.
    pub objects: Vec<(K, T)>,
    /// Whether these are all objects of the list. If not, missing objects may still exist, and none
    /// counts as deleted.
    pub is_whole: bool,
    /// The resourceVersion of the list.
    pub resource_version: Arc<str>,
}

impl<K: Debug, T> Replacement<K, T> {
    /// Admits the objects of a list, and returns also those that were refused.
    pub fn admit(
        rules: &Rules<K, T>,
        list: impl IntoIterator<Item = T>,
        resource_version: &str,
    ) -> (Self, Vec<EnqueueError<T>>) {
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
/// Several tasks share a queue through [`Shared`](super::Shared), which also closes the queue.
///
/// The methods without a body define a queue and are called by [`Shared`](super::Shared): their
/// objects have passed the queue's [`Rules`].
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{DeltaFifo, ProcessOutcome, Queue};
///
/// /// Processes all that waits; returns the number of failures.
/// fn drain<Q: Queue>(queue: &mut Q, mut works: impl FnMut(&Q::Popped) -> bool) -> usize {
///     let mut failures = 0;
///     while let Some(outcome) = queue.pop(|item, _is_initial| {
///         if works(item) { ProcessOutcome::Done } else { ProcessOutcome::Failed(()) }
///     }) {
///         failures += usize::from(outcome != ProcessOutcome::Done);
///     }
///     failures
/// }
///
/// let mut queue = DeltaFifo::new(|pod: &(&'static str, u32)| Ok(pod.0));
/// queue.add(("web-0", 1)).expect("it has a key");
/// assert_eq!(drain(&mut queue, |_| true), 0);
/// ```
pub trait Queue {
    /// The names of objects.
    type Key: Ord + Clone + Debug;
    /// The objects. They are cloned for tombstones, syncs and returned items: prefer an `Arc`.
    type Object: Clone;
    /// The item of one pop.
    type Popped;

    /// Returns the functions that name and transform objects.
    fn rules(&self) -> &Rules<Self::Key, Self::Object>;

    /// Queues a change.
    fn enter(
        &mut self,
        key: Self::Key,
        delta: ObjectDelta<Self::Object>,
        known: &dyn KeyListerGetter<Self::Key, Self::Object>,
    );

    /// Queues a list.
    fn enter_list(
        &mut self,
        list: Replacement<Self::Key, Self::Object>,
        known: &dyn KeyListerGetter<Self::Key, Self::Object>,
    );

    /// Queues the known objects again, by the queue's own rules.
    fn resync(&mut self, known: &dyn KeyListerGetter<Self::Key, Self::Object>);

    /// Takes out the next item.
    fn take(&mut self) -> Option<QueueItem<Self::Popped>>;

    /// Puts an item back whose processing asked for it.
    fn give_back(&mut self, taken: QueueItem<Self::Popped>);

    /// Returns the states of the objects of `item` that a consumer knows once the item has been
    /// processed; `None` for a deleted object.
    fn states(item: &Self::Popped) -> Vec<(Self::Key, Option<Self::Object>)>;

    /// Whether the first list was taken out whole. Also true when an object was added before any
    /// list.
    fn has_synced(&self) -> bool;

    /// Returns the number of waiting items.
    fn len(&self) -> usize;

    /// Whether no item waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a delta may be added. Always true for a queue without a bound.
    fn has_room(&self) -> bool {
        true
    }

    /// Queues a new object.
    ///
    /// # Errors
    /// The object is refused: the key cannot be read, the transform failed, the queue is full.
    fn add(&mut self, object: Self::Object) -> Result<(), EnqueueError<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Added(object), &());
        Ok(())
    }

    /// Queues a changed object.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn update(&mut self, object: Self::Object) -> Result<(), EnqueueError<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Updated(object), &());
        Ok(())
    }

    /// Queues a deletion; `object` is the final state.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    fn delete(
        &mut self,
        object: Self::Object,
        known: &dyn KeyListerGetter<Self::Key, Self::Object>,
    ) -> Result<(), EnqueueError<Self::Object>> {
        let (key, object) = admit(self, object)?;
        self.enter(key, ObjectDelta::Deleted(Deleted::seen(object)), known);
        Ok(())
    }

    /// Queues a list at `resource_version`, which shows these objects and no others. Returns the
    /// objects that were refused.
    ///
    /// A refused object does not affect the others, but then no object counts as deleted, because
    /// an object that could not be named may be the object that seems to be missing. A full queue
    /// refuses the whole list; an empty list is taken, as there is no object to return as a sign of
    /// the refusal.
    ///
    /// The objects that were refused are returned with the reason of each; an empty answer means
    /// that the whole list was taken.
    fn replace(
        &mut self,
        list: Vec<Self::Object>,
        resource_version: &str,
        known: &dyn KeyListerGetter<Self::Key, Self::Object>,
    ) -> Vec<EnqueueError<Self::Object>> {
        if !self.has_room() && !list.is_empty() {
            return list.into_iter().map(EnqueueError::Full).collect();
        }
        let (list, refused) = Replacement::admit(self.rules(), list, resource_version);
        self.enter_list(list, known);
        refused
    }

    /// Takes out the next item and passes it to `process`, with whether it belongs to the first
    /// list. `None` when no item waits.
    ///
    /// For a queue that a single task uses. [`Shared::pop`](super::Shared::pop) waits for an item.
    fn pop<E>(
        &mut self,
        process: impl FnOnce(&Self::Popped, bool) -> ProcessOutcome<E>,
    ) -> Option<ProcessOutcome<E>>
    where
        Self: Sized,
    {
        let taken = self.take()?;
        let outcome = process(&taken.item, taken.is_initial);
        if matches!(outcome, ProcessOutcome::Requeue) {
            self.give_back(taken);
        }
        Some(outcome)
    }
}

/// An object that has passed the rules of a queue, with the object's key.
pub(super) type Admitted<Q> = (<Q as Queue>::Key, <Q as Queue>::Object);

/// Names and transforms an object, unless the queue is full.
fn admit<Q: Queue + ?Sized>(
    queue: &Q,
    object: Q::Object,
) -> Result<Admitted<Q>, EnqueueError<Q::Object>> {
    if !queue.has_room() {
        // Before the transform runs: the object comes back unchanged.
        return Err(EnqueueError::Full(object));
    }
    queue.rules().admit(object)
}
