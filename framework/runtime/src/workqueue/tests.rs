use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use super::*;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::{Metrics, names};
use windlass_core::rng::Rng;

mod add_buffer;
mod delays;
mod keys;
mod wakes;

fn environment() -> Environment {
    Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() }
}

fn queue(workers: usize) -> WorkQueue<u32> {
    WorkQueue::new(QueueSettings::new("test").workers(workers), &environment())
}

async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g_q3_mechanism_67_each_key_is_worked_on_once_however_often_it_was_added() {
    let queue = queue(1);
    for _ in 0..5 {
        queue.add(1);
    }
    queue.get().await.expect("open").done();
    assert_eq!(queue.counts(), QueueCounts::default());
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn g_q2_mechanism_67_a_key_added_while_in_work_runs_again_after_done_and_only_once() {
    let queue = queue(2);
    queue.add(1);
    let work = queue.get().await.expect("open");
    queue.add(1);
    queue.add(1);
    assert!(queue.try_get().is_none(), "it is in work");
    work.done();
    queue.get().await.expect("open").done();
    assert!(queue.try_get().is_none());
}

#[tokio::test(start_paused = true)]
async fn work_dropped_without_a_completion_is_retried() {
    let queue = queue(1);
    queue.add(1);
    drop(queue.get().await);
    let work = queue.get().await.expect("open");
    assert_eq!((*work.key(), work.failures()), (1, 1));
    work.done();
}

/// A worker is woken for a key and finds that another has become due: the worker takes the first,
/// and the second wakes another parked worker.
#[tokio::test(start_paused = true)]
async fn a_key_that_becomes_due_while_another_is_taken_wakes_another_worker() {
    let queue = queue(2);
    queue.add_after(1, Duration::from_secs(1));
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        workers.spawn(async move {
            let _work = queue.get().await.expect("open");
            std::future::pending::<()>().await;
        });
    }
    settle().await;
    queue.add(2);
    tokio::time::advance(Duration::from_secs(2)).await;
    settle().await;
    let counts = queue.counts();
    assert_eq!((counts.queued, counts.working), (0, 2), "a worker is parked beside a ready key");
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_once_and_at_its_time() {
    let queue = queue(1);
    let start = Instant::now();
    queue.add_after(1, Duration::from_secs(10));
    queue.add_after(1, Duration::from_secs(3));
    queue.add_after(1, Duration::from_secs(7));
    let work = queue.get().await.expect("open");
    let late = start.elapsed() - Duration::from_secs(3);
    assert!(late <= Duration::from_millis(10), "{late:?}");
    work.done();
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn a_parked_worker_is_woken_for_an_earlier_delay() {
    let queue = queue(1);
    queue.add_after(1, Duration::from_secs(600));
    let getter = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|work| *work.key()) }
    });
    settle().await;
    let start = Instant::now();
    queue.add_after(2, Duration::from_secs(1));
    assert_eq!(getter.await.expect("no panic"), Some(2));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn when_the_timekeeper_takes_a_key_another_parked_worker_waits_for_the_delays() {
    let queue = queue(2);
    queue.add_after(9, Duration::from_secs(5));
    let mut getters = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        getters.spawn(async move { queue.get().await.map(|work| (*work.key(), work)) });
    }
    settle().await;
    queue.add(1);
    let first = getters.join_next().await.expect("three").expect("no panic");
    assert_eq!(first.as_ref().map(|(key, _)| *key), Some(1));
    let start = Instant::now();
    let second = getters.join_next().await.expect("two").expect("no panic");
    assert_eq!(second.as_ref().map(|(key, _)| *key), Some(9));
    assert!(start.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn g_q5_a_cancelled_waiter_passes_its_wake_up_on() {
    let queue = queue(2);
    let (first, second) = (queue.clone(), queue.clone());
    let first = tokio::spawn(async move { first.get().await.map(|work| *work.key()) });
    settle().await;
    let second = tokio::spawn(async move { second.get().await.map(|work| *work.key()) });
    settle().await;
    queue.add(1);
    first.abort();
    let _ = first.await;
    assert_eq!(second.await.expect("no panic"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn g_q5_as_many_parked_workers_wake_as_there_are_new_keys() {
    let queue = queue(8);
    let awake = Arc::new(AtomicUsize::new(0));
    let mut getters = JoinSet::new();
    for _ in 0..8 {
        let (queue, awake) = (queue.clone(), Arc::clone(&awake));
        getters.spawn(async move {
            let work = queue.get().await;
            awake.fetch_add(1, Ordering::SeqCst);
            // The key is never finished: each further key needs a separate worker.
            std::future::pending::<()>().await;
            drop(work);
        });
    }
    settle().await;
    queue.add_all(0..5);
    settle().await;
    assert_eq!(awake.load(Ordering::SeqCst), 5);
    assert_eq!(queue.counts().working, 5);
}

#[tokio::test(start_paused = true)]
async fn g_q8_shutdown_leaves_no_worker_parked() {
    let queue = queue(4);
    let mut getters = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        getters.spawn(async move { queue.get().await.is_none() });
    }
    settle().await;
    queue.shutdown();
    queue.add(1);
    assert_eq!(getters.join_all().await, vec![true; 4]);
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn g_q8_a_drain_waits_for_work_and_for_the_key_added_again_meanwhile() {
    let queue = queue(1);
    queue.add(1);
    let work = queue.get().await.expect("open");
    queue.add(1);
    let draining = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drain(Duration::from_secs(60)).await }
    });
    settle().await;
    work.done();
    settle().await;
    assert!(!draining.is_finished(), "the key was added again");
    queue.get().await.expect("handed out").done();
    assert!(draining.await.expect("no panic"));
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn g_q8_a_drain_ends_at_its_limit() {
    let queue = queue(1);
    queue.add(1);
    let _work = queue.get().await;
    assert!(!queue.drain(Duration::from_secs(3)).await);
}

#[tokio::test(start_paused = true)]
async fn g_q1_g_q2_many_producers_and_workers_work_each_key_exclusively_and_lose_none() {
    const KEYS: usize = 20;
    let queue = queue(4);
    let busy: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let (queue, busy, seen) = (queue.clone(), Arc::clone(&busy), Arc::clone(&seen));
        workers.spawn(async move {
            while let Some(work) = queue.get().await {
                let key = *work.key() as usize;
                assert_eq!(busy[key].fetch_add(1, Ordering::SeqCst), 0, "two workers on {key}");
                yield_now().await;
                busy[key].fetch_sub(1, Ordering::SeqCst);
                seen[key].fetch_add(1, Ordering::SeqCst);
                if key.is_multiple_of(3) && work.failures() < 2 { drop(work) } else { work.done() }
            }
        });
    }
    for round in 0..50_u32 {
        queue.add(round % KEYS as u32);
        queue.add_after((round * 7) % KEYS as u32, Duration::from_millis(u64::from(round)));
        yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(queue.drain(Duration::from_secs(60)).await);
    workers.join_all().await;
    assert!(seen.iter().all(|n| n.load(Ordering::SeqCst) > 0));
}

#[tokio::test(start_paused = true)]
async fn metrics_follow_client_gos_names_after_each_step() {
    let environment = environment();
    let queue = WorkQueue::new(QueueSettings::new("q").controller("c"), &environment);
    let shows = |line: &str| {
        let text = environment.metrics.encode();
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    };
    shows(r#"workqueue_depth{name="q",controller="c",priority="0"} 0.0"#);
    shows(r#"workqueue_adds_total{name="q",controller="c"} 0"#);
    queue.add(1);
    queue.add(1);
    shows(r#"workqueue_depth{name="q",controller="c",priority="0"} 1.0"#);
    shows(r#"workqueue_adds_total{name="q",controller="c"} 1"#);
    tokio::time::advance(Duration::from_secs(2)).await;
    let work = queue.get().await.expect("open");
    shows(r#"workqueue_depth{name="q",controller="c",priority="0"} 0.0"#);
    shows(r#"workqueue_queue_duration_seconds_sum{name="q",controller="c"} 2.0"#);
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.observe();
    shows(r#"workqueue_longest_running_processor_seconds{name="q",controller="c"} 3.0"#);
    assert!(work.retry().is_some());
    shows(r#"workqueue_longest_running_processor_seconds{name="q",controller="c"} 0.0"#);
    shows(r#"workqueue_unfinished_work_seconds{name="q",controller="c"} 0.0"#);
    shows(r#"workqueue_work_duration_seconds_sum{name="q",controller="c"} 3.0"#);
    assert_eq!(environment.metrics.counted(&names::QUEUE_RETRIES, &["q", "c"]), 1);
}

#[tokio::test(start_paused = true)]
async fn counts_of_a_queue_reach_the_metrics_once_also_without_a_scrape_before_its_drop() {
    let environment = environment();
    let queue = WorkQueue::new(QueueSettings::new("q"), &environment);
    let other = WorkQueue::new(QueueSettings::new("q"), &environment);
    for queue in [&queue, &other] {
        (0..5).for_each(|key| queue.add(key));
        queue.get().await.expect("open").done();
    }
    let adds = || environment.metrics.counted(&names::QUEUE_ADDS, &["q", "q"]);
    let depth = || environment.metrics.level(&names::QUEUE_DEPTH, &["q", "q", "0"]);
    assert_eq!((adds(), adds(), depth()), (10, 10, Some(8.0)));
    queue.add(9);
    queue.get().await.expect("open").done();
    drop(queue);
    assert_eq!((adds(), depth()), (11, Some(4.0)), "those of the other are left");
    let text = environment.metrics.encode();
    let shows = |line: &str| assert!(text.lines().any(|l| l == line), "{line}: {text}");
    shows(r#"workqueue_queue_duration_seconds_count{name="q",controller="q"} 3"#);
    shows(r#"workqueue_work_duration_seconds_count{name="q",controller="q"} 3"#);
}

#[tokio::test(start_paused = true)]
async fn done_then_next_ends_one_key_and_takes_another_in_one_step() {
    let queue = queue(1);
    queue.add(1);
    let work = queue.get().await.expect("open");
    queue.add(1);
    queue.add(2);
    let work = work.done_then_next().expect("it was added again");
    assert_eq!((*work.key(), work.failures()), (1, 0));
    assert_eq!(queue.counts(), QueueCounts { queued: 1, working: 1, ..QueueCounts::default() });
    assert!(queue.try_get().is_some_and(|other| *other.key() == 2), "it is ready for others");
    drop(work);
    assert_eq!(queue.counts(), QueueCounts { backing_off: 2, ..QueueCounts::default() });
    let work = queue.get().await.expect("open");
    assert_eq!(work.failures(), 1);
    assert!(work.done_then_next().is_none(), "the other one is not due");
    assert_eq!(queue.counts(), QueueCounts { backing_off: 1, ..QueueCounts::default() });
    let work = queue.get().await.expect("open").with_success(Some(Duration::from_secs(1)));
    drop(work);
    assert_eq!(queue.counts(), QueueCounts { delayed: 1, ..QueueCounts::default() });
    let work = queue.get().await.expect("open").with_success(Some(Duration::from_secs(1)));
    assert!(work.finish_then_next(tokio::time::Instant::now()).is_none());
    assert_eq!(queue.counts(), QueueCounts { delayed: 1, ..QueueCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_drain_notices_an_end_that_was_followed_by_the_next_key() {
    let queue = queue(1);
    queue.add_all([1, 2]);
    let work = queue.get().await.expect("open");
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drain(Duration::from_secs(60)).await }
    });
    settle().await;
    let work = work.done_then_next().expect("a ready key is still handed out");
    assert!(work.done_then_next().is_none());
    assert!(drain.await.expect("it does not panic"));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_held_back_has_neither_failed_nor_succeeded() {
    let queue = queue(2);
    queue.add(1);
    queue.add(2);
    assert!(queue.get().await.expect("open").retry().is_some());
    for _ in 0..2 {
        let work = queue.get().await.expect("open");
        let failures = work.failures();
        assert_eq!(failures, u32::from(*work.key() == 1), "before");
        work.hold(Duration::from_secs(1));
    }
    assert_eq!(queue.counts(), QueueCounts { backing_off: 2, ..QueueCounts::default() });
    for _ in 0..2 {
        let work = queue.get().await.expect("open");
        assert_eq!(work.failures(), u32::from(*work.key() == 1), "after");
        work.done();
    }
    queue.add_after(2, Duration::from_secs(1));
    assert_eq!(queue.counts(), QueueCounts { delayed: 1, ..QueueCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_is_a_long_one_and_panics_nowhere() {
    let settings = QueueSettings::new("test");
    let policy = RetryPolicy::forever().between(Duration::MAX, Duration::MAX);
    let queue = WorkQueue::new(settings.retry(policy), &environment());
    queue.add_after(1, Duration::MAX);
    for key in [2, 3, 4] {
        queue.add(key);
        let work = queue.get().await.expect("open");
        match key {
            2 => work.after(Duration::MAX),
            3 => work.retry_after(Duration::MAX),
            _ => assert!(work.retry().is_some()),
        }
    }
    let waiting = tokio::time::timeout(Duration::from_secs(3600), queue.get());
    assert!(waiting.await.is_err(), "none is due");
    queue.add(5);
    assert_eq!(*queue.get().await.expect("open").key(), 5);
}

#[tokio::test(start_paused = true)]
async fn depths_are_reported_by_priority_and_beyond_25_of_them_together() {
    let environment = environment();
    let queue = WorkQueue::new(QueueSettings::new("q"), &environment);
    let depth = |priority: &str| {
        let begin = format!(r#"workqueue_depth{{name="q",controller="q",priority="{priority}"}} "#);
        let text = environment.metrics.encode();
        text.lines().find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
    };
    assert_eq!((depth("0").as_deref(), depth("-100")), (Some("0.0"), None));
    queue.add_with(1, AddOptions::new().priority(Priority::LOW));
    queue.add_with(2, AddOptions::new().priority(Priority::LOW));
    queue.add(2);
    assert_eq!((depth("0").as_deref(), depth("-100").as_deref()), (Some("1.0"), Some("1.0")));
    for priority in 1..=30 {
        queue.add_with(100, AddOptions::new().priority(Priority::new(priority)));
        queue.add_with(
            100 + u32::from(priority.unsigned_abs()),
            AddOptions::new().priority(Priority::new(priority)),
        );
    }
    assert_eq!(depth("23").as_deref(), Some("1.0"));
    assert_eq!(depth("24"), None);
    assert_eq!(depth("exceeded_cardinality_limit").as_deref(), Some("8.0"));
    while let Some(work) = queue.try_get() {
        work.done();
    }
    assert_eq!(depth("exceeded_cardinality_limit").as_deref(), Some("0.0"));
}

#[tokio::test(start_paused = true)]
async fn a_requeue_has_the_reasons_of_the_settings() {
    let settings = QueueSettings::new("test").retried_for(0b01).requeued_for(0b10);
    let queue = WorkQueue::new(settings, &environment());
    queue.add_with(1, AddOptions::new().reasons(0b100).priority(Priority::LOW));
    let work = queue.get().await.expect("open");
    assert_eq!((work.reasons(), work.priority()), (0b100, Priority::LOW));
    drop(work);
    let work = queue.get().await.expect("open");
    assert_eq!((work.reasons(), work.failures()), (0b01, 1));
    work.after(Duration::from_secs(1));
    let work = queue.get().await.expect("open");
    assert_eq!((work.reasons(), work.priority()), (0b10, Priority::LOW));
    work.hold(Duration::from_secs(1));
    let work = queue.get().await.expect("open");
    assert_eq!(work.reasons(), 0b10, "it was not worked on");
    work.done();
    assert_eq!(queue.describe(1), []);
}
