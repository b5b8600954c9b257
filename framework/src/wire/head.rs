//! What the cache knows of an object without decoding it.

use std::sync::Arc;

/// The part of an object's metadata that decides about it: identity, version, deletion, labels,
/// owners, finalizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub(crate) uid: Arc<str>,
    pub(crate) resource_version: Arc<str>,
    pub(crate) generation: i64,
    pub(crate) terminating: bool,
    pub(crate) labels: Box<[(Arc<str>, Arc<str>)]>,
    pub(crate) finalizers: Box<[Arc<str>]>,
    pub(crate) owners: Box<[Owner]>,
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `group/version`.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// Is it the managing controller?
    pub controller: bool,
}

impl Head {
    /// Uid; empty only for servers that give none.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// resourceVersion.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Generation; 0 when the kind has none.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Is it marked for deletion?
    pub fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Labels, sorted by key.
    pub fn labels(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.labels
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Finalizers, in the object's order.
    pub fn finalizers(&self) -> &[Arc<str>] {
        &self.finalizers
    }

    /// Owner references, in the object's order.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }
}
