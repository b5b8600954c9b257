//! The plan of a controller: each object is reconciled once, and every write is a dry run.
//!
//! No queue and no worker takes part: a plan has no retries, requeues, tasks and triggers. Each
//! reconcile has a separate client that records the answers, and caches that show them to the
//! reconcile.

// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::erased::PlanRun;
use super::handle::Handle;
use crate::controller::context::ControllerShared;
use crate::controller::planned::DryRunRecord;
use crate::controller::reconcile::{ObjectStep, show_wait};
use crate::controller::source::Reason;
use crate::controller::worker::{AttemptCancel, KeyHandler, ReconcileAttempt, ReconcileOutcome};
use crate::controller::{
    PlannedAction, PlannedChange, PlannedEvent, PlannedObject, PlannedOutcome, Reconciler,
};
use crate::events::{EventWriter, Recorder};
use windlass_cache::store::Cached;
use windlass_client::client::Client;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::ObjectKey;

impl<C: Reconciler> Handle<C> {
    /// Reconciles the objects, and returns their changes, sorted by key.
    ///
    /// # Cancel safety
    /// Dropping the future drops the running reconciles; nothing was written.
    pub(super) async fn plan_objects(&self, run: PlanRun) -> Vec<PlannedObject> {
        let stop = Arc::new(CancellationToken::new());
        let (mut running, mut planned) = (JoinSet::new(), Vec::new());
        let (selected, others) = self.planned_keys(&run);
        planned.extend(others.into_iter().map(|key| self.not_selected(key)));
        for key in selected {
            if running.len() >= run.concurrency.max(1) {
                planned.extend(running.join_next().await.and_then(Result::ok));
            }
            running.spawn(self.plan_one(&run, key, &stop));
        }
        while let Some(one) = running.join_next().await {
            planned.extend(one.ok());
        }
        planned.sort_by(|a, b| a.key.cmp(&b.key));
        planned
    }

    /// Returns the keys that a start of the controller would reconcile, or those among them that
    /// were named, and the named ones that the controller does not select. A named object that does
    /// not exist is reported by the reconcile.
    fn planned_keys(&self, run: &PlanRun) -> (Vec<ObjectKey>, Vec<ObjectKey>) {
        let store = run.informers.informer::<C::Object>().store();
        let is_selected = |object: &Cached<C::Object>| {
            let when = self.spec.when.as_ref();
            object.metadata().is_terminating() || when.is_none_or(|when| when.allows(object))
        };
        if let Some(keys) = &run.keys {
            let keys = keys.iter().cloned();
            return keys.partition(|key| store.get(key).is_none_or(|object| is_selected(&object)));
        }
        let mut objects = store.list();
        objects.retain(is_selected);
        (objects.iter().map(|object| object.key().clone()).collect(), Vec::new())
    }

    /// Returns the plan of a named object that the controller does not reconcile.
    fn not_selected(&self, key: ObjectKey) -> PlannedObject {
        PlannedObject {
            controller: self.spec.name.to_string(),
            kind: self.spec.info.kind.to_string(),
            key,
            outcome: PlannedOutcome::NotSelected,
            changes: Vec::new(),
            external_calls: Vec::new(),
            requeue_after: None,
            events: Vec::new(),
            reads: Vec::new(),
        }
    }

    /// Returns the future that reconciles an object.
    fn plan_one(
        &self,
        run: &PlanRun,
        key: ObjectKey,
        stop: &Arc<CancellationToken>,
    ) -> impl Future<Output = PlannedObject> + Send + use<C> {
        let record = Arc::new(DryRunRecord::default());
        let observer = Arc::clone(&record);
        let client = run.client.dry_run_observed(observer).field_manager(&self.spec.name);
        let (step, events) = self.plan_step(run, client, Arc::clone(&record));
        let client = run.client.clone();
        let (controller, kind) = (self.spec.name.to_string(), self.spec.info.kind.to_string());
        let limit = run.timeout.min(self.spec.timeout);
        let cancel = AttemptCancel::new(stop);
        let attempt = ReconcileAttempt { number: 0, reasons: Reason::STARTED.bit(), cancel };
        async move {
            let (outcome, requeue_after, code) = reconciled(&step, &key, attempt, limit).await;
            drop(step);
            let owner = (kind.as_str(), key.name());
            let (events, reads) = (events.into_queued(), record.take_reads());
            let events = events.into_iter().map(PlannedEvent::of).collect();
            let (changes, external_calls) = record.take().changes(&client, owner).await;
            let outcome = explained(outcome, code, &changes);
            PlannedObject {
                controller,
                kind,
                key,
                outcome,
                changes,
                external_calls,
                requeue_after,
                events,
                reads,
            }
        }
    }

