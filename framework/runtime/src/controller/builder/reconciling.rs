//! Settings of a builder that concern each reconcile: reports, conditions, limits, tasks.
//!
//! Each setting changes a field of `ReconcileOptions`; the reports, conditions and tasks that a
//! controller does not ask for cost nothing.

use std::time::Duration;

use super::ControllerBuilder;
use crate::controller::conditions::StatusConditions;
use crate::controller::reconcile::{boxed_report, boxed_task};
use crate::controller::worker::{LoopGuard, Rate};
use crate::controller::{
    AfterMaxRetries, ChangeLog, ObjectTask, OnFailure, OwnsConditions, Reconciler,
};
use windlass_core::conditions::ConditionSet;

impl<C: Reconciler> ControllerBuilder<C> {
    /// Sets the action for an object whose retries are used up, as limited by
    /// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most). Default:
    /// [`AfterMaxRetries::Rest`]. Has no effect with endless retries.
    pub fn after_max_retries(mut self, then: AfterMaxRetries) -> Self {
        self.options.after_max_retries = then;
        self
    }

    /// Calls [`OnFailure::failed`] when a reconcile failed: at the first failure in a row, when the
    /// error text changes, and when the object is given up.
    ///
    /// The call is made before the next attempt, with a limit of 10 s, and holds the key meanwhile.
    pub fn report_failures(mut self) -> Self
    where
        C: OnFailure,
    {
        self.options.report = Some(boxed_report::<C>);
        self
    }

    /// As [`report_failures`](Self::report_failures), but at every failure, also when the error
    /// text is unchanged.
    pub fn report_every_failure(mut self) -> Self
    where
        C: OnFailure,
    {
        self.options.reports_every_failure = true;
        self.report_failures()
    }

    /// Maintains a condition of type `type_` (`Ready`, `Reconciled`) in each object's status. After
    /// a failure the condition is false, its message is the error, and its reason is
    /// `ReconcileFailed`, `ReconcileGaveUp`, `TerminalError`, or `RequestRefused` for a request
    /// that the API server refuses for good; after a success it is true with the reason
    /// `Reconciled`. While the object [waits](crate::controller::Action::wait_for) it is false with
    /// the reason `Waiting` or `Terminating`, and `DependentFailed` while a child of a graph has
    /// [failed](crate::dependents::Readiness::Failed), or a rollout was rolled back. A condition of
    /// this type that a successful reconcile itself sets by
    /// [`set_condition`](crate::controller::Context::set_condition) is left alone; so is one of an
    /// earlier reconcile whose reason is none of these. Written when it changes; retries of the
    /// same failure write nothing.
    ///
    /// The kind's status needs `conditions`
    /// ([`Conditions`](windlass_core::conditions::Conditions)). For a kind that is cached as a
    /// projection, the status is read before each such comparison.
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
    /// let builder = ControllerBuilder::<Sites>::new().outcome_condition("Reconciled");
    /// # let _ = builder;
    /// ```
    pub fn outcome_condition(mut self, type_: impl Into<String>) -> Self {
        self.options.outcome = Some(type_.into());
        self.options.conditions = None;
        self
    }

    /// Keeps the conditions of the enum `T` in each object's status, and computes the root `Ready`
    /// at the end of each reconcile, with `Reconciling` and `Stalled` as kstatus reads them and, if
    /// the status has the field, `observedGeneration`. Takes the place of
    /// [`outcome_condition`](Self::outcome_condition).
    ///
    /// | outcome | `Ready` | further condition | kstatus |
    /// |---|---|---|---|
    /// | success, all of `ready(all(…))` true | true | | `Current` |
    /// | success, a condition false or unknown | false, unknown | `Reconciling` | `InProgress` |
    /// | a wait | false | `Reconciling`, with the reason of the wait | `InProgress` |
    /// | an error that is retried | false | `Reconciling`: `ReconcileFailed` | `InProgress` |
    /// | a terminal error, used-up retries | false | `Stalled`: `TerminalError`, `ReconcileGaveUp` | `Failed` |
    /// | a request that the API server refuses for good (422, 403), retried | false | `Stalled`: `RequestRefused` | `Failed` |
    /// | one of `stalled_on(…)` is true | false | `Stalled`, with the same reason | `Failed` |
    /// | a clean-up that waits | false | `Reconciling`: `Terminating` | `Terminating` |
    /// | paused | as before; unknown if the spec changed | `Paused`; `Reconciling` if the spec changed | as before; `InProgress` |
    ///
    /// All conditions of a reconcile are one write, and none when nothing changed; conditions of
    /// others stay unchanged. Each change of a status is counted by
    /// `windlass_condition_transitions_total` and, but for `Reconciling`, reported by an Event. Of
    /// several controllers of one kind one controller has the root `Ready`; the others name another
    /// root. A manager whose controllers of one kind keep a condition of the same type does not
    /// start.
    ///
    /// The kind's status needs `conditions`
    /// ([`Conditions`](struct@windlass_core::conditions::Conditions)): without that field the
    /// operator does not start. The schema of a kind may not prune them.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// use windlass::conditions::ReadyCondition;
    /// use windlass::controller::OwnsConditions;
    /// # struct Sites;
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    ///
    /// // As `#[controller(conditions)]`.
    /// impl OwnsConditions<ReadyCondition> for Sites {}
    /// let builder = ControllerBuilder::<Sites>::new().conditions::<ReadyCondition>();
    /// # let _ = builder;
    /// ```
    pub fn conditions<T: ConditionSet>(mut self) -> Self
    where
        C: OwnsConditions<T>,
    {
        self.options.conditions = Some(StatusConditions::of::<C::Object, T>());
        self.options.outcome = None;
        self
    }

