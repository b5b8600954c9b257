//! Replays of recordings: an operator's reconciles are run again with the objects, events and
//! answers of a running operator, and their requests are compared with the recorded ones.
//!
//! Files: `format` reads recordings, `script` is the other side of the operator, with `caches` for
//! lists and watches; `play` goes through the entries, `compare` finds differences, `objects` puts
//! the recorded objects on a server.
//!
//! Not included: sources of reconciles other than the recorded begins, Events, webhooks, runnables,
//! other clusters.

// DESIGN.md, 279: A replay decides when each reconcile begins

mod body;
mod caches;
mod compare;
mod format;
mod objects;
mod play;
mod script;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_runtime::manager::Manager;

use self::format::Lines;
use super::paused::{on_thread, paused_runtime};

/// Difference of times that the recorded operator needed for its work.
const TOLERANCE: Duration = Duration::from_secs(2);

/// A recording of a running operator, from `/debug/recording`.
///
/// A replay needs the objects from before the first entry, and recordings have them. Secrets are
/// masked: an operator that computes something of a secret sends something else in a replay.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use windlass::testing::{Recording, replay};
///
/// # fn operator(client: windlass::client::Client) -> windlass::manager::Manager {
/// #     windlass::manager::Manager::new(client)
/// # }
/// # fn example() -> Result<(), windlass::Error> {
/// let recording = Recording::read("tests/incident.jsonl")?;
/// replay(&recording, operator);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recording {
    lines: Lines,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("operator", &self.lines.header.operator)
            .field("began", &self.lines.header.began)
            .field("entries", &self.lines.entries.len())
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// Reads a recording from a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the file cannot be read; those of [`parse`](Self::parse).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let text = format!("cannot read the recording {}: {error}", path.display());
            Error::new(ErrorKind::Config, text).because(error)
        })?;
        Self::parse(&text)
    }

    /// Reads a recording from its text.
    ///
    /// # Errors
    /// [`ErrorKind::Decode`] for a text that is no recording, for one of another format, and for a
    /// recording that ended because its bounds were too small.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(Self { lines: Lines::parse(text)? })
    }

    /// Returns the time of the first entry.
    pub fn began(&self) -> Timestamp {
        self.lines.header.began
    }

    /// Returns the time of the export.
    pub fn ended(&self) -> Timestamp {
        self.lines.header.ended
    }

    /// Whether the recording goes back to the start of the operator. Then the operator's randomness
    /// is that of the recorded one, too.
    pub fn is_whole(&self) -> bool {
        self.lines.header.is_whole
    }

    /// Returns the part up to a time.
    #[must_use]
    pub fn until(&self, end: Timestamp) -> Self {
        let mut part = self.clone();
        part.lines.entries.retain(|(at, _)| *at <= end);
        part.lines.header.ended = part.lines.header.ended.min(end);
        part
    }
}

/// Replays a recording against the operator that `make` builds, with the default settings, and
/// fails the test at the first difference.
///
/// Each recorded reconcile is run again, at its place among the events and answers: the operator's
/// caches have the objects that the recorded one's had then. Its requests and its end must be the
/// recorded ones. The clock is paused and begins at the recorded time. In a `#[tokio::test]` the
/// call blocks that test's thread.
///
/// The operator runs without servers, election, definitions and runnables.
///
/// # Panics
/// At a difference; the text is the [report](ReplayReport).
pub fn replay(recording: &Recording, make: impl Fn(Client) -> Manager + Send + Sync) {
    let report = Replay::new(recording).run(make);
    assert!(report.difference().is_none(), "{report}");
}

/// Settings of a replay.
///
/// | setting | default |
/// |---|---|
/// | [`time_tolerance`](Self::time_tolerance) | 2 s |
#[derive(Clone, Debug)]
#[must_use = "a replay does nothing until it is run"]
pub struct Replay<'a> {
    recording: &'a Recording,
    tolerance: Duration,
}

impl<'a> Replay<'a> {
    /// Returns the default settings.
    pub fn new(recording: &'a Recording) -> Self {
        Self { recording, tolerance: TOLERANCE }
    }

    /// Sets the difference up to which two times in requests are equal. Default: 2 s. A replayed
    /// reconcile computes in no time, and the recorded one did not.
    pub fn time_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Replays, and returns the first difference.
    pub fn run(self, make: impl Fn(Client) -> Manager + Send + Sync) -> ReplayReport {
        let began = self.recording.lines.header.clone();
        let played = on_thread(|| {
            let runtime = paused_runtime().map_err(|error| error.to_string())?;
            let played = runtime.block_on(play::play(&self.recording.lines, self.tolerance, &make));
            played.map_err(|error| error.to_string())
        });
        let mut report = ReplayReport {
            difference: None,
            reconciles: 0,
            requests: 0,
            recorded_by: format!("{} ({})", began.operator, began.framework),
        };
        match played.and_then(|played| played) {
            Ok(played) => {
                report.difference = played.difference;
                (report.reconciles, report.requests) = (played.reconciles, played.requests);
            }
            Err(failure) => report.difference = Some(format!("the replay failed: {failure}")),
        }
        report
    }
}

/// Outcome of a replay.
#[derive(Clone, Debug)]
pub struct ReplayReport {
    difference: Option<String>,
    reconciles: usize,
    requests: usize,
    /// Operator and framework of the recording.
    recorded_by: String,
}

impl ReplayReport {
    /// Returns the first difference: the reconcile, the request, and the paths with both values;
    /// `None` if there is none.
    pub fn difference(&self) -> Option<&str> {
        self.difference.as_deref()
    }

    /// Returns the number of reconciles that came to their recorded ends.
    pub fn reconciles(&self) -> usize {
        self.reconciles
    }

    /// Returns the number of requests of reconciles that were equal.
    pub fn requests(&self) -> usize {
        self.requests
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { difference, reconciles, requests, recorded_by } = self;
        match difference {
            Some(difference) => write!(
                f,
                "the operator differs from the recording of {recorded_by}, after {reconciles} equal reconciles \
                 and {requests} equal requests:\n{difference}"
            ),
            None => write!(
                f,
                "{reconciles} reconciles and {requests} requests are equal to the recording of {recorded_by}"
            ),
        }
    }
}
