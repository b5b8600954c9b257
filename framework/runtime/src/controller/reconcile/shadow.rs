//! The step of a controller that follows a running operator: every write is a dry run, and lasting
//! differences between the answers and the stored objects are reported.
//!
//! The running operator and the shadow act on the same events, and either may be first. So a
//! difference counts only when a second reconcile, after a time for the other operator to settle,
//! finds the same difference.

// DESIGN.md, 166: A shadow reports a difference that a later reconcile finds again

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::step::ObjectStep;
use crate::controller::context::ControllerShared;
use crate::controller::outcome::action::Wait;
use crate::controller::planned::DryRunRecord;
use crate::controller::state::{FollowUp, SpecVersion};
use crate::controller::worker::{
    HandlerFuture, KeyHandler, ReconcileAttempt, ReconcileOutcome, ReportFuture, ReportedFailure,
};
use crate::controller::{Action, PlannedAction, PlannedChange, PlannedField, Reconciler};
use windlass_core::metrics::GaugeSeries;
use windlass_core::resource::ObjectKey;

/// Most paths of a change, and most calls, in a log line.
const SHOWN: usize = 8;

/// The changes of a reconcile, and the calls of other systems.
type PlannedChangesAndCalls = (Vec<PlannedChange>, Vec<String>);

/// The step of a controller whose writes are dry runs.
pub(crate) struct ShadowStep<C: Reconciler> {
    step: ObjectStep<C>,
    /// Time for the running operator to settle.
    settle_time: Duration,
    /// Objects with differences. Locked for a look-up only.
    objects: Mutex<BTreeMap<ObjectKey, ShadowDifference>>,
    /// Number of objects whose differences were reported and still stand.
    reported: GaugeSeries,
}

/// The differences of an object.
struct ShadowDifference {
    /// Hash of the changes, without times, and of the calls of other systems.
    fingerprint: u64,
    since: Instant,
    is_reported: bool,
}

/// Consequence of a reconcile for the differences of the object.
#[derive(Debug, PartialEq, Eq)]
enum ShadowVerdict {
    /// There is no difference, or a report was made before.
    Settled,
    /// A reported difference is gone.
    Over,
    /// The difference is new: another reconcile decides.
    Pending,
    /// The difference has outlasted the time to settle.
    Stands,
}

impl<C: Reconciler> ShadowStep<C> {
    pub(crate) fn new(step: ObjectStep<C>, settle_time: Duration, reported: GaugeSeries) -> Self {
        Self { step, settle_time, objects: Mutex::default(), reported }
    }

    /// Returns the step with a separate record.
    fn recorded(&self, record: &Arc<DryRunRecord>) -> ObjectStep<C> {
        let step = &self.step;
        let shared = ControllerShared {
            client: step.shared.client.dry_run_observed(Arc::clone(record) as _),
            dry_runs: Some(Arc::clone(record)),
            ..ControllerShared::clone(&step.shared)
        };
        ObjectStep {
            controller: Arc::clone(&step.controller),
            store: Arc::clone(&step.store),
            shared: Arc::new(shared),
            spec: Arc::clone(&step.spec),
            last_reconciled: step.last_reconciled.clone(),
            tasks: None,
        }
    }

    /// Compares the differences with those of the last reconcile of the object.
    fn judge(
        &self,
        key: &ObjectKey,
        found: &PlannedChangesAndCalls,
        now: Instant,
    ) -> ShadowVerdict {
        let mut objects = self.objects.lock();
        let Some(fingerprint) = fingerprint(found) else {
            let was_reported = objects.remove(key).is_some_and(|it| it.is_reported);
            self.count(&objects);
            return if was_reported { ShadowVerdict::Over } else { ShadowVerdict::Settled };
        };
        let new = ShadowDifference { fingerprint, since: now, is_reported: false };
        let verdict = match objects.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(new);
                ShadowVerdict::Pending
            }
            Entry::Occupied(mut entry) if entry.get().fingerprint != fingerprint => {
                entry.insert(new);
                ShadowVerdict::Pending
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                match now.saturating_duration_since(known.since) >= self.settle_time {
                    _ if known.is_reported => ShadowVerdict::Settled,
                    true => {
                        known.is_reported = true;
                        ShadowVerdict::Stands
                    }
                    false => ShadowVerdict::Pending,
                }
            }
        };
        self.count(&objects);
        verdict
    }

    fn count(&self, objects: &BTreeMap<ObjectKey, ShadowDifference>) {
        let reported = objects.values().filter(|it| it.is_reported).count();
        self.reported.set(reported as f64);
    }

    /// Reports a verdict; returns the delay of the reconcile that decides about a new difference.
    fn report(
        &self,
        key: &ObjectKey,
        verdict: &ShadowVerdict,
        (changes, calls): &PlannedChangesAndCalls,
    ) -> Option<Duration> {
        let kind = &self.step.shared.info.kind;
        match verdict {
            ShadowVerdict::Settled => None,
            ShadowVerdict::Over => {
                tracing::info!(
                    "the shadow no longer differs from the running operator: {kind} {key}"
                );
                None
            }
            ShadowVerdict::Pending => Some(self.settle_time),
            ShadowVerdict::Stands => {
                let changes = changes.iter().filter(|it| counts(it)).map(text);
                let more = calls.len().saturating_sub(SHOWN);
                let more = (more > 0).then(|| format!("and {more} more calls"));
                let calls = calls.iter().take(SHOWN).cloned().chain(more);
                let texts: Vec<String> = changes.chain(calls).collect();
                tracing::warn!(
                    "the shadow differs from the running operator: for {kind} {key} the shadow would {}",
                    texts.join("; ")
                );
                None
            }
        }
    }
}

