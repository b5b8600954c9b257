//! What a store holds and costs.

/// What is counted as it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) objects: usize,
    /// Of all contents.
    pub(crate) bytes: usize,
    pub(crate) index_entries: usize,
}

/// Sizes of a store at one moment; to find them out each index value is looked at. Bytes are those of the store's own memory; values that readers
/// have decoded are theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Objects that the watch has shown.
    pub objects: usize,
    /// Namespaces that have objects.
    pub namespaces: usize,
    /// Bytes of what is kept of the objects.
    pub payload_bytes: usize,
    /// Bytes that objects, keys, indexes and spare buffers take up, without what the allocator adds:
    /// compare it with [`payload_bytes`](Self::payload_bytes).
    pub resident_bytes: usize,
    /// Bytes of buffers and objects that wait for their next use; at most 1.2 MiB or a sixteenth of the
    /// payload.
    pub spare_bytes: usize,
    /// Indexes, without that by namespace.
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
