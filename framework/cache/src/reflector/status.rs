//! Status of a reflector, for readiness; a log line per change.

use std::fmt;

use parking_lot::Mutex;
use tokio::time::Instant;

use windlass_core::sync::{AtomicBool, Notify, OrderedWatch, Ordering};

/// Present activity or wait of a reflector.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use windlass::reflector::ReflectorState;
///
/// let state = ReflectorState::Absent("the server does not know websites.example.dev".into());
/// assert!(state.to_string().starts_with("absent"));
/// assert_ne!(state, ReflectorState::Watching);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorState {
    /// Not started.
    Idle,
    /// Reading the current state.
    Listing,
    /// Following changes.
    Watching,
    /// Waiting to try again; the reason.
    Retrying(String),
    /// The kind is not served; the server's answer.
    Absent(String),
    /// Needs attention, although attempts go on: a right is missing, which the text names, or the
    /// list has failed many times.
    Degraded(String),
    /// Stopped for good.
    Stopped,
}

impl fmt::Display for ReflectorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("not started"),
            Self::Listing => f.write_str("reading the current state"),
            Self::Watching => f.write_str("watching"),
            Self::Retrying(why) => write!(f, "retrying: {why}"),
            Self::Absent(why) => write!(f, "absent, looked for every 5 s: {why}"),
            Self::Degraded(why) => write!(f, "degraded, retrying: {why}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Times of the last data from a reflector's server. The age of the reflector's view is the time
/// since [`advanced`](Self::advanced); for a kind without changes servers send a bookmark about
/// once a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Time of the last bytes, of a list or of a watch.
    pub last_received: Option<Instant>,
    /// Time at which the newest version was received, by a list, an event or a bookmark.
    pub advanced: Option<Instant>,
}

/// The state of a reflector, readable from any task.
///
/// Written by the reflector only. The state is set after the data in question was handed over: a
/// task that sees [`ReflectorState::Watching`] finds the first list in the sink.
#[derive(Debug)]
pub struct ReflectorStatus {
    /// Description for the log: `websites.example.dev in "shop"`.
    description: String,
    /// The present state, with the waiters.
    state: OrderedWatch<ReflectorState>,
    /// Times of the last data; held for a copy only.
    freshness: Mutex<Freshness>,
    /// Notified when an absent kind may have been created.
    end_pause: Notify,
    /// Whether a hint of a store that was set back was seen.
    rollback_hint: AtomicBool,
    /// Whether the definition of the kind is about to be installed: absence is no fault then.
    is_expected: AtomicBool,
    /// Whether the last attempt ended because a right is missing.
    lacks_right: AtomicBool,
}

impl ReflectorStatus {
    pub(crate) fn new(description: String) -> Self {
        let (state, freshness) = (OrderedWatch::new(ReflectorState::Idle), Mutex::default());
        Self {
            description,
            state,
            freshness,
            end_pause: Notify::new(),
            rollback_hint: AtomicBool::new(false),
            is_expected: AtomicBool::new(false),
            lacks_right: AtomicBool::new(false),
        }
    }

    /// Returns a description of the objects that are read.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the present state.
    ///
    /// A copy: the reflector may be in another state already.
    pub fn get(&self) -> ReflectorState {
        self.state.get()
    }

    /// Returns the times of the last data from the server.
    pub fn freshness(&self) -> Freshness {
        *self.freshness.lock()
    }

    /// Waits until `wanted` is true for the state, or the reflector has stopped; returns the state.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// # async fn example(status: &windlass::reflector::ReflectorStatus) {
    /// use windlass::reflector::ReflectorState;
    ///
    /// let is_settled = |state: &ReflectorState| matches!(state, ReflectorState::Watching | ReflectorState::Absent(_));
    /// let state = status.wait_for(is_settled).await;
    /// println!("{}: {state}", status.description());
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn wait_for(
        &self,
        mut wanted: impl FnMut(&ReflectorState) -> bool + Send,
    ) -> ReflectorState {
        self.state.wait_for(|state| wanted(state) || *state == ReflectorState::Stopped).await
    }

    /// Ends the pause before the next discovery of an absent kind, which may have been created.
    pub(crate) fn end_pause(&self) {
        // No permit is kept: a reflector that is not looking for the kind needs no wake-up later.
        self.end_pause.notify_waiters();
    }

    /// Waits for the next call of `end_pause`; earlier calls are not remembered.
    pub(super) async fn pause_ended(&self) {
        self.end_pause.notified().await;
    }

    /// Sets whether the definition of the kind is about to be installed.
    pub(crate) fn set_expected(&self, is_expected: bool) {
        // Relaxed: the flag chooses the level of a log line.
        self.is_expected.store(is_expected, Ordering::Relaxed);
    }

