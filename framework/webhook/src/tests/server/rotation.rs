//! Requests while the authority is replaced: 200 a second, by the authorities of the configuration.

use super::own::{Replica, World};
use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Requests of a second.
const RATE: u64 = 200;
/// Requests on one connection.
const ON_ONE: u64 = 10;

/// Returns the pause in seconds between two seconds with requests: nineteen, or none with
/// `WINDLASS_ROTATION`.
fn spared() -> u64 {
    if std::env::var_os("WINDLASS_ROTATION").is_some() { 0 } else { 19 }
}

/// Sends requests for some seconds, some of them on new connections; returns their number.
async fn load(world: &World, replicas: &[Replica], seconds: u64) -> u64 {
    let mut answered = 0;
    let mut left = seconds;
    while left > 0 {
        for turn in 0..RATE / ON_ONE {
            let replica = &replicas[usize::try_from(turn).unwrap() % replicas.len()];
            let mut connection = world.dial(replica).await;
            for _ in 0..ON_ONE {
                let (code, body) = send(&mut connection, "", json!({})).await;
                assert_eq!((code, &body["response"]["allowed"]), (200, &json!(true)), "{body}");
                answered += 1;
                tokio::time::sleep(Duration::from_millis(1000 / RATE)).await;
            }
        }
        pass(spared().min(left - 1)).await;
        left = left.saturating_sub(1 + spared());
    }
    answered
}

#[tokio::test(start_paused = true)]
async fn w1_no_request_of_200_a_second_fails_while_the_authority_is_replaced() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica()];
    pass(2).await;
    let signing = async || world.secret().await.data.unwrap()["signing-ca.crt"].0.clone();
    let first = signing().await;
    for _ in 0..97 {
        world.clock.sleep_machine(DAY * 3);
        pass(70).await;
    }
    assert!(signing().await == first);
    world.clock.sleep_machine(DAY * 2);
    let trusted = async || {
        let bundle = world.secret().await.data.unwrap()["ca.crt"].0.clone();
        String::from_utf8(bundle).unwrap().matches("BEGIN").count()
    };
    // The next authority is made within a minute, and trusted from then on.
    let mut answered = load(&world, &replicas, 80).await;
    assert_eq!((signing().await == first, trusted().await), (true, 2));
    pass(crate::certificates::OVERLAP.as_secs() - 90).await;
    assert!(signing().await == first);
    // It signs an hour later, and each replica shows its certificate within a minute.
    answered += load(&world, &replicas, 220).await;
    assert!(signing().await != first, "the next authority signs");
    assert_eq!(answered, (80 + 220) / (1 + spared()) * RATE);
}
