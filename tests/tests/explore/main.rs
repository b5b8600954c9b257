//! Operators with a planted bug each, which an exploration finds, and their fixed twins, in which
//! an exploration finds nothing. The bugs are of the kinds that Sieve found in real operators.

#![allow(clippy::unwrap_used, reason = "workloads of tests, outside of test functions")]

mod copies;
mod drawn;
mod failures;
mod fleet;
mod members;
mod outside;
mod records;
mod renewals;
mod replays;
mod replicas;
mod rotation;
mod saved;
mod shared;
mod simulations;
mod times;
mod website;

use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Duration;

use windlass::testing::{Exploration, ExplorationReport, Finding, World};

/// Seeds of the short explorations of fixed operators.
const SEEDS: [u64; 2] = [1, 7];

/// Explores an operator with the bug until the first finding, and the twin for some runs.
fn found_in_the_broken_only<W>(workload: impl Fn(World, bool) -> W + Send + Sync) -> Finding
where
    W: Future<Output = ()>,
{
    let report = Exploration::new().first_only(true).run(|world| workload(world, false));
    println!("{report}");
    assert_ne!(report.findings().len(), 0, "the bug is found: {report}");
    for seed in SEEDS {
        clean(seed, 40, &workload);
    }
    report.findings()[0].clone()
}

/// Explores a fixed operator.
fn clean<W>(
    seed: u64,
    runs: usize,
    workload: &(impl Fn(World, bool) -> W + Send + Sync),
) -> ExplorationReport
where
    W: Future<Output = ()>,
{
    let exploration = Exploration::new().seed(seed).runs(runs).budget(Duration::from_secs(60));
    let report = exploration.run(|world| workload(world, true));
    assert_eq!(report.findings().len(), 0, "the fixed one has no bug: {report}");
    report
}

#[test]
fn a_volume_of_a_member_that_is_gone_is_found() {
    found_in_the_broken_only(members::volumes);
}

#[test]
fn a_scale_down_that_nobody_remembers_is_found() {
    found_in_the_broken_only(members::transitions);
}

#[test]
fn a_member_created_twice_is_found() {
    found_in_the_broken_only(records::generated);
}

#[test]
fn a_status_before_its_member_is_found() {
    found_in_the_broken_only(records::phases);
}

#[test]
fn a_status_with_a_duration_before_its_member_is_found() {
    found_in_the_broken_only(times::durations);
}

#[test]
fn an_ignored_failure_is_found_where_attempts_are_counted() {
    found_in_the_broken_only(times::attempts);
    let broken = Exploration::new().runs(40).run(|world| times::attempts(world, false));
    assert!(broken.to_string().contains("configmaps default/a: absent at the end"), "{broken}");
}

#[test]
fn a_status_before_its_member_is_found_beside_an_age_that_is_renewed() {
    found_in_the_broken_only(renewals::ages);
    let report = clean(1, 4, &renewals::ages);
    let kind = "of fleets.explore.windlass.dev";
    let left_out = format!(
        "not compared, since the operator renews it all the time: .status.checks {kind}, .status.took {kind}"
    );
    assert!(report.to_string().contains(&left_out), "{report}");
}

#[test]
fn a_status_before_its_member_is_found_beside_an_age_that_is_seldom_renewed() {
    found_in_the_broken_only(renewals::slow_ages);
}

#[test]
fn a_value_outside_of_reports_that_never_rests_is_refused_by_its_place() {
    let report = Exploration::new().runs(4).run(renewals::beats);
    let [finding] = report.findings() else { panic!("{report}") };
    let text = finding.details().concat();
    assert!(text.contains(".data.beats of configmaps default/heart was "), "{report}");
    assert!(text.contains("the form of RFC 3339"), "{report}");
}

#[test]
fn a_creation_that_is_not_tried_again_is_found() {
    found_in_the_broken_only(failures::creation);
}

#[test]
fn a_clean_up_that_ignores_its_failure_is_found() {
    found_in_the_broken_only(failures::clean_up);
}

#[test]
fn a_deletion_by_a_stale_view_is_found() {
    found_in_the_broken_only(rotation::stale_deletion);
}

#[test]
fn a_password_that_is_drawn_twice_is_found() {
    let finding = found_in_the_broken_only(drawn::passwords);
    assert!(finding.to_string().contains("both are equal in undisturbed runs"), "{finding}");
}

#[test]
fn a_member_whose_drawn_name_is_not_recorded_is_found() {
    let finding = found_in_the_broken_only(drawn::tokens);
    assert!(finding.to_string().contains("configmaps default/a-*: 2 objects"), "{finding}");
}

#[test]
fn a_disk_that_is_added_twice_is_found_by_any_id() {
    found_in_the_broken_only(outside::disks);
}

#[test]
fn a_stamp_before_its_member_is_found_by_any_version() {
    found_in_the_broken_only(outside::stamps);
}

