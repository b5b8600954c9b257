//! The byte memory of a store: buffers of few sizes that are reused.
//!
//! An update frees a buffer and takes another of about the same size. With a general allocator the
//! freed buffers end up in another thread's arena or between others, and resident memory doubles
//! within a few updates of each object. Here a freed buffer is kept in a list of the same size for
//! the next object, and the lists are bounded.
//!
//! No pages, no compaction, no `unsafe`: a buffer is a `Vec` whose capacity is among the sizes.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use parking_lot::Mutex;

/// Distance of the sizes of small buffers, as in glibc: 700 bytes lose one percent.
const SMALL_STEP: usize = 16;
/// Sizes from here on are `STEP` apart.
const SMALL: usize = 2 << 10;
/// Distance of larger sizes: a Pod's bytes lose half a percent.
const STEP: usize = 64;
/// Beyond this size steps are a sixteenth of the size.
const LARGE: usize = 8 << 10;
/// Bytes that the allocator puts before a block; sizes leave room for it.
const ALLOCATOR_HEADER: usize = 8;
/// Larger buffers are not kept: each is a separate mapping that goes back to the system at once.
const LARGEST_KEPT: usize = 128 << 10;
/// Bytes that the lists may hold, however small the store is: a few batches of Pods.
const ALWAYS_KEPT: usize = 1 << 20;
/// Largest share of the bytes in use that the lists may hold: one part in this many.
const KEPT_SHARE: usize = 16;

/// The buffers of a store.
#[derive(Default)]
pub(crate) struct BufferPool {
    lists: Mutex<FreeLists>,
}

/// The free buffers and their statistics.
#[derive(Default)]
struct FreeLists {
    /// Free buffers by capacity.
    free: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Capacity of the free buffers.
    free_bytes: usize,
    /// Capacity of the buffers in use.
    used_bytes: usize,
    /// The capacity class from which the last surplus buffer was freed.
    surplus: usize,
}

/// Bytes that do not change any more. Return them with [`BufferPool::give_back`].
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Buffer {
    /// Bytes that the buffer takes up.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The length only: the content may be a Secret's.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes.len())
    }
}

impl BufferPool {
    /// Returns a buffer with the bytes that `fill` appends, about `length` of them.
    pub(crate) fn buffer(&self, length: usize, fill: impl FnOnce(&mut Vec<u8>)) -> Buffer {
        let mut bytes = if length == 0 { Vec::new() } else { self.take(size_for(length)) };
        let before = bytes.capacity();
        fill(&mut bytes);
        if bytes.capacity() != before {
            // `fill` wrote more than announced, and the vector grew.
            self.lists.lock().used_bytes += bytes.capacity() - before;
        }
        Buffer { bytes }
    }

    /// Takes a free buffer, or allocates a new buffer.
    fn take(&self, size: usize) -> Vec<u8> {
        let mut lists = self.lists.lock();
        let found = lists.take(size);
        lists.used_bytes += found.as_ref().map_or(size, Vec::capacity);
        drop(lists);
        // The allocator is called without the lock.
        found.unwrap_or_else(|| Vec::with_capacity(size))
    }

    /// Takes back a buffer that has no readers any more.
    pub(crate) fn give_back(&self, buffer: Buffer) {
        let Buffer { mut bytes } = buffer;
        let capacity = bytes.capacity();
        if capacity == 0 {
            return;
        }
        bytes.clear();
        let mut lists = self.lists.lock();
        lists.used_bytes = lists.used_bytes.saturating_sub(capacity);
        let surplus = lists.keep(bytes);
        drop(lists);
        // Freed outside of the lock.
        drop(surplus);
    }

    /// Capacity of the buffers in use, in bytes.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.lists.lock().used_bytes
    }

    /// Capacity of the free buffers, in bytes.
    pub(crate) fn free(&self) -> usize {
        self.lists.lock().free_bytes
    }
}

