//! Conditions that a controller declares, and `Ready` computed from them and from the outcome of
//! each reconcile, as other programs read them.

mod parts;
mod readings;
mod several;
mod stalls;
mod website;

use serde_json::json;
use windlass::api::Patch;
use windlass::conditions::{ConditionSet, ReadyCondition};
use windlass::controller::PAUSED;

use self::readings::{Reading, argo, kstatus, kubectl_waits_no_more};
use self::website::{Bench, WebsiteCondition, condition, shown};

/// Acts of a site, the readings of kstatus and Argo CD, `Ready`, `Reconciling` and `Stalled`.
const OUTCOMES: &[(&str, Reading, &str, [&str; 3])] = &[
    ("serves", Reading::Current, "Healthy", ["True Reconciled ", "absent", "absent"]),
    (
        "is down",
        Reading::InProgress,
        "Progressing",
        ["False NoPods 0 of 3 ready", "True NoPods 0 of 3 ready", "absent"],
    ),
    (
        "is unsure",
        Reading::InProgress,
        "Progressing",
        ["Unknown NoAnswer the probe timed out", "True NoAnswer the probe timed out", "absent"],
    ),
    (
        "sets a part",
        Reading::InProgress,
        "Progressing",
        [
            "Unknown NotReported the last reconcile did not set Available",
            "True NotReported the last reconcile did not set Available",
            "absent",
        ],
    ),
    (
        "rolls out",
        Reading::InProgress,
        "Progressing",
        ["False RollingOut 2 of 3 ready", "True Rollout 2 of 3 ready", "absent"],
    ),
    (
        "waits in words",
        Reading::InProgress,
        "Progressing",
        ["False Waiting not one word: soon", "True Waiting not one word: soon", "absent"],
    ),
    (
        "fails",
        Reading::InProgress,
        "Progressing",
        [
            "False ReconcileFailed the registry is away",
            "True ReconcileFailed the registry is away",
            "absent",
        ],
    ),
    (
        "fails and says what",
        Reading::InProgress,
        "Progressing",
        ["False NoImage no such image", "True ReconcileFailed the registry is away", "absent"],
    ),
    (
        "is down in words",
        Reading::InProgress,
        "Progressing",
        [
            "False InvalidReason no such image: 0 of 3 ready",
            "True InvalidReason no such image: 0 of 3 ready",
            "absent",
        ],
    ),
    (
        "fails in words",
        Reading::InProgress,
        "Progressing",
        [
            "False InvalidReason dns error: no such host",
            "True ReconcileFailed the registry is away",
            "absent",
        ],
    ),
    (
        "panics",
        Reading::InProgress,
        "Progressing",
        [
            "False ReconcileFailed the reconciler panicked: on purpose",
            "True ReconcileFailed the reconciler panicked: on purpose",
            "absent",
        ],
    ),
    (
        "fails for good",
        Reading::Failed,
        "Degraded",
        ["False TerminalError no such host", "absent", "True TerminalError no such host"],
    ),
    (
        "has a negative size",
        Reading::Failed,
        "Degraded",
        [
            "False NegativeSize spec.size is negative",
            "absent",
            "True NegativeSize spec.size is negative",
        ],
    ),
];

#[tokio::test]
async fn each_outcome_is_read_by_other_programs_as_it_is_meant() {
    let bench = Bench::start().await;
    let running = bench.run();
    // Each outcome once after a success, and once after each other outcome.
    for (act, reading, health, expected) in OUTCOMES.iter().chain(OUTCOMES.iter().rev()) {
        let site = bench.after(act).await;
        let found = ["Ready", "Reconciling", "Stalled"].map(|type_| shown(&site, type_));
        assert_eq!(found, *expected, "{act}");
        assert_eq!((kstatus(&site), argo(&site)), (*reading, *health), "{act}");
        assert_eq!(kubectl_waits_no_more(&site), *reading == Reading::Current, "{act}");
        let ready = condition(&site, "Ready").unwrap();
        assert_eq!(ready.observed_generation, site["metadata"]["generation"].as_i64(), "{act}");
    }
    running.stop_anyway().await;
}

