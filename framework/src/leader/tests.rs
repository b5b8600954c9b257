use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::client::WriteGate;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::{Error, ErrorKind};
use crate::metrics::{Metrics, names};
use crate::seams::Seams;

mod callbacks;
mod doubts;
mod following;
mod lending;
mod making;
mod multi;
mod pace;
mod renewing;

/// A store in memory that can stop answering.
#[derive(Debug, Default)]
struct Memory {
    stored: Mutex<Option<ObservedRecord>>,
    version: AtomicU64,
    silent: AtomicBool,
    /// Can it be read and not written?
    refuses: AtomicBool,
    /// Whose writes are stored and answered with that error?
    misled: Mutex<Option<(&'static str, ErrorKind)>>,
    reads: AtomicU64,
    events: Mutex<Vec<String>>,
    told: tokio::sync::watch::Sender<Option<ObservedRecord>>,
}

impl Memory {
    async fn answer(&self) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    fn check(&self) -> Result<(), Error> {
        match self.refuses.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Forbidden, "writes are refused")),
            false => Ok(()),
        }
    }

    fn put(&self, record: LeaderElectionRecord) -> ObservedRecord {
        let version = self.version.fetch_add(1, Ordering::Relaxed).to_string();
        let seen = ObservedRecord::new(record, version);
        *self.stored.lock() = Some(seen.clone());
        self.told.send_replace(Some(seen.clone()));
        seen
    }

    fn told(&self, identity: &str, stored: ObservedRecord) -> Result<ObservedRecord, Error> {
        match *self.misled.lock() {
            Some((whose, error)) if whose == identity => {
                Err(Error::new(error, "stored, and not told so"))
            }
            _ => Ok(stored),
        }
    }

    fn holder(&self) -> Option<String> {
        self.stored.lock().as_ref()?.record.holder.clone()
    }
}

/// The store as one process sees it.
#[derive(Debug)]
struct Handle {
    store: Arc<Memory>,
    identity: String,
}

impl ResourceLock for Handle {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        "lease in memory".to_owned()
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(async move {
            self.store.reads.fetch_add(1, Ordering::Relaxed);
            self.store.answer().await;
            Ok(self.store.stored.lock().clone())
        })
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(async move {
            self.store.answer().await;
            self.store.check()?;
            if self.store.stored.lock().is_some() {
                return Err(Error::new(ErrorKind::AlreadyExists, "there is one"));
            }
            self.store.told(&self.identity, self.store.put(record))
        })
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        let version = version.to_owned();
        Box::pin(async move {
            self.store.answer().await;
            self.store.check()?;
            match self.store.stored.lock().as_ref().map(|seen| seen.version == version) {
                Some(true) => {}
                Some(false) => return Err(Error::new(ErrorKind::Conflict, "another version")),
                None => return Err(Error::new(ErrorKind::NotFound, "there is none")),
            }
            self.store.told(&self.identity, self.store.put(record))
        })
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        Box::pin(async move {
            self.store.answer().await;
            self.store.events.lock().push(note);
            Ok(())
        })
    }
}

struct Bench {
    store: Arc<Memory>,
    stop: CancellationToken,
    /// Does the next elector know that nobody has held the lock?
    is_new: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        let (store, stop) = (Arc::new(Memory::default()), CancellationToken::new());
        Self { store, stop, is_new: AtomicBool::new(true) }
    }

    /// A store of which nobody knows whether the lock was held before.
    fn old() -> Self {
        Self { is_new: AtomicBool::new(false), ..Self::new() }
    }

    /// The first elector of a new store knows that it is.
    fn introduce(&self, elector: Elector, seams: &Seams) -> Elector {
        if self.is_new.swap(false, Ordering::Relaxed) {
            elector.is_unheld_since(seams.clock.mark());
        }
        elector
    }

    fn elector(&self, identity: &str) -> (Elector, Seams) {
        let seams = Seams {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            entropy: Entropy::seeded(1),
            metrics: Metrics::new(),
        };
        let lock = Handle { store: self.store.clone(), identity: identity.to_owned() };
        let elector =
            Elector::over(LeaderElection::new("ops"), Arc::new(lock), seams.clone()).unwrap();
        (self.introduce(elector, &seams), seams)
    }

    fn foreign(&self, holder: &str) {
        self.store.put(LeaderElectionRecord {
            holder: Some(holder.to_owned()),
            duration: Duration::from_secs(15),
            acquired: None,
            renewed: None,
            transitions: 3,
            ..LeaderElectionRecord::default()
        });
    }
}

