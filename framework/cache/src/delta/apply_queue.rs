//! Queue between the producers of deltas and the single task that applies them.
//!
//! Producers add to a bounded, key-compressing queue. The *apply permit* is the right to apply: at
//! most one task holds the permit, so batches are applied in sequence, in order. A producer that
//! finds the permit free and the queue empty may take the permit and apply a batch without the hop
//! to another task.
//!
//! No wake-up is lost: when the permit is released while deltas are queued, or after another task
//! was refused the permit, the task that waits in [`filled`](ApplyQueue::filled) is woken.

// DESIGN.md, 27: The holder of the apply permit applies queued batches

use std::fmt;
use std::pin::pin;

use super::queue::{Delta, DeltaItem, DeltaQueue};
use windlass_core::sync::{Mutex, Notify};

/// Number of waiting deltas from which on producers wait, by default.
const MOST_WAITING: usize = 4096;

/// A bounded, ordered queue between several producers and a single applier at a time.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// # use std::cmp::Ordering;
/// # use windlass::delta::{Delta, ApplyQueue, DeltaItem};
/// # use windlass::resource::ObjectKey;
/// # struct State(ObjectKey);
/// # impl DeltaItem for State {
/// #     fn key(&self) -> &ObjectKey {
/// #         &self.0
/// #     }
/// #     fn order(&self, _other: &Self) -> Option<Ordering> {
/// #         None
/// #     }
/// #     fn seen_again(&mut self, _again: &Self) {}
/// # }
/// # fn apply(_batch: Vec<Delta<State, ()>>) {}
/// # fn bring(apply_queue: &ApplyQueue<State, ()>, batch: Vec<Delta<State, ()>>) {
/// match apply_queue.try_permit() {
///     // Nothing is queued and no task applies: no hop to another task.
///     Some(permit) if permit.is_empty() => apply(batch),
///     // Queued deltas come first. The task in `filled` is woken when the permit is released.
///     _ => apply_queue.push(batch),
/// }
/// # }
/// ```
pub struct ApplyQueue<T, M> {
    state: Mutex<State<T, M>>,
    /// A permit: a task should look at the queue.
    filled: Notify,
    /// Notifies all tasks that wait for room.
    drained: Notify,
    most: usize,
}

/// The state that the lock protects.
struct State<T, M> {
    queue: DeltaQueue<T, M>,
    /// Whether a task holds the permit.
    is_taken: bool,
    /// Whether a task was refused the permit, or called `wake`, while the permit was held.
    is_wanted: bool,
}

impl<T: DeltaItem, M> Default for ApplyQueue<T, M> {
    fn default() -> Self {
        Self::new(MOST_WAITING)
    }
}

impl<T, M> fmt::Debug for ApplyQueue<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("ApplyQueue")
            .field("queue", &state.queue)
            .field("is_taken", &state.is_taken)
            .finish_non_exhaustive()
    }
}

impl<T: DeltaItem, M> ApplyQueue<T, M> {
    /// Creates an empty queue in which producers have [`room`](Self::room) while fewer than
    /// `most` deltas wait. `default()` takes 4096.
    pub fn new(most: usize) -> Self {
        let queue = DeltaQueue::new();
        Self {
            state: Mutex::new(State { queue, is_taken: false, is_wanted: false }),
            filled: Notify::new(),
            drained: Notify::new(),
            most,
        }
    }

    /// Adds a batch. The batch is added even without room, so each producer may exceed the bound by
    /// a batch; producers wait in [`room`](Self::room). The iterator and the deltas' [`DeltaItem`]
    /// run under the queue's lock: they must not call back into the queue.
    pub fn push(&self, batch: impl IntoIterator<Item = Delta<T, M>>) {
        let mut state = self.state.lock();
        for delta in batch {
            state.queue.push(delta);
        }
        // The holder of the permit wakes the waiter on releasing the permit with deltas in the
        // queue.
        let is_taken = state.is_taken;
        // Released before the wake-up: the woken task takes the same lock.
        drop(state);
        if !is_taken {
            self.filled.notify_one();
        }
    }

