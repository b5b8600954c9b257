//! Graphs at rest: children that nothing has changed are neither applied nor decoded, and all
//! others are.

// DESIGN.md, 206: A child at rest is recognized by its description and its version

use super::*;
use crate::dependents::{Dependents, OwnsDependents};
use k8s_openapi::api::apps::v1::Deployment;
use windlass_client::api::Api;

#[derive(Dependents)]
#[dependents(by = Shops)]
struct Parts {
    page: ConfigMap,
    #[dependent(after(page))]
    web: Deployment,
}

/// Notes each apply: the state of the Deployment, and the host that the map has.
#[derive(Clone, Default)]
struct Shops(Arc<Mutex<Vec<String>>>);

impl Shops {
    /// Returns the last note.
    fn last(&self) -> String {
        self.0.lock().last().cloned().unwrap_or_default()
    }
}

impl OwnsDependents<Parts> for Shops {}

impl Reconciler for Shops {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let parts = Parts::apply(self, site, cx).await?;
        let page = parts.page.object().and_then(|page| page.data.clone()).unwrap_or_default();
        let host = page.get("host").cloned().unwrap_or_default();
        self.0.lock().push(format!("{} of {host}", parts.web.state()));
        parts.action()
    }
}

impl DesiredParts for Shops {
    async fn page(&self, site: &Site, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(child("", &site.spec.host))
    }

    async fn web(&self, _: &Site, _: &Context<Self>) -> Result<Deployment> {
        let labels = json!({ "app": "web" });
        let spec = json!({
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
            },
        });
        Ok(serde_json::from_value(json!({ "metadata": {}, "spec": spec })).expect("valid"))
    }
}

fn webs(world: &World) -> Api<Deployment> {
    world.client.namespace("shop")
}

/// Writes the status of the Deployment, with that many Pods that are ready.
async fn report(world: &World, ready: u32) {
    let conditions = json!([
        { "type": "Available", "status": "True" },
        { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
    ]);
    let status = json!({
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready,
        "availableReplicas": ready, "conditions": conditions,
    });
    let patch = Patch::Merge(json!({ "status": status }));
    webs(world).patch("home", patch).status().await.expect("patched");
}

/// Reconciles the object for nothing, and returns the writes to children and the note.
async fn reconciled(world: &World, running: &Running, shops: &Shops) -> (Vec<String>, String) {
    let before = shops.0.lock().len();
    world.patch("home", json!({ "metadata": { "labels": { "at": before.to_string() } } })).await;
    running.settled().await;
    assert!(shops.0.lock().len() > before, "it was reconciled");
    (child_writes(world), shops.last())
}

/// Returns the writes to children since the last call.
fn child_writes(world: &World) -> Vec<String> {
    let mut writes = world.writes();
    writes.retain(|write| !write.contains("sites"));
    writes
}

/// Starts the graph of an object, whose children are ready and at rest.
async fn at_rest() -> (World, Shops, Running) {
    let (world, shops) = (World::start().await, Shops::default());
    let handle = Parts::add_to(ControllerBuilder::<Shops>::new()).build(shops.clone());
    let running = world.run(handle).await;
    world.create("home", "a").await;
    running.settled().await;
    report(&world, 1).await;
    running.settled().await;
    world.writes();
    for _ in 0..3 {
        let found = reconciled(&world, &running, &shops).await;
        assert_eq!(found, (vec![], "ready of a".to_owned()));
    }
    (world, shops, running)
}

#[tokio::test(start_paused = true)]
async fn a_child_at_rest_that_others_change_is_set_back() {
    let (world, shops, running) = at_rest().await;
    let edit = json!({ "data": { "host": "edited" } });
    world.maps().patch("home", Patch::Merge(edit)).await.expect("patched");
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"; 2], "that of others, and one apply");
    assert_eq!(shops.last(), "ready of a");
    let owners = json!({ "metadata": { "ownerReferences": null } });
    world.maps().patch("home", Patch::Merge(owners)).await.expect("patched");
    let failed = world.counted(&names::RECONCILE_ERRORS);
    world.patch("home", json!({ "metadata": { "labels": { "at": "last" } } })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(world.counted(&names::RECONCILE_ERRORS) > failed, "it is no child any more");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_at_rest_is_applied_when_its_description_changes_and_made_when_it_is_gone() {
    let (world, shops, running) = at_rest().await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"]);
    assert_eq!(shops.last(), "ready of b");
    world.patch("home", json!({ "spec": { "host": "a" } })).await;
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"]);
    world.maps().delete("home").await.expect("deleted");
    running.settled().await;
    assert_eq!(child_writes(&world), ["delete configmaps/", "patch configmaps/"]);
    assert_eq!(shops.last(), "ready of a");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_at_rest_that_stops_being_ready_is_seen() {
    let (world, shops, running) = at_rest().await;
    for _ in 0..2 {
        report(&world, 0).await;
        running.settled().await;
        let found = reconciled(&world, &running, &shops).await;
        assert_eq!(found.1, "Available: 0/1 of a");
        report(&world, 1).await;
        running.settled().await;
        assert_eq!(shops.last(), "ready of a");
    }
    running.stop().await;
}
