//! Change notification that wakes its waiters in the order in which they began to wait.
//!
//! tokio's `watch` wakes its receivers in a random order that no seed controls, so two runs of one
//! seed would diverge. No value is carried: a woken waiter looks at the state itself.

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
    told: Notify,
}

/// A receiver of notifications.
#[derive(Debug)]
pub(crate) struct Ear {
    signal: Arc<Signal>,
    /// Number of notifications that this receiver has seen.
    heard: u64,
}

impl Signal {
    /// Notifies all receivers of a change.
    pub(crate) fn tell(&self) {
        // Counted before the wake-up: a woken receiver must find the new count.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    /// Returns a receiver of later notifications.
    pub(crate) fn ear(self: &Arc<Self>) -> Ear {
        // Notifications before this moment are known.
        Ear { signal: Arc::clone(self), heard: self.count.load(Ordering::SeqCst) }
    }
}

impl Ear {
    /// Marks all notifications until now as seen.
    pub(crate) fn hear(&mut self) {
        self.heard = self.signal.count.load(Ordering::SeqCst);
    }

    /// Waits for a notification that was not seen yet; returns at once if there was one. Cancel
    /// safe.
    pub(crate) async fn next(&mut self) {
        loop {
            let mut told = pin!(self.signal.told.notified());
            // Registered before the count is read: a notification between the two is not missed.
            told.as_mut().enable();
            let count = self.signal.count.load(Ordering::SeqCst);
            // Any number of notifications since the last one count as one.
            if count != self.heard {
                self.heard = count;
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_woken_in_the_order_in_which_they_came() {
        let signal = Arc::new(Signal::default());
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..20 {
            let (mut ear, order) = (signal.ear(), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                ear.next().await;
                order.lock().push(number);
            }));
        }
        tokio::task::yield_now().await;
        signal.tell();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_told_before_the_wait_is_not_missed_and_what_is_known_not_told() {
        let signal = Arc::new(Signal::default());
        let mut ear = signal.ear();
        signal.tell();
        ear.next().await;
        signal.tell();
        ear.hear();
        let limit = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, ear.next()).await.is_err());
    }
}
