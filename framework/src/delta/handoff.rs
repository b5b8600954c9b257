//! Where those who bring deltas meet the one who applies them.
//!
//! Producers add to a bounded, key-compressing queue. Who applies holds the *turn*: at most one
//! task does, so batches are applied one after the other, in order. A producer that finds the turn
//! free and nothing queued may take it and apply its own batch without the hop to another task.
//!
//! No wake-up is lost: when a turn ends while something is queued, or while somebody asked for the
//! turn in vain, the task that waits in [`filled`](Handoff::filled) is woken.

use std::fmt;
use std::pin::pin;

use super::queue::{Delta, DeltaQueue, Keyed};
use crate::sync::{Mutex, Notify};

/// Producers go on while fewer deltas than this wait, unless the maker says otherwise.
const MOST_WAITING: usize = 4096;

/// A bounded, ordered hand-off between several producers and one applier at a time.
///
/// ```
/// # use std::cmp::Ordering;
/// # use windlass::delta::{Delta, Handoff, Keyed};
/// # use windlass::resource::ObjectKey;
/// # struct State(ObjectKey);
/// # impl Keyed for State {
/// #     fn key(&self) -> &ObjectKey {
/// #         &self.0
/// #     }
/// #     fn order(&self, _other: &Self) -> Option<Ordering> {
/// #         None
/// #     }
/// #     fn seen_again(&mut self, _again: &Self) {}
/// # }
/// # fn apply(_batch: Vec<Delta<State, ()>>) {}
/// # fn bring(handoff: &Handoff<State, ()>, batch: Vec<Delta<State, ()>>) {
/// match handoff.turn() {
///     // Nothing is queued and nobody applies: no hop to another task.
///     Some(turn) if turn.is_empty() => apply(batch),
///     // What is queued comes first. Whoever waits in `filled` is woken when the turn ends.
///     _ => handoff.push(batch),
/// }
/// # }
/// ```
pub struct Handoff<T, M> {
    state: Mutex<State<T, M>>,
    /// One permit: somebody should look at the queue.
    filled: Notify,
    /// Told to all who wait for room.
    drained: Notify,
    most: usize,
}

struct State<T, M> {
    queue: DeltaQueue<T, M>,
    /// Does somebody hold the turn?
    is_taken: bool,
    /// Did somebody ask in vain for the turn, or call `wake`, while it was held?
    is_wanted: bool,
}

impl<T: Keyed, M> Default for Handoff<T, M> {
    fn default() -> Self {
        Self::new(MOST_WAITING)
    }
}

impl<T, M> fmt::Debug for Handoff<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Handoff")
            .field("queue", &state.queue)
            .field("is_taken", &state.is_taken)
            .finish_non_exhaustive()
    }
}

impl<T: Keyed, M> Handoff<T, M> {
    /// An empty hand-off in which producers have [`room`](Self::room) while fewer than `most`
    /// deltas wait. `default()` takes 4096.
    pub fn new(most: usize) -> Self {
        let queue = DeltaQueue::new();
        Self {
            state: Mutex::new(State { queue, is_taken: false, is_wanted: false }),
            filled: Notify::new(),
            drained: Notify::new(),
            most,
        }
    }

    /// Adds a batch. It is added even when there is no room, so the bound may be exceeded by one
    /// batch of each producer; [`room`](Self::room) is where a producer waits. The iterator and the
    /// deltas' [`Keyed`] run under the hand-off's lock: they must not call back into it.
    pub fn push(&self, batch: impl IntoIterator<Item = Delta<T, M>>) {
        let mut state = self.state.lock();
        for delta in batch {
            state.queue.push(delta);
        }
        // Who holds the turn sees to it when the turn ends.
        let is_taken = state.is_taken;
        drop(state);
        if !is_taken {
            self.filled.notify_one();
        }
    }

    /// Lets whoever waits in [`filled`](Self::filled) look again: now, or when the turn ends.
    pub fn wake(&self) {
        let mut state = self.state.lock();
        let is_taken = state.is_taken;
        state.is_wanted |= is_taken;
        drop(state);
        if !is_taken {
            self.filled.notify_one();
        }
    }

    /// Waits until something is queued that nobody with the turn has seen to, or until
    /// [`wake`](Self::wake). May return without a reason. For one task at a time.
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
            // Registered before the look, so that no wake-up falls in between.
            drained.as_mut().enable();
            if self.len() < self.most {
                return;
            }
            drained.await;
        }
    }

    /// The turn, if nobody has it. Does not wait; asked in vain, whoever waits in
    /// [`filled`](Self::filled) is woken when the turn ends.
    #[must_use = "the turn ends at once when it is dropped"]
    pub fn turn(&self) -> Option<Turn<'_, T, M>> {
        let mut state = self.state.lock();
        if state.is_taken {
            state.is_wanted = true;
            return None;
        }
        state.is_taken = true;
        Some(Turn { handoff: self, is_over: false })
    }

    /// Takes out at most about `most` deltas, and how many merged away because they were not newer.
    /// For a hand-off with one applier that uses no turns; see [`Turn::take`].
    pub fn take(&self, most: usize) -> (Vec<Delta<T, M>>, u64) {
        let mut state = self.state.lock();
        let taken = state.queue.take(most);
        let dropped = state.queue.take_dropped();
        drop(state);
        self.drained.notify_waiters();
        (taken, dropped)
    }

    /// Number of deltas that wait.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The right to apply. Ends when dropped; then whoever waits in [`Handoff::filled`] is woken if
