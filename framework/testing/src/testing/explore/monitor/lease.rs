//! The lease of two replicas: a hand-over takes it away, and each write is compared with its
//! holder.

// DESIGN.md, 230: Hand-overs are explored in runs of two replicas, which have an undisturbed run of
// their own

use std::time::Duration;

use windlass_apiserver::faults::{FaultAction, ObservedChange, ObservedRequest};

use super::recording::RecordedChange;
use crate::testing::explore::line;

/// Name of the Lease of explored replicas.
pub(in crate::testing::explore) const LEASE: &str = "explored-operator";

/// Holder of the Lease, by user name, and the replica that cannot renew it.
#[derive(Debug, Default)]
pub(super) struct LeaseMonitor {
    holder: Option<String>,
    /// The replica whose requests for the Lease fail, and the virtual time until which they do.
    struck: Option<(String, Duration)>,
}

impl LeaseMonitor {
    /// Lets the holder's requests for the Lease fail until a time.
    pub(super) fn strike(&mut self, until: Duration) {
        self.struck = self.holder.clone().map(|holder| (holder, until));
    }

    /// Returns the action on a request at a time.
    pub(super) fn request(
        &self,
        request: &ObservedRequest<'_>,
        now: Duration,
    ) -> Option<FaultAction> {
        let (user, until) = self.struck.as_ref()?;
        let is_struck = request.resource == "leases" && request.user == user && now < *until;
        is_struck.then_some(FaultAction::Answer(500))
    }

    /// Follows the Lease; returns the sentence about a write by another replica than its holder.
    pub(super) fn changed(
        &mut self,
        change: &ObservedChange<'_>,
        seen: &RecordedChange,
    ) -> Option<String> {
        let user = change.user.filter(|user| line::is_operator(user))?;
        if seen.plural() == "leases" {
            let lease = change.after.filter(|lease| lease["metadata"]["name"] == LEASE)?;
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            self.holder = Some(user.to_owned()).filter(|_| !holder.is_empty());
            return None;
        }
        let holder = self.holder.as_ref().filter(|holder| *holder != user)?;
        seen.is_relevant.then(|| {
            let at = seen.at.as_secs_f64();
            format!(
                "at {at:.1} s replica {user} {} {}, while {holder} held the lease",
                seen.verb, seen.key
            )
        })
    }
}
