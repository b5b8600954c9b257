//! A value that several tasks wait on; waiters are woken in the order in which they came.
//!
//! tokio's `watch` channel wakes its receivers in a random order: with two tasks waiting on the
//! same channel, the same seed would give two traces.
//!
//! Invariant: a waiter registers before reading the value, and a writer changes the value before
//! the wake-up. So either the waiter reads the new value, or the wake-up reaches it: no order of
//! the two loses a change.

// DESIGN.md, 33: Several tasks wait on a `sync::OrderedWatch`, which wakes in order of arrival

use std::pin::pin;

use super::{Mutex, Notify};

/// A value, and the tasks that wait for a change of the value.
#[derive(Debug)]
pub struct OrderedWatch<T> {
    /// Held only for a copy or a replacement.
    value: Mutex<T>,
    /// Wakes waiters in the order of their registration.
    changed: Notify,
}

impl<T: Clone> OrderedWatch<T> {
    /// Creates a watch of `value`, without waiters.
    #[doc(hidden)]
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    /// Returns the current value.
    #[doc(hidden)]
    pub fn get(&self) -> T {
        self.value.lock().clone()
    }

    /// Replaces the value and wakes the waiters; returns the old value.
    #[doc(hidden)]
    pub fn set(&self, value: T) -> T {
        let before = std::mem::replace(&mut *self.value.lock(), value);
        // The lock is released before the wake-up: woken tasks take the lock to read the value.
        self.changed.notify_waiters();
        before
    }

    /// Passes the value to `change`, which returns whether the value changed; returns the same.
    #[doc(hidden)]
    pub fn update(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let has_changed = change(&mut self.value.lock());
        // As in `set`, the lock is released before the wake-up.
        if has_changed {
            self.changed.notify_waiters();
        }
        has_changed
    }

    /// Waits until `wanted` is true for the value, and returns the value. Values in between may be
    /// missed.
    ///
    /// # Cancel safety
    /// Safe.
    #[doc(hidden)]
    pub async fn wait_for(&self, mut wanted: impl FnMut(&T) -> bool + Send) -> T
    where
        T: Send,
    {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the value is read, so that no wake-up is lost in between.
            changed.as_mut().enable();
            let value = self.get();
            if wanted(&value) {
                return value;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn waiters_are_woken_in_the_order_in_which_they_came_in_every_runtime() {
        for _ in 0..50 {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let order = runtime.block_on(async {
                let (posted, order) =
                    (Arc::new(OrderedWatch::new(0)), Arc::new(Mutex::new(Vec::new())));
                let mut tasks = tokio::task::JoinSet::new();
                for number in 0..8 {
                    let (posted, order) = (Arc::clone(&posted), Arc::clone(&order));
                    tasks.spawn(async move {
                        posted.wait_for(|value| *value > 0).await;
                        order.lock().push(number);
                    });
                }
                tokio::task::yield_now().await;
                assert_eq!(posted.set(1), 0);
                while tasks.join_next().await.is_some() {}
                order.lock().clone()
            });
            assert_eq!(order, (0..8).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_change_that_is_none_wakes_nobody_and_one_that_came_before_is_seen() {
        let posted = OrderedWatch::new("a");
        assert!(!posted.update(|_| false));
        assert!(posted.update(|value| std::mem::replace(value, "b") == "a"));
        assert_eq!(posted.wait_for(|value| *value == "b").await, "b");
        assert_eq!(posted.get(), "b");
    }
}