#[tokio::test]
async fn an_object_at_rest_costs_no_request_also_after_a_restart() {
    let bench = Bench::embedded().await;
    let running = bench.run();
    let before = bench.after("backs up").await;
    running.settled().await;
    assert_eq!(shown(&before, WebsiteCondition::Backed), "False NoBackup none yet");
    assert_eq!(shown(&before, "Ready"), "True Reconciled ", "it has no role");
    running.stop().await;
    bench.writes();
    let running = bench.run();
    running.settled().await;
    bench
        .sites
        .patch("home", Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } })))
        .await
        .unwrap();
    running.settled().await;
    assert_eq!(bench.writes(), ["patch websites/"], "the label alone");
    assert_eq!(bench.site().await["status"], before["status"]);
    running.stop().await;
}

#[tokio::test]
async fn all_conditions_of_a_reconcile_are_one_write() {
    let bench = Bench::embedded().await;
    let running = bench.run();
    bench.writes();
    for act in ["serves", "is down", "has a negative size", "fails for good"] {
        bench.after(act).await;
        let writes = bench.writes();
        let of_status = writes.iter().filter(|write| *write == "patch websites/status");
        assert_eq!(of_status.count(), 1, "{act}: {writes:?}");
    }
    // A repeated failure, and a wait, write once.
    for act in ["fails", "rolls out"] {
        bench.after(act).await;
        bench.pass(120).await;
        let writes = bench.writes();
        let of_status = writes.iter().filter(|write| *write == "patch websites/status");
        assert_eq!(of_status.count(), 1, "{act}: {writes:?}");
    }
    running.stop_anyway().await;
}

