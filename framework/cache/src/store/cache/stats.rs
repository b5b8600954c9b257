//! Sizes of a store, in objects and in bytes.

/// Sizes that are counted as they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Objects that the watch has shown, without own writes.
    pub(crate) objects: usize,
    /// Payload bytes of all objects.
    pub(crate) bytes: usize,
    /// Pairs of object and value in all indexes.
    pub(crate) index_entries: usize,
}

/// Sizes of a store at a single moment. Computing them visits every index value. The bytes are
/// those of the store's own memory, without values that readers have decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Objects that the watch has shown; objects that only own writes have shown are not counted.
    pub objects: usize,
    /// Namespaces with at least one object.
    pub namespaces: usize,
    /// Bytes of the stored content of the objects.
    pub payload_bytes: usize,
    /// Bytes that objects, keys, indexes and spare buffers take up, without the allocator's
    /// overhead: compare this number with [`payload_bytes`](Self::payload_bytes).
    pub resident_bytes: usize,
    /// Bytes of buffers and objects that are kept for reuse; at most 1.2 MiB or a sixteenth of the
    /// payload.
    pub spare_bytes: usize,
    /// Indexes, without the index by namespace.
    pub indexes: usize,
    /// Distinct values in all indexes.
    pub index_values: usize,
    /// Pairs of object and value in all indexes.
    pub index_entries: usize,
    /// Deletions that are remembered until the next list.
    pub tombstones: usize,
    /// Own writes that the watch has not confirmed.
    pub own_writes: usize,
}
