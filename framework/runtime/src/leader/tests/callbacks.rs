//! The election with callbacks, and the health check.

use super::*;

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// Returns callbacks whose work ends `delay` after the cancellation.
fn callbacks(log: &Arc<Log>, delay: Duration) -> LeaderCallbacks {
    let (started, stopped, leaders) = (log.clone(), log.clone(), log.clone());
    LeaderCallbacks::new(
        move |gate, end| async move {
            started.add(format!("started, may write: {}", gate.validity().is_some()));
            end.cancelled().await;
            tokio::time::sleep(delay).await;
            started.add("work ended");
        },
        move || stopped.add("stopped"),
    )
    .new_leader(move |leader| leaders.add(format!("{leader} leads")))
}

#[tokio::test(start_paused = true)]
async fn mechanism_43_started_stopped_and_every_leader_once_are_reported() {
    let bench = Bench::new();
    bench.foreign("zed");
    let (elector, _) = bench.elector("ann");
    let log = Arc::new(Log::default());
    let run = tokio::spawn({
        let (callbacks, stop) = (callbacks(&log, Duration::from_secs(1)), bench.stop.clone());
        async move { elector.run(callbacks, &stop).await }
    });
    tokio::time::sleep(Duration::from_secs(40)).await;
    bench.stop.cancel();
    assert_eq!(run.await.unwrap(), ElectionOutcome::Stopped);
    let expected = ["zed leads", "started, may write: true", "ann leads", "work ended", "stopped"];
    let mut log = log.all();
    if log.get(1).is_some_and(|line| line == "ann leads") {
        log.swap(1, 2); // the work has a task of its own
    }
    assert_eq!(log, expected);
    assert_eq!(bench.store.holder(), None, "given back after the work ended");
}

