//! Consequences of a setback: the reflector's next state, list and pause.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::machine::{AttemptEnd, EXPIRED};
use super::reflector::ReflectorError;
use super::sink::ReflectorSink;
use super::{LONGEST_RETRY_AFTER, MOST_FAILED_LISTS, Reflector, State};
use crate::client::Verb;

impl<T: ReflectorSink> Reflector<T> {
    /// Applies the consequences of an attempt's end; returns the pause before the next attempt.
    pub(super) fn answer(&mut self, setback: AttemptEnd) -> Option<Duration> {
        // Only an unbroken series of internal errors counts.
        if !matches!(setback, AttemptEnd::Internal(_)) {
            self.internal_since = None;
        }
        if setback.lost_the_server() {
            self.doubt.raise(self.environment.clock.now());
        }
        match setback {
            AttemptEnd::Ended => None,
            AttemptEnd::NewEpoch => self.list_again("new_epoch", None),
            AttemptEnd::InPart => self.list_again("in_part", None),
            AttemptEnd::Unsupported(why) => {
                tracing::info!(resource = self.what, why, "no streaming lists: listing in pages");
                self.habits.refused_stream(self.environment.clock.now());
                // The cause stays: it is the same list by another request.
                self.list_again(self.cause, None)
            }
            AttemptEnd::Failed(why) => Some(self.failed(why)),
            AttemptEnd::Internal(why) => Some(self.internal(why)),
            AttemptEnd::Stale { cause, why } => self.stale(cause, why),
            AttemptEnd::Throttled { after, why } => {
                let pause = self.pause();
                // The random pause is added to the server's, so that its clients do not return
                // together.
                let pause = pause + after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                Some(self.trouble(State::Retrying(why), pause))
            }
            AttemptEnd::Refused { verb, why } => {
                let pause = self.pause();
                Some(self.trouble(State::Degraded(self.missing(verb, &why)), pause))
            }
            AttemptEnd::Panicked(text) => Some(self.panicked(&text)),
            AttemptEnd::Doubted(why) => {
                let pause = self.doubt_pause();
                Some(self.trouble(State::Retrying(why), pause))
            }
            AttemptEnd::Absent(why) => {
                let pause = self.absent(why);
                self.tell(pause);
                self.list_again("absent", Some(pause))
            }
        }
    }

    /// Makes a list precede the next watch; returns `pause`.
    fn list_again(&mut self, cause: &'static str, pause: Option<Duration>) -> Option<Duration> {
        self.position.list_first();
        self.cause = cause;
        pause
    }

    /// Resumes from the same version, if there is one.
    fn failed(&mut self, why: String) -> Duration {
        let mut state = State::Retrying(why);
        if self.position.resume().is_none() {
            // After `MOST_BROKEN_STREAMS` of these the next list is made in pages.
            self.broken_streams = self.broken_streams.saturating_add(1);
            state = self.failed_list(state);
            // B4 (lists that expire before they end): a list that fails as a whole may work as a
            // stream or in pages.
            if std::mem::take(&mut self.unpaged) {
                self.broken_streams = 0;
            }
        }
        let pause = self.pause();
        self.trouble(state, pause)
    }

    /// Handles a panic. The progress before it is unknown, so everything is read anew.
    fn panicked(&mut self, text: &str) -> Duration {
        let what = &self.what;
        tracing::error!(
            resource = what,
            text,
            "reading panicked: a defect of its source or of windlass"
        );
        // The list that follows answers the same question.
        self.doubt.settle();
        self.list_again("panicked", None);
        let pause = self.pause();
        self.trouble(State::Degraded("reading panicked; see the log".to_owned()), pause)
    }

    /// Handles an internal error: resumes, or lists again after `internal_errors_for`.
    fn internal(&mut self, why: String) -> Duration {
        let now = self.environment.clock.now();
        let since = *self.internal_since.get_or_insert(now);
        let window = self.options.internal_errors_for;
        // Without a position a list follows anyway.
        if self.position.resume().is_some() && window.is_some_and(|window| now - since >= window) {
            self.internal_since = None;
            self.list_again("internal_error", None);
        }
        self.failed(why)
    }

    /// Handles a version that cannot be used any more; returns the pause before the list.
    fn stale(&mut self, cause: &'static str, why: String) -> Option<Duration> {
        // Mechanism 51: a list that named a version is made again as a consistent read, at once.
        if self.position.resume().is_none() && self.asked_version.take().is_some() {
            self.needs_consistent = true;
            return self.list_again(cause, None);
        }
        if cause == EXPIRED && self.may_list_at_once() {
            tracing::debug!(resource = self.what, why, "listed again");
            return self.list_again(cause, None);
        }
        let mut state = State::Retrying(why);
        if self.position.resume().is_none() {
            state = self.failed_list(state);
        }
        let pause = self.pause();
        let pause = self.trouble(state, pause);
        self.list_again(cause, Some(pause))
    }

    /// Returns whether an expired watch is listed again at once (B2: 410 in the middle of a watch).
    /// An expired version is not a failure, and a pause would only make the view older. False if
    /// the last such list followed shortly before: a server that forgets faster than it is read is
    /// listed with the pauses of a failing one.
    fn may_list_at_once(&mut self) -> bool {
        let now = self.environment.clock.now();
        let is_first = self.expired_at.is_none_or(|at| now >= at + self.options.quiet);
        let may = is_first && self.position.resume().is_some();
        if may {
            self.expired_at = Some(now);
        }
        may
    }

    /// Counts a failed list; after `MOST_FAILED_LISTS` in a row the state is degraded (B4: lists
    /// that expire before they end).
    fn failed_list(&mut self, state: State) -> State {
        self.failed_lists = self.failed_lists.saturating_add(1);
        match state {
            State::Retrying(why) if self.failed_lists >= MOST_FAILED_LISTS => {
                let times = self.failed_lists;
                State::Degraded(format!("the list has failed {times} times in a row: {why}"))
            }
            state => state,
        }
    }

    /// Returns the text that names the missing right (A15: 401 or 403 after a change of
    /// permissions).
    fn missing(&self, verb: Option<Verb>, why: &str) -> String {
        let Some(verb) = verb else {
            return format!("{why}; the API server does not accept the credentials");
        };
        let scope = match &self.namespace {
            Some(namespace) => format!(" in the namespace {namespace:?}"),
            None => String::new(),
        };
        let verb = verb.as_str();
        format!(
            "{why}; grant the verb {verb} on {}{scope} (a cache needs list and watch)",
            self.info
        )
    }

    /// Sets the state and reports it; returns `pause`.
    fn trouble(&self, state: State, pause: Duration) -> Duration {
        self.status.set(state);
        self.tell(pause);
        pause
    }

    /// Passes the present state to the handler of failures.
    fn tell(&self, pause: Duration) {
        let Some(handler) = &self.on_trouble else { return };
        let trouble = ReflectorError { what: self.what.clone(), state: self.status.get(), pause };
        if catch_unwind(AssertUnwindSafe(|| handler(&trouble))).is_err() {
            tracing::error!(resource = self.what, "a handler of a reflector's trouble panicked");
        }
    }
}
