//! Values that follow from times and from attempts: a fault makes durations longer and counts
//! higher, and nothing is wrong then. What undisturbed runs agree on is the rule by which such a
//! value follows: the time between two other values, or the time of a day after one.

// DESIGN.md, 296: A duration is judged by the times that it lies between, and a count by attempts

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::Attempt;
use super::history::{ROUNDING, UNITS, Written};
use super::names::{Names, Snapshot};
use super::readings::{Reading, Readings};
use super::side::{Place, Side};
use crate::testing::explore::state::{self, Difference, End};

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// Most instants of a run that pairs are made of.
const MOST_INSTANTS: usize = 64;
/// Seconds beyond twice the usual time after which a value that grew stands still.
const STILL: f64 = 10.0;

/// Rules by which values follow from times, as undisturbed runs show them.
#[derive(Debug, Default)]
pub(in crate::testing::explore) struct Elapsed {
    places: BTreeMap<Place, Learnt>,
    /// Numbers of the writes in the first run.
    attempts: BTreeMap<Attempt, usize>,
}

/// A value.
#[derive(Debug)]
struct Learnt {
    /// For each number in it.
    numbers: Vec<LearntNumber>,
    /// Longest time between two writes by which it follows the time, in seconds.
    gap: Option<f64>,
}

/// A number in a value.
#[derive(Debug)]
struct LearntNumber {
    /// Whether it differs between undisturbed runs of different pace.
    varies: bool,
    /// The rules of which one must hold.
    fits: Vec<Fit>,
}

/// A rule.
#[derive(Clone, Debug)]
enum Fit {
    /// The time between two instants, of which `None` is the write; in this unit.
    Between { from: Option<Place>, to: Option<Place>, unit: f64 },
    /// A time of a day that comes these seconds after an instant.
    After { instant: Place, seconds: f64 },
}

impl Elapsed {
    /// Returns what undisturbed runs show; those that are `slow` have another pace.
    pub(in crate::testing::explore) fn learn(
        names: &Names,
        first: &Snapshot,
        others: &[Snapshot],
        slow: &[Snapshot],
    ) -> Self {
        let sides = |of: &[Snapshot]| -> Vec<Side> {
            of.iter().map(|snapshot| Side::of(names, snapshot)).collect()
        };
        let (first, others, slow) = (Side::of(names, first), sides(others), sides(slow));
        let mut places = BTreeMap::new();
        for (place, readings) in first.readings() {
            let like = |side: &'_ Side| -> Option<Readings> {
                side.reading(&place).filter(|found| found.is_like(&readings))
            };
            let mut sides = vec![(&first, readings.clone())];
            sides.extend(others.iter().filter_map(|side| Some((side, like(side)?))));
            let fast = sides.len();
            sides.extend(slow.iter().filter_map(|side| Some((side, like(side)?))));
            if let Some(learnt) = learnt(&place, &sides, fast) {
                places.insert(place, learnt);
            }
        }
        Self { places, attempts: first.attempts }
    }

    /// Returns the virtual time in which each value that follows the time is renewed, or stands
    /// still.
    pub(in crate::testing::explore) fn renewal(&self) -> Duration {
        let gaps = self.places.values().filter_map(|learnt| learnt.gap);
        let longest = gaps.map(|gap| 2.0 * gap + 2.0 * STILL).fold(0.0, f64::max);
        Duration::try_from_secs_f64(longest).unwrap_or_default()
    }

    /// Returns the places whose values differ between runs of different pace: resource and path
    /// without positions.
    pub(in crate::testing::explore) fn varying(&self) -> impl Iterator<Item = (String, String)> {
        let varies = |learnt: &Learnt| learnt.numbers.iter().any(|number| number.varies);
        let varying = self.places.iter().filter(move |(_, learnt)| varies(learnt));
        varying.map(|((key, path), _)| (state::resource_of(key).to_owned(), unplaced(path)))
    }

    /// Takes the differences that follow from times and attempts out of those between two ends, and
    /// adds the values that do not follow as they should. Objects may be there anew.
    pub(in crate::testing::explore) fn judged(
        &self,
        mut found: Vec<Difference>,
        expected: &End,
        (names, snapshot): (&Names, &Snapshot),
        is_anew: bool,
    ) -> Vec<Difference> {
        if found.is_empty() && self.places.is_empty() {
            return found;
        }
        let side = Side::of(names, snapshot);
        let judge = Judge { elapsed: self, expected, side: &side, is_anew };
        found.retain(|difference| !judge.explains(difference));
        for (place, learnt) in &self.places {
            if !found.iter().any(|known| (&known.key, &known.place) == (&place.0, &place.1)) {
                found.extend(judge.broken(place, learnt));
            }
        }
        found
    }
}

