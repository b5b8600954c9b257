//! The server's store is restored from a backup: the lock shows an earlier state, in which another
//! process or nobody held it, while the present holder may still write.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

impl Bench {
    /// Puts an earlier state of the lock back, as a restored store does; later versions follow it.
    fn restore(&self, earlier: ObservedRecord) {
        let version: u64 = earlier.version.parse().expect("a number");
        self.store.version.store(version + 1, Ordering::Relaxed);
        *self.store.stored.lock() = Some(earlier.clone());
        self.store.reports.send_replace(Some(earlier));
    }

    fn stored(&self) -> ObservedRecord {
        self.store.stored.lock().clone().expect("a record")
    }
}

/// Restores the lock while the elector campaigns; returns the time until it leads.
async fn led_after(bench: &Bench, elector: &Elector, earlier: ObservedRecord) -> Duration {
    let restored = async {
        for _ in 0..10 {
            bench.foreign("ann");
            tokio::time::sleep(SECOND).await;
        }
        bench.restore(earlier);
        Instant::now()
    };
    let (term, restored) = tokio::join!(elector.campaign(&bench.stop), restored);
    assert!(term.expect("a term").gate().admit().is_ok());
    restored.elapsed()
}

#[tokio::test(start_paused = true)]
async fn l5_a_lock_that_a_restore_shows_as_given_back_is_waited_for() {
    let bench = Bench::old();
    bench.store.put(released());
    let earlier = bench.stored();
    let waited = led_after(&bench, &bench.elector("bob").0, earlier).await;
    assert!(waited >= 15 * SECOND, "ann may write for as long as her lease lasts: {waited:?}");
    assert!(waited <= 18 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn l5_an_own_record_that_a_restore_brings_back_is_waited_for() {
    let bench = Bench::new();
    let (bob, _) = bench.elector("bob");
    let term = bob.campaign(&bench.stop).await.expect("a term");
    let earlier = bench.stored();
    term.end(true).await;
    let waited = led_after(&bench, &bob, earlier).await;
    assert!(waited >= 15 * SECOND, "ann has led since, and may write: {waited:?}");
    assert!(waited <= 18 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn l5_a_restore_is_waited_for_in_the_next_campaign_as_well() {
    let bench = Bench::old();
    bench.store.put(released());
    let earlier = bench.stored();
    let (bob, _) = bench.elector("bob");
    bench.foreign("ann");
    let look = tokio::time::timeout(SECOND, bob.campaign(&bench.stop)).await;
    assert!(look.is_err(), "ann holds it");
    bench.restore(earlier);
    let since = Instant::now();
    let stop = CancellationToken::new();
    let second = tokio::time::timeout(5 * SECOND, bob.campaign(&stop)).await;
    assert!(second.is_err(), "it waits");
    let _term = bob.campaign(&bench.stop).await.expect("a term");
    let waited = since.elapsed();
    assert!((15 * SECOND..18 * SECOND).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_if_a_restore_shows_nobody_else_as_the_holder() {
    for is_own in [false, true] {
        let bench = Bench::new();
        bench.store.put(released());
        let before = bench.stored();
        let term = bench.elector("ann").0.campaign(&bench.stop).await.expect("a term");
        let own = bench.stored();
        tokio::time::sleep(30 * SECOND).await;
        bench.restore(if is_own { own } else { before });
        for _ in 0..60 {
            tokio::time::sleep(SECOND).await;
            assert!(term.gate().admit().is_ok(), "{is_own}");
        }
        assert_eq!(bench.store.holder().as_deref(), Some("ann"));
    }
}
