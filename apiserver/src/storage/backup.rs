//! All objects at one revision.

use std::collections::BTreeMap;

use super::Snapshot;

/// All objects at one revision.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    pub(super) revision: u64,
    pub(super) resources: BTreeMap<String, Snapshot>,
}

impl Backup {
    /// Returns a backup of objects at a revision.
    pub(crate) fn new(revision: u64, resources: BTreeMap<String, Snapshot>) -> Self {
        Self { revision, resources }
    }

    /// Returns the objects of each resource.
    pub(crate) fn resources(&self) -> &BTreeMap<String, Snapshot> {
        &self.resources
    }

    /// Returns the newest revision in the backup.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}
