//! The recording of an operator's last minutes: its exchange with the API server, its reconciles,
//! and the objects that its caches had at the beginning.
//!
//! A [`Recorder`] listens to the exchanges of the client and to the reconciles of the controllers.
//! A test replays the recording against the reconcilers, or loads its objects.
//!
//! Files: `window` keeps the entries within the bounds, `streams` reads lists and watches of
//! caches, `mask` replaces secrets, `lines` writes the format.
//!
//! Not included: other clusters, web sockets, answers that a reconciler reads as a stream, renewals
//! of leases, Events, and calls of systems outside of Kubernetes.

// DESIGN.md, 278: A recording taps the attempts of the client, above retries of connections
// DESIGN.md, 280: Entries that leave a recording change its first lists

mod lines;
mod mask;
mod streams;
#[cfg(test)]
mod tests;
mod window;

pub use self::mask::Mask;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

use self::lines::LineBuilder;
use self::streams::OpenExchange;
use self::window::{EntryContent, Window};
use super::Manager;
use crate::controller::{ObservedReconcile, ReconcileEnd, ReconcileObserver, current_reconcile};
use windlass_client::client::{Client, ExchangeEnd, ExchangeHook, RequestOrigin, SentRequest};
use windlass_core::clock::Clock;

/// Version of the format.
pub(crate) const FORMAT: u32 = 1;

/// Bounds of a recording.
///
/// | bound | default |
/// |---|---|
/// | [`time`](Self::time) | 5 min |
/// | [`bytes`](Self::bytes) | 64 MiB |
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use std::time::Duration;
/// use windlass::manager::RecordingOptions;
///
/// let options = RecordingOptions::default().time(Duration::from_secs(60)).bytes(16 << 20);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a manager has them"]
pub struct RecordingOptions {
    pub(crate) time: Duration,
    pub(crate) bytes: usize,
}

impl Default for RecordingOptions {
    fn default() -> Self {
        Self { time: Duration::from_secs(300), bytes: 64 << 20 }
    }
}

impl RecordingOptions {
    /// Sets the time after which a part of the exchange leaves the recording. Default: 5 min.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the memory of the recording, in bytes. Default: 64 MiB.
    ///
    /// A part of it are the objects of all caches as the API server sends them, which is more than
    /// a cache needs for them; the rest is for the exchange, whose oldest parts make room. When the
    /// objects alone are larger, the recording ends with a warning.
    ///
    /// The text of an export takes about as much once more, until the last client has read it:
    /// several clients share one text.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

/// The recording of a running operator.
pub(crate) struct Recorder {
    operator: String,
    /// Default namespace of the client.
    namespace: String,
    /// Namespaces to which the operator is limited; empty for all.
    namespaces: Vec<String>,
    clock: Clock,
    began: Instant,
    epoch: Timestamp,
    /// State of the operator's random numbers at the start.
    seed: u64,
    mask: Mask,
    window: Mutex<Window>,
    /// The last export, for as long as a client reads it: there is one copy at a time.
    export: Mutex<Weak<Vec<u8>>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("operator", &self.operator).finish_non_exhaustive()
    }
}

