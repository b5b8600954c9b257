//! Faults on demand: what servers, networks and proxies do to clients on bad days.
//!
//! Tests add a [`Fault`] that says which requests it strikes and what happens to them; open watches
//! are struck through [`Faults`] itself. No upstream server offers this through its API, which is why
//! an in-process server can prove more than a real one.

mod rules;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::signal::Signal;

pub use rules::{Action, Fault, FaultHandle};
pub(crate) use rules::{Subject, garble};
pub(crate) use watches::{Order, Tap};

/// The faults of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Faults {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rules: Mutex<rules::Rules>,
    taps: Mutex<watches::Taps>,
    paused: Mutex<BTreeSet<String>>,
    lags: Mutex<BTreeMap<String, Duration>>,
    pauses: Arc<Signal>,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                rules: Mutex::default(),
                taps: Mutex::default(),
                paused: Mutex::default(),
                lags: Mutex::default(),
                pauses: Arc::default(),
            }),
        }
    }

    /// Adds a fault; it strikes until its times are used up, it is removed or all are cleared.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let handle = FaultHandle::new();
        self.shared.rules.lock().add(fault, handle.clone());
        handle
    }

    /// Removes every fault, resumes paused watches and ends their lag.
    pub fn clear(&self) {
        self.shared.rules.lock().clear();
        self.shared.paused.lock().clear();
        self.shared.lags.lock().clear();
        self.shared.pauses.tell();
    }

    /// Closes the open watches of a resource (`*` for all), cleanly, as a deadline does.
    pub fn close_watches(&self, resource: &str) {
        self.order(resource, &Order::Close);
    }

    /// Ends the open watches of a resource with an ERROR event of this code (410, 500, …).
    pub fn fail_watches(&self, resource: &str, code: u16) {
        self.order(resource, &Order::Fail(code));
    }

    /// Sends raw bytes into the open watches of a resource, as if they were a frame.
    pub fn inject(&self, resource: &str, bytes: impl Into<Bytes>) {
        self.order(resource, &Order::Raw(bytes.into()));
    }

    /// The open watches of a resource show changes again that they have shown, as a server does that
    /// lags behind the one before: all since `back` revisions ago, or only the first of them.
    pub fn repeat_watches(&self, resource: &str, back: u64, only_one: bool) {
        self.order(resource, &Order::Again { back, only_one });
    }

    /// Stops delivering events of a resource; nothing is lost, they come after resuming.
    pub fn pause_watches(&self, resource: &str) {
        self.shared.paused.lock().insert(resource.to_owned());
        self.shared.pauses.tell();
    }

    /// Delivers again.
    pub fn resume_watches(&self, resource: &str) {
        self.shared.paused.lock().remove(resource);
        self.shared.pauses.tell();
    }

    /// From now on each event of a resource is delivered this long after its change; zero ends it.
    /// The state that a watch begins with, and lists, do not lag.
    pub fn lag_watches(&self, resource: &str, lag: Duration) {
        let mut lags = self.shared.lags.lock();
        if lag.is_zero() {
            lags.remove(resource);
        } else {
            lags.insert(resource.to_owned(), lag.min(LONGEST));
        }
    }

    /// How many watches of a resource are open (`*` counts all).
    pub fn open_watches(&self, resource: &str) -> usize {
        self.shared.taps.lock().count(resource)
    }

    fn order(&self, resource: &str, order: &Order) {
        self.shared.taps.lock().order(resource, order);
    }

    /// What happens to a request.
    pub(crate) fn strike(&self, subject: &Subject<'_>) -> Vec<Action> {
        self.shared.rules.lock().strike(subject)
    }

    /// A place where an open watch takes orders.
    pub(crate) fn tap(&self, resource: &str) -> Tap {
        Tap::open(self.shared.clone(), resource)
    }
}

/// Longest delay a fault may ask for; longer ones are cut.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);
