//! The walk through a graph: each field when the fields before it have ended.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::applied::{Applied, AppliedChild, Dependent, DependentState};
use super::external::ExternalDependent;
use super::marker::Marker;
use super::node::{AnyNode, FieldObjects, KindName, kind_name};
use super::{Dependents, removal};
use crate::controller::{Context, Failure, Reconciler, soonest};
use crate::external::{External, ExternalState};
use windlass_client::api::Propagation;
use windlass_core::metrics::names;
use windlass_core::panics::panic_text;
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::sync::Mutex;

/// An apply or a deletion of a graph.
pub struct GraphRun<'a, C: Reconciler> {
    pub(super) controller: &'a C,
    pub(super) object: &'a C::Object,
    pub(super) cx: &'a Context<C>,
    pub(super) marker: &'a Marker,
    pub(super) claims: &'a Claims,
}

impl<C: Reconciler> Clone for GraphRun<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Reconciler> Copy for GraphRun<'_, C> {}

impl<C: Reconciler> fmt::Debug for GraphRun<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphRun").field("cx", self.cx).finish_non_exhaustive()
    }
}

/// The objects that fields have described in one apply, each with its field.
///
/// Two fields with one object would label it in turn, in every reconcile. Behind a lock because all fields
/// share it; one task polls them, so that nobody waits.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<BTreeMap<ClaimedObject, &'static str>>);

/// The name of an object's kind, and its key.
type ClaimedObject = (Option<KindName>, ObjectKey);

impl Claims {
    /// Gives an object to a field; returns the field that has it already, if any.
    pub(super) fn claim<K: Resource>(
        &self,
        key: &ObjectKey,
        field: &'static str,
    ) -> Option<&'static str> {
        let kind = K::static_info().map(kind_name);
        match self.0.lock().entry((kind, key.clone())) {
            Entry::Vacant(free) => {
                free.insert(field);
                None
            }
            Entry::Occupied(taken) => Some(*taken.get()),
        }
    }
}

/// Outcome of one field.
pub struct FieldOutcome {
    pub(super) state: DependentState,
    /// The keys of the children that stay; `None` when the field does not know them, and nothing
    /// of it may be removed.
    pub(super) kept: Option<Vec<ObjectKey>>,
    pub(super) failure: Option<Failure>,
    /// Delay of the next check that the description asked for, if it waits.
    check_after: Option<Duration>,
    /// Time after which the field is looked at again in any case.
    poll_after: Option<Duration>,
    objects: Option<FieldObjects>,
}

impl fmt::Debug for FieldOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldOutcome").field("state", &self.state).finish_non_exhaustive()
    }
}

impl FieldOutcome {
    /// Returns the outcome of a field that removes nothing.
    pub(super) fn of(state: DependentState) -> Self {
        let (check_after, poll_after) = (None, None);
        Self { state, kept: None, failure: None, check_after, poll_after, objects: None }
    }

    /// Returns the outcome of a field that failed.
    pub(super) fn failed(failure: Failure) -> Self {
        let state = DependentState::Failed(failure.to_string());
        Self { failure: Some(failure), ..Self::of(state) }
    }

    /// Returns the outcome of a field whose description or driver ended with a failure or a wait.
    pub(super) fn stopped(failure: Failure) -> Self {
        match failure.into_wait() {
            Ok(wait) => {
                let outcome = Self::of(DependentState::Waits(wait.text.clone()));
                Self { check_after: wait.check_after, ..outcome }
            }
            Err(failure) => Self::failed(failure),
        }
    }

    /// Sets the delay of the next check of a field that waits.
    pub(super) fn checked_after(mut self, delay: Option<Duration>) -> Self {
        self.check_after = delay;
        self
    }

    /// Sets the time after which the field is looked at again.
    pub(super) fn polled_after(mut self, delay: Option<Duration>) -> Self {
        self.poll_after = delay;
        self
    }

    /// Sets the children that stay; all others of the field are removed.
    pub(super) fn keeping(mut self, kept: Vec<ObjectKey>) -> Self {
        self.kept = Some(kept);
        self
    }

    /// Sets the children.
    pub(super) fn with_children<K: Resource>(mut self, children: Vec<AppliedChild<K>>) -> Self {
        self.objects = Some(Box::new(children));
        self
    }

    /// Sets an external resource.
    pub(super) fn with_resource<R: Send + 'static>(mut self, resource: R) -> Self {
        self.objects = Some(Box::new(resource));
        self
    }
}

/// The outcomes of a run, to be taken by derived code: each once, by its position and kind.
#[derive(Debug)]
pub struct FieldOutcomes(Vec<FieldOutcome>);

impl FieldOutcomes {
    /// Takes the objects of a field.
    pub fn take<K: Resource>(&mut self, at: usize) -> Dependent<K> {
        let outcome = &mut self.0[at];
        let objects = outcome.objects.take();
        let children = objects.and_then(|it| it.downcast::<Vec<AppliedChild<K>>>().ok());
        Dependent::new(outcome.state.clone(), children.map_or_else(Vec::new, |it| *it))
    }

