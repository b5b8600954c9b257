//! Tells people that an object is not reconciled: by an Event, by a condition of its status, by a
//! function of the user's.
//!
//! At the first failure of a row and whenever the text changes, not at each retry: a status that is
//! written every second wakes everybody who watches it. What is told is bounded in time, and what
//! fails while telling disturbs nothing.

use std::future::Future;
use std::pin::Pin;

use super::{Context, Failure, Reconciler, Result};
use crate::conditions::{Condition, met, unmet};
use crate::error::Error;
use crate::events::Warning;

/// Reasons of a condition that says why an object is not reconciled.
const FAILED: &str = "ReconcileFailed";
const GAVE_UP: &str = "ReconcileGaveUp";
const TERMINAL: &str = "TerminalError";
/// The reason of one that says that it is.
const RECONCILED: &str = "Reconciled";

/// Is called when a reconcile failed; wired by
/// [`Wiring::report_failures`](super::Wiring::report_failures).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what to do at failures",
    note = "implement `windlass::controller::OnFailure`: `async fn failed(&self, failure, cx)`"
)]
pub trait OnFailure: Reconciler {
    /// Tells somebody that the object was not reconciled: by an error, a panic, or because of its
    /// deadline. Called before the next try, for the first failure in a row, when it says something
    /// else than the one before, and when the object is given up ([`Failure::gave_up`]).
    /// [`Context::attempt`] tells how many failures there were before. Not called for a lost race
    /// with another writer.
    ///
    /// When it fails, panics or takes longer than 10 s, that is logged, and changes nothing.
    ///
    /// # Cancel safety
    /// The future is dropped after 10 s, and at the end of a drain.
    fn failed(
        &self,
        failure: &Failure,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A boxed report.
pub(super) type Reporting<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// How a controller reports.
pub(super) type Report<C> = for<'a> fn(&'a C, &'a Failure, &'a Context<C>) -> Reporting<'a>;

pub(super) fn boxed<'a, C: OnFailure>(
    controller: &'a C,
    failure: &'a Failure,
    cx: &'a Context<C>,
) -> Reporting<'a> {
    Box::pin(controller.failed(failure, cx))
}

/// A failure, and what is new about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) failure: &'a Failure,
    /// Failures in a row, this one included.
    pub(super) failures: u32,
    /// The first in a row, another text than before, or given up just now?
    pub(super) is_news: bool,
    /// Given up just now?
    pub(super) gave_up: bool,
}

impl Told<'_> {
    /// The condition of that type that says so.
    pub(super) fn condition(&self, type_: &str) -> Condition {
        let reason = match self.failure {
            failure if failure.is_terminal() => TERMINAL,
            failure if failure.gave_up() => GAVE_UP,
            _ => FAILED,
        };
        unmet(type_, reason, self.failure.to_string())
    }
}

impl<C: Reconciler> Context<C> {
    /// Reports by an Event that the object was given up.
    pub(super) fn tell_gave_up(&self, told: Told<'_>) {
        let text = format!("gave up after {} failures: {}", told.failures, told.failure);
        self.event(Warning, "GaveUp", text);
    }

    /// After a success: the condition of that type says so, unless the reconciler itself has said
    /// something else in it.
    pub(super) async fn tell_success(&self, type_: &str) -> Result<(), Error> {
        let is_ours = |condition: &Condition| {
            [FAILED, GAVE_UP, TERMINAL, RECONCILED].contains(&condition.reason.as_str())
        };
        if self.condition(type_).await?.is_none_or(|condition| is_ours(&condition)) {
            self.set_condition(met(type_, RECONCILED, "")).await?;
        }
        Ok(())
    }
}