/// What a holder leaves that gave the lock back.
fn released() -> LeaderElectionRecord {
    LeaderElectionRecord {
        duration: Duration::from_secs(1),
        acquired: Some(Timestamp::UNIX_EPOCH),
        renewed: Some(Timestamp::UNIX_EPOCH),
        ..LeaderElectionRecord::default()
    }
}

#[tokio::test(start_paused = true)]
async fn l1_mechanism_34_any_lock_with_versioned_writes_will_do() {
    let bench = Bench::new();
    let lock: Arc<dyn ResourceLock> =
        Arc::new(Handle { store: bench.store.clone(), identity: "a".to_owned() });
    assert_eq!((lock.identity(), lock.describe().as_str()), ("a", "lease in memory"));
    assert_eq!(lock.get().await.unwrap(), None);
    let record =
        LeaderElectionRecord { holder: Some("a".to_owned()), ..LeaderElectionRecord::default() };
    let first = lock.create(record.clone()).await.unwrap();
    let again = lock.create(record.clone()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let second = lock.update(&first.version, record.clone()).await.unwrap();
    let late = lock.update(&first.version, record).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Conflict);
    assert_eq!(lock.get().await.unwrap(), Some(second));
}

#[tokio::test(start_paused = true)]
async fn mechanism_37_a_candidate_tries_every_retry_period_and_up_to_a_fifth_longer() {
    let bench = Bench::new();
    bench.foreign("other");
    let renewals = async {
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_secs(2)).await;
            bench.foreign("other");
        }
        bench.stop.cancel();
    };
    let (elector, _) = bench.elector("a");
    let (term, ()) = tokio::join!(elector.campaign(&bench.stop), renewals);
    assert!(term.is_none());
    let reads = bench.store.reads.load(Ordering::Relaxed);
    // 120 s at 2 s to 2.4 s, and the 5 ms of an answer.
    assert!((49..=60).contains(&reads), "{reads}");
    assert!(reads < 60, "without jitter");
}

