//! Removal of children that are not wanted: in reverse order, and never of others' objects.
//!
//! A child goes if the cache shows that the object owns it, it carries the mark of the graph, and
//! no field keeps it. The deletion itself checks owner, uid and version once more, in the API
//! server.

use super::Dependents;
use super::graph_run::{ClaimedObjects, GraphRun, KindName, kind_name, panicked};
use super::marker::Marker;
use super::node::{AnyKind, AnyNode, Marked, info_of};
use crate::controller::{Context, Failure, Reconciler, Result, soonest};
use windlass_client::api::Propagation;
use windlass_core::panics::caught;
use windlass_core::resource::{ObjectKey, ResourceExt, ResourceInfo};

/// Children that are left after a removal.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Children that are left, by field.
    pub(super) left: Vec<RemainingChildren>,
    /// Children of retired kinds that are left.
    pub(super) retired: RemainingChildren,
}

/// Children of one field that are left: their number, and the first of them by name, as a person
/// who waits for a deletion has to look at an object.
#[derive(Debug, Clone, Default)]
pub(super) struct RemainingChildren {
    pub(super) count: usize,
    named: Vec<String>,
    /// The text of an external resource whose deletion is waited for.
    wait: Option<String>,
}

/// Number of children that a text names, so that an event stays within its 1,024 bytes.
const NAMED: usize = 3;

impl RemainingChildren {
    fn of(info: Option<ResourceInfo>, children: &[Marked]) -> Self {
        let kind = info.map_or_else(|| "child".into(), |info| info.kind);
        let named = children.iter().take(NAMED).map(|child| format!("{kind} \"{}\"", child.key));
        Self { count: children.len(), named: named.collect(), wait: None }
    }

    /// One external resource, or none. Its deletion is described by `wait`, once it has begun.
    fn external(is_left: bool, wait: Option<String>) -> Self {
        Self { count: usize::from(is_left), named: Vec::new(), wait }
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.named.extend(other.named);
        self.named.truncate(NAMED);
    }

    /// The text for a person; `None` if nothing is left.
    fn text(&self) -> Option<String> {
        if let Some(wait) = &self.wait {
            return Some(wait.clone());
        }
        let more = self.count - self.named.len();
        match (self.named.join(", "), more) {
            (_, _) if self.count == 0 => None,
            (named, 0) => Some(format!("{named} left")),
            (named, _) if named.is_empty() => Some(format!("{more} left")),
            (named, _) => Some(format!("{named} and {more} more left")),
        }
    }
}

/// Deletes all children of a graph, and waits until they are gone.
pub(super) async fn delete_all<G: Dependents>(
    controller: &G::Controller,
    object: &<G::Controller as Reconciler>::Object,
    cx: &Context<G::Controller>,
) -> Result<()> {
    let marker = Marker::new(cx.controller_name(), G::NAME);
    let claims = ClaimedObjects::default();
    let run = GraphRun { controller, object, cx, marker: &marker, claims: &claims };
    let nodes = G::nodes();
    let none: Vec<Option<&[ObjectKey]>> = nodes.iter().map(|_| Some(&[][..])).collect();
    let (removals, failures) = remove::<G>(&nodes, run, &none, Propagation::Foreground).await;
    if let Some(failure) = soonest(failures) {
        return Err(failure);
    }
    let left = nodes.iter().zip(&removals.left);
    let mut texts: Vec<String> = left
        .filter_map(|(node, left)| Some(format!("{}: {}", node.name(), left.text()?)))
        .collect();
    texts.extend(removals.retired.text().map(|text| format!("of retired kinds: {text}")));
    if texts.is_empty() { Ok(()) } else { Err(Failure::wait_for("Deleting", texts.join("; "))) }
}

