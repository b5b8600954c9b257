//! The election without I/O, at the very end of each wait.

use super::super::decision::{
    Handover, HandoverPolicy, LockRequest, LockResponse, Machine, OwnRecords, Reaction,
};
use super::super::durations::JITTER;
use super::*;

struct Probe {
    handover: Handover,
    written: OwnRecords,
    clock: Clock,
}

impl Probe {
    fn new(policy: HandoverPolicy) -> Self {
        let (written, clock) = (OwnRecords::default(), Clock::simulated(Timestamp::UNIX_EPOCH));
        let timing = LeaderElection::new("ops").timing;
        let machine = Machine::new("ann".to_owned(), timing, written.clone());
        Self { handover: Handover::new(machine, policy), written, clock }
    }

    /// Returns the request that follows a read with that answer.
    fn reads(&mut self, answer: LockResponse) -> Option<LockRequest> {
        let (now, wall) = (self.clock.reading(), self.clock.wall());
        assert_eq!(self.handover.attempt(&now, wall), LockRequest::Read);
        self.handover.answered(&LockRequest::Read, answer, &now, &now, wall)
    }

    /// The write is stored unchanged.
    fn stores(&mut self, ask: &LockRequest) {
        let (LockRequest::Create(record) | LockRequest::Replace { record, .. }) = ask else {
            panic!("{ask:?}")
        };
        let (now, wall) = (self.clock.reading(), self.clock.wall());
        let stored = ObservedRecord::new(record.clone(), "stored");
        self.handover.answered(ask, LockResponse::Lease(stored), &now, &now, wall);
    }
}

fn held_by(holder: &str) -> ObservedRecord {
    let record = LeaderElectionRecord {
        holder: Some(holder.to_owned()),
        duration: Duration::from_secs(15),
        ..LeaderElectionRecord::default()
    };
    ObservedRecord::new(record, "1")
}

