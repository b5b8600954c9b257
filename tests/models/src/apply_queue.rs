//! Producers and appliers of an apply queue.

use std::cmp::Ordering;
use std::sync::Arc;

use loom::future::block_on;
use loom::thread;

use crate::delta::{self, Delta, DeltaItem};
use crate::explore;
use crate::sync::{Mutex, Notify};

pub const MODELS: &[(&str, fn())] = &[
    ("what_is_pushed_is_taken", what_is_pushed_is_taken),
    ("producers_get_room", producers_get_room),
    ("two_producers_get_room", two_producers_get_room),
    ("permits_exclude_and_keep_order", permits_exclude_and_keep_order),
    ("a_push_while_the_permit_is_held_is_applied", a_push_while_the_permit_is_held_is_applied),
    ("a_wake_up_outlives_a_permit", a_wake_up_outlives_a_permit),
    ("holders_drain_for_each_other", holders_drain_for_each_other),
    ("a_mailbox_ends_when_its_listener_is_removed", mailbox),
];

struct State(&'static str, u32);

impl DeltaItem for State {
    fn key(&self) -> &&'static str {
        &self.0
    }
    fn order(&self, other: &Self) -> Option<Ordering> {
        Some(self.1.cmp(&other.1))
    }
    fn seen_again(&mut self, _again: &Self) {}
}

type ApplyQueue = delta::ApplyQueue<State, ()>;
type Batch = Vec<Delta<State, ()>>;

fn put(name: &'static str, version: u32) -> Delta<State, ()> {
    Delta::Put(State(name, version))
}

/// Takes single deltas until `count` came.
async fn take(apply_queue: &ApplyQueue, count: usize) {
    let mut taken = 0;
    while taken < count {
        let (batch, _) = apply_queue.take(1);
        if batch.is_empty() {
            apply_queue.filled().await;
        }
        taken += batch.len();
    }
}

