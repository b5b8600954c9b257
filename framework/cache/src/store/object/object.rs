//! An object of the cache: key, offsets of its metadata, and content.

// DESIGN.md, 25: Cached objects are JSON bytes with offsets into them

use std::any::TypeId;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use super::applied_fields::{AppliedEntries, FieldTree};
use super::buffer_pool::BufferPool;
use super::content::ObjectContent;
use super::decoded_cache::{Decoded, DecodedCache};
use super::detached::DetachedIndexValues;
use super::invalid::{Invalid, InvalidSink, Invalids};
use super::object_pool::ObjectPool;
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};
#[cfg(feature = "cold")]
use windlass_core::wire::value_at_path;
use windlass_core::wire::{
    MetadataOffsets, MetadataRef, MetadataScan, PathTree, Scalar, Undecodable, text_of, times,
};

/// An object of the cache; immutable.
pub struct Object {
    key: ObjectKey,
    offsets: MetadataOffsets,
    content: ObjectContent,
    /// Unique among all objects that this store ever had.
    serial: u64,
    shared: Arc<StoreShared>,
}

/// State that the objects of a store share: the kind, buffers and shared values, and the findings
/// about objects that do not decode.
pub(in crate::store) struct StoreShared {
    pub(crate) info: ResourceInfo,
    /// Receives objects that do not decode. Weak, as objects may outlive their store.
    store: Weak<dyn InvalidSink>,
    pub(crate) memory: BufferPool,
    pub(in crate::store) blocks: ObjectPool<Object>,
    /// Whether objects hold the fields of a projection only.
    is_part: bool,
    pub(in crate::store) invalid: Invalids,
    decoded_cache: DecodedCache,
    /// Fields that controllers have applied, by object.
    pub(in crate::store) applied: AppliedEntries,
    serials: AtomicU64,
}

/// Bytes of an object beside key and content, with the two counters of an `Arc`.
const BLOCK: usize = size_of::<Object>() + 2 * size_of::<usize>();
/// Bytes of a key's block, without the text.
const ABOUT: usize = 3 * size_of::<usize>();

impl fmt::Debug for Object {
    /// Shows the key alone: the content may be a Secret's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("key", &self.key).finish_non_exhaustive()
    }
}

impl StoreShared {
    pub(in crate::store) fn new(
        info: ResourceInfo,
        store: Weak<dyn InvalidSink>,
        is_part: bool,
    ) -> Self {
        Self {
            info,
            store,
            is_part,
            memory: BufferPool::default(),
            blocks: ObjectPool::default(),
            invalid: Invalids::default(),
            decoded_cache: DecodedCache::default(),
            applied: AppliedEntries::default(),
            serials: AtomicU64::new(0),
        }
    }

    /// Bytes of buffers and blocks that are kept for the next objects.
    pub(in crate::store) fn spare(&self) -> usize {
        self.memory.free() + self.blocks.len() * BLOCK
    }

    /// Bytes that are kept beside objects.
    pub(in crate::store) fn beside(&self) -> usize {
        self.applied.resident()
    }

    /// Breaks reference cycles when the store is dropped: pooled blocks, and the objects that do
    /// not decode, hold this value, which holds them.
    pub(in crate::store) fn close(&self) {
        self.blocks.close();
        self.invalid.clear();
    }

    /// Records that `object` was decoded into the type `of`.
    fn note_valid(&self, object: &Object, of: TypeId) {
        if self.invalid.heal(object, of) {
            tracing::info!(
                resource = %self.info, object = %object.key(), version = object.version(),
                "the object decodes again"
            );
        }
    }
}

impl Object {
    /// Builds the object that `scan` shows, under `key`.
    pub(in crate::store) fn new(
        key: ObjectKey,
        scan: &MetadataScan<'_>,
        shared: &Arc<StoreShared>,
    ) -> Arc<Self> {
        let length = scan.compact_len();
        let bytes = shared.memory.buffer(length, |bytes| scan.compact_into(bytes));
        Self::of(key, scan.offsets(), ObjectContent::Compact(bytes), shared)
    }

