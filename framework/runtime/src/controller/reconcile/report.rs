//! Reports of failures: an Event, a condition in the status, a function of the user.
//!
//! A report is made at the first failure in a row and whenever the text changes, not at each retry:
//! a status that is written every second causes work for all watchers. Reports are limited in time,
//! and their errors have no effect.

// DESIGN.md, 49: Failure reports are sent on change only
// DESIGN.md, 248: The outcome leaves a condition alone that the same reconcile has set

use std::future::Future;

use crate::controller::conditions::reasons;
use crate::controller::worker::{ReportFuture, ReportedFailure};
use crate::controller::{Context, Failure, Reconciler, Result};
use crate::events::Warning;
use windlass_core::conditions::{Condition, met};
use windlass_core::error::Error;

/// Handler of failed reconciles; enabled by
/// [`ControllerBuilder::report_failures`](crate::controller::ControllerBuilder::report_failures).
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::controller::{Failure, OnFailure};
/// use windlass::controller::ControllerBuilder;
/// use windlass::events::Warning;
/// use windlass::prelude::*;
///
/// struct Sites;
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
///         Ok(Action::done())
///     }
/// }
///
/// impl OnFailure for Sites {
///     async fn failed(&self, failure: &Failure, cx: &Context<Self>) -> Result<()> {
///         if failure.gave_up() {
///             cx.event(Warning, "PageOperator", failure);
///         }
///         Ok(())
///     }
/// }
///
/// let builder = ControllerBuilder::<Sites>::new().report_failures();
/// # let _ = builder;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement a report of failures",
    note = "implement `windlass::controller::OnFailure`: `async fn failed(&self, failure, cx)`"
)]
pub trait OnFailure: Reconciler {
    /// Reports that the object was not reconciled: because of an error, a panic, or the deadline.
    /// Called before the next attempt, for the first failure in a row, when the text differs from
    /// the failure before, and when the object is given up ([`Failure::gave_up`]).
    /// [`Context::attempt`] is the number of failures before. Not called for a lost race with
    /// another writer.
    ///
    /// An error, a panic or a run of more than 10 s is logged, and has no other effect.
    ///
    /// # Cancel safety
    /// The future is dropped after 10 s, and at the end of a drain.
    /// # Errors
    /// Any error is logged and does not change the retry.
    fn failed(
        &self,
        failure: &Failure,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// Boxes the call, so that only controllers with reports require [`OnFailure`].
pub(crate) fn boxed_report<'a, C: OnFailure>(
    controller: &'a C,
    failure: &'a Failure,
    cx: &'a Context<C>,
) -> ReportFuture<'a> {
    Box::pin(controller.failed(failure, cx))
}

impl<C: Reconciler> Context<C> {
    /// Reports by an Event that the object was given up.
    pub(crate) fn report_gave_up(&self, reported: ReportedFailure<'_>) {
        let text = format!("gave up after {} failures: {}", reported.failures, reported.failure);
        self.event(Warning, "GaveUp", text);
    }

    /// Sets the condition of that type to success, unless the reconciler has set it: in this
    /// reconcile, or before with a reason that shows no outcome.
    pub(crate) async fn report_success(&self, type_: &str) -> Result<(), Error> {
        if self.has_written(type_) {
            return Ok(());
        }
        // A condition with another reason was set by the reconciler itself.
        let is_ours = |condition: &Condition| reasons::ALL.contains(&condition.reason.as_str());
        if self.condition(type_).await?.is_none_or(|condition| is_ours(&condition)) {
            self.write_condition(met(type_, reasons::RECONCILED, self.remarks())).await?;
        }
        Ok(())
    }
}
