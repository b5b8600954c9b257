//! The summary for all combinations of outcomes and conditions, and the merge into a status.

use jiff::Timestamp;
use serde_json::json;

use super::summary::{SummaryInput, is_warning, summarize, transitions};
use super::*;
use crate::controller::Action;
use windlass_core::conditions::{met, unknown, unmet};

const TYPES: ConditionTypes =
    ConditionTypes { root: "Ready", ready: &["A", "B"], stalled_on: &["Bad"], others: &["C"] };
const STATES: [OutcomeState; 6] = [
    OutcomeState::Done,
    OutcomeState::Waiting,
    OutcomeState::DependentFailed,
    OutcomeState::Retried,
    OutcomeState::Stalled,
    OutcomeState::Paused,
];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn outcome(state: OutcomeState) -> ConditionOutcome {
    ConditionOutcome { state, reason: "Because".into(), message: "of it".into() }
}

fn of_generation(condition: Condition, generation: i64) -> Condition {
    Condition { observed_generation: Some(generation), ..condition }
}

/// The statuses that a condition can have, absent first.
fn variants(type_: &str) -> [Option<Condition>; 4] {
    let made = [met(type_, "Own", ""), unmet(type_, "Own", ""), unknown(type_, "Own", "")];
    let [yes, no, maybe] = made.map(Some);
    [None, yes, no, maybe]
}

/// Calls `check` for every combination of conditions before, conditions that are set, and outcomes.
fn every_run(mut check: impl FnMut(&Conditions, SummaryInput<'_>)) {
    for (a, b, bad) in variants("A").into_iter().flat_map(|a| {
        let rest =
            variants("B").into_iter().flat_map(|b| variants("Bad").map(|bad| (b.clone(), bad)));
        rest.map(move |(b, bad)| (a.clone(), b, bad)).collect::<Vec<_>>()
    }) {
        let all = || [a.clone(), b.clone(), bad.clone()].into_iter().flatten();
        for generation in [1, 2] {
            let before: Conditions =
                all().map(|condition| of_generation(condition, generation)).collect();
            for is_set in [false, true] {
                let set = all().map(|condition| ConditionChange::Set(of_generation(condition, 2)));
                let changes: Vec<ConditionChange> = set.filter(|_| is_set).collect();
                for state in STATES {
                    let outcome = outcome(state);
                    let generation = Some(2);
                    let run = SummaryInput {
                        changes: &changes,
                        outcome: &outcome,
                        generation,
                        now: at(9),
                    };
                    check(&before, run);
                }
            }
        }
    }
}

#[test]
fn exactly_one_of_ready_reconciling_and_stalled_is_true() {
    let mut runs = 0;
    every_run(|before, run| {
        let after = summarize(&TYPES, before, run);
        if run.outcome.state == OutcomeState::Paused {
            assert!(after.is_met("Paused"));
            return;
        }
        let count =
            ["Ready", "Reconciling", "Stalled"].iter().filter(|it| after.is_met(**it)).count();
        assert_eq!(count, 1, "{run:?} {before:?} {after:?}");
        assert!(after.get("Paused").is_none());
        for abnormal in ["Reconciling", "Stalled", "Bad"] {
            assert!(after.get(abnormal).is_none_or(|it| it.status == "True"), "{after:?}");
        }
        let are_met = ["A", "B"].iter().all(|type_| {
            after
                .get(*type_)
                .is_some_and(|it| it.status == "True" && it.observed_generation == Some(2))
        });
        let is_ready =
            are_met && after.get("Bad").is_none() && run.outcome.state == OutcomeState::Done;
        assert_eq!(after.is_met("Ready"), is_ready, "{run:?} {before:?} {after:?}");
        runs += 1;
    });
    assert!(runs > 500, "{runs}");
}

#[test]
fn the_same_outcome_again_changes_nothing() {
    every_run(|before, run| {
        let once = summarize(&TYPES, before, run);
        let twice = summarize(&TYPES, &once, SummaryInput { now: at(99), ..run });
        assert_eq!(once, twice, "{run:?} {before:?}");
        assert_eq!(transitions(&TYPES, &once, &twice), []);
    });
}

#[test]
fn a_pause_keeps_a_stall_and_ends_it_when_the_object_has_changed_meanwhile() {
    let stalled = SummaryInput {
        changes: &[],
        outcome: &outcome(OutcomeState::Stalled),
        generation: Some(1),
        now: at(1),
    };
    let before = summarize(&TYPES, &Conditions::new(), stalled);
    let shown = |generation| {
        let paused = outcome(OutcomeState::Paused);
        let run = SummaryInput { outcome: &paused, generation: Some(generation), ..stalled };
        let after = summarize(&TYPES, &before, run);
        ["Ready", "Stalled", "Reconciling", "Paused"]
            .map(|type_| after.get(type_).map_or("-".to_owned(), |it| it.status.clone()))
    };
    assert_eq!(shown(1), ["False", "True", "-", "True"]);
    assert_eq!(shown(2), ["Unknown", "-", "True", "True"], "the stall is of the object before");
}

#[test]
fn a_failed_child_stalls_its_owner_and_ends_what_the_reconcile_did_not_set() {
    let shown = |reason: &'static str, is_terminating| {
        let wait = Action::stalled(reason, "app: too late".to_owned()).wait.expect("a wait");
        let outcome = wait.outcome(is_terminating);
        let generation = Some(1);
        let bad = of_generation(met("Bad", "Own", ""), 1);
        let before = [bad, of_generation(met("Reconciling", "Own", ""), 1)].into_iter().collect();
        let run = SummaryInput { changes: &[], outcome: &outcome, generation, now: at(1) };
        let after = summarize(&TYPES, &before, run);
        ["Ready", "Stalled", "Reconciling", "Bad"].map(|type_| {
            after
                .get(type_)
                .map_or("-".to_owned(), |it| format!("{} {}: {}", it.status, it.reason, it.message))
        })
    };
    let text = |status, reason| format!("{status} {reason}app: too late");
    let late = |status| text(status, "TooLate: ");
    assert_eq!(shown("TooLate", false), [&late("False"), &late("True"), "-", "-"]);
    let words = |status| text(status, "DependentFailed: too late!: ");
    assert_eq!(shown("too late!", false), [&words("False"), &words("True"), "-", "-"]);
    let ends = |status| text(status, "Terminating: TooLate: ");
    assert_eq!(shown("TooLate", true), [&ends("False"), "-", &ends("True"), "-"]);
}

