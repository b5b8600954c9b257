//! Ownership after an update, and the outcome of an apply.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::managed::{Managed, OwnedFields, Owner};
use super::set::PathSet;
use super::{fields, ignored, merge, reconcile, remove};
use crate::typed::{Id, TypeSchema, TypeTable};

/// Fields that an apply would take from their owner.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    /// Present owner of the fields.
    pub(crate) owner: Owner,
    /// Fields that would change.
    pub(crate) fields: PathSet,
}

/// Failure of an apply.
#[derive(Debug)]
pub(crate) enum ApplyFailure {
    /// Fields of other owners would change.
    Clashes(Vec<Clash>),
    /// Objects do not have the type; with upstream's text.
    Other(String),
}

impl From<String> for ApplyFailure {
    fn from(text: String) -> ApplyFailure {
        ApplyFailure::Other(text)
    }
}

/// Ownership rules for writes of a type through an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Updater<'a> {
    /// Table of the types.
    pub(crate) table: &'a TypeTable,
    /// Type of the object.
    pub(crate) root: Id,
    /// Fields that the endpoint does not write, with everything below.
    pub(crate) ignored: PathSet,
}

impl<'a> Updater<'a> {
    /// Returns the rules for writes of a type through an endpoint.
    pub(crate) fn new(schema: &'a TypeSchema, subresource: Option<&str>) -> Updater<'a> {
        let ignored = ignored::fields(schema, subresource);
        Updater { table: schema.table(), root: schema.root(), ignored }
    }

    /// Records an ordinary write that changes `old` to `new`: `owner` now owns the changed fields.
    /// If any field changed, the owner's entry is dated `now`.
    ///
    /// # Errors
    ///
    /// Objects that do not have the type.
    pub(crate) fn update(
        &self,
        (old, new): (&Value, &Value),
        managed: &mut Managed,
        owner: &Owner,
        version: &str,
        now: &str,
    ) -> Result<(), String> {
        // Sets from before a change of the schema would not fit the paths of the comparison.
        self.reconcile(managed);
        let difference = self.compare(old, new)?;
        release(managed, None, &difference);
        let taken = difference.modified.union(&difference.added).difference(stripped());
        if !taken.is_empty() {
            let before = managed.owners.remove(owner).map(|owned| owned.set).unwrap_or_default();
            let owned = OwnedFields { set: taken.union(&before), api_version: version.to_owned() };
            managed.owners.insert(owner.clone(), owned);
            managed.times.insert(owner.clone(), now.to_owned());
        }
        Ok(())
    }

    /// Applies `applied` over `live` as `owner`, and returns the merged object.
    ///
    /// # Errors
    ///
    /// Fields of other owners that would change, unless `force`; objects that do not have the type.
    pub(crate) fn apply(
        &self,
        (live, applied): (&Value, &Value),
        managed: &mut Managed,
        owner: &Owner,
        version: &str,
        force: bool,
    ) -> Result<Value, ApplyFailure> {
        self.reconcile(managed);
        let merged = merge::merge(self.table, self.root, live, applied)
            .map_err(|e| format!("failed to merge config: {e}"))?;
        let set = fields::of(self.table, self.root, applied).recursive_difference(&self.ignored);
        // The previous set is needed to prune; the new set replaces the previous set before the
        // clashes are computed.
        let last = managed.owners.remove(owner).map(|owned| owned.set).unwrap_or_default();
        let owned = OwnedFields { set, api_version: version.to_owned() };
        managed.owners.insert(owner.clone(), owned);
        // After the new set is entered: fields that are applied again keep their owner and stay.
        let merged = self.prune(merged, managed, &last);
        let difference = self.compare(live, &merged)?;
        // Computed from the pruned object: a removal that other owners prevent is no change.
        let clashes = clashes(managed, owner, &difference);
        if !force && !clashes.is_empty() {
            return Err(ApplyFailure::Clashes(clashes));
        }
        // Reached without clashes or with `force`: other owners lose the changed fields.
        release(managed, Some(owner), &difference);
        if let Some(mut owned) = managed.owners.remove(owner) {
            owned.set = owned.set.difference(stripped());
            if !owned.set.is_empty() {
                managed.owners.insert(owner.clone(), owned);
            }
        }
        Ok(merged)
    }

    /// Removes the fields that the owner applied last time, does not apply now and that have no
    /// other owner.
    fn prune(&self, merged: Value, managed: &Managed, last: &PathSet) -> Value {
        // A first apply has nothing to remove.
        if last.is_empty() {
            return merged;
        }
        let named = |set: &PathSet| set.with_named_fields(self.table, Some(self.root));
        let set_of = |value: &Value| named(&fields::of(self.table, self.root, value));
        let remove = |set: &PathSet| remove::remove(self.table, self.root, &merged, set);
        let last = named(last);
        let all = set_of(&merged);
        let pruned = remove(&last);
        // Put back: fields with an owner, and fields that the new configuration names.
        let owned =
            managed.owners.values().fold(PathSet::default(), |all, owned| all.union(&owned.set));
        let pruned = remove(&all.difference(&set_of(&pruned).union(&named(&owned))));
        // Put back: fields that went only because their parent did, and that this owner never
        // applied.
        remove(&all.difference(&set_of(&pruned)).intersection(&last))
    }

    /// Compares two objects, without the fields that the endpoint does not write.
    pub(crate) fn compare(&self, old: &Value, new: &Value) -> Result<Comparison, String> {
        let difference = compare(self.table, self.root, old, new)
            .map_err(|e| format!("failed to compare objects: {e}"))?;
        if self.ignored.is_empty() {
            return Ok(difference);
        }
        Ok(Comparison {
            removed: difference.removed.recursive_difference(&self.ignored),
            modified: difference.modified.recursive_difference(&self.ignored),
            added: difference.added.recursive_difference(&self.ignored),
        })
    }

    /// Adapts all owned sets to the present schema.
    fn reconcile(&self, managed: &mut Managed) {
        for owned in managed.owners.values_mut() {
            reconcile::reconcile(self.table, self.root, &mut owned.set);
        }
    }
}

/// Returns the fields of other owners that changed.
fn clashes(managed: &Managed, owner: &Owner, difference: &Comparison) -> Vec<Clash> {
    let changed = difference.modified.clone().union(&difference.added);
    let others = managed.owners.iter().filter(|(other, _)| *other != owner);
    others
        .map(|(other, owned)| Clash {
            owner: other.clone(),
            fields: owned.set.intersection(&changed),
        })
        .filter(|clash| !clash.fields.is_empty())
        .collect()
}

/// Takes changed and removed fields from all owners but `keeper`.
fn release(managed: &mut Managed, keeper: Option<&Owner>, difference: &Comparison) {
    let lost = difference.modified.clone().union(&difference.added).union(&difference.removed);
    let owners: BTreeMap<Owner, OwnedFields> = std::mem::take(&mut managed.owners);
    for (owner, mut owned) in owners {
        if keeper != Some(&owner) {
            owned.set = owned.set.difference(&lost);
        }
        if !owned.set.is_empty() {
            managed.owners.insert(owner, owned);
        }
    }
}

/// Fields that no manager owns: identity, and the fields that the server sets.
pub(crate) fn stripped() -> &'static PathSet {
    static STRIPPED: OnceLock<PathSet> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let mut set = PathSet::default();
        for name in ["apiVersion", "kind", "metadata"] {
            set.insert_fields(&[name]);
        }
        for name in [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ] {
            set.insert_fields(&["metadata", name]);
        }
        set
    })
}
