//! Consequences of an attempt's end: logs, the reported state, and the pause.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::Reflector;
use super::machine::{AttemptEnd, NextAction};
use super::reflector::ReflectorError;
use super::sink::{ReflectorSink, StreamProgress};

impl<T: ReflectorSink> Reflector<T> {
    /// Applies the consequences of an attempt's end, after a stream that was open for that time;
    /// returns the pause before the next attempt; `None`: at once.
    pub(super) fn finish_attempt(
        &mut self,
        end: AttemptEnd,
        open_for: Duration,
    ) -> Option<Duration> {
        let now = self.environment.clock.now();
        if end.lost_the_server() {
            self.rollback.request_check(now);
        }
        let end = self.report_end(end);
        match self.machine.ended(end, open_for, now) {
            NextAction::AtOnce => None,
            NextAction::ListAtOnce(why) => {
                tracing::debug!(resource = self.subject.what, why, "listed again");
                None
            }
            NextAction::Wait { state, pause, empties } => {
                if empties {
                    self.sink.list_begins();
                    let version = self.machine.newest().unwrap_or_default();
                    self.sink.reached(StreamProgress::Absent, version);
                }
                self.status.set(state);
                self.notify_handler(pause);
                Some(pause)
            }
        }
    }

    /// Logs and notes an end that concerns more than the next attempt. A refusal is returned with
    /// the text that names the missing right.
    fn report_end(&mut self, end: AttemptEnd) -> AttemptEnd {
        let resource = &self.subject.what;
        let lacks_right = matches!(end, AttemptEnd::Refused { verb: Some(_), .. });
        self.status.set_lacks_right(lacks_right);
        match &end {
            AttemptEnd::Unsupported(why) => {
                tracing::info!(resource, why, "no streaming lists: listing in pages");
                self.capabilities.refused_stream(self.environment.clock.now());
            }
            AttemptEnd::Panicked(text) => {
                tracing::error!(
                    resource,
                    text,
                    "the reflector panicked while reading; this is a bug of the source or of windlass"
                );
                // A list follows and detects a set-back itself, so the pending check is dropped.
                self.rollback.resolve();
            }
            AttemptEnd::Refused { verb, why } => {
                return AttemptEnd::Refused { verb: *verb, why: self.subject.missing(*verb, why) };
            }
            _ => {}
        }
        end
    }

    /// Passes the present state to the handler of failures.
    fn notify_handler(&self, pause: Duration) {
        let Some(handler) = &self.on_error else { return };
        let resource = self.subject.what.clone();
        let error = ReflectorError { resource, state: self.status.get(), pause };
        if catch_unwind(AssertUnwindSafe(|| handler(&error))).is_err() {
            let resource = &self.subject.what;
            tracing::error!(resource, "a handler of a reflector's errors panicked");
        }
    }
}
