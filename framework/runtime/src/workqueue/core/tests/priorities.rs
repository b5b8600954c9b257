//! Tests of priorities, ageing and reasons.

use super::*;
use crate::workqueue::KeyStage::{BackingOff, Delayed, Queued, Working};

const LOW: AddOptions = AddOptions { priority: Priority::LOW, reasons: 0, delay: Duration::ZERO };
const LIVE: AddOptions =
    AddOptions { priority: Priority::NORMAL, reasons: 0, delay: Duration::ZERO };

fn all(queue: &mut QueueCore<u8>, now: Duration) -> Vec<u8> {
    std::iter::from_fn(|| take(queue, now)).collect()
}

#[test]
fn changes_go_before_the_keys_of_a_start() {
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
fn a_key_whose_priority_rises_goes_to_the_end_of_its_new_lane() {
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
    finish(&mut queue, 1, Completion::Retry { draw: 0.0 }, at(0));
    finish(&mut queue, 2, Completion::After(at(1)), at(0));
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
fn an_add_in_work_applies_to_the_next_turn() {
    let mut queue = core(8);
    queue.add(1, LIVE.reasons(0b001), at(0));
    let claim = queue.take(nanos(at(0))).expect("ready");
    assert_eq!((claim.info.priority, claim.info.reasons), (Priority::NORMAL, 0b001));
    queue.add(1, LOW.reasons(0b010), at(0));
    queue.add(1, LOW.reasons(0b100), at(0));
    finish(&mut queue, 1, Completion::Done, at(0));
    let claim = queue.take(nanos(at(0))).expect("added again");
    assert_eq!((claim.info.priority, claim.info.reasons), (Priority::LOW, 0b110));
    finish(&mut queue, 1, Completion::Done, at(0));
    queue.add(1, LIVE, at(0));
    assert_eq!(queue.take(nanos(at(0))).map(|claim| claim.info.reasons), Some(0), "they are over");
}

#[test]
fn a_failure_raises_the_priority_of_an_add_in_work_to_its_own() {
    let mut queue = core(8);
    queue.add(1, LIVE, at(0));
    queue.take(nanos(at(0)));
    queue.add(1, LOW.reasons(1), at(0));
    queue.add(2, LOW, at(0));
    queue.add(3, LIVE, at(0));
    finish(&mut queue, 1, Completion::Retry { draw: 1.0 }, at(0));
    let mut taken = std::iter::from_fn(|| queue.take(nanos(at(0))));
    assert_eq!(taken.next().map(|claim| claim.key), Some(3));
    let again = taken.next().expect("two more");
    assert_eq!(
        (again.key, again.info.priority, again.info.reasons),
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
        finish(&mut queue, key, Completion::Done, now);
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
        finish(&mut queue, key, Completion::Retry { draw: 1.0 }, at(0));
    }
    queue.add(9, LOW, at(9));
    assert_eq!(all(&mut queue, at(9)), [0, 1, 9], "two of four workers, and then others");
}

#[test]
fn a_key_on_hold_keeps_its_reasons_and_its_priority() {
    let mut queue = core(1);
    queue.add(1, LOW.reasons(6), at(0));
    let claim = queue.take(nanos(at(0))).expect("ready");
    queue.finish(claim.info.ticket, Completion::Hold(at(5)), claim.info.reasons, nanos(at(0)));
    queue.promote(nanos(at(5)));
    let claim = queue.take(nanos(at(5))).expect("due");
    assert_eq!((claim.info.reasons, claim.info.priority), (6, Priority::LOW));
}

#[test]
fn keys_that_rise_again_and_again_leave_no_growing_lane() {
    let mut queue = core(8);
    // The key stays at the front of the low lane, and the entries behind it stay there too.
    queue.add(1, LOW, at(0));
    for round in 0..10_000 {
        queue.add(9, LOW, at(0));
        queue.add(9, LIVE, at(0));
        assert_eq!(take(&mut queue, at(0)), Some(9), "{round}");
        finish(&mut queue, 9, Completion::Done, at(0));
    }
    assert!(queue.lanes.entry_count() < 100, "{}", queue.lanes.entry_count());
    assert_eq!(all(&mut queue, at(0)), [1]);
}

#[test]
fn keys_are_listed_by_stage_and_turn() {
    let mut queue = core(2);
    queue.add(1, LIVE, at(0));
    queue.add(2, LIVE, at(0));
    all(&mut queue, at(0));
    finish(&mut queue, 2, Completion::Retry { draw: 1.0 }, at(0));
    queue.add(3, LOW.reasons(1), at(1));
    queue.add(4, LIVE.reasons(2), at(1));
    queue.add(5, LIVE.after(at(9)), at(1));
    queue.add(6, LIVE.after(at(8)), at(1));
    queue.add(1, LIVE.reasons(4), at(1));
    let listed = queue.describe(9, nanos(at(3)));
    let order: Vec<_> = listed.iter().map(|state| (state.key, state.stage)).collect();
    let stages =
        [(1, Working), (4, Queued), (3, Queued), (2, BackingOff), (6, Delayed), (5, Delayed)];
    assert_eq!(order, stages);
    let (working, low, failed) = (&listed[0], &listed[2], &listed[3]);
    assert_eq!((working.again, working.reasons, working.age), (true, 4, Some(at(3))));
    assert_eq!((low.priority, low.reasons, low.age), (Priority::LOW, 1, Some(at(2))));
    assert_eq!((failed.failures, failed.due_in, failed.reasons), (1, Some(at(2)), BACK));
    assert_eq!(queue.describe(2, nanos(at(3)))[..], listed[..2]);
    assert!(queue.describe(0, nanos(at(3))).is_empty());
}
