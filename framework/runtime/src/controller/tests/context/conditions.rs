//! Conditions of an object.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_condition_keeps_its_transition_time_until_its_status_changes() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let ready = |site: Site| site.status.expect("a status").conditions[0].clone();
    let first = ready(world.sites().get("home").await.expect("it is there"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    let second = ready(world.sites().get("home").await.expect("it is there"));
    assert_eq!((second.message.as_str(), second.observed_generation), ("b", Some(2)));
    assert_eq!(second.last_transition_time, first.last_transition_time);
    world.patch("home", json!({ "spec": { "host": "unready" } })).await;
    running.settled().await;
    let third = ready(world.sites().get("home").await.expect("it is there"));
    assert!(third.status == "False" && third.last_transition_time > first.last_transition_time);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_survive_ours() {
    let (world, sites) = (World::start().await, Sites::default());
    world.create("home", "a").await;
    let theirs: Conditions = [met("Theirs", "Because", "")].into_iter().collect();
    let patch = Patch::Merge(json!({ "status": { "conditions": theirs } }));
    world.sites().patch("home", patch).status().await.expect("patched");
    let running = world.run(plain(&sites)).await;
    let status = world.sites().get("home").await.expect("it is there").status.expect("a status");
    assert!(status.conditions.is_met("Theirs") && status.conditions.is_met("Ready"));
    running.stop().await;
}
