use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

mod naive;
mod priorities;

use self::naive::Naive;

const SECOND: Duration = Duration::from_secs(1);
const AGEING: Duration = Duration::from_millis(250);
/// Reason of requeued keys, in these tests.
const BACK: u64 = 1 << 63;

/// Accessors of keys that store a slot number which is usually wrong.
fn slot_hint() -> SlotHint<u8> {
    SlotHint { read: |key| key.is_multiple_of(3).then_some(u32::from(*key) / 3), write: |_, _| {} }
}

/// Some keys share a hash and must be distinguished all the same.
fn hash_of(key: u64) -> u64 {
    (key % 7).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<T: Copy + Eq + Into<u64>> QueueCore<T> {
    /// Number of keys that are not idle, of those in work, and of delays.
    fn in_use(&self) -> (usize, usize, usize) {
        (self.slots.in_use(), self.slots.in_work().len(), self.timers.len())
    }

    fn add(&mut self, key: T, options: AddOptions, now: Duration) {
        self.add_hashed(&mut (hash_of(key.into()), Some(key)), options, nanos(now));
    }
}

impl QueueCore<u8> {
    fn plain(&mut self, key: u8, now: Duration) {
        self.add(key, AddOptions::new(), now);
    }

    fn plain_at(&mut self, key: u8, at: Duration, now: Duration) {
        self.add(key, AddOptions::new().after(at.saturating_sub(now)), now);
    }
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn core(workers: usize) -> QueueCore<u8> {
    QueueCore::new(workers, RetryPolicy::forever(), AGEING, None)
}

fn take(core: &mut QueueCore<u8>, now: Duration) -> Option<u8> {
    core.promote(nanos(now));
    core.take(nanos(now)).map(|claim| claim.key)
}

fn finish(
    core: &mut QueueCore<u8>,
    key: u8,
    completion: Completion,
    now: Duration,
) -> Option<Finished<u8>> {
    let ticket = core.slots.find(&key, hash_of(key.into()))?;
    // As the asynchronous queue does.
    let plainly = (completion == Completion::Done).then(|| core.finish_plain(ticket, nanos(now)));
    if let Some(worked) = plainly.flatten() {
        return Some(Finished { worked, retry: None, discarded: Discarded::Nothing });
    }
    core.finish(ticket, completion, BACK, nanos(now))
}

fn retry_in(end: Option<Finished<u8>>) -> Option<Duration> {
    end.and_then(|end| end.retry)
}

#[test]
fn g_q4_a_key_added_while_in_work_keeps_the_place_it_then_took() {
    let mut queue = core(2);
    queue.plain(1, at(0));
    assert_eq!(take(&mut queue, at(0)), Some(1));
    queue.plain(1, at(1));
    queue.plain(2, at(2));
    finish(&mut queue, 1, Completion::Done, at(3));
    assert_eq!(take(&mut queue, at(3)), Some(1));
    assert_eq!(take(&mut queue, at(3)), Some(2));
}

#[test]
fn g_q8_a_queue_with_very_many_outdated_delays_can_be_closed() {
    let mut queue = QueueCore::<u32>::new(1, RetryPolicy::forever(), AGEING, None);
    queue.slots = Slots::retaining(1000, None);
    // Enough that the slots are released with the last key, and each with an outdated delay.
    for again in [20, 10] {
        let options = AddOptions::new().after(again * SECOND);
        (0..6000).for_each(|key| queue.add(key, options, at(0)));
    }
    drop(queue.close());
    assert_eq!(queue.counts(), QueueCounts::default());
    assert!(queue.exhausted());
}

#[test]
fn an_idle_key_keeps_its_slot_and_nothing_else() {
    let completions =
        [(Completion::Done, Discarded::Nothing), (Completion::Gone, Discarded::Key(1))];
    for (completion, discarded) in completions {
        let mut queue = core(1);
        queue.plain(1, at(0));
        take(&mut queue, at(0));
        let finished = finish(&mut queue, 1, completion, at(1));
        assert_eq!(finished.map(|end| end.discarded), Some(discarded));
        assert_eq!(queue.in_use(), (0, 0, 0));
        assert_eq!(queue.describe(9, nanos(at(1))), []);
    }
}

#[test]
fn the_state_of_a_key_is_reset_when_it_becomes_idle() {
    for completion in [Completion::Done, Completion::Gone, Completion::After(Duration::ZERO)] {
        let mut queue = core(1);
        let (high, low) = (Priority::new(9), Priority::LOW);
        queue.add(1, AddOptions::new().priority(high).reasons(2), at(0));
        take(&mut queue, at(0));
        finish(&mut queue, 1, Completion::Retry { draw: 0.0 }, at(0));
        take(&mut queue, at(0));
        finish(&mut queue, 1, completion, at(0));
        if completion == Completion::After(Duration::ZERO) {
            take(&mut queue, at(0));
            finish(&mut queue, 1, Completion::Done, at(0));
        }
        queue.add(1, AddOptions::new().priority(low).reasons(4), at(0));
        let info = queue.take(nanos(at(0))).map(|claim| claim.info).expect("a key");
        assert_eq!((info.failures, info.priority, info.reasons), (0, low, 4), "{completion:?}");
    }
}

#[test]
fn a_queue_retains_the_slots_of_many_keys_and_more_where_keys_are_those_of_objects() {
    let slot_hint = SlotHint { read: |_| None, write: |_, _| {} };
    for (slot_hint, retained) in [(None, 4096), (Some(slot_hint), 131_072)] {
        let mut queue = QueueCore::<u32>::new(1, RetryPolicy::forever(), AGEING, slot_hint);
        for key in 0..140_000 {
            let hash = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            queue.add_hashed(&mut (hash, Some(key)), AddOptions::new(), 0);
            let ticket = queue.take(0).expect("a key").info.ticket;
            assert_eq!(queue.finish_plain(ticket, 0), Some(0));
        }
        assert_eq!(queue.slots.slot_count(), retained);
    }
}

#[test]
fn g_q9_events_during_a_backoff_do_not_advance_it() {
    let mut queue = core(1);
    let fail = Completion::Retry { draw: 1.0 };
    queue.plain(1, at(0));
    take(&mut queue, at(0));
    assert_eq!(retry_in(finish(&mut queue, 1, fail, at(0))), Some(at(5)));
    for _ in 0..9 {
        queue.plain(1, at(1));
    }
    assert_eq!(take(&mut queue, at(1)), Some(1));
    assert_eq!(retry_in(finish(&mut queue, 1, fail, at(1))), Some(at(10)));
}

#[test]
fn mechanism_68_a_success_resets_the_backoff() {
    let mut queue = core(1);
    let fail = Completion::Retry { draw: 1.0 };
    for completion in [fail, fail, Completion::Done] {
        queue.plain(1, at(0));
        take(&mut queue, at(0));
        finish(&mut queue, 1, completion, at(0));
    }
    queue.plain(1, at(0));
    take(&mut queue, at(0));
    assert_eq!(retry_in(finish(&mut queue, 1, fail, at(0))), Some(at(5)));
}

#[test]
fn mechanism_68_a_key_given_up_rests_until_it_is_added_and_starts_afresh() {
    let mut queue = QueueCore::new(1, RetryPolicy::at_most(1), AGEING, None);
    let fail = Completion::Retry { draw: 1.0 };
    queue.plain(1_u8, at(0));
    queue.take(nanos(at(0)));
    assert_eq!(retry_in(finish(&mut queue, 1, fail, at(0))), Some(at(5)));
    queue.promote(nanos(SECOND));
    queue.take(nanos(SECOND));
    assert_eq!(retry_in(finish(&mut queue, 1, fail, SECOND)), None);
    assert_eq!(queue.counts(), QueueCounts::default());
    queue.plain(1, SECOND);
    assert_eq!(queue.take(nanos(SECOND)).map(|claim| claim.info.failures), Some(0));
}

#[test]
fn c2_failing_keys_hold_at_most_half_of_the_workers() {
    let mut queue = core(4);
    for key in 0..6 {
        queue.plain(key, at(0));
        take(&mut queue, at(0));
        finish(&mut queue, key, Completion::Retry { draw: 0.5 }, at(0));
    }
    assert_eq!(take(&mut queue, SECOND), Some(0));
    assert_eq!(take(&mut queue, SECOND), Some(1));
    assert_eq!(take(&mut queue, SECOND), None, "two of four workers are poisoned");
    queue.plain(9, SECOND);
    assert_eq!(take(&mut queue, SECOND), Some(9), "others pass the poisoned ones");
    finish(&mut queue, 0, Completion::Done, SECOND);
    assert_eq!(take(&mut queue, SECOND), Some(2));
}

#[test]
fn a_single_worker_still_serves_failing_keys() {
    let mut queue = core(1);
    queue.plain(1, at(0));
    take(&mut queue, at(0));
    finish(&mut queue, 1, Completion::Retry { draw: 0.0 }, at(0));
    assert_eq!(take(&mut queue, at(0)), Some(1));
}

#[test]
fn after_closing_a_key_added_again_in_work_is_still_handed_out() {
    let mut queue = core(1);
    queue.plain(1, at(0));
    queue.plain_at(2, SECOND, at(0));
    take(&mut queue, at(0));
    queue.plain(1, at(0));
    drop(queue.close());
    queue.plain(3, at(0));
    assert!(!queue.exhausted());
    finish(&mut queue, 1, Completion::Done, at(0));
    assert_eq!(take(&mut queue, 2 * SECOND), Some(1));
    assert!(queue.exhausted());
    finish(&mut queue, 1, Completion::Retry { draw: 1.0 }, at(0));
    assert!(queue.is_drained() && queue.counts() == QueueCounts::default());
}

#[test]
fn delays_that_were_overtaken_leave_no_growing_heap() {
    let mut queue = core(1);
    queue.plain_at(0, Duration::from_secs(3600), at(0));
    for round in 0..10_000 {
        queue.plain_at(1, Duration::from_secs(60), at(round));
        queue.plain(1, at(round));
        take(&mut queue, at(round));
        finish(&mut queue, 1, Completion::Done, at(round));
    }
    assert!(queue.timers.entry_count() < 100, "{}", queue.timers.entry_count());
    assert_eq!(queue.counts(), QueueCounts { delayed: 1, ..QueueCounts::default() });
}

#[test]
fn keys_in_work_that_fail_again_and_again_keep_their_order() {
    let mut queue = core(8);
    let fail = Completion::RetryAfter(Duration::ZERO);
    (0..4).for_each(|key| queue.plain(key, at(0)));
    (0..4).for_each(|key| assert_eq!(take(&mut queue, at(0)), Some(key)));
    (0..4).for_each(|key| assert!(finish(&mut queue, key, fail, at(0)).is_some()));
    // The failing keys hold half of the workers; each is added again while in work, and
    // other keys are added in between.
    for key in 0..4 {
        assert_eq!(take(&mut queue, at(1)), Some(key));
        queue.plain(key, at(1));
        queue.plain(10 + key, at(1));
    }
    for key in [3, 1, 0, 2] {
        finish(&mut queue, key, if key == 1 { Completion::Done } else { fail }, at(2));
    }
    let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, at(3))).collect();
    assert_eq!(order, [0, 10, 1, 11, 2, 12, 3, 13]);
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, AddOptions),
    Take,
    Finish(usize, Completion),
    Pass(u64),
    Close,
}

