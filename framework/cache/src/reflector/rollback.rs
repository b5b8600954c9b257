//! Detection of a server's store that was set back: restored from a backup, or emptied.
//!
//! A kube-apiserver answers a watch from a version that the store has not reached by 200 and
//! silence. A reflector that resumes from the last position would then follow nothing, and show
//! objects that are gone. After a lost connection, as soon as a watch is open again, a single
//! object is therefore listed as a consistent read: the version of that list is a version that the
//! store has. The watch does not wait for this read, and a server that cannot be reached is not
//! asked.
//!
//! Only versions are compared. Once they have passed the position again, this read detects nothing;
//! the book (`cache/reflector.md`) lists the other hints.

// DESIGN.md, 70: After a lost connection one object is listed to detect a restored store
// DESIGN.md, 99: Signs of a restored store lead to a check or to a list

use std::sync::Arc;

use tokio::time::Instant;

use super::Reflector;
use super::machine::AttemptEnd;
use super::sink::{ReflectorSink, StreamProgress};
use super::version_read::newest;
use windlass_core::error::Error;
use windlass_core::metrics::names;

impl<T: ReflectorSink> Reflector<T> {
    /// Begins the version read that is due at `now`, if any is due.
    pub(super) fn begin_check(&mut self, now: Instant) {
        let Some(position) = self.machine.resume() else { return };
        if self.rollback.due().is_none_or(|due| due > now) {
            return;
        }
        let (source, clock) = (Arc::clone(&self.source), self.environment.clock.clone());
        let read = newest(source, clock, self.subject.what.clone(), self.options.frame_limit);
        self.rollback.begin(position, Box::pin(read));
    }

    /// Compares the result of a version read with the known versions.
    pub(super) fn finish_check(&mut self, result: Result<String, Error>) -> Result<(), AttemptEnd> {
        match result {
            Ok(version) => match self.rollback.compare(&version) {
                Some(known) => Err(self.set_back(&version, &known)),
                None => Ok(()),
            },
            Err(error) => {
                self.rollback.failed(error.retry_after(), self.environment.clock.now());
                let what = &self.subject.what;
                tracing::debug!(resource = what, %error, "cannot determine whether the store was rolled back");
                Ok(())
            }
        }
    }

    /// Begins a new epoch, because the store is at `version` although `known` was reached before
    /// (B8: versions that go back): everything is read and delivered anew.
    pub(super) fn set_back(&mut self, version: &str, known: &str) -> AttemptEnd {
        let now = self.environment.clock.now();
        tracing::warn!(
            resource = self.subject.what,
            version,
            known,
            "the server's versions went backwards: its store was set back, by a restored backup perhaps, \
             or emptied; all objects are listed again, and missing ones are reported as deleted"
        );
        let labels = [self.subject.resource.as_str()];
        self.environment.metrics.count(&names::INFORMER_SET_BACK, &labels, 1);
        self.capabilities.found_set_back(now, known);
        self.rollback.found(now);
        self.sink.reached(StreamProgress::NewEpoch, version);
        self.machine.epoch_ended();
        self.rollback.resolve();
        AttemptEnd::NewEpoch
    }

    /// Takes in the hints of others: own writes with older versions than the cached versions, and
    /// reflectors of other kinds on the same server that found the store set back.
    pub(super) fn check_hints(&mut self) {
        let now = self.environment.clock.now();
        if self.status.take_rollback_hint() {
            self.rollback.hint(now);
        }
        let Some(report) = self.capabilities.set_back() else { return };
        if let Some(list_began) = self.machine.list_began() {
            self.rollback.peer_report(report, list_began, now);
        }
    }
}
