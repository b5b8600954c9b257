//! Who owns what after an update, and what an apply makes of an object.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::managed::{Managed, Owned, Owner};
use super::set::PathSet;
use super::{fields, ignored, merge, reconcile, remove};
use crate::typed::{Id, Table, TypeSchema};

/// A field that an apply would take from its owner.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) owner: Owner,
    pub(crate) fields: PathSet,
}

/// Why an apply failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Clashes(Vec<Clash>),
    Other(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Other(text)
    }
}

/// Ownership rules for one type.
#[derive(Clone, Debug)]
pub(crate) struct Updater<'a> {
    pub(crate) table: &'a Table,
    pub(crate) root: Id,
    /// Fields that the endpoint does not write, with everything below.
    pub(crate) ignored: PathSet,
}

impl<'a> Updater<'a> {
    /// The rules for writes of a type through an endpoint.
    pub(crate) fn new(schema: &'a TypeSchema, subresource: Option<&str>) -> Updater<'a> {
        let ignored = ignored::fields(schema, subresource);
        Updater { table: schema.table(), root: schema.root(), ignored }
    }

    /// `owner` changes `old` to `new` by an ordinary write: it now owns what it changed. When it
    /// changed anything, its entry is dated `now`.
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
        self.reconcile(managed);
        let difference = self.compare(old, new)?;
        release(managed, None, &difference);
        let taken = difference.modified.union(&difference.added).difference(stripped());
        if !taken.is_empty() {
            let before = managed.owners.remove(owner).map(|owned| owned.set).unwrap_or_default();
            let owned = Owned { set: taken.union(&before), api_version: version.to_owned() };
            managed.owners.insert(owner.clone(), owned);
            managed.times.insert(owner.clone(), now.to_owned());
        }
        Ok(())
    }

    /// `owner` applies `applied` over `live`: the merged object.
    ///
    /// # Errors
    ///
    /// Fields of other owners that would change, unless `force`; objects without the type.
    pub(crate) fn apply(
        &self,
        (live, applied): (&Value, &Value),
        managed: &mut Managed,
        owner: &Owner,
        version: &str,
        force: bool,
    ) -> Result<Value, Failure> {
        self.reconcile(managed);
        let merged = merge::merge(self.table, self.root, live, applied)
            .map_err(|e| format!("failed to merge config: {e}"))?;
        let set = fields::of(self.table, self.root, applied).recursive_difference(&self.ignored);
        let last = managed.owners.remove(owner).map(|owned| owned.set).unwrap_or_default();
        let owned = Owned { set, api_version: version.to_owned() };
        managed.owners.insert(owner.clone(), owned);
        let merged = self.prune(merged, managed, &last);
        let difference = self.compare(live, &merged)?;
        let clashes = clashes(managed, owner, &difference);
        if !force && !clashes.is_empty() {
            return Err(Failure::Clashes(clashes));
        }
        release(managed, Some(owner), &difference);
        if let Some(mut owned) = managed.owners.remove(owner) {
            owned.set = owned.set.difference(stripped());
            if !owned.set.is_empty() {
                managed.owners.insert(owner.clone(), owned);
            }
        }
        Ok(merged)
    }

    /// Removes what the owner applied last time, does not apply now and nobody else owns.
    fn prune(&self, merged: Value, managed: &Managed, last: &PathSet) -> Value {
        if last.is_empty() {
            return merged;
        }
        let named = |set: &PathSet| set.with_named_fields(self.table, Some(self.root));
        let set_of = |value: &Value| named(&fields::of(self.table, self.root, value));
        let remove = |set: &PathSet| remove::remove(self.table, self.root, &merged, set);
        let last = named(last);
        let all = set_of(&merged);
        let pruned = remove(&last);
        // Somebody owns it, or the new configuration names it: put it back.
        let owned =
            managed.owners.values().fold(PathSet::default(), |all, owned| all.union(&owned.set));
        let pruned = remove(&all.difference(&set_of(&pruned).union(&named(&owned))));
        // It went only because its parent did, and was never this owner's: put it back.
        remove(&all.difference(&set_of(&pruned)).intersection(&last))
    }

    pub(crate) fn compare(&self, old: &Value, new: &Value) -> Result<Comparison, String> {
        let difference = compare(self.table, self.root, old, new)
            .map_err(|e| format!("failed to compare objects: {e}"))?;
        Ok(Comparison {
            removed: difference.removed.recursive_difference(&self.ignored),
            modified: difference.modified.recursive_difference(&self.ignored),
            added: difference.added.recursive_difference(&self.ignored),
        })
    }

    fn reconcile(&self, managed: &mut Managed) {
        for owned in managed.owners.values_mut() {
            owned.set = reconcile::reconcile(self.table, self.root, &owned.set);
        }
    }
}

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

/// Takes from everybody but `keeper` what changed or went.
fn release(managed: &mut Managed, keeper: Option<&Owner>, difference: &Comparison) {
    let changed = difference.modified.clone().union(&difference.added);
    let owners: BTreeMap<Owner, Owned> = std::mem::take(&mut managed.owners);
    for (owner, mut owned) in owners {
        if keeper != Some(&owner) {
            let clash = owned.set.intersection(&changed);
            owned.set = owned.set.difference(&clash).difference(&difference.removed);
        }
        if !owned.set.is_empty() {
            managed.owners.insert(owner, owned);
        }
    }
}

/// Fields that nobody owns.
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
