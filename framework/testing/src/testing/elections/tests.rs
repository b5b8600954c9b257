use super::*;

/// Number of simulated elections of a test; `WINDLASS_ELECTIONS` sets another. The program
/// `elections` of `tests/` runs more.
fn elections(default: u64) -> u64 {
    std::env::var("WINDLASS_ELECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn l5_no_two_leaders_can_write_at_once_with_clock_rates_that_differ_by_up_to_15_percent() {
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
    let with_wall_clock = Elections::skewed().broken(Defect::WallClock).hold(6, 1_000);
    assert!(with_wall_clock.overlaps > 0, "clocks did not jump: {with_wall_clock}");
}

/// Writes that take longer to reach the server than the promise allows may overlap, so the limit
/// in the promise is needed.
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
fn every_fault_occurs_in_500_elections() {
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