fn completion() -> impl Strategy<Value = Completion> {
    prop_oneof![
        3 => Just(Completion::Done),
        1 => Just(Completion::Gone),
        1 => (0_u64..200).prop_map(|ms| Completion::After(at(ms))),
        1 => (0_u64..200).prop_map(|ms| Completion::RetryAfter(at(ms))),
        1 => (0_u64..200).prop_map(|ms| Completion::Hold(at(ms))),
        3 => (0_u32..=4).prop_map(|quarters| Completion::Retry { draw: f64::from(quarters) / 4.0 }),
        1 => (0_u32..=4).prop_map(|quarters| {
            Completion::RetryAnew { draw: f64::from(quarters) / 4.0 }
        }),
    ]
}

fn add_options() -> impl Strategy<Value = AddOptions> {
    let delay = prop_oneof![2 => Just(0), 1 => 0_u64..300];
    (prop_oneof![3 => Just(0_i8), 1 => Just(-100), 1 => -3_i8..3], 0_u32..8, delay).prop_map(
        |(priority, reason, ms)| {
            AddOptions::new().priority(Priority::new(priority)).reasons(1 << reason).after(at(ms))
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_u8..6, add_options()).prop_map(|(key, options)| Step::Add(key, options)),
        5 => Just(Step::Take),
        4 => (0_usize..8, completion()).prop_map(|(which, completion)| Step::Finish(which, completion)),
        2 => (1_u64..100).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..120)
}