    /// Makes the task in [`filled`](Self::filled) look again: now, or when the permit is released.
    pub fn wake(&self) {
        let mut state = self.state.lock();
        let is_taken = state.is_taken;
        // While the permit is held, the release of the permit passes the wake-up on.
        state.is_wanted |= is_taken;
        drop(state);
        if !is_taken {
            self.filled.notify_one();
        }
    }

    /// Waits until deltas are queued that no holder of the permit has taken, or until
    /// [`wake`](Self::wake). May return without a reason. For a single task at a time.
    ///
    /// # Cancel safety
    /// Safe: a wake-up that comes meanwhile is kept for the next call.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Waits until there is room for more.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn room(&self) {
        loop {
            let mut drained = pin!(self.drained.notified());
            // Registered before the length is read, so that no wake-up is lost in between.
            drained.as_mut().enable();
            if self.len() < self.most {
                return;
            }
            drained.await;
        }
    }

    /// Takes the apply permit, if it is free. Does not wait; if another task holds the permit, the
    /// task in [`filled`](Self::filled) is woken on the release.
    #[must_use = "the permit is released at once when it is dropped"]
    pub fn try_permit(&self) -> Option<ApplyPermit<'_, T, M>> {
        let mut state = self.state.lock();
        if state.is_taken {
            // The holder wakes the waiter on releasing the permit, so this refusal is not
            // forgotten.
            state.is_wanted = true;
            return None;
        }
        state.is_taken = true;
        Some(ApplyPermit { apply_queue: self, is_over: false })
    }

    /// Takes out about `most` deltas, and returns also the number that was dropped because they
    /// were not newer. For a queue with a single applier that uses no permits; see
    /// [`ApplyPermit::take`].
    pub fn take(&self, most: usize) -> (Vec<Delta<T, M>>, u64) {
        let mut state = self.state.lock();
        let taken = state.queue.take(most);
        let dropped = state.queue.take_dropped();
        drop(state);
        // All producers, with the lock released: each checks the length.
        self.drained.notify_waiters();
        (taken, dropped)
    }

    /// Returns the number of waiting deltas.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Whether no delta waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The right to apply deltas. Released when dropped; then the task in [`ApplyQueue::filled`] is
/// woken if deltas are queued or if another task was refused the permit meanwhile.
#[must_use = "the permit is released at once when it is dropped"]
pub struct ApplyPermit<'a, T: DeltaItem, M> {
    apply_queue: &'a ApplyQueue<T, M>,
    is_over: bool,
}

impl<T: DeltaItem, M> fmt::Debug for ApplyPermit<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyPermit").field("apply_queue", self.apply_queue).finish()
    }
}

impl<'a, T: DeltaItem, M> ApplyPermit<'a, T, M> {
    /// Whether no delta is queued. Then a batch in hand may be applied without being queued:
    /// everything that the producer pushed before has been applied.
    pub fn is_empty(&self) -> bool {
        self.apply_queue.is_empty()
    }

    /// Takes out about `most` deltas, and returns also the number that was dropped because they
    /// were not newer.
    pub fn take(&self, most: usize) -> (Vec<Delta<T, M>>, u64) {
        self.apply_queue.take(most)
    }

    /// Ends the permit if no delta is queued; otherwise returns the permit, so that the holder goes
    /// on.
    pub fn finish(mut self) -> Option<Self> {
        // Checked and released under a single lock: `push` adds either before the check, or after
        // the release, and then `push` wakes the waiter.
        let mut state = self.apply_queue.state.lock();
        if !state.queue.is_empty() {
            drop(state);
            return Some(self);
        }
        state.is_taken = false;
        let is_wanted = std::mem::take(&mut state.is_wanted);
        drop(state);
        self.is_over = true;
        // With the lock released, as the woken task takes the same lock. `is_wanted` was read under
        // the lock: every task that was refused before the release is answered here, and later
        // tasks find the permit free.
        if is_wanted {
            self.apply_queue.filled.notify_one();
        }
        None
    }
}

