//! Changes that a lock reports, so that an election need not wait for the next read.
//!
//! Reports are hints. They may be late, old or missing: the right to watch may be missing, and
//! legacy locks cannot be followed. An election that never receives any reads once in a retry
//! period and is as safe.

// DESIGN.md, 45: Lock watches only cause an earlier attempt of an election

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info};

use super::ResourceLock;
use super::record::ObservedRecord;
use windlass_core::environment::Environment;
use windlass_core::error::ErrorKind;

/// Bounds of the pause before a lock is followed again; the pause doubles while no change is
/// reported.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Pause after a refusal: a right that is missing is not granted within seconds.
const FORBIDDEN: Duration = Duration::from_secs(600);

/// Newest record that a lock reported. A drop ends the watch.
#[derive(Debug)]
pub(in crate::leader) struct LockWatch {
    latest: watch::Receiver<Option<ObservedRecord>>,
    _task: AbortOnDropHandle<()>,
}

impl LockWatch {
    /// Starts to follow the lock in the background.
    pub(in crate::leader) fn of(lock: Arc<dyn ResourceLock>, environment: Environment) -> Self {
        let (sender, latest) = watch::channel(None);
        let task = tokio::spawn(async move { follow(&*lock, &environment, &sender).await });
        Self { latest, _task: AbortOnDropHandle::new(task) }
    }

    /// Waits for the next record that is reported; older ones that no call waited for are left out.
    /// Never ends when no record is reported any more.
    ///
    /// # Cancel safety
    /// Safe: a record that was not returned is returned by the next call.
    pub(in crate::leader) async fn next(&mut self) -> ObservedRecord {
        loop {
            if self.latest.changed().await.is_err() {
                // The follower has ended: pending, so that the caller's other branches decide.
                return std::future::pending().await;
            }
            if let Some(record) = self.latest.borrow_and_update().clone() {
                return record;
            }
        }
    }
}

/// Follows the lock again and again; ends when the lock cannot be followed.
async fn follow(
    lock: &dyn ResourceLock,
    environment: &Environment,
    sender: &watch::Sender<Option<ObservedRecord>>,
) {
    let mut pause = SHORTEST;
    loop {
        let has_reported = std::sync::atomic::AtomicBool::new(false);
        let report = |record| {
            // Relaxed: the flag is read after the end of `changes`. Atomic only because the lock
            // shares `report`.
            has_reported.store(true, std::sync::atomic::Ordering::Relaxed);
            sender.send_replace(Some(record));
        };
        let Some(changes) = lock.follow(&report) else { return };
        let end = changes.await;
        pause = if has_reported.into_inner() { SHORTEST } else { (pause * 2).min(LONGEST) };
        let wait = match end {
            Ok(()) => pause,
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                let lease = lock.describe();
                info!(%lease, %error, "the lock cannot be watched (the Role lacks `watch`): changes are noticed at the next poll");
                FORBIDDEN
            }
            Err(error) => {
                debug!(lease = %lock.describe(), error = ?error, "the watch of the lock failed");
                pause
            }
        };
        environment.clock.sleep(wait.mul_f64(1.0 + 0.2 * environment.rng.unit())).await;
    }
}
