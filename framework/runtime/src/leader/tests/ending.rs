//! Ends of terms and campaigns, and the state that they leave.

use super::*;

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
    let (elector, environment) = bench.elector("a");
    let term = elector.campaign(&bench.stop).await.unwrap();
    environment.clock.sleep_machine(Duration::from_secs(12));
    assert!(term.gate().admit().is_err(), "995 ms are left, a second is needed");
    environment.clock.sleep_machine(Duration::from_secs(12));
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

/// An answer that is lost leaves open whether the lease was won: a process that stops reads the
/// lock, and gives the lease back.
#[tokio::test(start_paused = true)]
async fn a_stop_while_the_answer_is_lost_leaves_the_lease_to_nobody() {
    for is_there in [false, true] {
        let bench = Bench::new();
        if is_there {
            bench.store.put(released());
        }
        bench.store.swallows.store(true, Ordering::Relaxed);
        let ((elector, _), stop) = (bench.elector("a"), bench.stop.clone());
        let campaign = tokio::spawn(async move { elector.campaign(&stop).await.is_none() });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(bench.store.holder().as_deref(), Some("a"), "it was stored");
        let since = Instant::now();
        bench.stop.cancel();
        assert!(campaign.await.unwrap());
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
        assert_eq!(bench.store.holder(), None, "{is_there}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_won_during_a_stop_is_kept_when_release_is_switched_off() {
    let mut won = 0;
    for at in 0..15 {
        let bench = Bench::new();
        let settings = LeaderElection::new("ops").release_on_cancel(false);
        let elector = bench.follower("a", settings);
        let stop = bench.stop.clone();
        let campaign = tokio::spawn(async move { elector.campaign(&stop).await });
        tokio::time::sleep(Duration::from_millis(at)).await;
        bench.stop.cancel();
        if campaign.await.unwrap().is_none() && bench.store.stored.lock().is_some() {
            assert_eq!(bench.store.holder().as_deref(), Some("a"), "stopped after {at} ms");
            won += 1;
        }
    }
    assert!(won > 0, "no stop came between the write and its answer");
}
