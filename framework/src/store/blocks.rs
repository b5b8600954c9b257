//! The memory of objects that nobody has any more, for the next ones.
//!
//! An object is a block of the process's allocator beside its bytes, which are the store's own
//! (`memory`). An update takes one in the arena of the thread that applies it and frees another in the
//! arena of the thread that made it, so that small objects, and compressed ones most of all, take a fifth
//! more after some updates of each. Here a block waits for the next object instead.
//!
//! No `unsafe`: a block is an `Arc` that nobody else holds, and what is in it is written over.

use std::sync::Arc;

use parking_lot::Mutex;

use super::object::Object;

/// So many blocks wait at most: what a few batches take and give back, 200 KB.
const MOST: usize = 1024;

/// Blocks that wait for their next use.
#[derive(Default)]
pub(crate) struct Blocks {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    blocks: Vec<Arc<Object>>,
    is_closed: bool,
}

impl Blocks {
    /// A block to write an object into.
    pub(super) fn take(&self) -> Option<Arc<Object>> {
        self.free.lock().blocks.pop()
    }

    /// Takes a block that nobody else holds.
    pub(super) fn keep(&self, block: Arc<Object>) {
        let mut free = self.free.lock();
        if !free.is_closed && free.blocks.len() < MOST {
            return free.blocks.push(block);
        }
        // Freed outside of the lock.
        drop(free);
        drop(block);
    }

    /// Frees all, and keeps none any more: they hold what holds this.
    pub(super) fn close(&self) {
        let mut free = self.free.lock();
        free.is_closed = true;
        let blocks = std::mem::take(&mut free.blocks);
        drop(free);
        drop(blocks);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.free.lock().blocks.len()
    }
}
