//! The shell in which several tasks use one queue: waiting, waking, closing.
//!
//! Producers never wait for a consumer's processing, only for room. One item is processed at a time,
//! outside of the lock; what it will have done to the consumer's store counts as done when a list or
//! a resync is compared meanwhile, so nothing is taken for unknown while it is in between.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use super::closed::Closed;
use super::contract::{Admitted, Outcome, Queue, Replacement, Taken};
use super::known::{Known, View};
use super::object_delta::{Deleted, ObjectDelta};
use super::rules::{Refused, Rules};
use crate::sync::{Mutex, Notify};

/// A queue for several tasks. Share it in an [`Arc`].
///
/// ```
/// use windlass::delta::{Fifo, Outcome, Shared};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let pods = Shared::new("pods", Fifo::new(|pod: &(&'static str, u32)| Ok(pod.0)));
/// pods.replace(vec![("web-0", 1), ("web-1", 1)], "7", &()).await;
/// assert!(!pods.has_synced());
/// for _ in 0..2 {
///     pods.pop(|(name, _), _is_initial| {
///         println!("{name}");
///         Outcome::<()>::Done
///     })
///     .await?;
/// }
/// pods.synced().await?;
/// pods.close();
/// assert!(pods.pop(|_, _| Outcome::<()>::Done).await.is_err());
/// # Ok::<(), windlass::delta::Closed>(())
/// # }).unwrap();
/// ```
pub struct Shared<Q: Queue> {
    name: Arc<str>,
    rules: Rules<Q::Key, Q::Object>,
    state: Mutex<State<Q>>,
    /// One permit: something can be popped.
    filled: Notify,
    /// Told to all who wait for room.
    room: Notify,
    /// Told to all who wait for the first list.
    synced: Notify,
}

struct State<Q: Queue> {
    queue: Q,
    is_closed: bool,
    /// What is being processed.
    flight: Option<Flight<Q>>,
    /// How many are reading the consumer's store for a list or a resync.
    readers: usize,
    /// What was processed while somebody was reading.
    settled: States<Q>,
}

type States<Q> = BTreeMap<<Q as Queue>::Key, Option<<Q as Queue>::Object>>;

/// What is being processed, and the guard of that.
pub(super) type Begun<'a, Q, P> = (Taken<P>, Popping<'a, Q>);

struct Flight<Q: Queue> {
    is_initial: bool,
    states: States<Q>,
}

impl<Q: Queue> State<Q> {
    fn has_synced(&self) -> bool {
        let is_in_flight = self.flight.as_ref().is_some_and(|flight| flight.is_initial);
        self.queue.has_synced() && !is_in_flight
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
    /// Shares `queue` under a name, for those who wait for it.
    pub fn new(name: &str, queue: Q) -> Self {
        Self {
            name: Arc::from(name),
            rules: queue.rules().clone(),
            state: Mutex::new(State {
                queue,
                is_closed: false,
                flight: None,
                readers: 0,
                settled: BTreeMap::new(),
            }),
            filled: Notify::new(),
            room: Notify::new(),
            synced: Notify::new(),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many items wait; not counting one that is being processed.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Was the first list processed whole? Also true when something was added before any list.
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
            // Registered before the look, so that no wake-up falls in between.
            synced.as_mut().enable();
            if let Some(end) = self.look_synced() {
                return end;
            }
            synced.await;
        }
    }

    fn look_synced(&self) -> Option<Result<(), Closed>> {
        let state = self.state.lock();
        if state.has_synced() {
            return Some(Ok(()));
        }
        state.is_closed.then(|| Err(self.closed()))
    }

    /// Accepts nothing more, and wakes everybody. What is queued can still be popped.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.filled.notify_waiters();
        self.room.notify_waiters();
        self.synced.notify_waiters();
    }

    /// The object came. Waits for room in a bounded queue.
    ///
    /// # Errors
    /// The object was refused.
    ///
    /// # Cancel safety
    /// Safe: dropped while it waits, nothing is queued and the object is gone.
    pub async fn add(&self, object: Q::Object) -> Result<(), Refused<Q::Object>> {
        self.enter(object, ObjectDelta::Added).await
    }