    /// Takes the external resource of a field.
    pub fn take_external<E: External>(&mut self, at: usize) -> ExternalDependent<E> {
        type State<E> = Arc<ExternalState<<E as External>::Handle>>;
        let outcome = &mut self.0[at];
        let objects = outcome.objects.take();
        let resource = objects.and_then(|found| found.downcast::<State<E>>().ok());
        ExternalDependent::new(outcome.state.clone(), resource.map(|it| *it))
    }
}

/// Applies a graph.
pub(super) async fn apply<G: Dependents>(
    controller: &G::Controller,
    object: &<G::Controller as Reconciler>::Object,
    cx: &Context<G::Controller>,
) -> Applied<G> {
    let marker = Marker::new(cx.controller_name(), G::NAME);
    let claims = Claims::default();
    let run = GraphRun { controller, object, cx, marker: &marker, claims: &claims };
    let nodes = G::nodes();
    let mut outcomes = walk(&nodes, run).await;
    let kept: Vec<_> = outcomes.iter().map(|outcome| outcome.kept.as_deref()).collect();
    // Last: a child that takes the place of another exists before the other goes.
    let (removals, failed) =
        removal::remove::<G>(&nodes, run, &kept, Propagation::Background).await;
    let mut removing = removals.retired;
    for (outcome, left) in outcomes.iter_mut().zip(&removals.left) {
        removing += left;
        if *left > 0 && outcome.state == DependentState::Absent {
            outcome.state = DependentState::Removing;
        }
    }
    let mut failures = Vec::new();
    for (node, outcome) in nodes.iter().zip(&mut outcomes) {
        let failure = outcome.failure.take();
        failures.extend(failure.map(|it| it.tried(format!("applying {}", node.name()))));
    }
    failures.extend(failed);
    let states = nodes.iter().zip(&outcomes);
    let states = states.map(|(node, outcome)| (node.name(), outcome.state.clone())).collect();
    let check_after = outcomes.iter().filter_map(|outcome| outcome.check_after).min();
    let poll_after = outcomes.iter().filter_map(|outcome| outcome.poll_after).min();
    let fields = G::fields(&mut FieldOutcomes(outcomes));
    let applied = Applied::<G>::new(fields, states, removing, soonest(failures));
    applied.checked_after(check_after).polled_after(poll_after)
}

/// Runs every field when those before it have ended, side by side where they may.
///
/// One task polls all: their requests overlap, and the order is the same in every run.
async fn walk<C: Reconciler>(
    nodes: &[Box<dyn AnyNode<C>>],
    run: GraphRun<'_, C>,
) -> Vec<FieldOutcome> {
    type Step<'a> = Pin<Box<dyn Future<Output = FieldOutcome> + Send + 'a>>;
    let mut running: Vec<Option<Step<'_>>> = nodes.iter().map(|_| None).collect();
    let mut ended: Vec<Option<FieldOutcome>> = nodes.iter().map(|_| None).collect();
    poll_fn(|task| {
        loop {
            let mut has_progressed = false;
            for (at, node) in nodes.iter().enumerate() {
                if ended[at].is_some() {
                    continue;
                }
                if running[at].is_none() {
                    let Some(held_by) = held_by(nodes, node.as_ref(), &ended) else { continue };
                    running[at] = Some(node.start(run, held_by));
                }
                if let Some(step) = &mut running[at]
                    && let Poll::Ready(outcome) = poll_caught(step.as_mut(), run, task)
                {
                    (ended[at], running[at]) = (Some(outcome), None);
                    has_progressed = true;
                }
            }
            if ended.iter().all(Option::is_some) {
                return Poll::Ready(());
            }
            // The end of a field may have freed one that stands before it.
            if !has_progressed {
                return Poll::Pending;
            }
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}

// DESIGN.md, 213: A panic in a description is the failure of its field

/// Polls a field. A panic in its description, or in a rule of it, is its failure and that of no other field.
fn poll_caught<C: Reconciler>(
    step: Pin<&mut (dyn Future<Output = FieldOutcome> + Send + '_)>,
    run: GraphRun<'_, C>,
    task: &mut std::task::Context<'_>,
) -> Poll<FieldOutcome> {
    // Unwind safe: a field that has ended is not polled again, and shares nothing that a panic leaves half-changed.
    catch_unwind(AssertUnwindSafe(|| step.poll(task)))
        .unwrap_or_else(|panic| Poll::Ready(FieldOutcome::failed(panicked(run.cx, &*panic))))
}

/// Counts a panic as one of a reconcile is, and returns it as a failure.
pub(super) fn panicked<C: Reconciler>(cx: &Context<C>, panic: &(dyn Any + Send)) -> Failure {
    cx.metrics().count(&names::RECONCILE_PANICS, &[cx.controller_name()], 1);
    Failure::from(format!("panicked: {}", panic_text(panic)))
}

/// Returns the first field before `node` that is not ready, if any; `None` while one has not ended.
fn held_by<C: Reconciler>(
    nodes: &[Box<dyn AnyNode<C>>],
    node: &dyn AnyNode<C>,
    ended: &[Option<FieldOutcome>],
) -> Option<Option<&'static str>> {
    let mut holder = None;
    for before in node.after() {
        let outcome = ended[*before].as_ref()?;
        if !outcome.state.is_settled() && holder.is_none() {
            holder = Some(nodes[*before].name());
        }
    }
    Some(holder)
}
