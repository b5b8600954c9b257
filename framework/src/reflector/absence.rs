//! A kind that is not served (B13): how it is told, and how it is looked for.

use std::time::Duration;

use super::setback::Setback;
use super::source::Served;
use super::target::{Step, Target};
use super::{NO_PROGRESS, Reflector, State};

/// An absent kind is looked for at least so often.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause after the kind was found, and the list says that it is not there: a new definition is
/// served in steps. It doubles up to [`PAUSE`].
const FOUND_PAUSE: Duration = Duration::from_millis(250);

/// So long a 404 is not believed, unless discovery was read and does not have the kind.
const DOUBTED_FOR: Duration = Duration::from_secs(10);
/// Pause between two requests meanwhile, give or take a half.
const DOUBT_PAUSE: Duration = Duration::from_secs(1);
/// As that, before anything was listed: controllers wait for it.
const FIRST_DOUBT_PAUSE: Duration = Duration::from_millis(500);

/// The kind is not served.
#[derive(Debug)]
pub(super) struct Absence {
    /// What the server said.
    why: String,
    /// Times that the kind was found and the list contradicted.
    contradictions: u32,
    was_found: bool,
    /// Did a list show objects since, and not come to its end?
    has_listed: bool,
}

impl<T: Target> Reflector<T> {
    /// Before a request for a kind that was absent: is it still?
    pub(super) async fn look_for_the_kind(&mut self) -> Option<Setback> {
        self.absence.as_ref()?;
        let served = self.seams.clock.within(NO_PROGRESS, self.source.is_served()).await;
        let absence = self.absence.as_mut()?;
        absence.was_found = served == Some(Served::Yes);
        (served == Some(Served::No)).then(|| Setback::Absent(absence.why.clone()))
    }

    /// A 404 may come from something on the way, or from a server that is just starting. It empties the
    /// cache, so what is cached is given up only when discovery does not have the kind either, or the
    /// server sticks to it. At the very first list it has controllers start without the kind: there it
    /// is not believed while discovery has it, and where there is no discovery it must come twice.
    pub(super) async fn doubt(&mut self, setback: Setback) -> Setback {
        let Setback::Absent(why) = setback else {
            self.doubted_since = None;
            return setback;
        };
        // Before the question, which may take long: one 404 is not enough.
        let now = self.seams.clock.now();
        let is_old = self.doubted_since.is_some_and(|since| now >= since + DOUBTED_FOR);
        if self.absence.is_some() || is_old {
            return Setback::Absent(why);
        }
        let came_twice = self.doubted_since.is_some() && !self.has_listed_before();
        self.doubted_since.get_or_insert(now);
        match self.seams.clock.within(NO_PROGRESS, self.source.is_served()).await {
            Some(Served::No) => Setback::Absent(why),
            Some(Served::Yes) => {
                Setback::Doubted(format!("{why}, although its discovery has the kind"))
            }
            Some(Served::Unknown) | None if came_twice => Setback::Absent(why),
            Some(Served::Unknown) | None => {
                Setback::Doubted(format!("{why}, and its discovery does not confirm it"))
            }
        }
    }

    /// The pause before a request that tells whether a 404 is meant.
    pub(super) fn doubt_pause(&self) -> Duration {
        let pause = if self.has_listed_before() { DOUBT_PAUSE } else { FIRST_DOUBT_PAUSE };
        pause / 2 + self.backoff.jitter(pause)
    }

    /// Is there anything that a 404 would take away?
    fn has_listed_before(&self) -> bool {
        self.position.newest().is_some()
    }

    /// The pause after a failure. An absent kind is not lost sight of for longer because the server
    /// fails in another way meanwhile.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.backoff.pause(self.lived);
        if self.absence.is_some() { pause.min(PAUSE) } else { pause }
    }

    /// A list begins; what the one before has shown counts.
    pub(super) fn note_listed(&mut self) {
        let has_listed = self.listed > 0;
        if let Some(absence) = &mut self.absence {
            absence.has_listed |= has_listed;
        }
    }

    /// An absent kind has no objects, and may come any time. Returns the pause before the next look.
    pub(super) fn absent(&mut self, why: String) -> Duration {
        self.note_listed();
        let has_listed = self.absence.as_ref().is_some_and(|absence| absence.has_listed);
        if has_listed || !matches!(self.status.get(), State::Absent(_)) {
            self.target.list_begins();
            let version = self.position.newest().unwrap_or_default();
            self.target.reached(Step::Absent, version);
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
        bound / 2 + self.backoff.jitter(bound / 2)
    }
}
