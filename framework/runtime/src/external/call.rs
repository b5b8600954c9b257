//! One call of a provider: permit, deadline, cancellation, count.

use std::future::Future;
use std::time::Duration;

use super::Externals;
use crate::controller::{Context, Failure, Reconciler, Result};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Observe,
    Find,
    Create,
    Update,
    Delete,
}

impl CallKind {
    /// The label of the metric.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Find => "find",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// Whether the call changes nothing, so that it may be cut off at any time.
    fn is_read(self) -> bool {
        matches!(self, Self::Observe | Self::Find)
    }
}

/// Reason for which a call has no result.
pub(super) enum NoResult<X> {
    /// The provider returned an error.
    Error(X),
    /// The call was cut off.
    CutOff(Failure),
}

impl NoResult<Failure> {
    pub(super) fn failure(self) -> Failure {
        match self {
            Self::Error(failure) | Self::CutOff(failure) => failure,
        }
    }
}

/// Counts a call.
pub(super) fn count<C: Reconciler>(cx: &Context<C>, verb: CallKind, result: &str) {
    let labels = [cx.controller_name(), verb.name(), result];
    cx.metrics().count(&names::EXTERNAL_CALLS, &labels, 1);
}

/// Waits for a permit of the provider's rate limiter, at most for the time of a call. Never after
/// the reconcile was asked to end: no call begins then.
pub(super) async fn permit<E, C: Reconciler>(
    externals: &Externals<E>,
    cx: &Context<C>,
) -> Result<()> {
    if cx.cancellation().is_cancelled() {
        return Err(cancelled());
    }
    let Some(limiter) = &externals.limiter else { return Ok(()) };
    let deadline = cx.clock().now() + externals.call_timeout;
    tokio::select! {
        biased;
        permit = limiter.accept(Some(deadline)) => {
            permit.map_err(|error| Failure::wait_for("ExternalRateLimited", error))
        }
        () = cx.cancellation().cancelled() => Err(cancelled()),
    }
}

/// Makes a call with a deadline; `result_of` is the label of an error.
pub(super) async fn run<C: Reconciler, T, X>(
    cx: &Context<C>,
    (verb, limit): (CallKind, Duration),
    call: impl Future<Output = Result<T, X>> + Send,
    result_of: impl Fn(&X) -> &'static str,
) -> Result<T, NoResult<X>> {
    tracing::debug!(verb = verb.name(), "calling the provider");
    let ended = tokio::select! {
        biased;
        ended = cx.clock().timeout(limit, call) => ended,
        // A write is not cut off: its outcome would be unknown for nothing. It ends by its
        // deadline, or with the drain.
        () = cx.cancellation().cancelled(), if verb.is_read() => {
            count(cx, verb, "cancelled");
            return Err(NoResult::CutOff(cancelled()));
        }
    };
    match ended {
        Some(Ok(value)) => {
            count(cx, verb, "success");
            Ok(value)
        }
        Some(Err(error)) => {
            count(cx, verb, result_of(&error));
            Err(NoResult::Error(error))
        }
        None => {
            count(cx, verb, "timeout");
            let text = format!("the provider did not answer within {} s", limit.as_secs_f64());
            Err(NoResult::CutOff(Error::new(ErrorKind::Timeout, text).into()))
        }
    }
}

fn cancelled() -> Failure {
    Error::new(ErrorKind::Cancelled, "the reconcile ends before the next call of the provider")
        .into()
}
