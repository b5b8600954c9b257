//! Plans: the disturbances of one run, how they are written, and which ones a reference run gives.

// DESIGN.md, 196: A disturbance is named by the number of a request or of a change

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::monitor::{Change, Recording};
use windlass_core::rng::Rng;

/// A disturbance of one request of the operator, or of the delivery of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    /// The operator crashes; the request is not executed.
    CrashBefore,
    /// The operator crashes once the request has been executed.
    CrashAfter,
    /// The request is executed, and its connection is cut without an answer.
    LoseAnswer,
    /// The request is refused with this code.
    Refuse(u16),
    /// The request is executed, and the answer has this code.
    Fail(u16),
    /// The request arrives ten seconds late.
    Late,
    /// Another client edits the object before the request is executed.
    Edit,
    /// The watches of the kind are held from this change to the next one of the same object, or 45 s.
    Hold,
    /// The watches of the kind are held for ten seconds from this change.
    Lag,
    /// The watches of the kind end with 410 before they deliver this change.
    Relist,
}

/// A disturbance, and the number of the request or change that it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) kind: Disturbance,
    pub(super) at: usize,
}

/// The disturbances of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
}

/// Names of the disturbances in a plan's text.
const NAMES: [(&str, Disturbance); 13] = [
    ("crash-before", Disturbance::CrashBefore),
    ("crash-after", Disturbance::CrashAfter),
    ("lose-answer", Disturbance::LoseAnswer),
    ("refuse-429", Disturbance::Refuse(429)),
    ("refuse-500", Disturbance::Refuse(500)),
    ("refuse-504", Disturbance::Refuse(504)),
    ("fail-500", Disturbance::Fail(500)),
    ("fail-504", Disturbance::Fail(504)),
    ("late", Disturbance::Late),
    ("edit", Disturbance::Edit),
    ("hold", Disturbance::Hold),
    ("lag", Disturbance::Lag),
    ("relist", Disturbance::Relist),
];

impl Disturbance {
    /// Whether the number of a step is that of a change rather than of a request.
    pub(super) fn is_of_change(self) -> bool {
        matches!(self, Self::Hold | Self::Lag | Self::Relist)
    }

