//! Compressed objects: the packed body behind the bytes of the head.
//!
//! Metadata and body are packed apart, so that reading labels or versions unpacks nothing.
//! Dictionaries live as long as objects that need them. Compression and training are in
//! `encoding/compressor.rs`.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use zstd_safe::{CDict, DCtx, DDict};

use super::buffer_pool::Buffer;
use super::interned_meta::SharedHead;

/// Decompression contexts that are kept; each holds about 100 KB.
const READERS: usize = 4;

/// A compressed object with the head.
pub(crate) struct Cold {
    /// Length of the head and of the unpacked body (4 bytes each), head, packed body.
    pub(in crate::store) bytes: Buffer,
    pub(in crate::store) shared: Arc<CompressionShared>,
}

/// State that compressed objects share.
pub(in crate::store) struct CompressionShared {
    pub(in crate::store) dictionary: Arc<Dictionary>,
    pub(in crate::store) head: Box<[u8]>,
}

impl SharedHead for CompressionShared {
    fn head(&self) -> &[u8] {
        &self.head
    }
}

/// Length of the fields before the head.
pub(in crate::store) const LENGTHS: usize = 8;

impl fmt::Debug for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cold({} bytes)", self.bytes.len())
    }
}

/// A dictionary, prepared for each direction.
pub(in crate::store) struct Dictionary {
    pub(in crate::store) pack: CDict<'static>,
    pub(in crate::store) unpack: DDict<'static>,
    pub(in crate::store) readers: Arc<Readers>,
}

/// Decompression contexts for reuse.
pub(in crate::store) type Readers = Mutex<Vec<DCtx<'static>>>;

impl Cold {
    /// Returns the lengths of the head and of the unpacked body.
    fn lengths(&self) -> (usize, usize) {
        let at = |from: usize| {
            let bytes = self.bytes.get(from..from + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
        };
        (at(0), at(4))
    }

    /// Returns the head's own bytes: uid and resourceVersion.
    pub(in crate::store) fn head(&self) -> &[u8] {
        let (head, _) = self.lengths();
        self.bytes.get(LENGTHS..LENGTHS + head).unwrap_or_default()
    }

    /// Returns the labels, finalizers and owners.
    pub(in crate::store) fn common(&self) -> &[u8] {
        &self.shared.head
    }

    /// Returns the body. A body that cannot be decompressed, which is a defect, is empty, and that
    /// is logged.
    pub(in crate::store) fn unpacked(&self) -> Vec<u8> {
        let (head, length) = self.lengths();
        let packed = self.bytes.get(LENGTHS + head..).unwrap_or_default();
        let mut body = Vec::with_capacity(length);
        let dictionary = &self.shared.dictionary;
        let readers = &dictionary.readers;
        let mut reader = match readers.lock().pop() {
            Some(reader) => reader,
            None => DCtx::create(),
        };
        // Writes no further than the capacity.
        let outcome = reader.decompress_using_ddict(&mut body, packed, &dictionary.unpack);
        let mut readers = readers.lock();
        // Bounded: a burst of parallel reads must not keep the contexts.
        if readers.len() < READERS {
            readers.push(reader);
        }
        drop(readers);
        if outcome != Ok(length) {
            tracing::error!("a compressed object cannot be unpacked: this is a defect of windlass");
            body.clear();
        }
        body
    }
}
