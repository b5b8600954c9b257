//! A controller on the debug page: the queue, the keys with their reasons, the last errors.
//!
//! Every list is bounded and nothing is secret: names of objects, reasons, and the texts of errors
//! as they stand in the log.

use std::time::Duration;

use serde_json::{Value, json};

use super::erased::ControllerState;
use crate::controller::source::TriggerNames;
use crate::controller::state::{ChangeRecord, LastError, Waiting};
use crate::controller::worker::HotKey;
use crate::workqueue::KeyState;
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// Snapshot of a controller for the debug page.
pub(crate) struct DumpSource<'a> {
    pub(crate) name: &'a str,
    pub(crate) info: &'a ResourceInfo,
    pub(crate) workers: usize,
    pub(crate) state: ControllerState,
    /// Source of the names of reasons and of pauses.
    pub(crate) trigger_names: &'a TriggerNames,
    /// At most as many keys as the page may show.
    pub(crate) keys: Vec<KeyState<ObjectKey>>,
    /// The newest first.
    pub(crate) errors: Vec<LastError>,
    /// Objects that wait, at most as many as the page may show.
    pub(crate) waiting: Vec<Waiting>,
    /// The last writes, the newest first, at most as many as the page may show.
    pub(crate) changes: Vec<ChangeRecord>,
    /// Objects that are reconciled endlessly.
    pub(crate) hot: Vec<HotKey>,
}

impl DumpSource<'_> {
    /// Returns the controller's part of the page.
    pub(crate) fn print(&self, limit: usize) -> Value {
        let ControllerState { queued, working, backing_off, delayed, reconciles } = self.state;
        let keys: Vec<Value> = self.keys.iter().take(limit).map(|key| self.key(key)).collect();
        let errors: Vec<Value> = self.errors.iter().take(limit).map(error).collect();
        let (readers, reads) = self.trigger_names.reads.counts();
        json!({
            "name": self.name,
            "kind": self.info.group_resource(),
            "workers": self.workers,
            "reconciles": reconciles,
            "queue": {
                "queued": queued, "working": working,
                "backingOff": backing_off, "delayed": delayed,
            },
            "reads": { "readers": readers, "reads": reads },
            "keys": keys,
            "lastErrors": errors,
            "waiting": self.waiting.iter().take(limit).map(waiting).collect::<Vec<_>>(),
            "changes": self.changes.iter().take(limit).map(change).collect::<Vec<_>>(),
            "throttled": self.hot.iter().take(limit).map(|hot| self.hot(hot)).collect::<Vec<_>>(),
        })
    }

    /// Describes an object that is reconciled endlessly.
    fn hot(&self, hot: &HotKey) -> Value {
        let reasons = self.trigger_names.named(hot.reasons);
        json!({
            "key": hot.key.to_string(),
            "reconciles": hot.count,
            "reasons": reasons.iter().collect::<Vec<_>>(),
        })
    }

    /// Describes a key in the queue.
    fn key(&self, state: &KeyState<ObjectKey>) -> Value {
        let reasons = self.trigger_names.named_next(&state.key, state.reasons);
        json!({
            "key": state.key.to_string(),
            "state": state.stage.as_str(),
            "forSeconds": state.age.map(seconds),
            "dueInSeconds": state.due_in.map(seconds),
            "againAfterwards": state.again,
            "failures": state.failures,
            "priority": state.priority.value(),
            "reasons": reasons.iter().collect::<Vec<_>>(),
        })
    }
}

/// Describes an object's last error.
fn error(error: &LastError) -> Value {
    json!({
        "key": error.key.to_string(),
        "error": error.text,
        "at": error.at.to_string(),
        "failuresInARow": error.count,
        "gaveUp": error.gave_up,
        "reconciledSince": error.is_over,
    })
}

/// Describes an object that waits.
fn waiting(waiting: &Waiting) -> Value {
    json!({
        "key": waiting.key.to_string(),
        "reason": waiting.reason,
        "text": waiting.text,
        "since": waiting.since.to_string(),
    })
}

/// Describes a write.
fn change(record: &ChangeRecord) -> Value {
    json!({
        "at": record.at.to_string(),
        "for": record.owner.to_string(),
        "reasons": record.reasons,
        "verb": record.verb,
        "object": format!("{} {}", record.resource, record.key),
        "compared": record.is_compared,
        "changes": record.text(),
    })
}

/// Converts to seconds with three decimals.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
