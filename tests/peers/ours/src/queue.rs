//! The public work queue alone: one producer, one worker, 100k keys. The producer never runs so far ahead
//! that it adds a key which still waits: every add is a run, so that figures are of the same work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use windlass::seams::Seams;
use windlass::workqueue::{QueueSettings, WorkQueue};

const KEYS: u64 = 100_000;
/// Adds that may wait for their run.
const AHEAD: u64 = KEYS / 2;
const PAUSE: Duration = Duration::from_micros(100);

/// Adds `adds` keys while a worker takes them; runs per add.
pub fn run(runtime: &tokio::runtime::Runtime, adds: u64) -> f64 {
    let seams = Seams::system();
    let queue = WorkQueue::new(QueueSettings::new("peers").workers(1), &seams);
    let runs = std::sync::Arc::new(AtomicU64::new(0));
    let keys: Vec<std::sync::Arc<str>> =
        (0..KEYS).map(|key| format!("team/{key}").into()).collect();
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
            // The worker is on another thread; this one has nothing else to do.
            while at % 128 == 127 && at > runs.load(Ordering::Relaxed) + AHEAD {
                thread::sleep(PAUSE);
            }
        }
        while queue.counts().queued > 0 {
            thread::sleep(PAUSE);
        }
        queue.shutdown();
        let _ = worker.await;
    });
    runs.load(Ordering::Relaxed) as f64 / adds as f64
}