#[tokio::test(start_paused = true)]
async fn mechanism_42_who_leads_and_who_stops_is_recorded_as_an_event() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    assert_eq!(bench.store.holder().as_deref(), Some("a"), "a free lease is taken at once");
    assert_eq!(*elector.watch().borrow(), Leadership::Leading);
    tokio::time::sleep(Duration::from_secs(1)).await;
    term.end(true).await;
    assert_eq!(*bench.store.events.lock(), ["a became leader", "a stopped leading"]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_44_the_metrics_tell_who_leads_and_slow_renewals() {
    let bench = Bench::new();
    let (elector, seams) = bench.elector("a");
    let says = |line: &str| {
        let text = seams.metrics.encode();
        assert!(text.contains(line), "{line} is not in\n{text}");
    };
    says(r#"leader_election_master_status{name="ops"} 0"#);
    says(r#"leader_election_slowpath_total{name="ops"} 0"#);
    let term = elector.campaign(&bench.stop).await.unwrap();
    says(r#"leader_election_master_status{name="ops"} 1"#);
    // One renewal is not answered: the next must read first.
    bench.store.silent.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.store.silent.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(!term.lost().is_cancelled());
    says(r#"leader_election_slowpath_total{name="ops"} 1"#);
    term.end(true).await;
    says(r#"leader_election_master_status{name="ops"} 0"#);
}

#[test]
fn mechanism_46_the_defaults_are_those_of_kubernetes_components() {
    let timing = LeaderElection::new("ops").timing;
    let seconds =
        [timing.lease_duration, timing.renew_deadline, timing.retry_period, timing.margin]
            .map(|duration| duration.as_secs_f64());
    assert_eq!(seconds, [15.0, 10.0, 2.0, 2.0]);
    assert_eq!(timing.request_limit(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn l2_validity_counts_from_before_the_request_was_sent() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    // 15 s - 2 s margin, less the 5 ms that the answer to the write took.
    assert_eq!(term.gate().validity(), Some(Duration::from_millis(12_995)));
}

#[tokio::test(start_paused = true)]
async fn mechanism_38_a_leader_renews_for_as_long_as_it_lives_without_reading_again() {
    let bench = Bench::new();
    let (elector, seams) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(term.gate().admit().unwrap().unwrap() > Duration::from_secs(10));
    }
    assert!(!term.lost().is_cancelled());
    assert_eq!(seams.metrics.counted(&names::LEADER_SLOWPATH, &["ops"]), 0);
    assert_eq!(bench.store.stored.lock().as_ref().unwrap().record.transitions, 0);
}

#[tokio::test(start_paused = true)]
async fn l3_a_candidate_waits_the_lease_duration_by_its_own_clock() {
    let bench = Bench::new();
    bench.foreign("dead");
    let (elector, _) = bench.elector("a");
    let started = Instant::now();
    let term = elector.campaign(&bench.stop).await.unwrap();
    let waited = started.elapsed();
    assert!(waited >= Duration::from_secs(15), "{waited:?}");
    assert!(waited <= Duration::from_millis(17_500), "{waited:?}");
    assert_eq!(bench.store.stored.lock().as_ref().unwrap().record.transitions, 4);
    assert!(term.gate().admit().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_new_process_of_the_same_name_waits_for_the_old_one_like_any_other() {
    let bench = Bench::new();
    bench.foreign("pod-0");
    let (elector, _) = bench.elector("pod-0");
    let started = Instant::now();
    let _term = elector.campaign(&bench.stop).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(bench.store.stored.lock().as_ref().unwrap().record.transitions, 4);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_namesake_took_the_lease_stops_and_leaves_it_alone() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("pod-0");
    let term = elector.campaign(&bench.stop).await.unwrap();
    bench.foreign("pod-0");
    let since = Instant::now();
    term.lost().cancelled().await;
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    term.end(true).await;
    assert_eq!(bench.store.holder().as_deref(), Some("pod-0"));
}

#[tokio::test(start_paused = true)]
async fn a_process_leads_again_at_once_when_the_record_is_its_own() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("pod-0");
    elector.campaign(&bench.stop).await.unwrap().end(false).await;
    let since = Instant::now();
    let _term = elector.campaign(&bench.stop).await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_is_never_told_that_its_writes_were_stored_leaves_the_lease_to_others() {
    // A conflict: the client sent it again, and met its own first try.
    let errors = [ErrorKind::Server, ErrorKind::Conflict];
    for (has_led, error) in errors.into_iter().flat_map(|error| [(false, error), (true, error)]) {
        let bench = Bench::new();
        let ((ann, _), (bob, _)) = (bench.elector("ann"), bench.elector("bob"));
        let term = if has_led { ann.campaign(&bench.stop).await } else { None };
        *bench.store.misled.lock() = Some(("ann", error));
        let (term_of_ann, stop) = (term, bench.stop.clone());
        let ann = tokio::spawn(async move {
            if let Some(term) = term_of_ann {
                term.lost().cancelled().await;
                term.end(false).await;
            }
            ann.campaign(&stop).await
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(bench.store.holder().as_deref(), Some("ann"));
        let limit = Duration::from_secs(60);
        let term = tokio::time::timeout(limit, bob.campaign(&bench.stop)).await;
        let term = term.expect("nobody else leads").unwrap();
        // When it is told again, it leads as soon as it may.
        *bench.store.misled.lock() = None;
        term.end(true).await;
        let led = tokio::time::timeout(Duration::from_secs(5), ann).await;
        assert!(led.expect("it was free").unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_told_of_one_write_tries_again_at_once() {
    let bench = Bench::new();
    let (ann, _) = bench.elector("ann");
    *bench.store.misled.lock() = Some(("ann", ErrorKind::Server));
    let stop = bench.stop.clone();
    let led = tokio::spawn(async move { ann.campaign(&stop).await.is_some() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    *bench.store.misled.lock() = None;
    let led = tokio::time::timeout(Duration::from_secs(3), led).await;
    assert!(led.expect("within a retry period").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_whose_writes_are_refused_takes_the_lease_as_soon_as_they_are_not() {
    let bench = Bench::new();
    bench.store.put(released());
    bench.store.refuses.store(true, Ordering::Relaxed);
    let ((ann, _), stop) = (bench.elector("ann"), bench.stop.clone());
    let led = tokio::spawn(async move { ann.campaign(&stop).await.is_some() });
    tokio::time::sleep(Duration::from_secs(600)).await;
    bench.store.refuses.store(false, Ordering::Relaxed);
    let led = tokio::time::timeout(Duration::from_secs(3), led).await;
    assert!(led.expect("within a retry period").unwrap());
}

#[tokio::test(start_paused = true)]
async fn l3_a_second_process_of_one_name_does_not_lead_by_asking() {
    let bench = Bench::new();
    let (first, seams) = bench.elector("ann");
    let _term = first.campaign(&bench.stop).await.unwrap();
    let lock = Handle { store: bench.store.clone(), identity: "ann".to_owned() };
    let asks = LeaderElection::new("ops").ask(true);
    let second = Elector::over(asks, Arc::new(lock), seams).unwrap();
    let limit = Duration::from_secs(120);
    let led = tokio::time::timeout(limit, second.campaign(&bench.stop)).await;
    assert!(led.is_err(), "two lead");
}

#[test]
fn a_fence_that_would_refuse_the_leader_itself_is_found_out() {
    let fenced = |identity: &str| LeaderElection::new("ops").fence(true).identity(identity);
    let off = |identity: &str| fenced(identity).fenced_off(Some("ops-0".to_owned()));
    assert_eq!((off("ops-0"), off("ops-0_a")), (None, None));
    assert_eq!((off("ops-01"), off("mine")), (Some("ops-0".to_owned()), Some("ops-0".to_owned())));
    assert_eq!(fenced("mine").fence(false).fenced_off(Some("ops-0".to_owned())), None);
    assert_eq!(fenced("mine").fenced_off(None), None);
}

#[tokio::test(start_paused = true)]
async fn l8_a_released_lease_passes_on_within_a_retry_period() {
    let bench = Bench::new();
    let ((first, _), (second, _)) = (bench.elector("a"), bench.elector("b"));
    let term = first.campaign(&bench.stop).await.unwrap();
    let stop = bench.stop.clone();
    let waiting = tokio::spawn(async move { second.campaign(&stop).await.map(|_| Instant::now()) });
    tokio::time::sleep(Duration::from_secs(5)).await;
    let released = Instant::now();
    term.end(true).await;
    let led = waiting.await.unwrap().unwrap();
    assert!(led - released <= Duration::from_millis(2_450), "{:?}", led - released);
}

#[tokio::test(start_paused = true)]
async fn l8_a_term_whose_work_was_cut_leaves_the_lease_to_expire() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    let gate = term.gate();
    term.end(false).await;
    assert_eq!(bench.store.holder().as_deref(), Some("a"));
    assert_eq!(gate.admit().unwrap_err().kind(), ErrorKind::NotLeader);
}

#[tokio::test(start_paused = true)]
async fn l7_a_leader_that_sees_another_holder_stops_at_once() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    bench.foreign("thief");
    term.lost().cancelled().await;
    assert!(term.gate().admit().is_err());
    term.end(true).await;
    assert_eq!(bench.store.holder().as_deref(), Some("thief"), "what is not ours is not released");
}

#[tokio::test(start_paused = true)]
async fn d3_a_server_that_stops_answering_ends_the_term_before_the_lease_can_pass() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    bench.store.silent.store(true, Ordering::Relaxed);
    let since = Instant::now();
    term.lost().cancelled().await;
    let lasted = since.elapsed();
    assert!(lasted <= Duration::from_secs(13), "{lasted:?}");
    assert!(lasted >= Duration::from_secs(10), "{lasted:?}");
    assert!(term.gate().admit().is_err());
}

#[tokio::test(start_paused = true)]
async fn d5_a_machine_that_slept_refuses_the_very_next_write() {
    let bench = Bench::new();
    let (elector, seams) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    seams.clock.sleep_machine(Duration::from_secs(12));
    assert!(term.gate().admit().is_err(), "995 ms are left, a second is needed");
    seams.clock.sleep_machine(Duration::from_secs(12));
    assert!(term.gate().overdue().is_some());
    term.lost().cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn l9_losing_the_lease_leads_back_to_the_campaign() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    let old_gate = term.gate();
    bench.store.silent.store(true, Ordering::Relaxed);
    term.lost().cancelled().await;
    term.end(true).await;
    bench.store.silent.store(false, Ordering::Relaxed);
    let again = elector.campaign(&bench.stop).await.unwrap();
    assert!(again.gate().admit().is_ok());
    assert!(old_gate.admit().is_err(), "a write of the earlier term stays refused");
    assert_eq!(bench.store.stored.lock().as_ref().unwrap().record.transitions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_campaign_ends_without_a_term() {
    let bench = Bench::new();
    bench.foreign("other");
    let (elector, _) = bench.elector("a");
    let mut status = elector.watch();
    let stop = bench.stop.clone();
    let campaign = tokio::spawn({
        let elector = elector.clone();
        async move { elector.campaign(&stop).await }
    });
    let other = |now: &Leadership| *now == Leadership::Candidate { holder: Some("other".into()) };
    status.wait_for(other).await.unwrap();
    bench.stop.cancel();
    assert!(campaign.await.unwrap().is_none());
    assert_eq!(*elector.watch().borrow(), Leadership::Ended);
}

#[test]
fn mechanism_41_durations_that_could_let_two_lead_are_refused_with_the_rule() {
    let check = |settings: LeaderElection| settings.check().unwrap_err().to_string();
    let text = check(LeaderElection::new("ops").renew_deadline(Duration::from_secs(12)));
    assert!(text.contains("raise the lease duration to at least 17 s"), "{text}");
    let text = check(LeaderElection::new("ops").retry_period(Duration::from_secs(9)));
    assert!(text.contains("shorter than the renew deadline"), "{text}");
    let text = check(LeaderElection::new("ops").lease_duration(Duration::from_millis(15_500)));
    assert!(text.contains("whole seconds"), "{text}");
    for settings in [
        LeaderElection::new("ops").retry_period(Duration::MAX),
        LeaderElection::new("ops").renew_deadline(Duration::MAX),
        LeaderElection::new("ops").margin(Duration::MAX),
    ] {
        let text = check(settings);
        assert!(text.contains("longer than a Lease can last"), "{text}");
    }
    let brief = LeaderElection::new("ops")
        .lease_duration(Duration::from_secs(1))
        .renew_deadline(Duration::from_millis(500))
        .retry_period(Duration::from_millis(100))
        .margin(Duration::from_millis(100));
    let text = check(brief);
    assert!(text.contains("from one renewal to the next"), "{text}");
    let text = check(LeaderElection::new("ops").margin(Duration::ZERO));
    assert!(text.contains("the margin is zero"), "{text}");
    assert!(check(LeaderElection::new("")).contains("no name"));
    for name in ["Bad Name!", "-ops", "ops.", "a..b", &"a".repeat(254)] {
        assert!(
            check(LeaderElection::new(name)).contains("no leases can have that name"),
            "{name}"
        );
    }
    assert!(LeaderElection::new("3.ops-x.example.dev").check().is_ok());
    assert!(LeaderElection::new("ops").check().is_ok());
}

#[test]
fn longer_leases_let_clocks_differ_as_much_as_the_default_does() {
    let of = |lease, renew, retry| {
        let settings = LeaderElection::new("ops")
            .lease_duration(Duration::from_secs(lease))
            .renew_deadline(Duration::from_secs(renew))
            .retry_period(Duration::from_secs(retry));
        settings.check().unwrap();
        let margin = settings.timing.margin.as_millis();
        (margin, (settings.clock_tolerance() * 1000.0).round() as u64)
    };
    assert_eq!(of(15, 10, 2), (2_000, 1_154));
    assert_eq!(of(60, 15, 5), (8_000, 1_154));
    assert_eq!(of(137, 107, 20), (6_000, 1_046), "as far as there is room");
    let own = LeaderElection::new("ops").margin(Duration::from_secs(3));
    assert_eq!(own.lease_duration(Duration::from_secs(60)).timing.margin, Duration::from_secs(3));
}

#[test]
fn two_processes_of_one_pod_name_call_themselves_differently() {
    let settings = LeaderElection::new("ops");
    let a = settings.identity_or_own(&Entropy::seeded(1));
    let b = settings.identity_or_own(&Entropy::seeded(2));
    assert_ne!(a, b);
    assert_eq!(a.rsplit('_').next().map(str::len), Some(8));
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_lease_is_being_acquired_leaves_it_to_nobody() {
    for at in 0..15 {
        let bench = Bench::new();
        let (elector, _) = bench.elector("a");
        let stop = bench.stop.clone();
        let campaign = tokio::spawn(async move { elector.campaign(&stop).await });
        tokio::time::sleep(Duration::from_millis(at)).await;
        bench.stop.cancel();
        if let Some(term) = campaign.await.unwrap() {
            term.end(true).await;
        }
        assert_eq!(bench.store.holder(), None, "stopped after {at} ms");
    }
}
