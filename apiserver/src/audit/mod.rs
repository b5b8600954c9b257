//! Audit log: each request as a JSON object, with the changes.
//!
//! Off unless requested: a comparison of the states before and after each write costs more than
//! some writes. The last entries are kept in memory, and a separate thread writes the lines.
//! Requests of strangers have a separate bound: however many arrive, the requests of users stay.

mod changes;
mod lines;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::auth::ANONYMOUS;
use crate::requests::Request;
use crate::storage::CollectedWrites;
use lines::Lines;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Number of users' entries that are kept in memory; older entries are dropped.
const KEPT: usize = 4096;
/// Number of strangers' entries that are kept in memory.
const KEPT_OF_STRANGERS: usize = 512;

/// Parts of an entry beside those that the log of requests has.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    /// Wall time of the answer.
    pub(crate) time: String,
    /// API version.
    pub(crate) version: String,
    /// Groups of the user.
    pub(crate) groups: Vec<String>,
    /// Name of the user that acts as another user; empty otherwise.
    pub(crate) impersonator: String,
    /// Time from the headers to the answer.
    pub(crate) duration: Duration,
    /// Writes of the request.
    pub(crate) written: CollectedWrites,
}

/// The audit log of a server.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    is_on: AtomicBool,
    rings: Mutex<Rings>,
    /// Entries that the rings no longer hold.
    dropped: AtomicU64,
    /// Lines that were not written.
    lost: AtomicU64,
    lines: Mutex<Option<Lines>>,
    /// Whether lines were written before, and no further lines are taken.
    is_closed: AtomicBool,
}

/// The kept entries, each with a number.
#[derive(Debug, Default)]
struct Rings {
    next: u64,
    users: VecDeque<(u64, Value)>,
    strangers: VecDeque<(u64, Value)>,
}

/// Whether the sender of a request has proved no identity.
fn is_strange(request: &Request, detail: &Detail) -> bool {
    detail.impersonator.is_empty() && (request.user.is_empty() || request.user == ANONYMOUS)
}

impl Audit {
    /// Begins to keep entries.
    pub(crate) fn turn_on(&self) {
        // Relaxed: set before the first request.
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether entries are kept.
    pub(crate) fn is_on(&self) -> bool {
        // `Relaxed`: set before the first request.
        self.is_on.load(Ordering::Relaxed)
    }

    /// Writes each later entry as a line.
    pub(crate) fn write_to(&self, log: Box<dyn Write + Send>) {
        match Lines::start(log) {
            Ok(lines) => *self.lines.lock() = Some(lines),
            Err(error) => tracing::error!(%error, "no thread for the audit log"),
        }
    }

    /// Adds a request.
    pub(crate) fn record(&self, request: &Request, detail: &Detail) {
        let (entry, is_strange) = (entry(request, detail), is_strange(request, detail));
        let is_lost = match &mut *self.lines.lock() {
            Some(lines) => !lines.add(entry.to_string(), is_strange),
            None => self.is_closed.load(Ordering::Relaxed),
        };
        self.lost.fetch_add(u64::from(is_lost), Ordering::Relaxed);
        let mut rings = self.rings.lock();
        let number = rings.next;
        rings.next += 1;
        let (ring, most) = if is_strange {
            (&mut rings.strangers, KEPT_OF_STRANGERS)
        } else {
            (&mut rings.users, KEPT)
        };
        // Bounded: a server may run for months.
        if ring.len() == most {
            ring.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        ring.push_back((number, entry));
    }

    /// Returns the kept entries, oldest first.
    pub(crate) fn all(&self) -> Vec<Value> {
        let rings = self.rings.lock();
        let mut all: Vec<&(u64, Value)> = rings.users.iter().chain(&rings.strangers).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, entry)| entry.clone()).collect()
    }

    /// Returns the number of entries that are no longer kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were not written, because the log was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Ends the lines and waits until they have been written, but not for ever: those that are left
    /// count as lost.
    pub(crate) async fn close(&self) {
        let lines = {
            let mut held = self.lines.lock();
            // Under the lock: a request that ends now has a line, or counts as lost.
            self.is_closed.fetch_or(held.is_some(), Ordering::Relaxed);
            held.take()
        };
        if let Some(lines) = lines {
            self.lost.fetch_add(lines.close().await, Ordering::Relaxed);
        }
    }
}

/// Returns the entry of a request.
fn entry(request: &Request, detail: &Detail) -> Value {
    let micros = u64::try_from(detail.duration.as_micros()).unwrap_or(u64::MAX);
    let changes = detail.written.changes.iter();
    let mut entry = json!({
        "time": detail.time, "user": request.user, "groups": detail.groups, "agent": request.agent,
        "verb": request.verb, "group": request.group, "version": detail.version,
        "resource": request.resource, "subresource": request.subresource,
        "namespace": request.namespace, "name": request.name,
        "code": request.code, "durationMicros": micros,
        "changes": changes.map(|(resource, change)| changes::describe(resource, change)).collect::<Vec<_>>(),
    });
    if !detail.impersonator.is_empty() {
        // The user of the request is the one whose rights count.
        entry["impersonatedUser"] = entry["user"].take();
        entry["user"] = json!(detail.impersonator);
    }
    if detail.written.more > 0 {
        entry["moreChanges"] = json!(detail.written.more);
    }
    entry
}
