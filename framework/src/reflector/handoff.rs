//! The bounded queue between reflectors and the task that applies.

use std::pin::pin;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::delta::{Delta, DeltaQueue};
use crate::store::{Mark, Sighting};

/// A reflector reads on while fewer deltas than this wait.
const MOST_WAITING: usize = 4096;

pub(crate) type StoreDelta = Delta<Sighting, Mark>;

/// The hand-off of one informer.
#[derive(Default)]
pub(crate) struct Handoff {
    queue: Mutex<DeltaQueue<Sighting, Mark>>,
    filled: Notify,
    drained: Notify,
}

impl Handoff {
    /// Adds a batch; it may exceed the bound by what one network read held.
    pub(crate) fn push(&self, batch: impl IntoIterator<Item = StoreDelta>) {
        let mut queue = self.queue.lock();
        for delta in batch {
            queue.push(delta);
        }
        drop(queue);
        self.wake();
    }

    /// Lets the applying task look again.
    pub(crate) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Waits until there is room for more. Cancel safe.
    pub(crate) async fn room(&self) {
        loop {
            let mut drained = pin!(self.drained.notified());
            // Registered before the look, so that no wake-up falls in between.
            drained.as_mut().enable();
            if self.len() < MOST_WAITING {
                return;
            }
            drained.await;
        }
    }

    /// Takes out at most about `most` deltas; and how many merged away because they were not newer.
    pub(crate) fn take(&self, most: usize) -> (Vec<StoreDelta>, u64) {
        let mut queue = self.queue.lock();
        let taken = queue.take(most);
        let dropped = queue.take_dropped();
        drop(queue);
        self.drained.notify_waiters();
        (taken, dropped)
    }

    /// Waits until `push` or `wake` was called. Cancel safe.
    pub(crate) async fn filled(&self) {
        self.filled.notified().await;
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.lock().len()
    }
}
