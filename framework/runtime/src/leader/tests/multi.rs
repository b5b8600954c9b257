//! Two locks held together.

use super::*;

struct Pair {
    old: Arc<Memory>,
    new: Arc<Memory>,
}

impl Pair {
    fn new() -> Self {
        Self { old: Arc::default(), new: Arc::default() }
    }

    fn lock(&self, identity: &str) -> Arc<MultiLock> {
        let handle = |store: &Arc<Memory>| {
            Arc::new(Handle { store: store.clone(), identity: identity.to_owned() })
        };
        Arc::new(MultiLock::new(handle(&self.old), handle(&self.new)))
    }

    fn elector(&self, identity: &str) -> Elector {
        let environment = Environment {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            rng: Rng::seeded(1),
            metrics: Metrics::new(),
        };
        let settings = LeaderElection::new("ops");
        let elector = Elector::over(settings, self.lock(identity), environment.clone()).unwrap();
        if self.old.stored.lock().is_none() && self.new.stored.lock().is_none() {
            elector.set_unheld_since(environment.clock.reading());
        }
        elector
    }
}

fn foreign(holder: &str, transitions: i32) -> LeaderElectionRecord {
    LeaderElectionRecord {
        holder: Some(holder.to_owned()),
        duration: Duration::from_secs(15),
        transitions,
        ..LeaderElectionRecord::default()
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_36_both_locks_are_held_renewed_and_given_back() {
    let (pair, stop) = (Pair::new(), CancellationToken::new());
    let term = pair.elector("ann").campaign(&stop).await.unwrap();
    assert_eq!(pair.old.holder().as_deref(), Some("ann"));
    assert_eq!(pair.new.holder().as_deref(), Some("ann"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!term.lost().is_cancelled());
    let [old, new] = [&pair.old, &pair.new].map(|store| store.stored.lock().clone().unwrap());
    assert_eq!(old.record, new.record);
    term.end(true).await;
    assert_eq!((pair.old.holder(), pair.new.holder()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_halves_name_different_holders_is_held_by_nobody_known() {
    let pair = Pair::new();
    pair.old.put(foreign("ann", 1));
    pair.new.put(foreign("zed", 7));
    let seen = pair.lock("ann").get().await.unwrap().unwrap();
    assert_eq!(seen.record.holder.as_deref(), Some(UNKNOWN_LEADER));
    assert_eq!(seen.record.transitions, 7);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_knows_the_new_lock_only_keeps_holders_of_both_waiting() {
    let (pair, stop) = (Pair::new(), CancellationToken::new());
    let handle = Handle { store: pair.new.clone(), identity: "zed".to_owned() };
    let environment =
        Environment { clock: Clock::simulated(Timestamp::UNIX_EPOCH), ..Environment::system() };
    let zed = Elector::over(LeaderElection::new("ops"), Arc::new(handle), environment).unwrap();
    let _leads = zed.campaign(&stop).await.unwrap();
    let ann = tokio::spawn({
        let (ann, stop) = (pair.elector("ann"), stop.clone());
        async move { ann.campaign(&stop).await.is_some() }
    });
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(pair.new.holder().as_deref(), Some("zed"));
    stop.cancel();
    assert!(!ann.await.unwrap(), "ann never led");
}

#[tokio::test(start_paused = true)]
async fn a_holder_of_both_stops_when_one_of_them_is_taken() {
    for take_new in [false, true] {
        let (pair, stop) = (Pair::new(), CancellationToken::new());
        let term = pair.elector("ann").campaign(&stop).await.unwrap();
        let taken = if take_new { &pair.new } else { &pair.old };
        taken.put(foreign("zed", 9));
        term.lost().cancelled().await;
        assert!(term.gate().admit().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_second_lock_is_made_beside_the_first() {
    let (pair, stop) = (Pair::new(), CancellationToken::new());
    pair.old.put(LeaderElectionRecord::default());
    let _term = pair.elector("ann").campaign(&stop).await.unwrap();
    assert_eq!(pair.new.holder().as_deref(), Some("ann"));
}

#[tokio::test(start_paused = true)]
async fn l1_an_update_of_a_version_that_was_not_read_is_a_conflict() {
    let pair = Pair::new();
    let error = pair.lock("ann").update("1:0-", foreign("ann", 0)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

/// Campaigns for the lock and keeps the term for that time.
fn candidate(
    elector: Elector,
    stop: &CancellationToken,
    keeps: Duration,
) -> tokio::task::JoinHandle<bool> {
    let stop = stop.clone();
    tokio::spawn(async move {
        let Some(term) = elector.campaign(&stop).await else { return false };
        tokio::time::sleep(keeps).await;
        term.end(true).await;
        true
    })
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_cannot_be_written_does_not_keep_the_other_one_from_its_candidates() {
    for (refuses_new, is_there) in [(true, false), (true, true), (false, true)] {
        let (pair, stop) = (Pair::new(), CancellationToken::new());
        let (sick, sound) =
            if refuses_new { (&pair.new, &pair.old) } else { (&pair.old, &pair.new) };
        if is_there {
            sick.put(LeaderElectionRecord::default());
            sound.put(LeaderElectionRecord::default());
        }
        sick.refuses.store(true, Ordering::Relaxed);
        let both = candidate(pair.elector("both"), &stop, Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let handle = Handle { store: sound.clone(), identity: "one".to_owned() };
        let environment =
            Environment { clock: Clock::simulated(Timestamp::UNIX_EPOCH), ..Environment::system() };
        let one = Elector::over(LeaderElection::new("ops"), Arc::new(handle), environment).unwrap();
        let led = candidate(one, &stop, Duration::from_secs(60));
        let led = tokio::time::timeout(Duration::from_secs(120), led).await;
        assert!(led.expect("it leads in time").unwrap(), "{refuses_new} {is_there}");
        // As soon as both can be written, both are held.
        sick.refuses.store(false, Ordering::Relaxed);
        let both = tokio::time::timeout(Duration::from_secs(120), both).await;
        assert!(both.expect("it leads in time").unwrap(), "{refuses_new} {is_there}");
        assert_eq!((pair.old.holder(), pair.new.holder()), (None, None));
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_be_given_back_is_although_the_other_lock_refuses() {
    for refuses_new in [false, true] {
        let (pair, stop) = (Pair::new(), CancellationToken::new());
        let term = pair.elector("ann").campaign(&stop).await.unwrap();
        let (sick, sound) =
            if refuses_new { (&pair.new, &pair.old) } else { (&pair.old, &pair.new) };
        sick.refuses.store(true, Ordering::Relaxed);
        term.end(true).await;
        assert_eq!((sick.holder().as_deref(), sound.holder()), (Some("ann"), None));
    }
}

#[tokio::test(start_paused = true)]
async fn l5_who_makes_a_missing_half_waits_for_who_may_have_held_it() {
    for is_held in [false, true] {
        let (pair, stop) = (Pair::new(), CancellationToken::new());
        let before = if is_held { foreign("dead", 3) } else { released() };
        pair.old.put(before);
        let since = Instant::now();
        let term = pair.elector("ann").campaign(&stop).await.unwrap();
        let waited = since.elapsed();
        let expected = if is_held { 30 } else { 15 };
        assert!(waited >= Duration::from_secs(expected), "{is_held}: {waited:?}");
        assert_eq!(pair.new.holder().as_deref(), Some("ann"));
        // The leader makes the lock again and goes on.
        *pair.new.stored.lock() = None;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(term.gate().admit().is_ok());
        assert_eq!(pair.new.holder().as_deref(), Some("ann"));
    }
}

#[test]
fn two_locks_are_followed_if_the_first_of_them_can_be() {
    let store = Arc::new(Memory::default());
    let handle = || Handle { store: store.clone(), identity: "ann".to_owned() };
    let followed = || Arc::new(following::Followed { handle: handle(), is_allowed: true });
    let deaf = || Arc::new(handle());
    assert!(MultiLock::new(followed(), deaf()).follow(&|_| {}).is_some());
    assert!(MultiLock::new(deaf(), followed()).follow(&|_| {}).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_refused_is_written_first_and_the_other_left_alone_meanwhile() {
    for refuses_new in [true, false] {
        let pair = Pair::new();
        pair.old.put(released());
        pair.new.put(released());
        let (sick, sound) =
            if refuses_new { (&pair.new, &pair.old) } else { (&pair.old, &pair.new) };
        sick.refuses.store(true, Ordering::Relaxed);
        let lock = pair.lock("ann");
        let mut versions = Vec::new();
        for _ in 0..3 {
            let seen = lock.get().await.unwrap().unwrap();
            assert!(lock.update(&seen.version, foreign("ann", 1)).await.is_err());
            versions.push(sound.stored.lock().as_ref().unwrap().version.clone());
        }
        assert!(versions.iter().all(|version| *version == versions[0]), "{versions:?}");
    }
}
