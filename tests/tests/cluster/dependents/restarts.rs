//! Crashes between two writes of an apply.

use windlass_apiserver::faults::{Action as FaultAction, Fault};

use super::*;

/// Runs an operator until its write number `n` hangs, and drops it; `false` if it made fewer writes.
pub(super) async fn crash_at(world: &World, n: usize, spawn: impl Fn() -> RunningOperator) -> bool {
    let hang = |verb: &str| Fault::new(FaultAction::Hang).on(verb).after(n).always();
    let faults = world.cluster.server().faults();
    let handles = ["patch", "delete", "create"].map(|verb| faults.add(hang(verb)));
    let running = spawn();
    let mut has_hung = false;
    for _ in 0..100 {
        world.pass(1).await;
        has_hung = handles.iter().any(|handle| handle.hits() > 0);
        if has_hung {
            break;
        }
    }
    // Dropped without a stop, as in a crash.
    drop(running);
    handles.iter().for_each(|handle| handle.remove());
    has_hung
}

#[tokio::test]
async fn a_crash_between_any_two_writes_leaves_neither_orphans_nor_duplicates() {
    for n in 0..12 {
        let world = World::embedded().await;
        world.cluster.install::<Route>().await;
        world.create("shop", &["a", "b"]).await;
        let first = crash_at(&world, n, || world.spawn()).await;
        // Between the crash and the restart the spec changes.
        world.patch("shop", json!({ "spec": { "shards": ["b", "c"], "exposed": true } })).await;
        let running = world.spawn();
        running.settled().await;
        world.open("shop").await;
        running.settled().await;
        assert_eq!(world.owned::<ConfigMap>().await, ["shop-app", "shop-config"], "write {n}");
        assert_eq!(world.owned::<Secret>().await, ["shop-b", "shop-c"], "write {n}");
        assert_eq!(world.owned::<Route>().await, ["shop"], "write {n}");
        running.stop().await;

        // And in the removal of all but one.
        world.patch("shop", json!({ "spec": { "shards": ["d"], "exposed": false } })).await;
        let second = crash_at(&world, n, || world.spawn()).await;
        let running = world.spawn();
        running.settled().await;
        assert_eq!(world.owned::<Secret>().await, ["shop-d"], "write {n}");
        assert!(world.owned::<Route>().await.is_empty(), "write {n}");
        assert_eq!(world.told("shop").await, "ready", "write {n}");
        running.stop().await;
        assert!(n > 0 || (first && second), "the first write of each round is hit");
        // The next world pauses the clock anew.
        tokio::time::resume();
    }
}
