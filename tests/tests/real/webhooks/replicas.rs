//! Replicas that share a Secret.

use super::*;

/// Waits until each replica was asked some more times.
async fn until_asked(replicas: &[&Replica], more: u64) {
    let before: Vec<u64> = replicas.iter().map(|replica| replica.asked()).collect();
    eventually("each replica is asked", async || {
        replicas.iter().zip(&before).all(|(replica, before)| replica.asked() >= before + more)
    })
    .await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn replicas_that_start_at_once_share_an_authority_and_end_one_by_one_without_a_failed_request()
 {
    let (world, clock) = (World::start().await, Clock::system());
    let (first, second) = tokio::join!(world.replica(&clock), world.replica(&clock));
    world.until_judged().await;
    assert_eq!(world.trusted().await, 1, "they share the authority");
    assert_eq!(first.not_after(), second.not_after(), "they share the certificate");
    let version = world.secret().await.metadata.resource_version;

    let load = Load::start(&world);
    until_asked(&[&first, &second], 400).await;
    first.stop(&world).await;
    until_asked(&[&second], 400).await;
    // A rolling update goes on: a replica comes before the next one goes.
    let third = world.replica(&clock).await;
    second.stop(&world).await;
    until_asked(&[&third], 400).await;
    load.end().await;

    assert_eq!(world.trusted().await, 1);
    assert_eq!(world.secret().await.metadata.resource_version, version, "nobody wrote it again");
    third.stop(&world).await;
    world.end().await;
}
