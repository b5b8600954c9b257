//! Outcome of a run.

use std::time::Duration;

use super::monitor::{Observed, Recording};
use super::varying::names::Snapshot;

/// Outcome of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) recording: Recording,
    /// Objects at the end, before the last restart.
    pub(super) end: Snapshot,
    /// Whether each object's parts are about its generation, at that end.
    pub(super) observed: Observed,
    /// Number of the first change after the last restart, or after the first half of the time of a
    /// run that goes on.
    pub(super) restart: usize,
    /// The reason for which the run did not reach its end.
    pub(super) failure: Option<String>,
    /// Whether the failure is a panic of the workload itself.
    pub(super) has_panicked: bool,
    /// Parts that were not at rest at the end, a sentence each.
    pub(super) busy: Vec<String>,
}

impl Outcome {
    /// Returns the virtual time from the last disturbance or step of a user to the operator's last
    /// change.
    pub(super) fn rest(&self) -> Duration {
        self.recording.rest(self.restart)
    }
}
