//! Crashes between two writes of an apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tower::layer::layer_fn;
use tower::{Service, ServiceExt, service_fn};
use windlass::client::{ClientConfig, HttpRequest, Stack};
use windlass_apiserver::faults::{Fault, FaultAction};

use super::*;

/// Runs an operator until write number `n` hangs, and drops the operator; `false` after fewer
/// writes.
pub(super) async fn crash_at(
    world: &World,
    n: usize,
    operator: impl Fn(Client) -> Manager,
) -> bool {
    if world.cluster.is_embedded() {
        let manager = operator(world.cluster.client());
        return crash_of_embedded(world, n, manager).await;
    }
    let (client, writes) = hanging(&world.cluster, n).await;
    let running = world.cluster.spawn_unrestricted(operator(client));
    let has_hung = || writes.load(Ordering::SeqCst) > n;
    for _ in 0..100 {
        let is_settled = running.try_settled(Duration::from_millis(500)).await.is_ok();
        if has_hung() || (is_settled && world.collect().await == 0) {
            break;
        }
    }
    // Dropped without a stop, as in a crash.
    drop(running);
    has_hung()
}

/// Does the same on the embedded server, of whose time none passes meanwhile.
async fn crash_of_embedded(world: &World, n: usize, manager: Manager) -> bool {
    let hang = |verb: &str| Fault::new(FaultAction::Hang).on(verb).after(n).always();
    let faults = world.cluster.server().faults();
    let handles = ["patch", "delete", "create"].map(|verb| faults.add(hang(verb)));
    let running = world.cluster.spawn(manager);
    let mut has_hung = false;
    for _ in 0..100 {
        world.pass(1).await;
        has_hung = handles.iter().any(|handle| handle.hits() > 0);
        if has_hung {
            break;
        }
    }
    drop(running);
    handles.iter().for_each(|handle| handle.remove());
    has_hung
}

/// Returns a client whose writes are not sent from number `n` on, and the number of the client's
/// writes. Events are not counted: nothing waits for them.
async fn hanging(cluster: &TestCluster, n: usize) -> (Client, Arc<AtomicUsize>) {
    let writes = Arc::<AtomicUsize>::default();
    let (seen, place) = (Arc::clone(&writes), format!("/namespaces/{}/", cluster.namespace()));
    let layer = layer_fn(move |stack: Stack| {
        let (seen, place) = (Arc::clone(&seen), place.clone());
        service_fn(move |request: HttpRequest| {
            let (mut stack, path) = (stack.clone(), request.uri().path());
            let is_write = request.method() != http::Method::GET
                && path.contains(&place)
                && !path.contains("/events");
            let is_sent = !is_write || seen.fetch_add(1, Ordering::SeqCst) < n;
            async move {
                if !is_sent {
                    std::future::pending::<()>().await;
                }
                stack.ready().await?.call(request).await
            }
        })
    });
    let config = ClientConfig::from_yaml(&cluster.kubeconfig().await, None).unwrap();
    (Client::builder().config(config).layer(layer).build().unwrap(), writes)
}

#[tokio::test]
async fn a_crash_between_any_two_writes_leaves_neither_orphans_nor_duplicates() {
    for n in 0..12 {
        let world = World::start().await;
        world.create("shop", &["a", "b"]).await;
        let first = crash_at(&world, n, operator).await;
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
        let second = crash_at(&world, n, operator).await;
        let running = world.spawn();
        running.settled().await;
        assert_eq!(world.owned::<Secret>().await, ["shop-d"], "write {n}");
        assert!(world.owned::<Route>().await.is_empty(), "write {n}");
        assert_eq!(world.told("shop").await, "ready", "write {n}");
        running.stop().await;
        assert!(n > 0 || (first && second), "the first write of each round is hit");
        world.end();
    }
}
