//! Change notification that wakes waiters in the order of their waits.
//!
//! tokio's `watch` wakes receivers in a random order that no seed controls, so two runs of the same
//! seed would diverge. No value is carried: a woken waiter reads the state.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Sender of notifications.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    /// Number of notifications so far.
    count: AtomicU64,
    /// Wakes the waiters.
    waiters: Notify,
}

/// A receiver of notifications.
#[derive(Debug)]
pub(crate) struct Receiver {
    signal: Arc<Signal>,
    /// Number of notifications that this receiver has seen.
    seen: u64,
}

impl Signal {
    /// Notifies all receivers of a change.
    pub(crate) fn notify(&self) {
        // Counted before the wake-up: a woken receiver must find the new count.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.waiters.notify_waiters();
    }

    /// Returns a receiver of later notifications.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Receiver {
        // Notifications before this moment are known.
        Receiver { signal: Arc::clone(self), seen: self.count.load(Ordering::SeqCst) }
    }
}

impl Receiver {
    /// Marks all notifications until now as seen.
    pub(crate) fn mark_unchanged(&mut self) {
        self.seen = self.signal.count.load(Ordering::SeqCst);
    }

    /// Waits for a notification that was not seen yet; returns at once if any. Cancel safe.
    pub(crate) async fn next(&mut self) {
        loop {
            let mut notified = pin!(self.signal.waiters.notified());
            // Registered before the count is read: a notification between the two is not missed.
            notified.as_mut().enable();
            let count = self.signal.count.load(Ordering::SeqCst);
            // Any number of notifications since the last look count as a single one.
            if count != self.seen {
                self.seen = count;
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn receivers_are_woken_in_the_order_in_which_they_began_to_wait() {
        let signal = Arc::new(Signal::default());
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..20 {
            let (mut receiver, order) = (signal.subscribe(), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                receiver.next().await;
                order.lock().push(number);
            }));
        }
        tokio::task::yield_now().await;
        signal.notify();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn notifications_before_the_wait_are_not_missed_and_seen_ones_not_repeated() {
        let signal = Arc::new(Signal::default());
        let mut receiver = signal.subscribe();
        signal.notify();
        receiver.next().await;
        signal.notify();
        receiver.mark_unchanged();
        let limit = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, receiver.next()).await.is_err());
    }
}
