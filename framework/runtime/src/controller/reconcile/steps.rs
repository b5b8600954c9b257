//! A reconcile that is composed of named steps.
//!
//! Each step is a future, of the reconciler itself or of a shared component. The steps run in
//! sequence; a step may end the reconcile, an error names the step that failed, and a condition may
//! show the outcome of each step:
//!
//! ```
//! # extern crate windlass_runtime as windlass;
//! # use windlass::controller::{Action, Context, Flow, Reconciler, Result, Steps};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # struct Sites;
//! # impl Sites {
//! #     async fn certificate(&self, _: &ConfigMap) -> Result<Flow> { Ok(Flow::Continue) }
//! #     async fn service(&self, _: &ConfigMap) -> Result<()> { Ok(()) }
//! #     async fn dns(&self, _: &ConfigMap) -> Result<Action> { Ok(Action::done()) }
//! # }
//! impl Reconciler for Sites {
//!     type Object = ConfigMap;
//!
//!     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
//!         Steps::new(cx)
//!             .step("certificate", self.certificate(site)).condition("CertificateReady")
//!             .step("service", self.service(site))
//!             .step("dns", self.dns(site))
//!             .run()
//!             .await
//!     }
//! }
//! ```
//!
//! A step may consist of steps: `.step("dns", Steps::new(cx)….run())`. An inner step that stops
//! ends that step with success; the outer sequence continues.
//!
//! Not included: values passed from step to step; results belong into the cluster or into the
//! reconciler's own variables.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::controller::conditions::{ConditionChange, PartCondition, failed, succeeded};
use crate::controller::outcome::failure::Retry;
use crate::controller::{Action, Context, Failure, OwnsConditions, Reconciler, Result};
use windlass_core::conditions::{Condition, ConditionSet, unmet};
use windlass_core::error::Error;
use windlass_core::panics::{caught, panic_text};

/// Reason of a condition after the failure of the step.
const STEP_FAILED: &str = "StepFailed";

/// Continuation of a sequence after a step.
///
/// Most steps return `()` or an [`Action`], which become a flow; the enum itself is for steps that
/// may end the reconcile:
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
/// # struct Sites;
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
/// #         Ok(Action::done())
/// #     }
/// # }
/// use windlass::controller::Flow;
///
/// /// Waits for a certificate, and lets no later step run without one.
/// fn flow(is_issued: bool) -> Flow {
///     let again = Action::requeue_after(std::time::Duration::from_secs(5));
///     if is_issued { Flow::Continue } else { Flow::Stop(again) }
/// }
/// assert_eq!(flow(true), Flow::Continue);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// Continues with the next step.
    Continue,
    /// Continues with the next step; the object is reconciled again after this time at the latest.
    Again(Duration),
    /// Ends the reconcile with success and this action. For a step that waits for an external
    /// condition.
    Stop(Action),
}

impl From<()> for Flow {
    fn from((): ()) -> Self {
        Self::Continue
    }
}

impl From<Action> for Flow {
    /// The sequence continues, and the object is reconciled again as the action says; a wait ends
    /// the sequence.
    fn from(action: Action) -> Self {
        if action.wait.is_some() {
            return Self::Stop(action);
        }
        action.requeue_after.map_or(Self::Continue, Self::Again)
    }
}

type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<Flow>> + Send + 'a>>;

/// A named step with a condition.
struct NamedStep<'a> {
    /// Name in the texts of errors and panics.
    name: &'a str,
    /// The work, not polled before the group runs.
    work: StepFuture<'a>,
    /// Type of the condition that shows the outcome.
    condition: Option<&'a str>,
    /// Type of the declared condition that shows the outcome.
    declared: Option<String>,
}

/// Steps of one reconcile, in order; the steps of one group run at the same time.
#[must_use = "steps do nothing before `run`"]
pub struct Steps<'a, C: Reconciler> {
    /// The reconcile, which writes the conditions.
    cx: &'a Context<C>,
    /// Groups in order; the steps of a group run at the same time.
    groups: Vec<Vec<NamedStep<'a>>>,
}