#[test]
fn a_placeholder_is_no_transition_and_the_end_of_a_stall_is_one() {
    let stalled = SummaryInput {
        changes: &[],
        outcome: &outcome(OutcomeState::Stalled),
        generation: Some(1),
        now: at(1),
    };
    let first = summarize(&TYPES, &Conditions::new(), stalled);
    let types = |all: Vec<Condition>| {
        all.into_iter().map(|it| format!("{} {}", it.type_, it.status)).collect::<Vec<_>>()
    };
    let found = types(transitions(&TYPES, &Conditions::new(), &first));
    assert_eq!(found, ["Stalled True", "Ready False"]);
    let changes =
        ["A", "B"].map(|type_| ConditionChange::Set(of_generation(met(type_, "Own", ""), 1)));
    let done = outcome(OutcomeState::Done);
    let run = SummaryInput { changes: &changes, outcome: &done, ..stalled };
    let second = summarize(&TYPES, &first, run);
    let found = types(transitions(&TYPES, &first, &second));
    assert_eq!(found, ["A True", "B True", "Stalled False", "Ready True"]);
}

#[test]
fn the_end_of_a_condition_does_not_repeat_its_text() {
    let paused = Condition { message: "not reconciled".to_owned(), ..met("Paused", "Paused", "") };
    let before: Conditions = [paused].into_iter().collect();
    let found = transitions(&TYPES, &before, &Conditions::new());
    let ends = found.iter().map(|it| (it.type_.as_str(), it.status.as_str(), it.message.as_str()));
    assert_eq!(ends.collect::<Vec<_>>(), [("Paused", "False", "")]);
}

#[test]
fn a_failure_is_a_warning_and_a_wait_is_not() {
    for (reason, expected) in [
        ("ReconcileFailed", true),
        ("TerminalError", true),
        ("RequestRefused", true),
        ("Waiting", false),
    ] {
        assert_eq!(is_warning(&TYPES, &unmet("Ready", reason, "")), expected, "{reason}");
    }
    assert!(!is_warning(&TYPES, &met("Ready", "Reconciled", "")));
    assert!(
        is_warning(&TYPES, &met("Bad", "Own", "")) && !is_warning(&TYPES, &met("A", "Own", ""))
    );
}

