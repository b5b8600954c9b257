//! A pool of object blocks, for the next objects.
//!
//! An object is a block of the process's allocator beside the bytes, which are in buffers of the
//! store (`buffer_pool`). An update takes a block in the arena of the thread that applies the
//! update and frees another in the arena of the thread that made that block, so that small objects,
//! and compressed ones most of all, take a fifth more after some updates of each. Here a block is
//! kept for the next object instead.
//!
//! No `unsafe`: a block is an `Arc` without other references, whose content is overwritten.

// DESIGN.md, 59: A store reuses the memory blocks of dropped objects (object pool)

use std::sync::Arc;

use parking_lot::Mutex;

/// Largest number of pooled blocks: the turnover of a few batches, 200 KB.
const MOST: usize = 1024;

/// The blocks of a store that are free.
pub(crate) struct ObjectPool<T> {
    free: Mutex<Free<T>>,
}

/// Blocks for reuse, and whether the pool is closed.
struct Free<T> {
    blocks: Vec<Arc<T>>,
    is_closed: bool,
}

impl<T> Default for ObjectPool<T> {
    fn default() -> Self {
        Self { free: Mutex::new(Free { blocks: Vec::new(), is_closed: false }) }
    }
}

impl<T> ObjectPool<T> {
    /// Takes a block to write an object into.
    pub(in crate::store) fn take(&self) -> Option<Arc<T>> {
        self.free.lock().blocks.pop()
    }

    /// Returns a block without other references to the pool.
    pub(in crate::store) fn keep(&self, block: Arc<T>) {
        let mut free = self.free.lock();
        if !free.is_closed && free.blocks.len() < MOST {
            return free.blocks.push(block);
        }
        // Freed outside of the lock.
        drop(free);
        drop(block);
    }

    /// Frees all blocks and accepts no more: they reference the state that owns the pool.
    pub(in crate::store) fn close(&self) {
        let mut free = self.free.lock();
        free.is_closed = true;
        let blocks = std::mem::take(&mut free.blocks);
        drop(free);
        drop(blocks);
    }

    /// Number of free blocks.
    pub(in crate::store) fn len(&self) -> usize {
        self.free.lock().blocks.len()
    }
}