impl<C: Reconciler> fmt::Debug for Steps<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.groups.iter().flatten().map(|step| step.name);
        f.debug_list().entries(names).finish()
    }
}

impl<'a, C: Reconciler> Steps<'a, C> {
    /// Creates an empty sequence.
    ///
    /// A sequence without steps runs to [`Action::done`].
    pub fn new(cx: &'a Context<C>) -> Self {
        Self { cx, groups: Vec::new() }
    }

    /// Adds a step that starts when the steps before have ended. The name is part of the step's
    /// errors. A step returns `()`, an [`Action`] or a [`Flow`].
    ///
    /// The future is created here and polled by [`run`](Self::run): code before the first `await`
    /// does not run when an earlier step stops or fails.
    pub fn step<F>(
        mut self,
        name: &'a str,
        work: impl Future<Output = Result<F>> + Send + 'a,
    ) -> Self
    where
        F: Into<Flow>,
    {
        self.groups.push(vec![step(name, work)]);
        self
    }

    /// Adds a step that runs at the same time as the step before it. The next [`step`](Self::step)
    /// starts when all of them have ended; all run to completion, also when another step fails or
    /// stops.
    ///
    /// For steps that wait for different systems. The steps share a task, so code without `await`
    /// runs in sequence. The first `beside` of a sequence is a group of its own.
    pub fn beside<F>(
        mut self,
        name: &'a str,
        work: impl Future<Output = Result<F>> + Send + 'a,
    ) -> Self
    where
        F: Into<Flow>,
    {
        let step = step(name, work);
        match self.groups.last_mut() {
            Some(group) => group.push(step),
            None => self.groups.push(vec![step]),
        }
        self
    }

    /// Shows the outcome of the last added step in a condition of that type: true when the step
    /// succeeded, false when the step failed (`StepFailed`, with the error) or stopped (`Waiting`).
    /// The condition stays unchanged for a step that is not reached, and for a step that panics.
    pub fn condition(mut self, type_: &'a str) -> Self {
        if let Some(step) = self.groups.last_mut().and_then(|group| group.last_mut()) {
            step.condition = Some(type_);
        }
        self
    }

    /// Shows the outcome of the last added step in a condition that the controller declares
    /// ([`conditions`](crate::controller::ControllerBuilder::conditions)): true when the step
    /// succeeded, false when the step failed (`StepFailed`, with the error), waits (with the reason
    /// of the wait) or stopped (`Waiting`). The condition is written with all others at the end of
    /// the reconcile, and `Ready` follows if this condition is among `ready(all(…))`.
    ///
    /// For a step that is not reached, and for one that panics, the condition stays unchanged. A
    /// condition of `stalled_on(…)` is true after a [terminal](Failure::terminal) failure of the
    /// step, with the error, and goes when the step succeeds, waits or stops; another failure
    /// leaves the condition unchanged.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::conditions::{ConditionSet, ConditionType, ConditionTypes};
    /// # use windlass::controller::{Context, OwnsConditions, Reconciler, Result, Steps};
    /// # enum SiteCondition { Certified }
    /// # impl ConditionType for SiteCondition {
    /// #     fn as_str(&self) -> &str { "Certified" }
    /// # }
    /// # impl ConditionSet for SiteCondition {
    /// #     const TYPES: ConditionTypes = ConditionTypes {
    /// #         root: "Ready", ready: &["Certified"], stalled_on: &[], others: &[],
    /// #     };
    /// # }
    /// # struct Sites;
    /// # impl OwnsConditions<SiteCondition> for Sites {}
    /// # impl Sites {
    /// #     async fn certificate(&self, _: &ConfigMap) -> Result<()> { Ok(()) }
    /// # }
    /// impl Reconciler for Sites {
    ///     type Object = ConfigMap;
    ///
    ///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
    ///         let steps = Steps::new(cx).step("certificate", self.certificate(site));
    ///         steps.sets(&SiteCondition::Certified).run().await
    ///     }
    /// }
    /// ```
    pub fn sets<T: ConditionSet>(mut self, condition: &T) -> Self
    where
        C: OwnsConditions<T>,
    {
        if let Some(step) = self.groups.last_mut().and_then(|group| group.last_mut()) {
            step.declared = Some(condition.as_str().to_owned());
        }
        self
    }

