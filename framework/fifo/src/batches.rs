//! Batches of a [`RealFifo`] that several tasks share.

use std::fmt;

use super::closed::Closed;
use super::contract::{ProcessOutcome, Queue};
use super::real_fifo::{RealDelta, RealFifo};
use super::shared::Shared;

impl<K: Ord + Clone + fmt::Debug, T: Clone> Shared<RealFifo<K, T>> {
    /// Takes out a batch and passes it to `process`, as [`pop`](Self::pop) does with an item; see
    /// [`RealFifo::take_batch`].
    ///
    /// # Errors
    /// The queue is closed, and nothing waits.
    ///
    /// # Cancel safety
    /// Safe: no item is lost when the future is dropped while the call waits.
    pub async fn pop_batch<E>(
        &self,
        most: usize,
        process: impl FnOnce(&[RealDelta<K, T>], bool) -> ProcessOutcome<E>,
    ) -> Result<ProcessOutcome<E>, Closed> {
        let states =
            |items: &Vec<RealDelta<K, T>>| items.iter().flat_map(RealFifo::states).collect();
        let (taken, popping) = self.taken(|queue| queue.take_batch(most), states).await?;
        let outcome = process(&taken.item, taken.is_initial);
        let back = matches!(outcome, ProcessOutcome::Requeue).then_some(taken);
        popping.end(|queue| back.into_iter().for_each(|taken| queue.give_back_batch(taken)));
        Ok(outcome)
    }
}
