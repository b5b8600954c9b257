use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use windlass_client::client::WriteGate;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::{Metrics, names};
use windlass_core::rng::Rng;

mod answers;
mod callbacks;
mod doubts;
mod edges;
mod ending;
mod environment;
mod following;
mod lending;
mod making;
mod multi;
mod own;
mod pace;
mod renewing;
mod restored;
mod settings;

/// A store in memory that can stop answering.
#[derive(Debug, Default)]
struct Memory {
    stored: Mutex<Option<ObservedRecord>>,
    version: AtomicU64,
    silent: AtomicBool,
    /// Whether the store can be read and not written.
    refuses: AtomicBool,
    /// Whether the next write is stored and not answered.
    swallows: AtomicBool,
    /// Identity whose writes are stored and answered with an error, and that error.
    misled: Mutex<Option<(&'static str, ErrorKind)>>,
    reads: AtomicU64,
    events: Mutex<Vec<String>>,
    reports: tokio::sync::watch::Sender<Option<ObservedRecord>>,
}

impl Memory {
    async fn answer(&self) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn swallow(&self) {
        if self.swallows.swap(false, Ordering::Relaxed) {
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
        self.reports.send_replace(Some(seen.clone()));
        seen
    }

    fn respond(&self, identity: &str, stored: ObservedRecord) -> Result<ObservedRecord, Error> {
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

/// The store from the view of a process.
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
            let stored = self.store.put(record);
            self.store.swallow().await;
            self.store.respond(&self.identity, stored)
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
            let stored = self.store.put(record);
            self.store.swallow().await;
            self.store.respond(&self.identity, stored)
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
    /// Whether the next elector knows that the lock was never held.
    is_new: AtomicBool,
}

impl Bench {
    fn new() -> Self {
        let (store, stop) = (Arc::new(Memory::default()), CancellationToken::new());
        Self { store, stop, is_new: AtomicBool::new(true) }
    }

    /// Creates a store that does not say whether the lock was held before.
    fn old() -> Self {
        Self { is_new: AtomicBool::new(false), ..Self::new() }
    }

    /// Lets the first elector of a new store know that the store is new.
    fn introduce(&self, elector: Elector, environment: &Environment) -> Elector {
        if self.is_new.swap(false, Ordering::Relaxed) {
            elector.set_unheld_since(environment.clock.reading());
        }
        elector
    }

    fn elector(&self, identity: &str) -> (Elector, Environment) {
        let environment = Environment {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            rng: Rng::seeded(1),
            metrics: Metrics::new(),
        };
        let lock = Handle { store: self.store.clone(), identity: identity.to_owned() };
        let elector =
            Elector::over(LeaderElection::new("ops"), Arc::new(lock), environment.clone()).unwrap();
        (self.introduce(elector, &environment), environment)
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

/// Returns the record of a holder that gave the lock back.
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
async fn mechanism_44_the_metrics_show_the_leader_and_slow_renewals() {
    let bench = Bench::new();
    let (elector, environment) = bench.elector("a");
    let says = |line: &str| {
        let text = environment.metrics.encode();
        assert!(text.contains(line), "{line} is not in\n{text}");
    };
    says(r#"leader_election_master_status{name="ops"} 0"#);
    says(r#"leader_election_slowpath_total{name="ops"} 0"#);
    let term = elector.campaign(&bench.stop).await.unwrap();
    says(r#"leader_election_master_status{name="ops"} 1"#);
    // A renewal is not answered: the next must read first.
    bench.store.silent.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.store.silent.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(!term.lost().is_cancelled());
    says(r#"leader_election_slowpath_total{name="ops"} 1"#);
    term.end(true).await;
    says(r#"leader_election_master_status{name="ops"} 0"#);
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
    let (elector, environment) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(term.gate().admit().unwrap().unwrap() > Duration::from_secs(10));
    }
    assert!(!term.lost().is_cancelled());
    assert_eq!(environment.metrics.counted(&names::LEADER_SLOWPATH, &["ops"]), 0);
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