/// something is queued or if somebody asked for the turn meanwhile.
#[must_use = "the turn ends at once when it is dropped"]
pub struct Turn<'a, T: Keyed, M> {
    handoff: &'a Handoff<T, M>,
    is_over: bool,
}

impl<T: Keyed, M> fmt::Debug for Turn<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("handoff", self.handoff).finish()
    }
}

impl<'a, T: Keyed, M> Turn<'a, T, M> {
    /// Is nothing queued? Then a batch in hand may be applied without being queued: whatever its
    /// producer pushed before has been applied.
    pub fn is_empty(&self) -> bool {
        self.handoff.is_empty()
    }

    /// Takes out at most about `most` deltas, and how many merged away because they were not newer.
    pub fn take(&self, most: usize) -> (Vec<Delta<T, M>>, u64) {
        self.handoff.take(most)
    }

    /// Ends the turn if nothing is queued; gives it back otherwise, for the holder to go on.
    pub fn finish(mut self) -> Option<Self> {
        let mut state = self.handoff.state.lock();
        if !state.queue.is_empty() {
            drop(state);
            return Some(self);
        }
        state.is_taken = false;
        let is_wanted = std::mem::take(&mut state.is_wanted);
        drop(state);
        self.is_over = true;
        if is_wanted {
            self.handoff.filled.notify_one();
        }
        None
    }
}

impl<T: Keyed, M> Drop for Turn<'_, T, M> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.handoff.state.lock();
        state.is_taken = false;
        let is_wanted = std::mem::take(&mut state.is_wanted) || !state.queue.is_empty();
        drop(state);
        if is_wanted {
            self.handoff.filled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::resource::ObjectKey;

    #[derive(Clone, Debug, PartialEq)]
    struct State(ObjectKey, u32);

    impl Keyed for State {
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

    type Meeting = Handoff<State, ()>;

    #[test]
    fn only_one_has_the_turn() {
        let handoff = Meeting::default();
        let turn = handoff.turn().unwrap();
        assert!(handoff.turn().is_none());
        drop(turn);
        assert!(handoff.turn().is_some());
    }

    #[test]
    fn what_is_pushed_during_a_turn_wakes_when_the_turn_ends() {
        let handoff = Meeting::default();
        let turn = handoff.turn().unwrap();
        handoff.push([put("a", 1)]);
        assert!(!is_ready(handoff.filled()), "the holder may still drain it");
        drop(turn);
        assert!(is_ready(handoff.filled()));
    }

    #[test]
    fn a_holder_that_drains_wakes_nobody() {
        let handoff = Meeting::default();
        let turn = handoff.turn().unwrap();
        handoff.push([put("a", 1)]);
        let turn = turn.finish().expect("something is queued: the turn goes on");
        assert_eq!(turn.take(9), (vec![put("a", 1)], 0));
        assert!(turn.finish().is_none());
        assert!(!is_ready(handoff.filled()));
        assert!(handoff.turn().is_some(), "the turn has ended");
    }

    #[test]
    fn who_asked_for_the_turn_in_vain_is_woken_when_it_ends() {
        let handoff = Meeting::default();
        let turn = handoff.turn().unwrap();
        assert!(handoff.turn().is_none());
        assert!(turn.finish().is_none());
        assert!(is_ready(handoff.filled()));
        assert!(!is_ready(handoff.filled()), "once");

        let turn = handoff.turn().unwrap();
        handoff.wake();
        assert!(!is_ready(handoff.filled()));
        drop(turn);
        assert!(is_ready(handoff.filled()));
    }

    #[test]
    fn a_push_while_the_turn_is_free_wakes_at_once_and_is_kept_for_who_comes_later() {
        let handoff = Meeting::default();
        handoff.push([put("a", 1)]);
        assert!(is_ready(handoff.filled()));
        handoff.wake();
        assert!(is_ready(handoff.filled()));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_again_once_enough_was_taken() {
        let handoff = Meeting::new(2);
        handoff.push([put("a", 1), put("a", 2)]);
        assert!(is_ready(handoff.room()), "two states of one key are one delta");
        handoff.push([put("b", 3), put("c", 4)]);
        assert!(!is_ready(handoff.room()));
        let waits = async {
            handoff.room().await;
            handoff.len()
        };
        let drains = async {
            let turn = handoff.turn().unwrap();
            turn.take(1);
            tokio::task::yield_now().await;
            turn.take(1);
        };
        let (left, ()) = tokio::join!(biased; waits, drains);
        assert_eq!(left, 1);
    }
}
