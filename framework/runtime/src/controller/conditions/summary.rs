//! The conditions of an object after a reconcile, from its outcome, from the conditions that it has
//! set, and from those before. Decides, without I/O.
//!
//! Invariant: after a reconcile of the controller whose root is `Ready`, exactly one of three
//! holds: `Ready` is true, `Reconciling` is true, `Stalled` is true. That is how kstatus tells
//! `Current`, `InProgress` and `Failed` apart. `Reconciling`, `Stalled` and `Paused` are absent
//! unless true.

// DESIGN.md, 161: `Ready` follows from the outcome of a reconcile and from declared conditions
// DESIGN.md, 162: `Reconciling`, `Stalled` and `Paused` belong to the controller of `Ready`
// DESIGN.md, 190: A child that has failed stalls its owner, and is no failed reconcile

use std::borrow::Cow;

use jiff::Timestamp;

use super::ConditionChange;
use super::accepted::{MESSAGE_LIMIT, is_valid};
use super::reasons::{
    DEPENDENT_FAILED, FAILED, GAVE_UP, RECONCILED, REFUSED, TERMINAL, TERMINATING, WAITING,
};
use crate::controller::outcome::action::Wait;
use crate::controller::source::PAUSED as PAUSED_BY;
use windlass_core::conditions::{Condition, ConditionTypes, Conditions, met, unknown, unmet};
use windlass_core::text::shorten;

/// The root of the controller that keeps the conditions below.
pub(crate) const READY: &str = "Ready";
const RECONCILING: &str = "Reconciling";
const STALLED: &str = "Stalled";
const PAUSED: &str = "Paused";
/// The conditions that are absent unless true, as kstatus reads them, and the pause.
const ABNORMAL: [&str; 3] = [RECONCILING, STALLED, PAUSED];

/// Reason of an unknown condition that no reconcile of this generation has set.
const NOT_REPORTED: &str = "NotReported";
/// End of a reconcile, as conditions show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionOutcome {
    pub(crate) state: OutcomeState,
    /// One word for programs.
    pub(crate) reason: Cow<'static, str>,
    /// A text for people.
    pub(crate) message: String,
}

impl ConditionOutcome {
    /// A success, with what a person should know of it.
    pub(crate) fn done(remarks: String) -> Self {
        Self { state: OutcomeState::Done, reason: RECONCILED.into(), message: remarks }
    }

    /// The object is paused.
    pub(crate) fn paused() -> Self {
        let message = format!("not reconciled while the annotation {PAUSED_BY} is \"true\"");
        Self { state: OutcomeState::Paused, reason: PAUSED.into(), message }
    }
}

impl Wait {
    /// Returns the wait as the end of a reconcile, or of a clean-up.
    pub(crate) fn outcome(&self, is_terminating: bool) -> ConditionOutcome {
        // A clean-up goes on whatever has failed.
        let is_stalled = self.is_stalled && !is_terminating;
        let state = if is_stalled { OutcomeState::DependentFailed } else { OutcomeState::Waiting };
        // A reason that the API server refuses is no loss: it stands in the message.
        if is_terminating || !is_valid(&self.reason) {
            let reason = match is_terminating {
                true => TERMINATING,
                false if is_stalled => DEPENDENT_FAILED,
                false => WAITING,
            };
            let message = format!("{}: {}", self.reason, self.text);
            return ConditionOutcome { state, reason: reason.into(), message };
        }
        ConditionOutcome { state, reason: self.reason.clone(), message: self.text.clone() }
    }
}

/// The part of an outcome that decides about the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutcomeState {
    /// The reconcile has ended without a wait.
    Done,
    /// It waits.
    Waiting,
    /// It has ended, and a child has failed: nothing is on its way that would make the object
    /// ready.
    DependentFailed,
    /// It failed, and is tried again.
    Retried,
    /// It failed, and nothing helps but a change: of the object, or of what the API server permits.
    Stalled,
    /// It was skipped, because the object is paused.
    Paused,
}

/// A reconcile, as the summary reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SummaryInput<'a> {
    /// The conditions that it has set or cleared.
    pub(crate) changes: &'a [ConditionChange],
    pub(crate) outcome: &'a ConditionOutcome,
    /// The reconciled generation.
    pub(crate) generation: Option<i64>,
    pub(crate) now: Timestamp,
}

