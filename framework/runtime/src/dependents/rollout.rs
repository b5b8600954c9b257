//! Rolling changes as fields of a graph.
//!
//! The rollout applies the children, each from the revision that the rules give it; the graph adds
//! order and readiness, and removes children that are not named any more, as it does of other
//! fields.

// DESIGN.md, 173: A rollout is a field whose function returns names, state and rules

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;

use super::applied::{AppliedChild, DependentState};
use super::graph_run::{FieldOutcome, GraphRun};
use super::node::{AnyKind, AnyNode, Boxed, OwnedKind};
use crate::children::Readiness;
use crate::controller::{Context, Reconciler, Result};
use crate::rollout::{RolloutChildren, RolloutPass, RolloutPhase, RolloutStatus};
use windlass_core::error::Error;
use windlass_core::rbac::Owns;
use windlass_core::resource::{FullObject, ObjectKey};

/// A boxed description of a rollout.
type DescribeRollout<C, K> = for<'a> fn(
    &'a C,
    &'a <C as Reconciler>::Object,
    &'a Context<C>,
) -> Boxed<'a, Result<RolloutChildren<C, K>>>;

/// A field of a graph whose children change one after the other.
pub struct RolloutNode<C: Reconciler, K> {
    name: &'static str,
    after: &'static [usize],
    desired: DescribeRollout<C, K>,
    when: Option<fn(&C::Object) -> bool>,
    ready: Option<fn(&K) -> Readiness>,
    kind: OwnedKind<K>,
    revisions: OwnedKind<ControllerRevision>,
}

impl<C: Reconciler, K> fmt::Debug for RolloutNode<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RolloutNode").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Reconciler, K> RolloutNode<C, K> {
    /// Returns a field with its name, the positions of the fields before it, and its description.
    pub fn new(
        name: &'static str,
        after: &'static [usize],
        desired: DescribeRollout<C, K>,
    ) -> Self {
        let (kind, revisions) = (OwnedKind::new(), OwnedKind::new());
        Self { name, after, desired, when: None, ready: None, kind, revisions }
    }

    /// Sets the condition without which it has no children.
    #[must_use]
    pub fn when(mut self, when: fn(&C::Object) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Sets the rule for the readiness of a child.
    #[must_use]
    pub fn ready(mut self, ready: fn(&K) -> Readiness) -> Self {
        self.ready = Some(ready);
        self
    }
}

impl<C: Reconciler + Owns<K>, K: FullObject> RolloutNode<C, K> {
    /// Applies the children as far as the rollout permits it.
    async fn applied(&self, run: GraphRun<'_, C>) -> Result<FieldOutcome> {
        let RolloutChildren { names, settings, apply } =
            (self.desired)(run.controller, run.object, run.cx).await?;
        let keys: Vec<ObjectKey> = names.iter().map(|name| run.cx.near_key::<K>(name)).collect();
        for (name, key) in names.iter().zip(&keys) {
            if let Some(field) = run.claims.claim::<K>(key, self.name) {
                let text = format!(
                    "its object \"{name}\" is described by the field `{field}` already: an object is the child of one \
                     field, once"
                );
                return Err(Error::usage(text).into());
            }
        }
        let (now, ready) = (run.cx.clock().wall(), self.ready);
        let is_ready = move |child: &K| Readiness::judged(child, now, ready).is_ready();
        let name = run.marker.of(self.name);
        let pass =
            RolloutPass { cx: run.cx, name: &name, names: &names, settings, is_ready: &is_ready };
        let status = apply(pass).await?;
        let store = run.cx.store_of::<K>();
        let objects = keys.iter().filter_map(|key| store.get(key)?.get().ok());
        let objects =
            objects.map(|child| AppliedChild::Whole(Box::new(Arc::unwrap_or_clone(child))));
        let objects = objects.collect();
        // A field that is done, or has failed, needs no check.
        let rest = match &status.phase {
            RolloutPhase::Progressing | RolloutPhase::Paused(_) => status.check_after(),
            _ => None,
        };
        Ok(FieldOutcome::of(state(&status))
            .with_check_after(rest)
            .keeping(keys)
            .with_children(objects))
    }
}

/// Returns the state of a field by that of its rollout.
fn state(status: &RolloutStatus) -> DependentState {
    DependentState::NotReady(match &status.phase {
        RolloutPhase::Complete | RolloutPhase::Partitioned => return DependentState::Ready,
        RolloutPhase::Progressing => Readiness::in_progress("RollingOut", status.text()),
        RolloutPhase::Paused(_) => Readiness::in_progress("CanaryPaused", status.text()),
        RolloutPhase::RolledBack(reason) => Readiness::failed("RolledBack", reason),
        RolloutPhase::Stalled(reason) => Readiness::failed("RolloutStalled", reason),
    })
}

impl<C, K> AnyNode<C> for RolloutNode<C, K>
where
    C: Reconciler + Owns<K> + Owns<ControllerRevision>,
    K: FullObject,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn after(&self) -> &'static [usize] {
        self.after
    }

    fn kind(&self) -> Option<&dyn AnyKind<C>> {
        Some(&self.kind)
    }

    fn revisions(&self) -> Option<&dyn AnyKind<C>> {
        Some(&self.revisions)
    }

    fn is_unwanted(&self, object: &C::Object) -> bool {
        self.when.is_some_and(|when| !when(object))
    }

    fn start<'a>(
        &'a self,
        run: GraphRun<'a, C>,
        blocked_by: Option<&'static str>,
    ) -> Boxed<'a, FieldOutcome> {
        Box::pin(async move {
            if self.is_unwanted(run.object) {
                return FieldOutcome::of(DependentState::Absent).keeping(Vec::new());
            }
            if let Some(name) = blocked_by {
                return FieldOutcome::of(DependentState::After(name));
            }
            self.applied(run).await.unwrap_or_else(FieldOutcome::stopped)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_field_is_as_far_as_its_rollout() {
        let text = || "late".to_owned();
        for (phase, expected) in [
            (RolloutPhase::Complete, "Ready"),
            (RolloutPhase::Partitioned, "Ready"),
            (RolloutPhase::Progressing, "InProgress RollingOut 1 of 3 updated, 2 ready"),
            (
                RolloutPhase::Paused(Some(Duration::ZERO)),
                "InProgress CanaryPaused 1 of 3 updated, 2 ready; the canary is ready, and the others wait; \
                 to go on before the pause is over: annotation windlass.dev/promote=r",
            ),
            (RolloutPhase::RolledBack(text()), "Failed RolledBack late"),
            (RolloutPhase::Stalled(text()), "Failed RolloutStalled late"),
        ] {
            let revision = "r".to_owned();
            let (deadline_in, not_promoted) = (None, None);
            let (total, updated, ready) = (3, 1, 2);
            let status =
                RolloutStatus { revision, total, updated, ready, phase, deadline_in, not_promoted };
            let found = match state(&status) {
                DependentState::Ready => "Ready".to_owned(),
                DependentState::NotReady(Readiness::InProgress { reason, message }) => {
                    format!("InProgress {reason} {message}")
                }
                DependentState::NotReady(Readiness::Failed { reason, message }) => {
                    format!("Failed {reason} {message}")
                }
                other => format!("{other:?}"),
            };
            assert_eq!(found, expected);
        }
    }
}
