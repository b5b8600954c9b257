//! State shared by a controller's workers and sources: names of reasons, bursts, pauses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::debounce::{Debounce, DebounceDecision};
use super::paused::Paused;
use super::reasons::{ReasonNames, Reasons};
use windlass_core::resource::ObjectKey;

/// Names of reasons, debouncing and pauses of a controller.
#[derive(Debug, Default)]
pub(crate) struct TriggerNames {
    names: Arc<ReasonNames>,
    debounce: Option<Arc<Debounce>>,
    pub(crate) paused: Paused,
}

impl TriggerNames {
    /// Creates the state with the names of reasons and, if debouncing, the quiet time and its
    /// limit.
    pub(crate) fn new(names: ReasonNames, debounce: Option<(Duration, Duration)>) -> Self {
        let debounce = debounce.map(|(quiet, most)| Arc::new(Debounce::new(quiet, most)));
        Self { names: Arc::new(names), debounce, paused: Paused::default() }
    }

    pub(crate) fn debounce(&self) -> Option<Arc<Debounce>> {
        self.debounce.clone()
    }

    /// Returns the names of these reasons.
    pub(crate) fn named(&self, reasons: u64) -> Reasons {
        Reasons::of(reasons, &self.names)
    }

    /// Whether one of these reasons is a change.
    pub(crate) fn includes_change(&self, reasons: u64) -> bool {
        self.names.includes_change(reasons)
    }

    /// Whether timers and resyncs are the only reasons.
    pub(crate) fn is_timed(&self, reasons: u64) -> bool {
        self.names.are_timed(reasons)
    }

    /// Decides whether a taken key is reconciled now or held until its burst ends.
    pub(crate) fn debounced(
        &self,
        key: &ObjectKey,
        reasons: u64,
        now: Instant,
    ) -> DebounceDecision {
        match &self.debounce {
            Some(debounce) => debounce.check(key, reasons, now),
            None => DebounceDecision::Ready(reasons),
        }
    }
}
