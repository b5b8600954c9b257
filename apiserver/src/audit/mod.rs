//! Audit log: each request as one JSON object, with what it changed.
//!
//! Off unless it is asked for: a comparison of the states before and after each write costs more than
//! some writes. The last entries are kept in memory, and a thread of its own writes them as lines.

mod changes;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::requests::Request;
use crate::storage::Written;

/// Number of entries that are kept in memory; older ones are dropped.
const KEPT: usize = 4096;
/// Number of lines that may wait for the log's file; further ones are lost, and counted.
const WAITING: usize = 16_384;

/// Parts of an entry beside those that the log of requests has.
#[derive(Debug, Default)]
pub(crate) struct Detail {
    /// Wall time of the answer.
    pub(crate) time: String,
    /// API version.
    pub(crate) version: String,
    /// Groups of the user.
    pub(crate) groups: Vec<String>,
    /// Name of the user that acts as another one; empty otherwise.
    pub(crate) impersonator: String,
    /// Time from the headers to the answer.
    pub(crate) duration: Duration,
    /// Writes of the request.
    pub(crate) written: Written,
}

/// The thread that writes lines.
#[derive(Debug)]
struct Lines {
    sender: SyncSender<String>,
    /// Cancelled when all lines have been written.
    written: CancellationToken,
}

/// The audit log of a server.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    is_on: AtomicBool,
    ring: Mutex<VecDeque<Value>>,
    /// Entries that the ring no longer holds.
    dropped: AtomicU64,
    /// Lines that were not written.
    lost: AtomicU64,
    lines: Mutex<Option<Lines>>,
}

impl Audit {
    /// Begins to keep entries.
    pub(crate) fn turn_on(&self) {
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// Whether entries are kept.
    pub(crate) fn is_on(&self) -> bool {
        // `Relaxed`: set before the first request.
        self.is_on.load(Ordering::Relaxed)
    }

    /// Writes each later entry as a line.
    pub(crate) fn write_to(&self, log: Box<dyn Write + Send>) {
        let (sender, receiver) = sync_channel(WAITING);
        let written = CancellationToken::new();
        let guard = written.clone().drop_guard();
        let thread = std::thread::Builder::new().name("windlass-audit".to_owned());
        let spawned = thread.spawn(move || {
            write(log, &receiver);
            drop(guard);
        });
        match spawned {
            Ok(_) => *self.lines.lock() = Some(Lines { sender, written }),
            Err(error) => tracing::error!(%error, "no thread for the audit log"),
        }
    }

    /// Adds a request.
    pub(crate) fn record(&self, request: &Request, detail: &Detail) {
        let entry = entry(request, detail);
        if let Some(lines) = &*self.lines.lock()
            && lines.sender.try_send(entry.to_string()).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let mut ring = self.ring.lock();
        // Bounded: a server may run for months.
        if ring.len() == KEPT {
            ring.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        ring.push_back(entry);
    }

    /// Returns the kept entries, oldest first.
    pub(crate) fn all(&self) -> Vec<Value> {
        self.ring.lock().iter().cloned().collect()
    }

    /// Returns the number of entries that are no longer kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of lines that were not written, because the log was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Ends the lines and waits until all of them have been written.
    pub(crate) async fn close(&self) {
        let lines = self.lines.lock().take();
        if let Some(Lines { sender, written }) = lines {
            drop(sender);
            written.cancelled().await;
        }
    }
}

/// Writes lines until no sender is left.
fn write(log: Box<dyn Write + Send>, lines: &Receiver<String>) {
    let mut log = std::io::BufWriter::new(log);
    while let Ok(line) = lines.recv() {
        let mut done = writeln!(log, "{line}");
        // Those that have gathered, and then one write for all of them.
        while let (Ok(()), Ok(line)) = (&done, lines.try_recv()) {
            done = writeln!(log, "{line}");
        }
        if let Err(error) = done.and_then(|()| log.flush()) {
            return tracing::error!(%error, "the audit log cannot be written, and ends");
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
