//! Tests of answers 404: unconfirmed, confirmed, and followed by lookups of the kind.

use super::*;

#[test]
fn a_404_is_checked_until_discovery_or_ten_seconds_confirm_it() {
    let start = Instant::now();
    let (first, again) =
        (NotFound::Unconfirmed { is_repeated: false }, NotFound::Unconfirmed { is_repeated: true });
    // Before the first list, and afterwards.
    for (mut machine, second) in [
        (listing(&ReflectorOptions::new(), start), again),
        (watching(&ReflectorOptions::new(), start), first),
    ] {
        for (after, wanted) in [(0, first), (9, second), (10, NotFound::Confirmed)] {
            assert_eq!(machine.not_found(start + seconds(after)), wanted, "after {after} s");
            end(&mut machine, AttemptEnd::Unconfirmed(why()), start);
        }
        end(&mut machine, absent(), start);
        assert_eq!(machine.not_found(start + seconds(11)), NotFound::Confirmed, "it is absent");
    }
    let judged = |served| NotFound::Unconfirmed { is_repeated: false }.judge(served, why());
    assert_eq!(judged(Some(Served::No)), absent());
    for served in [Some(Served::Yes), Some(Served::Unknown), None] {
        assert!(matches!(judged(served), AttemptEnd::Unconfirmed(_)), "{served:?}");
    }
    for (served, is_absent) in
        [(Some(Served::Yes), false), (Some(Served::Unknown), true), (None, true)]
    {
        assert_eq!(again.judge(served, why()) == absent(), is_absent, "{served:?}");
    }
}

#[test]
fn a_series_of_404_goes_on_after_a_panic_and_ends_with_any_other_end_and_a_complete_list() {
    let start = Instant::now();
    let late = start + seconds(10);
    for (between, is_believed) in [
        (AttemptEnd::Unconfirmed(why()), true),
        (AttemptEnd::Panicked(why()), true),
        (AttemptEnd::Ended, false),
        (failed(), false),
        (internal(), false),
    ] {
        let mut machine = watching(&ReflectorOptions::new(), start);
        machine.not_found(start);
        end(&mut machine, between.clone(), start);
        assert_eq!(machine.not_found(late) == NotFound::Confirmed, is_believed, "{between:?}");
    }
    let mut machine = listing(&ReflectorOptions::new(), start);
    machine.not_found(start);
    complete(&mut machine, "7", start);
    assert_ne!(machine.not_found(late), NotFound::Confirmed);
}

#[test]
fn the_target_of_an_absent_kind_is_emptied_once_and_again_after_objects_or_another_failure() {
    let now = Instant::now();
    let mut machine = watching(&ReflectorOptions::new(), now);
    let absent_is = |machine: &mut Machine, wanted| {
        assert_eq!(action(&end(machine, absent(), now)), wanted);
    };
    absent_is(&mut machine, "absent, emptied");
    absent_is(&mut machine, "absent");
    begin(&mut machine, now);
    absent_is(&mut machine, "absent");
    begin(&mut machine, now);
    machine.count_item();
    absent_is(&mut machine, "absent, emptied");
    absent_is(&mut machine, "absent");
    end(&mut machine, refused(), now);
    absent_is(&mut machine, "absent, emptied");
    // The list shows an object and is followed by another list, which shows none.
    begin(&mut machine, now);
    machine.count_item();
    end(&mut machine, AttemptEnd::Unsupported(why()), now);
    begin(&mut machine, now);
    absent_is(&mut machine, "absent, emptied");
    absent_is(&mut machine, "absent");
    begin(&mut machine, now);
    complete(&mut machine, "9", now);
    assert!(!machine.is_absent());
    absent_is(&mut machine, "absent, emptied");
}

/// B13: a kind that does not exist yet.
#[test]
fn b13_an_absent_kind_is_looked_for_within_five_seconds_and_sooner_once_discovery_has_it() {
    let now = Instant::now();
    let mut machine = watching(&ReflectorOptions::new(), now);
    assert_eq!(machine.discovery_response(Some(Served::No)), None, "it is not absent");
    for (served, longest) in [
        (Some(Served::No), 5000),
        (None, 5000),
        (Some(Served::Yes), 500),
        (Some(Served::Yes), 1000),
        (Some(Served::Yes), 2000),
        (Some(Served::Yes), 4000),
        (Some(Served::Yes), 5000),
        (Some(Served::Unknown), 5000),
        (Some(Served::Yes), 500),
        (Some(Served::No), 5000),
    ] {
        let looked = machine.discovery_response(served);
        assert_eq!(looked.is_some(), machine.is_absent() && served == Some(Served::No));
        let waited = pause(&end(&mut machine, absent(), now));
        let longest = Duration::from_millis(longest);
        assert!((longest / 2..longest).contains(&waited), "{served:?}: {waited:?} of {longest:?}");
    }
    for _ in 0..20 {
        assert!(pause(&end(&mut machine, failed(), now)) <= seconds(5), "it stays absent");
    }
    assert!(machine.is_absent());
}
