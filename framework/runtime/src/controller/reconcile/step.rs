//! Reconcile of one object: looks up and decodes the object, handles the finalizer, calls the
//! reconciler.
//!
//! Order of a step: pause, decoding, the memory of own writes, finalizer or clean-up, reconciler,
//! condition, task. The finalizer is added before user code runs, so that no effect outside of the
//! cluster can exist without a finalizer; the task starts after the first success, so that the task
//! never works on an object that was not set up.

// DESIGN.md, 65: Rare branches of the reconcile future are boxed

use std::sync::Arc;

use super::object_task::Tasks;
use crate::controller::conditions::{ConditionOutcome, PartCondition};
use crate::controller::context::{Context, ControllerShared, ReconcileSubject};
use crate::controller::outcome::action::Wait;
use crate::controller::spec::{ControllerSpec, Finalizer};
use crate::controller::state::{FollowUp, LastReconciled, ParentRef, SpecVersion};
use crate::controller::worker::{
    HandlerFuture, KeyHandler, ReconcileAttempt, ReconcileOutcome, ReportFuture, ReportedFailure,
    waiting,
};
use crate::controller::{Action, Failure, Reconciler};
use crate::events::Warning;
use crate::finalizer::{self, RemovedFinalizer};
use windlass_cache::store::{Cached, Invalid, Store};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, ObjectRef, Resource, ResourceExt};

/// Reason for which a step stopped early.
enum StepStop {
    /// An error of user code or of a request; retried by the failure's schedule.
    Failed(Failure),
    /// The cached bytes are no object of the type; nothing helps but a change.
    Undecodable(Failure),
    /// The object changed while a reconcile ran that may be dropped.
    Superseded,
    /// The object carries the annotation that pauses reconciles.
    Paused,
    /// The object is gone, or being deleted, and the cache does not show that yet.
    Ended(Failure),
}

impl From<Failure> for StepStop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The step of a controller for a kind of objects.
pub(crate) struct ObjectStep<C: Reconciler> {
    /// The reconciler.
    pub(crate) controller: Arc<C>,
    /// Cache of the reconciled kind.
    pub(crate) store: Arc<Store<C::Object>>,
    /// State of the run; a clone for each worker, so that workers do not share reference counts.
    pub(crate) shared: Arc<ControllerShared>,
    /// Settings of the builder.
    pub(crate) spec: Arc<ControllerSpec<C>>,
    /// The objects at their last reconcile, if changes are tracked.
    pub(crate) last_reconciled: Option<Arc<LastReconciled<C::Object>>>,
    /// The tasks of objects, for a controller that has tasks.
    pub(crate) tasks: Option<Arc<Tasks<C>>>,
}

impl<C: Reconciler> KeyHandler for ObjectStep<C> {
    fn run<'a>(&'a self, key: &'a ObjectKey, attempt: ReconcileAttempt) -> HandlerFuture<'a> {
        Box::pin(async move {
            match self.step(key, attempt).await {
                Ok(Some(Action { wait: Some(wait), .. })) => {
                    ReconcileOutcome::Waiting(self.with_fights(key, wait))
                }
                Ok(Some(action)) => ReconcileOutcome::Done(action),
                Ok(None) => ReconcileOutcome::Absent,
                Err(StepStop::Undecodable(failure)) => ReconcileOutcome::Undecodable(failure),
                Err(StepStop::Paused) => ReconcileOutcome::Paused,
                Err(StepStop::Failed(failure)) => match failure.into_wait() {
                    Ok(wait) => ReconcileOutcome::Waiting(self.with_fights(key, wait)),
                    Err(failure) => ReconcileOutcome::Failed(failure),
                },
                Err(StepStop::Superseded) => ReconcileOutcome::Superseded,
                Err(StepStop::Ended(failure)) => ReconcileOutcome::Ended(failure),
            }
        })
    }

    fn own_follow_up(&self, key: &ObjectKey) -> Option<FollowUp> {
        let version = || Some(self.store.get(key)?.metadata().resource_version().to_owned());
        self.shared.memory.own_writes.own_follow_up(key, version)
    }

    fn finish(&self, key: &ObjectKey, how: FollowUp) {
        self.shared.memory.own_writes.finish(key, how);
    }

