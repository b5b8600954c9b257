//! One pass of a rollout: reads the children, decides, applies.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::decision::{Assigned, ChildRevision, DecisionLimits, WantedChild, decide};
use super::revisions::{Revision, Revisions};
use super::{
    CANARY_PASSED_AT, CANARY_READY_AT, PROMOTE, READY_AT, REFUSED_SINCE, REVISION, REVISION_SINCE,
    ROLLED_BACK, ROLLOUT, Rollout, RolloutPhase, RolloutStatus, Settings, UPDATED_READY_AT,
};
use crate::children::{LABEL, Readiness};
use crate::controller::{Context, Reconciler, is_refusal};
use crate::events::Warning;
use windlass_core::error::Error;
use windlass_core::rbac::Owns;
use windlass_core::resource::{FullObject, ResourceExt};
use windlass_core::text::shorten;

/// Longest part of an annotation's value in a message, in bytes.
const LONGEST_VALUE: usize = 80;

/// One pass.
pub(super) struct RolloutRun<'a, C: Reconciler, S> {
    cx: &'a Context<C>,
    rollout: &'a str,
    names: &'a [String],
    state: S,
    settings: Settings,
    now: Timestamp,
    is_field: bool,
}

/// A wanted child, as the cache shows it.
struct RolloutChild {
    wanted: WantedChild,
    /// Name of its revision; empty for a missing child, and for one that has none.
    revision: String,
    /// Time at which it got the revision.
    since: Option<Timestamp>,
}

/// The children and the revisions that matter.
struct RolloutView<'a, C: Reconciler> {
    children: Vec<RolloutChild>,
    revisions: Revisions<'a, C>,
    /// Name of the revision of the wanted state.
    newest: String,
    /// The revision that children get.
    target: Revision,
    good: Option<Revision>,
    /// The reason for which the newest revision was rolled back.
    rolled_back: Option<String>,
}