    /// Runs the steps. The returned action requeues at the earliest time that a step asked for.
    ///
    /// # Errors
    /// The failure of the first group in which a step failed, with the step's name. Among several
    /// failures in a group a failure retried with backoff comes first, else the failure with the
    /// shortest delay: a terminal failure does not keep the other steps from being retried. The
    /// texts of the other failures follow; an error of writing a condition precedes them. When no
    /// step failed, such an error alone is returned.
    ///
    /// # Cancel safety
    /// Dropping the future drops the running step.
    pub async fn run(self) -> Result<Action> {
        let mut again: Option<Duration> = None;
        for group in self.groups {
            match run_group(self.cx, group).await? {
                Flow::Continue => {}
                Flow::Again(delay) => again = earliest(again, Some(delay)),
                Flow::Stop(action) => {
                    let requeue_after = earliest(again, action.requeue_after);
                    return Ok(Action { requeue_after, ..action });
                }
            }
        }
        Ok(Action { requeue_after: again, wait: None })
    }
}

/// Boxes a step, and puts its name into the text of a panic.
fn step<'a, F: Into<Flow>>(
    name: &'a str,
    work: impl Future<Output = Result<F>> + Send + 'a,
) -> NamedStep<'a> {
    let work = Box::pin(async move {
        match caught(work).await {
            Ok(end) => end.map(Into::into),
            // The panic goes on, with the step's name in its text.
            Err(panic) => {
                resume_unwind(Box::new(format!("step \"{name}\": {}", panic_text(&*panic))))
            }
        }
    });
    NamedStep { name, work, condition: None, declared: None }
}

