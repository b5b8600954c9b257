//! What follows from a setback.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::reflector::Trouble;
use super::setback::{EXPIRED, Setback};
use super::target::Target;
use super::{LONGEST_RETRY_AFTER, MOST_FAILED_LISTS, Reflector, State};
use crate::client::Verb;

impl<T: Target> Reflector<T> {
    /// Draws the consequences of an attempt's end; returns the pause before the next one.
    pub(super) fn answer(&mut self, setback: Setback) -> Option<Duration> {
        if !matches!(setback, Setback::Internal(_)) {
            self.internal_since = None;
        }
        if setback.lost_the_server() {
            self.doubt.raise(self.seams.clock.now());
        }
        match setback {
            Setback::Ended => None,
            Setback::NewEpoch => self.list_again("new_epoch", None),
            Setback::InPart => self.list_again("in_part", None),
            Setback::Unsupported(why) => {
                tracing::info!(resource = self.what, why, "no streaming lists: listing in pages");
                self.habits.refused_stream(self.seams.clock.now());
                self.list_again(self.cause, None)
            }
            Setback::Failed(why) => Some(self.failed(why)),
            Setback::Internal(why) => Some(self.internal(why)),
            Setback::Stale { cause, why } => self.stale(cause, why),
            Setback::Throttled { after, why } => {
                let pause = self.pause();
                let pause = pause + after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                Some(self.trouble(State::Retrying(why), pause))
            }
            Setback::Refused { verb, why } => {
                let pause = self.pause();
                Some(self.trouble(State::Degraded(self.missing(verb, &why)), pause))
            }
            Setback::Panicked(text) => Some(self.panicked(&text)),
            Setback::Doubted(why) => {
                let pause = self.doubt_pause();
                Some(self.trouble(State::Retrying(why), pause))
            }
            Setback::Absent(why) => {
                let pause = self.absent(why);
                self.tell(pause);
                self.list_again("absent", Some(pause))
            }
        }
    }

    fn list_again(&mut self, cause: &'static str, pause: Option<Duration>) -> Option<Duration> {
        self.position.list_first();
        self.cause = cause;
        pause
    }

    /// Goes on from the same version, if there is one.
    fn failed(&mut self, why: String) -> Duration {
        let mut state = State::Retrying(why);
        if self.position.resume().is_none() {
            self.broken_streams = self.broken_streams.saturating_add(1);
            state = self.failed_list(state);
            // B4: what does not work as a whole may work as a stream or in pages.
            if std::mem::take(&mut self.unpaged) {
                self.broken_streams = 0;
            }
        }
        let pause = self.pause();
        self.trouble(state, pause)
    }

    /// Nothing is known of how far it came: everything is read anew.
    fn panicked(&mut self, text: &str) -> Duration {
        let what = &self.what;
        tracing::error!(
            resource = what,
            text,
            "reading panicked: a defect of its source or of windlass"
        );
        self.doubt.settle();
        self.list_again("panicked", None);
        let pause = self.pause();
        self.trouble(State::Degraded("reading panicked; see the log".to_owned()), pause)
    }

    fn internal(&mut self, why: String) -> Duration {
        let now = self.seams.clock.now();
        let since = *self.internal_since.get_or_insert(now);
        let window = self.options.internal_errors_for;
        if self.position.resume().is_some() && window.is_some_and(|window| now - since >= window) {
            self.internal_since = None;
            self.list_again("internal_error", None);
        }
        self.failed(why)
    }

    fn stale(&mut self, cause: &'static str, why: String) -> Option<Duration> {
        // 51: a list that named a version is made again as a consistent read, at once.
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

    /// B2: a version that has become too old is nobody's failure, and a pause would only make the
    /// view older. True unless that was answered at once shortly before: a server that forgets
    /// faster than it is read is listed with the pauses of a failing one.
    fn may_list_at_once(&mut self) -> bool {
        let now = self.seams.clock.now();
        let is_first = self.expired_at.is_none_or(|at| now >= at + self.options.quiet);
        let may = is_first && self.position.resume().is_some();
        if may {
            self.expired_at = Some(now);
        }
        may
    }

    /// B4: a list that fails again and again is more than a hiccup.
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

    /// A15: what to grant.
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

    fn trouble(&self, state: State, pause: Duration) -> Duration {
        self.status.set(state);
        self.tell(pause);
        pause
    }

    fn tell(&self, pause: Duration) {
        let Some(handler) = &self.on_trouble else { return };
        let trouble = Trouble { what: self.what.clone(), state: self.status.get(), pause };
        if catch_unwind(AssertUnwindSafe(|| handler(&trouble))).is_err() {
            tracing::error!(resource = self.what, "a handler of a reflector's trouble panicked");
        }
    }
}
