//! One field of a graph: its children as the controller describes them, applied and judged.
//!
//! The trait objects are for the walk through the graph, which does not know the kinds.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use super::applied::{AppliedChild, DependentState};
use super::graph_run::{FieldOutcome, GraphRun};
use super::marker::Marker;
use crate::children::{LABEL, Readiness};
use crate::controller::{Context, ControllerBuilder, Failure, Reconciler, Result, soonest};
use windlass_client::api::Propagation;
use windlass_core::error::Error;
use windlass_core::resource::{FullObject, ObjectKey, Resource, ResourceExt, ResourceInfo};

/// Most children of one field that are applied at the same time.
const AT_ONCE: usize = 8;

/// Remedy for a kind that is missing.
const NOT_SERVED: &str = "the API server does not serve the kind: install its definition, or mark the field as `optional`";

/// A boxed future.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed description of the children of a field.
pub type DesiredFuture<'a, K> = Boxed<'a, Result<Vec<K>>>;

/// A child in the cache that carries the mark of the graph.
#[derive(Clone, Debug)]
pub struct Marked {
    pub(super) key: ObjectKey,
    /// Value of the label.
    pub(super) mark: String,
    pub(super) is_terminating: bool,
}

/// A kind of children, without its type.
pub trait AnyKind<C: Reconciler>: Send + Sync {
    /// The kind.
    fn info(&self) -> Option<ResourceInfo>;

    /// Returns the cached children that the object owns and that carry the mark, by key, but for
    /// those that `is_kept` names: nothing of them is read. With `has_marks` also those without an
    /// owner reference.
    fn marked(
        &self,
        cx: &Context<C>,
        marker: &Marker,
        has_marks: bool,
        is_kept: &dyn Fn(&ObjectKey) -> bool,
    ) -> Vec<Marked>;

    /// Deletes a child, if the object owns it.
    fn delete<'a>(
        &self,
        cx: &'a Context<C>,
        key: &'a ObjectKey,
        propagation: Propagation,
    ) -> Boxed<'a, Result<(), Error>>;

    /// Watches the kind; an optional one keeps the operator neither from starting nor from being
    /// ready. With `has_marks` some of its children have no owner reference.
    fn owns(
        &self,
        builder: ControllerBuilder<C>,
        is_optional: bool,
        has_marks: bool,
    ) -> ControllerBuilder<C>;

    /// Watches the kind to delete its last children.
    fn retires(&self, builder: ControllerBuilder<C>) -> ControllerBuilder<C>;
}

/// A kind of children, by its type.
pub struct OwnedKind<K>(PhantomData<fn() -> K>);

impl<K> OwnedKind<K> {
    /// Returns the kind.
    #[expect(clippy::new_without_default, reason = "called by derived code alone")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K> fmt::Debug for OwnedKind<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedKind")
    }
}

impl<C: Reconciler, K: Resource> AnyKind<C> for OwnedKind<K> {
    fn info(&self) -> Option<ResourceInfo> {
        K::static_info()
    }

    fn marked(
        &self,
        cx: &Context<C>,
        marker: &Marker,
        has_marks: bool,
        is_kept: &dyn Fn(&ObjectKey) -> bool,
    ) -> Vec<Marked> {
        let others = if has_marks { cx.cached_marked_children::<K>() } else { Vec::new() };
        let others = others.into_iter().filter(|child| !is_kept(child.key()));
        let children = cx.cached_children_but::<K>(is_kept).into_iter().chain(others);
        let marked = children.filter_map(|child| {
            let metadata = child.metadata();
            let mark = metadata.label(LABEL).filter(|mark| marker.is_on(mark))?.to_owned();
            let is_terminating = metadata.is_terminating();
            Some(Marked { key: child.key().clone(), mark, is_terminating })
        });
        marked.collect()
    }

    fn delete<'a>(
        &self,
        cx: &'a Context<C>,
        key: &'a ObjectKey,
        propagation: Propagation,
    ) -> Boxed<'a, Result<(), Error>> {
        Box::pin(cx.delete_child_by::<K>(key, propagation))
    }

    fn owns(
        &self,
        builder: ControllerBuilder<C>,
        is_optional: bool,
        has_marks: bool,
    ) -> ControllerBuilder<C> {
        match (is_optional, has_marks) {
            (true, _) => builder.owns_optional::<K>(has_marks),
            (false, true) => builder.owns_marked::<K>().noticing::<K>(),
            (false, false) => builder.owns::<K>().noticing::<K>(),
        }
    }

    fn retires(&self, builder: ControllerBuilder<C>) -> ControllerBuilder<C> {
        builder.retires::<K>()
    }
}

/// A field of a graph, without the type of its kind.
pub trait AnyNode<C: Reconciler>: Send + Sync {
    /// The field's name.
    fn name(&self) -> &'static str;

    /// Positions of the fields that come before it.
    fn after(&self) -> &'static [usize];

    /// Whether its kind may be missing.
    fn is_optional(&self) -> bool {
        false
    }

    /// Whether its children carry marks instead of owner references.
    fn has_marks(&self) -> bool {
        false
    }

