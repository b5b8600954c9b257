//! Reports of probes about an election.

use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::leader::{
    Elector, LeaderElection, LeaderElectionRecord, LockFuture, ObservedRecord, ResourceLock,
};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::Metrics;
use windlass_core::rng::Rng;

/// A lock that every candidate gets.
#[derive(Debug)]
struct Free;

impl ResourceLock for Free {
    fn identity(&self) -> &str {
        "one"
    }

    fn describe(&self) -> String {
        "a free lock".to_owned()
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(async { Ok(None) })
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(async { Ok(ObservedRecord::new(record, "1")) })
    }

    fn update(&self, _: &str, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(async { Ok(ObservedRecord::new(record, "2")) })
    }

    fn record_event(&self, _: String) -> LockFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn liveness_fails_when_a_lease_is_over_and_the_election_does_not_notice() {
    let environment = Environment {
        clock: Clock::simulated(Timestamp::UNIX_EPOCH),
        rng: Rng::seeded(1),
        metrics: Metrics::new(),
    };
    let clock = environment.clock.clone();
    let elector = Elector::over(LeaderElection::new("ops"), Arc::new(Free), environment).unwrap();
    elector.set_unheld_since(clock.reading());
    let term = elector.campaign(&CancellationToken::new()).await.unwrap();
    let mut endpoints = endpoints();
    let status = Arc::get_mut(&mut endpoints.status).unwrap();
    status.elector = Some(elector);
    *status.gate.lock() = Some(term.gate());
    let answer = ask(&endpoints, &get("/healthz?verbose")).await;
    assert!(answer.contains("[+]leaderElection ok"), "{answer}");
    // Only the monotonic clock wakes the election, and that clock does not count this time.
    clock.sleep_machine(Duration::from_secs(30));
    let answer = ask(&endpoints, &get("/healthz")).await;
    assert!(answer.ends_with("ok"), "an election that is a little late: {answer}");
    clock.sleep_machine(Duration::from_secs(10));
    let answer = ask(&endpoints, &get("/healthz")).await;
    assert!(answer.contains("503"), "{answer}");
    let why = "[-]leaderElection failed: the lease expired 27 s ago and leadership was not ended";
    assert!(answer.contains(why), "{answer}");
    drop(term);
    let answer = ask(&endpoints, &get("/healthz")).await;
    assert!(answer.ends_with("ok"), "the term is over, and not stuck: {answer}");
}
