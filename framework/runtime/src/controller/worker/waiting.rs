//! Handling of a reconcile that waits: report, metrics, time of the next check.

// DESIGN.md, 156: A wait is neither a success nor a failure

use super::Worker;
use super::attempt::AttemptCancel;
use super::meter::ReconcileResult;
use crate::controller::outcome::action::Wait;
use crate::controller::state::FollowUp;
use crate::workqueue::Work;
use windlass_core::resource::ObjectKey;

impl Worker {
    /// Reports a wait, and chooses the completion of the work, which is given with the next key.
    pub(super) async fn wait_with(
        &self,
        work: Work<ObjectKey>,
        cancel: &AttemptCancel,
        wait: &Wait,
    ) -> (ReconcileResult, Work<ObjectKey>) {
        self.namespaces.ended(work.key());
        // The failures before are over, because the failed part was passed now.
        self.last_errors.succeeded(work.key());
        let record = self.waits.note(work.key(), wait, self.environment.clock.wall());
        if record.is_first {
            self.meter.waiting(1.0);
        }
        if record.is_new && wait.is_stalled {
            tracing::warn!(reason = %wait.reason, "stalled: {}", wait.text);
        } else if record.is_new {
            tracing::info!(reason = %wait.reason, "waiting: {}", wait.text);
        }
        let report = |attempt| self.step.waits(work.key(), (wait, record.is_new), attempt);
        self.report(&work, cancel, report).await;
        let delay = wait.check_after.unwrap_or_else(|| {
            // Up to a tenth less, so that objects which began to wait together drift apart.
            record.bound - self.environment.rng.jitter(record.bound / 10)
        });
        tracing::debug!(reason = %wait.reason, again_in = ?delay, "waiting: {}", wait.text);
        let again = Some(self.environment.clock.after(delay));
        self.step.finish(work.key(), FollowUp { again, has_failed: false });
        (ReconcileResult::RequeueAfter, work.with_success(Some(delay)))
    }

    /// Records that an object does not wait, or not any more.
    pub(super) fn waits_no_more(&self, key: &ObjectKey) {
        if self.waits.ended(key) {
            self.meter.waiting(-1.0);
        }
    }
}