#[tokio::test(start_paused = true)]
async fn mechanism_39_stopped_is_called_even_for_a_process_that_never_led() {
    let bench = Bench::new();
    bench.foreign("zed");
    let (elector, _) = bench.elector("ann");
    let log = Arc::new(Log::default());
    bench.stop.cancel();
    let outcome = elector.run(callbacks(&log, Duration::ZERO), &bench.stop).await;
    assert_eq!((outcome, log.all()), (ElectionOutcome::NeverLed, vec!["stopped".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn l8_work_that_does_not_end_is_dropped_and_the_lease_expires() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    let log = Arc::new(Log::default());
    let slow = callbacks(&log, Duration::from_secs(60)).drain(Duration::from_secs(3));
    let run = tokio::spawn({
        let stop = bench.stop.clone();
        async move { elector.run(slow, &stop).await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    bench.stop.cancel();
    assert_eq!(run.await.unwrap(), ElectionOutcome::CutShort);
    assert_eq!(bench.store.holder().as_deref(), Some("ann"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!log.all().contains(&"work ended".to_owned()), "{:?}", log.all());
}

#[tokio::test(start_paused = true)]
async fn d2_losing_the_lease_ends_the_work_and_run_comes_back() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    let log = Arc::new(Log::default());
    let run = tokio::spawn({
        let (callbacks, stop) = (callbacks(&log, Duration::ZERO), bench.stop.clone());
        async move { elector.run(callbacks, &stop).await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    bench.foreign("zed");
    assert_eq!(run.await.unwrap(), ElectionOutcome::Lost);
    assert_eq!(log.all().last().map(String::as_str), Some("stopped"));
    assert!(log.all().contains(&"work ended".to_owned()));
    assert_eq!(bench.store.holder().as_deref(), Some("zed"), "nothing is given back");
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_or_panics_gives_the_lease_back() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    for (work, outcome) in
        [("ends", ElectionOutcome::Finished), ("panics", ElectionOutcome::Failed)]
    {
        let callbacks = LeaderCallbacks::new(
            move |_, _| async move { assert_eq!(work, "ends", "a planted panic") },
            || {},
        );
        assert_eq!(elector.run(callbacks, &bench.stop).await, outcome);
        assert_eq!(bench.store.holder(), None, "when the work {work}");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_40_a_lease_is_kept_when_release_is_switched_off() {
    let bench = Bench::new();
    let lock = Handle { store: bench.store.clone(), identity: "ann".to_owned() };
    let settings = LeaderElection::new("ops").release_on_cancel(false);
    let environment = Environment::system();
    let elector = Elector::over(settings, Arc::new(lock), environment).unwrap();
    let term = elector.campaign(&bench.stop).await.unwrap();
    term.end(true).await;
    assert_eq!(bench.store.holder().as_deref(), Some("ann"));
}

#[tokio::test(start_paused = true)]
async fn mechanism_45_the_health_check_fails_when_an_election_outlives_its_lease() {
    let bench = Bench::new();
    let (elector, environment) = bench.elector("ann");
    let check = HealthzAdaptor::new(Duration::from_secs(20));
    assert_eq!(check.name(), "leaderElection");
    assert!(check.check().is_ok(), "no election yet");
    let term = elector.campaign(&bench.stop).await.unwrap();
    check.set_leader_election(elector.clone());
    assert!(check.check().is_ok());
    // The process was stopped: time passed, and no task has run since.
    environment.clock.sleep_machine(Duration::from_secs(34));
    let error = check.check().unwrap_err();
    assert!(error.to_string().contains("the lease ended 21 s ago"), "{error}");
    // A moment later the election notices by itself.
    term.lost().cancelled().await;
    assert!(check.check().is_ok());
    term.end(true).await;
}

#[test]
fn renewals_differ_even_when_the_wall_clock_is_set_back() {
    use super::super::decision::{
        Handover, HandoverPolicy, LockRequest, LockResponse, Machine, OwnRecords,
    };
    let timing = LeaderElection::new("ops").timing;
    let written = OwnRecords::default();
    let machine = Machine::new("ann".to_owned(), timing, written.clone());
    let mut handover = Handover::new(machine, HandoverPolicy::default());
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    written.set_unheld_since(clock.reading());
    let (mark, wall) = (clock.reading(), Timestamp::from_second(3600).unwrap());
    assert_eq!(handover.attempt(&mark, wall), LockRequest::Read);
    let ask =
        handover.answered(&LockRequest::Read, LockResponse::Missing, &mark, &mark, wall).unwrap();
    let LockRequest::Create(record) = &ask else { panic!("{ask:?}") };
    let stored = ObservedRecord::new(record.clone(), "1");
    assert_eq!(handover.answered(&ask, LockResponse::Lease(stored), &mark, &mark, wall), None);
    let LockRequest::Replace { record: next, .. } = handover.attempt(&mark, Timestamp::UNIX_EPOCH)
    else {
        panic!("a leader renews");
    };
    assert!(next.renewed > record.renewed, "{:?} after {:?}", next.renewed, record.renewed);
}

#[tokio::test(start_paused = true)]
async fn a_second_campaign_of_one_elector_waits_for_the_end_of_the_first_term() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    let first = elector.campaign(&bench.stop).await.unwrap();
    let second = tokio::spawn({
        let (elector, stop) = (elector.clone(), bench.stop.clone());
        async move { elector.campaign(&stop).await.is_some() }
    });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!second.is_finished(), "two terms at once");
    assert!(first.gate().admit().is_ok());
    first.end(true).await;
    assert!(second.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_term_that_is_dropped_writes_no_more_and_nobody_calls_it_leading() {
    let bench = Bench::new();
    let (elector, environment) = bench.elector("ann");
    let check = HealthzAdaptor::new(Duration::from_secs(20));
    check.set_leader_election(elector.clone());
    let term = elector.campaign(&bench.stop).await.unwrap();
    let (gate, lost) = (term.gate(), term.lost());
    drop(term);
    assert!(gate.admit().is_err() && lost.is_cancelled());
    assert_eq!(*elector.watch().borrow(), Leadership::Candidate { holder: None });
    assert!(
        environment.metrics.encode().contains(r#"leader_election_master_status{name="ops"} 0"#)
    );
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(check.check().is_ok(), "a candidate is healthy");
}

/// A lock that panics on demand.
#[derive(Debug)]
struct Brittle {
    handle: Handle,
    breaks: AtomicBool,
}

impl ResourceLock for Brittle {
    fn identity(&self) -> &str {
        self.handle.identity()
    }

    fn describe(&self) -> String {
        self.handle.describe()
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        self.handle.get()
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        self.handle.create(record)
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        assert!(!self.breaks.load(Ordering::Relaxed), "a planted panic");
        self.handle.update(version, record)
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        self.handle.record_event(note)
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_panics_ends_the_term_and_notifies_the_work() {
    let bench = Bench::new();
    let handle = Handle { store: bench.store.clone(), identity: "ann".to_owned() };
    let lock = Arc::new(Brittle { handle, breaks: AtomicBool::new(false) });
    let environment =
        Environment { clock: Clock::simulated(Timestamp::UNIX_EPOCH), ..Environment::system() };
    let elector =
        Elector::over(LeaderElection::new("ops"), lock.clone(), environment.clone()).unwrap();
    let elector = bench.introduce(elector, &environment);
    let log = Arc::new(Log::default());
    let run = tokio::spawn({
        let (callbacks, stop) = (callbacks(&log, Duration::ZERO), bench.stop.clone());
        async move { elector.run(callbacks, &stop).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    lock.breaks.store(true, Ordering::Relaxed);
    assert_eq!(run.await.unwrap(), ElectionOutcome::Lost);
    assert_eq!(log.all().last().map(String::as_str), Some("stopped"));
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_for_two_seconds_at_most_after_leadership_was_lost() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    let log = Arc::new(Log::default());
    let run = tokio::spawn({
        let (callbacks, stop) = (callbacks(&log, Duration::from_secs(9)), bench.stop.clone());
        async move { elector.run(callbacks, &stop).await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    bench.foreign("zed");
    assert_eq!(run.await.unwrap(), ElectionOutcome::Lost);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!log.all().contains(&"work ended".to_owned()), "{:?}", log.all());
}

#[tokio::test(start_paused = true)]
async fn callbacks_that_panic_end_the_work_and_nothing_else() {
    let bench = Bench::new();
    let (elector, _) = bench.elector("ann");
    let (calls, count) = (Arc::new(Log::default()), Arc::new(AtomicU64::new(0)));
    let callbacks =
        LeaderCallbacks::new(|_, _| -> std::future::Ready<()> { panic!("a planted panic") }, {
            let calls = calls.clone();
            move || calls.add("stopped")
        })
        .new_leader({
            let count = count.clone();
            move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                panic!("another one")
            }
        });
    assert_eq!(elector.run(callbacks, &bench.stop).await, ElectionOutcome::Failed);
    assert_eq!((calls.all().len(), count.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(bench.store.holder(), None, "given back");
}