    fn spec_version(&self, key: &ObjectKey) -> Option<SpecVersion> {
        self.store.get(key).map(|object| SpecVersion::of(&object))
    }

    fn failed<'a>(
        &'a self,
        key: &'a ObjectKey,
        reported: ReportedFailure<'a>,
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        let options = &self.spec.options;
        let wants_condition = reported.is_new && options.outcome.is_some();
        let wants_report =
            options.report.is_some() && (reported.is_new || options.reports_every_failure);
        // Each failure: other conditions may differ, and a write that was lost is made up for.
        let wants_condition = wants_condition || options.conditions.is_some();
        let wanted = reported.gave_up || wants_condition || wants_report;
        wanted.then(|| Box::pin(self.report(key, reported, attempt)) as ReportFuture<'a>)
    }

    fn waits<'a>(
        &'a self,
        key: &'a ObjectKey,
        (wait, is_new): (&'a Wait, bool),
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        let options = &self.spec.options;
        let type_ = options.outcome.as_deref().filter(|_| is_new);
        if type_.is_none() && options.conditions.is_none() {
            return None;
        }
        Some(Box::pin(async move {
            let Some(cached) = self.store.get(key) else { return Ok(()) };
            let Ok(object) = cached.get() else { return Ok(()) };
            let is_terminating = object.is_terminating();
            let cx = self.context(cached, object, attempt);
            let written = match type_ {
                Some(type_) => cx.write_condition(waiting(wait, type_, is_terminating)).await,
                None => cx.write_conditions(&wait.outcome(is_terminating)).await,
            };
            match written.map_err(Failure::from) {
                // The object is gone, so the status cannot be written: no error.
                Err(failure) if cx.has_ended(&failure).await => Ok(()),
                outcome => outcome,
            }
        }))
    }

    fn keeps_conditions(&self) -> bool {
        self.spec.options.conditions.is_some()
    }

    fn for_one_worker(&self) -> Option<Arc<dyn KeyHandler>> {
        let (shared, store) = (ControllerShared::clone(&self.shared), Store::clone(&self.store));
        Some(Arc::new(Self {
            controller: Arc::clone(&self.controller),
            store: Arc::new(store),
            shared: Arc::new(shared),
            spec: Arc::clone(&self.spec),
            last_reconciled: self.last_reconciled.clone(),
            tasks: self.tasks.clone(),
        }))
    }
}

impl<C: Reconciler> ObjectStep<C> {
    /// Looks the object up and reconciles the object; `None` when there is no such object.
    async fn step(
        &self,
        key: &ObjectKey,
        attempt: ReconcileAttempt,
    ) -> Result<Option<Action>, StepStop> {
        let memory = &self.shared.memory;
        // Rare branches are boxed where they begin: this future is allocated for each reconcile,
        // and their states would be most of the future's size.
        let Some(cached) = self.store.get(key) else {
            Box::pin(self.forget(key)).await;
            return Ok(None);
        };
        if self.shared.trigger_names.paused.check(&cached) {
            return Err(Box::pin(self.paused(cached, attempt)).await);
        }
        let object = match cached.get() {
            Ok(object) => object,
            Err(invalid) => return Err(StepStop::Undecodable(self.undecodable(&cached, &invalid))),
        };
        // Before user code runs: the writes of this reconcile are recorded upon this version.
        memory.own_writes.begin(key, object.resource_version());
        let generation = object.metadata().generation;
        attempt.cancel.set_start_version(object.resource_version(), generation);
        let parent_ref = ParentRef { key, uid: object.uid() };
        let now = self.shared.environment.clock.now();
        memory.applied.expectations.begin(parent_ref, &self.shared.informers, now);
        let cx = self.context(cached, object, attempt);
        match &self.spec.finalizer {
            _ if cx.object().is_terminating() => {
                // The object's task ends before the clean-up runs, so that both never work at the
                // same time.
                if let Some(tasks) = &self.tasks {
                    Box::pin(tasks.end(key)).await;
                }
                match Box::pin(self.terminate(&cx)).await {
                    Ok(()) => {
                        cx.commit_reads();
                        Ok(Some(Action::done()))
                    }
                    Err(failure) => Err(Box::pin(failed(self, &cx, failure)).await),
                }
            }
            Some(finalizer) if !cx.object().has_finalizer(&finalizer.name) => {
                Box::pin(self.begin(cx, finalizer)).await
            }
            _ => self.reconcile(&cx, None).await.map(Some),
        }
    }

