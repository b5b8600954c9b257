//! Tests of the check whether the server's store was set back, without requests.

use std::sync::Arc;

use super::*;

fn check() -> RollbackCheck<&'static str> {
    RollbackCheck::new(&ReflectorOptions::new(), Rng::seeded(7))
}

#[test]
fn b8_a_reading_that_shows_a_version_below_a_known_one_proves_that_the_store_was_set_back() {
    let now = Instant::now();
    for (position, had, version, wanted) in [
        ("9", None, "9", None),
        ("9", None, "10", None),
        ("9", None, "8", Some("9")),
        ("9", Some("20"), "8", Some("9")),
        ("9", Some("20"), "12", Some("20")),
        ("9", Some("20"), "20", None),
    ] {
        let mut check = check();
        check.request_check(now);
        if let Some(had) = had {
            check.peer_report((now, Arc::from(had)), now, now);
        }
        assert_eq!((check.due(), check.is_reading()), (Some(now), false));
        check.begin(position, "read");
        assert_eq!((check.due(), check.is_reading()), (None, true));
        assert_eq!(check.read(), Some(&mut "read"));
        assert_eq!(check.compare(version).as_deref(), wanted, "{position} {had:?} {version}");
        assert_eq!((check.due(), check.is_reading()), (None, false));
    }
}

#[test]
fn b8_a_failed_reading_is_repeated_after_a_pause_and_a_lost_connection_voids_the_one_under_way() {
    let now = Instant::now();
    let mut check = check();
    for (asked, least) in [(None, 0), (Some(seconds(20)), 20), (Some(seconds(600)), 60)] {
        check.begin("9", "read");
        check.failed(asked, now);
        let due = check.due().expect("it is repeated") - now;
        assert!((seconds(least)..seconds(least + 4)).contains(&due), "{asked:?}: {due:?}");
        assert!(!check.is_reading());
    }
    check.begin("9", "read");
    check.request_check(now);
    assert_eq!((check.due(), check.is_reading()), (Some(now), false));
    check.resolve();
    assert_eq!((check.due(), check.read()), (None, None));
}

#[test]
fn b8_a_hint_counts_once_in_two_minutes_and_not_while_a_reading_is_due_or_under_way() {
    let start = Instant::now();
    let mut check = check();
    for (after, is_due) in [(0, true), (119, false), (120, true), (239, false), (240, true)] {
        check.hint(start + seconds(after));
        assert_eq!(check.due().is_some(), is_due, "after {after} s");
        check.resolve();
    }
    check.begin("9", "read");
    check.hint(start + seconds(400));
    assert!(check.is_reading(), "it answers this hint, too");
    check.compare("9");
    check.hint(start + seconds(401));
    assert!(check.due().is_some(), "the one before was not heeded");
}

#[test]
fn b8_a_report_counts_once_and_not_if_a_list_began_later_or_the_reflector_found_it_itself() {
    let start = Instant::now();
    let report = |at| (start + seconds(at), Arc::<str>::from("20"));
    let mut check = check();
    for (at, list_began, is_due) in [(10, 5, true), (10, 5, false), (20, 20, true), (30, 31, false)]
    {
        check.peer_report(report(at), start + seconds(list_began), start + seconds(40));
        assert_eq!(check.due().is_some(), is_due, "{at} {list_began}");
        check.resolve();
    }
    check.found(start + seconds(50));
    check.peer_report(report(50), start, start + seconds(60));
    assert_eq!(check.due(), None);
}
