//! Findings as files: written by a test, and run again by later ones.

use std::path::PathBuf;

use windlass::testing::Exploration;

use crate::{failures, members};

/// Folder of the findings that are kept beside these tests.
const KEPT: &str = "tests/explore/findings";

#[test]
fn a_saved_finding_is_a_test_of_its_fault() {
    let report = Exploration::new().first_only(true).run(|world| failures::creation(world, false));
    let found = report.findings().first().unwrap();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a-saved-finding.json");
    found.save(&file).unwrap();
    let again = Exploration::new().replay(&file).run(|world| failures::creation(world, false));
    let [repeated] = again.findings() else { panic!("{again}") };
    assert_eq!((repeated.heading(), repeated.details()), (found.heading(), found.details()));
    let fixed = Exploration::new().replay(&file).run(|world| failures::creation(world, true));
    assert_eq!(fixed.findings().len(), 0, "{fixed}");
}

#[test]
fn the_findings_of_a_folder_are_run_alone() {
    let report = Exploration::new().replay(KEPT).run(|world| failures::creation(world, true));
    assert_eq!(report.findings().len(), 0, "{report}");
    let report = Exploration::new().replay(KEPT).run(|world| failures::creation(world, false));
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!(finding.heading(), "the end differs", "{report}");
}

#[test]
fn a_saved_finding_whose_moment_is_gone_is_told() {
    let none = Exploration::new().replay("tests/explore/none.json");
    let report = none.run(|world| failures::creation(world, true));
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!(finding.heading(), "a file is no finding", "{report}");
    let other = Exploration::new().replay(KEPT);
    let report = other.run(|world| members::volumes(world, true));
    let [finding] = report.findings() else { panic!("{report}") };
    assert!(finding.heading().contains("does not have the moment"), "{report}");
}