    /// Runs the first reconcile, after adding the finalizer.
    async fn begin(
        &self,
        cx: Context<C>,
        finalizer: &Finalizer<C>,
    ) -> Result<Option<Action>, StepStop> {
        let Some(cx) = add_finalizer(cx, finalizer).await? else { return Ok(None) };
        // The cached state of the version that the reconciler is given, taken before the reconciler
        // writes.
        let version = cx.object().resource_version();
        let seen = self.store.get(cx.cached_at_start().key());
        let seen = seen.filter(|cached| cached.metadata().resource_version() == version);
        self.reconcile(&cx, seen).await.map(Some)
    }

    /// Shows the pause of an object in the conditions, if any are kept.
    async fn paused(&self, cached: Cached<C::Object>, attempt: ReconcileAttempt) -> StepStop {
        if self.spec.options.conditions.is_none() {
            return StepStop::Paused;
        }
        // An object that does not decode has no conditions that could be read.
        let Ok(object) = cached.get() else { return StepStop::Paused };
        let generation = object.metadata().generation;
        attempt.cancel.set_start_version(object.resource_version(), generation);
        let cx = self.context(cached, object, attempt);
        match cx.write_conditions(&ConditionOutcome::paused()).await {
            Ok(()) => StepStop::Paused,
            // Retried, until the pause is shown.
            Err(error) => failed(self, &cx, error.into()).await,
        }
    }

    /// Creates the context of an attempt.
    fn context(
        &self,
        cached_at_start: Cached<C::Object>,
        object: Arc<C::Object>,
        attempt: ReconcileAttempt,
    ) -> Context<C> {
        let before = self
            .last_reconciled
            .as_ref()
            .and_then(|last_reconciled| last_reconciled.before(&cached_at_start));
        let subject = ReconcileSubject { cached_at_start, object, before };
        Context::new(Arc::clone(&self.shared), Arc::clone(&self.store), subject, attempt)
    }

    /// Forgets an object that is gone.
    async fn forget(&self, key: &ObjectKey) {
        self.shared.memory.forget(key);
        self.shared.trigger_names.paused.forget(key);
        self.shared.trigger_names.reads.forget(key);
        if let Some(last_reconciled) = &self.last_reconciled {
            last_reconciled.forget(key);
        }
        if let Some(tasks) = &self.tasks {
            tasks.end(key).await;
        }
    }

    /// Calls the reconciler, and does the follow-up of a success. `seen` is the reconciled state,
    /// if different from the state at the start of the attempt.
    async fn reconcile(
        &self,
        cx: &Context<C>,
        seen: Option<Cached<C::Object>>,
    ) -> Result<Action, StepStop> {
        let object = Arc::clone(cx.object());
        let superseded = &self.shared.memory.superseded;
        let key = cx.cached_at_start().key();
        let reconcile = async {
            if !self.spec.options.on_change.is_empty() {
                Box::pin(self.handle_changes(cx)).await?;
            }
            self.controller.reconcile(&object, cx).await
        };
        let result = if self.spec.options.drops_superseded && superseded.may_drop(key) {
            // The result is polled first: a finished reconcile is never dropped.
            tokio::select! {
                biased;
                result = reconcile => result,
                () = cx.until_superseded() => {
                    superseded.dropped(key);
                    return Err(StepStop::Superseded);
                }
            }
        } else {
            reconcile.await
        };
        let mut action = match result {
            Ok(action) => action,
            Err(failure) => return Err(Box::pin(failed(self, cx, failure)).await),
        };
        if self.spec.options.drops_superseded {
            superseded.ended(key);
        }
        if action.wait.is_some() {
            return Ok(action);
        }
        self.remark_left(cx);
        if let Some(rest) = cx.remark_fights() {
            // Nothing else shows the end of a fight.
            let again = action.requeue_after.map_or(rest, |delay| delay.min(rest));
            action.requeue_after = Some(again);
        }
        if let Some(type_) = &self.spec.options.outcome
            && let Err(error) = Box::pin(cx.report_success(type_)).await
        {
            return Err(Box::pin(failed(self, cx, error.into())).await);
        }
        if self.spec.options.conditions.is_some()
            && let Err(error) =
                Box::pin(cx.write_conditions(&ConditionOutcome::done(cx.remarks()))).await
        {
            return Err(Box::pin(failed(self, cx, error.into())).await);
        }
        cx.commit_reads();
        if let Some(last_reconciled) = &self.last_reconciled {
            last_reconciled.reconciled(seen.as_ref().unwrap_or(cx.cached_at_start()));
        }
        if let Some(tasks) = &self.tasks {
            Box::pin(tasks.reconciled(cx.cached_at_start())).await;
        }
        let clock = &self.shared.environment.clock;
        let again = action.requeue_after.map(|delay| clock.after(delay));
        self.finish(key, FollowUp { again, has_failed: false });
        Ok(action)
    }

