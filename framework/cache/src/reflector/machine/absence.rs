//! Kinds that are not served (B13: a kind that does not exist yet): the pauses between two
//! lookups of them, and the check of a 404.

use std::time::Duration;

use super::AttemptEnd;
use crate::reflector::Served;

/// Longest interval between two discoveries of an absent kind.
pub(super) const PAUSE: Duration = Duration::from_secs(5);
/// Pause after discovery has the kind while the list still answers 404: a new definition is served
/// in steps. The pause doubles up to [`PAUSE`].
const FOUND_PAUSE: Duration = Duration::from_millis(250);

/// Time for which a 404 is not believed, unless discovery was read and does not have the kind.
pub(super) const UNCONFIRMED_LIMIT: Duration = Duration::from_secs(10);
/// Pause between two requests during that time, plus or minus a half.
pub(super) const UNCONFIRMED_PAUSE: Duration = Duration::from_secs(1);
/// The same pause before anything was listed: controllers wait for the first list.
pub(super) const FIRST_UNCONFIRMED_PAUSE: Duration = Duration::from_millis(500);

/// A kind that is not served.
#[derive(Debug)]
pub(super) struct Absence {
    /// The server's error text.
    why: String,
    /// Number of times in a row that discovery had the kind and the list did not.
    contradictions: u32,
    /// Whether the last discovery had the kind. A 404 of the next list is a contradiction and
    /// counts in `contradictions`.
    was_found: bool,
    /// Whether the target is empty and the reported state is that of an absent kind. False after a
    /// list has shown objects and did not end, and after a failure of another kind was reported.
    pub(super) is_emptied: bool,
}

impl Absence {
    /// Returns an absence whose report empties the target, after the absence `before`.
    ///
    /// A contradiction needs two answers in a row: discovery with the kind, and then a 404. Any
    /// other order starts the count at zero.
    pub(super) fn new(why: String, before: Option<Self>) -> Self {
        let contradictions = before.filter(|a| a.was_found).map_or(0, |a| a.contradictions + 1);
        Self { why, contradictions, was_found: false, is_emptied: true }
    }

    /// Notes the answer of discovery. Only a clear no avoids the list; after any other answer the
    /// list decides.
    pub(super) fn discovery_response(&mut self, served: Option<Served>) -> Option<AttemptEnd> {
        self.was_found = served == Some(Served::Yes);
        (served == Some(Served::No)).then(|| AttemptEnd::Absent(self.why.clone()))
    }

    /// Returns the longest pause before the next discovery.
    ///
    /// Without contradictions the pause is [`PAUSE`]. After them it begins at half a second and
    /// doubles: the kind is about to be served, and its controllers wait.
    pub(super) fn longest_pause(&self) -> Duration {
        match self.contradictions {
            0 => PAUSE,
            n => FOUND_PAUSE.saturating_mul(1 << n.min(8)).min(PAUSE),
        }
    }
}

/// Treatment of a 404.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reflector) enum NotFound {
    /// The kind is not served.
    Confirmed,
    /// Discovery is asked first. `is_repeated`: at the very first list, and not for the first time.
    Unconfirmed { is_repeated: bool },
}

impl NotFound {
    /// Decides on an unconfirmed 404 by the answer of discovery.
    ///
    /// An unconfirmed 404 must not empty the cache: a proxy or a starting server may answer 404 as
    /// well. Without discovery only a repeated 404 at the first list counts, when there is nothing
    /// to lose.
    pub(in crate::reflector) fn judge(self, served: Option<Served>, why: String) -> AttemptEnd {
        let is_repeated = match self {
            Self::Confirmed => return AttemptEnd::Absent(why),
            Self::Unconfirmed { is_repeated } => is_repeated,
        };
        match served {
            Some(Served::No) => AttemptEnd::Absent(why),
            Some(Served::Yes) => {
                AttemptEnd::Unconfirmed(format!("{why}, although its discovery has the kind"))
            }
            Some(Served::Unknown) | None if is_repeated => AttemptEnd::Absent(why),
            Some(Served::Unknown) | None => {
                AttemptEnd::Unconfirmed(format!("{why}, and its discovery does not confirm it"))
            }
        }
    }
}