impl<T: DeltaItem, M> Drop for ApplyPermit<'_, T, M> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.apply_queue.state.lock();
        state.is_taken = false;
        // Also after a panic of the holder: the queue must not be left without an applier.
        let is_wanted = std::mem::take(&mut state.is_wanted) || !state.queue.is_empty();
        drop(state);
        if is_wanted {
            self.apply_queue.filled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use windlass_core::resource::ObjectKey;

    #[derive(Clone, Debug, PartialEq)]
    struct State(ObjectKey, u32);

    impl DeltaItem for State {
        fn key(&self) -> &ObjectKey {
            &self.0
        }
        fn order(&self, other: &Self) -> Option<Ordering> {
            Some(self.1.cmp(&other.1))
        }
        fn seen_again(&mut self, _again: &Self) {}
    }

    fn put(name: &str, version: u32) -> Delta<State, ()> {
        Delta::Put(State(ObjectKey::new(None, name), version))
    }

    fn is_ready(future: impl Future) -> bool {
        let mut future = pin!(future);
        matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }

    type Queue = ApplyQueue<State, ()>;

    #[test]
    fn only_one_task_holds_the_permit() {
        let apply_queue = Queue::default();
        let permit = apply_queue.try_permit().unwrap();
        assert!(apply_queue.try_permit().is_none());
        drop(permit);
        assert!(apply_queue.try_permit().is_some());
    }

    #[test]
    fn a_push_while_the_permit_is_held_wakes_when_it_is_released() {
        let apply_queue = Queue::default();
        let permit = apply_queue.try_permit().unwrap();
        apply_queue.push([put("a", 1)]);
        assert!(!is_ready(apply_queue.filled()), "the holder may still drain it");
        drop(permit);
        assert!(is_ready(apply_queue.filled()));
    }

    #[test]
    fn a_holder_that_drains_wakes_nobody() {
        let apply_queue = Queue::default();
        let permit = apply_queue.try_permit().unwrap();
        apply_queue.push([put("a", 1)]);
        let permit = permit.finish().expect("something is queued: the permit is kept");
        assert_eq!(permit.take(9), (vec![put("a", 1)], 0));
        assert!(permit.finish().is_none());
        assert!(!is_ready(apply_queue.filled()));
        assert!(apply_queue.try_permit().is_some(), "the permit is free");
    }

    #[test]
    fn a_task_refused_the_permit_is_woken_when_the_holder_releases_it() {
        let apply_queue = Queue::default();
        let permit = apply_queue.try_permit().unwrap();
        assert!(apply_queue.try_permit().is_none());
        assert!(permit.finish().is_none());
        assert!(is_ready(apply_queue.filled()));
        assert!(!is_ready(apply_queue.filled()), "once");

        let permit = apply_queue.try_permit().unwrap();
        apply_queue.wake();
        assert!(!is_ready(apply_queue.filled()));
        drop(permit);
        assert!(is_ready(apply_queue.filled()));
    }

    #[test]
    fn a_push_while_the_permit_is_free_wakes_at_once_and_is_kept_for_a_later_waiter() {
        let apply_queue = Queue::default();
        apply_queue.push([put("a", 1)]);
        assert!(is_ready(apply_queue.filled()));
        apply_queue.wake();
        assert!(is_ready(apply_queue.filled()));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_again_once_enough_was_taken() {
        let apply_queue = Queue::new(2);
        apply_queue.push([put("a", 1), put("a", 2)]);
        assert!(is_ready(apply_queue.room()), "two states of one key are one delta");
        apply_queue.push([put("b", 3), put("c", 4)]);
        assert!(!is_ready(apply_queue.room()));
        let waits = async {
            apply_queue.room().await;
            apply_queue.len()
        };
        let drains = async {
            let permit = apply_queue.try_permit().unwrap();
            permit.take(1);
            tokio::task::yield_now().await;
            permit.take(1);
        };
        let (left, ()) = tokio::join!(biased; waits, drains);
        assert_eq!(left, 1);
    }
}
