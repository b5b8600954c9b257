//! The walk through a graph: each field when the fields before it have ended.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use super::applied::{Applied, AppliedChild, Dependent, DependentState};
use super::external::ExternalDependent;
use super::graph_run::{ClaimedObjects, FieldOutcome, GraphRun, panicked};
use super::marker::Marker;
use super::node::AnyNode;
use super::{Dependents, removal};
use crate::controller::{Context, Reconciler, soonest};
use crate::external::{External, ExternalState};
use windlass_client::api::Propagation;
use windlass_core::resource::Resource;

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
    let claims = ClaimedObjects::default();
    let run = GraphRun { controller, object, cx, marker: &marker, claims: &claims };
    let nodes = G::nodes();
    let mut outcomes = walk(&nodes, run).await;
    let kept: Vec<_> = outcomes.iter().map(|outcome| outcome.kept.as_deref()).collect();
    // Last: a child that takes the place of another exists before the other goes.
    let (removals, failed) =
        removal::remove::<G>(&nodes, run, &kept, Propagation::Background).await;
    let mut removing = removals.retired.count;
    for (outcome, left) in outcomes.iter_mut().zip(&removals.left) {
        removing += left.count;
        if left.count > 0 && outcome.state == DependentState::Absent {
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
    applied.with_check_after(check_after).with_poll_after(poll_after)
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
                    let Some(blocked_by) = blocked_by(nodes, node.as_ref(), &ended) else {
                        continue;
                    };
                    running[at] = Some(node.start(run, blocked_by));
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

/// Polls a field. A panic in its description, or in a rule of it, is its failure and that of no
/// other field.
fn poll_caught<C: Reconciler>(
    step: Pin<&mut (dyn Future<Output = FieldOutcome> + Send + '_)>,
    run: GraphRun<'_, C>,
    task: &mut std::task::Context<'_>,
) -> Poll<FieldOutcome> {
    // Unwind safe: a field that has ended is not polled again, and shares nothing that a panic
    // leaves half-changed.
    catch_unwind(AssertUnwindSafe(|| step.poll(task)))
        .unwrap_or_else(|panic| Poll::Ready(FieldOutcome::failed(panicked(run.cx, &*panic))))
}

/// Returns the first earlier field that is not ready. `Some(None)` if every earlier field is ready;
/// `None` while an earlier field runs.
fn blocked_by<C: Reconciler>(
    nodes: &[Box<dyn AnyNode<C>>],
    node: &dyn AnyNode<C>,
    ended: &[Option<FieldOutcome>],
) -> Option<Option<&'static str>> {
    let mut blocked_by = None;
    for before in node.after() {
        let outcome = ended[*before].as_ref()?;
        if !outcome.state.is_settled() && blocked_by.is_none() {
            blocked_by = Some(nodes[*before].name());
        }
    }
    Some(blocked_by)
}