fn what_is_pushed_is_taken() {
    explore(3, || {
        let apply_queue = Arc::new(ApplyQueue::default());
        let producers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|name| {
                let apply_queue = Arc::clone(&apply_queue);
                thread::spawn(move || apply_queue.push([put(name, 1)]))
            })
            .collect();
        block_on(take(&apply_queue, 2));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

fn producers_get_room() {
    explore(3, || {
        let apply_queue = Arc::new(ApplyQueue::new(1));
        let producer = thread::spawn({
            let apply_queue = Arc::clone(&apply_queue);
            move || {
                block_on(async {
                    for name in ["a", "b"] {
                        apply_queue.push([put(name, 1)]);
                        apply_queue.room().await;
                    }
                })
            }
        });
        block_on(take(&apply_queue, 2));
        producer.join().unwrap();
    });
}

fn two_producers_get_room() {
    explore(2, || {
        let apply_queue = Arc::new(ApplyQueue::new(1));
        let producers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|name| {
                let apply_queue = Arc::clone(&apply_queue);
                thread::spawn(move || {
                    apply_queue.push([put(name, 1)]);
                    block_on(apply_queue.room());
                })
            })
            .collect();
        block_on(take(&apply_queue, 2));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// The place where deltas are applied: by a single task at a time, each key's versions upwards.
#[derive(Default)]
struct Store {
    applied: std::sync::Mutex<Vec<(&'static str, u32)>>,
    is_busy: std::sync::atomic::AtomicBool,
}

impl Store {
    fn apply(&self, batch: Batch) {
        use std::sync::atomic::Ordering::SeqCst;
        assert!(!self.is_busy.swap(true, SeqCst), "two apply at once");
        thread::yield_now();
        for delta in batch {
            if let Delta::Put(State(name, version)) = delta {
                let mut applied = self.applied.lock().unwrap();
                let before = applied.iter().filter(|one| one.0 == name).map(|one| one.1).max();
                assert!(before.is_none_or(|before| before < version), "an older state came later");
                applied.push((name, version));
            }
        }
        self.is_busy.store(false, SeqCst);
    }

    fn has_newest(&self, name: &str, version: u32) -> bool {
        self.applied.lock().unwrap().iter().any(|one| one.0 == name && one.1 == version)
    }
}

/// As a reflector does: without the hop if no task applies and nothing waits.
fn bring(apply_queue: &ApplyQueue, store: &Store, batch: Batch) {
    match apply_queue.try_permit() {
        Some(permit) if permit.is_empty() => {
            store.apply(batch);
            drop(permit);
        }
        Some(permit) => {
            apply_queue.push(batch);
            drop(permit);
        }
        None => apply_queue.push(batch),
    }
}

/// Two producers that bring batches themselves when they may, and a task that applies the rest.
/// That task ends when everything was applied, by any task; the end notifies the task as a new
/// listener does.
fn permits_exclude_and_keep_order() {
    explore(2, || {
        let (apply_queue, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let producers: Vec<_> = [("a", 2), ("b", 1)]
            .into_iter()
            .map(|(name, most)| {
                let (apply_queue, store) = (Arc::clone(&apply_queue), Arc::clone(&store));
                thread::spawn(move || {
                    for version in 1..=most {
                        bring(&apply_queue, &store, vec![put(name, version)]);
                    }
                    apply_queue.wake();
                })
            })
            .collect();
        block_on(async {
            loop {
                if let Some(permit) = apply_queue.try_permit() {
                    let (batch, _) = permit.take(9);
                    store.apply(batch);
                }
                if store.has_newest("a", 2) && store.has_newest("b", 1) {
                    break;
                }
                apply_queue.filled().await;
            }
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// A producer that only pushes requests no permit: the holder must wake the applier at the end of
/// the permit.
fn a_push_while_the_permit_is_held_is_applied() {
    explore(3, || {
        let (apply_queue, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let holder = thread::spawn({
            let (apply_queue, store) = (Arc::clone(&apply_queue), Arc::clone(&store));
            move || bring(&apply_queue, &store, vec![put("a", 1)])
        });
        let pusher = thread::spawn({
            let apply_queue = Arc::clone(&apply_queue);
            move || apply_queue.push([put("b", 1)])
        });
        block_on(async {
            loop {
                if let Some(permit) = apply_queue.try_permit() {
                    store.apply(permit.take(9).0);
                }
                if store.has_newest("b", 1) {
                    break;
                }
                apply_queue.filled().await;
            }
        });
        holder.join().unwrap();
        pusher.join().unwrap();
    });
}

/// A listener is added while a producer may hold the permit: the waiter must attach the listener.
fn a_wake_up_outlives_a_permit() {
    explore(3, || {
        let (apply_queue, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let new_listener = Arc::new(Mutex::new(false));
        let producer = thread::spawn({
            let (apply_queue, store) = (Arc::clone(&apply_queue), Arc::clone(&store));
            move || bring(&apply_queue, &store, vec![put("a", 1)])
        });
        let listener = thread::spawn({
            let (apply_queue, new_listener) = (Arc::clone(&apply_queue), Arc::clone(&new_listener));
            move || {
                *new_listener.lock() = true;
                apply_queue.wake();
            }
        });
        block_on(async {
            loop {
                if let Some(permit) = apply_queue.try_permit() {
                    store.apply(permit.take(9).0);
                    if *new_listener.lock() {
                        break;
                    }
                }
                apply_queue.filled().await;
            }
        });
        producer.join().unwrap();
        listener.join().unwrap();
    });
}

/// No task waits in `filled`: a task without the permit relies on the permit's holder.
fn holders_drain_for_each_other() {
    explore(3, || {
        let (apply_queue, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let bring = |name| {
            let (apply_queue, store) = (Arc::clone(&apply_queue), Arc::clone(&store));
            move || {
                apply_queue.push([put(name, 1)]);
                let mut permit = apply_queue.try_permit();
                while let Some(holder) = permit {
                    store.apply(holder.take(9).0);
                    permit = holder.finish();
                }
            }
        };
        let other = thread::spawn(bring("a"));
        bring("b")();
        other.join().unwrap();
        assert!(store.has_newest("a", 1) && store.has_newest("b", 1), "a delta was left behind");
    });
}

/// The shape of a listener's mailbox: a queue, a task that empties the queue, and a removal that
/// waits until the task is gone, after which the listener is not called.
fn mailbox() {
    explore(3, || {
        let apply_queue = Arc::new(ApplyQueue::default());
        let (is_removed, is_gone) = (Arc::new(Mutex::new(false)), Arc::new(Mutex::new(false)));
        let gone = Arc::new(Notify::new());
        let task = thread::spawn({
            let apply_queue = Arc::clone(&apply_queue);
            let (is_removed, is_gone, gone) = (is_removed.clone(), is_gone.clone(), gone.clone());
            move || {
                block_on(async {
                    while !*is_removed.lock() {
                        let (batch, _) = apply_queue.take(9);
                        if batch.is_empty() {
                            apply_queue.filled().await;
                        }
                        assert!(batch.is_empty() || !*is_gone.lock(), "called after its removal");
                    }
                });
                *is_gone.lock() = true;
                gone.notify_waiters();
            }
        });
        let producer = thread::spawn({
            let apply_queue = Arc::clone(&apply_queue);
            move || apply_queue.push([put("a", 1)])
        });
        *is_removed.lock() = true;
        apply_queue.wake();
        block_on(async {
            loop {
                let mut notified = std::pin::pin!(gone.notified());
                notified.as_mut().enable();
                if *is_gone.lock() {
                    break;
                }
                notified.await;
            }
        });
        producer.join().unwrap();
        task.join().unwrap();
    });
}
