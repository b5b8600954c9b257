//! Records that a process takes for its own: the records that it wrote, not all records under its
//! name.

use super::*;

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
async fn a_process_whose_writes_are_never_acknowledged_leaves_the_lease_to_others() {
    // A conflict: the client sent it again, and met its own first attempt.
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
        // Once answers arrive again, the process leads as soon as permitted.
        *bench.store.misled.lock() = None;
        term.end(true).await;
        let led = tokio::time::timeout(Duration::from_secs(5), ann).await;
        assert!(led.expect("it was free").unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_with_one_unacknowledged_write_tries_again_at_once() {
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
    let (first, environment) = bench.elector("ann");
    let _term = first.campaign(&bench.stop).await.unwrap();
    let lock = Handle { store: bench.store.clone(), identity: "ann".to_owned() };
    let asks = LeaderElection::new("ops").ask(true);
    let second = Elector::over(asks, Arc::new(lock), environment).unwrap();
    let limit = Duration::from_secs(120);
    let led = tokio::time::timeout(limit, second.campaign(&bench.stop)).await;
    assert!(led.is_err(), "two lead");
}
