//! Which informers a registry has: by kind, options and, where values are kept, their type.
//!
//! Not here: making one, and running them (`registry`).

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::CacheOptions;
use super::core::Core;
use super::lease::Lease;
use crate::resource::{Resource, ResourceInfo};
use crate::store::Representation;

/// The informers that somebody uses, and what was set for those that somebody will.
#[derive(Default)]
pub(super) struct Informers {
    pub(super) options: BTreeMap<ResourceInfo, CacheOptions>,
    /// In the order of their kinds; of one kind, in that in which they were asked for.
    pub(super) known: Vec<Known>,
    /// Made and not yet running.
    pub(super) idle: Vec<Arc<Core>>,
    /// Used for as long as the registry is.
    pub(super) pinned: Vec<Arc<Lease>>,
    pub(super) is_stopped: bool,
}

/// One informer.
pub(super) struct Known {
    pub(super) info: ResourceInfo,
    pub(super) options: CacheOptions,
    /// The type whose values are kept, where values are.
    pub(super) kept: Option<TypeId>,
    pub(super) core: Arc<Core>,
    pub(super) lease: Weak<Lease>,
}

/// Values of one type are of no use to another.
pub(super) fn kept_type<K: Resource>(options: &CacheOptions) -> Option<TypeId> {
    let is_kept = options.representation == Representation::Typed || K::projection().is_some();
    is_kept.then(TypeId::of::<K>)
}

impl Informers {
    /// The options that were set for a kind, or the default ones.
    pub(super) fn options_of(&self, info: &ResourceInfo) -> CacheOptions {
        self.options.get(info).cloned().unwrap_or_default()
    }

    /// A share in the informer of these options, or of those that were set for the kind.
    pub(super) fn find<K: Resource>(
        &self,
        info: &ResourceInfo,
        options: Option<&CacheOptions>,
    ) -> Option<Arc<Lease>> {
        let default;
        let options = match options.or_else(|| self.options.get(info)) {
            Some(options) => options,
            None => {
                default = CacheOptions::default();
                &default
            }
        };
        let kept = kept_type::<K>(options);
        self.known
            .iter()
            .filter(|known| known.info == *info && known.kept == kept && known.options == *options)
            .find_map(|known| known.lease.upgrade())
    }
}
