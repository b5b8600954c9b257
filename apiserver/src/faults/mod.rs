//! Faults on demand: failures of servers, networks and proxies that clients must survive.
//!
//! Tests add a [`Fault`] that names the affected requests and the action; open watches are reached
//! through [`Faults`] itself. No upstream server offers this through an API, which is why an
//! in-process server can prove more than a real server.

mod observer;
mod rules;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::signal::Signal;

pub use observer::{ObservedChange, ObservedRequest, Observer};
pub use rules::{Fault, FaultAction, FaultHandle};
pub(crate) use rules::{MatchedRequest, garble};
pub(crate) use watches::{Tap, WatchCommand};

/// The faults of a server. Clones are cheap and share the faults.
#[derive(Clone, Debug)]
pub struct Faults {
    /// State shared by all clones.
    shared: Arc<FaultsShared>,
}

/// State of the faults, shared with the open watches.
#[derive(Debug)]
struct FaultsShared {
    /// Faults that strike requests.
    rules: Mutex<rules::Rules>,
    /// The test's own judge of requests.
    observer: OnceLock<Arc<dyn Observer>>,
    /// Number of faults that have been added.
    next: AtomicU64,
    /// Open watches.
    taps: Mutex<watches::Taps>,
    /// Paused resources; `*` pauses all.
    paused: Mutex<BTreeSet<String>>,
    /// Delay of events by resource; `*` is the delay of all others.
    lags: Mutex<BTreeMap<String, Duration>>,
    /// Wakes open watches when `paused` has changed.
    pauses: Arc<Signal>,
}

impl Faults {
    /// Returns a server's faults: none.
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(FaultsShared {
                rules: Mutex::default(),
                observer: OnceLock::new(),
                next: AtomicU64::new(0),
                taps: Mutex::default(),
                paused: Mutex::default(),
                lags: Mutex::default(),
                pauses: Arc::default(),
            }),
        }
    }

    /// Adds a fault. It applies until the count is used up, or until it is removed or all faults
    /// are cleared.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let handle = FaultHandle::new(self.shared.next.fetch_add(1, Ordering::Relaxed) + 1);
        self.shared.rules.lock().add(fault, handle.clone());
        handle
    }

    /// Returns the faults of requests as JSON, in the order in which they were added.
    pub(crate) fn describe(&self) -> Value {
        self.shared.rules.lock().describe()
    }

    /// Removes a fault by number; false if there is none.
    pub(crate) fn remove(&self, id: u64) -> bool {
        self.shared.rules.lock().remove(id)
    }

    /// Removes every fault, resumes paused watches and ends their delay.
    pub fn clear(&self) {
        // A single lock at a time, and the wake-up last: a woken watch looks at `paused` again.
        self.shared.rules.lock().clear();
        self.shared.paused.lock().clear();
        self.shared.lags.lock().clear();
        self.shared.pauses.notify();
    }

    /// Closes the open watches of a resource (`*` for all), cleanly, as a deadline does.
    pub fn close_watches(&self, resource: &str) {
        self.order(resource, &WatchCommand::Close);
    }

    /// Ends the open watches of a resource with an ERROR event of this code (410, 500, …).
    pub fn fail_watches(&self, resource: &str, code: u16) {
        self.order(resource, &WatchCommand::Fail(code));
    }

    /// Sends raw bytes into the open watches of a resource, as a single frame.
    pub fn inject(&self, resource: &str, bytes: impl Into<Bytes>) {
        self.order(resource, &WatchCommand::Raw(bytes.into()));
    }

    /// Repeats changes in the open watches of a resource, as a server does that lags behind the
    /// previous server: all changes of the last `back` revisions, or only the first of them.
    pub fn repeat_watches(&self, resource: &str, back: u64, only_one: bool) {
        self.order(resource, &WatchCommand::Again { back, only_one });
    }

    /// Stops the delivery of events of a resource. No event is lost: they are delivered after
    /// [`Faults::resume_watches`].
    pub fn pause_watches(&self, resource: &str) {
        self.shared.paused.lock().insert(resource.to_owned());
        self.shared.pauses.notify();
    }

    /// Resumes the delivery of events of a resource.
    pub fn resume_watches(&self, resource: &str) {
        self.shared.paused.lock().remove(resource);
        self.shared.pauses.notify();
    }

    /// Delays each later event of a resource by `lag` after the change; zero ends the delay. The
    /// state at the beginning of a watch, and lists, are not delayed.
    pub fn lag_watches(&self, resource: &str, lag: Duration) {
        let mut lags = self.shared.lags.lock();
        if lag.is_zero() {
            lags.remove(resource);
        } else {
            lags.insert(resource.to_owned(), lag.min(LONGEST));
        }
    }

    /// Returns the number of open watches of a resource (`*` counts all).
    pub fn open_watches(&self, resource: &str) -> usize {
        self.shared.taps.lock().count(resource)
    }

    /// Gives an order to the open watches of a resource.
    fn order(&self, resource: &str, order: &WatchCommand) {
        self.shared.taps.lock().order(resource, order);
    }

    /// Returns the actions of all faults that match a request, and counts them as used.
    pub(crate) fn strike(&self, subject: &MatchedRequest<'_>) -> Vec<FaultAction> {
        let mut actions = self.shared.rules.lock().strike(subject);
        // Behind the lock: an observer may add faults.
        if let Some(observer) = self.shared.observer.get() {
            actions.extend(observer.request(&ObservedRequest::of(subject)));
        }
        actions
    }

    /// Installs the observer of requests; the first observer stays.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        drop(self.shared.observer.set(observer));
    }

    /// Registers an open watch, so that it receives orders.
    pub(crate) fn tap(&self, resource: &str) -> Tap {
        Tap::open(self.shared.clone(), resource)
    }
}

/// Longest delay of a fault; longer delays are cut.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);
