//! What a lock tells of its changes, so that nobody has to wait for the next look.
//!
//! News are hints. They may be late, old or missing: rights to watch may be, and legacy locks cannot
//! be followed. An election that never hears any looks once in a retry period and is as safe.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info};

use super::lock::ResourceLock;
use super::record::ObservedRecord;
use crate::error::ErrorKind;
use crate::seams::Seams;

/// Bounds of the pause before a lock is followed again; it doubles while nothing is told.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Rights do not come often.
const FORBIDDEN: Duration = Duration::from_secs(600);

/// The newest record that a lock told of. Dropping it ends the following.
#[derive(Debug)]
pub(super) struct News {
    latest: watch::Receiver<Option<ObservedRecord>>,
    _task: AbortOnDropHandle<()>,
}

impl News {
    pub(super) fn of(lock: Arc<dyn ResourceLock>, seams: Seams) -> Self {
        let (told, latest) = watch::channel(None);
        let task = tokio::spawn(async move { follow(&*lock, &seams, &told).await });
        Self { latest, _task: AbortOnDropHandle::new(task) }
    }

    /// The next record that is told; older ones that nobody waited for are left out. Never ends when
    /// nothing is told any more.
    ///
    /// # Cancel safety
    /// Safe: what was not returned is returned by the next call.
    pub(super) async fn next(&mut self) -> ObservedRecord {
        loop {
            if self.latest.changed().await.is_err() {
                return std::future::pending().await;
            }
            if let Some(record) = self.latest.borrow_and_update().clone() {
                return record;
            }
        }
    }
}

/// Ends when the lock cannot be followed.
async fn follow(
    lock: &dyn ResourceLock,
    seams: &Seams,
    told: &watch::Sender<Option<ObservedRecord>>,
) {
    let mut pause = SHORTEST;
    loop {
        let is_heard = std::sync::atomic::AtomicBool::new(false);
        let tell = |record| {
            is_heard.store(true, std::sync::atomic::Ordering::Relaxed);
            told.send_replace(Some(record));
        };
        let Some(changes) = lock.follow(&tell) else { return };
        let end = changes.await;
        pause = if is_heard.into_inner() { SHORTEST } else { (pause * 2).min(LONGEST) };
        let wait = match end {
            Ok(()) => pause,
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                let lease = lock.describe();
                info!(%lease, %error, "no right to watch it: changes are noticed at the next look");
                FORBIDDEN
            }
            Err(error) => {
                debug!(lease = %lock.describe(), error = ?error, "following it failed");
                pause
            }
        };
        seams.clock.sleep(wait.mul_f64(1.0 + 0.2 * seams.entropy.unit())).await;
    }
}