const MILLI: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn the_lock_of_another_that_is_gone_is_made_again_after_one_retry_period() {
    for (waits, makes) in [(2_000 * MILLI - MILLI, false), (2_000 * MILLI, true)] {
        let mut probe = Probe::new(HandoverPolicy::default());
        assert_eq!(probe.reads(LockResponse::Lease(held_by("bob"))), None);
        assert_eq!(probe.reads(LockResponse::Missing), None);
        tokio::time::advance(waits).await;
        let follows = probe.reads(LockResponse::Missing);
        assert_eq!(
            matches!(follows, Some(LockRequest::Create(_))),
            makes,
            "{waits:?}: {follows:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_lender_lets_the_asker_have_the_free_lock_first_for_two_of_its_waits() {
    let turn = Duration::from_secs(2).mul_f64(2.0 * JITTER);
    for (waits, takes) in [(turn - MILLI, false), (turn, true)] {
        let mut probe = Probe::new(HandoverPolicy { asks: false, lends: true });
        let record = LeaderElectionRecord { requested_by: Some("bob".to_owned()), ..released() };
        let free = ObservedRecord::new(record, "1");
        assert_eq!(probe.reads(LockResponse::Lease(free.clone())), None);
        tokio::time::advance(waits).await;
        let follows = probe.reads(LockResponse::Lease(free));
        assert_eq!(
            matches!(follows, Some(LockRequest::Replace { .. })),
            takes,
            "{waits:?}: {follows:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_knows_that_nobody_held_the_lock_knows_it_for_less_than_a_lease_duration() {
    for (waits, leads) in [(15_000 * MILLI - MILLI, true), (15_000 * MILLI, false)] {
        let mut probe = Probe::new(HandoverPolicy::default());
        probe.written.set_unheld_since(probe.clock.reading());
        tokio::time::advance(waits).await;
        let make = probe.reads(LockResponse::Missing).unwrap();
        probe.stores(&make);
        assert_eq!(probe.handover.machine.held().is_some(), leads, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_is_over_when_it_stood_for_the_longer_of_both_durations() {
    for (waits, takes) in [(15_000 * MILLI - MILLI, false), (15_000 * MILLI, true)] {
        let mut probe = Probe::new(HandoverPolicy::default());
        let mut brief = held_by("bob");
        brief.record.duration = MILLI;
        assert_eq!(probe.reads(LockResponse::Lease(brief.clone())), None);
        tokio::time::advance(waits).await;
        let follows = probe.reads(LockResponse::Lease(brief));
        assert_eq!(
            matches!(follows, Some(LockRequest::Replace { .. })),
            takes,
            "{waits:?}: {follows:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_conflicts_in_an_attempt_leave_the_rest_to_the_next_one() {
    let mut probe = Probe::new(HandoverPolicy::default());
    let free = ObservedRecord::new(released(), "1");
    let take = probe.reads(LockResponse::Lease(free.clone())).unwrap();
    assert_eq!(probe.answers(&take, LockResponse::Conflict), Some(LockRequest::Read));
    let take = probe.answers(&LockRequest::Read, LockResponse::Lease(free)).unwrap();
    assert_eq!(probe.answers(&take, LockResponse::Conflict), None);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_missing_again_is_not_waited_with() {
    let mut probe = Probe::new(HandoverPolicy::default());
    let make = probe.reads(LockResponse::Missing).unwrap();
    probe.stores(&make);
    let wait = |probe: &Probe| probe.handover.machine.wait_left(&probe.clock.reading());
    assert_eq!(wait(&probe), Some(Duration::from_secs(15)));
    assert!(matches!(probe.reads(LockResponse::Missing), Some(LockRequest::Create(_))));
    assert_eq!(wait(&probe), None, "it is not there");
}

impl Probe {
    fn answers(&mut self, ask: &LockRequest, answer: LockResponse) -> Option<LockRequest> {
        let (now, wall) = (self.clock.reading(), self.clock.wall());
        self.handover.answered(ask, answer, &now, &now, wall)
    }

    /// Returns a machine that leads, and the record as stored at version 5.
    fn leading(policy: HandoverPolicy) -> (Self, LeaderElectionRecord) {
        let mut probe = Self::new(policy);
        let free = ObservedRecord::new(released(), "4");
        let take = probe.reads(LockResponse::Lease(free)).unwrap();
        let LockRequest::Replace { record, .. } = take.clone() else { panic!("{take:?}") };
        let stored = ObservedRecord::new(record.clone(), "5");
        assert_eq!(probe.answers(&take, LockResponse::Lease(stored)), None);
        assert!(probe.handover.machine.held().is_some());
        (probe, record)
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_reads_what_may_end_its_term_and_nothing_else() {
    let (probe, ours) = Probe::leading(HandoverPolicy::default());
    let reaction = |record: &LeaderElectionRecord, version: &str| {
        probe.handover.reaction(&ObservedRecord::new(record.clone(), version))
    };
    let other = held_by("bob").record;
    for (version, expected) in [
        ("4", Reaction::Nothing),
        ("5", Reaction::Nothing),
        ("6", Reaction::Overtaken),
        ("10", Reaction::Overtaken),
        ("of another kind", Reaction::Read),
    ] {
        assert_eq!(reaction(&other, version), expected, "{version}");
    }
    for version in ["6", "of another kind"] {
        assert_eq!(reaction(&ours, version), Reaction::Nothing, "{version}");
        assert_eq!(reaction(&released(), version), Reaction::Read, "it is free: {version}");
        assert_eq!(reaction(&held_by("ann").record, version), Reaction::Read, "a namesake");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_lender_reads_a_request_and_once() {
    for (lends, by, expected) in [
        (true, "bob", Reaction::Read),
        (true, "ann", Reaction::Nothing),
        (false, "bob", Reaction::Nothing),
    ] {
        let (mut probe, ours) = Probe::leading(HandoverPolicy { asks: false, lends });
        let asked = LeaderElectionRecord { requested_by: Some(by.to_owned()), ..ours };
        let reported = |version| ObservedRecord::new(asked.clone(), version);
        assert_eq!(probe.handover.reaction(&reported("6")), expected, "{lends} {by}");
        assert!(!probe.handover.is_asked());
        probe.handover.machine.mark_stale();
        probe.reads(LockResponse::Lease(reported("6")));
        assert_eq!(probe.handover.is_asked(), lends && by == "bob", "{lends} {by}");
        assert_eq!(probe.handover.reaction(&reported("7")), Reaction::Nothing, "it knows");
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_tries_at_once_when_it_is_notified_of_a_free_lock_that_it_has_not_seen() {
    let mut probe = Probe::new(HandoverPolicy::default());
    let free = |version| ObservedRecord::new(released(), version);
    assert!(probe.handover.machine.is_worth_attempt(&free("1")));
    assert!(!probe.handover.machine.is_worth_attempt(&held_by("bob")));
    probe.reads(LockResponse::Lease(free("1")));
    assert!(!probe.handover.machine.is_worth_attempt(&free("1")), "it has had that one");
    assert!(probe.handover.machine.is_worth_attempt(&free("2")));
    let held = ObservedRecord { version: "2".to_owned(), ..held_by("bob") };
    assert!(!probe.handover.machine.is_worth_attempt(&held));
}

#[test]
fn the_last_sixteen_records_of_a_process_are_known_as_its_own() {
    let written = OwnRecords::default();
    let record = |number: i64| LeaderElectionRecord {
        renewed: Some(Timestamp::from_second(number).unwrap()),
        ..LeaderElectionRecord::default()
    };
    for number in 1..=17 {
        written.add(&record(number), None);
        let known = (1..=number).filter(|old| written.contains(&record(*old)));
        assert_eq!(known.count(), usize::try_from(number.min(16)).unwrap());
    }
    assert!(!written.contains(&record(1)), "the oldest is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_changes_the_times_of_a_record_ends_no_wait_of_its_writer() {
    let mut probe = Probe::new(HandoverPolicy::default());
    let make = probe.reads(LockResponse::Missing).unwrap();
    let LockRequest::Create(record) = make.clone() else { panic!("{make:?}") };
    let renewed = Some(Timestamp::from_second(7).unwrap());
    let stored = ObservedRecord::new(LeaderElectionRecord { renewed, ..record }, "1");
    assert_eq!(probe.answers(&make, LockResponse::Lease(stored.clone())), None);
    assert!(probe.handover.machine.held().is_none());
    let wait = probe.handover.machine.wait_left(&probe.clock.reading());
    assert_eq!(wait, Some(Duration::from_secs(15)));
    assert!(matches!(probe.reads(LockResponse::Lease(stored)), Some(LockRequest::Replace { .. })));
}
