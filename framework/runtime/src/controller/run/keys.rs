//! Queue of a controller whose keys remember their slots.

use crate::workqueue::{QueueSettings, SlotHint, WorkQueue};
use windlass_core::environment::Environment;
use windlass_core::resource::ObjectKey;

impl WorkQueue<ObjectKey> {
    /// Creates an empty queue of object keys for a controller: a key and its clones remember their
    /// slot, so an add checks that slot first, and the table of all keys only if the key is not
    /// there. If a key is in several queues, the queue that last looked the key up has the slot;
    /// the others work as well, at the cost of [`new`](Self::new).
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use windlass::{resource::ObjectKey, environment::Environment, workqueue::{QueueSettings, WorkQueue}};
    /// # let _within =
    /// #     tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// let queue = WorkQueue::of_objects(QueueSettings::new("sites"), &Environment::system());
    /// queue.add(ObjectKey::new(Some("team"), "home"));
    /// queue.add(ObjectKey::new(Some("team"), "home"));
    /// assert_eq!(queue.counts().queued, 1);
    /// ```
    pub fn of_objects(settings: QueueSettings, environment: &Environment) -> Self {
        let slot_hint = SlotHint { read: ObjectKey::slot_hint, write: ObjectKey::set_slot_hint };
        Self::with_slot_hint(settings, environment, Some(slot_hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workqueue::AddOptions;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Some("team"), name)
    }

    fn names(queue: &WorkQueue<ObjectKey>) -> Vec<String> {
        let taken = std::iter::from_fn(|| queue.try_get());
        taken.map(|work| work.key().name().to_owned()).collect()
    }

    #[tokio::test]
    async fn keys_that_are_in_two_queues_or_are_no_clones_are_found_in_each() {
        let environment = Environment::system();
        let queues =
            ["a", "b"].map(|name| WorkQueue::of_objects(QueueSettings::new(name), &environment));
        let keys = ["x", "y", "z"].map(key);
        for round in 0..3_usize {
            for (at, queue) in queues.iter().enumerate() {
                // In another order in each queue, so that no key has the same place in both.
                let mut order = keys.clone();
                order.rotate_left(at + round);
                queue.add_all(order.clone());
                order.iter().for_each(|key| queue.add(key.clone()));
                queue.add_each(["x", "y", "z"].map(|name| (key(name), AddOptions::new())));
                assert_eq!(queue.counts().queued, 3);
            }
        }
        for queue in &queues {
            let mut names = names(queue);
            names.sort();
            assert_eq!(names, ["x", "y", "z"]);
        }
    }

    #[tokio::test]
    async fn a_key_that_is_gone_and_comes_again_is_another_one_to_the_queue() {
        let queue = WorkQueue::of_objects(QueueSettings::new("a"), &Environment::system());
        let (first, second) = (key("first"), key("second"));
        queue.add(first.clone());
        queue.try_get().expect("a key").gone();
        // The second key gets the slot whose number the first key still stores.
        queue.add_all([second.clone(), first.clone(), second.clone(), first.clone()]);
        assert_eq!(names(&queue), ["second", "first"]);
    }
}