impl OutcomeState {
    /// Whether the reconcile has come to its end, so that what it did not set does not hold.
    fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Waiting | Self::DependentFailed)
    }
}

/// The result for the root and its companions.
struct SummaryConditions {
    root: Condition,
    /// `Reconciling` or `Stalled`.
    companion: Option<Condition>,
}

/// Returns all types that a controller keeps.
pub(crate) fn own_types(declared: &ConditionTypes) -> impl Iterator<Item = &'static str> {
    let of_reconciler =
        [declared.ready, declared.stalled_on, declared.others].into_iter().flatten();
    let companions = if declared.root == READY { &ABNORMAL[..] } else { &[] };
    of_reconciler.chain(companions).copied().chain([declared.root])
}

/// Returns the own conditions after a reconcile. `before` are those that the object has.
pub(crate) fn summarize(
    declared: &ConditionTypes,
    before: &Conditions,
    run: SummaryInput<'_>,
) -> Conditions {
    let mut next = before.clone();
    for change in run.changes {
        match change {
            ConditionChange::Set(condition) => drop(next.set(condition.clone(), run.now)),
            ConditionChange::Clear(type_) => drop(next.remove(type_.as_str())),
        }
    }
    if run.outcome.state == OutcomeState::Paused {
        pause(declared, &mut next, run);
        return next;
    }
    let is_set = |type_: &str| run.changes.iter().any(|change| change.is_set(type_));
    let has_ended = run.outcome.state.has_ended();
    for type_ in declared.stalled_on.iter().copied() {
        // After an error it stays: the reconcile may not have come as far as its check.
        if !next.is_met(type_) || has_ended && !is_set(type_) {
            next.remove(type_);
        }
    }
    for type_ in declared.ready.iter().copied() {
        if next.get(type_).is_none() {
            let text = "no reconcile has set it yet";
            next.set(stamped(unknown(type_, NOT_REPORTED, text), run), run.now);
        }
    }
    let SummaryConditions { root, companion } = verdict(declared, &next, run);
    next.set(stamped(root, run), run.now);
    if declared.root == READY {
        for type_ in ABNORMAL {
            if companion.as_ref().is_none_or(|companion| companion.type_ != type_) {
                next.remove(type_);
            }
        }
        if let Some(companion) = companion {
            next.set(stamped(companion, run), run.now);
        }
    }
    next
}

/// Decides about the root.
fn verdict(
    declared: &ConditionTypes,
    next: &Conditions,
    run: SummaryInput<'_>,
) -> SummaryConditions {
    let ConditionOutcome { state, reason, message } = run.outcome;
    let root = declared.root;
    // Conditions of another generation say nothing about this one.
    let is_current =
        |it: &&Condition| run.generation.is_none() || it.observed_generation == run.generation;
    let get = |type_: &'static str| next.get(type_).filter(is_current);
    let is_set = |it: &&Condition| run.changes.iter().any(|change| change.is_set(&it.type_));
    let blocked = declared.stalled_on.iter().find_map(|type_| get(type_));
    let has_ended = state.has_ended();
    if let Some(it) = blocked.filter(|it| has_ended || is_set(it)) {
        let companion = Some(met(STALLED, &it.reason, it.message.clone()));
        return SummaryConditions { root: unmet(root, &it.reason, it.message.clone()), companion };
    }
    let mut ready = declared.ready.iter().map(|type_| (*type_, get(type_)));
    let unmet_one = ready.clone().find_map(|(_, it)| it.filter(|it| it.status == "False"));
    match state {
        OutcomeState::Stalled
        | OutcomeState::DependentFailed
        | OutcomeState::Retried
        | OutcomeState::Waiting => {
            // A reconcile that says itself what is missing says it best.
            let root = match unmet_one.filter(is_set) {
                Some(it) => unmet(root, &it.reason, it.message.clone()),
                None => unmet(root, reason, message.clone()),
            };
            let is_stalled = matches!(state, OutcomeState::Stalled | OutcomeState::DependentFailed);
            let companion = if is_stalled { STALLED } else { RECONCILING };
            SummaryConditions { root, companion: Some(met(companion, reason, message.clone())) }
        }
        OutcomeState::Done | OutcomeState::Paused => {
            let missing = ready.find(|(_, it)| it.is_none_or(|it| it.status != "True"));
            let root = match (unmet_one, missing) {
                (Some(it), _) => unmet(root, &it.reason, it.message.clone()),
                (None, Some((_, Some(it)))) => unknown(root, &it.reason, it.message.clone()),
                (None, Some((type_, None))) => {
                    let text = format!("the last reconcile did not set {type_}");
                    unknown(root, NOT_REPORTED, text)
                }
                (None, None) => met(root, reason, message.clone()),
            };
            let is_ready = root.status == "True";
            let companion =
                (!is_ready).then(|| met(RECONCILING, &root.reason, root.message.clone()));
            SummaryConditions { root, companion }
        }
    }
}