/// Returns a path without positions in lists.
fn unplaced(path: &str) -> String {
    let mut parts = path.split('[');
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        told.push('[');
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        told.push_str(&part[digits..]);
    }
    told
}

/// Returns what the runs show of a value, of which the first `fast` ones have one pace; `None` when
/// they show nothing.
fn learnt(place: &Place, sides: &[(&Side, Readings)], fast: usize) -> Option<Learnt> {
    let (_, first) = sides.first()?;
    let gap = sides.iter().map(|(side, _)| gap(side.written(place)?, side.at));
    let gap = gap.collect::<Option<Vec<f64>>>().filter(|all| all.len() > 1);
    let gap = gap.map(|all| all.into_iter().fold(0.0, f64::max));
    let number = |(at, reading): (usize, &Reading)| {
        let mut slow = sides[fast..].iter().filter_map(|(_, readings)| readings.all.get(at));
        let varies = slow.any(|slow| slow != reading);
        let is_of_time = varies || reading.step.is_some() || gap.is_some();
        let fits = if is_of_time { fits(place, at, sides, varies) } else { Vec::new() };
        // A number that another pace changes by no rule may be another end.
        LearntNumber { varies: varies && (reading.step.is_some() || !fits.is_empty()), fits }
    };
    let numbers: Vec<LearntNumber> = first.all.iter().enumerate().map(number).collect();
    let is_known = |number: &LearntNumber| number.varies || !number.fits.is_empty();
    (gap.is_some() || numbers.iter().any(is_known)).then_some(Learnt { numbers, gap })
}

/// Returns the longest time without a write of a value that follows the time.
fn gap(written: &Written, end: f64) -> Option<f64> {
    (written.ticks > 0).then(|| written.longest.max(end - written.at))
}

/// Returns the rules that hold in all runs: of the nearest instants by which there are some; those
/// of other objects for a number that varies.
fn fits(place: &Place, at: usize, sides: &[(&Side, Readings)], varies: bool) -> Vec<Fit> {
    let Some((first, _)) = sides.first() else { return Vec::new() };
    let instants = || first.instants.keys().cloned().map(Some);
    let is_own = |instant: &Option<Place>| instant.as_ref().is_some_and(|(key, _)| *key == place.0);
    let own: Vec<Option<Place>> = instants().filter(is_own).take(MOST_INSTANTS).collect();
    let written = [None];
    let mut tiers = vec![between(&own, &own), between(&own, &written)];
    tiers[0].extend(own.iter().flatten().filter_map(|instant| {
        let (side, readings) = sides.first()?;
        let reading = readings.all.get(at).filter(|reading| reading.is_clock)?;
        let seconds = (reading.value - side.instants.get(instant)?).rem_euclid(DAY);
        Some(Fit::After { instant: instant.clone(), seconds })
    }));
    tiers[1].extend(between(&written, &own));
    if varies {
        let all: Vec<Option<Place>> = instants().take(MOST_INSTANTS).chain([None]).collect();
        tiers.push(between(&all, &all));
    }
    let holds = |fit: &Fit| {
        let mut all = sides.iter();
        all.all(|(side, readings)| {
            readings.all.get(at).is_some_and(|it| fit.holds(place, it, side))
        }) && (!varies || sides.iter().any(|(side, _)| fit.is_long(place, side)))
    };
    let mut tiers = tiers.into_iter().map(|tier| tier.into_iter().filter(holds).collect());
    tiers.find(|tier: &Vec<Fit>| !tier.is_empty()).unwrap_or_default()
}

