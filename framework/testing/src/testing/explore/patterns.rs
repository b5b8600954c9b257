//! Patterns: which disturbances a reference run gives.

// DESIGN.md, 231: Plans that repeat the world of another one are left out

use std::collections::{BTreeMap, BTreeSet};

use super::monitor::{OperatorRequest, RecordedChange, Recording};
use super::schedule::{Disturbance, PlannedDisturbance, Schedule};
use windlass_core::rng::Rng;

/// Most plans for equal requests, and for changes of one object by one user.
const REPEATS: usize = 8;
/// Most earlier states of an object that a stale start shows.
const OLDEST: u8 = 3;
/// Most plans with two hand-overs.
const RETURNS: usize = 8;

/// Returns the plans with one disturbance that a reference run gives, one of each pattern in turn.
/// `stale` adds stale starts, `replicated` hand-overs: the reference run of two replicas.
pub(super) fn single(
    reference: &Recording,
    replicated: Option<&Recording>,
    stale: bool,
) -> Vec<Schedule> {
    let mut patterns = vec![crashes(reference)];
    patterns.extend(of_changes(reference));
    patterns.push(recreations(reference));
    patterns.extend(of_requests(reference));
    if stale {
        patterns.push(stale_starts(reference));
    }
    let mut patterns: Vec<Vec<Schedule>> = patterns
        .into_iter()
        .map(|steps| steps.into_iter().map(|step| Schedule { steps: vec![step] }).collect())
        .collect();
    patterns.extend(replicated.map(hand_overs));
    let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
    let turn = |index: usize| patterns.iter().filter_map(move |pattern| pattern.get(index));
    (0..longest).flat_map(turn).cloned().collect()
}

/// Returns `count` plans with two disturbances, drawn from the single ones.
pub(super) fn pairs(single: &[Schedule], count: usize, rng: &Rng) -> Vec<Schedule> {
    // The numbers of hand-overs are those of another reference run.
    let single: Vec<&Schedule> = single.iter().filter(|plan| !plan.is_replicated()).collect();
    let bound = u64::try_from(single.len()).unwrap_or(u64::MAX);
    if bound < 2 {
        return Vec::new();
    }
    let draw = || usize::try_from(rng.below(bound)).ok().and_then(|index| single.get(index));
    let pair = |_| {
        let mut steps: Vec<PlannedDisturbance> =
            [draw()?, draw()?].into_iter().flat_map(|plan| plan.steps.clone()).collect();
        steps.sort_by_key(|step| step.at);
        steps.dedup();
        Some(Schedule { steps })
    };
    (0..count).filter_map(pair).filter(|plan| plan.steps.len() == 2).collect()
}

/// Returns the crashes around writes. Before a write the world is that after the previous change,
/// so a crash there is left out where the previous change is the operator's own.
fn crashes(reference: &Recording) -> Vec<PlannedDisturbance> {
    let mut steps = Vec::new();
    for (at, request) in writes(reference) {
        let Some(first) = request.changes.first() else { continue };
        let previous = reference.changes[..*first].iter().rev().find(|change| change.is_relevant);
        if previous.is_none_or(|change| !change.by_operator) {
            steps.push(PlannedDisturbance { kind: Disturbance::CrashBefore, at });
        }
        steps.push(PlannedDisturbance { kind: Disturbance::CrashAfter, at });
    }
    steps
}

/// Iterates over the requests that changed something that oracles judge.
fn writes(reference: &Recording) -> impl Iterator<Item = (usize, &OperatorRequest)> {
    reference.requests.iter().enumerate().filter(|(_, request)| {
        let first = request.changes.first().and_then(|first| reference.changes.get(*first));
        request.is_disturbed() && first.is_some_and(|change| change.is_relevant)
    })
}

/// Returns the hand-overs at writes, and some that lead back to the first replica.
fn hand_overs(reference: &Recording) -> Vec<Schedule> {
    let step = |(at, _)| PlannedDisturbance { kind: Disturbance::HandOver, at };
    let steps: Vec<PlannedDisturbance> = writes(reference).map(step).collect();
    let half = steps.len().div_ceil(2);
    let back = steps.iter().zip(&steps[half..]).take(RETURNS);
    let back = back.map(|(there, back)| Schedule { steps: vec![*there, *back] });
    steps.iter().map(|step| Schedule { steps: vec![*step] }).chain(back).collect()
}

/// Returns the changes of kinds that the operator watches, the first ones of each object.
fn wanted(reference: &Recording) -> Vec<(usize, &RecordedChange)> {
    let watched: BTreeSet<&str> = reference
        .requests
        .iter()
        .filter(|request| request.verb == "watch" || request.verb == "list")
        .map(|request| request.resource.as_str())
        .collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wanted = Vec::new();
    for (at, change) in reference.changes.iter().enumerate() {
        if change.is_relevant && watched.contains(change.plural()) {
            let count = seen.entry(change.key.as_str()).or_default();
            *count += 1;
            if *count <= REPEATS {
                wanted.push((at, change));
            }
        }
    }
    wanted
}

