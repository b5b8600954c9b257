//! Taking an item, and the end of its processing.

use std::pin::pin;

use super::{InProcess, Shared};
use crate::closed::Closed;
use crate::contract::{Queue, QueueItem};

/// The item that is being processed, and the guard of the processing.
pub(crate) type TakenItem<'a, Q, P> = (QueueItem<P>, Popping<'a, Q>);

impl<Q: Queue> Shared<Q> {
    /// Waits until `take` returns an item and no other item is in process.
    pub(crate) async fn taken<P>(
        &self,
        take: impl Fn(&mut Q) -> Option<QueueItem<P>>,
        states: impl Fn(&P) -> Vec<(Q::Key, Option<Q::Object>)>,
    ) -> Result<TakenItem<'_, Q, P>, Closed> {
        loop {
            let mut filled = pin!(self.filled.notified());
            // Registered before the state is read, so that no wake-up is lost in between.
            filled.as_mut().enable();
            if let Some(taken) = self.try_take(&take, &states)? {
                return Ok(taken);
            }
            filled.await;
        }
    }

    /// A single attempt of `taken`; `None` if there is nothing to take.
    fn try_take<P>(
        &self,
        take: impl Fn(&mut Q) -> Option<QueueItem<P>>,
        states: impl Fn(&P) -> Vec<(Q::Key, Option<Q::Object>)>,
    ) -> Result<Option<TakenItem<'_, Q, P>>, Closed> {
        let mut state = self.state.lock();
        // One item at a time: `in_process` describes the effects of a single item.
        let taken = if state.in_process.is_none() { take(&mut state.queue) } else { None };
        if let Some(taken) = taken {
            // Recorded in the same step as the take: a list that is compared in between would find
            // the object neither queued nor known, and take the object for deleted.
            let states = states(&taken.item).into_iter().collect();
            state.in_process = Some(InProcess { is_initial: taken.is_initial, states });
            drop(state);
            // All producers: each checks for room on its own.
            self.room.notify_waiters();
            return Ok(Some((taken, Popping { shared: self, is_over: false })));
        }
        let is_over = state.is_closed && state.queue.is_empty();
        // The entries that were skipped may have been the last of the first list.
        let has_synced = state.has_synced();
        drop(state);
        if has_synced {
            self.synced.notify_waiters();
        }
        if is_over { Err(self.closed()) } else { Ok(None) }
    }

    /// Ends the processing of the item in process.
    fn processed(&self, step: impl FnOnce(&mut Q)) {
        let mut state = self.state.lock();
        // A reader may have read the store before this item changed the store: the reader overlays
        // these states.
        if let Some(in_process) = state.in_process.take()
            && state.readers > 0
        {
            state.settled.extend(in_process.states);
        }
        // Before the wake-up below: the woken consumer finds a requeued item in the queue.
        step(&mut state.queue);
        let is_over = state.is_closed && state.queue.is_empty();
        self.entered(state);
        // Other consumers find the queue closed and empty, and end.
        if is_over {
            self.filled.notify_waiters();
        }
    }
}

/// Guard of an item in process; if the guard is dropped early, the item counts as processed.
pub(crate) struct Popping<'a, Q: Queue> {
    shared: &'a Shared<Q>,
    is_over: bool,
}

impl<Q: Queue> Popping<'_, Q> {
    /// Ends the processing, and runs `step` on the queue under the same lock.
    pub(crate) fn end(mut self, step: impl FnOnce(&mut Q)) {
        self.is_over = true;
        self.shared.processed(step);
    }
}

impl<Q: Queue> Drop for Popping<'_, Q> {
    fn drop(&mut self) {
        // A panic of the processing comes here: without the end, no other item could ever be taken.
        if !self.is_over {
            self.shared.processed(|_| {});
        }
    }
}
