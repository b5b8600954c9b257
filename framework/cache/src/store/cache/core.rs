//! The untyped store: the locks, and the changes that callers may make.
//!
//! Only the informer's task changes slots, so that the events which listeners receive are exactly
//! the changes of that task. User code (index functions, decoding) never runs under the lock, and
//! neither bytes nor index values are prepared or freed under the lock.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::stats::{Sizes, StoreStats};
use crate::store::encoding::{Encoder, StoreSettings, Transform};
use crate::store::index::IndexTable;
use crate::store::object::{Object, StoreShared};
use crate::store::slots::{Id, Parts};
use crate::store::state::StoreState;
use crate::store::version::order;
use windlass_core::clock::Clock;
use windlass_core::resource::{ClusterId, ObjectKey, ResourceInfo};
use windlass_core::sync::ShardedRwLock;
use windlass_core::wire::MetadataScan;

/// Called when an object is first found not to decode, and when the reason changes. The observer
/// must not block, and may be called on a reader's thread.
pub(crate) type Observer = Box<dyn Fn(&Arc<Object>, &Arc<str>) + Send + Sync>;

/// The order of keys at the last list of all objects.
#[derive(Default)]
pub(in crate::store) struct KeyOrder {
    /// Number of the key set for which the order is valid.
    pub(super) membership: u64,
    /// Places in the order of their keys.
    pub(super) ids: Arc<[Id]>,
}

/// The cache of a kind.
pub struct StoreCore {
    /// State that objects reference, too. The findings about objects that do not decode are locked
    /// after `state`.
    pub(in crate::store) shared: Arc<StoreShared>,
    /// Turns objects into the kept form.
    pub(super) encoder: Encoder,
    /// Clock by which own writes expire.
    pub(super) clock: Clock,
    /// Slots, indexes and own writes. Locked first; readers of different threads take different
    /// shards.
    pub(in crate::store) state: ShardedRwLock<StoreState>,
    /// The order of keys at the last list of all objects. Locked after `state`.
    pub(super) order: Mutex<KeyOrder>,
    /// Receiver of findings about objects that do not decode.
    pub(super) observer: OnceLock<Observer>,
}

impl fmt::Debug for StoreCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreCore").field("kind", &self.shared.info.kind).finish_non_exhaustive()
    }
}

/// Breaks the reference cycles between the shared state and the objects inside that state.
impl Drop for StoreCore {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl StoreCore {
    /// Builds a store that keeps compact bytes, with a fixed seed.
    #[cfg(test)]
    pub(crate) fn new(info: ResourceInfo, clock: Clock) -> Arc<Self> {
        Self::with_settings(info, clock, StoreSettings::default(), 0)
    }

    /// Builds a store that keeps objects as `settings` say. `seed` decides the layout in memory and
    /// nothing else.
    #[doc(hidden)]
    pub fn with_settings(
        info: ResourceInfo,
        clock: Clock,
        settings: StoreSettings,
        seed: u64,
    ) -> Arc<Self> {
        settings.warn(&info);
        Arc::new_cyclic(|me: &Weak<Self>| {
            let me = Weak::<Self>::clone(me);
            let shared = Arc::new(StoreShared::new(info, me, settings.is_part()));
            Self {
                encoder: Encoder::new(Arc::clone(&shared), settings),
                shared,
                clock,
                state: ShardedRwLock::new(StoreState::new(seed)),
                order: Mutex::default(),
                observer: OnceLock::new(),
            }
        })
    }

    /// Group, version and kind of the objects.
    pub(crate) fn info(&self) -> &ResourceInfo {
        &self.shared.info
    }

    /// Builds an object of this store's kind, without storing the object. An object that is stored
    /// takes over the key of the cached version ([`apply`](Self::apply)): looking those keys up for
    /// a whole batch takes less time than single lookups.
    #[doc(hidden)]
    pub fn object(&self, scan: &MetadataScan<'_>) -> Arc<Object> {
        let key = ObjectKey::new(scan.namespace.as_deref(), &scan.name).in_cluster(self.cluster());
        let transformed = self.encoder.transformed(&key, scan);
        let object = transformed.unwrap_or_else(|| Object::new(key, scan, &self.shared));
        if self.shared.applied.is_used() && scan.is_whole() {
            object.note_applied(scan.managed_fields());
        }
        object
    }

