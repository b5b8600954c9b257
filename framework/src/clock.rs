//! Time that tests can move.
//!
//! All of the framework reads time here and nowhere else. Monotonic time is tokio's, so a paused
//! runtime moves it; wall time is the system's, or in a simulation a fixed epoch plus the
//! monotonic time that passed. There is no third way to wait.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A source of monotonic and wall time; cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock {
    wall: Arc<Wall>,
}

#[derive(Debug)]
enum Wall {
    System,
    Simulated { epoch: Timestamp, started: Instant },
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self { wall: Arc::new(Wall::System) }
    }

    /// A clock whose wall time is `epoch` plus the runtime's elapsed time: with a paused runtime it
    /// is the same in every run. Call it inside the runtime that it serves.
    pub fn simulated(epoch: Timestamp) -> Self {
        Self { wall: Arc::new(Wall::Simulated { epoch, started: Instant::now() }) }
    }

    /// Monotonic now.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Wall-clock now, for time stamps that others read; never for measuring durations.
    pub fn wall(&self) -> Timestamp {
        match &*self.wall {
            Wall::System => Timestamp::now(),
            Wall::Simulated { epoch, started } => {
                let elapsed = jiff::SignedDuration::try_from(started.elapsed()).unwrap_or_default();
                epoch.checked_add(elapsed).unwrap_or(*epoch)
            }
        }
    }

    /// Waits for `duration`.
    ///
    /// # Cancel safety
    /// Safe: dropping it stops the wait.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits until `deadline`.
    ///
    /// # Cancel safety
    /// Safe: dropping it stops the wait.
    pub async fn sleep_until(&self, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
    }

    /// Runs `future` for at most `limit`; `None` when it did not finish in time (it is dropped).
    pub async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::time::timeout(limit, future).await.ok()
    }
}
