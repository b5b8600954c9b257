//! Collection of the writes that a piece of work makes, for the audit log; and the user behind
//! them, for an observer.
//!
//! Verbs run on a single thread from beginning to end, so the collection belongs to the thread: no
//! verb has to pass writes on.

use std::cell::RefCell;
use std::fmt;

use super::StoredChange;

/// Most writes that are collected of a piece of work; further writes are counted.
const MOST: usize = 64;

/// Writes of a piece of work.
#[derive(Debug, Default)]
pub(crate) struct CollectedWrites {
    /// The first writes, each with the name of the resource.
    pub(crate) changes: Vec<(String, StoredChange)>,
    /// Number of writes beyond them.
    pub(crate) more: usize,
}

impl CollectedWrites {
    /// Adds the writes of a further piece of work.
    pub(crate) fn extend(&mut self, further: Self) {
        let free = MOST.saturating_sub(self.changes.len());
        self.more += further.more + further.changes.len().saturating_sub(free);
        self.changes.extend(further.changes.into_iter().take(free));
    }
}

/// Function that is called with the resource, the change, and the user whose work made the change.
type OnWrite = dyn Fn(&str, &StoredChange, Option<&str>) + Send + Sync;

/// Listener of all writes.
pub(crate) struct Listener(pub(crate) Box<OnWrite>);

impl Listener {
    /// Reports a write of the thread.
    pub(super) fn call(&self, resource: &str, change: &StoredChange) {
        USER.with_borrow(|user| (self.0)(resource, change, user.as_deref()));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

thread_local! {
    /// User of the work that runs on the thread.
    static USER: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Collection of the work that runs on the thread; `None` while not requested.
    static WRITTEN: RefCell<Option<CollectedWrites>> = const { RefCell::new(None) };
}

/// Runs a piece of work and returns its writes as well.
pub(crate) fn collect<T>(work: impl FnOnce() -> T) -> (T, CollectedWrites) {
    /// Ends the collection even if the work panics: the thread goes on with other work.
    struct CollectionGuard;
    impl Drop for CollectionGuard {
        fn drop(&mut self) {
            WRITTEN.with(|slot| slot.borrow_mut().take());
        }
    }
    WRITTEN.with(|slot| *slot.borrow_mut() = Some(CollectedWrites::default()));
    let _end = CollectionGuard;
    let done = work();
    (done, WRITTEN.with(|slot| slot.borrow_mut().take()).unwrap_or_default())
}

/// Runs a piece of work as that of a user.
pub(crate) fn by_user<T>(user: &str, work: impl FnOnce() -> T) -> T {
    /// Ends the mark even if the work panics.
    struct UserGuard;
    impl Drop for UserGuard {
        fn drop(&mut self) {
            USER.set(None);
        }
    }
    USER.set(Some(user.to_owned()));
    let _end = UserGuard;
    work()
}

/// Runs a piece of work as that of the server, inside of that of a user: the writes have no user
/// and are not collected.
pub(crate) fn by_server<T>(work: impl FnOnce() -> T) -> T {
    /// Restores user and collection even if the work panics.
    struct RestoreGuard(Option<String>, Option<CollectedWrites>);
    impl Drop for RestoreGuard {
        fn drop(&mut self) {
            USER.set(self.0.take());
            WRITTEN.with(|slot| *slot.borrow_mut() = self.1.take());
        }
    }
    let written = WRITTEN.with(|slot| slot.borrow_mut().take());
    let _end = RestoreGuard(USER.take(), written);
    work()
}

/// Adds a write to the collection of the thread, if any.
pub(super) fn note(resource: &str, change: &StoredChange) {
    WRITTEN.with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else { return };
        let Some(written) = slot.as_mut() else { return };
        if written.changes.len() < MOST {
            written.changes.push((resource.to_owned(), change.clone()));
        } else {
            written.more += 1;
        }
    });
}