#[test]
fn the_text_of_an_outcome_is_cut_to_what_the_api_server_accepts() {
    let long = ConditionOutcome { message: "ä".repeat(40_000), ..outcome(OutcomeState::Stalled) };
    let run = SummaryInput { changes: &[], outcome: &long, generation: Some(1), now: at(1) };
    let after = summarize(&TYPES, &Conditions::new(), run);
    for type_ in ["Ready", "Stalled"] {
        let message = &after.get(type_).expect("a condition").message;
        assert!(message.len() <= 32_768 && message.starts_with('ä'), "{type_}: {}", message.len());
    }
}

#[test]
fn another_root_has_no_companions_and_leaves_those_of_the_first_controller() {
    let declared = ConditionTypes { root: "DnsReady", ready: &["A"], stalled_on: &[], others: &[] };
    let before: Conditions = [met("Reconciling", "Theirs", "")].into_iter().collect();
    for state in STATES {
        let outcome = outcome(state);
        let run = SummaryInput { changes: &[], outcome: &outcome, generation: Some(1), now: at(1) };
        let after = summarize(&declared, &before, run);
        assert_eq!(after.get("Reconciling"), before.get("Reconciling"));
        assert!(after.get("DnsReady").is_some_and(|root| root.status != "True"));
        assert!(after.get("Stalled").is_none() && after.get("Paused").is_none());
    }
}

#[test]
fn entries_of_others_stay_as_they_are_and_in_their_places() {
    let kept = StatusConditions { declared: TYPES, fields: &[] };
    let theirs = json!({ "type": "Theirs", "status": "Maybe", "severity": 3 });
    let ready = met("Ready", "Own", "");
    let ours = serde_json::to_value(&ready).expect("JSON");
    let status =
        json!({ "phase": "Up", "conditions": [ours, theirs, { "type": "Stalled", "status": 1 }] });
    let own = kept.own(&status);
    assert_eq!(own.iter().map(|it| it.type_.as_str()).collect::<Vec<_>>(), ["Ready"]);
    let next: Conditions = [unmet("Ready", "Own", ""), met("C", "Own", "")].into_iter().collect();
    let after = kept.with(&status, &next).expect("JSON");
    let types: Vec<&Value> = after["conditions"].as_array().expect("a list").iter().collect();
    assert_eq!((types.len(), types[1]), (3, &theirs));
    assert_eq!((&types[0]["status"], &types[2]["type"]), (&json!("False"), &json!("C")));
    assert_eq!(after["phase"], "Up");
    assert_eq!(kept.with(&status, &own).expect("JSON")["conditions"], json!([ours, theirs]));
}

#[test]
fn a_reason_that_the_api_server_refuses_stands_in_the_message() {
    use crate::controller::Action;
    let wait = |reason: &'static str| {
        let Action { wait: Some(wait), .. } = Action::wait_for(reason, "2 of 3") else {
            panic!("a wait");
        };
        let ConditionOutcome { reason, message, .. } = wait.outcome(false);
        (reason.into_owned(), message)
    };
    assert_eq!(wait("Rollout"), ("Rollout".into(), "2 of 3".into()));
    for refused in ["", "not one word", "1st", "Rollout:", "Ünder"] {
        assert_eq!(wait(refused), ("Waiting".into(), format!("{refused}: 2 of 3")));
    }
}

#[test]
fn a_declared_condition_is_one_that_the_api_server_accepts() {
    let of = |reason: &str, message: &str| {
        let (condition, refused) = accepted(unmet("A", reason, message));
        assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("A", "False"));
        (condition.reason, condition.message, refused)
    };
    assert_eq!(of("NoImage", "2 of 3"), ("NoImage".into(), "2 of 3".into(), None));
    let long = "A".repeat(1025);
    for refused in ["not one word", "1st", "Rollout:", "Ünder", long.as_str()] {
        let message = format!("{refused}: 2 of 3");
        let expected = ("InvalidReason".into(), message, Some(refused.into()));
        assert_eq!(of(refused, "2 of 3"), expected);
    }
    let alone = ("InvalidReason".into(), "no such host".into(), Some("no such host".into()));
    assert_eq!(of("no such host", ""), alone);
    assert_eq!(of("", "2 of 3"), ("InvalidReason".into(), "2 of 3".into(), Some(String::new())));

    let (_, message, _) = of("not one word", &"x".repeat(40_000));
    assert!(message.len() <= 32_768 && message.starts_with("not one word: x"), "{}", message.len());
    assert!(message.ends_with('…'));
    let by_hand = Condition { message: "ä".repeat(40_000), ..unmet("A", "NoImage", "") };
    let (condition, refused) = accepted(by_hand);
    assert!(condition.message.len() <= 32_768 && refused.is_none());
}
