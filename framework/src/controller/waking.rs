//! What a controller's workers share with its sources: the names of reasons, bursts, and pauses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::debounce::{Debounce, Quiet};
use super::paused::Paused;
use super::reasons::{Names, Reasons};
use crate::resource::ObjectKey;

/// What decides about a key before it is reconciled.
#[derive(Debug, Default)]
pub(super) struct Waking {
    names: Arc<Names>,
    debounce: Option<Arc<Debounce>>,
    pub(super) paused: Paused,
}

impl Waking {
    /// With the names of its reasons, and how long bursts are waited for.
    pub(super) fn new(names: Names, debounce: Option<(Duration, Duration)>) -> Self {
        let debounce = debounce.map(|(quiet, most)| Arc::new(Debounce::new(quiet, most)));
        Self { names: Arc::new(names), debounce, paused: Paused::default() }
    }

    pub(super) fn debounce(&self) -> Option<Arc<Debounce>> {
        self.debounce.clone()
    }

    /// Reasons by their names.
    pub(super) fn named(&self, reasons: u64) -> Reasons {
        Reasons::of(reasons, &self.names)
    }

    /// Did something happen, if these are the reasons?
    pub(super) fn tells_a_change(&self, reasons: u64) -> bool {
        self.names.tell_a_change(reasons)
    }

    /// Was it merely time to look, by a timer or a resync?
    pub(super) fn is_timed(&self, reasons: u64) -> bool {
        self.names.are_timed(reasons)
    }

    /// A key's turn has come, for these reasons.
    pub(super) fn ask(&self, key: &ObjectKey, reasons: u64, now: Instant) -> Quiet {
        match &self.debounce {
            Some(debounce) => debounce.ask(key, reasons, now),
            None => Quiet::Now(reasons),
        }
    }
}
