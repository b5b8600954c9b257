//! The authority is replaced while kube-apiserver asks 200 times a second. The operator's clock is
//! 292 days slow at first, and is put ahead from step to step; it is never fast, so that all
//! certificates are valid for kube-apiserver. Replicas read the Secret each minute of real time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;

/// Time from the making of an authority until the next one is due.
const DUE: Duration = Duration::from_secs(292 * 24 * 3600 - 300);
/// Time for which an authority is trusted before it signs.
const OVERLAP: Duration = Duration::from_secs(3600);
/// Time in which a replica reads the Secret twice.
const TWO_READINGS: Duration = Duration::from_secs(150);

/// Waits until `met` holds; fails after two readings.
async fn until(condition: &str, mut met: impl AsyncFnMut() -> bool) {
    let clock = Clock::system();
    let wait = async {
        while !met().await {
            clock.sleep(Duration::from_millis(250)).await;
        }
    };
    assert!(clock.timeout(TWO_READINGS, wait).await.is_some(), "never: {condition}");
}

#[tokio::test]
#[ignore = "needs the real API server and takes two minutes: see tests/README.md"]
async fn w1_no_request_through_kube_apiserver_fails_while_the_authority_is_replaced() {
    let world = World::start().await;
    let behind = SignedDuration::try_from(DUE + OVERLAP + Duration::from_secs(600)).unwrap();
    let clock = Clock::simulated(Timestamp::now().checked_sub(behind).unwrap());
    let maker = world.replica(&clock).await;
    maker.stop(&world).await;
    let first = world.signing().await;
    // The authority is due soon after these replicas, which sign a certificate, have started.
    clock.sleep_machine(DUE - Duration::from_secs(30));
    let replicas = [world.replica(&clock).await, world.replica(&clock).await];
    world.until_judged().await;
    assert_eq!((world.signing().await == first, world.trusted().await), (true, 1));
    let before = replicas.each_ref().map(Replica::not_after);

    let load = Load::start(&world);
    until("the next authority is trusted", async || world.trusted().await == 2).await;
    assert!(world.signing().await == first);
    let opened = world.service.opened();
    clock.sleep_machine(OVERLAP);
    until("the next authority signs", async || world.signing().await != first).await;
    until("each replica shows its certificate", async || {
        replicas.iter().zip(before).all(|(replica, before)| replica.not_after() > before)
    })
    .await;
    let asked = replicas.each_ref().map(Replica::asked);
    until("each replica is asked by it", async || {
        let more = replicas.iter().zip(asked).all(|(replica, asked)| replica.asked() > asked + 500);
        more && world.service.opened() > opened
    })
    .await;
    let answered = load.end().await;
    let asked: u64 = replicas.iter().map(Replica::asked).sum();
    assert!(asked >= answered, "{asked} < {answered}");
    assert!(clock.wall() < Timestamp::now(), "certificates of the future would be refused");
    for replica in replicas {
        replica.stop(&world).await;
    }
    world.end().await;
}
