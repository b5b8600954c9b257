//! External resources as fields of a graph.
//!
//! The driver of the resource does all that matters for crashes: its records are on the object, and
//! a creation is never repeated before it is known that it did not happen. The graph adds order,
//! readiness and the deletion.

// DESIGN.md, 172: An external resource is a field of a graph, whose function returns its driver

use std::fmt;
use std::sync::Arc;

use super::applied::DependentState;
use super::graph_run::{FieldOutcome, GraphRun};
use super::node::{AnyKind, AnyNode, Boxed};
use crate::children::Readiness;
use crate::controller::{Reconciler, Result};
use crate::external::{External, ExternalState, Externals};
use windlass_core::resource::ResourceExt;

/// An external resource of a graph after an apply: its state, and the resource as it was observed.
pub struct ExternalDependent<E: External> {
    state: DependentState,
    resource: Option<Arc<ExternalState<E::Handle>>>,
}

impl<E: External> Clone for ExternalDependent<E> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), resource: self.resource.clone() }
    }
}

impl<E: External> fmt::Debug for ExternalDependent<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.resource.as_ref().map(|resource| &resource.id);
        f.debug_struct("ExternalDependent").field("state", &self.state).field("id", &id).finish()
    }
}

impl<E: External> ExternalDependent<E> {
    pub(super) fn new(
        state: DependentState,
        resource: Option<Arc<ExternalState<E::Handle>>>,
    ) -> Self {
        Self { state, resource }
    }

    /// State after the reconcile of the resource: ready, waiting, failed or not driven.
    pub fn state(&self) -> &DependentState {
        &self.state
    }

    /// Whether the resource exists as described, and is ready.
    pub fn is_ready(&self) -> bool {
        self.state == DependentState::Ready
    }

    /// The resource as it was observed; `None` if it was not, or is not there yet.
    pub fn resource(&self) -> Option<&ExternalState<E::Handle>> {
        self.resource.as_deref()
    }
}

/// Returns the driver of a resource.
type Driver<C, E> = for<'a> fn(&'a C) -> &'a Externals<E>;

/// Judges the state of a resource.
type IsReady<E> = fn(&ExternalState<<E as External>::Handle>) -> Readiness;

/// A field of a graph that is an external resource.
pub struct ExternalNode<C: Reconciler, E: External> {
    name: &'static str,
    after: &'static [usize],
    driver: Driver<C, E>,
    when: Option<fn(&C::Object) -> bool>,
    ready: Option<IsReady<E>>,
}

impl<C: Reconciler, E: External> fmt::Debug for ExternalNode<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalNode").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Reconciler, E: External> ExternalNode<C, E> {
    /// Returns a field with its name, the positions of the fields before it, and its driver.
    pub fn new(name: &'static str, after: &'static [usize], driver: Driver<C, E>) -> Self {
        Self { name, after, driver, when: None, ready: None }
    }

    /// Sets the condition without which there is no resource.
    #[must_use]
    pub fn when(mut self, when: fn(&C::Object) -> bool) -> Self {
        self.when = Some(when);
        self
    }

    /// Sets the rule for the readiness of the resource.
    #[must_use]
    pub fn ready(mut self, ready: IsReady<E>) -> Self {
        self.ready = Some(ready);
        self
    }
}

impl<E: External, C: Reconciler<Object = E::Object>> ExternalNode<C, E> {
    /// Drives the resource, and judges it.
    async fn driven(&self, run: GraphRun<'_, C>) -> FieldOutcome {
        let driver = (self.driver)(run.controller);
        let state = match driver.reconcile(run.cx).await {
            Ok(state) => Arc::new(state),
            Err(failure) => return FieldOutcome::stopped(failure),
        };
        let readiness = self.ready.map_or(Readiness::Ready, |ready| ready(&state));
        let is_ready = readiness.is_ready();
        let judged =
            if is_ready { DependentState::Ready } else { DependentState::NotReady(readiness) };
        // No watch shows what happens outside: it is observed again after the driver's interval.
        let poll = driver.requeue(run.cx).requeue_after;
        FieldOutcome::of(judged).with_poll_after(poll).with_resource(state)
    }
}

impl<E: External, C: Reconciler<Object = E::Object>> AnyNode<C> for ExternalNode<C, E> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn after(&self) -> &'static [usize] {
        self.after
    }

    fn kind(&self) -> Option<&dyn AnyKind<C>> {
        None
    }

    fn finalizer(&self) -> Option<&'static str> {
        Some(E::FINALIZER)
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
            match blocked_by {
                Some(name) => FieldOutcome::of(DependentState::After(name)),
                None => self.driven(run).await,
            }
        })
    }

    fn driver_name(&self, controller: &C) -> Option<String> {
        Some((self.driver)(controller).name().to_owned())
    }

    fn is_recorded(&self, run: GraphRun<'_, C>) -> bool {
        !(self.driver)(run.controller).parts(&run.cx.newest_own()).is_empty()
    }

    fn end<'a>(&'a self, run: GraphRun<'a, C>) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            // An object that stays is not read at each reconcile for a resource that it does not
            // have. One that is deleted is: its cache may leave the record out.
            if run.object.is_terminating() || self.is_recorded(run) {
                (self.driver)(run.controller).cleanup(run.cx).await?;
            }
            Ok(())
        })
    }
}
