//! Producers, workers and drains of the work queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use loom::future::block_on;
use loom::thread::{self, JoinHandle};

use crate::environment::Environment;
use crate::explore;
use crate::sync::Notify;
use crate::workqueue::{AddOptions, Priority, QueueSettings, WorkQueue};

pub const MODELS: &[(&str, fn())] = &[
    ("keys_that_are_added_are_worked_on", keys_that_are_added),
    ("two_workers_share_the_keys", two_workers_share_the_keys),
    ("a_key_is_worked_on_by_one_at_a_time", one_at_a_time),
    ("a_key_added_during_its_work_comes_back", a_key_added_during_its_work),
    ("a_shutdown_ends_every_worker", a_shutdown_ends_every_worker),
    ("workers_end_after_the_last_work", workers_end_after_the_last_work),
    ("a_drain_ends_with_the_last_work", a_drain_ends_with_the_last_work),
    ("a_delayed_key_wakes_a_parked_worker", a_delayed_key_wakes_a_parked_worker),
    ("the_delays_have_a_timekeeper_while_another_works", the_delays_have_a_timekeeper),
    ("a_timekeeper_that_takes_a_delayed_key_is_replaced", the_timekeeper_is_replaced),
    ("a_cancelled_get_loses_no_key", a_cancelled_get),
    ("two_keys_are_worked_on_at_the_same_time", two_at_the_same_time),
    ("a_worker_notified_without_need_is_notified_again", notified_without_need),
    ("the_timekeeper_is_notified_for_other_keys", the_timekeeper_is_notified),
    ("a_key_whose_priority_rises_is_worked_on", a_key_that_is_raised),
    ("a_notified_worker_that_is_not_polled_is_not_waited_for", notified_and_not_polled),
    ("a_worker_that_takes_the_next_key_leaves_no_other_beside_a_parked_worker", done_then_next),
];

type Queue = WorkQueue<&'static str>;

const SECOND: Duration = Duration::from_secs(1);

fn queue(environment: &Environment) -> Queue {
    WorkQueue::new(QueueSettings::new("keys").workers(2), environment)
}

/// Works on a key; false when the queue has ended.
fn work(queue: &Queue) -> bool {
    block_on(queue.get()).map(|work| work.done()).is_some()
}

fn spawn(queue: &Queue, task: impl FnOnce(Queue) + 'static) -> JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || task(queue))
}

fn join(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

fn keys_that_are_added() {
    explore(3, || {
        let queue = queue(&Environment::default());
        let one = spawn(&queue, |queue| queue.add("a"));
        // A list may be kept in the add buffer.
        let other = spawn(&queue, |queue| queue.add_all(["b"]));
        assert!(work(&queue) && work(&queue));
        join([one, other]);
    });
}

fn two_workers_share_the_keys() {
    explore(2, || {
        let queue = queue(&Environment::default());
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        let producer = spawn(&queue, |queue| queue.add_all(["a", "b"]));
        assert!(work(&queue));
        join([worker, producer]);
    });
}

fn one_at_a_time() {
    explore(2, || {
        let queue = queue(&Environment::default());
        let is_busy = Arc::new(AtomicBool::new(false));
        let worker = |is_busy: Arc<AtomicBool>| {
            move |queue: Queue| {
                while let Some(work) = block_on(queue.get()) {
                    assert!(!is_busy.swap(true, SeqCst), "two work on one key");
                    thread::yield_now();
                    is_busy.store(false, SeqCst);
                    work.done();
                }
            }
        };
        let other = spawn(&queue, worker(Arc::clone(&is_busy)));
        let producer = spawn(&queue, |queue| {
            queue.add("a");
            queue.add("a");
            queue.shutdown();
        });
        worker(is_busy)(queue.clone());
        join([other, producer]);
    });
}

/// The desired state is written before the key is added: the last work must have seen it.
fn a_key_added_during_its_work() {
    explore(3, || {
        let queue = queue(&Environment::default());
        let wanted = Arc::new(AtomicU32::new(0));
        queue.add("a");
        let producer = spawn(&queue, {
            let wanted = Arc::clone(&wanted);
            move |queue| {
                wanted.store(1, SeqCst);
                queue.add("a");
                queue.shutdown();
            }
        });
        let mut seen = 0;
        while let Some(work) = block_on(queue.get()) {
            seen = wanted.load(SeqCst);
            thread::yield_now();
            work.done();
        }
        assert_eq!(seen, 1, "no worker looked after the last add");
        join([producer]);
    });
}

fn a_shutdown_ends_every_worker() {
    explore(2, || {
        let queue = queue(&Environment::default());
        let workers = [0, 1].map(|_| spawn(&queue, |queue| assert!(!work(&queue))));
        queue.shutdown();
        join(workers);
    });
}

/// The queue is closed while a worker has the key, which was added again: parked workers are woken
/// at the end.
fn workers_end_after_the_last_work() {
    explore(2, || {
        let queue = queue(&Environment::default());
        queue.add("a");
        let last = block_on(queue.get()).expect("a key is there");
        queue.add("a");
        queue.shutdown();
        let others = [0, 1].map(|_| spawn(&queue, |queue| while work(&queue) {}));
        last.done();
        join(others);
        assert_eq!(queue.counts().queued, 0);
    });
}

fn a_drain_ends_with_the_last_work() {
    explore(3, || {
        let queue = queue(&Environment::default());
        let is_over = Arc::new(AtomicBool::new(false));
        queue.add("a");
        let last = block_on(queue.get()).expect("a key is there");
        let worker = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                is_over.store(true, SeqCst);
                last.done();
            }
        });
        assert!(block_on(queue.drain(SECOND)));
        assert!(is_over.load(SeqCst), "drained while a worker had a key");
        join([worker]);
    });
}

