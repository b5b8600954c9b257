//! The work queue alone: a producer, a worker, 100k keys. The producer never runs so far ahead as
//! to add a key which still waits: every add is a run, so that figures are of the same work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use measure::{Delayed, Delays, Window, resident};
use tokio::runtime::Runtime;
use tokio::task::yield_now;
use windlass::environment::Environment;
use windlass::resource::ObjectKey;
use windlass::workqueue::{AddOptions, QueueSettings, WorkQueue};

const KEYS: u64 = 100_000;
/// Adds that may wait for their run.
const AHEAD: u64 = KEYS / 2;
/// Most keys that a controller's source adds at once: the keys of a single read of the network.
const BATCH: usize = 64;
/// An arbitrary reason.
const CHANGED: u64 = 1 << 1;
/// At most a fifth of the worker's remaining work: a look costs CPU, too.
const PAUSE: Duration = Duration::from_millis(1);
/// After so many turns in a row that waited for nothing, a controller's worker makes way for
/// others; earlier when they take long, which these do not.
const IN_A_ROW: u64 = 4095;
const REST: Duration = Duration::from_secs(1);

fn settings() -> QueueSettings {
    QueueSettings::new("peers").workers(1)
}

fn queue() -> WorkQueue<Arc<str>> {
    WorkQueue::new(settings(), &Environment::system())
}

fn names(count: u64) -> Vec<Arc<str>> {
    (0..count).map(|key| format!("team/{key}").into()).collect()
}

/// Adds `adds` keys singly while a worker takes them; runs per add.
pub fn run(runtime: &Runtime, adds: u64) -> f64 {
    let (queue, runs) = (queue(), Arc::new(AtomicU64::new(0)));
    let keys = names(KEYS);
    runtime.block_on(async {
        let worker = tokio::spawn({
            let (queue, runs) = (queue.clone(), runs.clone());
            async move {
                while let Some(work) = queue.get().await {
                    runs.fetch_add(1, Ordering::Relaxed);
                    work.done();
                }
            }
        });
        for at in 0..adds {
            queue.add(keys[usize::try_from(at % KEYS).unwrap_or(0)].clone());
            if at % 128 == 127 {
                keep_near(at, &runs);
            }
        }
        end(&queue, worker).await;
    });
    runs.load(Ordering::Relaxed) as f64 / adds as f64
}

/// The same in the way of a controller's source and workers: keys of objects, in batches.
pub fn run_own(runtime: &Runtime, adds: u64) -> f64 {
    let queue = WorkQueue::of_objects(settings(), &Environment::system());
    let runs = Arc::new(AtomicU64::new(0));
    let keys: Vec<ObjectKey> =
        (0..KEYS).map(|key| ObjectKey::new(Some("team"), &key.to_string())).collect();
    let batches = usize::try_from(adds).unwrap_or(0) / BATCH;
    runtime.block_on(async {
        let worker = tokio::spawn({
            let (queue, runs) = (queue.clone(), runs.clone());
            async move {
                while let Some(work) = queue.get().await {
                    let mut next = Some(work);
                    for _ in 0..IN_A_ROW {
                        let Some(work) = next else { break };
                        runs.fetch_add(1, Ordering::Relaxed);
                        next = work.done_then_next();
                    }
                    if let Some(work) = next {
                        runs.fetch_add(1, Ordering::Relaxed);
                        work.done();
                        yield_now().await;
                    }
                }
            }
        });
        let mut next = keys.iter().cycle();
        for at in 0..batches {
            let keys = next.by_ref().take(BATCH).cloned();
            queue.add_each(keys.map(|key| (key, AddOptions::new().reasons(CHANGED))));
            keep_near((at * BATCH) as u64, &runs);
        }
        end(&queue, worker).await;
    });
    runs.load(Ordering::Relaxed) as f64 / (batches * BATCH) as f64
}

/// The worker is on another thread; this thread has nothing else to do.
fn keep_near(added: u64, runs: &AtomicU64) {
    while added > runs.load(Ordering::Relaxed) + AHEAD {
        thread::sleep(PAUSE);
    }
}

async fn end<T>(queue: &WorkQueue<T>, worker: tokio::task::JoinHandle<()>)
where
    T: std::hash::Hash + Eq + Clone,
{
    while queue.counts().queued > 0 {
        thread::sleep(PAUSE);
    }
    queue.shutdown();
    let _ = worker.await;
}

/// Delayed keys: their memory, and the punctuality of those that fall due.
pub fn delay(runtime: &Runtime, delays: &Delays) -> Delayed {
    let (queue, keys) = (queue(), names(delays.keys));
    let key = |at: u64| keys[usize::try_from(at).unwrap_or(0)].clone();
    let before = resident().0;
    let measured = Window::begin();
    runtime.block_on(async {
        delays.far().for_each(|(at, delay)| queue.add_after(key(at), delay));
        let base = Instant::now();
        for at in 0..delays.due {
            let due = base + delays.due_at(at);
            queue.add_after(key(at), due.saturating_duration_since(Instant::now()));
        }
        let cpu = measured.cpu();
        thread::sleep(REST);
        let bytes = resident().0.saturating_sub(before);
        let is_too_late = base.elapsed() > delays.due_at(0);
        let worker = tokio::spawn({
            let (queue, delays) = (queue.clone(), *delays);
            async move {
                let mut late = Vec::with_capacity(usize::try_from(delays.due).unwrap_or(0));
                while let Some(work) = queue.get().await {
                    late.push(distance(Instant::now(), base + delays.due_at(number(work.key()))));
                    work.done();
                }
                late
            }
        });
        // All are out by then, with much time to spare.
        tokio::time::sleep_until((base + delays.due_at(delays.due) + REST).into()).await;
        let left = queue.counts().delayed as u64;
        queue.shutdown();
        let late = worker.await.unwrap_or_default();
        Delayed { late, left, bytes, cpu, is_too_late }
    })
}

fn number(key: &str) -> u64 {
    key.rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn distance(a: Instant, b: Instant) -> u64 {
    let apart = a.saturating_duration_since(b).max(b.saturating_duration_since(a));
    u64::try_from(apart.as_nanos()).unwrap_or(u64::MAX)
}