#[tokio::test]
async fn a_status_that_a_reconcile_replaces_keeps_its_conditions_and_its_generation() {
    let bench = Bench::start().await;
    let running = bench.run();
    let site = bench.after("writes its status").await;
    assert_eq!(site["status"]["url"], "https://a.example");
    let site = bench.eventually(|site| shown(site, "Ready") == "True Reconciled ").await;
    assert_eq!(kstatus(&site), Reading::Current);
    running.settled().await;
    if bench.cluster.is_embedded() {
        bench.writes();
        let patch = json!({ "metadata": { "labels": { "a": "b" } } });
        bench.sites.patch("home", Patch::Merge(patch)).await.unwrap();
        running.settled().await;
        assert_eq!(bench.writes(), ["patch websites/"], "nothing changes any more");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_condition_keeps_the_time_of_its_transition_while_its_status_stays() {
    let bench = Bench::start().await;
    let running = bench.run();
    let first = bench.after("serves").await;
    bench.pass(2).await;
    let second = bench.after("serves, too").await;
    let both = [&first, &second].map(|site| condition(site, "Ready").unwrap());
    assert_eq!(both[0].last_transition_time, both[1].last_transition_time);
    assert!(both[0].observed_generation < both[1].observed_generation);
    bench.pass(2).await;
    let third = bench.after("is down").await;
    let third = condition(&third, "Ready").unwrap();
    assert!(third.last_transition_time > both[1].last_transition_time);
    running.stop().await;
}

#[tokio::test]
async fn conditions_of_others_stay_also_when_they_come_during_a_reconcile() {
    let bench = Bench::start().await;
    bench.act("loses a race").await;
    let running = bench.run();
    let site = bench.eventually(|site| shown(site, "Ready") == "True Reconciled ").await;
    assert_eq!(shown(&site, "Theirs"), "True Because ");
    assert_eq!(shown(&site, WebsiteCondition::ConfigApplied), "True Applied ");
    running.stop_anyway().await;
}

#[tokio::test]
async fn a_blocker_goes_when_a_reconcile_ends_without_it_and_stays_over_an_error() {
    let bench = Bench::start().await;
    let running = bench.run();
    bench.after("has a negative size").await;
    let failing = bench.after("fails").await;
    assert_eq!(
        shown(&failing, WebsiteCondition::InvalidSpec),
        "True NegativeSize spec.size is negative"
    );
    assert_eq!(kstatus(&failing), Reading::InProgress, "the error is tried again");
    let serving = bench.after("serves").await;
    assert_eq!(shown(&serving, WebsiteCondition::InvalidSpec), "absent");
    running.stop().await;
}

#[tokio::test]
async fn conditions_of_an_earlier_generation_do_not_make_an_object_ready() {
    let bench = Bench::start().await;
    let running = bench.run();
    bench.after("serves").await;
    let site = bench.after("is silent").await;
    let expected = "Unknown NotReported the last reconcile did not set ConfigApplied";
    assert_eq!(shown(&site, "Ready"), expected);
    assert_eq!(
        shown(&site, WebsiteCondition::Available),
        "True RolledOut 3 of 3 ready",
        "as it was"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_pause_is_shown_and_changes_are_in_progress_until_it_ends() {
    let bench = Bench::start().await;
    let running = bench.run();
    bench.after("serves").await;
    let pause =
        |value: &str| Patch::Merge(json!({ "metadata": { "annotations": { PAUSED: value } } }));
    bench.sites.patch("home", pause("true")).await.unwrap();
    let site = bench.eventually(|site| condition(site, "Paused").is_some()).await;
    assert_eq!(
        (shown(&site, "Ready").as_str(), kstatus(&site)),
        ("True Reconciled ", Reading::Current)
    );

    bench.act("is down").await;
    let site = bench.eventually(|site| condition(site, "Reconciling").is_some()).await;
    assert!(shown(&site, "Ready").starts_with("Unknown Paused not reconciled while"), "{site:#}");
    assert_eq!((kstatus(&site), argo(&site)), (Reading::InProgress, "Progressing"));
    running.settled().await;
    if bench.cluster.is_embedded() {
        bench.writes();
        let patch = json!({ "metadata": { "labels": { "a": "b" } } });
        bench.sites.patch("home", Patch::Merge(patch)).await.unwrap();
        running.settled().await;
        assert_eq!(bench.writes(), ["patch websites/"], "the pause is shown already");
    }

    bench.sites.patch("home", pause("false")).await.unwrap();
    let site = bench.eventually(|site| condition(site, "Paused").is_none()).await;
    assert_eq!(shown(&site, "Ready"), "False NoPods 0 of 3 ready");
    running.stop().await;
}

#[tokio::test]
async fn a_clean_up_that_waits_is_shown_and_the_object_goes() {
    let bench = Bench::start().await;
    let running = bench.run();
    bench.after("cleans up").await;
    bench.sites.delete("home").await.unwrap();
    let expected = "Terminating Backup: is being written";
    let site = bench.eventually(|site| shown(site, "Ready") == format!("False {expected}")).await;
    assert_eq!(shown(&site, "Reconciling"), format!("True {expected}"));
    assert_eq!(kstatus(&site), Reading::Terminating);
    bench.pass(10).await;
    assert!(bench.sites.get_opt("home").await.unwrap().is_none());
    running.stop().await;
}

#[tokio::test]
async fn each_transition_is_one_event_and_counted() {
    let bench = Bench::start().await;
    // A transition is counted after the server's answer, thus later than the status is readable.
    let running = bench.run();
    bench.after("serves").await;
    running.settled().await;
    assert_eq!((bench.counted("Ready", "True"), bench.counted("Reconciling", "True")), (1, 0));
    bench.after("serves, too").await;
    running.settled().await;
    assert_eq!(bench.counted("Ready", "True"), 1, "no transition");
    bench.after("is down").await;
    running.settled().await;
    let counts = [("Available", "False"), ("Ready", "False"), ("Reconciling", "True")];
    assert_eq!(counts.map(|(type_, status)| bench.counted(type_, status)), [1, 1, 1]);
    bench.after("has a negative size").await;
    bench.after("serves").await;
    running.settled().await;
    assert_eq!((bench.counted("Stalled", "True"), bench.counted("Stalled", "False")), (1, 1));
    running.stop().await;
    let events = bench.events().await;
    for expected in [
        "Normal RolledOut: Available is True: 3 of 3 ready",
        "Normal Reconciled: Ready is True",
        "Normal NoPods: Available is False: 0 of 3 ready",
        "Normal NoPods: Ready is False: 0 of 3 ready",
        "Warning NegativeSize: Stalled is True: spec.size is negative",
    ] {
        assert!(events.iter().any(|event| event == expected), "{expected} not in {events:#?}");
    }
    assert!(!events.iter().any(|event| event.contains("Reconciling is")), "{events:#?}");
}

#[tokio::test]
async fn the_root_cannot_be_set_by_hand() {
    let bench = Bench::start().await;
    let running = bench.run();
    let site = bench.after("sets the root").await;
    let message = condition(&site, "Ready").unwrap().message;
    assert!(message.contains("the controller computes it"), "{message}");
    running.stop_anyway().await;
}

#[test]
fn the_roles_of_variants_are_those_of_the_attribute() {
    let declared = WebsiteCondition::TYPES;
    assert_eq!((declared.root, declared.ready), ("Ready", &["ConfigApplied", "Available"][..]));
    assert_eq!((declared.stalled_on, declared.others), (&["InvalidSpec"][..], &["Backed"][..]));
    assert!(!ReadyCondition::TYPES.contains("Ready"));
}
