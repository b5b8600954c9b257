//! Adaptation of owned fields to a schema that changed from mergeable to atomic.

use super::path::PathElement;
use super::set::PathSet;
use crate::typed::{Id, TypeShape, TypeTable, ValueTreatment};

/// Makes every part of the owned fields that is now atomic owned as a whole.
pub(crate) fn reconcile(table: &TypeTable, root: Id, set: &mut PathSet) {
    let mut walker = ReconcileWalker {
        table,
        path: Vec::new(),
        remove: PathSet::default(),
        add: PathSet::default(),
    };
    walker.node(root, Some(set), false);
    // The usual case: nothing has become atomic.
    if walker.remove.is_empty() && walker.add.is_empty() {
        return;
    }
    *set = set.recursive_difference(&walker.remove).union(&walker.add);
}

/// A walk over the owned fields that collects the parts to exchange.
struct ReconcileWalker<'a> {
    table: &'a TypeTable,
    path: Vec<PathElement>,
    remove: PathSet,
    add: PathSet,
}

impl ReconcileWalker<'_> {
    /// Visits a path; `whole` if the path itself is owned, with nothing below.
    fn node(&mut self, id: Id, set: Option<&PathSet>, whole: bool) {
        let table = self.table;
        match table.kind(id, None) {
            ValueTreatment::Scalar(_) => {}
            ValueTreatment::List(kind, items) => {
                // As upstream, a list is taken whole even without owned items, a map only with
                // some.
                if !whole && kind.is_atomic() {
                    self.take_whole();
                } else if let Some(set) = set {
                    self.children(set, &|_| Some(items));
                }
            }
            ValueTreatment::Map(object) => {
                let deduced = object
                    .element
                    .is_some_and(|element| matches!(table.shape(element), TypeShape::Any));
                // A map of values without a schema has no type of its own that could have changed.
                if deduced && object.fields.is_empty() {
                    return;
                }
                if !whole && object.atomic {
                    if set.is_some_and(|set| !set.is_empty()) {
                        self.take_whole();
                    }
                } else if let Some(set) = set {
                    self.children(set, &|step| match step {
                        PathElement::Field(name) => TypeTable::child(object, name),
                        _ => object.element,
                    });
                }
            }
        }
    }

    /// Replaces the owned fields below the current path by the path itself.
    fn take_whole(&mut self) {
        self.remove.insert(&self.path);
        self.add.insert(&self.path);
    }

    /// Visits the members and deeper paths of a set.
    fn children(&mut self, set: &PathSet, type_of: &dyn Fn(&PathElement) -> Option<Id>) {
        // First the steps below which something is owned, then the owned steps themselves.
        for (step, child) in &set.children {
            if !set.members.contains(step) {
                self.descend(step, Some(child), false, type_of);
            }
        }
        for step in &set.members {
            let child = set.children.get(step);
            self.descend(step, child, child.is_none(), type_of);
        }
    }

    /// Visits a step, if it still has a type.
    fn descend(
        &mut self,
        step: &PathElement,
        set: Option<&PathSet>,
        whole: bool,
        type_of: &dyn Fn(&PathElement) -> Option<Id>,
    ) {
        if let Some(id) = type_of(step) {
            self.path.push(step.clone());
            self.node(id, set, whole);
            self.path.pop();
        }
    }
}