/// Steps as above; at some point the queue may be closed.
fn steps_and_end() -> impl Strategy<Value = Vec<Step>> {
    (steps(), prop::option::weighted(0.3, 0_usize..120)).prop_map(|(mut steps, close)| {
        if let Some(close) = close {
            steps.insert(close.min(steps.len()), Step::Close);
        }
        steps
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The queue hands out the same keys as the naive queue, whatever happens (G-Q1 to Q6, Q8 and
    /// Q9: exclusive work, no lost or repeated keys, order, delays, shutdown and backoff).
    #[test]
    fn g_q1_to_g_q6_the_queue_agrees_with_a_naive_one(
        workers in 1_usize..6,
        retained in 0_usize..8,
        has_hint in any::<bool>(),
        steps in steps_and_end(),
    ) {
        let mut queue = core(workers);
        queue.slots = Slots::retaining(retained, has_hint.then(slot_hint));
        let mut naive = Naive::new(workers);
        let (mut now, mut in_work) = (Duration::ZERO, Vec::new());
        for step in steps {
            // As the asynchronous queue does before each step.
            queue.promote(nanos(now));
            naive.promote(now);
            match step {
                Step::Add(key, options) => {
                    queue.add(key, options, now);
                    naive.add(key, options, now);
                }
                Step::Take => {
                    let taken = queue.take(nanos(now));
                    let taken = taken.map(|Claim { key, info }| (key, info.priority, info.reasons));
                    prop_assert_eq!(taken, naive.take(now));
                    if let Some((key, ..)) = taken {
                        prop_assert!(!in_work.contains(&key), "handed out twice");
                        in_work.push(key);
                    }
                }
                Step::Finish(which, completion) if !in_work.is_empty() => {
                    let key = in_work.remove(which % in_work.len());
                    prop_assert!(finish(&mut queue, key, completion, now).is_some());
                    naive.finish(key, completion, now);
                }
                Step::Close => {
                    drop(queue.close());
                    naive.close();
                }
                Step::Finish(..) => {}
                Step::Pass(ms) => {
                    now += at(ms);
                    queue.promote(nanos(now));
                    naive.promote(now);
                }
            }
            prop_assert_eq!(queue.counts(), naive.counts());
            prop_assert_eq!(queue.eligible(), naive.eligible());
            prop_assert_eq!(queue.next_due(), naive.next_due());
            prop_assert_eq!(queue.exhausted(), naive.exhausted());
        }
    }

    /// Every key that was added is handed out in the end, and then nothing is left (G-Q2: no
    /// wake-up is lost).
    #[test]
    fn every_added_key_is_handed_out_and_then_nothing_is_left(
        workers in 1_usize..6,
        retained in 0_usize..8,
        has_hint in any::<bool>(),
        steps in steps(),
    ) {
        let mut queue = core(workers);
        queue.slots = Slots::retaining(retained, has_hint.then(slot_hint));
        let mut owed = BTreeSet::new();
        let (mut now, mut in_work) = (Duration::ZERO, Vec::new());
        for step in steps {
            match step {
                Step::Add(key, options) => {
                    queue.add(key, options, now);
                    owed.insert(key);
                }
                Step::Take => in_work.extend(take(&mut queue, now).inspect(|key| {
                    owed.remove(key);
                })),
                Step::Finish(which, completion) if !in_work.is_empty() => {
                    let key = in_work.remove(which % in_work.len());
                    finish(&mut queue, key, completion, now);
                }
                Step::Finish(..) | Step::Close => {}
                Step::Pass(ms) => now += at(ms),
            }
        }
        for key in in_work {
            finish(&mut queue, key, Completion::Done, now);
        }
        now += Duration::from_secs(600);
        while let Some(key) = take(&mut queue, now) {
            owed.remove(&key);
            finish(&mut queue, key, Completion::Done, now);
        }
        prop_assert!(owed.is_empty(), "never handed out: {:?}", owed);
        prop_assert_eq!(queue.in_use(), (0, 0, 0));
    }
}
