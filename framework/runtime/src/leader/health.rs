//! Health check of an election: unhealthy when the lease has expired and the term has not ended.

use std::time::Duration;

use parking_lot::Mutex;

use super::elector::Elector;
use windlass_core::error::{Error, ErrorKind};

/// A health check of an election, client-go's `HealthzAdaptor`: fails when the lease ended longer
/// ago than the tolerance and the term did not end with the lease, which means that the election is
/// stuck and the process should be restarted.
///
/// A manager has this check as `leaderElection` in `/healthz` by itself; the adaptor is for
/// programs that run an [`Elector`] directly.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::client::Client;
/// # fn example(client: Client) -> Result<(), windlass::Error> {
/// use std::time::Duration;
/// use windlass::leader::{Elector, HealthzAdaptor, LeaderElection};
///
/// let health = HealthzAdaptor::new(Duration::from_secs(20));
/// health.check()?; // passes: there is no election yet
/// health.set_leader_election(Elector::new(LeaderElection::new("nightly-report"), &client)?);
/// health.check()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HealthzAdaptor {
    /// Time beyond the end of the lease that counts as slow, and not as stuck.
    tolerance: Duration,
    /// The election; set once the program has made one.
    elector: Mutex<Option<Elector>>,
}

impl HealthzAdaptor {
    /// Creates a check that allows `tolerance` beyond the end of the lease; Kubernetes' own
    /// components use 20 s.
    pub fn new(tolerance: Duration) -> Self {
        Self { tolerance, elector: Mutex::new(None) }
    }

    /// Name of this check among the others: `leaderElection`.
    pub fn name(&self) -> &'static str {
        "leaderElection"
    }

    /// Sets the election to check; without one the check passes.
    pub fn set_leader_election(&self, elector: Elector) {
        *self.elector.lock() = Some(elector);
    }

    /// Checks that the election is alive.
    ///
    /// # Errors
    /// [`ErrorKind::NotLeader`] when the lease is over for longer than the tolerance.
    pub fn check(&self) -> Result<(), Error> {
        // Cloned, so that the lock is not held while the gate's is taken.
        let elector = self.elector.lock().clone();
        let overdue = elector.as_ref().and_then(Elector::overdue);
        match overdue.filter(|overdue| *overdue > self.tolerance) {
            None => Ok(()),
            Some(overdue) => {
                let text = format!(
                    "the lease ended {} s ago and the election did not notice; restart the process",
                    overdue.as_secs()
                );
                Err(Error::new(ErrorKind::NotLeader, text))
            }
        }
    }
}
