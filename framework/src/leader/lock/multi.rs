//! Two locks held as one: the step between an old kind of lock and a new one.
//!
//! Whoever knows only one of them cannot lead beside a holder of both: both name their holder, and a
//! lock whose two records name different holders is held by [`UNKNOWN_LEADER`], which is nobody. A
//! candidate then waits until neither record changes any more.

use std::sync::Arc;

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
        Self { primary, secondary, last: Mutex::new(None) }
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
        let secondary = secondary.map(|second| second.version);
        // The length keeps two pairs of versions from looking alike.
        let second = secondary.as_deref().unwrap_or("-");
        let joined = format!("{}:{}{second}", primary.version.len(), primary.version);
        let parts = Parts { joined: joined.clone(), primary: primary.version, secondary };
        *self.last.lock() = Some(parts);
        ObservedRecord { record, version: joined }
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
        let primary = self.primary.create(record.clone()).await?;
        let secondary = match second {
            None => self.secondary.create(record).await?,
            Some(free) => self.secondary.update(&free.version, record).await?,
        };
        Ok(self.join(primary, Some(secondary)))
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
        let primary = self.primary.update(&parts.primary, record.clone()).await?;
        let secondary = match parts.secondary {
            Some(version) => self.secondary.update(&version, record).await?,
            None => self.secondary.create(record).await?,
        };
        Ok(self.join(primary, Some(secondary)))
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
