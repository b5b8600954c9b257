//! The scale subresource, whose writes see only the owners of the replicas.
//!
//! The real server tracks a separate Scale object and carries its owners over to the object. That
//! has visible effects: no manager comes to own replicas through an update of `/scale` while the
//! replicas have no owner, an apply then finds `before-first-apply`, versions read
//! `autoscaling/v1`, and entries have no time.

// DESIGN.md, 183: Owners of replicas are carried through a Scale

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ApplyRequest;
use super::managed::{Managed, OwnedFields, Owner};
use super::set::PathSet;

/// Name of the subresource.
pub(crate) const NAME: &str = "scale";
/// Version of the Scale kind in messages.
const VERSION: &str = "autoscaling/v1";

/// The state of an apply of `/scale`: the owners that it does not see.
#[derive(Debug)]
pub(crate) struct Scaled {
    /// Owners of other fields, put back at the end.
    aside: BTreeMap<Owner, OwnedFields>,
    /// The field that requests apply.
    replicas: PathSet,
    /// Whether that field had no owner before.
    untracked: bool,
    /// Whether the object has no replicas: a Scale shows no zero, so no manager can own it.
    is_zero: bool,
}

/// Leaves only the owners of the replicas in `managed`; `None` unless the request goes to
/// `/scale`.
pub(crate) fn enter(request: &ApplyRequest<'_>, managed: &mut Managed) -> Option<Scaled> {
    if request.subresource != Some(NAME) {
        return None;
    }
    // Also without replicas in the request: its manager then gives up those of an earlier apply.
    let mut replicas = PathSet::default();
    replicas.insert_fields(&["spec", "replicas"]);
    let mut aside = BTreeMap::new();
    for (owner, owned) in std::mem::take(&mut managed.owners) {
        let mine = owned.set.intersection(&replicas);
        if mine.is_empty() {
            aside.insert(owner, owned);
        } else if owner.apply {
            managed.owners.insert(owner, owned);
        } else {
            // An owner by update has another key in the Scale, so that the owner's replicas get a
            // separate entry.
            let key = Owner { api_version: VERSION.to_owned(), ..owner.clone() };
            let rest = owned.set.difference(&replicas);
            let mine = OwnedFields { set: mine, ..owned.clone() };
            managed.owners.insert(key, mine);
            if !rest.is_empty() {
                aside.insert(owner, OwnedFields { set: rest, ..owned });
            }
        }
    }
    let live = request.live.and_then(|live| live["spec"]["replicas"].as_i64());
    let is_zero = live.is_none_or(|replicas| replicas == 0);
    Some(Scaled { aside, replicas, untracked: managed.owners.is_empty(), is_zero })
}

impl Scaled {
    /// Restricts the owner from before the first apply to the replicas.
    pub(crate) fn restrict(&self, managed: &mut Managed) {
        if self.untracked {
            managed.owners.retain(|owner, owned| {
                managed.times.remove(owner);
                owned.set = owned.set.intersection(&self.replicas);
                !owned.set.is_empty() && !self.is_zero
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

/// Returns an owner in the form of the request's messages.
pub(crate) fn shown(request: &ApplyRequest<'_>, mut owner: Owner) -> Owner {
    if request.subresource == Some(NAME) && !owner.apply {
        owner.api_version = VERSION.to_owned();
    }
    owner
}

/// Replicas that an update of `/scale` leaves in the Scale, which shows no zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicasChange {
    /// The same replicas.
    Kept,
    /// Other replicas.
    Set,
    /// Zero replicas, after more.
    Removed,
}

impl ReplicasChange {
    /// Returns the change from replicas to others.
    pub(crate) fn between(before: i64, after: i64) -> Self {
        match after {
            _ if before == after => Self::Kept,
            0 => Self::Removed,
            _ => Self::Set,
        }
    }
}

/// Returns `new` with the owners of `old` after an update of `/scale`, whose replicas are at
/// `path`.
///
/// As upstream: the owners of the replicas become those of the Scale, under its version. So an
/// update that changes nothing still moves the replicas to a separate entry, without a time, and
/// the next update loses that entry, because both entries have one key then.
pub(crate) fn track(
    (old, new): (&Value, &Value),
    path: &[String],
    change: ReplicasChange,
    manager: &str,
    api_version: &str,
) -> Value {
    let mut result = new.clone();
    // A write is never refused for managed fields that cannot be read.
    let Ok(managed) = Managed::decode(old) else { return result };
    let mut replicas = PathSet::default();
    replicas.insert_fields(&path.iter().map(String::as_str).collect::<Vec<_>>());
    let mut owners = of_scale(&managed, &replicas);
    // Replicas without an owner stay without an owner.
    if !owners.is_empty() && change != ReplicasChange::Kept {
        owners.clear();
        if change == ReplicasChange::Set {
            owners.insert(Owner::new(manager, false, VERSION, NAME));
        }
    }
    let mut next = Managed::default();
    for (owner, mut owned) in managed.owners {
        let holds = !owned.set.intersection(&replicas).is_empty();
        if holds && !owners.remove(&owner) {
            owned.set = owned.set.difference(&replicas);
        }
        if !owned.set.is_empty() || !holds {
            if let Some(time) = managed.times.get(&owner) {
                next.times.insert(owner.clone(), time.clone());
            }
            next.owners.insert(owner, owned);
        }
    }
    let owned = OwnedFields { set: replicas, api_version: api_version.to_owned() };
    next.owners.extend(owners.into_iter().map(|owner| (owner, owned.clone())));
    next.encode(&mut result);
    result
}

/// Returns the owners of the replicas as a Scale names them.
fn of_scale(managed: &Managed, replicas: &PathSet) -> BTreeSet<Owner> {
    let seen = managed.owners.iter().filter(|(_, it)| !it.set.intersection(replicas).is_empty());
    seen.map(|(owner, _)| {
        let version = if owner.apply { "" } else { VERSION };
        Owner { api_version: version.to_owned(), ..owner.clone() }
    })
    .collect()
}
