//! Two locks held together: the step between an old kind of lock and a new kind.
//!
//! A process that knows only one of the locks cannot lead beside a holder of both: both name the
//! holder, and a lock whose two records name different holders is held by [`UNKNOWN_LEADER`], which
//! is no process. A candidate then waits until neither record changes any more.
//!
//! A lock that cannot be written must not keep the other lock from candidates that could lead with
//! the other lock. So the lock that refused last is written first: while this lock refuses, the
//! other is left alone and runs out.

// DESIGN.md, 96: `MultiLock`: the lock that refused last is written first

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{LeaderElectionRecord, LockFuture, LockListener, ObservedRecord, ResourceLock};
use windlass_core::error::{Error, ErrorKind};

/// Holder of two locks that name different holders; client-go's constant.
pub const UNKNOWN_LEADER: &str = "leaderelection.k8s.io/unknown";

/// A primary and a secondary lock; both must be won.
///
/// client-go's `MultiLock`. To migrate, run every replica with both locks first, and with the new
/// lock alone afterwards: a replica with only the old lock and a replica with only the new lock
/// would both lead.
#[derive(Debug)]
pub struct MultiLock {
    /// Lock whose record counts.
    primary: Arc<dyn ResourceLock>,
    /// Lock that must name the same holder.
    secondary: Arc<dyn ResourceLock>,
    /// Whether the secondary is written first.
    second_first: AtomicBool,
    /// Versions of which the last answer was composed.
    last: Mutex<Option<Parts>>,
}

/// A joined version, and the versions of the two locks behind it.
#[derive(Clone, Debug)]
struct Parts {
    /// Version that was handed out for both.
    joined: String,
    primary: String,
    secondary: Option<String>,
}

impl MultiLock {
    /// Holds `primary` and `secondary` together. The record is the primary's.
    pub fn new(primary: Arc<dyn ResourceLock>, secondary: Arc<dyn ResourceLock>) -> Self {
        let (second_first, last) = (AtomicBool::new(false), Mutex::new(None));
        Self { primary, secondary, second_first, last }
    }

    /// Joins the two records into a single record, and remembers their versions for the next
    /// update.
    fn join(&self, primary: ObservedRecord, secondary: Option<ObservedRecord>) -> ObservedRecord {
        let mut record = primary.record;
        if let Some(second) = &secondary
            && second.record.holder != record.holder
        {
            record.holder = Some(UNKNOWN_LEADER.to_owned());
            record.duration = record.duration.max(second.record.duration);
            record.transitions = record.transitions.max(second.record.transitions);
        }
        let is_partial = secondary.is_none();
        let secondary = secondary.map(|second| second.version);
        // The length prefix keeps two pairs of versions from having the same text.
        let second = secondary.as_deref().unwrap_or("-");
        let joined = format!("{}:{}{second}", primary.version.len(), primary.version);
        let parts = Parts { joined: joined.clone(), primary: primary.version, secondary };
        *self.last.lock() = Some(parts);
        ObservedRecord { record, version: joined, is_partial }
    }

    /// Reads both locks; `None` without a primary.
    async fn read_both(&self) -> Result<Option<ObservedRecord>, Error> {
        let Some(primary) = self.primary.get().await? else { return Ok(None) };
        let secondary = self.secondary.get().await?;
        Ok(Some(self.join(primary, secondary)))
    }

    /// Creates the primary, and the secondary or takes a free secondary; a conflict if another
    /// holds the secondary.
    async fn create_both(&self, record: LeaderElectionRecord) -> Result<ObservedRecord, Error> {
        let second = self.secondary.get().await?;
        if second.as_ref().is_some_and(|second| second.record.holder.is_some()) {
            let text = format!("{} is held already", self.secondary.describe());
            // Created all the same: without a primary the next read would find no lock, and not
            // show the holder of the secondary.
            self.primary.create(record).await?;
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        let second = second.as_ref().map(|free| free.version.as_str());
        self.write_both(None, second, record).await
    }

    /// Replaces both records, if the last answer had the joined version.
    async fn replace_both(
        &self,
        version: String,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        let parts = self.last.lock().clone().filter(|parts| parts.joined == version);
        let parts = parts.ok_or_else(|| {
            let text = format!("cannot update {}: its version was not read", self.describe());
            Error::new(ErrorKind::Conflict, text)
        })?;
        self.write_both(Some(&parts.primary), parts.secondary.as_deref(), record).await
    }

    /// Writes both records; without a version the call creates the lock.
    async fn write_both(
        &self,
        first: Option<&str>,
        second: Option<&str>,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        // `Relaxed`, here and below: the flag orders only later writes of this process, and a stale
        // value costs an attempt. Relaxed: one campaign writes at a time, and the flag guards no
        // other data.
        let second_first = self.second_first.load(Ordering::Relaxed);
        let is_release = record.holder.is_none();
        let primary = || self.put(false, first, record.clone());
        let secondary = || self.put(true, second, record.clone());
        let (primary, secondary) = if is_release {
            // A release tries both, even if the first fails: each lock that can be given back is.
            let (primary, secondary) = (primary().await, secondary().await);
            (primary?, secondary?)
        } else if second_first {
            let secondary = secondary().await?;
            (primary().await?, secondary)
        } else {
            (primary().await?, secondary().await?)
        };
        // Both were written: the usual order again. Relaxed, as above.
        self.second_first.store(false, Ordering::Relaxed);
        Ok(self.join(primary, Some(secondary)))
    }

    /// Writes one of the locks, which is written first next time after a refusal or a missing
    /// answer. A conflict with another writer is no refusal.
    async fn put(
        &self,
        is_second: bool,
        version: Option<&str>,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        // Set before the request: an attempt that is dropped without an answer counts as refused.
        let before = self.second_first.swap(is_second, Ordering::Relaxed);
        let lock = if is_second { &self.secondary } else { &self.primary };
        let answer = match version {
            Some(version) => lock.update(version, record).await,
            None => lock.create(record).await,
        };
        let refused = answer.as_ref().err().is_some_and(|error| {
            use ErrorKind::{AlreadyExists, Conflict, NotFound};
            !matches!(error.kind(), Conflict | AlreadyExists | NotFound)
        });
        if !refused {
            // No refusal: the order stays unchanged.
            self.second_first.store(before, Ordering::Relaxed);
        }
        answer
    }
}

impl ResourceLock for MultiLock {
    fn identity(&self) -> &str {
        self.primary.identity()
    }

    fn describe(&self) -> String {
        format!("{} with {}", self.primary.describe(), self.secondary.describe())
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(self.read_both())
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(self.create_both(record))
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        Box::pin(self.replace_both(version.to_owned(), record))
    }

    /// Follows the primary.
    fn follow<'a>(&'a self, listener: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        self.primary.follow(listener)
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        Box::pin(async move {
            let first = self.primary.record_event(note.clone()).await;
            let second = self.secondary.record_event(note).await;
            first.and(second)
        })
    }
}
