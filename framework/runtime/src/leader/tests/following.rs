//! Elections over a lock that reports changes.

use super::*;

/// The store in memory; reports changes if the rights are there.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) handle: Handle,
    pub(super) is_allowed: bool,
}

impl ResourceLock for Followed {
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
        self.handle.update(version, record)
    }

    fn follow<'a>(&'a self, listener: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        Some(Box::pin(async move {
            if !self.is_allowed {
                return Err(Error::new(ErrorKind::Forbidden, "no right to watch"));
            }
            let mut reports = self.handle.store.reports.subscribe();
            loop {
                if let Some(record) = reports.borrow_and_update().clone() {
                    listener(record);
                }
                if reports.changed().await.is_err() {
                    return Ok(());
                }
            }
        }))
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        self.handle.record_event(note)
    }
}

impl Bench {
    pub(super) fn follower(&self, identity: &str, settings: LeaderElection) -> Elector {
        self.over(identity, settings, true)
    }

    fn over(&self, identity: &str, settings: LeaderElection, is_allowed: bool) -> Elector {
        let environment = Environment {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            rng: Rng::seeded(1),
            metrics: Metrics::new(),
        };
        let handle = Handle { store: self.store.clone(), identity: identity.to_owned() };
        let lock = Arc::new(Followed { handle, is_allowed });
        self.introduce(Elector::over(settings, lock, environment.clone()).unwrap(), &environment)
    }

    fn ops(&self, identity: &str) -> Elector {
        self.follower(identity, LeaderElection::new("ops"))
    }
}

async fn takes_over_after(bench: &Bench, first: Elector, second: Elector) -> Duration {
    let term = first.campaign(&bench.stop).await.unwrap();
    let stop = bench.stop.clone();
    let waiting = tokio::spawn(async move { second.campaign(&stop).await.map(|_| Instant::now()) });
    tokio::time::sleep(Duration::from_millis(6_100)).await;
    let released = Instant::now();
    term.end(true).await;
    waiting.await.unwrap().unwrap() - released
}

#[tokio::test(start_paused = true)]
async fn l8_a_followed_lease_passes_on_within_a_second_of_its_release() {
    let bench = Bench::new();
    let took = takes_over_after(&bench, bench.ops("a"), bench.ops("b")).await;
    assert!(took <= Duration::from_millis(300), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_watch_a_candidate_reads_once_in_a_retry_period() {
    let bench = Bench::new();
    let blind = |identity| bench.over(identity, LeaderElection::new("ops"), false);
    let took = takes_over_after(&bench, blind("a"), blind("b")).await;
    assert!(took <= Duration::from_millis(2_450), "{took:?}");
    assert!(took > Duration::from_millis(300), "{took:?}: it was told after all");
}

#[tokio::test(start_paused = true)]
async fn d4_a_leader_that_is_notified_of_another_holder_stops_at_once() {
    let bench = Bench::new();
    let term = bench.ops("a").campaign(&bench.stop).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (since, reads) = (Instant::now(), bench.store.reads.load(Ordering::Relaxed));
    bench.foreign("thief");
    term.lost().cancelled().await;
    assert_eq!(since.elapsed(), Duration::ZERO);
    assert_eq!(term.gate().admit().unwrap_err().kind(), ErrorKind::NotLeader);
    assert_eq!(bench.store.reads.load(Ordering::Relaxed), reads, "it had to ask");
    term.end(true).await;
    assert_eq!(bench.store.holder().as_deref(), Some("thief"));
}

#[tokio::test(start_paused = true)]
async fn an_old_record_that_is_reported_late_ends_no_term() {
    let bench = Bench::new();
    bench.foreign("before");
    let old = bench.store.stored.lock().clone();
    *bench.store.stored.lock() = None;
    let term = bench.ops("a").campaign(&bench.stop).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    bench.store.reports.send_replace(old);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!term.lost().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_over_and_over_is_asked_about_some_times_a_second_at_most() {
    let bench = Bench::new();
    let elector = bench.ops("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    term.end(true).await;
    // Reported as free, but never found so.
    bench.foreign("other");
    let stop = bench.stop.clone();
    let waiting = tokio::spawn(async move { elector.campaign(&stop).await.is_none() });
    let before = bench.store.reads.load(Ordering::Relaxed);
    for version in 1_000..2_000 {
        let record = LeaderElectionRecord::default();
        let reported = ObservedRecord::new(record, version.to_string());
        bench.store.reports.send_replace(Some(reported));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let reads = bench.store.reads.load(Ordering::Relaxed) - before;
    assert!((20..=100).contains(&reads), "{reads} in ten seconds");
    bench.stop.cancel();
    assert!(waiting.await.unwrap());
}

/// A lock that cannot be followed for long; records the times at which that was tried.
#[derive(Debug)]
struct Failing {
    handle: Handle,
    error: Option<ErrorKind>,
    tells: bool,
    tried: Mutex<Vec<Instant>>,
}

impl ResourceLock for Failing {
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
        self.handle.update(version, record)
    }

    fn follow<'a>(&'a self, listener: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        self.tried.lock().push(Instant::now());
        Some(Box::pin(async move {
            if self.tells {
                listener(ObservedRecord::new(released(), "7"));
            }
            match self.error {
                Some(kind) => Err(Error::new(kind, "as told")),
                None => Ok(()),
            }
        }))
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        self.handle.record_event(note)
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_reports_nothing_is_followed_again_ever_more_seldom_and_hardly_without_rights()
{
    let rare = [2, 4, 8, 16, 30, 30, 30].as_slice();
    for (error, tells, waits) in [
        (None, false, rare),
        (Some(ErrorKind::Server), false, rare),
        (None, true, &[1, 1, 1]),
        (Some(ErrorKind::Connect), true, &[1, 1, 1]),
        (Some(ErrorKind::Forbidden), false, &[600, 600]),
    ] {
        let bench = Bench::new();
        bench.foreign("other");
        let handle = Handle { store: bench.store.clone(), identity: "a".to_owned() };
        let lock = Arc::new(Failing { handle, error, tells, tried: Mutex::default() });
        let environment =
            Environment { clock: Clock::simulated(Timestamp::UNIX_EPOCH), ..Environment::system() };
        let lock_watch = super::super::lock::LockWatch::of(lock.clone(), environment);
        tokio::time::sleep(Duration::from_secs(1_800)).await;
        drop(lock_watch);
        let tried = lock.tried.lock().clone();
        let gaps: Vec<f64> =
            tried.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(gaps.len() >= waits.len(), "{error:?} {tells}: {gaps:?}");
        for (gap, wait) in gaps.iter().zip(waits) {
            let wait = f64::from(*wait);
            assert!((wait..=wait * 1.2 + 0.01).contains(gap), "{error:?} {tells}: {gaps:?}");
        }
        let spread = gaps.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.01);
        assert!(spread, "all processes would ask at once: {gaps:?}");
    }
}
