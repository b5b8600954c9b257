//! Two locks held as one: the step between an old kind of lock and a new one.
//!
//! Whoever knows only one of them cannot lead beside a holder of both: both name their holder, and a
//! lock whose two records name different holders is held by [`UNKNOWN_LEADER`], which is nobody. A
//! candidate then waits until neither record changes any more.
//!
//! A lock that cannot be written must not keep the other one from those who could lead with it. So the
//! one that refused last is written first: while it refuses, the other is left alone and runs out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{LeaderElectionRecord, LockFuture, LockListener, ObservedRecord, ResourceLock};
use crate::error::{Error, ErrorKind};

/// Who holds two locks that name different holders; client-go's word for it.
pub const UNKNOWN_LEADER: &str = "leaderelection.k8s.io/unknown";

/// A primary and a secondary lock; both must be won.
#[derive(Debug)]
pub struct MultiLock {
    primary: Arc<dyn ResourceLock>,
    secondary: Arc<dyn ResourceLock>,
    /// Is the secondary written first?
    second_first: AtomicBool,
    /// What the last answer was put together from.
    last: Mutex<Option<Parts>>,
}

#[derive(Clone, Debug)]
struct Parts {
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
        // The length keeps two pairs of versions from looking alike.
        let second = secondary.as_deref().unwrap_or("-");
        let joined = format!("{}:{}{second}", primary.version.len(), primary.version);
        let parts = Parts { joined: joined.clone(), primary: primary.version, secondary };
        *self.last.lock() = Some(parts);
        ObservedRecord { record, version: joined, is_partial }
    }

    async fn get(&self) -> Result<Option<ObservedRecord>, Error> {
        let Some(primary) = self.primary.get().await? else { return Ok(None) };
        let secondary = self.secondary.get().await?;
        Ok(Some(self.join(primary, secondary)))
    }

    async fn create(&self, record: LeaderElectionRecord) -> Result<ObservedRecord, Error> {
        let second = self.secondary.get().await?;
        if second.as_ref().is_some_and(|second| second.record.holder.is_some()) {
            let text = format!("{} is held already", self.secondary.describe());
            // The next read of a primary that is there tells by whom.
            self.primary.create(record).await?;
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        let second = second.as_ref().map(|free| free.version.as_str());
        self.write(None, second, record).await
    }

    async fn update(
        &self,
        version: String,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        let parts = self.last.lock().clone().filter(|parts| parts.joined == version);
        let parts = parts.ok_or_else(|| {
            let text = format!("cannot update {}: its version was not read", self.describe());
            Error::new(ErrorKind::Conflict, text)
        })?;
        self.write(Some(&parts.primary), parts.secondary.as_deref(), record).await
    }

    /// Writes both; without a version it makes the lock.
    async fn write(
        &self,
        first: Option<&str>,
        second: Option<&str>,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        let second_first = self.second_first.load(Ordering::Relaxed);
        let is_release = record.holder.is_none();
        let primary = || self.put(false, first, record.clone());
        let secondary = || self.put(true, second, record.clone());
        let (primary, secondary) = if is_release {
            // What can be given back is.
            let (primary, secondary) = (primary().await, secondary().await);
            (primary?, secondary?)
        } else if second_first {
            let secondary = secondary().await?;
            (primary().await?, secondary)
        } else {
            (primary().await?, secondary().await?)
        };
        self.second_first.store(false, Ordering::Relaxed);
        Ok(self.join(primary, Some(secondary)))
    }

    /// Writes one of them, which is the first next time if it refuses or does not answer. That somebody
    /// else wrote it is no refusal.
    async fn put(
        &self,
        is_second: bool,
        version: Option<&str>,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
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
        Box::pin(self.get())
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(self.create(record))
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        Box::pin(self.update(version.to_owned(), record))
    }

    /// Follows the primary.
    fn follow<'a>(&'a self, tell: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        self.primary.follow(tell)
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        Box::pin(async move {
            let first = self.primary.record_event(note.clone()).await;
            let second = self.secondary.record_event(note).await;
            first.and(second)
        })
    }
}
