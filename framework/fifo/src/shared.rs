//! The wrapper with which several tasks share a queue: waiting, waking, closing.
//!
//! Producers never wait for a consumer's processing, only for room. A single item is processed at a
//! time, outside of the lock. While a list or a resync is compared with the consumer's store, the
//! effects of the item in process count as done already, so the item's objects do not seem unknown.
//!
//! Lock order: the queue's lock is the only lock. The key function, the transform, the consumer's
//! store and the processing all run without the lock; only the queue's own methods run under the
//! lock.

// DESIGN.md, 29: `fifo::Shared` counts an item in processing as processed

mod popping;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use super::closed::{Closed, Synced};
use super::contract::{Admitted, ProcessOutcome, Queue, Replacement};
use super::key_lister::{KeyListerGetter, View};
use super::object_delta::{Deleted, ObjectDelta};
use super::rules::{EnqueueError, Rules};
use windlass_core::sync::{Mutex, Notify};

/// A queue for several tasks. Share it in an [`Arc`].
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{Fifo, ProcessOutcome, Shared};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let pods = Shared::new("pods", Fifo::new(|pod: &(&'static str, u32)| Ok(pod.0)));
/// pods.replace(vec![("web-0", 1), ("web-1", 1)], "7", &()).await;
/// assert!(!pods.has_synced());
/// for _ in 0..2 {
///     pods.pop(|(name, _), _is_initial| {
///         println!("{name}");
///         ProcessOutcome::<()>::Done
///     })
///     .await?;
/// }
/// pods.synced().await?;
/// pods.close();
/// assert!(pods.pop(|_, _| ProcessOutcome::<()>::Done).await.is_err());
/// # Ok::<(), windlass::fifo::Closed>(())
/// # }).unwrap();
/// ```
///
/// client-go's queues have lock and condition variable inside; here any [`Queue`] is shared this
/// way.
pub struct Shared<Q: Queue> {
    /// Name for errors.
    name: Arc<str>,
    /// Copy of the queue's rules, to run them without the lock.
    rules: Rules<Q::Key, Q::Object>,
    /// The queue, and the item in process.
    state: Mutex<State<Q>>,
    /// A permit: an item can be popped.
    filled: Notify,
    /// Notifies all tasks that wait for room.
    room: Notify,
    /// Notifies all tasks that wait for the first list.
    synced: Notify,
}

/// The state that the lock protects.
struct State<Q: Queue> {
    /// The queue.
    queue: Q,
    /// Whether the queue accepts nothing more; never reset.
    is_closed: bool,
    /// The item that is being processed.
    in_process: Option<InProcess<Q>>,
    /// Number of tasks that are reading the consumer's store for a list or a resync.
    readers: usize,
    /// States that were processed during such a read.
    settled: States<Q>,
}

/// States by key; `None` for deleted objects.
type States<Q> = BTreeMap<<Q as Queue>::Key, Option<<Q as Queue>::Object>>;

/// The item in process: its effect once processing is done.
struct InProcess<Q: Queue> {
    /// Whether the item belongs to the first list.
    is_initial: bool,
    /// States of the item's objects once processing is done.
    states: States<Q>,
}

impl<Q: Queue> State<Q> {
    /// Whether the first list was taken out and none of the list's items is in process.
    fn has_synced(&self) -> bool {
        let is_in_flight = self.in_process.as_ref().is_some_and(|in_process| in_process.is_initial);
        self.queue.has_synced() && !is_in_flight
    }
}

impl<Q: Queue> Synced for Shared<Q> {
    fn name(&self) -> &str {
        Shared::name(self)
    }
    fn has_synced(&self) -> bool {
        Shared::has_synced(self)
    }
}

impl<Q: Queue> fmt::Debug for Shared<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Shared")
            .field("name", &self.name)
            .field("len", &state.queue.len())
            .field("is_closed", &state.is_closed)
            .finish_non_exhaustive()
    }
}

impl<Q: Queue> Shared<Q> {
    /// Shares `queue` under a name, which errors report.
    pub fn new(name: &str, queue: Q) -> Self {
        Self {
            name: Arc::from(name),
            rules: queue.rules().clone(),
            state: Mutex::new(State {
                queue,
                is_closed: false,
                in_process: None,
                readers: 0,
                settled: BTreeMap::new(),
            }),
            filled: Notify::new(),
            room: Notify::new(),
            synced: Notify::new(),
        }
    }

    /// Returns the queue's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of waiting items, without an item that is being processed.
    ///
    /// The number is out of date as soon as it is returned: other tasks add and pop.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list was processed whole. Also true when an object was added before any
    /// list.
    pub fn has_synced(&self) -> bool {
        self.state.lock().has_synced()
    }

    /// Waits for [`has_synced`](Self::has_synced).
    ///
    /// # Errors
    /// The queue was closed before.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn synced(&self) -> Result<(), Closed> {
        loop {
            let mut synced = pin!(self.synced.notified());
            // Registered before the state is read, so that no wake-up is lost in between.
            synced.as_mut().enable();
            if let Some(end) = self.look_synced() {
                return end;
            }
            synced.await;
        }
    }

    /// Returns the end of the wait in `synced`, if it is over.
    fn look_synced(&self) -> Option<Result<(), Closed>> {
        let state = self.state.lock();
        if state.has_synced() {
            return Some(Ok(()));
        }
        state.is_closed.then(|| Err(self.closed()))
    }

    /// Closes the queue: the queue accepts nothing more, and all waiters are woken. Queued items
    /// can still be popped.
    ///
    /// Idempotent. An item in process is not interrupted.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        // After the flag is set: each woken task finds the queue closed.
        self.filled.notify_waiters();
        self.room.notify_waiters();
        self.synced.notify_waiters();
    }

    /// Queues a new object. Waits for room in a bounded queue.
    ///
    /// # Errors
    /// The object was refused.
    ///
    /// # Cancel safety
    /// Safe: dropped during the wait, nothing is queued and the object is gone.
    pub async fn add(&self, object: Q::Object) -> Result<(), EnqueueError<Q::Object>> {
        self.enter(object, ObjectDelta::Added).await
    }

    /// Queues a changed object. As [`add`](Self::add).
    ///
    /// # Errors
    /// The object was refused.
    ///
    /// # Cancel safety
    /// As [`add`](Self::add).
    pub async fn update(&self, object: Q::Object) -> Result<(), EnqueueError<Q::Object>> {
        self.enter(object, ObjectDelta::Updated).await
    }

    /// Queues a deletion; `object` is the final state. As [`add`](Self::add).
    ///
    /// # Errors
    /// The object was refused.
    ///
    /// # Cancel safety
    /// As [`add`](Self::add).
    pub async fn delete(
        &self,
        object: Q::Object,
        known: &(impl KeyListerGetter<Q::Key, Q::Object> + Sync),
    ) -> Result<(), EnqueueError<Q::Object>> {
        let (key, object) = self.rules.admit(object)?;
        let mut object = Some(object);
        let entered = self.compare(
            || View::of_key(&key, known),
            |state, view| {
                if let Some(object) = object.take() {
                    let deleted = ObjectDelta::Deleted(Deleted::seen(object));
                    state.queue.enter(key.clone(), deleted, view);
                }
            },
        );
        let is_open = entered.await.is_ok();
        match object {
            // The queue was closed before the step took the object.
            Some(object) if !is_open => Err(EnqueueError::Closed(object)),
            _ => Ok(()),
        }
    }

    /// Queues a list at `resource_version`, which shows these objects and no others; see
    /// [`Queue::replace`]. Waits for room in a bounded queue.
    ///
    /// # Cancel safety
    /// Safe: dropped during the wait, nothing is queued.
    pub async fn replace(
        &self,
        list: Vec<Q::Object>,
        resource_version: &str,
        known: &(impl KeyListerGetter<Q::Key, Q::Object> + Sync),
    ) -> Vec<EnqueueError<Q::Object>> {
        let (list, mut refused) = Replacement::admit(&self.rules, list, resource_version);
        let mut list = Some(list);
        let entered = self.compare(
            || View::of(known),
            |state, view| {
                if let Some(list) = list.take() {
                    state.queue.enter_list(list, view);
                }
            },
        );
        let _ = entered.await;
        let objects = list.into_iter().flat_map(|list| list.objects);
        // Left over if the queue was closed before the step took the list.
        refused.extend(objects.map(|(_, object)| EnqueueError::Closed(object)));
        refused
    }

    /// Queues the known objects again, except for keys that are queued or being processed. Waits
    /// for room in a bounded queue.
    ///
    /// # Errors
    /// The queue is closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn resync(
        &self,
        known: &(impl KeyListerGetter<Q::Key, Q::Object> + Sync),
    ) -> Result<(), Closed> {
        self.compare(
            || View::of(known),
            |state, view| {
                if let Some(in_process) = &state.in_process {
                    view.hide(in_process.states.keys());
                }
                state.queue.resync(view);
            },
        )
        .await
    }

    /// Waits for an item, passes the item to `process` outside of the lock, and returns the
    /// outcome; see [`ProcessOutcome`]. A single item is processed at a time, even with several
    /// consumers. If `process` panics the item counts as processed, and the panic goes on.
    ///
    /// # Errors
    /// The queue is closed, and nothing waits.
    ///
    /// # Cancel safety
    /// Safe: no item is lost when the future is dropped while the call waits.
    pub async fn pop<E>(
        &self,
        process: impl FnOnce(&Q::Popped, bool) -> ProcessOutcome<E>,
    ) -> Result<ProcessOutcome<E>, Closed> {
        let (taken, popping) = self.taken(Q::take, |item| Q::states(item)).await?;
        let outcome = process(&taken.item, taken.is_initial);
        let back = matches!(outcome, ProcessOutcome::Requeue).then_some(taken);
        popping.end(|queue| back.into_iter().for_each(|taken| queue.give_back(taken)));
        Ok(outcome)
    }

    /// Waits for room and queues a change.
    async fn enter(
        &self,
        object: Q::Object,
        change: fn(Q::Object) -> ObjectDelta<Q::Object>,
    ) -> Result<(), EnqueueError<Q::Object>> {
        let mut entry = self.rules.admit(object)?;
        loop {
            let mut room = pin!(self.room.notified());
            // Registered before the state is read, so that no wake-up is lost in between.
            room.as_mut().enable();
            match self.try_enter(entry, change)? {
                None => return Ok(()),
                Some(back) => entry = back,
            }
            room.await;
        }
    }

    /// Queues an object; returns the object when there is no room.
    fn try_enter(
        &self,
        (key, object): Admitted<Q>,
        change: fn(Q::Object) -> ObjectDelta<Q::Object>,
    ) -> Result<Option<Admitted<Q>>, EnqueueError<Q::Object>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(EnqueueError::Closed(object));
        }
        if !state.queue.has_room() {
            return Ok(Some((key, object)));
        }
        // Under the same lock as the check for room: another producer could fill the queue in
        // between.
        state.queue.enter(key, change(object), &());
        self.entered(state);
        Ok(None)
    }

    /// Waits for room, reads the known objects without the lock, and runs `step` on the queue and
    /// them.
    async fn compare(
        &self,
        read: impl Fn() -> View<Q::Key, Q::Object>,
        mut step: impl FnMut(&mut State<Q>, &mut View<Q::Key, Q::Object>),
    ) -> Result<(), Closed> {
        loop {
            let mut room = pin!(self.room.notified());
            // Registered before the state is read, so that no wake-up is lost in between.
            room.as_mut().enable();
            if self.try_compare(&read, &mut step)? {
                return Ok(());
            }
            room.await;
        }
    }

    /// A single attempt of `compare`; false without room.
    fn try_compare(
        &self,
        read: impl Fn() -> View<Q::Key, Q::Object>,
        step: impl FnOnce(&mut State<Q>, &mut View<Q::Key, Q::Object>),
    ) -> Result<bool, Closed> {
        // Registered before the read: an item that is processed during the read is overlaid below.
        let Some(_reading) = self.read()? else { return Ok(false) };
        // Without the lock: the consumer's store is foreign code and may be slow.
        let mut view = read();
        let mut state = self.state.lock();
        // Checked again: the queue was unlocked during the read.
        if state.is_closed {
            return Err(self.closed());
        }
        if !state.queue.has_room() {
            return Ok(false);
        }
        // The read may have missed items that were processed meanwhile, and the item in process.
        view.overlay(&state.settled);
        if let Some(in_process) = &state.in_process {
            view.overlay(&in_process.states);
        }
        step(&mut state, &mut view);
        self.entered(state);
        Ok(true)
    }

    /// Registers a reader: from now on processed states are recorded. `None` without room.
    fn read(&self) -> Result<Option<StoreReadGuard<'_, Q>>, Closed> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(self.closed());
        }
        if !state.queue.has_room() {
            return Ok(None);
        }
        state.readers += 1;
        Ok(Some(StoreReadGuard { shared: self }))
    }

    /// Wakes waiters after items may have been queued.
    fn entered(&self, state: impl std::ops::DerefMut<Target = State<Q>>) {
        // Read before the release: another task may take the item at once.
        let (is_filled, has_synced) = (!state.queue.is_empty(), state.has_synced());
        // Released before the wake-ups: woken tasks take the same lock.
        drop(state);
        if is_filled {
            self.filled.notify_one();
        }
        if has_synced {
            self.synced.notify_waiters();
        }
    }

    fn closed(&self) -> Closed {
        Closed { name: Arc::clone(&self.name) }
    }
}

/// A task that reads the consumer's store.
struct StoreReadGuard<'a, Q: Queue> {
    shared: &'a Shared<Q>,
}

impl<Q: Queue> Drop for StoreReadGuard<'_, Q> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.readers -= 1;
        // The last reader is done: no view will be overlaid with these states any more.
        if state.readers == 0 {
            state.settled.clear();
        }
    }
}