/// Removes the children that no field keeps: of retired kinds first, then field by field, each
/// after the fields behind it. Returns the number of those that are left, and the failures.
pub(super) async fn remove<G: Dependents>(
    nodes: &[Box<dyn AnyNode<G::Controller>>],
    run: GraphRun<'_, G::Controller>,
    kept: &[Option<&[ObjectKey]>],
    propagation: Propagation,
) -> (Removals, Vec<Failure>) {
    let mut removals = Removals {
        left: vec![RemainingChildren::default(); nodes.len()],
        retired: RemainingChildren::default(),
    };
    let mut failures = Vec::new();
    let places = FieldKinds::of(nodes, run.marker);
    let may_have_marks = run.object.namespace().is_some();
    for kind in G::retired() {
        // Its children may be those of a field, under another name or version of the kind.
        if places.has(kind.info()) {
            continue;
        }
        let of = (&*kind, may_have_marks);
        let goes = kind.marked(run.cx, run.marker, may_have_marks, &|_| false);
        removals.retired.add(delete(of, goes, run, propagation, &mut failures).await);
    }
    for at in reverse(nodes) {
        let is_held = nodes
            .iter()
            .zip(&removals.left)
            .any(|(later, left)| left.count > 0 && later.after().contains(&at));
        let Some(kind) = nodes[at].kind() else {
            let is_unwanted = kept[at].is_some();
            if is_unwanted {
                removals.left[at] = end(&*nodes[at], run, is_held, &mut failures).await;
            }
            continue;
        };
        let has_marks = places.have_marks[at];
        let is_kept = |key: &ObjectKey| places.keep(at, key, kept);
        let mut goes = kind.marked(run.cx, run.marker, has_marks, &is_kept);
        goes.retain(|child| places.goes(at, child, kept));
        removals.left[at] = if is_held {
            RemainingChildren::of(kind.info(), &goes)
        } else {
            delete((kind, has_marks), goes, run, propagation, &mut failures).await
        };
    }
    (removals, failures)
}

/// Deletes an external resource that is not wanted, unless others hold it; returns what is left.
async fn end<C: Reconciler>(
    node: &dyn AnyNode<C>,
    run: GraphRun<'_, C>,
    is_held: bool,
    failures: &mut Vec<Failure>,
) -> RemainingChildren {
    if is_held {
        return RemainingChildren::external(node.is_recorded(run), None);
    }
    let ended = caught(node.end(run)).await;
    match ended.unwrap_or_else(|panic| Err(panicked(run.cx, &*panic))) {
        Ok(()) => RemainingChildren::default(),
        Err(failure) if failure.is_wait() => {
            RemainingChildren::external(true, Some(failure.source.to_string()))
        }
        Err(failure) => {
            failures.push(failure.tried(format!("deleting {}", node.name())));
            RemainingChildren::external(true, None)
        }
    }
}

/// Deletes children, and returns those that the cache still shows.
async fn delete<C: Reconciler>(
    (kind, has_marks): (&dyn AnyKind<C>, bool),
    mut goes: Vec<Marked>,
    run: GraphRun<'_, C>,
    propagation: Propagation,
    failures: &mut Vec<Failure>,
) -> RemainingChildren {
    if goes.is_empty() {
        return RemainingChildren::default();
    }
    for child in goes.iter().filter(|child| !child.is_terminating) {
        if let Err(error) = kind.delete(run.cx, &child.key, propagation).await {
            let kind = kind.info().map_or_else(|| "child".into(), |info| info.kind);
            let what = format!("deleting {kind} \"{}\"", child.key);
            failures.push(Failure::from(error).tried(what));
        }
    }
    let shown = kind.marked(run.cx, run.marker, has_marks, &|_| false);
    goes.retain(|gone| shown.iter().any(|child| child.key == gone.key));
    RemainingChildren::of(kind.info(), &goes)
}

/// Kind and mark of each field.
struct FieldKinds<'a> {
    /// An object is the same in every version of its kind.
    kinds: Vec<Option<KindName>>,
    /// For each field the first one of the same kind.
    firsts: Vec<usize>,
    names: Vec<&'static str>,
    marker: &'a Marker,
    /// Whether children of the kind have no owner reference, be it in another field.
    have_marks: Vec<bool>,
}

impl<'a> FieldKinds<'a> {
    fn of<C: Reconciler>(nodes: &[Box<dyn AnyNode<C>>], marker: &'a Marker) -> Self {
        let kinds: Vec<_> = nodes.iter().map(|node| info_of(&**node).map(kind_name)).collect();
        let firsts = firsts(&kinds);
        let has_marks = |first: &usize| {
            nodes.iter().zip(&firsts).any(|(node, its)| its == first && node.has_marks())
        };
        let have_marks = firsts.iter().map(has_marks).collect();
        let names = nodes.iter().map(|node| node.name()).collect();
        Self { kinds, firsts, names, marker, have_marks }
    }

