//! A process that creates a lock writes nothing for a lease duration: the lock of a holder that
//! hangs may have been deleted.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Bench {
    fn delete(&self) {
        *self.store.stored.lock() = None;
        // Reports the deletion as a lock does that can be followed.
        let version = self.store.version.fetch_add(1, Ordering::Relaxed).to_string();
        let nothing = ObservedRecord::new(LeaderElectionRecord::default(), version);
        self.store.reports.send_replace(Some(nothing));
    }

    /// Campaigns, and returns the time until it leads.
    async fn led_after(&self, elector: &Elector) -> (Term, Duration) {
        let since = Instant::now();
        let term = elector.campaign(&self.stop).await.unwrap();
        (term, since.elapsed())
    }
}

fn assert_one_lease(waited: Duration) {
    assert!(waited >= 15 * SECOND, "{waited:?}");
    assert!(waited <= 15 * SECOND + SECOND / 5, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn l5_who_makes_the_lock_keeps_it_and_leads_a_lease_duration_later() {
    let bench = Bench::old();
    let ((ann, _), (bob, _)) = (bench.elector("ann"), bench.elector("bob"));
    let stop = bench.stop.clone();
    let mut status = ann.watch();
    let rival = tokio::spawn(async move {
        tokio::time::sleep(SECOND).await;
        bob.campaign(&stop).await.is_none()
    });
    let holds = async {
        status.wait_for(|now| *now == Leadership::Holding).await.unwrap();
        let left = ann.leads_in().unwrap();
        assert!(left <= 15 * SECOND && left > 14 * SECOND, "{left:?}");
        tokio::time::sleep(10 * SECOND).await;
        assert_eq!(bench.store.holder().as_deref(), Some("ann"), "renewed meanwhile");
        assert_eq!(ann.leads_in().unwrap().as_secs(), 5);
    };
    let ((term, waited), ()) = tokio::join!(bench.led_after(&ann), holds);
    assert_one_lease(waited);
    assert_eq!(ann.leads_in(), None);
    assert!(term.gate().admit().is_ok());
    let events = bench.store.events.lock().clone();
    assert_eq!(events, ["ann created the lock and becomes leader in 15 s"]);
    tokio::time::sleep(60 * SECOND).await;
    assert!(!term.lost().is_cancelled(), "and nobody takes it");
    bench.stop.cancel();
    assert!(rival.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn l5_a_record_that_nobody_gave_back_is_waited_for_and_a_released_one_is_not() {
    let emptied = LeaderElectionRecord { duration: 15 * SECOND, ..released() };
    let unheld = LeaderElectionRecord { acquired: None, ..released() };
    for record in [LeaderElectionRecord::default(), emptied, unheld] {
        let bench = Bench::old();
        bench.store.put(record);
        let (_term, waited) = bench.led_after(&bench.elector("ann").0).await;
        assert_one_lease(waited);
    }
    let bench = Bench::old();
    bench.store.put(released());
    let (_term, waited) = bench.led_after(&bench.elector("ann").0).await;
    assert!(waited < SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn who_stops_during_the_wait_leaves_the_lock_to_expire_and_the_next_one_waits_as_well() {
    let bench = Bench::old();
    let ((ann, _), (bob, _)) = (bench.elector("ann"), bench.elector("bob"));
    let stop = CancellationToken::new();
    let campaign = tokio::spawn({
        let stop = stop.clone();
        let ann = ann.clone();
        async move { ann.campaign(&stop).await.is_none() }
    });
    tokio::time::sleep(5 * SECOND).await;
    assert!(ann.leads_in().is_some());
    let asked = Instant::now();
    stop.cancel();
    assert!(campaign.await.unwrap());
    assert_eq!(ann.leads_in(), None, "it will not");
    assert!(asked.elapsed() < SECOND, "a stop does not wait: {:?}", asked.elapsed());
    assert_eq!(bench.store.holder().as_deref(), Some("ann"), "not given back");
    let (_term, waited) = bench.led_after(&bob).await;
    assert!(waited >= 15 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_while_writes_are_refused_asks_once_in_a_retry_period() {
    let bench = Bench::old();
    let (ann, _) = bench.elector("ann");
    let refused = async {
        tokio::time::sleep(10 * SECOND).await;
        bench.store.refuses.store(true, Ordering::Relaxed);
        tokio::time::sleep(60 * SECOND).await;
        bench.store.refuses.store(false, Ordering::Relaxed);
        bench.store.reads.load(Ordering::Relaxed)
    };
    let ((_term, waited), reads) = tokio::join!(bench.led_after(&ann), refused);
    assert!((70 * SECOND..73 * SECOND).contains(&waited), "{waited:?}");
    assert!((25..=37).contains(&reads), "{reads}");
}

#[tokio::test(start_paused = true)]
async fn the_wait_goes_on_in_the_next_campaign_of_the_process() {
    let bench = Bench::old();
    let (ann, _) = bench.elector("ann");
    let stop = CancellationToken::new();
    let since = Instant::now();
    let first = tokio::time::timeout(10 * SECOND, ann.campaign(&stop)).await;
    assert!(first.is_err());
    let _term = ann.campaign(&stop).await.unwrap();
    assert_one_lease(since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_shortens_no_wait() {
    let bench = Bench::old();
    let (ann, _) = bench.elector("ann");
    *bench.store.misled.lock() = Some(("ann", ErrorKind::Server));
    let told = async {
        tokio::time::sleep(SECOND).await;
        *bench.store.misled.lock() = None;
    };
    let ((_term, waited), ()) = tokio::join!(bench.led_after(&ann), told);
    // The process sees its record at the next read.
    assert!(waited >= 17 * SECOND, "{waited:?}");
    assert!(waited <= 18 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn d9_a_leader_whose_lock_is_deleted_makes_it_again_and_goes_on() {
    let bench = Bench::new();
    let (ann, environment) = bench.elector("ann");
    let term = ann.campaign(&bench.stop).await.unwrap();
    tokio::time::sleep(SECOND).await;
    bench.delete();
    for _ in 0..40 {
        tokio::time::sleep(SECOND).await;
        assert!(term.gate().admit().is_ok());
    }
    assert_eq!(bench.store.holder().as_deref(), Some("ann"));
    assert_eq!(environment.metrics.counted(&names::LEADER_SLOWPATH, &["ops"]), 1);
    term.end(true).await;
    assert_eq!(bench.store.holder(), None, "and it is given back as any other");
}

#[tokio::test(start_paused = true)]
async fn d9_a_leader_that_is_notified_of_the_deletion_makes_the_lock_again_at_once() {
    let bench = Bench::new();
    let term = bench.follower("ann", LeaderElection::new("ops")).campaign(&bench.stop).await;
    tokio::time::sleep(SECOND / 10).await;
    bench.delete();
    tokio::time::sleep(SECOND / 10).await;
    assert_eq!(bench.store.holder().as_deref(), Some("ann"));
    assert!(term.unwrap().gate().admit().is_ok());
}

#[tokio::test(start_paused = true)]
async fn l5_a_leader_whose_validity_ended_waits_when_it_makes_the_lock_again() {
    let bench = Bench::new();
    let (ann, environment) = bench.elector("ann");
    let term = ann.campaign(&bench.stop).await.unwrap();
    bench.delete();
    environment.clock.sleep_machine(13 * SECOND);
    term.lost().cancelled().await;
    term.end(true).await;
    let (_term, waited) = bench.led_after(&ann).await;
    assert_one_lease(waited);
}

/// The candidate's last read shows nothing: the holder may have renewed since.
#[tokio::test(start_paused = true)]
async fn l5_a_candidate_that_has_seen_the_holder_waits_a_lease_duration_after_it_made_the_lock() {
    let bench = Bench::old();
    bench.foreign("hangs");
    let (ann, _) = bench.elector("ann");
    let renewed_and_deleted = async {
        tokio::time::sleep(14 * SECOND).await;
        let deleted = Instant::now();
        bench.delete();
        deleted
    };
    let (term, deleted) = tokio::join!(ann.campaign(&bench.stop), renewed_and_deleted);
    let waited = deleted.elapsed();
    assert!(waited >= 15 * SECOND, "{waited:?}");
    // Two reads, and the time that a living leader has to recreate the lock.
    assert!(waited <= Duration::from_millis(15_000 + 3 * 2_450), "{waited:?}");
    drop(term);
}

#[tokio::test(start_paused = true)]
async fn l5_a_holder_with_a_longer_lease_is_waited_for_as_long_as_its_lease_lasts() {
    let bench = Bench::old();
    let long = LeaderElectionRecord {
        holder: Some("hangs".to_owned()),
        duration: 60 * SECOND,
        ..LeaderElectionRecord::default()
    };
    bench.store.put(long);
    let (ann, _) = bench.elector("ann");
    let deleted = async {
        tokio::time::sleep(SECOND).await;
        bench.delete();
    };
    let ((_term, waited), ()) = tokio::join!(bench.led_after(&ann), deleted);
    assert!(waited >= 61 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_server_is_known_to_the_first_election_only_and_not_for_long() {
    let bench = Bench::new();
    let ((ann, _), (bob, _)) = (bench.elector("ann"), bench.elector("bob"));
    let (term, waited) = bench.led_after(&ann).await;
    assert!(waited < SECOND, "{waited:?}");
    drop(term);
    bench.delete();
    let (term, waited) = bench.led_after(&bob).await;
    assert_one_lease(waited);
    drop(term);
    bench.delete();
    let (_term, waited) = bench.led_after(&ann).await;
    assert_one_lease(waited);

    let late = Bench::new();
    let (ann, _) = late.elector("ann");
    tokio::time::sleep(15 * SECOND).await;
    let (_term, waited) = late.led_after(&ann).await;
    assert_one_lease(waited);
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_ends_what_was_known_of_a_new_server() {
    let bench = Bench::new();
    let (ann, _) = bench.elector("ann");
    bench.foreign("bob");
    let look = tokio::time::timeout(SECOND, ann.campaign(&bench.stop)).await;
    assert!(look.is_err());
    bench.delete();
    let (_term, waited) = bench.led_after(&ann).await;
    assert!(waited >= 15 * SECOND, "{waited:?}");
}
