//! Contents of the records that a holder writes, and the reports of its stop.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Bench {
    fn record(&self) -> LeaderElectionRecord {
        self.store.stored.lock().as_ref().unwrap().record.clone()
    }

    /// Writes the record by hand, changed only by `edit`.
    fn edit(&self, edit: impl FnOnce(&mut LeaderElectionRecord)) {
        let mut record = self.record();
        edit(&mut record);
        self.store.put(record);
    }
}

fn seconds(second: i64) -> Option<Timestamp> {
    Some(Timestamp::from_second(second).unwrap())
}

/// Returns the seconds of a time; the fraction comes from the answers.
fn second(time: Option<Timestamp>) -> i64 {
    time.unwrap().as_second()
}

#[tokio::test(start_paused = true)]
async fn mechanism_38_renewals_change_the_time_of_renewal_and_nothing_else() {
    let bench = Bench::new();
    bench.store.put(LeaderElectionRecord {
        transitions: 6,
        strategy: Some("Oldest".to_owned()),
        preferred_holder: Some("bob".to_owned()),
        ..released()
    });
    tokio::time::sleep(100 * SECOND).await;
    let (ann, _) = bench.elector("ann");
    tokio::time::sleep(10 * SECOND).await;
    let term = ann.campaign(&bench.stop).await.unwrap();
    let first = bench.record();
    assert_eq!((second(first.acquired), second(first.renewed)), (10, 10));
    assert_eq!((first.transitions, first.duration), (7, 15 * SECOND));
    let mut before = first.clone();
    for _ in 0..10 {
        tokio::time::sleep(3 * SECOND).await;
        let now = bench.record();
        assert!(now.renewed > before.renewed);
        assert_eq!(now, LeaderElectionRecord { renewed: now.renewed, ..first.clone() });
        before = now;
    }
    // After a read, too: an answer was lost.
    *bench.store.misled.lock() = Some(("ann", ErrorKind::Server));
    tokio::time::sleep(3 * SECOND).await;
    *bench.store.misled.lock() = None;
    tokio::time::sleep(3 * SECOND).await;
    assert!(!term.lost().is_cancelled());
    let now = bench.record();
    assert!(now.renewed > before.renewed);
    assert_eq!(now, LeaderElectionRecord { renewed: now.renewed, ..first });
}

#[tokio::test(start_paused = true)]
async fn mechanism_38_a_record_of_another_is_waited_for_as_long_as_it_says() {
    let bench = Bench::new();
    bench.foreign("dead");
    bench.edit(|record| {
        record.duration = 60 * SECOND;
        record.acquired = seconds(7);
    });
    let since = Instant::now();
    let (ann, _) = bench.elector("ann");
    tokio::time::sleep(9 * SECOND).await;
    let _term = ann.campaign(&bench.stop).await.unwrap();
    let waited = since.elapsed() - 9 * SECOND;
    assert!(waited >= 60 * SECOND && waited <= 63 * SECOND, "{waited:?}");
    let taken = bench.record();
    assert_eq!((taken.transitions, taken.duration), (4, 15 * SECOND));
    assert_eq!(taken.acquired, taken.renewed);
    assert!(second(taken.acquired) >= 69, "{taken:?}");
}