    /// The object changed. As [`add`](Self::add).
    ///
    /// # Errors
    /// The object was refused.
    pub async fn update(&self, object: Q::Object) -> Result<(), Refused<Q::Object>> {
        self.enter(object, ObjectDelta::Updated).await
    }

    /// The object went; this is its final state. As [`add`](Self::add).
    ///
    /// # Errors
    /// The object was refused.
    pub async fn delete(
        &self,
        object: Q::Object,
        known: &(impl Known<Q::Key, Q::Object> + Sync),
    ) -> Result<(), Refused<Q::Object>> {
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
            Some(object) if !is_open => Err(Refused::Closed(object)),
            _ => Ok(()),
        }
    }

    /// A list at `resource_version` shows these objects and no others; see
    /// [`Queue::replace`]. Waits for room in a bounded queue.
    ///
    /// # Cancel safety
    /// Safe: dropped while it waits, nothing is queued.
    pub async fn replace(
        &self,
        list: Vec<Q::Object>,
        resource_version: &str,
        known: &(impl Known<Q::Key, Q::Object> + Sync),
    ) -> Vec<Refused<Q::Object>> {
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
        refused.extend(objects.map(|(_, object)| Refused::Closed(object)));
        refused
    }

    /// Queues what is known again; a key that is queued or being processed is left alone. Waits for
    /// room in a bounded queue.
    ///
    /// # Errors
    /// The queue is closed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn resync(
        &self,
        known: &(impl Known<Q::Key, Q::Object> + Sync),
    ) -> Result<(), Closed> {
        self.compare(
            || View::of(known),
            |state, view| {
                if let Some(flight) = &state.flight {
                    view.hide(flight.states.keys());
                }
                state.queue.resync(view);
            },
        )
        .await
    }

    /// Waits for an item, lets `process` see it outside of the lock, and says how that ended; see
    /// [`Outcome`]. One item is processed at a time, whoever pops. If `process` panics the item counts
    /// as processed, and the panic goes on.
    ///
    /// # Errors
    /// The queue is closed, and nothing waits.
    ///
    /// # Cancel safety
    /// Safe: nothing is lost when it is dropped while it waits.
    pub async fn pop<E>(
        &self,
        process: impl FnOnce(&Q::Popped, bool) -> Outcome<E>,
    ) -> Result<Outcome<E>, Closed> {
        let (taken, popping) = self.taken(Q::take, |item| Q::states(item)).await?;
        let outcome = process(&taken.item, taken.is_initial);
        let back = matches!(outcome, Outcome::Requeue).then_some(taken);
        popping.end(|queue| back.into_iter().for_each(|taken| queue.give_back(taken)));
        Ok(outcome)
    }

    async fn enter(
        &self,
        object: Q::Object,
        change: fn(Q::Object) -> ObjectDelta<Q::Object>,
    ) -> Result<(), Refused<Q::Object>> {
        let mut entry = self.rules.admit(object)?;
        loop {
            let mut room = pin!(self.room.notified());
            // Registered before the look, so that no wake-up falls in between.
            room.as_mut().enable();
            match self.try_enter(entry, change)? {
                None => return Ok(()),
                Some(back) => entry = back,
            }
            room.await;
        }
    }

    /// Gives the object back when there is no room.
    fn try_enter(
        &self,
        (key, object): Admitted<Q>,
        change: fn(Q::Object) -> ObjectDelta<Q::Object>,
    ) -> Result<Option<Admitted<Q>>, Refused<Q::Object>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Refused::Closed(object));
        }
        if !state.queue.has_room() {
            return Ok(Some((key, object)));
        }
        state.queue.enter(key, change(object), &());
        self.entered(state);
        Ok(None)
    }

    /// Waits for room, reads what is known without holding the lock, and runs `step` on both.
    async fn compare(
        &self,
        read: impl Fn() -> View<Q::Key, Q::Object>,
        mut step: impl FnMut(&mut State<Q>, &mut View<Q::Key, Q::Object>),
    ) -> Result<(), Closed> {
        loop {
            let mut room = pin!(self.room.notified());
            // Registered before the look, so that no wake-up falls in between.
            room.as_mut().enable();
            if self.try_compare(&read, &mut step)? {
                return Ok(());
            }
            room.await;
        }
    }

    /// False without room.
    fn try_compare(
        &self,
        read: impl Fn() -> View<Q::Key, Q::Object>,
        step: impl FnOnce(&mut State<Q>, &mut View<Q::Key, Q::Object>),
    ) -> Result<bool, Closed> {
        let Some(_reading) = self.read()? else { return Ok(false) };
        let mut view = read();
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(self.closed());
        }
        if !state.queue.has_room() {
            return Ok(false);
        }
        view.overlay(&state.settled);
        if let Some(flight) = &state.flight {
            view.overlay(&flight.states);
        }
        step(&mut state, &mut view);
        self.entered(state);
        Ok(true)
    }

    /// From now on what is processed is remembered; `None` without room.
    fn read(&self) -> Result<Option<Reading<'_, Q>>, Closed> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(self.closed());
        }
        if !state.queue.has_room() {
            return Ok(None);
        }
        state.readers += 1;
        Ok(Some(Reading { shared: self }))
    }

    /// Something may have been queued.
    fn entered(&self, state: impl std::ops::DerefMut<Target = State<Q>>) {
        let (is_filled, has_synced) = (!state.queue.is_empty(), state.has_synced());
        drop(state);
        if is_filled {
            self.filled.notify_one();
        }
        if has_synced {
            self.synced.notify_waiters();
        }
    }

    pub(super) async fn taken<P>(
        &self,
        take: impl Fn(&mut Q) -> Option<Taken<P>>,
        states: impl Fn(&P) -> Vec<(Q::Key, Option<Q::Object>)>,
    ) -> Result<Begun<'_, Q, P>, Closed> {
        loop {
            let mut filled = pin!(self.filled.notified());
            // Registered before the look, so that no wake-up falls in between.
            filled.as_mut().enable();
            if let Some(begun) = self.try_take(&take, &states)? {
                return Ok(begun);
            }
            filled.await;
        }
    }

    fn try_take<P>(
        &self,
        take: impl Fn(&mut Q) -> Option<Taken<P>>,
        states: impl Fn(&P) -> Vec<(Q::Key, Option<Q::Object>)>,
    ) -> Result<Option<Begun<'_, Q, P>>, Closed> {
        let mut state = self.state.lock();
        let taken = if state.flight.is_none() { take(&mut state.queue) } else { None };
        if let Some(taken) = taken {
            let states = states(&taken.item).into_iter().collect();
            state.flight = Some(Flight { is_initial: taken.is_initial, states });
            drop(state);
            self.room.notify_waiters();
            return Ok(Some((taken, Popping { shared: self, is_over: false })));
        }
        let is_over = state.is_closed && state.queue.is_empty();
        // What was skipped may have been the last of the first list.
        let has_synced = state.has_synced();
        drop(state);
        if has_synced {
            self.synced.notify_waiters();
        }
        if is_over { Err(self.closed()) } else { Ok(None) }
    }

    fn closed(&self) -> Closed {
        Closed { name: Arc::clone(&self.name) }
    }
}

/// Somebody reads the consumer's store.
struct Reading<'a, Q: Queue> {
    shared: &'a Shared<Q>,
}

impl<Q: Queue> Drop for Reading<'_, Q> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.readers -= 1;
        if state.readers == 0 {
            state.settled.clear();
        }
    }
}

/// An item is being processed; dropped on the way, it counts as processed.
pub(super) struct Popping<'a, Q: Queue> {
    shared: &'a Shared<Q>,
    is_over: bool,
}

impl<Q: Queue> Popping<'_, Q> {
    pub(super) fn end(mut self, step: impl FnOnce(&mut Q)) {
        self.is_over = true;
        self.shared.processed(step);
    }
}

impl<Q: Queue> Drop for Popping<'_, Q> {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.processed(|_| {});
        }
    }
}

impl<Q: Queue> Shared<Q> {
    fn processed(&self, step: impl FnOnce(&mut Q)) {
        let mut state = self.state.lock();
        if let Some(flight) = state.flight.take()
            && state.readers > 0
        {
            state.settled.extend(flight.states);
        }
        step(&mut state.queue);
        let is_over = state.is_closed && state.queue.is_empty();
        self.entered(state);
        if is_over {
            self.filled.notify_waiters();
        }
    }
}
