//! Tests of keys that are added while all workers are busy and stay in the add buffer.

use super::*;

#[tokio::test(start_paused = true)]
async fn buffered_keys_are_counted_and_described_like_all_others() {
    let environment = environment();
    let queue = WorkQueue::new(QueueSettings::new("q"), &environment);
    queue.add_all([1, 2, 2]);
    assert!(queue.has_batches());
    assert_eq!(queue.counts().queued, 2);
    assert!(!queue.has_batches());
    queue.add_each([(3, AddOptions::new().reasons(4))]);
    assert_eq!(queue.describe(9).iter().map(|state| state.reasons).collect::<Vec<_>>(), [0, 0, 4]);
    queue.add_all([4]);
    let depth = || environment.metrics.level(&names::QUEUE_DEPTH, &["q", "q", "0"]);
    assert!(queue.has_batches());
    let _ = environment.metrics.encode();
    assert_eq!(depth(), Some(4.0));
    queue.add_all([5]);
    assert!(queue.has_batches());
    drop(queue);
    assert_eq!(environment.metrics.counted(&names::QUEUE_ADDS, &["q", "q"]), 5);
}

#[tokio::test(start_paused = true)]
async fn keys_keep_the_order_in_which_they_were_added_with_or_without_the_buffer() {
    let queue = queue(1);
    queue.add_all([1, 2]);
    queue.add(3);
    queue.add_after(4, Duration::from_secs(1));
    queue.add_all([5]);
    tokio::time::advance(Duration::from_secs(2)).await;
    queue.add_all([6]);
    assert!(queue.has_batches());
    queue.shutdown();
    // Keys that arrived before the shutdown are accepted, and delayed ones were due before the last
    // of them.
    let mut order = Vec::new();
    while let Some(work) = queue.get().await {
        order.push(*work.key());
        work.done();
    }
    assert_eq!(order, [1, 2, 3, 5, 4, 6]);
    queue.add_all([7]);
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn a_worker_takes_buffered_keys_before_it_parks_and_is_woken_once_parked() {
    let queue = queue(2);
    queue.add(0);
    let busy = queue.get().await.expect("open");
    queue.add_all([1]);
    assert!(queue.has_batches());
    assert_eq!(*queue.get().await.expect("open").key(), 1);
    let mut parked = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|work| *work.key()) }
    });
    settle().await;
    queue.add_all([2]);
    assert!(!queue.has_batches(), "a worker is parked");
    assert_eq!((&mut parked).await.expect("no panic"), Some(2));
    queue.add_all([3]);
    assert!(queue.has_batches(), "no worker is parked any more");
    busy.done();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_get_reopens_the_buffer_and_leaves_the_delays_to_the_next() {
    let queue = queue(2);
    let given_up = tokio::time::timeout(Duration::from_secs(1), queue.get()).await;
    assert!(given_up.is_err());
    queue.add_each([(1, AddOptions::new().after(Duration::from_secs(5))), (2, AddOptions::new())]);
    assert!(queue.has_batches());
    let started = Instant::now();
    let first = queue.get().await.expect("open");
    let then = queue.get().await.expect("open");
    assert_eq!((*first.key(), *then.key()), (2, 1));
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn the_buffer_is_bounded_also_when_all_adds_are_of_one_key() {
    let queue = queue(1);
    queue.add_all([]);
    assert!(!queue.has_batches(), "an empty list is not buffered");
    let most = 4096;
    for _ in 0..most {
        queue.add_all([1]);
    }
    assert!(queue.has_batches());
    queue.add_all([1]);
    assert!(!queue.has_batches(), "an add to a full buffer moves all keys into the queue");
    queue.add_all(0..=most);
    assert!(!queue.has_batches(), "a list above the capacity is not buffered");
    assert_eq!(queue.counts().queued, most as usize + 1);
}