/// Shows a pause. The root stays as it is, unless the pause keeps a change from being reconciled.
fn pause(declared: &ConditionTypes, next: &mut Conditions, run: SummaryInput<'_>) {
    let ConditionOutcome { reason, message, .. } = run.outcome;
    let root = next.get(declared.root);
    let is_current = root
        .is_some_and(|root| run.generation.is_none() || root.observed_generation == run.generation);
    let mut shown = Vec::new();
    if !is_current {
        shown.push(unknown(declared.root, reason, message.clone()));
    }
    if declared.root == READY {
        shown.push(met(PAUSED, reason, message.clone()));
        if !is_current {
            next.remove(STALLED);
            shown.push(met(RECONCILING, reason, message.clone()));
        }
    }
    for condition in shown {
        next.set(stamped(condition, run), run.now);
    }
}

/// Returns the condition with the reconciled generation, and a message that the API server accepts:
/// one that is too long, as the text of an error may be, would have the whole status refused.
fn stamped(condition: Condition, run: SummaryInput<'_>) -> Condition {
    let message = shorten(condition.message, MESSAGE_LIMIT);
    Condition { observed_generation: run.generation, message, ..condition }
}

/// Returns the conditions whose status differs, as they are afterwards; one that is absent then has
/// the status that stands for absence.
///
/// An absent condition is unknown, or false if it is one that is present only while it is true: so
/// a placeholder is no transition, and the end of a stall is one.
pub(crate) fn transitions(
    declared: &ConditionTypes,
    before: &Conditions,
    after: &Conditions,
) -> Vec<Condition> {
    let absent = |type_: &str| {
        let is_abnormal = ABNORMAL.contains(&type_) || declared.stalled_on.contains(&type_);
        if is_abnormal { "False" } else { "Unknown" }
    };
    let mut found = Vec::new();
    for type_ in own_types(declared) {
        let (old, new) = (before.get(type_), after.get(type_));
        let status = |it: Option<&Condition>| {
            it.map_or_else(|| absent(type_).to_owned(), |it| it.status.clone())
        };
        let (from, to) = (status(old), status(new));
        if from != to {
            // The text of a condition that is gone is about the state that has ended.
            let ended = || old.map(|old| Condition { message: String::new(), ..old.clone() });
            let last = new.cloned().or_else(ended);
            found.extend(last.map(|last| Condition { status: to, ..last }));
        }
    }
    found
}

/// Whether a transition is reported by an Event: `Reconciling` mirrors the root, and `Stalled` is
/// worth an Event when it begins.
pub(crate) fn is_reported(condition: &Condition) -> bool {
    match condition.type_.as_str() {
        RECONCILING => false,
        STALLED => condition.status == "True",
        _ => true,
    }
}

/// Whether a transition is a problem that needs attention.
pub(crate) fn is_warning(declared: &ConditionTypes, condition: &Condition) -> bool {
    let type_ = condition.type_.as_str();
    let has_failed = [FAILED, GAVE_UP, TERMINAL, REFUSED].contains(&condition.reason.as_str());
    match condition.status.as_str() {
        "True" => type_ == STALLED || declared.stalled_on.contains(&type_),
        "False" => has_failed,
        _ => false,
    }
}