    /// The kind; `None` of an external resource.
    fn kind(&self) -> Option<&dyn AnyKind<C>>;

    /// The kind of its revisions; `None` of a field without a rollout.
    fn revisions(&self) -> Option<&dyn AnyKind<C>> {
        None
    }

    /// The finalizer without which nothing of it may exist.
    fn finalizer(&self) -> Option<&'static str> {
        None
    }

    /// Whether the field has no children, whatever its description.
    fn is_unwanted(&self, object: &C::Object) -> bool;

    /// Applies its children; `blocked_by` is a field before it that is not ready.
    fn start<'a>(
        &'a self,
        run: GraphRun<'a, C>,
        blocked_by: Option<&'static str>,
    ) -> Boxed<'a, FieldOutcome>;

    /// The name of its driver; `None` of a field without an external resource.
    fn driver_name(&self, _controller: &C) -> Option<String> {
        None
    }

    /// Whether the object has a record of an external resource.
    fn is_recorded(&self, _run: GraphRun<'_, C>) -> bool {
        false
    }

    /// Deletes an external resource; a wait while it is there.
    fn end<'a>(&'a self, _run: GraphRun<'a, C>) -> Boxed<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the kind of a field; `None` of an external resource.
pub(super) fn info_of<C: Reconciler>(node: &dyn AnyNode<C>) -> Option<ResourceInfo> {
    node.kind()?.info()
}

/// Describes the children of a field.
type Describe<C, K> =
    for<'a> fn(&'a C, &'a <C as Reconciler>::Object, &'a Context<C>) -> DesiredFuture<'a, K>;

/// A field of a graph.
pub struct GraphNode<C: Reconciler, K> {
    name: &'static str,
    after: &'static [usize],
    desired: Describe<C, K>,
    when: Option<fn(&C::Object) -> bool>,
    ready: Option<fn(&K) -> Readiness>,
    adopts: Option<fn(&K) -> bool>,
    is_optional: bool,
    has_marks: bool,
    kind: OwnedKind<K>,
}

impl<C: Reconciler, K> fmt::Debug for GraphNode<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphNode").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<C: Reconciler, K> GraphNode<C, K> {
    /// Returns a field with its name, the positions of the fields before it, and its description.
    pub fn new(name: &'static str, after: &'static [usize], desired: Describe<C, K>) -> Self {
        let (when, ready, adopts, kind) = (None, None, None, OwnedKind::new());
        let (is_optional, has_marks) = (false, false);
        Self { name, after, desired, when, ready, adopts, is_optional, has_marks, kind }
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

    /// Sets the condition under which an object of that name becomes a child.
    #[must_use]
    pub fn adopt_if(mut self, adopts: fn(&K) -> bool) -> Self {
        self.adopts = Some(adopts);
        self
    }

    /// Makes it optional: its kind may be missing.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Lets its children be cluster-scoped, or in the namespaces that they name, without owner
    /// references.
    #[must_use]
    pub fn cluster(mut self) -> Self {
        self.has_marks = true;
        self
    }
}

/// An apply of a child that failed.
enum Refusal {
    /// The API server does not serve the kind.
    NotServed,
    Failed(Failure),
}

impl<C: Reconciler, K: FullObject> GraphNode<C, K> {
    /// Applies all children that the controller describes.
    async fn applied(&self, run: GraphRun<'_, C>) -> Result<FieldOutcome> {
        let children = (self.desired)(run.controller, run.object, run.cx).await?;
        let (mut applied, mut rest) = (Vec::with_capacity(children.len()), Vec::new());
        for (at, child) in children.iter().enumerate() {
            let key = run.cx.child_key(child);
            if let Some(field) = run.claims.claim::<K>(&key, self.name) {
                let text = format!("\"{}\"", key.name());
                return Err(Error::usage(self.twice(&text, field)).into());
            }
            let description = run.cx.description(child, (run.marker, self.name), self.has_marks);
            let at_rest = description.and_then(|it| self.at_rest(run, &key, it));
            if at_rest.is_none() {
                rest.push((at, self.labelled(child.clone(), &key, run.marker), description));
            }
            applied.push(at_rest);
        }
        drop(children);
        let mut failures = Vec::new();
        let mut rest = rest.into_iter();
        loop {
            let batch: Vec<_> = rest.by_ref().take(AT_ONCE).collect();
            if batch.is_empty() {
                break;
            }
            let (places, batch): (Vec<_>, Vec<_>) = batch
                .into_iter()
                .map(|(at, child, description)| (at, self.send(run.cx, child, description)))
                .unzip();
            for (at, end) in places.into_iter().zip(all(batch).await) {
                match end {
                    Ok(child) => applied[at] = Some(AppliedChild::Whole(Box::new(child))),
                    Err(Refusal::NotServed) => {
                        return Ok(FieldOutcome::of(DependentState::NotServed));
                    }
                    Err(Refusal::Failed(failure)) => failures.push(failure),
                }
            }
        }
        let applied: Vec<_> = applied.into_iter().flatten().collect();
        if let Some(failure) = soonest(failures) {
            return Ok(FieldOutcome::failed(failure).with_children(applied));
        }
        Ok(self.judged(run, applied))
    }

