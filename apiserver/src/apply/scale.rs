//! The scale subresource: its writes see only the owners of the replicas.
//!
//! The real server tracks a separate Scale object and carries its owners over to the object. That
//! has visible effects: no manager comes to own replicas through an update of `/scale` while they
//! have no owner, an apply then finds `before-first-apply`, versions read `autoscaling/v1`, and
//! entries have no time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::managed::{Managed, Owned, Owner};
use super::set::PathSet;
use super::updater::{Updater, stripped};
use super::{ApplyRequest, fields};

/// Name of the subresource.
pub(crate) const NAME: &str = "scale";
/// Version of the Scale kind, as messages show it.
const VERSION: &str = "autoscaling/v1";

/// The state of an apply of `/scale`: the owners that it does not see.
#[derive(Debug)]
pub(crate) struct Scaled {
    /// Owners of other fields, put back at the end.
    aside: BTreeMap<Owner, Owned>,
    /// Fields that the request applies.
    replicas: PathSet,
    /// Whether the applied fields had no owner before.
    untracked: bool,
}

/// Leaves only the owners of the applied fields in `managed`; `None` unless the request goes to
/// `/scale`.
pub(crate) fn enter(
    updater: &Updater<'_>,
    request: &ApplyRequest<'_>,
    managed: &mut Managed,
) -> Option<Scaled> {
    if request.subresource != Some(NAME) {
        return None;
    }
    let replicas = fields::of(updater.table, updater.root, request.intent).difference(stripped());
    let all = std::mem::take(&mut managed.owners);
    let (seen, aside) =
        all.into_iter().partition(|(_, owned)| !owned.set.intersection(&replicas).is_empty());
    managed.owners = seen;
    Some(Scaled { aside, replicas, untracked: managed.owners.is_empty() })
}

impl Scaled {
    /// Restricts the owner from before the first apply to the replicas.
    pub(crate) fn restrict(&self, managed: &mut Managed) {
        if self.untracked {
            managed.owners.retain(|owner, owned| {
                managed.times.remove(owner);
                owned.set = owned.set.intersection(&self.replicas);
                !owned.set.is_empty()
            });
        }
    }

    /// Puts the other owners back.
    pub(crate) fn leave(self, managed: &mut Managed, owner: &Owner) {
        managed.times.remove(owner);
        for (other, owned) in self.aside {
            managed.owners.entry(other).or_insert(owned);
        }
    }
}

/// Returns an owner as messages of the request name it.
pub(crate) fn shown(request: &ApplyRequest<'_>, mut owner: Owner) -> Owner {
    if request.subresource == Some(NAME) && !owner.apply {
        owner.api_version = VERSION.to_owned();
    }
    owner
}

/// Executes an update of `/scale`: tracked only if the changed fields have an owner.
///
/// # Errors
///
/// Objects that do not have the type.
pub(crate) fn update(
    updater: &Updater<'_>,
    (old, new): (&Value, &Value),
    managed: &mut Managed,
    owner: &Owner,
    version: &str,
) -> Result<(), String> {
    let difference = updater.compare(old, new)?;
    let changed = difference.removed.union(&difference.modified).union(&difference.added);
    let changed = changed.difference(stripped());
    let seen = |owned: &Owned| !owned.set.intersection(&changed).is_empty();
    if managed.owners.values().any(seen) {
        updater.update((old, new), managed, owner, version, "")?;
        managed.times.remove(owner);
    }
    Ok(())
}