    /// Adds the children that others change again and again to the text of a wait.
    fn with_fights(&self, key: &ObjectKey, mut wait: Box<Wait>) -> Box<Wait> {
        let fights = self.shared.memory.fights.of(key, self.shared.environment.clock.now());
        // For an object that is being deleted nothing is applied any more.
        let is_over =
            || self.store.get(key).is_none_or(|object| object.metadata().is_terminating());
        if !fights.is_empty() && !is_over() {
            wait.add_fights(fights.into_iter().map(|fight| (fight.text, fight.rest)));
        }
        wait
    }

    /// Runs the handlers of the fields that differ from the last successful reconcile.
    async fn handle_changes(&self, cx: &Context<C>) -> Result<(), Failure> {
        let before = cx.before().and_then(|before| before.get().ok());
        for handler in &self.spec.options.on_change {
            let is_same = before.as_ref().is_some_and(|old| (handler.is_same)(old, cx.object()));
            let condition = handler.condition.as_deref().map(|type_| cx.part_condition(type_));
            let show = |change: Option<_>| change.into_iter().for_each(|change| cx.collect(change));
            if is_same {
                // The field was handled before the last success; the condition is about this
                // generation, too.
                show(condition.map(PartCondition::succeeded));
                continue;
            }
            // Replaced by the outcome, unless the handler panics or is dropped.
            show(condition.and_then(PartCondition::begun));
            let run = (handler.run)(&self.controller, cx.object(), cx).await;
            show(condition.and_then(|condition| condition.ended(&run)));
            run.map_err(|failure| failure.tried(format!("handling {}", handler.field)))?;
        }
        Ok(())
    }

    /// Reports a failure as Event, condition and call of `OnFailure`, as far as wanted.
    async fn report(
        &self,
        key: &ObjectKey,
        reported: ReportedFailure<'_>,
        attempt: ReconcileAttempt,
    ) -> Result<(), Failure> {
        let Some(cached) = self.store.get(key) else { return Ok(()) };
        let Ok(object) = cached.get() else { return Ok(()) };
        let is_paused = self.shared.trigger_names.paused.check(&cached);
        let cx = self.context(cached, object, attempt);
        if reported.gave_up {
            cx.report_gave_up(reported);
        }
        let options = &self.spec.options;
        let mut outcome = Ok(());
        if let Some(type_) = options.outcome.as_ref().filter(|_| reported.is_new) {
            outcome = cx.write_condition(reported.condition(type_)).await;
        }
        // For a paused object only the write of the pause can fail.
        let shows = options.conditions.is_some() && !is_paused;
        if shows {
            outcome = cx.write_conditions(&reported.outcome()).await;
        }
        if let Some(report) =
            options.report.filter(|_| reported.is_new || options.reports_every_failure)
        {
            report(&self.controller, reported.failure, &cx).await?;
            // The hook may set conditions; mostly nothing is left to write.
            if shows && outcome.is_ok() {
                outcome = cx.write_conditions(&reported.outcome()).await;
            }
        }
        match outcome.map_err(Failure::from) {
            // The object is gone, so the status cannot be written: no error.
            Err(failure) if cx.has_ended(&failure).await => Ok(()),
            outcome => outcome,
        }
    }

