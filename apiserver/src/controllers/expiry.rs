//! Expiry of Events: they are deleted some time after their last write.
//!
//! On a real cluster etcd deletes expired Events, whichever controllers run; so this is a separate
//! task here. An Event of a data file counts as written when the server starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::core::ServerCore;
use crate::storage::{Cursor, Snapshot};

/// Changes that are read at a time.
const BATCH: usize = 1024;
/// Longest wait, in seconds: a timer has a largest time.
const LONGEST: u64 = 24 * 3600;

/// The times at which Events are due.
#[derive(Debug)]
struct Expiry {
    core: Arc<ServerCore>,
    /// Resource of Events in the store.
    storage: String,
    cursor: Cursor,
    /// Seconds from the last write of an Event to its end.
    lifetime: i64,
    due: BTreeSet<(i64, Arc<str>)>,
    times: BTreeMap<Arc<str>, i64>,
}

/// Starts the task, which ends when the server stops.
///
/// Must be called inside a tokio runtime.
pub(crate) fn start(core: &Arc<ServerCore>, lifetime: Duration) {
    let Some(kind) = core.kind("", "events") else { return };
    let storage = kind.storage.clone();
    let (present, cursor) = core.store.follow(&storage);
    let lifetime = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    let (due, times) = Default::default();
    let mut expiry = Expiry { core: core.clone(), storage, cursor, lifetime, due, times };
    expiry.compare(&present);
    tokio::spawn(expiry.run());
}

impl Expiry {
    /// Follows the Events until the server stops.
    async fn run(mut self) {
        let core = self.core.clone();
        loop {
            let seen = core.store.revision();
            self.read();
            self.expire();
            let wait = self.pause();
            tokio::select! {
                biased;
                // The stop first: a server that is busy must end all the same.
                () = core.stop.cancelled() => return,
                () = core.store.reached(seen + 1) => {}
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Returns the time until the next Event is due; `None` without Events.
    fn pause(&self) -> Option<Duration> {
        let (due, _) = self.due.first()?;
        let seconds = due.saturating_sub(self.core.clock.seconds());
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0).min(LONGEST)))
    }

    /// Notes the Events that have been written or deleted.
    fn read(&mut self) {
        loop {
            let Ok(batch) = self.core.store.changes(&self.storage, &mut self.cursor, BATCH) else {
                // The history was lost: states are compared instead.
                let (now, cursor) = self.core.store.follow(&self.storage);
                self.cursor = cursor;
                self.compare(&now);
                return;
            };
            let is_full = batch.changes.len() == BATCH;
            for change in batch.changes {
                self.forget(&change.key);
                if change.after.is_some() {
                    self.note(change.key);
                }
            }
            if batch.ended || !is_full {
                return;
            }
        }
    }

    /// Notes the Events of a state that are not known, and forgets the others.
    fn compare(&mut self, now: &Snapshot) {
        let gone: Vec<Arc<str>> =
            self.times.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key));
        for (key, _) in now {
            if !self.times.contains_key(key) {
                self.note(key.clone());
            }
        }
    }

    /// Notes that an Event was written now.
    fn note(&mut self, key: Arc<str>) {
        let due = self.core.clock.seconds().saturating_add(self.lifetime);
        self.due.insert((due, key.clone()));
        self.times.insert(key, due);
    }

    fn forget(&mut self, key: &Arc<str>) {
        if let Some(due) = self.times.remove(key) {
            self.due.remove(&(due, key.clone()));
        }
    }

    /// Deletes the Events that are due.
    fn expire(&mut self) {
        let now = self.core.clock.seconds();
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            self.forget(&key);
            if let Some(held) = self.core.store.get(&self.storage, &key) {
                // An Event that is written at this moment is noted again when that write is read.
                drop(self.core.store.remove(&self.storage, &key, &held));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::http::test_support::*;

    const EVENTS: &str = "/api/v1/namespaces/default/events";

    fn event(name: &str) -> serde_json::Value {
        json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "type": "Normal"})
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_ends_an_hour_after_its_last_write() {
        let (_server, mut client) = start().await;
        for name in ["a", "b"] {
            assert_eq!(client.post(EVENTS, event(name)).await.code, 201);
        }
        tokio::time::sleep(std::time::Duration::from_secs(1800)).await;
        let change = json!({"count": 2});
        assert_eq!(client.merge(&format!("{EVENTS}/b"), change).await.code, 200);
        tokio::time::sleep(std::time::Duration::from_secs(1801)).await;
        assert_eq!(client.get(&format!("{EVENTS}/a")).await.code, 404);
        assert_eq!(client.get(&format!("{EVENTS}/b")).await.code, 200);
        tokio::time::sleep(std::time::Duration::from_secs(1801)).await;
        assert_eq!(client.get(&format!("{EVENTS}/b")).await.code, 404);
    }
}
