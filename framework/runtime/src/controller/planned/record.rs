//! Record of the dry runs of a reconcile, and of the calls that were left out.

use parking_lot::Mutex;

use windlass_client::client::{DryRunObserver, DryRunResponse};

/// Most writes and most calls of a reconcile that are kept; further writes and calls are counted.
const MOST: usize = 10_000;

/// Dry runs and calls of a reconcile, in their order.
#[derive(Debug, Default)]
pub(in crate::controller) struct DryRunRecord {
    /// Locked to add an entry, or to take all.
    entries: Mutex<RecordEntries>,
}

/// Entries of a record.
#[derive(Debug, Default)]
pub(in crate::controller) struct RecordEntries {
    pub(super) writes: Vec<DryRunResponse>,
    pub(super) external_calls: Vec<String>,
    /// Reads by requests and registered reads, in their order.
    pub(super) reads: Vec<String>,
    /// Number of writes and calls that were not kept.
    pub(super) dropped: usize,
}

impl DryRunRecord {
    /// Notes a call of another system.
    pub(in crate::controller) fn note_call(&self, call: String) {
        let mut entries = self.entries.lock();
        if entries.external_calls.len() == MOST {
            entries.dropped += 1;
        } else {
            entries.external_calls.push(call);
        }
    }

    /// Notes a read.
    pub(in crate::controller) fn note_read(&self, read: String) {
        let mut entries = self.entries.lock();
        // A plan of changes is complete without it.
        if entries.reads.len() < MOST && !entries.reads.contains(&read) {
            entries.reads.push(read);
        }
    }

    /// Takes the reads out of the record.
    pub(in crate::controller) fn take_reads(&self) -> Vec<String> {
        std::mem::take(&mut self.entries.lock().reads)
    }

    /// Takes the entries out of the record.
    pub(in crate::controller) fn take(&self) -> RecordEntries {
        std::mem::take(&mut self.entries.lock())
    }
}

impl DryRunObserver for DryRunRecord {
    fn answered(&self, dry_run: DryRunResponse) {
        let mut entries = self.entries.lock();
        if entries.writes.len() == MOST {
            entries.dropped += 1;
        } else {
            entries.writes.push(dry_run);
        }
    }

    fn read(&self, text: String) {
        self.note_read(text);
    }
}