    /// Cleans up and removes the finalizers, as far as the object carries them.
    async fn terminate(&self, cx: &Context<C>) -> Result<(), Failure> {
        let mut object = Arc::clone(cx.object());
        for finalizer in self.spec.finalizer.iter().chain(&self.spec.former) {
            if !object.has_finalizer(&finalizer.name) {
                continue;
            }
            for cleanup in &finalizer.cleanups {
                cleanup(&self.controller, &object, cx).await?;
            }
            // A resource left by a graph's field may have had the finalizer that the controller
            // names as well.
            self.hold_left(cx)?;
            self.report_left(cx, &finalizer.name);
            let Some(left) = self.release(cx, &object, &finalizer.name).await? else {
                return Ok(());
            };
            object = left;
        }
        for name in self.finalizers_left(&object) {
            self.hold_left(cx)?;
            self.report_left(cx, &name);
            let Some(left) = self.release(cx, &object, &name).await? else { return Ok(()) };
            object = left;
        }
        Ok(())
    }

    /// Removes a finalizer, unless another writer has; returns the object as it was left, `None`
    /// when it is gone.
    async fn release(
        &self,
        cx: &Context<C>,
        object: &C::Object,
        name: &str,
    ) -> Result<Option<Arc<C::Object>>, Failure> {
        let left = finalizer::remove_from(&cx.own_api(), object, name).await?;
        let Some(RemovedFinalizer { object: left, from, answer }) = left else { return Ok(None) };
        if let Some(from) = from {
            cx.changed_finalizers(&answer);
            cx.wrote_own(&from, &left, &answer);
        }
        Ok(Some(Arc::new(left)))
    }

    /// Reports an object that does not decode, once per version; the next try follows a change of
    /// the object.
    fn undecodable(&self, cached: &Cached<C::Object>, invalid: &Invalid) -> Failure {
        let (key, metadata) = (cached.key(), cached.metadata());
        let info = &self.shared.info;
        let mut advice = "It is left alone until it changes.".to_owned();
        if metadata.is_terminating()
            && let Some(Finalizer { name, .. }) = &self.spec.finalizer
            && metadata.finalizers().any(|finalizer| finalizer == name)
        {
            advice = format!(
                "Its clean-up cannot run: correct it, or remove the finalizer {name} by hand."
            );
        }
        let text = format!("cannot decode {} \"{key}\": {}. {advice}", info.kind, invalid.message);
        if self.shared.memory.first_report(key, metadata.resource_version()) {
            let uid = Some(metadata.uid().to_owned());
            let object = ObjectRef { info: info.clone(), key: key.clone(), uid };
            self.shared.recorder.event(&object, Warning, "Undecodable", &text);
        }
        Failure::terminal(Error::new(ErrorKind::Decode, text))
    }
}

/// Classifies a failed reconcile: a failure because the object is gone does not count.
async fn failed<C: Reconciler>(
    step: &ObjectStep<C>,
    cx: &Context<C>,
    failure: Failure,
) -> StepStop {
    let failure = failure.naming_missing_grant(&step.spec.rules);
    if cx.has_ended(&failure).await { StepStop::Ended(failure) } else { StepStop::Failed(failure) }
}

/// Returns the context with the finalizer on the object; `None` when the object is gone.
async fn add_finalizer<C: Reconciler>(
    cx: Context<C>,
    finalizer: &Finalizer<C>,
) -> Result<Option<Context<C>>, Failure> {
    let object = Arc::clone(cx.object());
    let held = finalizer::add_to(&cx.own_api(), &*object, &finalizer.name).await?;
    let Some((held, answer)) = held else { return Ok(None) };
    cx.changed_finalizers(&answer);
    cx.wrote_own(object.resource_version(), &held, &answer);
    Ok(Some(cx.with_object(held)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::controller::{Reconciler, Result};

    struct Noop;

    impl Reconciler for Noop {
        type Object = ConfigMap;

        async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
            Ok(Action::done())
        }
    }

    fn size_of_future<A, B, F>(_: impl FnOnce(A, B, ReconcileAttempt) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_step_takes_up_no_more_than_allocators_hand_out_quickly() {
        // The largest size that glibc caches for each thread; step and outcome are boxed together.
        let size = size_of_future(ObjectStep::<Noop>::step);
        assert!(size <= 1000, "{size} bytes");
    }
}
