//! Oracles: what undisturbed runs show is expected, and what a disturbed run must not differ in.

// DESIGN.md, 197: An oracle judges what a correct operator cannot do
// DESIGN.md, 235: An end is judged for rest as well

pub(super) mod renewed;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::monitor::{Observed, RecordedChange};
use super::outcome::Outcome;
use super::schedule::{Disturbance, PlannedDisturbance};
use super::state::{self, End, Masks, StateDifference};
use super::varying::elapsed;
use super::varying::names::{Snapshot, VaryingNames};
use super::varying::relations::Relations;

/// Updates of one object that a disturbance may add.
const MORE_UPDATES: usize = 10;

/// Results of the undisturbed runs.
#[derive(Debug)]
pub(super) struct Expectation {
    end: End,
    /// The end as it is stored.
    stored: Snapshot,
    observed: Observed,
    names: VaryingNames,
    masks: Masks,
    /// Those of single writes, in which names are as they are stored.
    write_masks: Masks,
    relations: Relations,
    /// Most creations, updates and deletions of each key by the operator.
    most: BTreeMap<(String, &'static str), usize>,
    /// Writes of the operator, without masked places; most in one run.
    writes: BTreeMap<WriteKey, usize>,
    /// Writes of the first run, in order, with their virtual times in milliseconds and their
    /// reconciles.
    order: Vec<(WriteKey, u128, String)>,
    /// Sentences about parts that are not at rest at the end of undisturbed runs either.
    busy: BTreeSet<String>,
    /// Longest virtual time from the last disturbance to the operator's last change, beyond that of
    /// undisturbed runs from the last step of a user.
    within: Duration,
    slowest: Duration,
}

/// Key, verb, and state after the write as JSON.
type WriteKey = (String, &'static str, String);

/// Judgement on a run that differed.
#[derive(Clone, Debug)]
pub(super) struct RunVerdict {
    /// Heading, such as "the end differs".
    pub(super) heading: &'static str,
    /// The differences, a sentence each.
    pub(super) details: Vec<String>,
    /// The first write that differed; empty when all were expected.
    pub(super) first: String,
    /// The reconcile of that write, with its reasons; empty where it is not known.
    pub(super) because: String,
}

impl RunVerdict {
    /// Returns a verdict without a first write that differed.
    pub(super) fn of(heading: &'static str, details: Vec<String>) -> Self {
        Self { heading, details, first: String::new(), because: String::new() }
    }

    /// Returns the text by which findings of one cause are grouped.
    pub(super) fn cause(&self) -> String {
        if self.first.is_empty() {
            format!("{}{:?}", self.heading, self.details)
        } else {
            self.first.clone()
        }
    }
}

/// Returns the operator's writes that oracles judge.
fn writes(outcome: &Outcome) -> impl Iterator<Item = &RecordedChange> {
    outcome.recording.changes.iter().filter(|change| change.by_operator && change.is_relevant)
}

impl Expectation {
    /// Returns the outcome on which undisturbed runs agree. `first` gives the end; `others`, with
    /// other seeds and times, the names and values that vary; all of them, and those `delayed`, the
    /// bounds of writes; those of `worse`, lists of runs that are disturbed more from one to the
    /// next, the values that grow with that. `within` is the bound of the time to rest.
    ///
    /// # Errors
    /// The differences that no mask can cover: whole objects.
    pub(super) fn new(
        first: &Outcome,
        others: &[Outcome],
        delayed: &[Outcome],
        worse: &[Vec<Outcome>],
        within: Duration,
    ) -> Result<Self, Vec<String>> {
        let mut names = VaryingNames::default();
        others.iter().for_each(|other| names.learn(&first.end, &other.end));
        let end = names.end(&first.end);
        let ends: Vec<End> = others.iter().map(|other| names.end(&other.end)).collect();
        let mut places = masks(others, |outcome| names.end(&outcome.end), first)?;
        for runs in worse {
            let ends: Vec<End> = runs.iter().map(|outcome| names.end(&outcome.end)).collect();
            elapsed::learn(&end, &ends, &mut places);
        }
        // Names without numbers have places of their own.
        let unnumbered = names.unnumbered();
        places.extend(masks(others, |outcome| unnumbered.end(&outcome.end), first)?);
        let mut write_masks = masks(others, |outcome| names.stored(&outcome.end), first)?;
        write_masks.extend(places.iter().cloned());
        let mut expected = Self {
            relations: Relations::of(&end, &ends),
            end,
            stored: first.end.clone(),
            observed: first.observed.clone(),
            names,
            masks: places,
            write_masks,
            most: BTreeMap::new(),
            writes: BTreeMap::new(),
            order: Vec::new(),
            busy: BTreeSet::new(),
            within,
            slowest: Duration::ZERO,
        };
        expected.order = writes(first)
            .map(|change| (expected.write(change), change.at.as_millis(), change.because.clone()))
            .collect();
        let undisturbed = std::iter::once(first).chain(others).chain(delayed);
        undisturbed.for_each(|outcome| expected.admit(outcome));
        Ok(expected)
    }

    /// Lets disturbed runs do what an undisturbed one does.
    pub(super) fn admit(&mut self, outcome: &Outcome) {
        self.busy.extend(outcome.busy.iter().cloned());
        // An operator that needs long by itself may do so after a disturbance, too.
        self.slowest = self.slowest.max(outcome.rest());
        for (key, count) in self.counts(outcome) {
            let most = self.most.entry(key).or_default();
            *most = count.max(*most);
        }
        let mut seen: BTreeMap<WriteKey, usize> = BTreeMap::new();
        writes(outcome).for_each(|change| *seen.entry(self.write(change)).or_default() += 1);
        for (write, count) in seen {
            let most = self.writes.entry(write).or_default();
            *most = count.max(*most);
        }
    }

    /// Returns a write without masked places.
    fn write(&self, change: &RecordedChange) -> WriteKey {
        let after = state::masked(&change.key, &change.after, &self.write_masks);
        (self.names.key(&change.key), change.verb, after.to_string())
    }

    /// Whether a run has come to the end on which undisturbed runs were restarted.
    pub(super) fn is_end(&self, outcome: &Outcome) -> bool {
        self.observed == outcome.observed
            && self.differences(&outcome.end).is_empty()
            && self.busy(outcome).is_empty()
    }

    /// Returns the places in which an end differs.
    pub(super) fn differences(&self, end: &Snapshot) -> Vec<StateDifference> {
        let end = self.names.end(end);
        let mut differences = state::differences(&self.end, &end, &self.masks);
        differences.extend(self.relations.broken(&end));
        differences
    }

    /// Returns the places in which an end differs where objects were replaced: counters that go on
    /// have counted replaced objects twice, and generations start again.
    fn differences_after_replacement(&self, end: &Snapshot) -> Vec<StateDifference> {
        let names = self.names.unnumbered();
        let (old, new) = (names.end(&self.stored), names.end(end));
        let mut differences = state::differences(&old, &new, &self.masks);
        let number = |text: &str| text.trim_matches('"').parse::<i64>().ok();
        differences.retain(|difference| {
            let [old, new] = &difference.sides;
            let (Some(old), Some(new)) = (number(old), number(new)) else { return true };
            !self.stored.uids.are_generations(old, &end.uids, new)
        });
        differences.extend(self.relations.broken(&self.names.end(end)));
        differences
    }

    /// Returns the sentences about busy parts at an end that are at rest in undisturbed runs.
    pub(super) fn busy(&self, outcome: &Outcome) -> Vec<String> {
        let busy = outcome.busy.iter().filter(|text| !self.busy.contains(*text));
        busy.cloned().collect()
    }

    /// Returns the sentence about an operator that came to rest too late.
    fn lateness(&self, outcome: &Outcome) -> Option<String> {
        let (rest, within) = (outcome.rest(), self.within + self.slowest);
        (rest > within).then(|| {
            let (rest, within) = (rest.as_secs(), within.as_secs());
            format!("its last change came {rest} s after the last disturbance, and {within} s are allowed")
        })
    }

    /// Judges a run.
    pub(super) fn judge(&self, outcome: &Outcome) -> Option<RunVerdict> {
        // A step of the workload may need an object that exists no more for a moment, since the
        // garbage collector deletes the children of an object that was replaced.
        let is_replaced = |step: &PlannedDisturbance| step.kind.is_replacement();
        if outcome.has_panicked && outcome.recording.caused.iter().any(is_replaced) {
            return None;
        }
        let (heading, details) = if let Some(failure) = &outcome.failure {
            ("the run failed", vec![failure.clone()])
        } else {
            let ends = if outcome.recording.caused.iter().any(is_replaced) {
                self.differences_after_replacement(&outcome.end)
            } else {
                self.differences(&outcome.end)
            };
            let ends = ends.into_iter().map(|difference| difference.text);
            let judged = [
                ("a replica wrote without the lease", outcome.recording.violations.clone()),
                ("an edit of another client was undone", outcome.recording.undone.clone()),
                ("the end differs", ends.collect()),
                ("the operator is not at rest at the end", self.busy(outcome)),
                ("the operator wrote more than it needs to", self.surplus(outcome)),
                ("the operator came to rest late", self.lateness(outcome).into_iter().collect()),
                ("the end is not a fixpoint", late_changes(outcome)),
            ];
            judged.into_iter().find(|(_, details): &(_, Vec<String>)| !details.is_empty())?
        };
        let (first, because) = self.first(outcome);
        Some(RunVerdict { heading, details, first, because })
    }

    /// Returns the writes beyond those of undisturbed runs.
    fn surplus(&self, outcome: &Outcome) -> Vec<String> {
        let caused = |is_meant: fn(Disturbance) -> bool| {
            outcome.recording.caused.iter().any(|step| is_meant(step.kind))
        };
        // The garbage collector deletes the children of an object that was replaced, and what was
        // seen too late is made once more. Deletions upon a stale view are what such a start looks
        // for.
        let is_replaced = caused(Disturbance::is_replacement);
        let is_stale = caused(|kind| matches!(kind, Disturbance::StaleStart(_)));
        // A creation whose answer is lost must be made again when its name is generated, unless the
        // operator chose the name: too many for a while are no fault of an operator that removes
        // the surplus.
        let loses = caused(|kind| matches!(kind, Disturbance::LoseAnswer | Disturbance::Fail(_)));
        let mut surplus = Vec::new();
        for ((key, verb), count) in self.counts(outcome) {
            let most = self.most.get(&(key.clone(), verb)).copied().unwrap_or_default();
            let allowed = if verb == "updates" { most * 3 + MORE_UPDATES } else { most };
            let is_forgiven = match verb {
                "updates" => false,
                "creates" => is_replaced || is_stale,
                _ => is_replaced,
            };
            if count > allowed && !is_forgiven && !(loses && key.ends_with('*')) {
                surplus.push(format!(
                    "it {verb} {key} {count} times, and {most} times in undisturbed runs"
                ));
            }
        }
        surplus
    }

    /// Returns the numbers of the operator's creations, updates and deletions, by key.
    fn counts(&self, outcome: &Outcome) -> BTreeMap<(String, &'static str), usize> {
        let mut counts = BTreeMap::new();
        writes(outcome).for_each(|change| {
            *counts.entry((self.names.key(&change.key), change.verb)).or_default() += 1;
        });
        counts
    }

    /// Returns the sentence about the first write that no undisturbed run made, or else the first
    /// one that was not made; and the reconcile of that write.
    fn first(&self, outcome: &Outcome) -> (String, String) {
        let mut left = self.writes.clone();
        for change in writes(outcome) {
            match left.get_mut(&self.write(change)) {
                Some(count) if *count > 0 => *count -= 1,
                _ => {
                    let at = change.at.as_millis() as f64 / 1000.0;
                    let text = format!("at {at:.1} s the operator {} {}", change.verb, change.key);
                    return (text, change.because.clone());
                }
            }
        }
        let mut made: BTreeMap<WriteKey, usize> = BTreeMap::new();
        writes(outcome).for_each(|change| *made.entry(self.write(change)).or_default() += 1);
        for (write, at, because) in &self.order {
            match made.get_mut(write) {
                Some(count) if *count > 0 => *count -= 1,
                _ => {
                    let at = *at as f64 / 1000.0;
                    let (key, verb, _) = write;
                    let text =
                        format!("never, while at {at:.1} s of the undisturbed run it {verb} {key}");
                    return (text, because.clone());
                }
            }
        }
        (String::new(), String::new())
    }
}

/// Returns the places in which undisturbed runs differ.
///
/// # Errors
/// The differences that no mask can cover: whole objects.
fn masks(
    others: &[Outcome],
    end_of: impl Fn(&Outcome) -> End,
    first: &Outcome,
) -> Result<Masks, Vec<String>> {
    let end = end_of(first);
    let (mut masks, mut missing) = (Masks::new(), Vec::new());
    for other in others {
        for difference in state::differences(&end, &end_of(other), &Masks::new()) {
            if difference.path.is_empty() {
                missing.push(difference.text);
            } else {
                difference.mask(&mut masks);
            }
        }
    }
    if missing.is_empty() { Ok(masks) } else { Err(missing) }
}

/// Returns the operator's changes after the last restart, a sentence each.
pub(super) fn late_changes(outcome: &Outcome) -> Vec<String> {
    let changes = &outcome.recording.changes;
    let late = changes.iter().enumerate().skip(outcome.restart);
    let late = late.filter(|(_, change)| change.by_operator && change.is_relevant);
    late.map(|(number, change)| {
        let places = renewed::described(&changes[..=number], number);
        let places = if places.is_empty() { places } else { format!(" ({places})") };
        format!("started again on the settled end, it {} {}{places}", change.verb, change.key)
    })
    .take(8)
    .collect()
}

/// Whether two runs made the same changes in the same order, those of bookkeeping left out.
pub(super) fn are_equal(one: &Outcome, other: &Outcome) -> bool {
    let changes = |outcome: &Outcome| -> Vec<(String, &'static str, Value)> {
        let changes = outcome.recording.changes.iter().filter(|change| change.is_relevant);
        changes.map(|change| (change.key.clone(), change.verb, change.after.clone())).collect()
    };
    changes(one) == changes(other)
}
