//! A lock for what is read by everybody all the time, and changed by one task now and then.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

/// A lock of several parts: who reads takes one of them, which one depends on the thread, who writes takes
/// all. Readers on different processors do not meet, as they would at a count of readers.
///
/// Not to be held twice by one thread. A panic under it leaves the value as it is.
#[derive(Default)]
pub(crate) struct ReadMostly<T>(ShardedLock<T>);

impl<T> ReadMostly<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ShardedLock::new(value))
    }

    /// Others may read meanwhile, and nobody writes.
    pub(crate) fn read(&self) -> Reading<'_, T> {
        Reading(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nobody else reads or writes meanwhile.
    pub(crate) fn write(&self) -> Writing<'_, T> {
        Writing(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> fmt::Debug for ReadMostly<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadMostly").finish_non_exhaustive()
    }
}

/// The value, to be read.
pub(crate) struct Reading<'a, T>(ShardedLockReadGuard<'a, T>);

/// The value, to be changed.
pub(crate) struct Writing<'a, T>(ShardedLockWriteGuard<'a, T>);

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Writing<'_, T> {
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
        let lock = ReadMostly::new(1);
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