impl<'a, C, S> RolloutRun<'a, C, S>
where
    C: Reconciler + Owns<ControllerRevision>,
    S: Serialize + DeserializeOwned + Send + Sync,
{
    pub(super) fn new(rollout: Rollout<'a, C, S>, names: &'a [String]) -> Result<Self, Error> {
        let Rollout { cx, name, state, settings, is_field } = rollout;
        let unique: BTreeSet<_> = names.iter().collect();
        if unique.len() < names.len() {
            let text = format!(
                "cannot apply rollout \"{name}\": a child is named twice; give each its own name"
            );
            return Err(Error::usage(text));
        }
        if cx.object().namespace().is_none() {
            let text = format!(
                "cannot apply rollout \"{name}\" of a cluster-scoped object: its revisions are namespaced; apply the \
                 children of such an object by `apply_owned` or as a graph"
            );
            return Err(Error::usage(text));
        }
        let now = cx.clock().wall();
        Ok(Self { cx, rollout: name, names, state, settings, now, is_field })
    }

    /// Applies the children as far as the rules permit it.
    pub(super) async fn apply<K>(
        self,
        desired: &(impl Fn(&str, &S) -> K + Send + Sync),
        is_ready: &(impl Fn(&K) -> bool + Send + Sync),
    ) -> Result<RolloutStatus, Error>
    where
        K: FullObject,
        C: Owns<K>,
    {
        let mut view = self.view(is_ready).await?;
        let partition = self.effective_partition(&mut view).await?;
        let limits = DecisionLimits {
            max_unavailable: self.settings.max_unavailable,
            partition: partition.count,
            has_good: view.good.is_some(),
        };
        // One child that is refused does not stop the others.
        let (mut failure, mut is_refused) = (None, false);
        let children: Vec<WantedChild> = view.children.iter().map(|child| child.wanted).collect();
        for ((name, child), assigned) in
            self.names.iter().zip(&view.children).zip(decide(&children, &limits))
        {
            let revision = match assigned {
                Assigned::Target => Some(&view.target),
                Assigned::Good => view.good.as_ref(),
                Assigned::Own => view.revisions.get(&child.revision),
            };
            // A child without a known revision, as one of an older operator, is left as it is.
            let Some(revision) = revision else { continue };
            let Some(child) = self.child(name, child, revision, desired) else { continue };
            if let Err(error) = self.cx.apply_owned(child).await {
                is_refused |= matches!(assigned, Assigned::Target) && is_refusal(&error);
                failure.get_or_insert(error);
            }
        }
        self.note_refusal(&mut view, is_refused).await?;
        // Children of a graph's field are deleted by the graph, in its order.
        if !self.is_field
            && let Err(error) = self.delete_others::<K>().await
        {
            failure.get_or_insert(error);
        }
        let status = self.finish(view, &partition).await?;
        failure.map_or(Ok(status), Err)
    }

    /// Reads the children, and chooses the revision that they get.
    async fn view<K>(
        &self,
        is_ready: &(impl Fn(&K) -> bool + Send + Sync),
    ) -> Result<RolloutView<'a, C>, Error>
    where
        K: FullObject,
        C: Owns<K>,
    {
        let state = serde_json::to_value(&self.state).map_err(|error| {
            let text = format!("cannot turn the state of rollout \"{}\" into JSON", self.rollout);
            Error::usage(text).because(error)
        })?;
        let mut revisions = Revisions::read(self.cx, self.rollout)?;
        let newest = revisions.newest(&state).await?;
        let newest_name = newest.name.clone();
        let usable =
            |good: &Revision| good.name != newest.name && S::deserialize(&good.state).is_ok();
        let good = revisions.good(usable).cloned();
        let mut rolled_back = newest.annotation(ROLLED_BACK).map(str::to_owned);
        let mut children = self.children::<K>(&newest.name, is_ready);
        if rolled_back.is_none()
            && let Some(reason) = self.too_late(&newest, &children, good.is_some())
        {
            if good.is_some() {
                self.cx.event(
                    Warning,
                    "RolledBack",
                    format_args!("revision {}: {reason}", newest.name),
                );
            }
            revisions.roll_back(&newest.name, &reason).await?;
            rolled_back = Some(reason);
        }
        let target = match (&rolled_back, &good) {
            (Some(_), Some(good)) => good.clone(),
            _ => newest,
        };
        for child in &mut children {
            child.wanted.at = child.wanted.at.map(|_| match child.revision == target.name {
                true => ChildRevision::Target,
                false => ChildRevision::Other,
            });
        }
        Ok(RolloutView { children, revisions, newest: newest_name, target, good, rolled_back })
    }

    /// Reads the wanted children from the cache.
    fn children<K>(
        &self,
        newest: &str,
        is_ready: &(impl Fn(&K) -> bool + Send + Sync),
    ) -> Vec<RolloutChild>
    where
        K: FullObject,
        C: Owns<K>,
    {
        let store = self.cx.store_of::<K>();
        let owner = self.cx.object().uid();
        let of = |name: &String| {
            let cached = store.get(&self.cx.near_key::<K>(name));
            // One that does not decode is not ready, and is updated.
            let child = cached.and_then(|cached| cached.get().ok());
            let child = child.filter(|child| {
                let owners = child.metadata().owner_references.iter().flatten();
                owners.clone().any(|one| one.controller == Some(true) && one.uid == owner)
            });
            let Some(child) = child else {
                let wanted = WantedChild { at: None, is_ready: false };
                return RolloutChild { wanted, revision: String::new(), since: None };
            };
            let revision = child.label(REVISION).unwrap_or_default().to_owned();
            let at =
                Some(if revision == newest { ChildRevision::Target } else { ChildRevision::Other });
            let is_ready = Readiness::shared(&*child).is_none() && is_ready(&child);
            let since = child.annotation(REVISION_SINCE).and_then(|time| time.parse().ok());
            RolloutChild { wanted: WantedChild { at, is_ready }, revision, since }
        };
        self.names.iter().map(of).collect()
    }

    /// The deadline while a revision is on probation: until all children were ready in it. A child
    /// that joins a complete revision later, or is made again, says nothing about the revision, and
    /// a rollback would take it from the others.
    fn deadline(&self, revision: &Revision) -> Option<Duration> {
        self.settings.deadline.filter(|_| revision.time(READY_AT).is_none())
    }

    /// The reason to roll the newest revision back, if there is one. A child that was ready in the
    /// revision, and stops being so, says nothing about it. Refusals roll back only to a good
    /// revision: without one the children are tried on, since a policy or a grant may change.
    fn too_late(
        &self,
        newest: &Revision,
        children: &[RolloutChild],
        has_good: bool,
    ) -> Option<String> {
        let deadline = self.deadline(newest)?;
        if has_good && self.refused(newest).is_some_and(|refused| refused >= deadline) {
            let text = "a child was refused by the API server for";
            return Some(format!("{text} {} s", deadline.as_secs()));
        }
        let late = children
            .iter()
            .zip(self.names)
            .find(|(child, _)| self.waited(newest, child).is_some_and(|waited| waited >= deadline));
        late.map(|(_, name)| format!("\"{name}\" was not ready within {} s", deadline.as_secs()))
    }

    /// Time that has passed since a child got the revision, while it is not ready; `None` for a
    /// child that the deadline does not concern.
    fn waited(&self, revision: &Revision, child: &RolloutChild) -> Option<Duration> {
        if child.wanted.at != Some(ChildRevision::Target) || child.wanted.is_ready {
            return None;
        }
        let all_ready = revision.time(UPDATED_READY_AT);
        let since = child.since.filter(|since| all_ready.is_none_or(|then| *since >= then));
        since.and_then(|since| passed(since, self.now))
    }

    /// Time that has passed since the API server began to refuse a child in the revision.
    fn refused(&self, revision: &Revision) -> Option<Duration> {
        revision.time(REFUSED_SINCE).and_then(|since| passed(since, self.now))
    }

    /// Records the time since which the API server refuses a child in the newest revision: such a
    /// child never gets the revision, so no other mark begins its deadline.
    async fn note_refusal(
        &self,
        view: &mut RolloutView<'_, C>,
        is_refused: bool,
    ) -> Result<(), Error> {
        if self.settings.deadline.is_none() || view.rolled_back.is_some() {
            return Ok(());
        }
        let since = view.target.time(REFUSED_SINCE).unwrap_or(self.now);
        let value = is_refused.then(|| since.to_string());
        view.revisions.annotate(&view.target.name, REFUSED_SINCE, value).await
    }

    /// The time until the first deadline of a child: the whole deadline if no child waits.
    fn deadline_in(&self, view: &RolloutView<'_, C>) -> Option<Duration> {
        let deadline = self.deadline(&view.target).filter(|_| view.rolled_back.is_none())?;
        let waited = |child: &RolloutChild| self.waited(&view.target, child);
        let longest = view.children.iter().filter_map(waited).max().unwrap_or_default();
        Some(deadline.saturating_sub(longest))
    }

    /// Makes a child, with the marks of its revision; `None` when the state does not decode any
    /// more.
    fn child<K: FullObject>(
        &self,
        name: &str,
        found: &RolloutChild,
        revision: &Revision,
        desired: &(impl Fn(&str, &S) -> K + Send + Sync),
    ) -> Option<K> {
        let state: S = S::deserialize(&revision.state).ok()?;
        let mut child = desired(name, &state);
        let metadata = child.metadata_mut();
        metadata.name = Some(name.to_owned());
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(ROLLOUT.to_owned(), self.rollout.to_owned());
        labels.insert(REVISION.to_owned(), revision.name.clone());
        if self.is_field {
            labels.insert(LABEL.to_owned(), self.rollout.to_owned());
        }
        // The same text as before while the revision is the same: otherwise each reconcile would
        // write it.
        let since = found.since.filter(|_| found.revision == revision.name).unwrap_or(self.now);
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(REVISION_SINCE.to_owned(), since.to_string());
        Some(child)
    }

    /// Deletes children of this rollout that are not wanted any more.
    async fn delete_others<K>(&self) -> Result<(), Error>
    where
        K: FullObject,
        C: Owns<K>,
    {
        for cached in self.cx.cached_children::<K>() {
            let is_ours = cached.metadata().label(ROLLOUT) == Some(self.rollout);
            let is_wanted = self.names.iter().any(|name| name == cached.key().name());
            if is_ours && !is_wanted && !cached.metadata().is_terminating() {
                self.cx.delete_owned::<K>(cached.key().name()).await?;
            }
        }
        Ok(())
    }
}

