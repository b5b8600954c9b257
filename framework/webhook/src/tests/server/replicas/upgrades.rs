//! Replicas of two versions of one operator, whose configurations differ: a rolling upgrade.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use windlass_core::metrics::names;

use super::own::{Replica, World};
use super::*;
use crate::WebhookRegistration;

/// Time-outs of the rules of two versions.
const OLD: Option<i32> = Some(7);
const NEW: Option<i32> = Some(8);

fn version(timeout: Option<i32>) -> Webhooks {
    let timeout = Duration::from_secs(timeout.unwrap().try_into().unwrap());
    Webhooks::new().validating_with(Rules, WebhookRegistration::new().timeout(timeout))
}

/// Returns the rules that stand.
async fn stands(world: &World) -> Option<i32> {
    world.validating().await.webhooks.unwrap()[0].timeout_seconds
}

/// Returns the checks about configurations.
fn shown(replicas: &[Replica]) -> Vec<String> {
    let checks = replicas.iter().flat_map(|replica| replica.status.checks());
    let of_configurations = checks.filter(|check| check.name == "webhook configuration");
    of_configurations.map(|check| check.detail).collect()
}

/// Starts two replicas of a version.
async fn two(world: &World, timeout: Option<i32>) -> [Replica; 2] {
    let first = world.replica_of(version(timeout));
    pass(5).await;
    let second = world.replica_of(version(timeout));
    pass(20).await;
    [first, second]
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_the_newer_version_stand_while_replicas_of_both_run_and_after() {
    let world = World::start().await;
    let old = two(&world, OLD).await;
    assert_eq!(stands(&world).await, OLD);
    let new = two(&world, NEW).await;
    let mut versions = BTreeSet::new();
    for _ in 0..360 {
        assert_eq!(stands(&world).await, NEW);
        versions.insert(world.validating().await.metadata.resource_version);
        pass(10).await;
    }
    // The replicas of the old version ask every five minutes whether one of the new version lives.
    assert!(versions.len() <= 26, "{} writes in an hour", versions.len());
    assert_eq!((shown(&old), shown(&new)), (Vec::new(), Vec::new()));
    let faulty = world.client.environment().metrics.level(
        &names::WEBHOOK_CONFIGURATION_FAULTY,
        &["validatingwebhookconfiguration", "shop-webhooks"],
    );
    assert_eq!(faulty, Some(0.0));
    for replica in old {
        replica.end().await;
    }
    for _ in 0..60 {
        assert_eq!(stands(&world).await, NEW);
        pass(10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollback_puts_the_former_rules_back_at_once_though_replicas_with_others_run() {
    let world = World::start().await;
    for replica in two(&world, OLD).await {
        replica.end().await;
    }
    let new = two(&world, NEW).await;
    assert_eq!(stands(&world).await, NEW);
    let back = two(&world, OLD).await;
    pass(120).await;
    assert_eq!(stands(&world).await, OLD);
    for replica in new {
        replica.end().await;
    }
    pass(600).await;
    assert_eq!((stands(&world).await, shown(&back)), (OLD, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn the_new_rules_stand_in_the_end_though_an_old_replica_restarted_last() {
    let world = World::start().await;
    let [old, _other] = two(&world, OLD).await;
    let new = two(&world, NEW).await;
    old.end().await;
    let restarted = world.replica_of(version(OLD));
    pass(20).await;
    restarted.end().await;
    _other.end().await;
    pass(420).await;
    assert_eq!((stands(&world).await, shown(&new)), (NEW, Vec::new()));
    let version = world.validating().await.metadata.resource_version;
    pass(1200).await;
    assert_eq!(world.validating().await.metadata.resource_version, version, "nobody writes it");
}

#[tokio::test(start_paused = true)]
async fn what_others_change_during_an_upgrade_is_put_back_as_the_newer_version_has_it() {
    let world = World::start().await;
    let _old = two(&world, OLD).await;
    let _new = two(&world, NEW).await;
    for is_forgotten in [false, true] {
        let mut changed = world.validating().await;
        changed.webhooks.as_mut().unwrap()[0].timeout_seconds = Some(1);
        if is_forgotten {
            // As by `kubectl replace` of the printed manifests.
            changed.metadata.annotations = None;
        }
        world.client.all::<ValidatingWebhookConfiguration>().replace(&changed).await.unwrap();
        pass(35).await;
        assert_eq!(stands(&world).await, NEW, "{is_forgotten}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_finds_the_right_rules_decides_like_one_that_writes_them() {
    let world = World::start().await;
    let first = world.replica_of(version(OLD));
    pass(60).await;
    let _restarted = world.replica_of(version(OLD));
    pass(20).await;
    first.end().await;
    let written = world.validating().await.metadata.resource_version;
    // It started before the last start of the others, by the clock of its node.
    let slow = world.client_at(super::own::EPOCH + 30);
    let new = world.start_replica(slow, ("shop", version(NEW)), true);
    for _ in 0..60 {
        pass(2).await;
        assert_eq!(stands(&world).await, OLD);
    }
    assert_eq!(world.validating().await.metadata.resource_version, written, "nobody writes it");
    assert_eq!(shown(&[new]), Vec::<String>::new());
}