    /// Returns the sentence that tells the disturbance of `subject`.
    pub(super) fn told(self, subject: &str) -> String {
        match self {
            Self::CrashBefore => {
                format!("the operator crashed before {subject} was executed, and was started again")
            }
            Self::CrashAfter => format!(
                "the operator crashed just after {subject} was executed, and was started again"
            ),
            Self::LoseAnswer => format!("{subject} was executed, but its answer was lost"),
            Self::Refuse(code) => format!("{subject} was refused with {code}"),
            Self::Fail(code) => format!("{subject} was executed, but answered with {code}"),
            Self::Late => format!("{subject} reached the server ten seconds late"),
            Self::Edit => format!("another client edited the object just before {subject}"),
            Self::Hold => format!(
                "the event of {subject} was held until the object's next one, for 45 s at most"
            ),
            Self::Lag => format!("events of the kind were held for ten seconds from {subject}"),
            Self::Relist => format!("the watch ended with 410 before {subject} was delivered"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            let name =
                NAMES.iter().find(|(_, kind)| *kind == step.kind).map_or("?", |(name, _)| name);
            write!(f, "{}{name}@{}", if index == 0 { "" } else { "," }, step.at)?;
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let step = |text: &str| {
            let (name, at) = text.split_once('@')?;
            let (_, kind) = NAMES.iter().find(|(known, _)| *known == name)?;
            Some(Step { kind: *kind, at: at.parse().ok()? })
        };
        let steps = text.split(',').filter(|text| !text.is_empty());
        let steps =
            steps.map(|text| step(text).ok_or_else(|| format!("`{text}` is not a step of a plan")));
        Ok(Self { steps: steps.collect::<Result<_, _>>()? })
    }
}

/// Most plans for equal requests, and for changes of one object by one user.
const REPEATS: usize = 8;

/// Returns the plans with one disturbance that a reference run gives, one of each pattern in turn.
pub(super) fn single(reference: &Recording) -> Vec<Plan> {
    let mut patterns = vec![crashes(reference)];
    patterns.extend(of_changes(reference));
    patterns.extend(of_requests(reference));
    let mut plans = Vec::new();
    let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
    for index in 0..longest {
        let steps = patterns.iter().filter_map(|pattern| pattern.get(index));
        plans.extend(steps.map(|step| Plan { steps: vec![*step] }));
    }
    plans
}

/// Returns `count` plans with two disturbances, drawn from the single ones.
pub(super) fn pairs(single: &[Plan], count: usize, rng: &Rng) -> Vec<Plan> {
    let bound = u64::try_from(single.len()).unwrap_or(u64::MAX);
    if bound < 2 {
        return Vec::new();
    }
    let draw = || usize::try_from(rng.below(bound)).ok().and_then(|index| single.get(index));
    let pair = |_| {
        let mut steps: Vec<Step> =
            [draw()?, draw()?].into_iter().flat_map(|plan| plan.steps.clone()).collect();
        steps.sort_by_key(|step| step.at);
        steps.dedup();
        Some(Plan { steps })
    };
    (0..count).filter_map(pair).filter(|plan| plan.steps.len() == 2).collect()
}

/// Returns the crashes around writes. Before a write the world is that after the previous change, so a
/// crash there is left out where the previous change is the operator's own.
fn crashes(reference: &Recording) -> Vec<Step> {
    let mut steps = Vec::new();
    for (at, request) in reference.requests.iter().enumerate() {
        let Some(first) = request.changes.first() else { continue };
        if !request.is_disturbed() || !reference.changes[*first].is_relevant {
            continue;
        }
        let previous = reference.changes[..*first].iter().rev().find(|change| change.is_relevant);
        if previous.is_none_or(|change| !change.by_operator) {
            steps.push(Step { kind: Disturbance::CrashBefore, at });
        }
        steps.push(Step { kind: Disturbance::CrashAfter, at });
    }
    steps
}

/// Returns the disturbances of events: those of kinds that the operator watches, by pattern.
fn of_changes(reference: &Recording) -> Vec<Vec<Step>> {
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
    let has_next = |at: usize, change: &Change| {
        reference.changes[at + 1..].iter().any(|later| later.key == change.key && later.is_relevant)
    };
    let holds = wanted.iter().filter(|(at, change)| has_next(*at, change));
    let step = |kind: Disturbance, at: usize| Step { kind, at };
    vec![
        holds.map(|(at, _)| step(Disturbance::Hold, *at)).collect(),
        wanted.iter().map(|(at, _)| step(Disturbance::Lag, *at)).collect(),
        wanted.iter().map(|(at, _)| step(Disturbance::Relist, *at)).collect(),
    ]
}

/// Returns the disturbances of requests, by pattern.
fn of_requests(reference: &Recording) -> Vec<Vec<Step>> {
    let mut patterns: Vec<Vec<Step>> = vec![Vec::new(); 4];
    let mut seen: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for (at, request) in reference.requests.iter().enumerate() {
        if !request.is_disturbed() {
            continue;
        }
        let count = seen.entry((
            request.verb.as_str(),
            request.resource.as_str(),
            request.subresource.as_str(),
        ));
        let count = count.or_default();
        *count += 1;
        if *count > REPEATS {
            continue;
        }
        let mut add = |pattern: usize, kind| patterns[pattern].push(Step { kind, at });
        add(0, Disturbance::Refuse(500));
        if request.is_write() {
            add(1, Disturbance::LoseAnswer);
            add(1, Disturbance::Fail(504));
            add(2, Disturbance::Late);
        }
        if matches!(request.verb.as_str(), "update" | "patch" | "delete")
            && !request.changes.is_empty()
        {
            add(3, Disturbance::Edit);
        }
        if *count == 1 {
            add(0, Disturbance::Refuse(429));
            add(0, Disturbance::Refuse(504));
        }
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        for text in ["", "crash-after@17", "hold@3,crash-before@12", "fail-504@1", "refuse-429@0"] {
            let plan: Plan = text.parse().expect("the text is a plan");
            assert_eq!(plan.to_string(), text);
        }
        for text in ["crash-after", "crash@1", "late@x"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_disturbance_has_a_name() {
        let kinds: BTreeSet<Disturbance> = NAMES.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds.len(), NAMES.len());
    }
}
