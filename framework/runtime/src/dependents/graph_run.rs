//! One apply or deletion of a graph: the data that all fields share, and the outcome of each field.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use super::applied::{AppliedChild, DependentState};
use super::marker::Marker;
use crate::controller::{Context, Failure, Reconciler};
use windlass_core::metrics::names;
use windlass_core::panics::panic_text;
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};
use windlass_core::sync::Mutex;

/// An apply or a deletion of a graph.
pub struct GraphRun<'a, C: Reconciler> {
    pub(super) controller: &'a C,
    pub(super) object: &'a C::Object,
    pub(super) cx: &'a Context<C>,
    pub(super) marker: &'a Marker,
    pub(super) claims: &'a ClaimedObjects,
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
/// Two fields with one object would label it in turn, in every reconcile. Behind a lock because all
/// fields share it; one task polls all fields, so the lock is never contended.
#[derive(Debug, Default)]
pub(super) struct ClaimedObjects(Mutex<BTreeMap<ClaimedObject, &'static str>>);

/// The name of an object's kind, and its key.
type ClaimedObject = (Option<KindName>, ObjectKey);

impl ClaimedObjects {
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

/// Plural and group of a kind, equal in all versions of that kind.
pub(super) type KindName = (Cow<'static, str>, Cow<'static, str>);

/// Returns plural name and group of a kind.
pub(super) fn kind_name(info: ResourceInfo) -> KindName {
    (info.plural, info.group)
}

/// Objects of a field, type-erased.
pub(super) type FieldObjects = Box<dyn Any + Send>;

/// Outcome of one field.
pub struct FieldOutcome {
    pub(super) state: DependentState,
    /// The keys of the children that stay. `None`: unknown, so none of the field's children may be
    /// removed.
    pub(super) kept: Option<Vec<ObjectKey>>,
    pub(super) failure: Option<Failure>,
    /// Delay of the next check that the description asked for, if it waits.
    pub(super) check_after: Option<Duration>,
    /// Time after which the field is looked at again in any case.
    pub(super) poll_after: Option<Duration>,
    pub(super) objects: Option<FieldObjects>,
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
    pub(super) fn with_check_after(mut self, delay: Option<Duration>) -> Self {
        self.check_after = delay;
        self
    }

    /// Sets the time after which the field is looked at again.
    pub(super) fn with_poll_after(mut self, delay: Option<Duration>) -> Self {
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

/// Counts the panic as a reconcile panic and returns it as a failure.
pub(super) fn panicked<C: Reconciler>(cx: &Context<C>, panic: &(dyn Any + Send)) -> Failure {
    cx.metrics().count(&names::RECONCILE_PANICS, &[cx.controller_name()], 1);
    Failure::from(format!("panicked: {}", panic_text(panic)))
}
