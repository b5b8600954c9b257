//! Certificates that expired.

use jiff::Timestamp;

use super::*;

/// Hours of a day.
const DAY: i64 = 24;

/// Returns a clock that is slow by some days.
fn slow_by(days: i64) -> Clock {
    let behind = jiff::SignedDuration::from_hours(days * DAY);
    Clock::simulated(Timestamp::now().checked_sub(behind).unwrap())
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn w1_certificates_that_expired_while_the_operator_was_down_are_made_anew_at_its_start() {
    // 90 days have passed, and then the year of an authority, which stays trusted until a later
    // step: the clock of a node may be wrong.
    for (days, authorities) in [(100, 1), (400, 2)] {
        let world = World::start().await;
        let past = world.replica(&slow_by(days)).await;
        eventually("the API server refuses the certificate", async || {
            let refused = world.judged().await.unwrap_err();
            refused.contains("certificate has expired")
        })
        .await;
        let (old, signing) = (past.not_after(), world.signing().await);
        past.stop(&world).await;

        let replica = world.replica(&Clock::system()).await;
        world.until_judged().await;
        assert!(replica.not_after() > old);
        let is_new = world.signing().await != signing;
        assert_eq!((is_new, world.trusted().await), (days > 365, authorities), "{days} days");
        replica.stop(&world).await;
        world.end().await;
    }
}
