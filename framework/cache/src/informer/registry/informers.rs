//! The informers of a registry: by kind, options and, where values are cached, their type.
//!
//! Creating and running them is in `registry`.

// DESIGN.md, 216: A pinned informer is found by the type that reads it

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use super::informer_ref::InformerRef;
use crate::informer::CacheOptions;
use crate::informer::core::InformerCore;
use crate::store::Representation;
use windlass_core::resource::{Resource, ResourceInfo};

/// The informers in use, and the options that were set for kinds.
#[derive(Default)]
pub(in crate::informer) struct Informers {
    pub(in crate::informer) options: BTreeMap<ResourceInfo, CacheOptions>,
    /// Kinds that are optional only because a controller can do without them.
    pub(in crate::informer) preferred_optional: BTreeSet<ResourceInfo>,
    /// Sorted by kind; informers of the same kind in the order of creation.
    pub(in crate::informer) registered: Vec<RegisteredInformer>,
    /// Created and not yet running.
    pub(in crate::informer) idle: Vec<Arc<InformerCore>>,
    /// In use for as long as the registry exists; each with the type of the request, once per type.
    pinned: Vec<(TypeId, Arc<InformerRef>)>,
    pub(in crate::informer) is_stopped: bool,
}

/// An informer.
pub(in crate::informer) struct RegisteredInformer {
    pub(in crate::informer) info: ResourceInfo,
    pub(in crate::informer) options: CacheOptions,
    /// The type of the cached values, where values are cached.
    pub(in crate::informer) cached_type: Option<TypeId>,
    pub(in crate::informer) core: Arc<InformerCore>,
    /// References in use; when the reference cannot be upgraded, the informer is stopping.
    pub(in crate::informer) users: Weak<InformerRef>,
}

impl RegisteredInformer {
    /// Whether the informer is of that kind and version.
    pub(in crate::informer) fn is_of(&self, info: &ResourceInfo) -> bool {
        let (ours, theirs) = (&self.info, info);
        // Each read of a cache comes by here. The name of the kind first: the name alone
        // distinguishes most kinds.
        is_same(&ours.kind, &theirs.kind)
            && is_same(&ours.group, &theirs.group)
            && is_same(&ours.version, &theirs.version)
            && is_same(&ours.plural, &theirs.plural)
            && ours.scope == theirs.scope
    }
}

/// Whether both texts are equal; texts of the same type are the same in memory, and are not read.
fn is_same(a: &str, b: &str) -> bool {
    std::ptr::eq(a, b) || a == b
}

/// Returns the type of the cached values, where values are cached: values of one type are of no use
/// to readers of another.
pub(in crate::informer) fn cached_type<K: Resource>(options: &CacheOptions) -> Option<TypeId> {
    let is_cached = options.representation == Representation::Typed || K::projection().is_some();
    is_cached.then(TypeId::of::<K>)
}

impl Informers {
    /// Returns the options that were set for a kind, or the default options.
    pub(in crate::informer) fn options_of(&self, info: &ResourceInfo) -> CacheOptions {
        self.options.get(info).cloned().unwrap_or_default()
    }

    /// Returns the informer that is pinned for a type.
    pub(in crate::informer) fn pinned<K: Resource>(&self) -> Option<Arc<InformerRef>> {
        let mut pinned = self.pinned.iter();
        let (_, informer) = pinned.find(|(read_as, _)| *read_as == TypeId::of::<K>())?;
        Some(Arc::clone(informer))
    }

    /// Keeps an informer in use, as that of a type.
    pub(in crate::informer) fn pin<K: Resource>(&mut self, informer: &Arc<InformerRef>) {
        if self.pinned::<K>().is_none() {
            self.pinned.push((TypeId::of::<K>(), Arc::clone(informer)));
        }
    }

    /// Returns a share in the informer with these options, or with those that were set for the
    /// kind.
    pub(in crate::informer) fn find<K: Resource>(
        &self,
        info: &ResourceInfo,
        options: Option<&CacheOptions>,
    ) -> Option<Arc<InformerRef>> {
        let default;
        let options = match options.or_else(|| self.options.get(info)) {
            Some(options) => options,
            None => {
                default = CacheOptions::default();
                &default
            }
        };
        let cached_type = cached_type::<K>(options);
        self.registered
            .iter()
            .filter(|one| {
                one.is_of(info) && one.cached_type == cached_type && one.options == *options
            })
            // An informer whose last user is gone is about to stop, and is not used again.
            .find_map(|one| one.users.upgrade())
    }
}
