use super::*;

/// Number of elections that a test holds; more with `WINDLASS_ELECTIONS`, or by the program
/// `elections`.
fn elections(default: u64) -> u64 {
    std::env::var("WINDLASS_ELECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn l5_no_two_leaders_can_write_at_once_whatever_the_rates_within_1_15() {
    let tally = Elections::skewed().hold(1, elections(2_000));
    assert!(tally.is_safe(), "{tally}");
}

#[test]
fn l5_no_two_leaders_can_write_at_once_with_writes_1_7_s_on_their_way_to_the_server() {
    let tally = Elections::paused().hold(1, elections(2_000));
    assert!(tally.is_safe(), "{tally}");
}

#[test]
fn d6_clocks_that_jump_and_drift_let_no_two_processes_write_at_once() {
    let tally = Elections::skewed().hold(6, elections(1_000));
    assert!(tally.is_safe(), "{tally}");
    let fooled = Elections::skewed().broken(Defect::WallClock).hold(6, 1_000);
    assert!(fooled.overlaps > 0, "clocks did not jump: {fooled}");
}

/// The condition that the promise names is necessary: the same elections beyond that condition are
/// not safe.
#[test]
fn l5_writes_that_are_longer_on_their_way_than_promised_are_counted() {
    let late = Elections::paused().late(Duration::from_secs(8)).hold(1, 2_000);
    assert!(late.overlaps > 0, "{late}");
}

#[test]
fn every_planted_defect_is_counted_as_overlapping_writes() {
    for defect in Defect::ALL {
        let mut found = ElectionCounts::default();
        for seed in 1..40 {
            found.add(&Elections::skewed().broken(defect).hold(seed, 250));
            if found.overlaps > 0 {
                break;
            }
        }
        assert!(found.overlaps > 0, "{defect:?} was not noticed: {found}");
    }
}

#[test]
fn everything_that_can_go_wrong_did() {
    let tally = Elections::paused().hold(3, 500);
    let counts =
        [tally.writes, tally.refused, tally.crashes, tally.releases, tally.left, tally.freezes];
    assert!(tally.deleted > 20, "{tally}");
    assert!(counts.iter().all(|count| *count > 20), "{tally}");
    assert!(tally.lost > 50 && tally.conflicts > 50, "{tally}");
}

#[test]
fn the_same_seed_holds_the_same_elections() {
    let hold = |seed| Elections::paused().hold(seed, 100);
    assert_eq!(hold(3), hold(3));
    assert_ne!(hold(3).digest, hold(4).digest);
}
