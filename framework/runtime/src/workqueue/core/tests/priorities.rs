//! Tests of priorities, ageing and reasons.

use super::*;
use crate::workqueue::KeyStage::{BackingOff, Delayed, Queued, Working};

const LOW: AddOptions = AddOptions { priority: Priority::LOW, reasons: 0, delay: Duration::ZERO };
const LIVE: AddOptions =
    AddOptions { priority: Priority::NORMAL, reasons: 0, delay: Duration::ZERO };

fn all(queue: &mut Core<u8>, now: Duration) -> Vec<u8> {
    std::iter::from_fn(|| take(queue, now)).collect()
}

#[test]
fn changes_go_before_what_a_start_asks_for() {
    let mut queue = core(8);
    for (key, options) in [(1, LOW), (2, LOW), (3, LIVE), (4, LOW), (5, LIVE)] {
        queue.add(key, options, at(0));
    }
    assert_eq!(all(&mut queue, at(0)), [3, 5, 1, 2, 4]);
}

#[test]
fn a_key_keeps_the_highest_priority_that_it_was_added_with() {
    let mut queue = core(8);
    queue.add(1, LIVE, at(0));
    queue.add(2, LOW, at(0));
    queue.add(1, LOW, at(0));
    queue.add(3, LIVE.priority(Priority::new(7)), at(0));
    assert_eq!(all(&mut queue, at(0)), [3, 1, 2]);
}

#[test]
fn a_key_whose_priority_rises_goes_to_the_end_of_its_new_line() {
    let mut queue = core(8);
    queue.add(1, LOW, at(0));
    queue.add(2, LOW, at(0));
    queue.add(3, LIVE, at(0));
    queue.add(2, LIVE, at(0));
    queue.add(4, LIVE, at(0));
    assert_eq!(queue.counts().queued, 4);
    assert_eq!(all(&mut queue, at(0)), [3, 2, 4, 1]);
}

#[test]
fn a_retry_and_a_requeue_keep_the_priority() {
    let mut queue = core(8);
    queue.add(1, LOW, at(0));
    queue.add(2, LOW, at(0));
    all(&mut queue, at(0));
    finish(&mut queue, 1, Verdict::Retry { draw: 0.0 }, at(0));
    finish(&mut queue, 2, Verdict::After(at(1)), at(0));
    queue.add(3, LIVE, at(1));
    assert_eq!(all(&mut queue, at(1)), [3, 1, 2]);
}

#[test]
fn a_key_that_waits_for_its_time_takes_the_highest_priority_and_the_earliest_time() {
    let mut queue = core(8);
    queue.add(1, LOW.after(at(10)), at(0));
    queue.add(1, LIVE.after(at(99)), at(0));
    queue.add(2, LOW.after(at(5)), at(0));
    assert_eq!(queue.next_due(), Some(at(5)));
    assert_eq!(all(&mut queue, at(10)), [1, 2]);
}

#[test]
fn what_is_asked_for_in_work_holds_for_the_next_turn() {
    let mut queue = core(8);
    queue.add(1, LIVE.reasons(0b001), at(0));
    let taken = queue.take(nanos(at(0))).expect("ready");
    assert_eq!((taken.facts.priority, taken.facts.reasons), (Priority::NORMAL, 0b001));
    queue.add(1, LOW.reasons(0b010), at(0));
    queue.add(1, LOW.reasons(0b100), at(0));
    finish(&mut queue, 1, Verdict::Done, at(0));
    let taken = queue.take(nanos(at(0))).expect("added again");
    assert_eq!((taken.facts.priority, taken.facts.reasons), (Priority::LOW, 0b110));
    finish(&mut queue, 1, Verdict::Done, at(0));
    queue.add(1, LIVE, at(0));
    assert_eq!(queue.take(nanos(at(0))).map(|taken| taken.facts.reasons), Some(0), "they are over");
}

#[test]
fn a_failure_in_work_lifts_what_was_asked_for_to_its_own_priority() {
    let mut queue = core(8);
    queue.add(1, LIVE, at(0));
    queue.take(nanos(at(0)));
    queue.add(1, LOW.reasons(1), at(0));
    queue.add(2, LOW, at(0));
    queue.add(3, LIVE, at(0));
    finish(&mut queue, 1, Verdict::Retry { draw: 1.0 }, at(0));
    let mut taken = std::iter::from_fn(|| queue.take(nanos(at(0))));
    assert_eq!(taken.next().map(|taken| taken.key), Some(3));
    let again = taken.next().expect("two more");
    assert_eq!(
        (again.key, again.facts.priority, again.facts.reasons),
        (1, Priority::NORMAL, 1 | BACK)
    );
}