#[test]
fn an_update_that_undoes_an_edit_of_others_is_found() {
    let finding = found_in_the_broken_only(shared::lists);
    assert_eq!(finding.heading(), "an edit of another client was undone", "{finding}");
}

#[test]
fn a_task_that_writes_after_a_hand_over_is_found() {
    let finding = found_in_the_broken_only(replicas::tasks);
    assert_eq!(finding.heading(), "a replica wrote without the lease", "{finding}");
}

#[test]
fn an_object_that_is_taken_for_another_one_of_its_name_is_found() {
    let finding = found_in_the_broken_only(replicas::names);
    assert!(finding.to_string().contains("deleted and created again"), "{finding}");
}

#[test]
fn a_copy_that_a_stale_start_takes_back_is_found_when_such_starts_are_asked_for() {
    let found = |is_fixed, is_stale| {
        let exploration = Exploration::new().runs(120).stale_starts(is_stale);
        exploration.run(|world| copies::sizes(world, is_fixed))
    };
    let report = found(false, true);
    assert_ne!(report.findings().len(), 0, "{report}");
    let stale = |finding: &Finding| finding.to_string().contains("changes of that object before");
    assert!(report.findings().iter().all(stale), "{report}");
    for (is_fixed, is_stale) in [(false, false), (true, true)] {
        let report = found(is_fixed, is_stale);
        assert_eq!(report.findings().len(), 0, "{report}");
    }
}

#[test]
fn a_finding_is_made_again_alone_by_its_text() {
    let report = Exploration::new().first_only(true).run(|world| failures::creation(world, false));
    let finding = report.findings().first().unwrap();
    assert!(finding.to_string().contains("the create of configmaps default/"), "{report}");
    let [report, writes] = made_again(finding.replay());
    assert!(report.contains("1 findings in 11 runs of 1 plans"), "{report}{writes}");
    assert!(report.contains(finding.heading()) && report.contains(finding.replay()), "{report}");
    assert!(writes.contains("disturbed: the create of configmaps default/"), "{writes}");
    assert!(writes.contains("operator creates"), "{writes}");
    // A disturbance that is not needed is left out.
    let [report, writes] = made_again(&format!("{},lag@0", finding.replay()));
    let alone = format!("WINDLASS_EXPLORE='{}'", finding.replay());
    assert!(report.contains(&alone), "{report}{writes}");
}

/// Returns the output of the process that makes a single run from a text.
fn made_again(text: &str) -> [String; 2] {
    let name = "the_run_that_a_text_names";
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", name])
        .env("WINDLASS_EXPLORE", text)
        .output()
        .unwrap();
    [again.stdout, again.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
#[ignore = "the process that the test of replays starts"]
fn the_run_that_a_text_names() {
    println!("{}", Exploration::new().runs(1).run(|world| failures::creation(world, false)));
}

#[test]
fn the_website_operator_comes_to_the_same_end_after_every_disturbance() {
    let report = Exploration::new().budget(Duration::from_secs(20)).run(website::sites);
    println!("{report}");
    assert_eq!(report.findings().len(), 0, "{report}");
    assert!(report.runs() > 4, "{report}");
}

#[test]
#[ignore = "all plans of the website: minutes"]
fn the_website_operator_survives_a_long_exploration() {
    let report = Exploration::new().budget(Duration::from_secs(900)).run(website::sites);
    println!("{report}");
    assert_eq!(report.findings().len(), 0, "{report}");
}

/// Returns the master seeds of the long explorations: 1 to 20, or those of the variable
/// `WINDLASS_SEEDS`, such as `17-20`.
fn master_seeds() -> RangeInclusive<u64> {
    let Ok(text) = std::env::var("WINDLASS_SEEDS") else { return 1..=20 };
    let (first, last) = text.split_once('-').expect("WINDLASS_SEEDS is two numbers: 17-20");
    first.parse().unwrap()..=last.parse().unwrap()
}

#[test]
#[ignore = "twenty seeds of each fixed operator: minutes"]
fn nothing_is_found_in_fixed_operators_over_twenty_seeds() {
    for seed in master_seeds() {
        let reports = [
            clean(seed, 400, &members::volumes),
            clean(seed, 400, &members::transitions),
            clean(seed, 400, &records::generated),
            clean(seed, 400, &records::phases),
            clean(seed, 400, &failures::creation),
            clean(seed, 400, &failures::clean_up),
            clean(seed, 400, &rotation::stale_deletion),
            clean(seed, 400, &replicas::tasks),
            clean(seed, 400, &replicas::names),
            clean(seed, 400, &drawn::passwords),
            clean(seed, 400, &drawn::tokens),
            clean(seed, 400, &outside::disks),
            clean(seed, 400, &outside::stamps),
            clean(seed, 400, &shared::lists),
            clean(seed, 400, &times::durations),
            clean(seed, 400, &times::attempts),
            clean(seed, 400, &renewals::ages),
            clean(seed, 400, &renewals::slow_ages),
        ];
        reports.iter().for_each(|report| println!("{report}"));
    }
}
