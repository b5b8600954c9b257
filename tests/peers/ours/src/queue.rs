//! The public work queue alone: one producer, one worker, 100k keys.

use std::sync::atomic::{AtomicU64, Ordering};

use windlass::seams::Seams;
use windlass::workqueue::{QueueSettings, WorkQueue};

const KEYS: u64 = 100_000;

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
            if at % 128 == 127 {
                tokio::task::yield_now().await;
            }
        }
        while queue.counts().queued > 0 {
            tokio::task::yield_now().await;
        }
        queue.shutdown();
        let _ = worker.await;
    });
    runs.load(Ordering::Relaxed) as f64 / adds as f64
}
