//! Forms in which a process caches each kind: every form of the store is in each world.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::informer::{CacheOptions, InformerRegistry};
use windlass::reflector::ReflectorOptions;
use windlass::resource::PartialObject;
use windlass::rng::Rng;
use windlass::store::Representation;

use super::cache::{Cache, Watched};
use super::kinds::{ConfigMapView, Gadget, Gizmo, Subject};
use super::{Ledger, Stats};
use crate::oracle::Scope;
use std::sync::Arc;

/// Number of objects of a page: few, so that a list is cut between two of them.
const PAGE: u32 = 16;

/// Forms of gadgets, gizmos and ConfigMaps in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    /// Bytes, bytes, and a projection; lists come in pages.
    Paged,
    /// Decoded, metadata alone, and compressed.
    Mixed,
    /// Compressed, decoded, and bytes.
    Cold,
}

impl Forms {
    /// Returns the form of the process of that number: the first three differ, later forms are
    /// drawn.
    pub(super) fn of(number: u64, dice: &Rng) -> Self {
        match if number <= 3 { number - 1 } else { dice.below(3) } {
            0 => Self::Paged,
            1 => Self::Mixed,
            _ => Self::Cold,
        }
    }

    /// Creates the caches of the process, in the order of the kinds' numbers.
    pub(super) fn caches(
        self,
        registry: &InformerRegistry,
        observer: &str,
        scope: &Scope,
        records: (&Ledger, &Stats),
    ) -> Vec<Arc<dyn Watched>> {
        let maker = Maker { registry, observer, scope, records };
        let kept = |form| CacheOptions::default().representation(form);
        let (compact, cold) = (Representation::Compact, kept(Representation::Cold));
        match self {
            Self::Paged => {
                let paged = || kept(compact).reading(paged());
                vec![
                    maker.gadgets(paged()),
                    maker.gizmos(paged()),
                    Cache::<ConfigMapView>::new(
                        registry,
                        observer,
                        scope.clone(),
                        paged(),
                        records,
                    ),
                ]
            }
            Self::Mixed => {
                let metadata = kept(Representation::Metadata);
                vec![
                    maker.typed::<Gadget>(),
                    Cache::<PartialObject>::new(
                        registry,
                        observer,
                        scope.clone(),
                        metadata,
                        records,
                    ),
                    maker.config_maps(cold),
                ]
            }
            Self::Cold => {
                vec![maker.gadgets(cold), maker.typed::<Gizmo>(), maker.config_maps(kept(compact))]
            }
        }
    }
}

/// Returns options for lists in small pages, never as a stream.
pub(super) fn paged() -> ReflectorOptions {
    ReflectorOptions::new().page_size(PAGE).streaming(false)
}

struct Maker<'a> {
    registry: &'a InformerRegistry,
    observer: &'a str,
    scope: &'a Scope,
    records: (&'a Ledger, &'a Stats),
}

impl Maker<'_> {
    /// A cache of decoded values: an index on their fields has to be there before the first list.
    fn typed<K: Subject>(&self) -> Arc<dyn Watched> {
        let options = CacheOptions::default().representation(Representation::Typed);
        Cache::<K>::new(self.registry, self.observer, self.scope.clone(), options, self.records)
            .indexed()
    }

    fn gadgets(&self, options: CacheOptions) -> Arc<dyn Watched> {
        Cache::<Gadget>::new(
            self.registry,
            self.observer,
            self.scope.clone(),
            options,
            self.records,
        )
    }

    fn gizmos(&self, options: CacheOptions) -> Arc<dyn Watched> {
        Cache::<Gizmo>::new(self.registry, self.observer, self.scope.clone(), options, self.records)
    }

    fn config_maps(&self, options: CacheOptions) -> Arc<dyn Watched> {
        Cache::<ConfigMap>::new(
            self.registry,
            self.observer,
            self.scope.clone(),
            options,
            self.records,
        )
    }
}