    /// Keeps the fields that this manager has applied to objects that come from now on.
    #[doc(hidden)]
    pub fn keep_applied_fields(&self, manager: &str) {
        self.shared.applied.keep(manager);
    }

    /// The cluster in the keys of this store.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.encoder.settings.cluster
    }

    /// Whether objects are kept with everything that an apply could set.
    pub(crate) fn keeps_intents(&self) -> bool {
        self.encoder.settings.keeps_intents()
    }

    /// Whether a function transforms objects before they are kept; the function has to receive
    /// whole objects.
    pub(crate) fn is_transformed_whole(&self) -> bool {
        self.encoder.settings.transform.as_ref().is_some_and(Transform::is_function)
    }

    /// The key of a scan, without building a key.
    fn parts_of<'a>(&self, scan: &'a MetadataScan<'_>) -> Parts<'a> {
        (self.cluster(), scan.namespace.as_deref(), &scan.name)
    }

    /// Returns the cached object with the name in `scan`, in any version.
    pub(crate) fn seen_as(&self, scan: &MetadataScan<'_>) -> Option<Arc<Object>> {
        let state = self.state.read();
        state.slots.get(self.parts_of(scan)).map(|slot| Arc::clone(&slot.object))
    }

    /// Compares a listed object of this epoch with the cached object of that name. Returns the
    /// cached object when the version is the same, and whether the listed version is older.
    /// Allocates nothing.
    #[doc(hidden)]
    pub fn listed(&self, scan: &MetadataScan<'_>, epoch: u32) -> (Option<Arc<Object>>, bool) {
        let state = self.state.read();
        let Some(slot) = state.slots.get(self.parts_of(scan)) else { return (None, false) };
        let metadata = slot.object.metadata();
        if metadata.resource_version() != scan.resource_version {
            let order = order(&scan.resource_version, metadata.resource_version());
            return (None, slot.run.epoch == epoch && order == Some(Ordering::Less));
        }
        let is_same = metadata.uid() == scan.uid && !scan.resource_version.is_empty();
        (is_same.then(|| Arc::clone(&slot.object)), false)
    }

    /// Returns the number of objects that the watch has shown.
    pub(crate) fn seen_len(&self) -> usize {
        self.state.read().slots.len()
    }

    /// Sizes that the informer records after every batch; reading them costs nothing.
    pub(crate) fn sizes(&self) -> Sizes {
        let state = self.state.read();
        Sizes {
            objects: state.slots.len(),
            bytes: state.payload,
            index_entries: state.tables.iter().map(IndexTable::entries).sum(),
        }
    }

    /// Returns the newest version up to which everything was applied.
    pub(crate) fn version(&self) -> Arc<str> {
        Arc::clone(&self.state.read().version)
    }

    /// Returns the sizes of the store, in objects and in bytes.
    pub(crate) fn stats(&self) -> StoreStats {
        let state = self.state.read();
        let ready = || state.tables.iter().filter(|table| table.is_ready);
        let tables: usize = state.tables.iter().map(IndexTable::resident).sum();
        let structure = state.slots.resident() + state.namespaces.resident() + tables;
        StoreStats {
            objects: state.slots.len(),
            namespaces: state.namespaces.len(),
            payload_bytes: state.payload,
            resident_bytes: state.resident + structure + self.shared.beside() + self.shared.spare(),
            spare_bytes: self.shared.spare(),
            indexes: ready().count(),
            index_values: ready().map(IndexTable::values).sum(),
            index_entries: ready().map(IndexTable::entries).sum(),
            tombstones: state.tombstones.len(),
            own_writes: state.own.len(),
        }
    }
}