/// Returns the rules about the time between one of each list.
fn between(from: &[Option<Place>], to: &[Option<Place>]) -> Vec<Fit> {
    let pair = |from: &Option<Place>, to: &Option<Place>| {
        let (from, to) = (from.clone(), to.clone());
        UNITS.map(|unit| Fit::Between { from: from.clone(), to: to.clone(), unit })
    };
    let pairs = from.iter().flat_map(|from| to.iter().map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to).flat_map(|(from, to)| pair(from, to)).collect()
}

impl Fit {
    /// Whether a number follows by this rule.
    fn holds(&self, place: &Place, reading: &Reading, side: &Side) -> bool {
        match self {
            Self::Between { from, to, unit } => {
                // A unit that is shown is the one that counts.
                let unit = if reading.step.is_some() { 1.0 } else { *unit };
                let (Some(from), Some(to)) =
                    (side.instant(from.as_ref(), place), side.instant(to.as_ref(), place))
                else {
                    return false;
                };
                let allowed = reading.step.unwrap_or(unit) + ROUNDING;
                let value = reading.value * unit;
                (to.0 - from.1 - allowed..=to.1 - from.0 + allowed).contains(&value)
            }
            Self::After { instant, seconds } => {
                let Some(at) = side.instants.get(instant).filter(|_| reading.is_clock) else {
                    return false;
                };
                let off = (at + seconds - reading.value).rem_euclid(DAY);
                off.min(DAY - off) <= 2.0 * ROUNDING
            }
        }
    }

    /// Whether the instants are not those of one moment, which says nothing about a number that
    /// varies.
    fn is_long(&self, place: &Place, side: &Side) -> bool {
        let Self::Between { from, to, .. } = self else { return true };
        let (from, to) = (side.instant(from.as_ref(), place), side.instant(to.as_ref(), place));
        from.zip(to).is_some_and(|(from, to)| (to.1 - from.0).abs() > 2.0 * ROUNDING)
    }

    /// Returns the words for this rule about a value of an object.
    fn told(&self, key: &str) -> String {
        let moment = |instant: &Option<Place>| match instant {
            None => "its write".to_owned(),
            Some((of, path)) if of == key => path.clone(),
            Some((of, path)) => format!("{path} of {of}"),
        };
        match self {
            Self::Between { from, to, .. } => {
                format!("the time from {} to {}", moment(from), moment(to))
            }
            Self::After { instant, seconds } => {
                format!("{seconds} s after {}", moment(&Some(instant.clone())))
            }
        }
    }
}

/// The judgement of one end.
struct Judge<'a> {
    elapsed: &'a Elapsed,
    expected: &'a End,
    side: &'a Side,
    is_anew: bool,
}

