//! Activity of an operator in a test: its writes with the reasons of their reconciles, and what it
//! covers.

mod coverage;
mod ongoing;
#[cfg(test)]
mod tests;

pub use self::coverage::CoverageReport;
pub(super) use self::ongoing::OngoingReconciles;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use windlass_client::client::{ObservedRequest, RequestObserver};
use windlass_core::clock::Clock;
use windlass_runtime::controller::{ObservedReconcile, ReconcileEnd, ReconcileObserver};

use super::grants::Record;
use super::target::RequestTarget;

/// Most writes that are kept.
const WRITES: usize = 256;

/// Activity of one operator.
#[derive(Debug)]
pub(super) struct Activity {
    clock: Clock,
    began: Instant,
    pub(super) record: Arc<Record>,
    work: OngoingReconciles,
    /// The last writes, oldest first.
    writes: Mutex<VecDeque<AnsweredWrite>>,
    coverage: Mutex<CoverageReport>,
}

/// A write that was answered.
#[derive(Clone, Debug)]
struct AnsweredWrite {
    at: Duration,
    text: String,
    /// Code of an answer that is an error.
    failed: Option<u16>,
    because: String,
}

impl fmt::Display for AnsweredWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {}", self.at.as_secs_f64(), self.text)?;
        if let Some(code) = self.failed {
            write!(f, ": refused with {code}")?;
        }
        if self.because.is_empty() { Ok(()) } else { write!(f, "  [{}]", self.because) }
    }
}

impl Activity {
    /// Begins with the conditions and controllers of an operator.
    pub(super) fn new(clock: &Clock, coverage: CoverageReport) -> Self {
        Self {
            clock: clock.clone(),
            began: clock.now(),
            record: Arc::default(),
            work: OngoingReconciles::default(),
            writes: Mutex::default(),
            coverage: Mutex::new(coverage),
        }
    }

    /// Returns the coverage so far.
    pub(super) fn coverage(&self) -> CoverageReport {
        self.coverage.lock().clone()
    }

    /// Returns the last writes, a line each; empty without any.
    pub(super) fn timeline(&self) -> String {
        let writes = self.writes.lock();
        writes.iter().map(|write| format!("{write}\n")).collect()
    }
}

impl RequestObserver for Activity {
    fn answered(&self, request: ObservedRequest<'_>) {
        self.record.answered(request);
        if matches!(request.verb, "get" | "list" | "watch") {
            return;
        }
        let Some(mut target) = RequestTarget::of(request.path) else { return };
        // Renewals would push everything else out.
        if target.plural == "leases" {
            return;
        }
        let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
        if target.name.is_empty() {
            let text = |field: &str| body["metadata"][field].as_str().map(str::to_owned);
            let generated = || text("generateName").map(|beginning| format!("{beginning}*"));
            target.name = text("name").or_else(generated).unwrap_or_default();
        }
        self.coverage.lock().wrote(&target, &body, request.failed.is_none());
        if target.plural == "events" {
            return;
        }
        let RequestTarget { namespace, name, subresource, .. } = &target;
        let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        let slash = if namespace.is_empty() { "" } else { "/" };
        let verb = if request.is_apply { "apply" } else { request.verb };
        let write = AnsweredWrite {
            at: self.clock.now().saturating_duration_since(self.began),
            text: format!("{verb} {}{part} {namespace}{slash}{name}", target.resource()),
            failed: request.failed,
            because: self.work.behind(&target.plural, name, &body),
        };
        let mut writes = self.writes.lock();
        if writes.len() == WRITES {
            writes.pop_front();
        }
        writes.push_back(write);
    }
}

impl ReconcileObserver for Activity {
    fn began(&self, reconcile: &ObservedReconcile) {
        self.work.began(reconcile);
    }

    fn ended(&self, reconcile: &ObservedReconcile, end: ReconcileEnd) {
        self.coverage.lock().reconciled(reconcile, &end);
        self.work.ended(reconcile, end);
    }
}
