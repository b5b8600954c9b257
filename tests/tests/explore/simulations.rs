//! Simulations of the planted operators and of the website.

use std::process::Command;
use std::time::Duration;

use windlass::testing::Simulation;

use crate::{failures, members, website};

#[test]
fn seeds_find_a_fault_and_nothing_in_its_fixed_twin() {
    let report = Simulation::new().run(1..=40, |world| members::volumes(world, false));
    println!("{report}");
    assert_ne!(report.findings().len(), 0, "{report}");
    let fixed = Simulation::new().run(1..=40, |world| members::volumes(world, true));
    assert_eq!(fixed.findings().len(), 0, "{fixed}");
    assert_eq!(fixed.seeds(), 40, "{fixed}");
    assert!(fixed.faults() > 20, "{fixed}");
}

#[test]
fn equal_seeds_exchange_equal_bytes() {
    let run = || Simulation::new().run(1..=4, |world| failures::creation(world, true));
    let (one, other) = (run(), run());
    assert_eq!((one.trace(), one.faults()), (other.trace(), other.faults()), "{one}{other}");
    assert_eq!(one.diverged().count(), 0, "{one}");
    let elsewhere = Simulation::new().run(5..=8, |world| failures::creation(world, true));
    assert_ne!(one.trace(), elsewhere.trace());
}

#[test]
fn a_seed_is_run_alone_with_the_fewest_faults_that_suffice() {
    let report = Simulation::new().run(1..=60, |world| failures::creation(world, false));
    let finding = report.findings().first().unwrap();
    let (_, faults) = finding.replay().split_once(':').unwrap();
    let told = finding.to_string();
    assert_eq!(told.matches("   done:   ").count().to_string(), faults, "{report}");
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "simulations::the_seed_that_a_text_names"])
        .env("WINDLASS_SIMULATE", finding.replay())
        .output()
        .unwrap();
    let output = [again.stdout, again.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let [report, exchange] = output;
    assert!(report.contains("1 findings in 1 seeds"), "{report}{exchange}");
    assert!(exchange.contains("asks for the create of configmaps default/"), "{exchange}");
    assert!(exchange.contains("disturbed: "), "{exchange}");
}

#[test]
#[ignore = "the process that the test of replays starts"]
fn the_seed_that_a_text_names() {
    println!("{}", Simulation::new().run(1..=60, |world| failures::creation(world, false)));
}

#[test]
fn the_website_comes_to_one_end_with_every_seed() {
    let simulation = Simulation::new().budget(Duration::from_secs(20));
    let report = simulation.run(1..=10_000, website::sites);
    println!("{report}");
    assert_eq!(report.findings().len(), 0, "{report}");
    assert!(report.seeds() > 4, "{report}");
}

#[test]
#[ignore = "ten thousand seeds: minutes, best in a release build"]
fn the_website_comes_to_one_end_with_ten_thousand_seeds() {
    let report = Simulation::new().run(1..=10_000, website::sites);
    println!("{report}");
    assert_eq!((report.findings().len(), report.diverged().count()), (0, 0), "{report}");
}
