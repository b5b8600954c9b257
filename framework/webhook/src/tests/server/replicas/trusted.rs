//! The authorities that API servers trust, against those of the certificates that replicas show.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::logs::Captured;
use super::own::{Replica, World};
use super::*;

const SECRET: &str = "shop-webhook-certificates";
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn signing(world: &World) -> ByteString {
    world.secret().await.data.unwrap()["signing-ca.crt"].clone()
}

async fn delete_secret(world: &World) {
    world.client.namespace::<Secret>("default").delete(SECRET).await.unwrap();
}

/// Asks each replica once a second.
async fn ask(world: &World, replicas: &[Replica], seconds: u64) {
    for second in 0..seconds {
        for (number, replica) in replicas.iter().enumerate() {
            assert_eq!(world.ask(replica).await.0, 200, "replica {number}, after {second} s");
        }
        pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_starts_after_the_secret_was_deleted_keeps_the_trust_in_what_others_show() {
    let world = World::start().await;
    let mut replicas = vec![world.replica(), world.replica()];
    pass(30).await;
    let before = signing(&world).await;
    delete_secret(&world).await;
    replicas.push(world.replica());
    pass(1).await;
    assert_ne!(signing(&world).await, before);
    ask(&world, &replicas, 200).await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_made_anew_at_first_keeps_the_trust_in_what_replicas_show() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica()];
    pass(30).await;
    let fault = Fault::new(FaultAction::Answer(403)).on("create").resource("secrets");
    let refused = world.server.faults().add(fault.times(3));
    delete_secret(&world).await;
    ask(&world, &replicas, 200).await;
    assert_eq!(refused.hits(), 3);
}

/// Lets the next authority become due, and makes replicas learn of it.
async fn until_the_next_authority_is_made(world: &World) {
    for _ in 0..98 {
        world.clock.sleep_machine(DAY * 3);
        pass(70).await;
    }
    assert!(world.secret().await.data.unwrap().contains_key("next-ca.crt"));
}

#[tokio::test(start_paused = true)]
async fn the_next_authority_signs_only_once_the_configurations_have_it() {
    let captured = Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let world = World::start().await;
    let replicas = [world.replica(), world.replica()];
    pass(2).await;
    let first = signing(&world).await;
    let fault = Fault::new(FaultAction::Answer(403)).on("update").times(usize::MAX);
    let refused = world.server.faults().add(fault.resource("validatingwebhookconfigurations"));
    until_the_next_authority_is_made(&world).await;
    for _ in 0..20 {
        world.clock.sleep_machine(Duration::from_secs(3600));
        pass(61).await;
        ask(&world, &replicas, 1).await;
    }
    assert!(signing(&world).await == first && refused.hits() > 0);
    let told = captured.text().matches("does not sign yet").count();
    assert!((1..=2).contains(&told), "once by each replica: {told}");
    assert!(captured.text().contains("validatingwebhookconfiguration shop-webhooks"));
    refused.remove();
    ask(&world, &replicas, 200).await;
    assert!(signing(&world).await != first);
    // Three months before its end, a year after the beginning.
    assert!(replicas[0].not_after() > world.clock.wall());
}

#[tokio::test(start_paused = true)]
async fn the_next_authority_signs_at_the_end_of_the_old_one_whatever_configurations_have() {
    let world = World::start().await;
    let _replica = world.replica();
    pass(2).await;
    let first = signing(&world).await;
    let fault = Fault::new(FaultAction::Answer(403)).on("update").times(usize::MAX);
    world.server.faults().add(fault.resource("validatingwebhookconfigurations"));
    until_the_next_authority_is_made(&world).await;
    for _ in 0..70 {
        assert!(signing(&world).await == first);
        world.clock.sleep_machine(DAY);
        pass(70).await;
    }
    world.clock.sleep_machine(DAY * 2);
    pass(70).await;
    assert!(signing(&world).await != first);
}

#[tokio::test(start_paused = true)]
async fn certificates_made_anew_are_shown_once_the_configurations_have_their_authority() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica()];
    pass(30).await;
    let fault = Fault::new(FaultAction::Answer(403)).on("update").times(usize::MAX);
    let refused = world.server.faults().add(fault.resource("validatingwebhookconfigurations"));
    delete_secret(&world).await;
    ask(&world, &replicas, 600).await;
    refused.remove();
    let before = replicas[0].not_after();
    ask(&world, &replicas, 200).await;
    assert!(replicas[0].not_after() > before, "the new one is shown");
}