    /// Sets whether the last attempt ended because a right is missing.
    pub(super) fn set_lacks_right(&self, lacks_right: bool) {
        // Relaxed: the flag guards no data.
        self.lacks_right.store(lacks_right, Ordering::Relaxed);
    }

    /// Whether the last attempt ended because a right is missing. Unlike the state, the answer is
    /// kept during the next attempt.
    pub(crate) fn lacks_right(&self) -> bool {
        // Relaxed: as above.
        self.lacks_right.load(Ordering::Relaxed)
    }

    /// Records a hint that the server's store was set back.
    pub(crate) fn hint_rollback(&self) {
        // Relaxed: the flag guards no data, and the reflector is woken separately.
        self.rollback_hint.store(true, Ordering::Relaxed);
    }

    /// Returns whether a hint was recorded since the last call, and clears the hint.
    pub(super) fn take_rollback_hint(&self) -> bool {
        // Relaxed: the flag guards no data. The load spares the usual case, no hint, the write of a
        // swap.
        self.rollback_hint.load(Ordering::Relaxed)
            && self.rollback_hint.swap(false, Ordering::Relaxed)
    }

    /// Notes that bytes arrived at `now`.
    pub(crate) fn note_received(&self, now: Instant, has_advanced: bool) {
        let mut freshness = self.freshness.lock();
        freshness.last_received = Some(now);
        if has_advanced {
            freshness.advanced = Some(now);
        }
    }

    /// Sets the state, and logs a state of another kind than before.
    pub(crate) fn set(&self, state: ReflectorState) {
        let before = self.state.set(state.clone());
        // Another text of the same state is logged at the debug level only.
        if std::mem::discriminant(&before) == std::mem::discriminant(&state) {
            tracing::debug!(resource = %self.description, %state, "the state of the cache changed");
            return;
        }
        match state {
            // Relaxed: the flag chooses the level of a log line.
            ReflectorState::Absent(_) if self.is_expected.load(Ordering::Relaxed) => {
                tracing::info!(
                    resource = %self.description,
                    "the kind is absent until the leader installs its definition"
                )
            }
            ReflectorState::Degraded(_)
            | ReflectorState::Retrying(_)
            | ReflectorState::Absent(_) => {
                tracing::warn!(resource = %self.description, %state, "the state of the cache changed");
            }
            // Another attempt: only the success is logged at the usual level.
            ReflectorState::Listing => {
                tracing::debug!(resource = %self.description, %state, "the state of the cache changed")
            }
            _ => {
                tracing::info!(resource = %self.description, %state, "the state of the cache changed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use windlass_client::client::test_support::Captured;

    #[tokio::test(start_paused = true)]
    async fn a_state_is_waited_for_and_a_stop_ends_the_wait() {
        let status = ReflectorStatus::new("pods".to_owned());
        let watching = status.wait_for(|state| *state == ReflectorState::Watching);
        let change = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            status.set(ReflectorState::Listing);
            tokio::time::sleep(Duration::from_secs(1)).await;
            status.set(ReflectorState::Watching);
        };
        assert_eq!(tokio::join!(watching, change).0, ReflectorState::Watching);
        let never = status.wait_for(|_| false);
        let stop = async { status.set(ReflectorState::Stopped) };
        assert_eq!(tokio::join!(never, stop).0, ReflectorState::Stopped);
    }

    /// An operator's log at the usual level shows the end of trouble, and not each attempt.
    #[test]
    fn that_it_reads_again_is_no_news_and_that_it_follows_again_is() {
        let (log, _guard) = Captured::at(tracing::Level::INFO);
        let status = ReflectorStatus::new("pods".to_owned());
        status.set(ReflectorState::Listing);
        status.set(ReflectorState::Retrying("the server is away".to_owned()));
        status.set(ReflectorState::Listing);
        status.set(ReflectorState::Watching);
        let lines = log.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("the server is away"), "{lines:?}");
        assert!(lines[1].starts_with("INFO") && lines[1].contains("watching"), "{lines:?}");
    }

    /// A first start on a cluster without the definition is no fault.
    #[test]
    fn the_absence_of_a_kind_is_a_warning_unless_its_definition_is_about_to_be_installed() {
        let (log, _guard) = Captured::at(tracing::Level::INFO);
        let status = ReflectorStatus::new("websites.example.dev".to_owned());
        status.set_expected(true);
        status.set(ReflectorState::Absent("404".to_owned()));
        status.set(ReflectorState::Watching);
        status.set_expected(false);
        status.set(ReflectorState::Absent("404".to_owned()));
        let lines = log.lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("INFO") && lines[0].contains("until the leader"), "{lines:?}");
        assert!(lines[2].starts_with("WARN") && lines[2].contains("404"), "{lines:?}");
    }
}