impl Judge<'_> {
    /// Whether a difference is that of a time or of a count, which a fault may cause.
    fn explains(&self, difference: &Difference) -> bool {
        let place = (difference.key.clone(), difference.place.clone());
        let expected = super::side::reading(self.expected, &place);
        let (Some(old), Some(new)) = (expected, self.side.reading(&place)) else { return false };
        let learnt = self.elapsed.places.get(&place);
        let is_explained = |(at, (old, new)): (usize, (&Reading, &Reading))| {
            let number = learnt.and_then(|learnt| learnt.numbers.get(at));
            let follows = |number: &LearntNumber| {
                number.fits.iter().any(|fit| fit.holds(&place, new, self.side))
                    || (number.varies && number.fits.is_empty())
            };
            old == new
                || number.is_some_and(follows)
                || (number.is_none_or(|number| !number.varies) && self.counts(&place, old, new))
        };
        old.is_like(&new) && old.all.iter().zip(&new.all).enumerate().all(is_explained)
    }

    /// Whether a number counts attempts, of which a fault causes more.
    fn counts(&self, place: &Place, old: &Reading, new: &Reading) -> bool {
        let (key, path) = place;
        let is_told = path.starts_with(".status") || path.starts_with(".metadata.annotations");
        let is_counted = self.side.written(place).is_none_or(|written| written.is_counted);
        if old.step.or(new.step).is_some() || !is_told || !is_counted {
            return false;
        }
        let (fewer, more) = self.attempts(key);
        let (least, most) = (old.value + fewer, old.value + more);
        let least = if self.is_anew { least.min(0.0) } else { least };
        (least..=most).contains(&new.value)
    }

    /// Returns by how many attempts this run may differ from the first one, for an object.
    fn attempts(&self, key: &str) -> (f64, f64) {
        let count = |of: &BTreeMap<Attempt, usize>, attempt: &Attempt| {
            of.get(attempt).copied().map_or(0.0, |count| count as f64)
        };
        let (first, now) = (&self.elapsed.attempts, &self.side.attempts);
        // The count itself needs a write of the object.
        let others =
            first.keys().chain(now.keys()).filter(|attempt| !self.side.is_of(attempt, key));
        let more: Vec<f64> =
            others.map(|attempt| count(now, attempt) - count(first, attempt)).collect();
        let caused = self.side.caused as f64;
        (more.iter().copied().fold(0.0, f64::min), more.into_iter().fold(caused, f64::max))
    }

    /// Returns the difference of a value that does not follow as it should.
    fn broken(&self, place: &Place, learnt: &Learnt) -> Option<Difference> {
        let (key, path) = place;
        let readings = self.side.reading(place)?;
        let difference = |text: String| Difference {
            key: key.clone(),
            path: unplaced(path),
            place: path.clone(),
            text,
            sides: Default::default(),
        };
        for (number, reading) in learnt.numbers.iter().zip(&readings.all) {
            let mut fits = number.fits.iter().filter(|_| number.varies).peekable();
            let Some(first) = fits.peek().copied() else { continue };
            if !fits.any(|fit| fit.holds(place, reading, self.side)) {
                let (shown, rule) = (self.side.shown(place), first.told(key));
                let text = format!("{key}: {path} is {shown}, and is {rule} in undisturbed runs");
                return Some(difference(text));
            }
        }
        let (gap, written) = (learnt.gap?, self.side.written(place)?);
        (self.side.at - written.at > 2.0 * gap + STILL).then(|| {
            let since = self.side.at - written.at;
            let shown = self.side.shown(place);
            difference(format!(
                "{key}: {path} is {shown} and stands still since {since:.0} s, and is renewed within {gap:.0} s in \
                 undisturbed runs"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::explore::state::Masks;

    /// An end at which an object was written at a time, with the times in it.
    fn end(status: Value, at: f64, started: f64) -> Snapshot {
        let id = ("items".to_owned(), "default/a".to_owned());
        let object =
            json!({ "metadata": { "namespace": "default", "name": "a" }, "status": status });
        let mut snapshot = Snapshot::default();
        snapshot.facts.history.changed(&id, &Value::Null, &object, (at, at));
        let created = (".metadata.creationTimestamp".to_owned(), 0.0);
        let times = vec![created, (".status.started".to_owned(), started)];
        snapshot.facts.instants.insert(id.clone(), times);
        snapshot.facts.at = Duration::from_secs(100);
        snapshot.objects.insert(id, object);
        snapshot
    }

    fn texts(first: &Snapshot, slow: &Snapshot, found: &Snapshot) -> Vec<String> {
        let names = Names::default();
        let elapsed = Elapsed::learn(&names, first, &[first.clone()], &[slow.clone()]);
        let (old, new) = (names.end(first), names.end(found));
        let differences = state::differences(&old, &new, &Masks::new());
        let judged = elapsed.judged(differences, &old, (&names, found), false);
        judged.into_iter().map(|difference| difference.text).collect()
    }

    #[test]
    fn a_duration_is_the_time_between_the_start_and_its_write() {
        for shown in [
            |seconds: u32| json!({ "took": seconds }),
            |seconds: u32| json!({ "took": format!("done after {seconds}s") }),
        ] {
            let (first, slow) = (end(shown(0), 0.0, 0.0), end(shown(5), 16.0, 11.0));
            assert_eq!(texts(&first, &slow, &end(shown(12), 15.0, 3.0)), [""; 0]);
            let wrong = texts(&first, &slow, &end(shown(0), 15.0, 3.0));
            let rule = "and is the time from .status.started to its write in undisturbed runs";
            assert!(wrong.len() == 1 && wrong[0].ends_with(rule), "{wrong:?}");
        }
    }

    #[test]
    fn a_time_of_a_day_comes_some_seconds_after_another_time() {
        let shown = |time: &str| json!({ "until": time });
        let (first, slow) = (end(shown("01:00:00"), 0.0, 0.0), end(shown("01:00:11"), 11.0, 11.0));
        assert_eq!(texts(&first, &slow, &end(shown("01:00:30"), 30.0, 30.0)), [""; 0]);
        let wrong = texts(&first, &slow, &end(shown("01:00:00"), 30.0, 30.0));
        assert!(
            wrong[0].ends_with("is 3600 s after .status.started in undisturbed runs"),
            "{wrong:?}"
        );
    }

    #[test]
    fn a_number_that_follows_from_no_time_is_a_difference() {
        let shown = |replicas: u32| json!({ "replicas": replicas });
        let (first, slow) = (end(shown(3), 0.0, 0.0), end(shown(3), 16.0, 11.0));
        assert_eq!(texts(&first, &slow, &end(shown(2), 15.0, 3.0)).len(), 1);
    }

    fn attempts(count: u32, calls: usize, caused: usize) -> Snapshot {
        let mut snapshot = end(json!({ "attempts": 0 }), 0.0, 0.0);
        let id = ("items".to_owned(), "default/a".to_owned());
        for attempt in 1..=count {
            let (before, mut after) =
                (snapshot.objects[&id].clone(), snapshot.objects[&id].clone());
            after["status"]["attempts"] = json!(attempt);
            snapshot.facts.history.changed(&id, &before, &after, (1.0, 1.0));
            snapshot.objects.insert(id.clone(), after);
        }
        let call = ["call", "post", "", "", "deliver"].map(str::to_owned);
        snapshot.facts.attempts.insert(call, calls);
        snapshot.facts.caused = caused;
        snapshot
    }

    #[test]
    fn a_count_may_be_higher_by_the_attempts_that_a_fault_causes() {
        let first = attempts(2, 2, 0);
        for (count, calls, caused, is_found) in
            [(3, 2, 1, false), (4, 4, 1, false), (4, 2, 1, true), (3, 2, 0, true), (1, 2, 1, true)]
        {
            let found = texts(&first, &first, &attempts(count, calls, caused));
            assert_eq!(!found.is_empty(), is_found, "{count} {calls} {caused}: {found:?}");
        }
    }

    #[test]
    fn an_age_must_go_on_growing() {
        let grown = |last: u32| {
            let mut snapshot = end(json!({ "age": "0s" }), 0.0, 0.0);
            let id = ("items".to_owned(), "default/a".to_owned());
            for age in (20..=last).step_by(20) {
                let before = snapshot.objects[&id].clone();
                let mut after = before.clone();
                after["status"]["age"] = json!(format!("{age}s"));
                let at = f64::from(age);
                snapshot.facts.history.changed(&id, &before, &after, (at, at));
                snapshot.objects.insert(id.clone(), after);
            }
            snapshot
        };
        assert_eq!(texts(&grown(80), &grown(100), &grown(60)), [""; 0]);
        let still = texts(&grown(80), &grown(100), &grown(20));
        let text = "items default/a: .status.age is \"20s\" and stands still since 80 s, and is renewed within 20 s in \
                    undisturbed runs";
        assert_eq!(still, [text]);
    }
}
