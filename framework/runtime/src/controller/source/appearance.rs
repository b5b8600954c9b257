//! Reconciles all objects when a kind of their children appears.
//!
//! A kind that appears has no objects yet, so that no watch shows a change.

// DESIGN.md, 214: The appearance of a kind wakes all objects of a graph that needs it

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::background::{BackgroundFuture, BackgroundRun, BackgroundSource};
use super::reasons::Reason;
use super::watches::Attach;
use windlass_core::resource::Resource;

/// Interval at which the cache is asked, which looks for an absent kind as often.
const INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait for the first list of a kind, before the first reconcile.
const FIRST_LIST: Duration = Duration::from_secs(10);
/// Interval at which the first list is looked for.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);

/// State of a kind in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Neither listed nor known to be absent.
    Unknown,
    Absent,
    Listed,
}

type PresenceFn = Box<dyn Fn() -> Presence + Send + Sync>;

/// The appearance of a kind.
pub(crate) struct Appearance {
    reason: Reason,
    /// Whether nothing else waits for the first list before the first reconcile.
    is_optional: bool,
    probe: OnceLock<PresenceFn>,
}

impl Appearance {
    pub(crate) fn new(reason: Reason, is_optional: bool) -> Arc<Self> {
        Arc::new(Self { reason, is_optional, probe: OnceLock::new() })
    }

    /// Connects the cache of the kind.
    pub(crate) fn attach<K: Resource>(&self, at: &Attach<'_>) {
        let informer = at.informers.informer::<K>();
        let probe = move || {
            let status = informer.status();
            match (status.is_absent, status.synced) {
                (true, _) => Presence::Absent,
                (false, true) => Presence::Listed,
                (false, false) => Presence::Unknown,
            }
        };
        // A controller is attached once.
        let _ = self.probe.set(Box::new(probe));
    }

    fn presence(&self) -> Presence {
        self.probe.get().map_or(Presence::Unknown, |probe| probe())
    }
}

impl BackgroundSource for Appearance {
    /// Waits for the children that exist: without them nothing of a graph could be removed.
    fn prepare(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        Box::pin(async move {
            let clock = &run.environment.clock;
            let known = async {
                while self.presence() == Presence::Unknown {
                    clock.sleep(FIRST_INTERVAL).await;
                }
            };
            if self.is_optional {
                clock.timeout(FIRST_LIST, known).await;
            }
        })
    }

    fn run(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        Box::pin(async move {
            let mut was_listed = self.presence() == Presence::Listed;
            loop {
                run.environment.clock.sleep(INTERVAL).await;
                let is_listed = self.presence() == Presence::Listed;
                if is_listed && !was_listed {
                    run.enqueuer.enqueue_now(run.objects.keys(&|_| true), self.reason);
                }
                was_listed = is_listed;
            }
        })
    }
}
