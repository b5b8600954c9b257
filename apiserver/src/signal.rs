//! "Something changed", to whoever waits for it, in the order in which they began to wait.
//!
//! tokio's `watch` wakes its receivers in a random order that no seed reaches, and with it two runs
//! of one seed part. Values are not carried: whoever is woken looks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Says that something changed.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    count: AtomicU64,
    told: Notify,
}

/// One who wants to know.
#[derive(Debug)]
pub(crate) struct Ear {
    signal: Arc<Signal>,
    heard: u64,
}

impl Signal {
    /// Something changed.
    pub(crate) fn tell(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    /// Hears what is told from now on.
    pub(crate) fn ear(self: &Arc<Self>) -> Ear {
        Ear { signal: Arc::clone(self), heard: self.count.load(Ordering::SeqCst) }
    }
}

impl Ear {
    /// Whatever was told until now is known.
    pub(crate) fn hear(&mut self) {
        self.heard = self.signal.count.load(Ordering::SeqCst);
    }

    /// Waits until something is told that is not known; at once when it has been. Cancel safe.
    pub(crate) async fn next(&mut self) {
        loop {
            let mut told = pin!(self.signal.told.notified());
            // Registered before the look, so that nothing is told in between.
            told.as_mut().enable();
            let count = self.signal.count.load(Ordering::SeqCst);
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
