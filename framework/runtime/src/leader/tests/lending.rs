//! A process that asks the holder for the lease, and holders that lend or do not.

use super::*;

fn lender() -> LeaderElection {
    LeaderElection::new("ops").lend(true)
}

fn asker() -> LeaderElection {
    LeaderElection::new("ops").ask(true)
}

impl Bench {
    fn asked_by(&self) -> Option<String> {
        self.store.stored.lock().as_ref()?.record.requested_by.clone()
    }

    /// Leads whenever possible; the work ends on cancellation.
    fn operate(&self, elector: Elector) -> tokio::task::JoinHandle<Vec<ElectionOutcome>> {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let mut outcomes = Vec::new();
            while !stop.is_cancelled() {
                let work = |_, stop: CancellationToken| async move { stop.cancelled().await };
                outcomes.push(elector.run(LeaderCallbacks::new(work, || {}), &stop).await);
            }
            outcomes
        })
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lent_to_who_asks_and_taken_back_when_they_end() {
    let bench = Bench::new();
    let operator = bench.operate(bench.follower("operator", lender()));
    seconds(5).await;
    let laptop = bench.follower("laptop", asker());
    let asked = Instant::now();
    let term = laptop.campaign(&bench.stop).await.unwrap();
    assert!(asked.elapsed() <= Duration::from_secs(1), "{:?}", asked.elapsed());
    assert_eq!(bench.store.holder().as_deref(), Some("laptop"));
    assert_eq!(bench.asked_by(), None, "a request that was granted is over");
    seconds(60).await;
    assert!(!term.lost().is_cancelled(), "nobody takes it from who borrowed it");
    term.end(true).await;
    seconds(1).await;
    assert_eq!(bench.store.holder().as_deref(), Some("operator"));
    bench.stop.cancel();
    assert_eq!(operator.await.unwrap(), [ElectionOutcome::Lent, ElectionOutcome::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn other_replicas_let_the_asker_have_the_lease_first() {
    let bench = Bench::new();
    let replicas =
        ["one", "two", "three"].map(|identity| bench.operate(bench.follower(identity, lender())));
    seconds(5).await;
    let leader = bench.store.holder();
    // A candidate that receives no reports, so that all others read before it.
    let (laptop, _) = bench.elector("laptop");
    let asks = LeaderElectionRecord {
        requested_by: Some("laptop".to_owned()),
        ..bench.store.stored.lock().clone().unwrap().record
    };
    bench.store.put(asks);
    seconds(3).await;
    assert_ne!(leader, None);
    assert_eq!(bench.store.holder(), None, "given back, and left to the asker");
    let _term = laptop.campaign(&bench.stop).await.unwrap();
    assert_eq!(bench.store.holder().as_deref(), Some("laptop"));
    bench.stop.cancel();
    for replica in replicas {
        replica.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_asker_that_is_gone_holds_nobody_up_for_long() {
    let bench = Bench::new();
    let operator = bench.operate(bench.follower("operator", lender()));
    seconds(5).await;
    let asks = LeaderElectionRecord {
        requested_by: Some("gone".to_owned()),
        ..bench.store.stored.lock().clone().unwrap().record
    };
    bench.store.put(asks);
    seconds(9).await;
    assert_eq!(bench.store.holder().as_deref(), Some("operator"));
    assert_eq!(bench.asked_by(), None);
    bench.stop.cancel();
    assert_eq!(operator.await.unwrap(), [ElectionOutcome::Lent, ElectionOutcome::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_does_not_lend_keeps_the_lease_and_a_withdrawn_request_leaves_no_trace() {
    let bench = Bench::new();
    let operator = bench.operate(bench.follower("operator", LeaderElection::new("ops")));
    seconds(5).await;
    let laptop = bench.follower("laptop", asker());
    let stop = CancellationToken::new();
    let campaign = tokio::spawn({
        let stop = stop.clone();
        async move { laptop.campaign(&stop).await.is_none() }
    });
    seconds(60).await;
    assert_eq!(bench.store.holder().as_deref(), Some("operator"));
    assert_eq!(bench.asked_by().as_deref(), Some("laptop"));
    stop.cancel();
    assert!(campaign.await.unwrap());
    assert_eq!(bench.asked_by(), None);
    bench.stop.cancel();
    assert_eq!(operator.await.unwrap(), [ElectionOutcome::Stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_request_keeps_no_dead_holder_alive() {
    let bench = Bench::new();
    bench.foreign("dead");
    let since = Instant::now();
    let laptop = bench.follower("laptop", asker());
    let _term = laptop.campaign(&bench.stop).await.unwrap();
    assert!(since.elapsed() < Duration::from_secs(18), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_only_after_the_lenders_work_has_ended() {
    let bench = Bench::new();
    let operator = bench.follower("operator", lender());
    let term = operator.campaign(&bench.stop).await.unwrap();
    let laptop = bench.follower("laptop", asker());
    let stop = bench.stop.clone();
    let asking = tokio::spawn(async move { laptop.campaign(&stop).await });
    term.handover_requested().cancelled().await;
    seconds(20).await;
    assert_eq!(bench.store.holder().as_deref(), Some("operator"), "never by force");
    assert!(term.gate().admit().is_ok(), "its last writes still count");
    term.end(true).await;
    assert!(asking.await.unwrap().is_some());
}

#[test]
fn a_lock_in_which_nobody_can_ask_is_refused_to_who_asks_or_lends() {
    use crate::leader::LockKind;
    for (lock, is_fit) in [
        (LockKind::Leases, true),
        (LockKind::ConfigMapsLeases, false),
        (LockKind::EndpointsLeases, false),
        (LockKind::ConfigMaps, false),
        (LockKind::Endpoints, false),
    ] {
        let election = || LeaderElection::new("ops").resource_lock(lock);
        assert!(election().check().is_ok());
        for election in [election().ask(true), election().lend(true)] {
            let checked = election.check();
            assert_eq!(checked.is_ok(), is_fit, "{lock:?}: {checked:?}");
            let told = checked.map_or_else(|error| error.to_string(), |()| lock.as_str().into());
            assert!(told.contains(lock.as_str()), "{told}");
        }
    }
}

#[test]
fn who_lends_and_never_gives_back_is_refused() {
    let keeps = lender().release_on_cancel(false).check().unwrap_err();
    assert!(keeps.to_string().contains("never gives it back"), "{keeps}");
}

#[test]
fn who_both_asks_and_lends_is_refused() {
    let error = lender().ask(true).check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("pass it on for ever"), "{error}");
    assert!(asker().check().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_lender_whose_work_was_cut_does_not_take_its_lease_back_before_the_asker() {
    let bench = Bench::new();
    let operator = bench.follower("operator", lender());
    let term = operator.campaign(&bench.stop).await.unwrap();
    let laptop = bench.follower("laptop", asker());
    let stop = bench.stop.clone();
    let asking = tokio::spawn(async move { laptop.campaign(&stop).await });
    term.handover_requested().cancelled().await;
    seconds(25).await;
    // A reconcile did not end: nothing may be given back.
    term.end(false).await;
    assert_eq!(bench.store.holder().as_deref(), Some("operator"));
    let stop = bench.stop.clone();
    let again = tokio::spawn(async move { operator.campaign(&stop).await });
    let borrowed = tokio::time::timeout(Duration::from_secs(20), asking).await;
    let borrowed = borrowed.expect("it expires, and the asker has it").unwrap().unwrap();
    assert_eq!(bench.store.holder().as_deref(), Some("laptop"));
    seconds(60).await;
    assert!(!borrowed.lost().is_cancelled());
    borrowed.end(true).await;
    assert!(again.await.unwrap().is_some(), "and then the lender again");
}

#[tokio::test(start_paused = true)]
async fn a_lender_takes_its_lease_back_when_the_asker_is_gone() {
    let bench = Bench::new();
    let operator = bench.follower("operator", lender());
    let term = operator.campaign(&bench.stop).await.unwrap();
    let asks = LeaderElectionRecord {
        requested_by: Some("gone".to_owned()),
        ..bench.store.stored.lock().clone().unwrap().record
    };
    bench.store.put(asks);
    term.handover_requested().cancelled().await;
    term.end(false).await;
    let since = Instant::now();
    assert!(operator.campaign(&bench.stop).await.is_some());
    assert!(since.elapsed() >= Duration::from_secs(15), "{:?}", since.elapsed());
    assert!(since.elapsed() <= Duration::from_secs(23), "{:?}", since.elapsed());
}

/// No other process could have the lock first.
#[tokio::test(start_paused = true)]
async fn a_term_that_was_cut_is_followed_by_the_next_at_once_unless_its_lender_was_asked() {
    for (lends, asks) in [(true, false), (false, true), (false, false)] {
        let bench = Bench::new();
        let operator = bench.follower("operator", LeaderElection::new("ops").lend(lends));
        let term = operator.campaign(&bench.stop).await.unwrap();
        if asks {
            let asks = LeaderElectionRecord {
                requested_by: Some("laptop".to_owned()),
                ..bench.store.stored.lock().clone().unwrap().record
            };
            bench.store.put(asks);
            seconds(3).await;
        }
        term.end(false).await;
        let since = Instant::now();
        let _term = operator.campaign(&bench.stop).await.unwrap();
        assert!(since.elapsed() < Duration::from_secs(1), "{lends} {asks}: {:?}", since.elapsed());
    }
}