#[test]
fn g_q7_an_aged_key_gets_one_of_four_turns_however_many_are_more_urgent() {
    let mut queue = core(1);
    (100..104).for_each(|key| queue.add(key, LOW, at(0)));
    let mut served = Vec::new();
    for turn in 0..32_u8 {
        // A more urgent key is always ready.
        let now = if turn < 8 { AGEING - at(1) } else { AGEING };
        queue.add(turn % 2, LIVE, now);
        queue.add(2 + turn % 2, LIVE, now);
        let key = take(&mut queue, now).expect("ready");
        finish(&mut queue, key, Verdict::Done, now);
        if key >= 100 {
            served.push((turn, key));
        }
    }
    assert_eq!(served, [(11, 100), (15, 101), (19, 102), (23, 103)]);
}

#[test]
fn g_q7_among_aged_keys_the_one_that_has_waited_longest_goes_first() {
    let mut queue = core(8);
    queue.add(1, LOW, at(1));
    queue.add(2, LIVE.priority(Priority::new(-1)), at(2));
    (10..18).for_each(|key| queue.add(key, LIVE, AGEING * 2));
    let order = all(&mut queue, AGEING * 2);
    assert_eq!(order[..8], [10, 11, 12, 1, 13, 14, 15, 2]);
}

#[test]
fn failing_keys_hold_their_share_whatever_their_priority() {
    let mut queue = core(4);
    for key in 0..4 {
        queue.add(key, LIVE.priority(Priority::new(9)), at(0));
        take(&mut queue, at(0));
        finish(&mut queue, key, Verdict::Retry { draw: 1.0 }, at(0));
    }
    queue.add(9, LOW, at(9));
    assert_eq!(all(&mut queue, at(9)), [0, 1, 9], "two of four workers, and then others");
}

#[test]
fn a_key_that_was_held_back_keeps_its_reasons_and_its_priority() {
    let mut queue = core(1);
    queue.add(1, LOW.reasons(6), at(0));
    let taken = queue.take(nanos(at(0))).expect("ready");
    queue.finish(taken.facts.ticket, Verdict::Hold(at(5)), taken.facts.reasons, nanos(at(0)));
    queue.promote(nanos(at(5)));
    let taken = queue.take(nanos(at(5))).expect("due");
    assert_eq!((taken.facts.reasons, taken.facts.priority), (6, Priority::LOW));
}

#[test]
fn keys_that_rise_again_and_again_leave_no_growing_line() {
    let mut queue = core(8);
    // The key stays at the front of the low line, and the keys behind it stay there too.
    queue.add(1, LOW, at(0));
    for round in 0..10_000 {
        queue.add(9, LOW, at(0));
        queue.add(9, LIVE, at(0));
        assert_eq!(take(&mut queue, at(0)), Some(9), "{round}");
        finish(&mut queue, 9, Verdict::Done, at(0));
    }
    assert!(queue.lines.places() < 100, "{}", queue.lines.places());
    assert_eq!(all(&mut queue, at(0)), [1]);
}

#[test]
fn what_is_in_the_queue_is_listed_by_place_and_turn() {
    let mut queue = core(2);
    queue.add(1, LIVE, at(0));
    queue.add(2, LIVE, at(0));
    all(&mut queue, at(0));
    finish(&mut queue, 2, Verdict::Retry { draw: 1.0 }, at(0));
    queue.add(3, LOW.reasons(1), at(1));
    queue.add(4, LIVE.reasons(2), at(1));
    queue.add(5, LIVE.after(at(9)), at(1));
    queue.add(6, LIVE.after(at(8)), at(1));
    queue.add(1, LIVE.reasons(4), at(1));
    let told = queue.describe(9, nanos(at(3)));
    let order: Vec<_> = told.iter().map(|state| (state.key, state.stage)).collect();
    let places =
        [(1, Working), (4, Queued), (3, Queued), (2, BackingOff), (6, Delayed), (5, Delayed)];
    assert_eq!(order, places);
    let (working, low, failed) = (&told[0], &told[2], &told[3]);
    assert_eq!((working.again, working.reasons, working.age), (true, 4, Some(at(3))));
    assert_eq!((low.priority, low.reasons, low.age), (Priority::LOW, 1, Some(at(2))));
    assert_eq!((failed.failures, failed.due_in, failed.reasons), (1, Some(at(2)), BACK));
    assert_eq!(queue.describe(2, nanos(at(3)))[..], told[..2]);
    assert!(queue.describe(0, nanos(at(3))).is_empty());
}