#[tokio::test(start_paused = true)]
async fn mechanism_39_who_could_not_renew_says_that_it_stopped() {
    for ends_with_work_left in [false, true] {
        let bench = Bench::new();
        let (ann, _) = bench.elector("ann");
        let term = ann.campaign(&bench.stop).await.unwrap();
        tokio::time::sleep(SECOND).await;
        bench.store.silent.store(true, Ordering::Relaxed);
        term.lost().cancelled().await;
        bench.store.silent.store(false, Ordering::Relaxed);
        term.end(!ends_with_work_left).await;
        assert_eq!(*bench.store.events.lock(), ["ann became leader", "ann stopped leading"]);
        assert_eq!(bench.store.holder().as_deref(), Some("ann"), "a lost lease is not given back");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_39_renewals_that_fail_are_tried_again_until_the_deadline() {
    let bench = Bench::new();
    let (ann, _) = bench.elector("ann");
    let term = ann.campaign(&bench.stop).await.unwrap();
    bench.store.refuses.store(true, Ordering::Relaxed);
    let since = Instant::now();
    tokio::time::sleep(9 * SECOND).await;
    bench.store.refuses.store(false, Ordering::Relaxed);
    tokio::time::sleep(20 * SECOND).await;
    assert!(!term.lost().is_cancelled(), "one of them succeeded");
    bench.store.refuses.store(true, Ordering::Relaxed);
    let failing = since.elapsed();
    term.lost().cancelled().await;
    let lasted = since.elapsed() - failing;
    // The deadline counts from the attempt that failed first.
    assert!(lasted >= 10 * SECOND && lasted <= Duration::from_millis(12_450), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn mechanism_40_a_released_record_is_free_for_whoever_reads_it_next() {
    let bench = Bench::new();
    bench.store.put(LeaderElectionRecord { transitions: 6, ..released() });
    let (ann, _) = bench.elector("ann");
    let term = ann.campaign(&bench.stop).await.unwrap();
    tokio::time::sleep(20 * SECOND).await;
    term.end(true).await;
    let record = bench.record();
    assert_eq!((record.holder.as_deref(), record.duration), (None, SECOND));
    assert_eq!(record.transitions, 7, "kept");
    assert_eq!((second(record.acquired), second(record.renewed)), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn mechanism_40_a_lock_that_another_took_a_moment_before_the_release_is_left_alone() {
    // A namesake, too.
    for thief in ["thief", "ann"] {
        let bench = Bench::new();
        let (ann, _) = bench.elector("ann");
        let term = ann.campaign(&bench.stop).await.unwrap();
        bench.foreign(thief);
        let stolen = bench.record();
        term.end(true).await;
        assert_eq!(bench.record(), stolen);
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_40_a_release_that_meets_another_write_of_the_lock_is_tried_again() {
    let bench = Bench::new();
    let (ann, _) = bench.elector("ann");
    let term = ann.campaign(&bench.stop).await.unwrap();
    tokio::time::sleep(SECOND).await;
    bench.edit(|_| {});
    term.end(true).await;
    assert_eq!(bench.store.holder(), None);
}

#[tokio::test(start_paused = true)]
async fn mechanism_45_the_health_check_is_as_tolerant_as_configured() {
    let bench = Bench::new();
    let (ann, environment) = bench.elector("ann");
    let _term = ann.campaign(&bench.stop).await.unwrap();
    let [strict, usual] = [Duration::ZERO, 20 * SECOND].map(|tolerance| {
        let check = HealthzAdaptor::new(tolerance);
        check.set_leader_election(ann.clone());
        check
    });
    // Valid for 13 s, less the 5 ms of the answer.
    environment.clock.sleep_machine(12 * SECOND);
    assert!(strict.check().is_ok() && usual.check().is_ok());
    environment.clock.sleep_machine(Duration::from_millis(995));
    assert!(strict.check().is_ok(), "no longer than it was told to allow");
    environment.clock.sleep_machine(Duration::from_millis(1_005));
    let error = strict.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotLeader);
    assert!(error.to_string().contains("the lease ended 1 s ago"), "{error}");
    environment.clock.sleep_machine(18 * SECOND);
    assert!(usual.check().is_ok(), "19 s ago");
    environment.clock.sleep_machine(2 * SECOND);
    assert!(usual.check().is_err(), "21 s ago");
}

#[tokio::test(start_paused = true)]
async fn d10_a_time_of_renewal_that_somebody_spoilt_stops_no_leader() {
    // As "never" is read, which leaves room for later times.
    let never = "9999-12-30T22:00:00Z".parse().ok();
    let long_ago = seconds(-62_135_596_800);
    for spoilt in [None, Some(Timestamp::MAX), never, Some(Timestamp::MIN), long_ago] {
        let bench = Bench::new();
        let (ann, _) = bench.elector("ann");
        let term = ann.campaign(&bench.stop).await.unwrap();
        for _ in 0..20 {
            tokio::time::sleep(SECOND).await;
            bench.edit(|record| record.renewed = spoilt);
        }
        assert!(!term.lost().is_cancelled(), "{spoilt:?}");
        tokio::time::sleep(3 * SECOND).await;
        assert!(second(bench.record().renewed) < 30, "written anew");
        bench.edit(|record| record.renewed = spoilt);
        term.end(true).await;
        assert_eq!(bench.store.holder(), None, "and given back");
    }
}

#[tokio::test(start_paused = true)]
async fn d10_a_holder_that_is_gone_is_followed_whatever_times_stand_in_its_record() {
    for spoilt in [None, Some(Timestamp::MAX), Some(Timestamp::MIN)] {
        let bench = Bench::new();
        bench.foreign("gone");
        bench.edit(|record| (record.renewed, record.acquired) = (spoilt, spoilt));
        let (ann, _) = bench.elector("ann");
        let since = Instant::now();
        let term = ann.campaign(&bench.stop).await.unwrap();
        assert!(since.elapsed() <= 18 * SECOND, "{spoilt:?}");
        tokio::time::sleep(60 * SECOND).await;
        assert!(!term.lost().is_cancelled(), "{spoilt:?}");
    }
}