/// Returns the shorter of two delays; `None` is no delay.
fn earliest(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

/// Runs the steps of a group, and writes their conditions.
///
/// All steps have ended when the first condition is written, so a condition never shows a step that
/// is still running.
async fn run_group<C: Reconciler>(cx: &Context<C>, mut group: Vec<NamedStep<'_>>) -> Result<Flow> {
    let ends = all_ended(&mut group).await;
    let mut flow = Flow::Continue;
    let mut failures = Vec::new();
    let mut unwritten: Option<Error> = None;
    for (step, end) in group.into_iter().zip(ends) {
        if let Some(type_) = &step.declared
            && let Some(change) = change(cx.part_condition(type_), &end)
        {
            cx.collect(change);
        }
        // Written in sequence: writes at the same time would conflict.
        if let Some(type_) = step.condition
            && let Err(error) = cx.set_condition(condition(type_, &end)).await
        {
            // The step's own outcome decides about the retry.
            unwritten.get_or_insert(error);
        }
        match end {
            Ok(next) => flow = merged(flow, next),
            Err(error) => failures.push(error.tried(format!("step \"{}\"", step.name))),
        }
    }
    match (soonest(failures), unwritten) {
        (None, None) => Ok(flow),
        (None, Some(error)) => Err(error.into()),
        (Some(failure), None) => Err(failure),
        (Some(failure), Some(error)) => {
            Err(failure.tried(format!("(a condition was not written: {error}) and")))
        }
    }
}

/// Returns the failure that is retried first, with the texts of the others behind its own text.
pub(crate) fn soonest(mut failures: Vec<Failure>) -> Option<Failure> {
    let order = |failure: &Failure| match failure.retry {
        Retry::Backoff => (0, Duration::ZERO),
        Retry::After(delay) => (1, delay),
        Retry::Never => (2, Duration::ZERO),
        Retry::Waiting => (3, Duration::ZERO),
    };
    let (at, _) = failures.iter().enumerate().min_by_key(|(_, failure)| order(failure))?;
    let failure = failures.remove(at);
    Some(failures.into_iter().fold(failure, Failure::and))
}

/// Runs futures at the same time, each to completion.
async fn all_ended(group: &mut [NamedStep<'_>]) -> Vec<Result<Flow>> {
    let mut ends: Vec<Option<Result<Flow>>> = group.iter().map(|_| None).collect();
    poll_fn(|task| {
        // All unfinished futures are polled at each wake-up: they share the task's waker.
        for (step, end) in group.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let Poll::Ready(result) = step.work.as_mut().poll(task)
            {
                *end = Some(result);
            }
        }
        if ends.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ends.into_iter().flatten().collect()
}

/// Returns the change of a declared condition after a step; `None` if the end of the step leaves
/// the condition unchanged.
fn change(part: PartCondition<'_>, end: &Result<Flow>) -> Option<ConditionChange> {
    match end {
        _ if !part.is_stalling => Some(ConditionChange::Set(condition(part.type_, end))),
        Ok(Flow::Continue | Flow::Again(_)) => Some(part.succeeded()),
        Ok(Flow::Stop(_)) => None,
        Err(failure) => part.failed(failure, STEP_FAILED),
    }
}

/// Returns the condition for the end of a step.
fn condition(type_: &str, end: &Result<Flow>) -> Condition {
    match end {
        Ok(Flow::Continue | Flow::Again(_)) => succeeded(type_),
        Ok(Flow::Stop(Action { wait: Some(wait), .. })) => {
            unmet(type_, &wait.reason, wait.text.clone())
        }
        Ok(Flow::Stop(_)) => unmet(type_, "Waiting", ""),
        Err(failure) => failed(type_, failure, STEP_FAILED),
    }
}

/// Merges the flows of a group: a stop wins, a stall or else the first wait, and the earlier of two
/// times.
fn merged(a: Flow, b: Flow) -> Flow {
    let is_stop = matches!(a, Flow::Stop(_)) || matches!(b, Flow::Stop(_));
    let action = |flow| match flow {
        Flow::Continue => Action::done(),
        Flow::Again(delay) => Action::requeue_after(delay),
        Flow::Stop(action) => action,
    };
    let (a, b) = (action(a), action(b));
    let requeue_after = earliest(a.requeue_after, b.requeue_after);
    if is_stop {
        let is_stalled = |it: &Action| it.wait.as_ref().is_some_and(|wait| wait.is_stalled);
        let wait = if is_stalled(&a) || !is_stalled(&b) { a.wait.or(b.wait) } else { b.wait };
        return Flow::Stop(Action { requeue_after, wait });
    }
    requeue_after.map_or(Flow::Continue, Flow::Again)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns reason and delay with which a group of two steps stops.
    fn stopped(first: Action, second: Action) -> (String, Option<Duration>) {
        match merged(first.into(), second.into()) {
            Flow::Stop(Action { requeue_after, wait: Some(wait) }) => {
                (wait.reason.into_owned(), requeue_after)
            }
            other => panic!("no wait: {other:?}"),
        }
    }

    #[test]
    fn of_steps_that_wait_at_the_same_time_a_stalled_one_is_shown_or_else_the_first() {
        let wait = |reason: &'static str| Action::wait_for(reason, "");
        let stalled = |reason: &'static str| Action::stalled(reason, String::new());
        let shown = |first, second| stopped(first, second).0;
        assert_eq!(shown(wait("Slow"), wait("Slower")), "Slow");
        assert_eq!(shown(stalled("Stuck"), wait("Slow")), "Stuck");
        assert_eq!(shown(wait("Slow"), stalled("Stuck")), "Stuck");
        assert_eq!(shown(stalled("Stuck"), stalled("Broken")), "Stuck");
    }

    #[test]
    fn a_step_that_waits_stops_its_group_whatever_the_others_return() {
        let wait = || Action::wait_for("Slow", "");
        let again = || Action::requeue_after(SECOND);
        assert_eq!(stopped(wait(), again()), ("Slow".to_owned(), Some(SECOND)));
        assert_eq!(stopped(again(), wait()), ("Slow".to_owned(), Some(SECOND)));
        assert_eq!(stopped(Action::done(), wait()), ("Slow".to_owned(), None));
        assert_eq!(merged(again().into(), Action::done().into()), Flow::Again(SECOND));
    }
}
