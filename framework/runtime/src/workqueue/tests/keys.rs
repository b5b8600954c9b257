//! Tests with keys that carry more than their identity.

use std::hash::{Hash, Hasher};
use std::sync::mpsc;

use super::*;

/// A key that equals others of the same number, whatever else the key carries.
#[derive(Clone, Debug)]
struct Key<P> {
    number: u32,
    more: P,
}

impl<P> PartialEq for Key<P> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<P> Eq for Key<P> {}

impl<P> Hash for Key<P> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn of_equal_keys_the_one_that_was_added_while_idle_is_worked_on_and_retried() {
    let queue = WorkQueue::new(QueueSettings::new("q"), &environment());
    let order = |more| Key { number: 1, more };
    queue.add(order("old"));
    queue.get().await.expect("open").done();
    queue.add(order("new"));
    queue.add(order("newer, while that is ready"));
    let work = queue.get().await.expect("open");
    assert_eq!((work.key().more, queue.describe(1)[0].key.more), ("new", "new"));
    work.retry();
    assert_eq!(queue.get().await.expect("open").key().more, "new");
}

/// A key that locks the queue on drop: under the queue's lock that would be a deadlock.
#[derive(Clone)]
struct LocksOnDrop(Option<WorkQueue<Key<LocksOnDrop>>>);

impl Drop for LocksOnDrop {
    fn drop(&mut self) {
        let _ = self.0.take().map(|queue| queue.counts());
    }
}

/// More than twice as many keys as the queue retains slots.
const FLOOD: u32 = 9000;

fn drop_keys_in_every_way(queue: &WorkQueue<Key<LocksOnDrop>>) {
    let key = |number| Key { number, more: LocksOnDrop(Some(queue.clone())) };
    // Known keys, singly and in lists; new keys in the slots of old keys.
    for from in [0, 0, 3000] {
        queue.add(key(from));
        queue.add_all((from..from + 4500).map(key));
        queue.add_all((from..from + 9).map(key));
        let mut next = queue.try_get();
        while let Some(work) = next {
            next = work.done_then_next();
        }
    }
    // The memory of a flood is released: with the last key, by `gone`, and by a shutdown.
    queue.add_all((0..FLOOD).map(key));
    for others in (0..FLOOD).rev() {
        let work = queue.try_get().expect("a key");
        if others == 0 { work.gone() } else { work.done() }
    }
    (0..FLOOD).for_each(|number| queue.add_after(key(number), Duration::from_secs(60)));
    queue.shutdown();
}

#[test]
fn keys_are_dropped_outside_of_the_queues_lock() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let _within = runtime.as_ref().expect("a runtime").enter();
        drop_keys_in_every_way(&WorkQueue::new(QueueSettings::new("q"), &environment()));
        let _ = done.send(());
    });
    assert_eq!(
        ended.recv_timeout(Duration::from_secs(60)),
        Ok(()),
        "a key is dropped under the lock"
    );
}
