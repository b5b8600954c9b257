//! Registry of the kinds that are served now.
//!
//! Readers take a snapshot; custom kinds come and go by replacement of that snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::{Kind, builtin};
use crate::served::Served;

/// The served kinds, replaced as a whole.
#[derive(Debug)]
pub(crate) struct Registry {
    table: RwLock<Arc<KindTable>>,
}

/// A snapshot of the served kinds.
#[derive(Debug, Default)]
pub(crate) struct KindTable {
    /// Kinds by group, version and plural.
    kinds: BTreeMap<(String, String, String), Arc<Kind>>,
    /// Served resources for discovery: built-in kinds in table order, then custom kinds by group,
    /// name and version.
    pub(crate) served: Vec<Served>,
    builtin_groups: BTreeSet<String>,
    /// By plural: the versions of all resources of that name, in order.
    by_plural: HashMap<String, Vec<Arc<Kind>>>,
    /// A kind per stored resource, in order.
    stored: Vec<Arc<Kind>>,
}

impl KindTable {
    /// Returns a table of kinds, in their order.
    fn of(kinds: Vec<Arc<Kind>>) -> Self {
        let mut table = Self::default();
        for kind in kinds {
            let served = &kind.served;
            if !served.custom {
                table.builtin_groups.insert(served.group.clone());
            }
            table.served.push(served.clone());
            let key = (served.group.clone(), served.version.clone(), served.plural.clone());
            table.kinds.insert(key, kind);
        }
        for kind in table.kinds.values() {
            let all = table.by_plural.entry(kind.served.plural.clone()).or_default();
            all.push(Arc::clone(kind));
        }
        table.stored = table.one_per_resource();
        table
    }

    /// Returns a kind by group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.kinds.get(&key).cloned()
    }

    /// Returns a version of a resource, preferably the stored version, if served.
    pub(crate) fn resource(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        let held = self.by_plural.get(plural).into_iter().flatten();
        held.filter(|kind| kind.is(group, plural))
            // `true` is the larger: the stored version wins if served.
            .max_by_key(|kind| kind.served.api_version() == kind.stored_as)
            .cloned()
    }

    /// Returns a version of a kind, preferably the stored version, if served.
    pub(crate) fn by_kind(&self, group: &str, kind: &str) -> Option<Arc<Kind>> {
        let held =
            self.kinds.values().find(|k| k.served.group == group && k.served.kind == kind)?;
        self.resource(group, &held.served.plural)
    }

    /// Returns the other served versions of a kind's resource, in order.
    pub(crate) fn versions(&self, kind: &Kind) -> Vec<Arc<Kind>> {
        let same = self.kinds.values().filter(|other| other.storage == kind.storage);
        same.filter(|other| other.served.api_version() != kind.served.api_version())
            .cloned()
            .collect()
    }

    /// Returns a kind by group, version and name.
    pub(crate) fn of_type(&self, group: &str, version: &str, name: &str) -> Option<Arc<Kind>> {
        let plural = &self.by_kind(group, name)?.served.plural;
        self.find(group, version, plural)
    }

    /// Whether the group is built in.
    pub(crate) fn is_builtin_group(&self, group: &str) -> bool {
        self.builtin_groups.contains(group)
    }

    /// Returns a kind per stored resource, in order.
    pub(crate) fn stored(&self) -> Vec<Arc<Kind>> {
        self.stored.clone()
    }

    fn one_per_resource(&self) -> Vec<Arc<Kind>> {
        let mut seen = BTreeSet::new();
        // Both event APIs have a common resource in the store: the first API stands for that
        // resource.
        let storable = self.kinds.values().filter(|kind| !kind.facts.review);
        let fresh = storable.filter(|kind| seen.insert(kind.storage.clone()));
        let stored = |kind: &Arc<Kind>| self.resource(&kind.served.group, &kind.served.plural);
        fresh.map(|kind| stored(kind).unwrap_or_else(|| kind.clone())).collect()
    }
}

impl Registry {
    /// Returns a registry of the built-in kinds.
    pub(crate) fn new() -> Self {
        // Shared by all servers of a process, because its construction costs more than a short run
        // of a test.
        static BUILTIN: OnceLock<Arc<KindTable>> = OnceLock::new();
        let builtin =
            || Arc::new(KindTable::of(builtin::kinds().into_iter().map(Arc::new).collect()));
        Self { table: RwLock::new(Arc::clone(BUILTIN.get_or_init(builtin))) }
    }

    /// Returns the kinds that are served now.
    pub(crate) fn table(&self) -> Arc<KindTable> {
        self.table.read().clone()
    }

    /// Replaces the kinds of a stored custom resource; an empty list removes it.
    pub(crate) fn replace(&self, storage: &str, kinds: Vec<Kind>) {
        // Held for the whole rebuild: a concurrent replacement would otherwise be lost.
        let mut slot = self.table.write();
        let mut all: Vec<Arc<Kind>> = Vec::new();
        let mut custom: Vec<Arc<Kind>> = kinds.into_iter().map(Arc::new).collect();
        for served in &slot.served {
            let Some(kind) = slot.find(&served.group, &served.version, &served.plural) else {
                continue;
            };
            match (&kind.custom, kind.storage == storage) {
                (None, _) => all.push(kind),
                (Some(_), false) => custom.push(kind),
                (Some(_), true) => {}
            }
        }
        custom.sort_by(|a, b| {
            let order = |kind: &Kind| (kind.served.group.clone(), kind.served.plural.clone());
            order(a).cmp(&order(b))
        });
        all.extend(custom);
        *slot = Arc::new(KindTable::of(all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_url_parts() {
        let table = Registry::new().table();
        assert_eq!(table.find("apps", "v1", "deployments").unwrap().name(), "Deployment");
        assert!(table.find("apps", "v2", "deployments").is_none());
        assert!(table.is_builtin_group("") && !table.is_builtin_group("example.com"));
        assert_eq!(table.stored().iter().filter(|kind| kind.storage == "events").count(), 1);
    }
}