    /// Whether a field has that kind.
    fn has(&self, info: Option<ResourceInfo>) -> bool {
        info.is_some() && self.kinds.contains(&info.map(kind_name))
    }

    /// Whether a field of the kind of the field `at` keeps the child with that key.
    fn keep(&self, at: usize, key: &ObjectKey, kept: &[Option<&[ObjectKey]>]) -> bool {
        self.same(at).filter_map(|it| kept[it]).flatten().any(|kept| is_same(kept, key))
    }

    /// Whether a child goes with the field `at`: it is the field's own and not kept, or it is of a
    /// field that the graph no longer has, and `at` is the first field of its kind.
    ///
    /// Nothing goes while a field of the kind does not know its children: a child that moved from
    /// one field to another, or whose field was renamed, is taken over as soon as it is the new
    /// field's turn.
    fn goes(&self, at: usize, child: &Marked, kept: &[Option<&[ObjectKey]>]) -> bool {
        let are_known = self.same(at).all(|other| kept[other].is_some());
        let is_of = |name: &&str| child.mark == self.marker.of(name);
        let is_own = is_of(&self.names[at]);
        let is_stray = !self.names.iter().any(is_of) && self.firsts[at] == at;
        are_known && (is_own || is_stray) && !self.keep(at, &child.key, kept)
    }

    /// Returns the positions of the fields of the kind of the field `at`.
    fn same(&self, at: usize) -> impl Iterator<Item = usize> {
        (0..self.firsts.len()).filter(move |other| self.firsts[*other] == self.firsts[at])
    }
}

/// Returns for each field the first one of the same kind.
fn firsts(kinds: &[Option<KindName>]) -> Vec<usize> {
    let first = |at: usize| kinds[..at].iter().position(|kind| *kind == kinds[at]).unwrap_or(at);
    (0..kinds.len()).map(first).collect()
}

/// Whether both keys are of one object, in whatever cluster.
fn is_same(a: &ObjectKey, b: &ObjectKey) -> bool {
    (a.namespace(), a.name()) == (b.namespace(), b.name())
}

/// Returns the positions of the fields, each behind those that come after it.
fn reverse<C: Reconciler>(nodes: &[Box<dyn AnyNode<C>>]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
    while order.len() < nodes.len() {
        let next = (0..nodes.len()).rev().find(|at| {
            let is_free =
                |later: usize| order.contains(&later) || !nodes[later].after().contains(at);
            !order.contains(at) && (0..nodes.len()).all(is_free)
        });
        // The derive refuses cycles.
        let Some(next) = next else { break };
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    /// A graph with two fields for maps and one for Secrets.
    fn places(marker: &Marker) -> FieldKinds<'_> {
        let kind = |plural: &'static str| Some((plural.into(), "".into()));
        let kinds = vec![kind("configmaps"), kind("configmaps"), kind("secrets")];
        let names = vec!["front", "back", "login"];
        let firsts = firsts(&kinds);
        FieldKinds { kinds, firsts, names, marker, have_marks: vec![false; 3] }
    }

    #[test]
    fn a_field_has_its_kind_in_every_version() {
        let marker = Marker::new("sites", "Children");
        let places = places(&marker);
        let old = ResourceInfo { version: "v1beta1".into(), ..ResourceInfo::of::<ConfigMap>() };
        let other = ResourceInfo { group: "example.dev".into(), ..old.clone() };
        assert!(places.has(Some(old)));
        assert!(places.has(Some(ResourceInfo::of::<Secret>())));
        assert!(!places.has(Some(other)) && !places.has(None));
    }

    #[test]
    fn a_child_stays_while_another_field_of_its_kind_does_not_know_its_children() {
        let marker = Marker::new("sites", "Children");
        let child = Marked {
            key: ObjectKey::new(Some("shop"), "page"),
            mark: "sites.Children.front".to_owned(),
            is_terminating: false,
        };
        let none: &[ObjectKey] = &[];
        let page: &[ObjectKey] = std::slice::from_ref(&child.key);
        let goes = |kept: [Option<&[ObjectKey]>; 3]| places(&marker).goes(0, &child, &kept);
        assert!(!goes([Some(none), None, Some(none)]), "the other field waits");
        assert!(!goes([Some(none), Some(page), Some(none)]), "the other field has it");
        assert!(goes([Some(none), Some(none), None]), "a field of another kind waits");
    }
}
