//! Tests of keys that are added while all workers are busy and wait in the inbox.

use super::*;

#[tokio::test(start_paused = true)]
async fn keys_that_wait_beside_the_queue_count_and_are_described_like_all_others() {
    let environment = environment();
    let queue = WorkQueue::new(QueueSettings::new("q"), &environment);
    queue.add_all([1, 2, 2]);
    assert!(queue.has_mail());
    assert_eq!(queue.counts().queued, 2);
    assert!(!queue.has_mail());
    queue.add_each([(3, AddOptions::new().reasons(4))]);
    assert_eq!(queue.describe(9).iter().map(|state| state.reasons).collect::<Vec<_>>(), [0, 0, 4]);
    queue.add_all([4]);
    let depth = || environment.metrics.level(&names::QUEUE_DEPTH, &["q", "q", "0"]);
    assert!(queue.has_mail());
    let _ = environment.metrics.encode();
    assert_eq!(depth(), Some(4.0));
    queue.add_all([5]);
    assert!(queue.has_mail());
    drop(queue);
    assert_eq!(environment.metrics.counted(&names::QUEUE_ADDS, &["q", "q"]), 5);
}

#[tokio::test(start_paused = true)]
async fn keys_keep_the_order_in_which_they_were_added_whichever_way_they_came() {
    let queue = queue(1);
    queue.add_all([1, 2]);
    queue.add(3);
    queue.add_after(4, Duration::from_secs(1));
    queue.add_all([5]);
    tokio::time::advance(Duration::from_secs(2)).await;
    queue.add_all([6]);
    assert!(queue.has_mail());
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
async fn a_worker_that_is_about_to_sleep_finds_what_waits_and_one_that_sleeps_is_woken() {
    let queue = queue(2);
    queue.add(0);
    let busy = queue.get().await.expect("open");
    queue.add_all([1]);
    assert!(queue.has_mail());
    assert_eq!(*queue.get().await.expect("open").key(), 1);
    let mut sleeper = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|work| *work.key()) }
    });
    settle().await;
    queue.add_all([2]);
    assert!(!queue.has_mail(), "somebody sleeps");
    assert_eq!((&mut sleeper).await.expect("no panic"), Some(2));
    queue.add_all([3]);
    assert!(queue.has_mail(), "nobody does any more");
    busy.done();
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_that_gives_up_leaves_the_inbox_open_and_the_delays_minded() {
    let queue = queue(2);
    let given_up = tokio::time::timeout(Duration::from_secs(1), queue.get()).await;
    assert!(given_up.is_err());
    queue.add_each([(1, AddOptions::new().after(Duration::from_secs(5))), (2, AddOptions::new())]);
    assert!(queue.has_mail());
    let started = Instant::now();
    let first = queue.get().await.expect("open");
    let then = queue.get().await.expect("open");
    assert_eq!((*first.key(), *then.key()), (2, 1));
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn what_waits_beside_the_queue_is_bounded_also_when_it_is_one_key() {
    let queue = queue(1);
    queue.add_all([]);
    assert!(!queue.has_mail(), "nothing is nothing");
    let most = 4096;
    for _ in 0..most {
        queue.add_all([1]);
    }
    assert!(queue.has_mail());
    queue.add_all([1]);
    assert!(!queue.has_mail(), "whoever finds no room takes all in");
    queue.add_all(0..=most);
    assert!(!queue.has_mail(), "so many at once never wait");
    assert_eq!(queue.counts().queued, most as usize + 1);
}