/// Returns the disturbances of events: those of kinds that the operator watches, by pattern.
fn of_changes(reference: &Recording) -> Vec<Vec<PlannedDisturbance>> {
    let wanted = wanted(reference);
    let has_next = |at: usize, change: &RecordedChange| {
        reference.changes[at + 1..].iter().any(|later| later.key == change.key && later.is_relevant)
    };
    // Changes of a kind without a request or time between them are delivered together.
    let is_first = |index: usize| {
        let (_, change) = wanted[index];
        let mut earlier = wanted[..index].iter().rev().map(|(_, earlier)| *earlier);
        let previous = earlier.find(|earlier| earlier.plural() == change.plural());
        previous
            .is_none_or(|previous| (previous.requests, previous.at) != (change.requests, change.at))
    };
    let holds = wanted.iter().filter(|(at, change)| has_next(*at, change)).map(|(at, _)| *at);
    let firsts: Vec<usize> =
        (0..wanted.len()).filter(|index| is_first(*index)).map(|index| wanted[index].0).collect();
    let step = |kind: Disturbance| move |at: usize| PlannedDisturbance { kind, at };
    vec![
        holds.map(step(Disturbance::Hold)).collect(),
        firsts.iter().copied().map(step(Disturbance::Lag)).collect(),
        firsts.iter().copied().map(step(Disturbance::Relist)).collect(),
    ]
}

/// Returns the replacements of objects that carry finalizers of the operator: others may never go.
fn recreations(reference: &Recording) -> Vec<PlannedDisturbance> {
    let mut by_operator: BTreeMap<&str, bool> = BTreeMap::new();
    // As in `is_replaceable`.
    let mut declared_anew: BTreeSet<&str> = BTreeSet::new();
    let mut steps = Vec::new();
    for (at, change) in wanted(reference) {
        if change.by_user && change.verb == "updates" {
            declared_anew.insert(&change.key);
        }
        if change.has_finalizers && change.verb != "deletes" {
            let is_own = *by_operator.entry(change.key.as_str()).or_insert(change.by_operator);
            let is_first = !declared_anew.contains(change.key.as_str());
            if is_own && is_first && !change.is_terminating {
                steps.push(PlannedDisturbance { kind: Disturbance::Recreate, at });
            }
        }
    }
    steps
}

/// Returns the starts on caches that show earlier states of an object.
fn stale_starts(reference: &Recording) -> Vec<PlannedDisturbance> {
    let mut seen: BTreeMap<&str, u8> = BTreeMap::new();
    let mut steps = Vec::new();
    for (at, change) in wanted(reference) {
        let earlier = seen.entry(change.key.as_str()).or_default();
        let oldest = (*earlier).clamp(1, OLDEST);
        *earlier = earlier.saturating_add(1);
        steps.extend(
            (1..=oldest).map(|back| PlannedDisturbance { kind: Disturbance::StaleStart(back), at }),
        );
    }
    steps
}

/// Returns the disturbances of requests, by pattern.
fn of_requests(reference: &Recording) -> Vec<Vec<PlannedDisturbance>> {
    let mut patterns: Vec<Vec<PlannedDisturbance>> = vec![Vec::new(); 5];
    let mut seen: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for (at, request) in reference.requests.iter().enumerate() {
        if !request.is_disturbed() {
            continue;
        }
        let key = (request.verb.as_str(), request.resource.as_str(), request.subresource.as_str());
        let count = seen.entry(key).or_default();
        *count += 1;
        if *count > REPEATS {
            continue;
        }
        let mut add =
            |pattern: usize, kind| patterns[pattern].push(PlannedDisturbance { kind, at });
        add(0, Disturbance::Refuse(500));
        if request.is_write() {
            add(1, Disturbance::LoseAnswer);
            add(1, Disturbance::Fail(504));
            add(2, Disturbance::Late);
            add(2, Disturbance::Pause);
        }
        let is_of_object = matches!(request.verb.as_str(), "update" | "patch" | "delete");
        if is_of_object && !request.changes.is_empty() {
            add(3, Disturbance::Edit);
            if request.verb == "update" {
                add(3, Disturbance::Refuse(409));
            }
        }
        if is_replaceable(reference, request) {
            add(4, Disturbance::Replace);
        }
        if *count == 1 {
            add(0, Disturbance::Refuse(429));
            add(0, Disturbance::Refuse(504));
        }
    }
    patterns
}

/// Whether the object of a request exists before it, and no finalizer delays its deletion.
fn is_replaceable(reference: &Recording, request: &OperatorRequest) -> bool {
    if request.name.is_empty() || request.verb == "create" {
        return false;
    }
    let end = request.changes.first().copied();
    let is_before = |(at, change): &(usize, &RecordedChange)| match end {
        Some(end) => *at < end,
        None => change.at <= request.at,
    };
    let is_same = |change: &&RecordedChange| {
        change.plural() == request.resource
            && change.name.0 == request.namespace
            && change.name.1 == request.name
    };
    let before = reference.changes.iter().enumerate().filter(is_before);
    let states: Vec<&RecordedChange> = before.map(|(_, change)| change).filter(is_same).collect();
    // The end may depend on what users declared before, of which a new object knows nothing.
    let is_declared_anew = states.iter().any(|state| state.by_user && state.verb == "updates");
    let last = states.last();
    last.is_some_and(|change| change.verb != "deletes" && !change.has_finalizers)
        && !is_declared_anew
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans(texts: &[&str]) -> Vec<Schedule> {
        texts.iter().map(|text| text.parse().expect("the text is a plan")).collect()
    }

    #[test]
    fn pairs_have_no_hand_over() {
        let single = plans(&["late@1", "hand-over@2", "hold@3"]);
        let pairs = pairs(&single, 50, &Rng::seeded(1));
        assert!(pairs.len() > 10, "{pairs:?}");
        assert!(pairs.iter().all(|plan| !plan.is_replicated()), "{pairs:?}");
    }
}
