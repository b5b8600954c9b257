//! A lock for data that all threads read often, and one task changes now and then.
//!
//! The cost is on the writer's side, which takes every shard: right for data that is replaced now
//! and then (the set of informers, say), and wrong for data that changes with each event.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

/// A sharded lock: a reader takes a single shard, which depends on the reader's thread, and a
/// writer takes all of them. Readers on different processors do not contend, as they would for a
/// shared reader count.
///
/// A thread must not take the lock twice. A panic under the lock leaves the value unchanged.
#[derive(Default)]
pub struct ShardedRwLock<T>(ShardedLock<T>);

impl<T> ShardedRwLock<T> {
    /// Creates an unlocked lock of `value`.
    #[doc(hidden)]
    pub fn new(value: T) -> Self {
        Self(ShardedLock::new(value))
    }

    /// Locks for reading: other readers may read meanwhile, and there is no writer.
    #[doc(hidden)]
    pub fn read(&self) -> ReadGuard<'_, T> {
        // Poisoning is ignored: a single panic must not fail every later reader and writer.
        ReadGuard(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks for writing: there is no other reader or writer meanwhile.
    #[doc(hidden)]
    pub fn write(&self) -> WriteGuard<'_, T> {
        WriteGuard(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> fmt::Debug for ShardedRwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedRwLock").finish_non_exhaustive()
    }
}

/// Read guard of the value.
#[doc(hidden)]
#[derive(Debug)]
pub struct ReadGuard<'a, T>(ShardedLockReadGuard<'a, T>);

/// Write guard of the value.
#[doc(hidden)]
#[derive(Debug)]
pub struct WriteGuard<'a, T>(ShardedLockWriteGuard<'a, T>);

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_panic_while_writing_leaves_the_lock_usable() {
        let lock = ShardedRwLock::new(1);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let mut value = lock.write();
            *value = 2;
            panic!("no such luck");
        }));
        assert!(panic.is_err());
        assert_eq!(*lock.read(), 2);
        *lock.write() += 1;
        assert_eq!(*lock.read(), 3);
    }
}