impl FreeLists {
    /// Takes the smallest free buffer that fits without much waste.
    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let most = size + (size / KEPT_SHARE).max(SMALL_STEP);
        // An empty list stays: the next buffer of that size comes back before long.
        let taken = self.free.range_mut(size..=most).find_map(|(_, list)| list.pop())?;
        self.free_bytes -= taken.capacity();
        Some(taken)
    }

    /// Keeps a buffer; returns buffers that exceed the bound, the given buffer or others.
    fn keep(&mut self, buffer: Vec<u8>) -> Vec<Vec<u8>> {
        let capacity = buffer.capacity();
        if capacity > LARGEST_KEPT {
            return vec![buffer];
        }
        self.free.entry(capacity).or_default().push(buffer);
        self.free_bytes += capacity;
        let most = ALWAYS_KEPT.max(self.used_bytes / KEPT_SHARE);
        let mut surplus = Vec::new();
        while self.free_bytes > most {
            // All sizes in turn, so that sizes without demand disappear.
            let behind = self.free.range(self.surplus + 1..);
            let mut next = behind.chain(&self.free).filter(|(_, list)| !list.is_empty());
            let Some(capacity) = next.next().map(|(capacity, _)| *capacity) else { break };
            self.surplus = capacity;
            let given_up = self.free.get_mut(&capacity).and_then(Vec::pop);
            if self.free.get(&capacity).is_some_and(Vec::is_empty) {
                self.free.remove(&capacity);
            }
            self.free_bytes -= given_up.as_ref().map_or(0, Vec::capacity);
            surplus.extend(given_up);
        }
        surplus
    }
}

/// Returns the size of a buffer for this many bytes.
fn size_for(length: usize) -> usize {
    if length > LARGEST_KEPT {
        return length;
    }
    let step = if length < SMALL {
        SMALL_STEP
    } else if length < LARGE {
        STEP
    } else {
        // A sixteenth, as a power of two so that different lengths lead to the same sizes.
        (length.next_power_of_two() / 32).max(STEP)
    };
    (length + ALLOCATOR_HEADER).next_multiple_of(step) - ALLOCATOR_HEADER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(memory: &BufferPool, length: usize) -> Buffer {
        memory.buffer(length, |bytes| bytes.resize(length, b'x'))
    }

    #[test]
    fn a_size_wastes_at_most_a_step_or_a_sixteenth() {
        for length in (1..40_000).chain([1 << 20, (16 << 20) - 9]) {
            let size = size_for(length);
            let waste = size - length;
            let step = if length < SMALL { SMALL_STEP } else { STEP };
            assert!(waste < step.max(length / 16 + 1), "{length} in {size}");
        }
    }

    #[test]
    fn a_freed_buffer_is_the_next_one_of_its_size() {
        let memory = BufferPool::default();
        let first = filled(&memory, 5_700);
        let at = first.as_ptr();
        assert_eq!((memory.used(), memory.free()), (first.capacity(), 0));
        memory.give_back(first);
        let second = filled(&memory, 5_690);
        assert_eq!((second.as_ptr(), second.len()), (at, 5_690));
        assert_eq!((memory.used(), memory.free()), (second.capacity(), 0));
    }

    #[test]
    fn a_buffer_that_is_much_too_large_is_not_taken() {
        let memory = BufferPool::default();
        memory.give_back(filled(&memory, 4_000));
        let small = filled(&memory, 400);
        assert!(small.capacity() < 500, "{}", small.capacity());
    }

    #[test]
    fn what_waits_is_bounded_and_sizes_that_nobody_asks_for_go_first_or_last() {
        let memory = BufferPool::default();
        for length in [500, 5_000] {
            let buffers: Vec<_> = (0..1_000).map(|_| filled(&memory, length)).collect();
            buffers.into_iter().for_each(|buffer| memory.give_back(buffer));
        }
        assert_eq!(memory.used(), 0);
        assert!(memory.free() <= ALWAYS_KEPT, "{}", memory.free());
        let lists = memory.lists.lock();
        let counted: usize = lists.free.values().flatten().map(Vec::capacity).sum();
        assert_eq!(counted, lists.free_bytes);
        assert!(lists.free.keys().any(|capacity| *capacity > 4_000), "the new size is kept");
    }

    #[test]
    fn a_buffer_that_outgrew_its_size_is_counted_as_what_it_is() {
        let memory = BufferPool::default();
        let buffer = memory.buffer(10, |bytes| bytes.resize(1_000, 0));
        assert_eq!(memory.used(), buffer.capacity());
        memory.give_back(buffer);
        assert_eq!(memory.used(), 0);
    }
}