/// An export that several clients may read.
struct SharedExport(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedExport {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Recorder {
    /// Starts the recording of an operator, if there is to be one.
    pub(crate) fn of(manager: &Manager, name: &str) -> Option<Arc<Self>> {
        let options = manager.recording.filter(|options| !options.time.is_zero())?;
        let namespaces = manager.namespaces.clone();
        let Some(recorder) = Self::start(name, &manager.client, namespaces, options) else {
            warn!("no recording: another operator of this process records the same client");
            return None;
        };
        for controller in &manager.controllers {
            controller.observe(Arc::clone(&recorder) as Arc<dyn ReconcileObserver>);
        }
        Some(recorder)
    }

    /// Starts to record the exchanges of a client; `None` if another listener has them.
    pub(in crate::manager) fn start(
        operator: &str,
        client: &Client,
        namespaces: Vec<String>,
        options: RecordingOptions,
    ) -> Option<Arc<Self>> {
        let environment = client.environment();
        let recorder = Arc::new(Self {
            operator: operator.to_owned(),
            namespace: client.default_namespace().to_owned(),
            namespaces,
            clock: environment.clock.clone(),
            began: environment.clock.now(),
            epoch: environment.clock.wall(),
            seed: environment.rng.state(),
            mask: Mask::new(),
            window: Mutex::new(Window::new(options)),
            export: Mutex::default(),
        });
        let is_set = client.set_exchange_hook(Arc::clone(&recorder) as Arc<dyn ExchangeHook>);
        is_set.then_some(recorder)
    }

    /// Returns the recording in JSON lines. Clients that ask while another one still reads get the
    /// export of that one.
    pub(crate) fn export(&self) -> Bytes {
        let mut export = self.export.lock();
        if let Some(earlier) = export.upgrade() {
            return Bytes::from_owner(SharedExport(earlier));
        }
        let copy = {
            let mut window = self.window.lock();
            window.evict(self.now());
            window.snapshot()
        };
        // Written without the lock of the window, which each exchange takes.
        let written = Arc::new(lines::written(self, &copy));
        *export = Arc::downgrade(&written);
        Bytes::from_owner(SharedExport(written))
    }

    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.began)
    }

    /// Returns the wall time of a moment. Monotonic within the recording, whatever the machine's
    /// clock does.
    fn wall(&self, at: Duration) -> Timestamp {
        let at = SignedDuration::try_from(at).unwrap_or_default();
        self.epoch.checked_add(at).unwrap_or(self.epoch)
    }

    /// Changes the window, unless the recording has ended.
    fn change<T>(&self, change: impl FnOnce(&mut Window, Duration) -> T) -> Option<T> {
        let at = self.now();
        let (changed, flaw) = {
            let mut window = self.window.lock();
            if window.flaw.is_some() {
                return None;
            }
            let changed = change(&mut window, at);
            window.evict(at);
            (changed, window.flaw.clone())
        };
        // After the lock, which each exchange takes: a subscriber of logs may send a request
        // itself.
        if let Some(flaw) = flaw {
            warn!(%flaw, "the recording of the exchange with the API server has ended");
        }
        Some(changed)
    }

    /// Adds a line.
    fn line(&self, fill: impl FnOnce(&mut LineBuilder)) {
        self.change(|window, at| {
            let mut line = LineBuilder::at(self.wall(at));
            fill(&mut line);
            window.push(at, EntryContent::Line(line.finished().into()));
        });
    }
}

impl ExchangeHook for Recorder {
    fn sent(&self, request: SentRequest) -> Option<u64> {
        if request.origin == RequestOrigin::Routine {
            return None;
        }
        let wanted = OpenExchange::of(&request);
        self.change(|window, at| {
            let number = window.number();
            if let OpenExchange::Call { .. } = wanted {
                let mut line = LineBuilder::at(self.wall(at));
                lines::request(&mut line, number, current_reconcile(), &request, &self.mask);
                window.push(at, EntryContent::Line(line.finished().into()));
            }
            window.open(number, wanted, &request);
            number
        })
    }

    fn answered(&self, exchange: u64, code: u16, headers: &HeaderMap) {
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        self.change(|window, _| window.answered(exchange, code, retry_after));
    }

    fn received(&self, exchange: u64, piece: &[u8]) {
        self.change(|window, at| window.received(at, exchange, piece, &self.mask));
    }

    fn ended(&self, exchange: u64, end: ExchangeEnd) {
        self.change(|window, at| {
            let Some(line) = window.ended(at, exchange, &end, &self.mask) else { return };
            let mut text = LineBuilder::at(self.wall(at));
            lines::answer(&mut text, exchange, &line, &end, &self.mask);
            window.push(at, EntryContent::Line(text.finished().into()));
        });
    }
}

impl ReconcileObserver for Recorder {
    fn began(&self, reconcile: &ObservedReconcile) {
        self.line(|line| {
            line.number("start", reconcile.number);
            line.text("controller", &reconcile.controller);
            line.text("key", &reconcile.key.to_string());
            line.text("reasons", &reconcile.reasons);
        });
    }

    fn ended(&self, reconcile: &ObservedReconcile, end: ReconcileEnd) {
        self.line(|line| {
            line.number("end", reconcile.number);
            line.text("outcome", &outcome_text(&end));
        });
    }
}

/// Returns the end of a reconcile in words, as recordings have it.
#[doc(hidden)]
pub fn outcome_text(end: &ReconcileEnd) -> String {
    match end {
        ReconcileEnd::Succeeded => "succeeded".to_owned(),
        ReconcileEnd::Requeued(delay) => format!("succeeded, again in {delay:?}"),
        ReconcileEnd::Waited(reason) => format!("waits: {reason}"),
        ReconcileEnd::Failed => "failed".to_owned(),
        ReconcileEnd::Skipped => "skipped".to_owned(),
        ReconcileEnd::Dropped => "dropped".to_owned(),
    }
}
