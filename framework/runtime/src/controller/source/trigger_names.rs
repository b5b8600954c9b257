//! State shared by a controller's workers and sources: names of reasons, bursts, pauses.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::debounce::{Debounce, DebounceDecision};
use super::paused::Paused;
use super::reasons::{Reason, ReasonNames, Reasons};
use crate::controller::state::RegisteredReads;
use windlass_core::resource::ObjectKey;

/// Names of reasons, debouncing and pauses of a controller.
#[derive(Debug, Default)]
pub(crate) struct TriggerNames {
    names: Arc<ReasonNames>,
    debounce: Option<Arc<Debounce>>,
    pub(crate) paused: Paused,
    /// Reads of objects, which name the changes for which they wake.
    pub(crate) reads: Arc<RegisteredReads>,
}

impl TriggerNames {
    /// Creates the state with the names of reasons and, if debouncing, the quiet time and the
    /// limit.
    pub(crate) fn new(names: ReasonNames, debounce: Option<(Duration, Duration)>) -> Self {
        let debounce = debounce.map(|(quiet, most)| Arc::new(Debounce::new(quiet, most)));
        let (paused, reads) = (Paused::default(), Arc::default());
        Self { names: Arc::new(names), debounce, paused, reads }
    }

    pub(crate) fn debounce(&self) -> Option<Arc<Debounce>> {
        self.debounce.clone()
    }

    /// Returns the names of these reasons.
    pub(crate) fn named(&self, reasons: u64) -> Reasons {
        Reasons::of(reasons, &self.names)
    }

    /// Returns the names of these reasons of a reconcile of `key` that begins, or has begun.
    pub(crate) fn named_for(&self, key: &ObjectKey, reasons: u64) -> Reasons {
        self.with_reads(reasons, || self.reads.causes(key))
    }

    /// Returns the names of these reasons for which `key` is queued.
    pub(crate) fn named_next(&self, key: &ObjectKey, reasons: u64) -> Reasons {
        self.with_reads(reasons, || self.reads.next_causes(key))
    }

    /// Makes the noted changes of read objects reasons of the reconcile that begins.
    pub(crate) fn take_causes(&self, key: &ObjectKey, reasons: u64) {
        if reasons & Reason::READ.bit() != 0 {
            self.reads.take_causes(key);
        }
    }

    /// Names reasons, and the changes if any of the reasons is a read.
    fn with_reads(&self, reasons: u64, causes: impl FnOnce() -> Vec<Arc<str>>) -> Reasons {
        let named = self.named(reasons);
        if reasons & Reason::READ.bit() == 0 { named } else { named.with_reads(causes()) }
    }

    /// Whether any of these reasons is a change.
    pub(crate) fn includes_change(&self, reasons: u64) -> bool {
        self.names.includes_change(reasons)
    }

    /// Whether timers and resyncs are the only reasons.
    pub(crate) fn is_timed(&self, reasons: u64) -> bool {
        self.names.are_timed(reasons)
    }

    /// Decides whether a taken key is reconciled now or held until the burst ends.
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
