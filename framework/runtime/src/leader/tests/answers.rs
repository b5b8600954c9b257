//! Answers that are errors: the election's reaction, and the reports.

use super::*;
use windlass_client::client::test_support::Captured;
use windlass_core::error::ApiStatus;

/// A lock that refuses some requests before they reach the store.
#[derive(Debug)]
struct Refusing {
    handle: Handle,
    /// Code of the answer to the next update, under a kind that hides the code.
    once: Mutex<Option<u16>>,
    /// Name of the requests that find no namespace.
    always: Option<&'static str>,
}

impl Refusing {
    fn refuse(&self, what: &'static str) -> Result<(), Error> {
        if self.always == Some(what) {
            return Err(Error::new(ErrorKind::NotFound, format!("{what}: no such namespace")));
        }
        match self.once.lock().take_if(|_| what == "update") {
            Some(code) => {
                let status = ApiStatus { code, ..ApiStatus::default() };
                Err(Error::from_status(what, status).with_kind(ErrorKind::Server))
            }
            None => Ok(()),
        }
    }
}

impl ResourceLock for Refusing {
    fn identity(&self) -> &str {
        self.handle.identity()
    }

    fn describe(&self) -> String {
        self.handle.describe()
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(async {
            self.refuse("get")?;
            self.handle.get().await
        })
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(async {
            self.refuse("create")?;
            self.handle.create(record).await
        })
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        let version = version.to_owned();
        Box::pin(async move {
            self.refuse("update")?;
            self.handle.update(&version, record).await
        })
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        self.handle.record_event(note)
    }
}

fn elector(bench: &Bench, always: Option<&'static str>) -> (Elector, Arc<Refusing>) {
    let handle = Handle { store: bench.store.clone(), identity: "ann".to_owned() };
    let lock = Arc::new(Refusing { handle, once: Mutex::default(), always });
    let environment =
        Environment { clock: Clock::simulated(Timestamp::UNIX_EPOCH), ..Environment::system() };
    let elector =
        Elector::over(LeaderElection::new("ops"), lock.clone(), environment.clone()).unwrap();
    (bench.introduce(elector, &environment), lock)
}

/// A client that sent a write twice may receive an error about its first attempt.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_answered_by_a_conflict_or_not_found_reads_the_lock_at_once() {
    for code in [409, 404] {
        let bench = Bench::new();
        let (ann, lock) = elector(&bench, None);
        let term = ann.campaign(&bench.stop).await.unwrap();
        let before = bench.store.stored.lock().clone().unwrap();
        if code == 404 {
            *bench.store.stored.lock() = None;
        }
        let reads = bench.store.reads.load(Ordering::Relaxed);
        *lock.once.lock() = Some(code);
        while lock.once.lock().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let after = bench.store.stored.lock().clone().expect("made again");
        assert!(after.record.renewed > before.record.renewed, "{code}");
        assert_eq!(bench.store.reads.load(Ordering::Relaxed), reads + 1, "{code}");
        assert!(!term.lost().is_cancelled());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_namespace_does_not_exist_is_no_lock_that_could_be_had() {
    for refused in ["get", "create"] {
        let bench = Bench::new();
        let (ann, _) = elector(&bench, Some(refused));
        let campaign = ann.campaign(&bench.stop);
        let led = tokio::time::timeout(Duration::from_secs(60), campaign).await;
        assert!(led.is_err());
        let why = ann.unreachable().unwrap_or_default();
        assert!(why.contains("no such namespace"), "{refused}: {why:?}");
    }
    let bench = Bench::new();
    let (ann, _) = elector(&bench, None);
    let _term = ann.campaign(&bench.stop).await.unwrap();
    assert_eq!(ann.unreachable(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_reported_with_its_new_holder_before_the_work_is_notified() {
    for taken in [true, false] {
        let (logged, _guard) = Captured::at(tracing::Level::WARN);
        let bench = Bench::new();
        let (ann, environment) = bench.elector("ann");
        let term = ann.campaign(&bench.stop).await.unwrap();
        if taken {
            bench.foreign("thief");
        } else {
            bench.store.silent.store(true, Ordering::Relaxed);
        }
        term.lost().cancelled().await;
        assert_eq!(*ann.watch().borrow(), Leadership::Candidate { holder: None });
        let metrics = environment.metrics.encode();
        assert!(metrics.contains(r#"leader_election_master_status{name="ops"} 0"#), "{metrics}");
        let by_whom = logged.with("another replica took the lease");
        assert_eq!(by_whom.len(), usize::from(taken), "{}", logged.text());
        assert!(by_whom.iter().all(|line| line.contains("leader=thief")), "{by_whom:?}");
        let late = logged.with("could not be renewed in time");
        assert_eq!(late.len(), usize::from(!taken), "{}", logged.text());
    }
}