/// Children that keep their revisions: those below the partition, and those that wait for a canary.
struct EffectivePartition {
    /// Their number, from the first.
    count: usize,
    /// Whether they wait for a canary, and the rest of its pause (`None`: until a person approves).
    canary: Option<Option<Duration>>,
}

impl<C, S> RolloutRun<'_, C, S>
where
    C: Reconciler + Owns<ControllerRevision>,
    S: Serialize + DeserializeOwned + Send + Sync,
{
    /// Decides which children keep their revisions, and records the time since which the canaries
    /// are ready.
    async fn effective_partition(
        &self,
        view: &mut RolloutView<'_, C>,
    ) -> Result<EffectivePartition, Error> {
        let total = view.children.len();
        let none = |count| Ok(EffectivePartition { count, canary: None });
        match (&view.rolled_back, &view.good) {
            // A rollback changes all children; neither partition nor canary limits it.
            (Some(_), Some(_)) => return none(0),
            // Stalled: no further child gets the revision.
            (Some(_), None) => return none(total),
            (None, _) => {}
        }
        let partition = self.settings.partition.min(total);
        let canary = self.settings.canary.filter(|_| view.good.is_some());
        let Some(canary) = canary.filter(|canary| partition + canary.count < total) else {
            return none(partition);
        };
        // Noted, and not concluded from the children: their number may change meanwhile.
        if view.target.annotation(CANARY_PASSED_AT).is_some() {
            return none(partition);
        }
        let first = total - canary.count;
        let is_done = |child: &RolloutChild| {
            child.wanted.at == Some(ChildRevision::Target) && child.wanted.is_ready
        };
        let is_ready = view.children[first..].iter().all(is_done);
        let since = is_ready.then(|| view.target.time(CANARY_READY_AT).unwrap_or(self.now));
        let text = since.map(|since| since.to_string());
        view.revisions.annotate(&view.target.name, CANARY_READY_AT, text).await?;
        let Some(since) = since else { return none(first) };
        let rest = canary
            .pause
            .map(|pause| pause.saturating_sub(passed(since, self.now).unwrap_or_default()));
        if rest.is_some_and(|rest| rest.is_zero()) || self.is_promoted(&view.target) {
            let now = Some(self.now.to_string());
            view.revisions.annotate(&view.target.name, CANARY_PASSED_AT, now).await?;
            return none(partition);
        }
        Ok(EffectivePartition { count: first, canary: Some(rest) })
    }

    /// Whether a person approved the canary of a revision.
    fn is_promoted(&self, revision: &Revision) -> bool {
        let object = self.cx.object();
        object
            .annotation(PROMOTE)
            .is_some_and(|names| names.split(',').any(|it| it.trim() == revision.name))
    }

    /// Returns the value of [`PROMOTE`] while a canary waits for an approval.
    fn not_promoted(&self, phase: &RolloutPhase) -> Option<String> {
        let value = self.cx.object().annotation(PROMOTE);
        let value = value.filter(|_| matches!(phase, RolloutPhase::Paused(_)))?;
        Some(shorten(value.to_owned(), LONGEST_VALUE))
    }

    /// Notes that a revision is good, deletes old revisions, and returns the status.
    async fn finish(
        &self,
        mut view: RolloutView<'_, C>,
        partition: &EffectivePartition,
    ) -> Result<RolloutStatus, Error> {
        let deadline_in = self.deadline_in(&view);
        let (total, target) = (view.children.len(), view.target.name.clone());
        let is_done = |child: &RolloutChild| {
            child.wanted.at == Some(ChildRevision::Target) && child.wanted.is_ready
        };
        let updated =
            view.children.iter().filter(|it| it.wanted.at == Some(ChildRevision::Target)).count();
        let ready = view.children.iter().filter(|child| child.wanted.is_ready).count();
        let are_done = view.children.iter().skip(partition.count).all(is_done);
        // All children became ready in spite of their delay.
        if view.rolled_back.is_some() && view.good.is_none() && view.children.iter().all(is_done) {
            view.revisions.annotate(&target, ROLLED_BACK, None).await?;
            view.rolled_back = None;
        }
        let phase = match (view.rolled_back.take(), partition.canary) {
            (Some(reason), _) if view.good.is_none() => RolloutPhase::Stalled(reason),
            (Some(reason), _) if are_done => RolloutPhase::RolledBack(reason),
            (None, Some(rest)) => RolloutPhase::Paused(rest),
            _ if !are_done => RolloutPhase::Progressing,
            _ if updated < total => RolloutPhase::Partitioned,
            _ => RolloutPhase::Complete,
        };
        if phase == RolloutPhase::Complete && total > 0 && view.target.time(READY_AT).is_none() {
            let now = self.now.to_string();
            view.revisions.annotate(&target, READY_AT, Some(now)).await?;
        }
        self.note_updated(&mut view).await?;
        let good = view.good.as_ref().map(|good| good.name.as_str());
        let newest = view.newest;
        let is_used = |revision: &Revision| {
            revision.name == target
                || Some(revision.name.as_str()) == good
                || revision.name == newest
                || view.children.iter().any(|child| child.revision == revision.name)
        };
        view.revisions.prune(self.settings.history, is_used).await?;
        let not_promoted = self.not_promoted(&phase);
        let revision = target;
        Ok(RolloutStatus { revision, total, updated, ready, phase, deadline_in, not_promoted })
    }

    /// Notes that all children of the revision are ready, when one of them got it since the last
    /// note.
    async fn note_updated(&self, view: &mut RolloutView<'_, C>) -> Result<(), Error> {
        let updated =
            || view.children.iter().filter(|it| it.wanted.at == Some(ChildRevision::Target));
        let noted = view.target.time(UPDATED_READY_AT);
        let is_new = |child: &RolloutChild| {
            child.since.is_none_or(|since| noted.is_none_or(|then| since >= then))
        };
        if self.settings.deadline.is_none()
            || !updated().all(|child| child.wanted.is_ready)
            || !updated().any(is_new)
            || noted == Some(self.now)
        {
            return Ok(());
        }
        let now = Some(self.now.to_string());
        view.revisions.annotate(&view.target.name, UPDATED_READY_AT, now).await
    }
}

/// Time between two points; `None` when the clock went backwards.
fn passed(since: Timestamp, now: Timestamp) -> Option<Duration> {
    Duration::try_from(now.duration_since(since)).ok()
}
