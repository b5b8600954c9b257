//! Children: owned, corrected, left alone, deleted.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_child_that_changes_hands_concerns_both_owners() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("one", "adopts").await;
    let two = world.create("two", "b").await;
    running.settled().await;
    let orphan = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    world.maps().patch("one", orphan).await.expect("patched");
    let mut stray = child("stray", "c");
    let info = <Site as windlass_core::resource::Resource>::static_info().expect("static");
    stray.metadata.owner_references = Some(vec![two.controller_reference(&info).expect("a uid")]);
    running.settled().await;
    let (ones, twos) = (sites.runs("one"), sites.runs("two"));
    world.maps().create(&stray).await.expect("created");
    running.settled().await;
    assert_eq!((sites.runs("one"), sites.runs("two")), (ones, twos + 1));
    let one = world.sites().get("one").await.expect("it is there");
    let owner = one.controller_reference(&info).expect("a uid");
    let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": [owner] } }));
    world.maps().patch("stray", patch).await.expect("patched");
    running.settled().await;
    assert_eq!((sites.runs("one"), sites.runs("two")), (ones + 1, twos + 2));
}

#[tokio::test(start_paused = true)]
async fn the_child_of_another_controller_is_left_alone() {
    let (world, sites) = (World::start().await, Sites::default());
    let other = world.maps().create(&child("other", "x")).await.expect("created");
    let info = windlass_core::resource::ResourceInfo::of::<ConfigMap>();
    let mut foreign = child("home", "theirs");
    foreign.metadata.owner_references =
        Some(vec![other.controller_reference(&info).expect("a uid")]);
    world.maps().create(&foreign).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("home", "ours").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let map = world.maps().get("home").await.expect("it is there");
    assert_eq!(map.data.expect("data")["host"], "theirs");
    assert!(world.counted(&names::RECONCILE_ERRORS) > 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_is_deleted_and_not_read_from_the_cache_any_more() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    world.patch("home", json!({ "spec": { "host": "prunes" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("home").await.expect("an answer").is_none());
    assert!(sites.runs("shown false") > 0);
    assert_eq!(sites.runs("shown true"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_an_owner_is_not_deleted_as_a_child() {
    let (world, sites) = (World::start().await, Sites::default());
    world.maps().create(&child("home", "x")).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("home", "prunes").await;
    running.settled().await;
    assert_eq!(sites.runs("shown true"), sites.runs("home"), "reconciled without an error");
    assert!(world.maps().get_opt("home").await.expect("an answer").is_some());
}

/// Cluster-scoped, with a config map in each namespace that it names.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", cluster)]
struct Tenant {
    metadata: ObjectMeta,
    spec: TenantSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct TenantSpec {
    namespaces: Vec<String>,
}

#[derive(Clone, Default)]
struct Tenants(Arc<Mutex<Vec<String>>>);

impl Owns<ConfigMap> for Tenants {}

impl Reconciler for Tenants {
    type Object = Tenant;

    async fn reconcile(&self, tenant: &Tenant, cx: &Context<Self>) -> Result<Action> {
        for namespace in &tenant.spec.namespaces {
            let mut child = child(tenant.name(), "x");
            child.metadata.namespace = Some(namespace.clone());
            cx.apply_owned(child).await?;
        }
        if let Some(how) = tenant.label("prune") {
            let answer = match how {
                "in-shop" => cx.delete_owned_in::<ConfigMap>("shop", tenant.name()).await,
                _ => cx.delete_owned::<ConfigMap>(tenant.name()).await,
            };
            self.0.lock().push(answer.err().map(|error| error.to_string()).unwrap_or_default());
        }
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn the_child_of_a_cluster_scoped_object_is_found_in_its_namespace() {
    let world = World::with(Tenant::crd().expect("a schema")).await;
    let tenants = Tenants::default();
    let running = world
        .run(ControllerBuilder::<Tenants>::new().owns::<ConfigMap>().build(tenants.clone()))
        .await;
    let api = world.client.all::<Tenant>();
    let spec = TenantSpec { namespaces: vec!["shop".into(), "default".into()] };
    api.create(&Tenant::new("acme", spec)).await.expect("created");
    running.settled().await;
    let prune = Patch::Merge(json!({ "metadata": { "labels": { "prune": "anywhere" } } }));
    api.patch("acme", prune).await.expect("patched");
    running.settled().await;
    let reported = tenants.0.lock().pop().expect("it was tried");
    assert!(reported.contains("default/acme") && reported.contains("shop/acme"), "{reported}");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_some());
    let none = Patch::Merge(json!({ "spec": { "namespaces": [] } }));
    api.patch("acme", none).await.expect("patched");
    running.settled().await;
    world.client.namespace::<ConfigMap>("default").delete("acme").await.expect("deleted");
    running.settled().await;
    assert_eq!(tenants.0.lock().pop().expect("it was tried"), "");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_child_in_another_namespace_is_refused_before_anything_is_sent() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.writes();
    world.create("home", "elsewhere").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(running.handle.state().backing_off <= 1 && sites.runs("home") > 1);
    assert_eq!(world.writes().len(), 1, "the creation");
}

/// Creates tenant `acme` with a child in `shop`, and an object in `default` that claims to be its
/// child.
async fn forged(by: &str) -> (World, Tenants, Running) {
    let world = World::with(Tenant::crd().expect("a schema")).await;
    let tenants = Tenants::default();
    let running = world
        .run(ControllerBuilder::<Tenants>::new().owns::<ConfigMap>().build(tenants.clone()))
        .await;
    let spec = TenantSpec { namespaces: vec!["shop".into()] };
    let acme = world.client.all::<Tenant>().create(&Tenant::new("acme", spec)).await;
    let info = <Tenant as windlass_core::resource::Resource>::static_info().expect("static");
    running.settled().await;
    let mut forged = child("acme", "forged");
    let reference = acme.expect("created").controller_reference(&info).expect("a uid");
    forged.metadata.owner_references = Some(vec![reference]);
    let theirs = world.client.namespace::<ConfigMap>("default");
    theirs.apply("acme", &forged).manager(by).await.expect("applied");
    running.settled().await;
    (world, tenants, running)
}

#[tokio::test(start_paused = true)]
async fn a_forged_claim_in_another_namespace_keeps_no_child_from_being_deleted() {
    for by in ["mallory", "tenant"] {
        for how in ["in-shop", "anywhere"] {
            let (world, tenants, running) = forged(by).await;
            let prune =
                json!({ "metadata": { "labels": { "prune": how } }, "spec": { "namespaces": [] } });
            world.client.all::<Tenant>().patch("acme", Patch::Merge(prune)).await.expect("patched");
            running.settled().await;
            let reported = tenants.0.lock().clone();
            assert!(
                !reported.is_empty() && reported.iter().all(String::is_empty),
                "{by}, {how}: {reported:?}"
            );
            assert!(world.maps().get_opt("acme").await.expect("an answer").is_none());
            running.stop().await;
        }
    }
}

/// Restarts the controller while a claim of that field manager stands, and prunes `acme`: returns
/// the first answer to the deletion.
async fn pruned_after_a_restart(by: &str, how: &str) -> (World, String) {
    let (world, _, running) = forged(by).await;
    running.stop().await;
    let prune = json!({ "metadata": { "labels": { "prune": how } }, "spec": { "namespaces": [] } });
    world.client.all::<Tenant>().patch("acme", Patch::Merge(prune)).await.expect("patched");
    let tenants = Tenants::default();
    let running = world
        .run(ControllerBuilder::<Tenants>::new().owns::<ConfigMap>().build(tenants.clone()))
        .await;
    running.settled().await;
    running.stop().await;
    let first = tenants.0.lock().first().cloned().expect("a deletion");
    (world, first)
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_forged_claim_is_recognised_by_its_field_manager() {
    let (world, answer) = pruned_after_a_restart("mallory", "anywhere").await;
    assert_eq!(answer, "");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_claim_under_the_controllers_name_is_an_error_that_names_the_remedy() {
    let (_, answer) = pruned_after_a_restart("tenant", "anywhere").await;
    assert!(answer.contains("name the namespace, by `delete_owned_in`"), "{answer}");
    let (world, answer) = pruned_after_a_restart("tenant", "in-shop").await;
    assert_eq!(answer, "");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_none());
}
