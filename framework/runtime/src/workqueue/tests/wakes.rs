//! Tests that count the wake-ups of parked workers.

use std::future::{Future, poll_fn};
use std::pin::pin;

use super::*;

/// Workers that end each key at once, and a counter of their wake-ups.
fn workers(queue: &WorkQueue<u32>, many: usize) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..many {
        let (queue, woken) = (queue.clone(), Arc::clone(&woken));
        workers.spawn(async move {
            loop {
                let mut get = pin!(queue.get());
                let mut polls = 0;
                let work = poll_fn(|context| {
                    polls += 1;
                    // The first poll is no wake-up.
                    woken.fetch_add(usize::from(polls > 1), Ordering::SeqCst);
                    get.as_mut().poll(context)
                });
                let Some(work) = work.await else { return };
                work.done();
            }
        });
    }
    (workers, woken)
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_adds_wakes_one_worker_for_each_doubling_and_not_one_for_each_key() {
    let queue = queue(64);
    let (_workers, woken) = workers(&queue, 64);
    settle().await;
    assert_eq!(woken.load(Ordering::SeqCst), 0);
    for burst in 1..=50 {
        (0..200).for_each(|key| queue.add(key));
        settle().await;
        assert_eq!(queue.counts(), QueueCounts::default());
        // A wake-up for the first key, one each when the backlog reaches 2, 4, 8, 16, 32, 64 and
        // 128 keys, and another when the first worker takes a key.
        assert!(woken.load(Ordering::SeqCst) <= 9 * burst, "{woken:?} after {burst} bursts");
    }
}

/// Parks in the queue and is not polled any more, as in a `select!` whose other arm is busy.
async fn park(get: std::pin::Pin<&mut impl Future>) {
    let mut get = Some(get);
    poll_fn(|context| {
        assert!(get.take().expect("polled once").poll(context).is_pending(), "there is no key");
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn g_q5_a_notified_worker_that_is_not_polled_does_not_hold_up_the_others() {
    let queue = queue(8);
    let (_workers, _) = workers(&queue, 3);
    settle().await;
    let mut absent = pin!(queue.get());
    park(absent.as_mut()).await;
    queue.add(1);
    settle().await;
    assert_eq!(queue.counts().queued, 1, "the worker that parked last is notified first");
    // Another key: another worker is notified and takes all of them.
    queue.add(2);
    settle().await;
    assert_eq!(queue.counts(), QueueCounts::default());
    assert!(queue.try_get().is_none());
    (10..14).for_each(|key| queue.add(key));
    settle().await;
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn g_q5_three_workers_that_are_not_polled_hold_up_seven_keys_and_not_the_eighth() {
    let queue = queue(8);
    let (_workers, _) = workers(&queue, 1);
    settle().await;
    let (mut a, mut b, mut c) = (pin!(queue.get()), pin!(queue.get()), pin!(queue.get()));
    park(a.as_mut()).await;
    park(b.as_mut()).await;
    park(c.as_mut()).await;
    for key in 0..7 {
        queue.add(key);
        settle().await;
    }
    assert_eq!(queue.counts().queued, 7);
    queue.add(7);
    settle().await;
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn keys_added_one_by_one_get_a_worker_each_when_work_takes_long() {
    let queue = queue(8);
    let mut getters = JoinSet::new();
    for _ in 0..8 {
        let queue = queue.clone();
        getters.spawn(async move {
            let _work = queue.get().await;
            std::future::pending::<()>().await;
        });
    }
    settle().await;
    (0..5).for_each(|key| queue.add(key));
    settle().await;
    assert_eq!((queue.counts().working, queue.counts().queued), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn keys_without_a_delay_do_not_wake_the_timekeeper() {
    let queue = queue(2);
    queue.add_after(1_000, Duration::from_secs(3600));
    let (_workers, woken) = workers(&queue, 2);
    settle().await;
    let start = Instant::now();
    for _ in 0..100 {
        queue.add(1);
        settle().await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // The other worker waits for the delayed key and is not woken.
    assert_eq!(woken.load(Ordering::SeqCst), 100);
    assert_eq!(queue.counts(), QueueCounts { delayed: 1, ..QueueCounts::default() });
}