    /// Returns the child that is known to be as described. It is decoded unless it is known to be
    /// ready as well, by the rule of its kind: the graph's own rule may ask for anything.
    fn at_rest(
        &self,
        run: GraphRun<'_, C>,
        key: &ObjectKey,
        description: u64,
    ) -> Option<AppliedChild<K>> {
        let (cached, is_ready) = run.cx.described_child::<K>(key, description)?;
        if is_ready && self.ready.is_none() {
            return Some(AppliedChild::Ready(cached));
        }
        let child = Arc::unwrap_or_clone(cached.get().ok()?);
        let is_by_kind = self.ready.is_none();
        if is_by_kind && Readiness::judged(&child, run.cx.clock().wall(), None).is_ready() {
            run.cx.note_ready(&cached, description);
        }
        Some(AppliedChild::Whole(Box::new(child)))
    }

    /// Returns the child with its name and the mark of the field.
    fn labelled(&self, mut child: K, key: &ObjectKey, marker: &Marker) -> K {
        let metadata = child.metadata_mut();
        if metadata.name.as_ref().is_none_or(String::is_empty) {
            metadata.name = Some(key.name().to_owned());
        }
        metadata.labels.get_or_insert_default().insert(LABEL.to_owned(), marker.of(self.name));
        child
    }

    /// Returns the text for a child that `field` has described already.
    fn twice(&self, name: &str, field: &str) -> String {
        if field == self.name {
            return format!("two objects of it are named {name}: each needs its own name");
        }
        format!(
            "its object {name} is described by the field `{field}` as well: an object is the child \
             of one field"
        )
    }

    /// Applies one child.
    fn send<'a>(
        &self,
        cx: &'a Context<C>,
        child: K,
        description: Option<u64>,
    ) -> Boxed<'a, Result<K, Refusal>> {
        let (adopts, is_optional, has_marks) = (self.adopts, self.is_optional, self.has_marks);
        Box::pin(async move {
            let apply = cx.apply_child(child).described(description);
            let apply = if has_marks { apply.marked() } else { apply };
            let apply = match adopts {
                Some(adopts) => apply.adopt_if(adopts),
                None => apply,
            };
            apply.await.map_err(|error| match is_unserved(&error) {
                true if is_optional => Refusal::NotServed,
                true => Refusal::Failed(error.note(NOT_SERVED).into()),
                false => Refusal::Failed(error.into()),
            })
        })
    }

    /// Returns the outcome for children that were applied.
    fn judged(&self, run: GraphRun<'_, C>, applied: Vec<AppliedChild<K>>) -> FieldOutcome {
        let now = run.cx.clock().wall();
        let judged = applied.iter().filter_map(|child| match child {
            AppliedChild::Ready(_) => None,
            AppliedChild::Whole(child) => {
                Some((&**child, Readiness::judged(&**child, now, self.ready)))
            }
        });
        // The first of those that have failed, or else the first: a wait does not hide a failure.
        let unready = judged
            .filter(|(_, readiness)| !readiness.is_ready())
            .min_by_key(|(_, readiness)| readiness.failed_reason().is_none());
        let state = match unready {
            None => DependentState::Ready,
            // The field alone does not say which of its children needs help.
            Some((child, Readiness::Failed { reason, message })) if applied.len() > 1 => {
                let separator = if message.is_empty() { "" } else { ": " };
                let message = format!("{}{separator}{message}", child.name());
                DependentState::NotReady(Readiness::Failed { reason, message })
            }
            Some((_, readiness)) => DependentState::NotReady(readiness),
        };
        let keys = applied.iter().map(AppliedChild::key).collect();
        FieldOutcome::of(state).keeping(keys).with_children(applied)
    }
}

impl<C: Reconciler, K: FullObject> AnyNode<C> for GraphNode<C, K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn after(&self) -> &'static [usize] {
        self.after
    }

    fn is_optional(&self) -> bool {
        self.is_optional
    }

    fn has_marks(&self) -> bool {
        self.has_marks
    }

    fn kind(&self) -> Option<&dyn AnyKind<C>> {
        Some(&self.kind)
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
            // Without a request: the cache looks for the kind by itself.
            if self.is_optional && run.cx.is_unserved::<K>() {
                return FieldOutcome::of(DependentState::NotServed);
            }
            if let Some(name) = blocked_by {
                return FieldOutcome::of(DependentState::After(name));
            }
            match self.applied(run).await {
                Ok(outcome) => outcome,
                Err(failure) => FieldOutcome::stopped(failure),
            }
        })
    }
}

/// Whether a 404 is about the kind: it names neither an object nor a namespace.
fn is_unserved(error: &Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    error.code() == Some(404) && details.is_none_or(|details| details.name.is_empty())
}

/// Runs futures at the same time, each to its end; returns their ends in order.
async fn all<T>(mut futures: Vec<Boxed<'_, T>>) -> Vec<T> {
    let mut ends: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|task| {
        for (future, end) in futures.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let std::task::Poll::Ready(found) = future.as_mut().poll(task)
            {
                *end = Some(found);
            }
        }
        if ends.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    ends.into_iter().flatten().collect()
}
