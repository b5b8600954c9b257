//! A cache without a network, step by step: for benchmarks and instruction counts.

use std::sync::Arc;

use windlass_cache::delta::Delta;
use windlass_cache::store::{
    self, ListGeneration, Observed, Representation, Store, StoreEvent, StreamMark,
};
use windlass_core::clock::Clock;
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::wire::{
    EventType, Frame, FrameDecoder, ListSplitter, MAX_PIECE, MetadataScan, StreamPiece,
};

/// The cache of a kind, with changes that were read and not applied yet.
pub struct OfflineCache {
    /// The store.
    core: Arc<store::StoreCore>,
    /// Number of the list that objects belong to.
    run: ListGeneration,
    /// Changes that were read and not applied yet.
    read: Vec<Delta<Observed, StreamMark>>,
    /// State of the list that is being read.
    list: ListSplitter,
    /// State of the watch that is being read.
    watch: FrameDecoder,
}

impl std::fmt::Debug for OfflineCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfflineCache").field("read", &self.read.len()).finish_non_exhaustive()
    }
}

impl OfflineCache {
    /// An empty cache of kind `K`.
    pub fn of<K: Resource>() -> Self {
        Self::kept_as::<K>(Representation::default())
    }

    /// An empty cache of kind `K` that stores objects in this representation.
    pub fn kept_as<K: Resource>(representation: Representation) -> Self {
        let info = K::static_info().expect("a kind that its type knows");
        let settings = store::StoreSettings::of::<K>(representation, None);
        Self {
            core: store::StoreCore::with_settings(info, Clock::system(), settings, 0),
            run: ListGeneration::default(),
            read: Vec::new(),
            list: ListSplitter::with_limit(MAX_PIECE),
            watch: FrameDecoder::new(),
        }
    }

    /// Returns a view of the cache.
    pub fn store<K: Resource>(&self) -> Store<K> {
        Store::new(Arc::clone(&self.core))
    }

    /// Begins a list.
    pub fn begin_list(&mut self) {
        self.run.number += 1;
        self.list = ListSplitter::with_limit(MAX_PIECE);
    }

    /// Reads a piece of a list as a reflector does: objects that are cached in the same version are
    /// not copied. Returns the number of changes to apply.
    pub fn read_list(&mut self, piece: &[u8]) -> usize {
        let Self { core, run, read, list, .. } = self;
        let _ = list.push(piece, &mut |part| {
            let StreamPiece::Whole(item) = part else { return };
            let Ok(scan) = MetadataScan::of(item) else { return };
            let object = core.listed(&scan, 0).0.unwrap_or_else(|| core.object(&scan));
            read.push(Delta::Put(Observed { object, run: *run, is_initial: true }));
        });
        read.len()
    }

    /// Reads a piece of a watch. Returns the number of changes to apply.
    pub fn read_watch(&mut self, piece: &[u8]) -> usize {
        let Self { core, run, read, watch, .. } = self;
        watch.push(piece, &mut |part| {
            let StreamPiece::Whole(line) = part else { return };
            let Ok((frame, scan)) = Frame::scanned(line) else { return };
            let Ok(scan) = scan.map_or_else(|| MetadataScan::of(frame.object), Ok) else { return };
            let observed = Observed { object: core.object(&scan), run: *run, is_initial: false };
            read.push(match frame.event {
                EventType::Deleted => Delta::Delete(observed),
                _ => Delta::Put(observed),
            });
        });
        read.len()
    }

    /// Applies the changes, and calls `each` with the key of every change.
    pub fn apply(&mut self, each: &mut dyn FnMut(&ObjectKey)) {
        let applied = self.core.apply(std::mem::take(&mut self.read));
        applied.events.iter().map(StoreEvent::key).for_each(each);
    }

    /// Discards the changes.
    pub fn discard(&mut self) {
        self.read.clear();
    }
}

/// Splits a list without using the items. Returns the number of items and their bytes.
pub fn split(pieces: &mut dyn Iterator<Item = &[u8]>) -> (usize, usize) {
    let mut splitter = ListSplitter::with_limit(MAX_PIECE);
    let (mut items, mut bytes) = (0, 0);
    for piece in pieces {
        let outcome = splitter.push(piece, &mut |part| {
            let (StreamPiece::Whole(item) | StreamPiece::TooLarge(item)) = part;
            items += 1;
            bytes += item.len();
        });
        if outcome.is_err() {
            break;
        }
    }
    (items, bytes)
}
