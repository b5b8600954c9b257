//! Writes that are not in the data file yet.
//!
//! The store adds each write under the lock; a single thread takes all gathered writes and commits
//! them together, so that many clients share the wait for the disk. Only the last state of a key is
//! kept: the file holds the present, and the journal is never larger than the stored data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::{Backup, StoredObject};
use crate::signal::Signal;

/// Key of an object in the file: the resource and the key within.
pub(crate) type FileKey = (String, Arc<str>);

/// Writes that are committed together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// State that takes the place of everything that was stored before; `None` for a usual batch.
    pub(crate) replacement: Option<Backup>,
    /// Last state of each written key; `None` for a deletion.
    pub(crate) writes: BTreeMap<FileKey, Option<Arc<StoredObject>>>,
    /// Newest revision after the batch.
    pub(crate) revision: u64,
    /// Number of writes until the end of the batch.
    pub(crate) ticket: u64,
}

/// State behind the lock.
#[derive(Debug, Default)]
struct State {
    waiting: Batch,
    /// Whether no further batch will be made.
    is_closed: bool,
    /// Failure of the file, after which nothing is written.
    failure: Option<String>,
}

/// Writes on their way to the data file.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    state: Mutex<State>,
    /// Notified of new writes, and of the close.
    arrived: Condvar,
    /// Number of writes so far.
    issued: AtomicU64,
    /// Number of writes that are in the file.
    durable: AtomicU64,
    /// Notified of each commit, and of the end.
    progress: Arc<Signal>,
}

impl Journal {
    /// Adds a write; `None` for a deletion. Called under the store's lock, in the order of
    /// revisions.
    pub(super) fn write(
        &self,
        resource: &str,
        key: Arc<str>,
        object: Option<Arc<StoredObject>>,
        revision: u64,
    ) {
        self.change(revision, |batch| {
            batch.writes.insert((resource.to_owned(), key), object);
        });
    }

    /// Replaces everything that is stored.
    pub(super) fn replace(&self, backup: Backup) {
        self.change(backup.revision(), |batch| {
            batch.writes.clear();
            batch.replacement = Some(backup);
        });
    }

    fn change(&self, revision: u64, make: impl FnOnce(&mut Batch)) {
        let mut state = self.state.lock();
        make(&mut state.waiting);
        state.waiting.revision = revision;
        // Load and store instead of `fetch_add`: `state` is held, and the store's lock is, too, so
        // tickets grow in the order of revisions. Atomic, because `ticket` reads without the lock.
        state.waiting.ticket = self.issued.load(Ordering::SeqCst) + 1;
        self.issued.store(state.waiting.ticket, Ordering::SeqCst);
        self.arrived.notify_one();
    }

    /// Waits for writes and takes all of them; `None` once the journal is closed and empty.
    ///
    /// Blocks the thread.
    pub(crate) fn next(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        loop {
            // A ticket without writes is the empty batch after the last taken batch.
            if state.waiting.ticket > self.durable.load(Ordering::SeqCst) {
                return Some(std::mem::take(&mut state.waiting));
            }
            if state.is_closed {
                return None;
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Notes that a batch is in the file.
    pub(crate) fn committed(&self, ticket: u64) {
        // Before the notification: a waiter that the notification wakes reads the new ticket. A
        // release would do, and `SeqCst` costs nothing beside the write of a file.
        self.durable.store(ticket, Ordering::SeqCst);
        self.progress.notify();
    }

    /// Lets [`Journal::next`] end after the writes that have been added.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Records the reason why the file takes no further writes. No write is answered any more.
    pub(crate) fn fail(&self, why: String) {
        self.state.lock().failure = Some(why);
        self.progress.notify();
    }

    /// Returns the failure of the file, if any.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Returns the number of writes so far.
    pub(crate) fn ticket(&self) -> u64 {
        self.issued.load(Ordering::SeqCst)
    }

    /// Waits until the first `ticket` writes are in the file; for ever if the file has failed.
    /// Cancel safe.
    pub(crate) async fn reached(&self, ticket: u64) {
        // An old value only leads to the wait, which looks again.
        if self.durable.load(Ordering::SeqCst) >= ticket {
            return;
        }
        // The receiver is made before the second look: a commit in between is then not missed.
        let mut progress = self.progress.subscribe();
        while self.durable.load(Ordering::SeqCst) < ticket {
            progress.next().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Option<Arc<StoredObject>> {
        Some(Arc::new(StoredObject::new(json!({"name": name}), 2)))
    }

    #[test]
    fn writes_that_gather_are_one_batch_with_the_last_state_of_each_key() {
        let journal = Journal::default();
        journal.write("a", "x".into(), object("first"), 2);
        journal.write("a", "x".into(), object("second"), 3);
        journal.write("b", "x".into(), None, 4);
        let batch = journal.next().unwrap();
        assert_eq!((batch.revision, batch.ticket), (4, 3));
        let states: Vec<_> =
            batch.writes.values().map(|held| held.clone().map(|o| o.value.clone())).collect();
        assert_eq!(states, [Some(json!({"name": "second"})), None]);
        journal.committed(batch.ticket);
        journal.close();
        assert!(journal.next().is_none());
    }

    #[test]
    fn a_replacement_forgets_the_writes_before_it_and_keeps_those_after_it() {
        let journal = Journal::default();
        journal.write("a", "x".into(), object("x"), 9);
        journal.replace(super::super::Store::new().backup());
        journal.write("a", "y".into(), object("y"), 2);
        let batch = journal.next().unwrap();
        assert!(batch.replacement.is_some());
        let keys: Vec<&str> = batch.writes.keys().map(|(_, key)| &**key).collect();
        assert_eq!((keys, batch.revision), (vec!["y"], 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_the_commit_of_its_write() {
        let journal = Arc::new(Journal::default());
        journal.write("a", "x".into(), object("x"), 2);
        let waiting = journal.reached(journal.ticket());
        let committed = async { journal.committed(1) };
        tokio::join!(biased; waiting, committed);
        journal.write("a", "x".into(), object("x"), 3);
        let limit = std::time::Duration::from_secs(1);
        let early = tokio::time::timeout(limit, journal.reached(journal.ticket())).await;
        assert!(early.is_err(), "the second write is not committed");
    }
}