    /// Returns the step of one reconcile, and the queue of its Events, which are not written.
    fn plan_step(
        &self,
        run: &PlanRun,
        client: Client,
        record: Arc<DryRunRecord>,
    ) -> (ObjectStep<C>, EventWriter) {
        let attached = self.attached(&run.informers);
        let (recorder, events) = Recorder::new(client.clone(), &self.spec.name);
        let environment = client.environment().fork(&self.spec.name);
        let step = ObjectStep {
            controller: Arc::clone(&self.controller),
            store: Arc::new(run.informers.informer::<C::Object>().store()),
            shared: Arc::new(ControllerShared {
                controller: Arc::clone(&self.spec.name),
                info: self.spec.info.clone(),
                client,
                informers: run.informers.clone(),
                recorder,
                queue: attached.queue.clone(),
                memory: Arc::clone(&self.memory),
                drivers: Arc::clone(&self.drivers),
                changes: Arc::default(),
                dry_runs: Some(record),
                conditions: self.spec.options.conditions,
                reads: Arc::clone(&attached.reads),
                trigger_names: Arc::clone(&self.trigger_names),
                environment,
            }),
            spec: Arc::clone(&self.spec),
            last_reconciled: None,
            tasks: None,
        };
        (step, events)
    }
}

/// Runs one step to its end, its panic or its deadline; returns the requeue of a success and the
/// code of a refused request, too.
async fn reconciled<C: Reconciler>(
    step: &ObjectStep<C>,
    key: &ObjectKey,
    attempt: ReconcileAttempt,
    limit: Duration,
) -> (PlannedOutcome, Option<Duration>, Option<u16>) {
    let ending = attempt.cancel.end_guard();
    let clock = step.shared.environment.clock.clone();
    let run = async {
        let outcome = step.run(key, attempt.clone()).await;
        show_wait(step, key, &outcome, attempt).await;
        outcome
    };
    let outcome = clock.timeout(limit, caught(run)).await;
    let failed = |text: String| (PlannedOutcome::Failed(text), None, None);
    match outcome {
        None => failed(format!("the reconcile hit its deadline of {limit:?}")),
        Some(Err(panic)) => failed(format!("the reconciler panicked: {}", panic_text(&*panic))),
        Some(Ok(outcome)) => {
            ending.finished();
            let (requeue_after, code) = match &outcome {
                ReconcileOutcome::Done(action) => (action.requeue_after, None),
                ReconcileOutcome::Failed(failure) => (None, failure.code()),
                _ => (None, None),
            };
            (planned(outcome, key), requeue_after, code)
        }
    }
}

/// Returns the end of a reconcile in the form that a plan shows.
fn planned(outcome: ReconcileOutcome, key: &ObjectKey) -> PlannedOutcome {
    match outcome {
        // An object that ended meanwhile is no failure, as in a run.
        ReconcileOutcome::Done(_) | ReconcileOutcome::Ended(_) => PlannedOutcome::Reconciled,
        ReconcileOutcome::Absent => {
            PlannedOutcome::Failed(format!("there is no object \"{key}\" in the cache"))
        }
        ReconcileOutcome::Waiting(wait) => {
            PlannedOutcome::Waiting(format!("{}: {}", wait.reason, wait.text))
        }
        ReconcileOutcome::Failed(failure) | ReconcileOutcome::Undecodable(failure) => {
            PlannedOutcome::Failed(failure.to_string())
        }
        ReconcileOutcome::Superseded => {
            PlannedOutcome::Waiting("Superseded: the object changed meanwhile; plan again".into())
        }
        ReconcileOutcome::Paused => PlannedOutcome::Paused,
    }
}

/// Adds the reason to a failure about an object that the plan has created: no dry run stores an
/// object, so the API server has none for a second write.
fn explained(
    outcome: PlannedOutcome,
    code: Option<u16>,
    changes: &[PlannedChange],
) -> PlannedOutcome {
    let PlannedOutcome::Failed(mut text) = outcome else { return outcome };
    let is_named = |change: &&PlannedChange| {
        change.action == PlannedAction::Create
            && text.contains(&format!("{} \"{}\"", change.resource, change.key.name()))
    };
    if let (Some(404 | 409), Some(created)) = (code, changes.iter().find(is_named)) {
        let PlannedChange { resource, key, .. } = created;
        let note = format!(
            "; this plan creates {resource} {key} by a dry run, which stores nothing: later writes to \
             the object, and what comes after them, are in no plan until the object exists"
        );
        text.push_str(&note);
    }
    PlannedOutcome::Failed(text)
}
