//! Settings of a controller, as completed by the builder: identity, sources, permissions, and the
//! options of each reconcile. The builder writes the settings; a run and its reconciles read them.
//!
//! Nothing here changes after [`build`](super::ControllerBuilder::build): all runs of a controller,
//! in all terms of leadership, share one value without a lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::conditions::StatusConditions;
use super::context::{Context, TaskContext};
use super::source::{BackgroundSource, Predicate, ReasonNames, Source};
use super::worker::{AfterMaxRetries, LoopGuard, Rate, ReportFuture};
use super::{ChangeLog, Failure, Reconciler, Result};
use crate::workqueue::RetryPolicy;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::Rule;
use windlass_core::resource::ResourceInfo;

/// Settings of a controller, as completed by the builder.
pub(super) struct ControllerSpec<C: Reconciler> {
    /// The reconciled kind.
    pub(super) info: ResourceInfo,
    /// Name in metrics, logs, Events and `managedFields`.
    pub(super) name: Arc<str>,
    /// Number of worker tasks, unless the manager sets another number for all controllers.
    pub(super) workers: usize,
    /// Deadline of a reconcile; `Duration::MAX` for none.
    pub(super) timeout: Duration,
    /// Backoff of failed keys, and the number of retries.
    pub(super) retry: RetryPolicy,
    /// The finalizer, for a controller with a finalizer.
    pub(super) finalizer: Option<Finalizer<C>>,
    /// A finalizer that objects may have of an earlier version of the controller: never added, and
    /// removed after the clean-ups when an object is deleted.
    pub(super) former: Vec<Finalizer<C>>,
    /// The drivers of external resources that are known before a reconcile.
    pub(super) drivers: Vec<DriverNames<C>>,
    /// Permissions, merged: those of all sources, of Events, and those added by `can`.
    pub(super) rules: Vec<Rule>,
    /// The permissions among them that `can(…)` grants, each with a single verb, and the texts.
    pub(super) granted: Vec<(String, Rule)>,
    /// Watches, in the order of the builder's calls; attached once, before the caches start.
    pub(super) sources: Vec<Source>,
    /// Settings that each reconcile reads.
    pub(super) options: ReconcileOptions<C>,
    /// Names of the reasons, by bit.
    pub(super) names: ReasonNames,
    /// Filter of the reconciled kind's changes; `None` passes all.
    pub(super) when: Option<Predicate<C::Object>>,
    /// Triggers, polls, timers and the resync, which run beside the workers.
    pub(super) background_sources: Vec<Arc<dyn BackgroundSource>>,
    /// Quiet time and longest wait of a burst.
    pub(super) debounce: Option<(Duration, Duration)>,
}

impl<C: Reconciler> ControllerSpec<C> {
    /// Returns the names of the drivers that `is_meant` picks.
    pub(super) fn driver_names(
        &self,
        controller: &C,
        is_meant: impl Fn(&DriverNames<C>) -> bool,
    ) -> Vec<String> {
        let meant = self.drivers.iter().filter(|it| is_meant(it));
        meant.flat_map(|it| (it.names)(controller)).collect()
    }

    /// Checks the conditions of the handlers.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a condition that the controller does not keep.
    pub(super) fn check_handlers(&self) -> std::result::Result<(), Error> {
        let declared = self.options.conditions.map(|kept| kept.declared);
        for ChangeHandler { field, condition, .. } in &self.options.on_change {
            let Some(type_) = condition else { continue };
            if declared.is_some_and(|declared| declared.contains(type_)) {
                continue;
            }
            let text = format!(
                "cannot show the outcome of the handler of {field} in the condition `{type_}` of {}: the \
                 controller does not keep it; declare it by `conditions(…)`",
                self.info.kind
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(())
    }
}

/// A boxed clean-up future.
pub(super) type Cleanup<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// The function [`Finalize::cleanup`](super::Finalize::cleanup) or the clean-up of a graph, boxed
/// so that controllers without a finalizer need not implement the trait.
pub(super) type CleanupFn<C> =
    for<'a> fn(&'a C, &'a <C as Reconciler>::Object, &'a Context<C>) -> Cleanup<'a>;

/// Names of drivers of external resources.
pub(super) struct DriverNames<C> {
    pub(super) names: fn(&C) -> Vec<String>,
    /// Whether they are fields of a graph.
    pub(super) are_fields: bool,
}

/// A finalizer's name, and the clean-ups that run before its removal.
pub(super) struct Finalizer<C: Reconciler> {
    pub(super) name: String,
    /// Run in sequence: each after the success of the one before.
    pub(super) cleanups: Vec<CleanupFn<C>>,
}

/// Settings that apply to each reconcile.
pub(super) struct ReconcileOptions<C: Reconciler> {
    /// The action when the retries of an object are used up.
    pub(super) after_max_retries: AfterMaxRetries,
    /// The caller of `OnFailure::failed`, if the controller enables reports.
    pub(super) report: Option<Report<C>>,
    /// Whether repeated failures are reported, too.
    pub(super) reports_every_failure: bool,
    /// Type of the condition that shows the outcome of the last reconcile.
    pub(super) outcome: Option<String>,
    /// The conditions that are kept, if there are some; then there is no `outcome`.
    pub(super) conditions: Option<StatusConditions>,
    /// Whether a superseded reconcile is dropped and started again.
    pub(super) drops_superseded: bool,
    /// Byte limit for the last reconciled states; 0 keeps none.
    pub(super) tracked_bytes: usize,
    /// Constructor of each object's task, for a controller that has tasks.
    pub(super) task: Option<MakeTask<C>>,
    /// Limit from which on an object counts as reconciled endlessly.
    pub(super) guard: LoopGuard,
    /// Most reconciles of an object within a time; `None` for no limit.
    pub(super) rate: Option<Rate>,
    /// Detail in which writes are logged, unless the manager sets another detail for all
    /// controllers.
    pub(super) change_log: ChangeLog,
    /// Handlers of changed fields, in the order in which they run.
    pub(super) on_change: Vec<ChangeHandler<C>>,
}

impl<C: Reconciler> Default for ReconcileOptions<C> {
    fn default() -> Self {
        Self {
            after_max_retries: AfterMaxRetries::Rest,
            report: None,
            reports_every_failure: false,
            outcome: None,
            conditions: None,
            drops_superseded: false,
            tracked_bytes: 0,
            task: None,
            guard: LoopGuard::default(),
            rate: None,
            change_log: ChangeLog::Off,
            on_change: Vec::new(),
        }
    }
}

/// Handler of a field, run before the reconciler when the field has changed.
pub(super) struct ChangeHandler<C: Reconciler> {
    /// The field, for the text of a failure.
    pub(super) field: &'static str,
    /// Whether the field is equal in both states.
    pub(super) is_same: fn(&C::Object, &C::Object) -> bool,
    pub(super) run: for<'a> fn(&'a C, &'a C::Object, &'a Context<C>) -> Cleanup<'a>,
    /// Type of the declared condition that shows the outcome.
    pub(super) condition: Option<String>,
}

/// The controller's report function.
pub(super) type Report<C> = for<'a> fn(&'a C, &'a Failure, &'a Context<C>) -> ReportFuture<'a>;

/// A boxed task future.
pub(super) type TaskFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Constructor of the task of an object.
pub(super) type MakeTask<C> = for<'a> fn(&'a C, TaskContext<C>) -> TaskFuture<'a>;
