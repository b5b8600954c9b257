//! Producers and appliers of a hand-off.

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
    ("turns_exclude_and_keep_order", turns_exclude_and_keep_order),
    ("a_push_during_a_turn_is_seen_to", a_push_during_a_turn_is_seen_to),
    ("a_wake_up_outlives_a_turn", a_wake_up_outlives_a_turn),
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

/// Takes one at a time until `count` came.
async fn take(handoff: &ApplyQueue, count: usize) {
    let mut taken = 0;
    while taken < count {
        let (batch, _) = handoff.take(1);
        if batch.is_empty() {
            handoff.filled().await;
        }
        taken += batch.len();
    }
}

fn what_is_pushed_is_taken() {
    explore(3, || {
        let handoff = Arc::new(ApplyQueue::default());
        let producers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|name| {
                let handoff = Arc::clone(&handoff);
                thread::spawn(move || handoff.push([put(name, 1)]))
            })
            .collect();
        block_on(take(&handoff, 2));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

fn producers_get_room() {
    explore(3, || {
        let handoff = Arc::new(ApplyQueue::new(1));
        let producer = thread::spawn({
            let handoff = Arc::clone(&handoff);
            move || {
                block_on(async {
                    for name in ["a", "b"] {
                        handoff.push([put(name, 1)]);
                        handoff.room().await;
                    }
                })
            }
        });
        block_on(take(&handoff, 2));
        producer.join().unwrap();
    });
}

fn two_producers_get_room() {
    explore(2, || {
        let handoff = Arc::new(ApplyQueue::new(1));
        let producers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|name| {
                let handoff = Arc::clone(&handoff);
                thread::spawn(move || {
                    handoff.push([put(name, 1)]);
                    block_on(handoff.room());
                })
            })
            .collect();
        block_on(take(&handoff, 2));
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// The place where deltas are applied: by one task at a time, each key's versions upwards.
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
fn bring(handoff: &ApplyQueue, store: &Store, batch: Batch) {
    match handoff.turn() {
        Some(turn) if turn.is_empty() => {
            store.apply(batch);
            drop(turn);
        }
        Some(turn) => {
            handoff.push(batch);
            drop(turn);
        }
        None => handoff.push(batch),
    }
}

/// Two producers that bring batches themselves when they may, and a task that applies the rest. It
/// ends when everything was applied, by any task; it is notified of that as of a newcomer.
fn turns_exclude_and_keep_order() {
    explore(2, || {
        let (handoff, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let producers: Vec<_> = [("a", 2), ("b", 1)]
            .into_iter()
            .map(|(name, most)| {
                let (handoff, store) = (Arc::clone(&handoff), Arc::clone(&store));
                thread::spawn(move || {
                    for version in 1..=most {
                        bring(&handoff, &store, vec![put(name, version)]);
                    }
                    handoff.wake();
                })
            })
            .collect();
        block_on(async {
            loop {
                if let Some(turn) = handoff.turn() {
                    let (batch, _) = turn.take(9);
                    store.apply(batch);
                }
                if store.has_newest("a", 2) && store.has_newest("b", 1) {
                    break;
                }
                handoff.filled().await;
            }
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
    });
}

/// A producer that only pushes requests no permit: the holder must wake the applier at its end.
fn a_push_during_a_turn_is_seen_to() {
    explore(3, || {
        let (handoff, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let holder = thread::spawn({
            let (handoff, store) = (Arc::clone(&handoff), Arc::clone(&store));
            move || bring(&handoff, &store, vec![put("a", 1)])
        });
        let pusher = thread::spawn({
            let handoff = Arc::clone(&handoff);
            move || handoff.push([put("b", 1)])
        });
        block_on(async {
            loop {
                if let Some(turn) = handoff.turn() {
                    store.apply(turn.take(9).0);
                }
                if store.has_newest("b", 1) {
                    break;
                }
                handoff.filled().await;
            }
        });
        holder.join().unwrap();
        pusher.join().unwrap();
    });
}

/// A newcomer is announced while a producer may hold the turn: the waiter must come to it.
fn a_wake_up_outlives_a_turn() {
    explore(3, || {
        let (handoff, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let newcomer = Arc::new(Mutex::new(false));
        let producer = thread::spawn({
            let (handoff, store) = (Arc::clone(&handoff), Arc::clone(&store));
            move || bring(&handoff, &store, vec![put("a", 1)])
        });
        let listener = thread::spawn({
            let (handoff, newcomer) = (Arc::clone(&handoff), Arc::clone(&newcomer));
            move || {
                *newcomer.lock() = true;
                handoff.wake();
            }
        });
        block_on(async {
            loop {
                if let Some(turn) = handoff.turn() {
                    store.apply(turn.take(9).0);
                    if *newcomer.lock() {
                        break;
                    }
                }
                handoff.filled().await;
            }
        });
        producer.join().unwrap();
        listener.join().unwrap();
    });
}

/// No task waits in `filled`: a task without the permit relies on its holder.
fn holders_drain_for_each_other() {
    explore(3, || {
        let (handoff, store) = (Arc::new(ApplyQueue::default()), Arc::new(Store::default()));
        let bring = |name| {
            let (handoff, store) = (Arc::clone(&handoff), Arc::clone(&store));
            move || {
                handoff.push([put(name, 1)]);
                let mut turn = handoff.turn();
                while let Some(holder) = turn {
                    store.apply(holder.take(9).0);
                    turn = holder.finish();
                }
            }
        };
        let other = thread::spawn(bring("a"));
        bring("b")();
        other.join().unwrap();
        assert!(store.has_newest("a", 1) && store.has_newest("b", 1), "a delta was left behind");
    });
}

/// The shape of a listener's mailbox: a queue, a task that empties it, and a removal that waits
/// until the task is gone, after which the listener is not called.
fn mailbox() {
    explore(3, || {
        let handoff = Arc::new(ApplyQueue::default());
        let (is_removed, is_gone) = (Arc::new(Mutex::new(false)), Arc::new(Mutex::new(false)));
        let gone = Arc::new(Notify::new());
        let task = thread::spawn({
            let handoff = Arc::clone(&handoff);
            let (is_removed, is_gone, gone) = (is_removed.clone(), is_gone.clone(), gone.clone());
            move || {
                block_on(async {
                    while !*is_removed.lock() {
                        let (batch, _) = handoff.take(9);
                        if batch.is_empty() {
                            handoff.filled().await;
                        }
                        assert!(batch.is_empty() || !*is_gone.lock(), "called after its removal");
                    }
                });
                *is_gone.lock() = true;
                gone.notify_waiters();
            }
        });
        let producer = thread::spawn({
            let handoff = Arc::clone(&handoff);
            move || handoff.push([put("a", 1)])
        });
        *is_removed.lock() = true;
        handoff.wake();
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