    /// Logs each write of a reconcile: the reasons, the object, and the changed paths. Default:
    /// [`ChangeLog::Off`]. [`Manager::change_log`](crate::manager::Manager::change_log) sets the
    /// detail for all controllers.
    ///
    /// Covered are creates, applies, patches, updates and deletions through the context, statuses
    /// and finalizers; not requests by [`Context::client`](crate::controller::Context::client),
    /// evictions, deletions of collections, Events and Leases. The state before a write is that of
    /// the cache: for a kind without a cache, and for projections, the whole object counts as new.
    /// Values of Secrets and of `ControllerRevision`s are masked.
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
    /// use windlass::controller::ChangeLog;
    ///
    /// let builder = ControllerBuilder::<Sites>::new().change_log(ChangeLog::Summary);
    /// # let _ = builder;
    /// ```
    pub fn change_log(mut self, detail: ChangeLog) -> Self {
        self.options.change_log = detail;
        self
    }

    /// Drops a running reconcile when [superseded](crate::controller::Context::superseded), and
    /// restarts the reconcile at once for the new state. After five drops in a row the next
    /// reconcile runs to its end, so that an object which keeps changing is reconciled after all. A
    /// clean-up is never dropped.
    ///
    /// The reconciler's future is dropped at an `await`: the reconciler must tolerate a drop as
    /// well as a crash at that point.
    ///
    /// For long reconciles whose object changes often. Default: a superseded reconcile runs to its
    /// end, and [`Context::superseded`](crate::controller::Context::superseded) lets the reconciler
    /// end early.
    pub fn cancel_superseded(mut self) -> Self {
        self.options.drops_superseded = true;
        self
    }

    /// Sets the limit beyond which an object counts as reconciled endlessly and is slowed down.
    /// Default: more than 50 reconciles within a minute without a change of its spec; then one a
    /// second.
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
    /// use std::time::Duration;
    /// use windlass::controller::LoopGuard;
    ///
    /// let guard = LoopGuard::new(200, Duration::from_secs(60)).spacing(Duration::from_secs(2));
    /// let builder = ControllerBuilder::<Sites>::new().loop_guard(guard);
    /// # let _ = builder;
    /// ```
    pub fn loop_guard(mut self, guard: LoopGuard) -> Self {
        self.options.guard = guard;
        self
    }

    /// Reconciles an object at most `most` times (at least once) within each `within` (at least 1
    /// s), whatever the cause: changes, retries, requeues, clean-ups. The interval begins with the
    /// first reconcile; all further causes wait for its end and lead to one reconcile then.
    /// Default: no limit.
    ///
    /// Unlike [`loop_guard`](Self::loop_guard) this limit applies to intended reconciles, too, and
    /// logs nothing.
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
    /// use std::time::Duration;
    ///
    /// // A provider that bills each call: at most 10 reconciles of one object an hour.
    /// let builder = ControllerBuilder::<Sites>::new().rate_limit(10, Duration::from_secs(3600));
    /// # let _ = builder;
    /// ```
    pub fn rate_limit(mut self, most: u32, within: Duration) -> Self {
        self.options.rate = Some(Rate::new(most, within));
        self
    }

    /// Runs [`ObjectTask::run`] beside each object, from its first successful reconcile until its
    /// deletion.
    ///
    /// A controller has at most one kind of task; the number of running tasks is a metric. See
    /// [`ObjectTask`] for the life cycle.
    pub fn task_per_object(mut self) -> Self
    where
        C: ObjectTask,
    {
        self.options.task = Some(boxed_task::<C>);
        self
    }
}