impl<C: Reconciler> KeyHandler for ShadowStep<C> {
    fn run<'a>(&'a self, key: &'a ObjectKey, attempt: ReconcileAttempt) -> HandlerFuture<'a> {
        Box::pin(async move {
            let record = Arc::new(DryRunRecord::default());
            let step = self.recorded(&record);
            let outcome = step.run(key, attempt.clone()).await;
            show_wait(&step, key, &outcome, attempt).await;
            drop(step);
            let (client, kind) = (&self.step.shared.client, &self.step.shared.info.kind);
            let found = record.take().changes(client, (kind, key.name())).await;
            let is_over = matches!(outcome, ReconcileOutcome::Absent);
            // A failed reconcile made a part of its writes only: that says nothing about the rest.
            let is_whole =
                matches!(outcome, ReconcileOutcome::Done(_) | ReconcileOutcome::Waiting(_));
            if !is_whole && !is_over {
                return outcome;
            }
            let now = self.step.shared.environment.clock.now();
            let verdict = self.judge(key, &found, now);
            match (self.report(key, &verdict, &found), outcome) {
                (Some(delay), ReconcileOutcome::Done(action)) => {
                    let delay = action.requeue_after.map_or(delay, |own| own.min(delay));
                    ReconcileOutcome::Done(Action::requeue_after(delay))
                }
                (Some(delay), ReconcileOutcome::Waiting(mut wait)) => {
                    wait.check_after = Some(wait.check_after.map_or(delay, |own| own.min(delay)));
                    ReconcileOutcome::Waiting(wait)
                }
                (_, outcome) => outcome,
            }
        })
    }

    fn own_follow_up(&self, key: &ObjectKey) -> Option<FollowUp> {
        self.step.own_follow_up(key)
    }

    fn finish(&self, key: &ObjectKey, how: FollowUp) {
        self.step.finish(key, how);
    }

    fn spec_version(&self, key: &ObjectKey) -> Option<SpecVersion> {
        self.step.spec_version(key)
    }

    /// Nothing is reported to users: the worker logs the failure.
    fn failed<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: ReportedFailure<'a>,
        _: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        None
    }

    fn waits<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: (&'a Wait, bool),
        _: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        None
    }
}

/// Writes, as a dry run, the conditions of an object that waits: in a run the worker writes them
/// after the reconcile.
pub(crate) async fn show_wait<C: Reconciler>(
    step: &ObjectStep<C>,
    key: &ObjectKey,
    outcome: &ReconcileOutcome,
    attempt: ReconcileAttempt,
) {
    if let ReconcileOutcome::Waiting(wait) = outcome
        && let Some(report) = step.waits(key, (&**wait, true), attempt)
        && let Err(error) = report.await
    {
        tracing::warn!(%error, "cannot compute the conditions of an object that waits");
    }
}

/// Returns a hash of the changes that count and of the calls; `None` when there are none.
fn fingerprint((changes, calls): &PlannedChangesAndCalls) -> Option<u64> {
    let mut changes = changes.iter().filter(|change| counts(change)).peekable();
    if changes.peek().is_none() && calls.is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    calls.hash(&mut hasher);
    for change in changes {
        (change.action.as_str(), &change.resource, change.key.to_string()).hash(&mut hasher);
        for PlannedField { path, to, hash, .. } in change.all_fields() {
            // The text may be the beginning of a value only, and the hash is that of the whole. A
            // time behind the first 512 fields has no text, and counts.
            let to = to.as_deref().filter(|to| !is_time(to)).map(|_| hash);
            (path, to).hash(&mut hasher);
        }
    }
    Some(hasher.finish())
}

/// Whether a change is more than another time: an operator that writes the present time always
/// differs.
fn counts(change: &PlannedChange) -> bool {
    let is_clock = |field: &PlannedField| {
        let is_time = |value: &Option<String>| value.as_deref().is_some_and(is_time);
        is_time(&field.from) && is_time(&field.to)
    };
    change.action != PlannedAction::Update
        || change.more_fields > 0
        || !change.fields.iter().all(is_clock)
}

/// Whether a value is a point in time, as JSON.
fn is_time(value: &str) -> bool {
    let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    text.is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

/// Returns a change with all paths in one line.
fn text(change: &PlannedChange) -> String {
    let text = change.to_string();
    if change.action != PlannedAction::Update {
        return text;
    }
    let fields = change.fields.iter().take(SHOWN).map(|PlannedField { path, from, to, .. }| {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        format!("{path}: {} -> {}", value(from), value(to))
    });
    let fields: Vec<String> = fields.collect();
    let more = change.fields.len().saturating_sub(SHOWN) + change.more_fields;
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{text} ({}{more})", fields.join(", "))
}
