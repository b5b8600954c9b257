//! Kinds that are not served (B13: a kind that does not exist yet): their report, and the search
//! for them.

use std::time::Duration;

use super::machine::AttemptEnd;
use super::sink::{ReflectorSink, StreamProgress};
use super::source::Served;
use super::{NO_PROGRESS, Reflector, State};

/// Longest interval between two looks for an absent kind.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause after discovery has the kind while the list still answers 404: a new definition is served
/// in steps. It doubles up to [`PAUSE`].
const FOUND_PAUSE: Duration = Duration::from_millis(250);

/// Time for which a 404 is not believed, unless discovery was read and does not have the kind.
const DOUBTED_FOR: Duration = Duration::from_secs(10);
/// Pause between two requests during that time, plus or minus a half.
const DOUBT_PAUSE: Duration = Duration::from_secs(1);
/// The same pause before anything was listed: controllers wait for the first list.
const FIRST_DOUBT_PAUSE: Duration = Duration::from_millis(500);

/// State of a kind that is not served.
#[derive(Debug)]
pub(super) struct Absence {
    /// The server's error text.
    why: String,
    /// Number of times in a row that discovery had the kind and the list did not.
    contradictions: u32,
    was_found: bool,
    /// Whether a later list showed objects and did not end.
    has_listed: bool,
}

impl<T: ReflectorSink> Reflector<T> {
    /// Asks the source, before a request for a kind that was absent, whether the kind is still
    /// absent.
    pub(super) async fn look_for_the_kind(&mut self) -> Option<AttemptEnd> {
        self.absence.as_ref()?;
        let served = self.environment.clock.within(NO_PROGRESS, self.source.is_served()).await;
        let absence = self.absence.as_mut()?;
        absence.was_found = served == Some(Served::Yes);
        // Only a clear no avoids the list; after any other answer the list decides.
        (served == Some(Served::No)).then(|| AttemptEnd::Absent(absence.why.clone()))
    }

    /// Checks a 404, which may come from a proxy, or from a server that is just starting. It
    /// empties the cache, so cached objects are given up only when discovery does not have the kind
    /// either, or when the server keeps answering 404. At the very first list a 404 lets
    /// controllers start without the kind: there it is not believed while discovery has the kind,
    /// and without discovery it must come twice.
    pub(super) async fn doubt(&mut self, setback: AttemptEnd) -> AttemptEnd {
        let AttemptEnd::Absent(why) = setback else {
            self.doubted_since = None;
            return setback;
        };
        // Read before the query, which may take long: one 404 must not become old by it.
        let now = self.environment.clock.now();
        let is_old = self.doubted_since.is_some_and(|since| now >= since + DOUBTED_FOR);
        if self.absence.is_some() || is_old {
            return AttemptEnd::Absent(why);
        }
        let came_twice = self.doubted_since.is_some() && !self.has_listed_before();
        self.doubted_since.get_or_insert(now);
        match self.environment.clock.within(NO_PROGRESS, self.source.is_served()).await {
            Some(Served::No) => AttemptEnd::Absent(why),
            Some(Served::Yes) => {
                AttemptEnd::Doubted(format!("{why}, although its discovery has the kind"))
            }
            Some(Served::Unknown) | None if came_twice => AttemptEnd::Absent(why),
            Some(Served::Unknown) | None => {
                AttemptEnd::Doubted(format!("{why}, and its discovery does not confirm it"))
            }
        }
    }

    /// Returns the pause before a request that checks a 404.
    pub(super) fn doubt_pause(&self) -> Duration {
        let pause = if self.has_listed_before() { DOUBT_PAUSE } else { FIRST_DOUBT_PAUSE };
        pause / 2 + self.backoff.jitter(pause)
    }

    /// Returns whether there is a list whose objects a 404 would remove.
    fn has_listed_before(&self) -> bool {
        self.position.newest().is_some()
    }

    /// Returns the pause after a failure. For an absent kind it is at most [`PAUSE`], even if the
    /// server fails in another way meanwhile.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.backoff.pause(self.lived);
        if self.absence.is_some() { pause.min(PAUSE) } else { pause }
    }

    /// Notes at the start of a list whether the one before showed objects.
    pub(super) fn note_listed(&mut self) {
        let has_listed = self.listed > 0;
        if let Some(absence) = &mut self.absence {
            absence.has_listed |= has_listed;
        }
    }

    /// Marks the kind as absent, without objects. Returns the pause before the next look for it.
    pub(super) fn absent(&mut self, why: String) -> Duration {
        self.note_listed();
        let has_listed = self.absence.as_ref().is_some_and(|absence| absence.has_listed);
        // The target is emptied once, and again only if a list showed objects since.
        if has_listed || !matches!(self.status.get(), State::Absent(_)) {
            self.target.list_begins();
            let version = self.position.newest().unwrap_or_default();
            self.target.reached(StreamProgress::Absent, version);
            self.listed = 0;
        }
        self.doubted_since = None;
        self.status.set(State::Absent(why.clone()));
        let before = self.absence.take();
        let was_found = before.as_ref().is_some_and(|absence| absence.was_found);
        let contradictions = before.filter(|_| was_found).map_or(0, |a| a.contradictions + 1);
        self.absence = Some(Absence { why, contradictions, was_found: false, has_listed: false });
        let bound = match contradictions {
            0 => PAUSE,
            n => FOUND_PAUSE.saturating_mul(1 << n.min(8)).min(PAUSE),
        };
        // Half of the pause is random, so that many reflectors do not ask at the same time.
        bound / 2 + self.backoff.jitter(bound / 2)
    }
}
