//! Producers, poppers and waiters of a shared queue.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::future::block_on;
use loom::thread;

use crate::explore;
use crate::fifo::{
    DeltaFifo, EnqueueError, Fifo, KeyListerGetter, ObjectDelta, ProcessOutcome, Queue, RealFifo,
    Shared,
};
use crate::sync::Mutex;

pub const MODELS: &[(&str, fn())] = &[
    ("what_is_added_is_popped", what_is_added_is_popped),
    ("two_poppers_share_what_is_added", two_poppers_share_what_is_added),
    ("one_item_is_processed_at_a_time", one_item_is_processed_at_a_time),
    ("close_ends_every_pop", close_ends_every_pop),
    ("poppers_of_a_closed_queue_end_after_the_last_item", poppers_end_after_the_last_item),
    ("synced_comes_after_the_last_processing", synced_comes_after_the_last_processing),
    ("close_ends_the_wait_for_synced", close_ends_the_wait_for_synced),
    ("a_full_queue_lets_its_producer_on", a_full_queue_lets_its_producer_on),
    ("a_full_queue_lets_each_producer_on", a_full_queue_lets_each_producer_on),
    ("close_ends_the_wait_for_room", close_ends_the_wait_for_room),
    ("what_asks_for_it_is_popped_again", what_asks_for_it_is_popped_again),
    ("a_pop_that_is_given_up_passes_its_wake_up_on", a_pop_that_is_given_up),
    ("a_list_buries_what_is_being_processed", a_list_buries_what_is_being_processed),
    ("a_resync_tells_no_older_state", a_resync_tells_no_older_state),
];

type Pod = (&'static str, u32);
type Pods = Shared<Fifo<&'static str, Pod>>;

fn pods() -> Arc<Pods> {
    Arc::new(Shared::new("pods", Fifo::new(|pod: &Pod| Ok(pod.0))))
}

fn pop<Q: Queue>(queue: &Shared<Q>) -> bool {
    block_on(queue.pop(|_, _| ProcessOutcome::<()>::Done)).is_ok()
}

fn add<Q: Queue<Object = Pod>>(queue: &Shared<Q>, pod: Pod) {
    block_on(queue.add(pod)).unwrap();
}

fn spawn(step: impl FnOnce() + 'static) -> thread::JoinHandle<()> {
    thread::spawn(step)
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn what_is_added_is_popped() {
    explore(3, || {
        let queue = pods();
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || ["a", "b"].into_iter().for_each(|name| add(&queue, (name, 1)))
        });
        assert!(pop(&queue) && pop(&queue));
        join([producer]);
    });
}

fn two_poppers_share_what_is_added() {
    explore(2, || {
        let queue = pods();
        let popper = spawn({
            let queue = Arc::clone(&queue);
            move || assert!(pop(&queue))
        });
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || ["a", "b"].into_iter().for_each(|name| add(&queue, (name, 1)))
        });
        assert!(pop(&queue));
        join([popper, producer]);
    });
}

fn one_item_is_processed_at_a_time() {
    explore(2, || {
        let queue = pods();
        add(&queue, ("a", 1));
        add(&queue, ("b", 1));
        let is_busy = Arc::new(Mutex::new(false));
        let popper = || {
            let (queue, is_busy) = (Arc::clone(&queue), Arc::clone(&is_busy));
            move || {
                let outcome = block_on(queue.pop(|_, _| {
                    assert!(!std::mem::replace(&mut *is_busy.lock(), true), "two at once");
                    thread::yield_now();
                    *is_busy.lock() = false;
                    ProcessOutcome::<()>::Done
                }));
                assert!(outcome.is_ok());
            }
        };
        let other = spawn(popper());
        popper()();
        join([other]);
    });
}

fn close_ends_every_pop() {
    explore(2, || {
        let queue = pods();
        let poppers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                spawn(move || assert!(!pop(&queue)))
            })
            .collect();
        queue.close();
        join(poppers);
    });
}

/// Three poppers, so that a popper can be left waiting for an item that another popper gets.
fn poppers_end_after_the_last_item() {
    explore(2, || {
        let queue = pods();
        add(&queue, ("a", 1));
        add(&queue, ("b", 1));
        queue.close();
        let popper = || {
            let queue = Arc::clone(&queue);
            move || while pop(&queue) {}
        };
        let poppers = [spawn(popper()), spawn(popper())];
        popper()();
        join(poppers);
        assert!(queue.is_empty());
    });
}

fn synced_comes_after_the_last_processing() {
    explore(2, || {
        let queue = pods();
        let is_processed = Arc::new(Mutex::new(false));
        let waiter = spawn({
            let (queue, is_processed) = (Arc::clone(&queue), Arc::clone(&is_processed));
            move || {
                block_on(queue.synced()).unwrap();
                assert!(*is_processed.lock(), "synced before the item was processed");
            }
        });
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || assert!(block_on(queue.replace(vec![("a", 1)], "1", &())).is_empty())
        });
        let outcome = block_on(queue.pop(|_, _| {
            *is_processed.lock() = true;
            ProcessOutcome::<()>::Done
        }));
        assert!(outcome.is_ok());
        join([waiter, producer]);
    });
}