    /// Builds an object from parts; `offsets` point into the content's metadata bytes.
    pub(in crate::store) fn of(
        key: ObjectKey,
        offsets: MetadataOffsets,
        content: ObjectContent,
        shared: &Arc<StoreShared>,
    ) -> Arc<Self> {
        // Relaxed: the number only has to be unique.
        let serial = shared.serials.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // `get_mut` fails only if the block got another reference, which pooled blocks do not have.
        if let Some(mut block) = shared.blocks.take()
            && let Some(place) = Arc::get_mut(&mut block)
        {
            // `shared` is set already: blocks are pooled per home.
            (place.key, place.offsets) = (key, offsets);
            (place.content, place.serial) = (content, serial);
            return block;
        }
        Arc::new(Self { key, offsets, content, serial, shared: Arc::clone(shared) })
    }

    /// Reads a byte of the key's text and a byte of the content, to load both into the processor's
    /// cache.
    pub(in crate::store) fn prefetch(&self) -> u8 {
        let (own, _) = self.content.head_bytes();
        let first = |bytes: &[u8]| bytes.first().copied().unwrap_or_default();
        first(self.key.name().as_bytes()) ^ first(self.offsets.resource_version.of(own))
    }

    /// Replaces the object's key by an equal key that other versions share, unless the object has
    /// other references.
    pub(in crate::store) fn adopt(object: &mut Arc<Self>, key: ObjectKey) {
        if let Some(object) = Arc::get_mut(object) {
            object.key = key;
        }
    }

    /// Recycles the object's buffer and block, unless another reference to the object exists.
    pub(in crate::store) fn give_back(mut object: Arc<Self>) {
        let Some(dead) = Arc::get_mut(&mut object) else { return };
        let shared = Arc::clone(&dead.shared);
        shared.applied.release(dead.serial);
        shared.memory.give_back(dead.content.take_buffer());
        dead.content = ObjectContent::default();
        dead.offsets.plain = None;
        shared.blocks.keep(object);
    }