fn a_delayed_key_wakes_a_parked_worker() {
    explore(2, || {
        let environment = Environment::default();
        let queue = queue(&environment);
        let clock = environment.clock.clone();
        let producer = spawn(&queue, move |queue| {
            queue.add_after("a", 5 * SECOND);
            queue.add_after("b", SECOND);
            clock.advance(2 * SECOND);
        });
        let first = block_on(queue.get()).expect("not shut down");
        assert_eq!(*first.key(), "b", "the later key was first");
        first.done();
        join([producer]);
    });
}

/// The timekeeper takes a key and works; the other parked worker must wait for the delayed key.
fn the_delays_have_a_timekeeper() {
    explore(2, || {
        let environment = Environment::default();
        let queue = queue(&environment);
        queue.add_after("late", SECOND);
        let workers = [0, 1].map(|_| spawn(&queue, |queue| assert!(work(&queue))));
        queue.add("now");
        environment.clock.advance(2 * SECOND);
        join(workers);
    });
}

/// The timekeeper takes the first delayed key and no other; the other worker is parked, and has to
/// wait for the second.
fn the_timekeeper_is_replaced() {
    explore(2, || {
        let environment = Environment::default();
        let queue = queue(&environment);
        queue.add_after("soon", SECOND);
        queue.add_after("late", 3 * SECOND);
        let is_taken = Arc::new(Notify::new());
        let workers = [0, 1].map(|_| {
            let is_taken = Arc::clone(&is_taken);
            spawn(&queue, move |queue| {
                assert!(work(&queue));
                is_taken.notify_one();
            })
        });
        environment.clock.advance(2 * SECOND);
        block_on(is_taken.notified());
        environment.clock.advance(2 * SECOND);
        join(workers);
    });
}

fn a_cancelled_get() {
    use std::future::Future;
    use std::task::{Context, Waker};
    explore(3, || {
        let queue = queue(&Environment::default());
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        let producer = spawn(&queue, |queue| queue.add("a"));
        let is_taken = {
            let mut get = std::pin::pin!(queue.get());
            let polled = get.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            polled.map(|work| work.map(|work| work.done())).is_ready()
        };
        if is_taken {
            queue.add("b");
        }
        join([worker, producer]);
    });
}

/// Each key's work ends only when the other's has begun: a worker that is parked beside a key is a
/// deadlock.
fn two_at_the_same_time() {
    explore(2, || {
        let queue = queue(&Environment::default());
        let begun = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let worker = |begun: Arc<loom::sync::atomic::AtomicUsize>| {
            move |queue: Queue| {
                let work = block_on(queue.get()).expect("not shut down");
                begun.fetch_add(1, loom::sync::atomic::Ordering::SeqCst);
                while begun.load(loom::sync::atomic::Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
                work.done();
            }
        };
        let other = spawn(&queue, worker(Arc::clone(&begun)));
        let producer = spawn(&queue, |queue| {
            queue.add("a");
            queue.add("b");
        });
        worker(begun)(queue.clone());
        join([other, producer]);
    });
}

fn notified_without_need() {
    explore(3, || {
        let queue = queue(&Environment::default());
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        queue.add("a");
        if let Some(stolen) = queue.try_get() {
            stolen.done();
            queue.add("b");
        }
        join([worker]);
    });
}

fn the_timekeeper_is_notified() {
    explore(3, || {
        let queue = queue(&Environment::default());
        queue.add_after("late", SECOND);
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        queue.add("now");
        join([worker]);
    });
}

/// A worker parks last, so that this worker is notified first, and is not polled any more.
fn notified_and_not_polled() {
    use std::future::Future;
    use std::task::{Context, Waker};
    explore(2, || {
        let queue = queue(&Environment::default());
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        let mut absent = std::pin::pin!(queue.get());
        let polled = absent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "there is no key yet");
        queue.add("a");
        queue.add("b");
        join([worker]);
    });
}

/// A worker ends a key that was added again, and takes the next key at once, while another is
/// ready.
fn done_then_next() {
    explore(2, || {
        let queue = queue(&Environment::default());
        queue.add("a");
        let first = block_on(queue.get()).expect("a key is there");
        let worker = spawn(&queue, |queue| assert!(work(&queue)));
        let producer = spawn(&queue, |queue| {
            queue.add("a");
            queue.add("b");
        });
        let next = first.done_then_next();
        // Not ended before the other worker has had a turn.
        join([worker, producer]);
        match next {
            Some(work) => assert!(work.done_then_next().is_none()),
            None => assert!(queue.counts().queued <= 1),
        }
    });
}

/// As [`a_key_added_during_its_work`], and each add is more urgent than the last.
fn a_key_that_is_raised() {
    explore(2, || {
        let queue = queue(&Environment::default());
        let wanted = Arc::new(AtomicU32::new(0));
        let low = AddOptions::new().priority(Priority::LOW);
        queue.add_with("a", low);
        let producer = spawn(&queue, {
            let wanted = Arc::clone(&wanted);
            move |queue| {
                queue.add_with("b", low);
                queue.add_with("a", low.priority(Priority::new(-1)));
                wanted.store(1, SeqCst);
                queue.add("a");
                queue.shutdown();
            }
        });
        let mut seen = 0;
        let mut others = 0;
        while let Some(work) = block_on(queue.get()) {
            match *work.key() {
                "a" => seen = wanted.load(SeqCst),
                _ => others += 1,
            }
            work.done();
        }
        assert_eq!((seen, others), (1, 1), "no worker looked after the last add");
        assert!(block_on(queue.drain(SECOND)));
        join([producer]);
    });
}
