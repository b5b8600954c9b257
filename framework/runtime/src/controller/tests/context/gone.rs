//! Objects that are gone before the cache shows it: no child is made for them, and no failure is
//! reported.

use super::*;

impl World {
    /// Deletes a site, and its map as garbage collection does; only the map's cache shows the
    /// deletion.
    async fn delete_unseen(&self, name: &str) {
        self.server.faults().pause_watches("sites");
        self.sites().delete(name).await.expect("deleted");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_children_of_a_deleted_object_are_not_made_again() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let runs = sites.runs("home");
    world.writes();
    world.delete_unseen("home").await;
    assert!(sites.runs("home") > runs, "the end of the child was seen before that of the site");
    let creations: Vec<_> =
        world.writes().into_iter().filter(|write| write == "patch configmaps/").collect();
    assert!(creations.is_empty(), "{creations:?}");
    assert!(world.maps().get_opt("home").await.expect("an answer").is_none());
    world.server.faults().clear();
    running.settled().await;
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    running.stop().await;
}

/// Gives its child another content each time, every second.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU32>);

impl Owns<ConfigMap> for Counting {}

impl Reconciler for Counting {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        cx.apply_owned(child(site.name(), &count.to_string())).await?;
        Ok(Action::requeue_after(Duration::from_secs(1)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_child_of_a_deleted_object_is_not_made_again_while_the_cache_shows_neither_end() {
    let (world, counting) = (World::start().await, Counting::default());
    let running = world.run(ControllerBuilder::<Counting>::new().build(counting.clone())).await;
    world.create("home", "a").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.server.faults().pause_watches("sites");
    world.server.faults().pause_watches("configmaps");
    world.sites().delete("home").await.expect("deleted");
    let (runs, _) = (counting.0.load(Ordering::SeqCst), world.server.clear_requests());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(counting.0.load(Ordering::SeqCst) > runs, "it was reconciled meanwhile");
    let created: Vec<_> = world.server.requests();
    let created: Vec<_> = created.iter().filter(|request| request.code == 201).collect();
    assert!(created.is_empty(), "{created:?}");
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    world.server.faults().clear();
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_another_client_deleted_is_created_again_at_once() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    for _ in 0..2 {
        world.maps().delete("home").await.expect("deleted");
        running.settled().await;
        assert!(world.maps().get_opt("home").await.expect("an answer").is_some());
    }
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
}

/// The own write in the cache ends with the epoch in which it was made.
#[tokio::test(start_paused = true)]
async fn b8_a_child_that_a_restored_store_does_not_have_is_made_again() {
    let (world, sites) = (World::start().await, Sites::default());
    world.create("home", "a").await;
    let backup = world.server.backup();
    let home = world.patch("home", json!({ "metadata": { "labels": { "age": "2" } } })).await;
    let running = world.run(plain(&sites)).await;
    running.settled().await;
    let before = world.maps().get("home").await.expect("the child");
    world.server.restore(&backup).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = world.maps().get("home").await.expect("the child is made anew");
    assert_ne!(after.uid(), before.uid());
    let owners = after.metadata.owner_references.expect("an owner");
    assert_eq!(owners[0].uid, home.uid());
    running.stop().await;
}

/// Deletes its site and then writes to it, as for a site that is deleted while it is reconciled.
#[derive(Clone, Default)]
struct Late(Arc<AtomicU32>);

impl Owns<ConfigMap> for Late {}

impl Reconciler for Late {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let sites = cx.client().namespace::<Site>("shop");
        sites.delete(site.name()).await?;
        match site.spec.host.as_str() {
            "status" => cx.set_condition(met("Ready", "Serving", "")).await?,
            "patcher" => {
                let mut site = cx.patcher();
                site.spec.host = "other".into();
                site.unlocked().send().await?;
            }
            _ => return Err("something else".into()),
        }
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_to_an_object_that_is_gone_is_the_end_of_it_and_no_failure() {
    for host in ["status", "patcher"] {
        let (captured, _logging) = Captured::at(tracing::Level::WARN);
        let (world, late) = (World::start().await, Late::default());
        let running = world.run(ControllerBuilder::<Late>::new().build(late.clone())).await;
        world.server.faults().pause_watches("sites");
        world.create("home", host).await;
        world.server.faults().resume_watches("sites");
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.server.faults().pause_watches("sites");
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.server.faults().clear();
        running.settled().await;
        assert_eq!(late.0.load(Ordering::SeqCst), 1, "{host}");
        assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0, "{host}");
        assert_eq!(captured.text(), "", "{host}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_failure_of_an_object_that_is_gone_stays_one() {
    let (world, late) = (World::start().await, Late::default());
    let running = world.run(ControllerBuilder::<Late>::new().build(late)).await;
    world.create("home", "something else").await;
    running.settled().await;
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 1);
}

/// A kind without a status.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Plain {
    metadata: ObjectMeta,
    spec: SiteSpec,
}

struct Plains;

impl Reconciler for Plains {
    type Object = Plain;

    async fn reconcile(&self, _: &Plain, cx: &Context<Self>) -> Result<Action> {
        cx.set_condition(met("Ready", "Serving", "")).await?;
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_status_that_the_kind_does_not_have_stays_a_failure() {
    let (captured, _logging) = Captured::at(tracing::Level::WARN);
    let world = World::with(Plain::crd().expect("a schema")).await;
    let running = world.run(ControllerBuilder::<Plains>::new().build(Plains)).await;
    let plains = world.client.namespace::<Plain>("shop");
    plains.create(&Plain::new("home", SiteSpec::default())).await.expect("created");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let text = captured.text();
    assert!(text.contains("have no subresource `status`"), "{text}");
    plains.delete("home").await.expect("deleted");
    running.settled().await;
    running.stop().await;
}