    #[doc(hidden)]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    #[doc(hidden)]
    pub fn metadata(&self) -> MetadataRef<'_> {
        let (own, common) = self.content.head_bytes();
        self.offsets.metadata_apart(own, common)
    }

    #[doc(hidden)]
    pub fn version(&self) -> &str {
        self.metadata().resource_version()
    }

    /// Number of this state of the object; no other state in the store has it.
    pub(in crate::store) fn serial(&self) -> u64 {
        self.serial
    }

    /// Keeps the fields that controllers have applied; `managed` is the JSON of `managedFields`.
    pub(in crate::store) fn note_applied(&self, managed: &[u8]) {
        self.shared.applied.note(self.serial, managed, self.controller().as_deref());
    }

    /// Keeps the fields that were kept for another form of the same state.
    pub(in crate::store) fn carry_applied(&self, from: &Self) {
        if self.serial != from.serial {
            self.shared.applied.carry(from.serial, self.serial);
        }
    }

    /// Returns the fields that `manager` has applied, if they are kept.
    pub(in crate::store) fn applied_fields(&self, manager: &str) -> Option<FieldTree> {
        self.shared.applied.get(self.serial, manager, self.controller().as_deref())
    }

    /// Returns the uid of the controlling owner.
    fn controller(&self) -> Option<String> {
        let metadata = self.metadata();
        let uid =
            metadata.owners().find(|owner| owner.controller).map(|owner| owner.uid.to_string());
        uid.filter(|uid| !uid.is_empty())
    }

    /// Whether the two are the same state, byte by byte. False for decoded and compressed objects,
    /// which are not compared.
    pub(in crate::store) fn is_same(&self, other: &Self) -> bool {
        self.version() == other.version() && self.content.is_same(&other.content)
    }

    /// Returns the object as JSON, as far as kept.
    #[doc(hidden)]
    pub fn body(&self) -> Cow<'_, [u8]> {
        self.content.body()
    }

    pub(in crate::store) fn offsets(&self) -> &MetadataOffsets {
        &self.offsets
    }

    pub(crate) fn content(&self) -> &ObjectContent {
        &self.content
    }

    /// Calls `each` with the scalars at some paths, as far as they are kept.
    pub(in crate::store) fn visit(
        &self,
        paths: &PathTree,
        each: &mut dyn FnMut(usize, Scalar<'_>),
    ) {
        match &self.content {
            ObjectContent::Compact(bytes) => paths.visit_known(bytes, &self.offsets, each),
            ObjectContent::Projected(part) => paths.visit_known(part.body(), &self.offsets, each),
            content => paths.visit(&content.body(), each),
        }
    }

    /// Returns the index values of fields that the object came with and that are not kept.
    pub(in crate::store) fn detached(&self) -> DetachedIndexValues<'_> {
        match &self.content {
            ObjectContent::Projected(part) => part.detached(),
            ObjectContent::DecodedObject(kept) => kept.detached(),
            _ => DetachedIndexValues::default(),
        }
    }

    /// Bytes of the object, without the place in the store.
    pub(crate) fn resident(&self) -> usize {
        // A reference count and the key's header precede the key's text.
        let key = self.key.namespace().map_or(0, |namespace| namespace.len() + 1);
        let key = key + self.key.name().len();
        let fixed = BLOCK + ABOUT + key;
        fixed + self.content.capacity() + self.offsets.heap()
    }

    /// Returns an annotation's value.
    #[doc(hidden)]
    pub fn annotation(&self, key: &str) -> Option<String> {
        match &self.content {
            ObjectContent::Compact(_) | ObjectContent::Projected(_) => {
                self.metadata().annotation(key)
            }
            ObjectContent::DecodedObject(kept) => kept.annotation(key),
            #[cfg(feature = "cold")]
            ObjectContent::Cold(cold) => {
                let body = cold.unpacked();
                let path = ["metadata", "annotations", key];
                serde_json::from_slice(value_at_path(&body, &path)?).ok()
            }
        }
    }

    /// Decodes the object into a `K`, or returns the value that another reader holds. The failure
    /// of a cached version is remembered: the version is not decoded again.
    pub(crate) fn decode<K: Resource>(self: &Arc<Self>) -> Result<Arc<K>, Invalid> {
        if let ObjectContent::DecodedObject(kept) = &self.content
            && let Some(value) = kept.value::<K>()
        {
            return Ok(value);
        }
        if let Some(Ok(shared)) = self.shared.decoded_cache.get(self.serial).map(Arc::downcast::<K>)
        {
            return Ok(shared);
        }
        if let Some(message) = self.shared.invalid.of(self, TypeId::of::<K>()) {
            return Err(Invalid { message });
        }
        match self.parse::<K>() {
            Ok(value) => {
                let value = Arc::new(value);
                let shared: Decoded = Arc::<K>::clone(&value);
                // Two readers may decode the same object at once; the later value replaces the
                // earlier.
                self.shared.decoded_cache.put(self.serial, &shared);
                self.shared.note_valid(self, TypeId::of::<K>());
                Ok(value)
            }
            Err(message) => {
                let message: Arc<str> = Arc::from(message);
                if let Some(store) = self.shared.store.upgrade() {
                    store.note_invalid(self, TypeId::of::<K>(), &message);
                }
                Err(Invalid { message })
            }
        }
    }

    /// Decodes the object without looking for a shared value; a panic of the type's code is an
    /// error.
    pub(in crate::store) fn parse<K: Resource>(&self) -> Result<K, String> {
        let body = self.body();
        let named;
        // Types with a static kind need not parse these members; dynamic types would lose their
        // kind without them.
        let bytes = if K::static_info().is_none() {
            named = self.named(&body);
            &named
        } else {
            &*body
        };
        let is_part = self.shared.is_part;
        let decode = || times::decoded(bytes, |bytes| decode::<K>(bytes, is_part));
        match catch_unwind(AssertUnwindSafe(decode)) {
            Ok(decoded) => {
                decoded.map_err(|error| Undecodable::explain::<K>(bytes, &error).to_string())
            }
            Err(_) => Err("decoding it panicked".to_owned()),
        }
    }

    /// Returns the body with `apiVersion` and `kind`.
    fn named(&self, body: &[u8]) -> Vec<u8> {
        let info = &self.shared.info;
        let rest = body.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
        let mut bytes = serde_json::to_vec(&serde_json::json!({
            "apiVersion": info.api_version(),
            "kind": info.kind,
        }))
        .unwrap_or_default();
        bytes.pop();
        if !rest.trim_ascii_start().starts_with(b"}") {
            bytes.push(b',');
        }
        bytes.extend_from_slice(rest);
        bytes
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.shared.applied.release(self.serial);
        self.shared.memory.give_back(self.content.take_buffer());
    }
}

/// Decodes a value. A projection skips most of a whole object; a part holds only the type's fields.
fn decode<K: Resource>(bytes: &[u8], is_part: bool) -> serde_json::Result<K> {
    let text = text_of(bytes)?;
    let partial = if is_part { None } else { K::decode_partial(text) };
    partial.map_or_else(|| serde_json::from_str(text), Ok)
}