fn close_ends_the_wait_for_synced() {
    explore(3, || {
        let queue = pods();
        let waiter = spawn({
            let queue = Arc::clone(&queue);
            move || assert!(block_on(queue.synced()).is_err())
        });
        queue.close();
        join([waiter]);
    });
}

type Bounded = Shared<RealFifo<&'static str, Pod>>;

fn bounded() -> Arc<Bounded> {
    Arc::new(Shared::new("pods", RealFifo::new(1, |pod: &Pod| Ok(pod.0))))
}

fn a_full_queue_lets_its_producer_on() {
    explore(2, || {
        let queue = bounded();
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || (1..=3).for_each(|version| add(&queue, ("a", version)))
        });
        (0..3).for_each(|_| assert!(pop(&queue)));
        join([producer]);
    });
}

fn a_full_queue_lets_each_producer_on() {
    explore(2, || {
        let queue = bounded();
        let producers: Vec<_> = (1..=2)
            .map(|version| {
                let queue = Arc::clone(&queue);
                spawn(move || add(&queue, ("a", version)))
            })
            .collect();
        assert!(pop(&queue) && pop(&queue));
        join(producers);
    });
}

fn close_ends_the_wait_for_room() {
    explore(3, || {
        let queue = bounded();
        add(&queue, ("a", 1));
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || {
                let refused = block_on(queue.update(("a", 2)));
                assert!(matches!(refused, Err(EnqueueError::Closed(("a", 2)))));
            }
        });
        queue.close();
        join([producer]);
    });
}

fn what_asks_for_it_is_popped_again() {
    explore(2, || {
        let queue = pods();
        let times = Arc::new(Mutex::new(0));
        let popper = || {
            let (queue, times) = (Arc::clone(&queue), Arc::clone(&times));
            move || {
                let outcome = block_on(queue.pop(|_, _| {
                    let mut times = times.lock();
                    *times += 1;
                    if *times == 1 { ProcessOutcome::<()>::Requeue } else { ProcessOutcome::Done }
                }));
                assert!(outcome.is_ok());
            }
        };
        let (one, other) = (spawn(popper()), spawn(popper()));
        add(&queue, ("a", 1));
        join([one, other]);
        assert!(queue.is_empty());
    });
}

fn a_pop_that_is_given_up() {
    explore(3, || {
        let queue = pods();
        let popper = spawn({
            let queue = Arc::clone(&queue);
            move || assert!(pop(&queue))
        });
        let producer = spawn({
            let queue = Arc::clone(&queue);
            move || add(&queue, ("a", 1))
        });
        let is_popped = {
            let mut pop = pin!(queue.pop(|_, _| ProcessOutcome::<()>::Done));
            pop.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        if is_popped {
            add(&queue, ("b", 1));
        }
        join([popper, producer]);
    });
}

/// A consumer's store.
#[derive(Clone)]
struct Store(Arc<Mutex<std::collections::BTreeMap<&'static str, Pod>>>);

impl KeyListerGetter<&'static str, Pod> for Store {
    fn keys(&self) -> Vec<&'static str> {
        self.0.lock().keys().copied().collect()
    }
    fn get(&self, key: &&'static str) -> Option<Pod> {
        self.0.lock().get(key).copied()
    }
}

type Deltas = Shared<DeltaFifo<&'static str, Pod>>;

impl Store {
    fn new(pods: &[Pod]) -> Self {
        Self(Arc::new(Mutex::new(pods.iter().map(|pod| (pod.0, *pod)).collect())))
    }

    /// Pops an item into the store; never an older state.
    fn follow(&self, queue: &Deltas) {
        let outcome = block_on(queue.pop(|item, _| {
            for delta in &item.deltas {
                let mut store = self.0.lock();
                match delta {
                    ObjectDelta::Deleted(_) => {
                        store.remove(item.key);
                    }
                    delta => {
                        let pod = *delta.object().expect("a state");
                        let before = store.insert(item.key, pod);
                        assert!(before.is_none_or(|before| before.1 <= pod.1), "it went back");
                    }
                }
            }
            ProcessOutcome::<()>::Done
        }));
        assert!(outcome.is_ok());
    }
}

fn deltas() -> Arc<Deltas> {
    Arc::new(Shared::new("pods", DeltaFifo::new(|pod: &Pod| Ok(pod.0))))
}

fn a_list_buries_what_is_being_processed() {
    explore(3, || {
        let (queue, store) = (deltas(), Store::new(&[]));
        add(&queue, ("a", 1));
        let lister = spawn({
            let (queue, store) = (Arc::clone(&queue), store.clone());
            move || assert!(block_on(queue.replace(vec![], "2", &store)).is_empty())
        });
        store.follow(&queue);
        join([lister]);
        while !queue.is_empty() {
            store.follow(&queue);
        }
        assert!(store.keys().is_empty(), "an object that is gone stayed for ever");
    });
}

fn a_resync_tells_no_older_state() {
    explore(3, || {
        let (queue, store) = (deltas(), Store::new(&[("a", 1)]));
        block_on(queue.update(("a", 2))).unwrap();
        let resync = spawn({
            let (queue, store) = (Arc::clone(&queue), store.clone());
            move || block_on(queue.resync(&store)).unwrap()
        });
        store.follow(&queue);
        join([resync]);
        while !queue.is_empty() {
            store.follow(&queue);
        }
        assert_eq!(store.get(&"a"), Some(("a", 2)));
    });
}
