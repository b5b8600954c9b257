//! Patched copies: shown to the next reconcile, and distinguished from writes of others.

use super::*;
use windlass_core::rbac::{Can, verbs};
use windlass_core::sync::Notify;

/// Annotates its object, or the config map `one`, once, and notes the visible state.
#[derive(Clone, Default)]
struct Patching {
    turns: Arc<Mutex<Vec<String>>>,
    is_unlocked: bool,
    /// Opened when the patch may be sent.
    go: Option<Arc<Notify>>,
}

impl Owns<ConfigMap> for Patching {}
impl Can<verbs::Patch, ConfigMap> for Patching {}

impl Patching {
    fn turns(&self) -> Vec<String> {
        self.turns.lock().clone()
    }

    async fn annotate(&self, site: &Site, cx: &Context<Self>) -> Result<()> {
        let mut copy = cx.patcher();
        if self.is_unlocked {
            copy = copy.unlocked();
        }
        let annotations = copy.metadata.annotations.get_or_insert_default();
        annotations.insert("by".into(), "us".into());
        copy.status.get_or_insert_default().seen = site.metadata.generation;
        if let Some(go) = &self.go {
            go.notified().await;
        }
        copy.send().await?;
        Ok(())
    }
}

impl Reconciler for Patching {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let is_annotated = site.metadata.annotations.is_some();
        let seen = site.status.as_ref().and_then(|status| status.seen).is_some();
        let map = cx.store_of::<ConfigMap>().get(&ObjectKey::new(Some("shop"), "one"));
        let map = map.and_then(|map| map.get().ok());
        let host = map.as_ref().and_then(|map| map.data.clone()?.remove("host"));
        let host = host.unwrap_or_default();
        let turn = format!("{}, annotated {is_annotated}, seen {seen}, map {host}", site.spec.host);
        self.turns.lock().push(turn);
        if let Some(map) = map.filter(|_| host == "a") {
            let mut copy = cx.patcher_of(&*map);
            copy.data.get_or_insert_default().insert("host".into(), "b".into());
            copy.send().await?;
        }
        if !is_annotated {
            self.annotate(site, cx).await?;
        }
        if site.spec.host == "sets a condition" {
            cx.set_condition(met("Checked", "Passed", "")).await?;
        }
        let look_again = site.spec.host == "looks again" && self.turns.lock().len() < 2;
        let again = Action::requeue_after(Duration::from_millis(50));
        Ok(if look_again { again } else { Action::done() })
    }
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_patch_by_a_patcher_of_the_context_is_seen_by_the_next_reconcile() {
    let (world, patching) = (World::start().await, Patching::default());
    world.maps().create(&child("one", "a")).await.expect("created");
    let builder = ControllerBuilder::<Patching>::new().owns::<ConfigMap>();
    let running = world.run(builder.build(patching.clone())).await;
    world.server.faults().pause_watches("configmaps");
    world.create("home", "looks again").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    world.server.faults().pause_watches("sites");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let turns = patching.turns();
    assert_eq!(turns[1], "looks again, annotated true, seen true, map b", "{turns:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_by_a_patcher_of_the_context_does_not_enqueue_its_object() {
    let (world, patching) = (World::start().await, Patching::default());
    let builder = ControllerBuilder::<Patching>::new().owns::<ConfigMap>();
    let running = world.run(builder.build(patching.clone())).await;
    world.writes();
    world.create("home", "a").await;
    running.settled().await;
    assert_eq!(patching.turns().len(), 1, "{:?}", patching.turns());
    assert_eq!(world.writes(), ["create sites/", "patch sites/", "patch sites/status"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_upon_the_version_that_a_patcher_has_left() {
    for is_unlocked in [false, true] {
        let world = World::start().await;
        let patching = Patching { is_unlocked, ..Patching::default() };
        let builder = ControllerBuilder::<Patching>::new().owns::<ConfigMap>();
        let running = world.run(builder.build(patching)).await;
        world.create("home", "sets a condition").await;
        running.settled().await;
        let status = world.sites().get("home").await.expect("it is there").status;
        let status = status.expect("a status");
        assert!(status.conditions.is_met("Checked") && status.seen == Some(1), "{status:?}");
        let requests = world.server.requests();
        assert!(requests.iter().all(|request| request.code != 409), "{requests:#?}");
        running.stop().await;
    }
}

/// Labels its site once, in any of several ways.
#[derive(Clone, Default)]
struct Replacing(Arc<Mutex<Vec<String>>>);

impl Can<verbs::Update, Site> for Replacing {}
impl Can<verbs::Patch, Site> for Replacing {}

impl Reconciler for Replacing {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        self.0.lock().push(cx.reasons().to_string());
        if site.metadata.labels.is_some() {
            return Ok(Action::done());
        }
        let labels = Some([("by".to_owned(), "us".to_owned())].into());
        if site.spec.host == "replaces" {
            let mut site = site.clone();
            site.metadata.labels = labels;
            cx.replace(&site).await?;
        } else {
            let mut copy = cx.patcher_of(site);
            copy.metadata.labels = labels;
            copy.send().await?;
        }
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn c4_a_replacement_upon_the_reconciled_version_does_not_enqueue_its_object() {
    for host in ["replaces", "patches"] {
        let (world, replacing) = (World::start().await, Replacing::default());
        let running = world.run(ControllerBuilder::new().build(replacing.clone())).await;
        world.create("home", host).await;
        running.settled().await;
        assert_eq!(*replacing.0.lock(), ["changed"], "{host}");
        world.patch("home", json!({ "spec": { "config": "x" } })).await;
        running.settled().await;
        assert_eq!(replacing.0.lock().len(), 2, "{host}: another writer's change does");
        running.stop().await;
    }
}

/// The patch is accepted upon a version that is not reconciled yet.
#[tokio::test(start_paused = true)]
async fn a_foreign_write_before_an_unlocked_patch_is_reconciled() {
    let (world, go) = (World::start().await, Arc::new(Notify::new()));
    let patching = Patching { is_unlocked: true, go: Some(go.clone()), ..Patching::default() };
    let builder = ControllerBuilder::<Patching>::new().owns::<ConfigMap>();
    let running = world.start_only(builder.build(patching.clone())).await;
    world.create("home", "a").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    go.notify_one();
    running.settled().await;
    let turns = patching.turns();
    assert_eq!(turns.last().expect("one"), "b, annotated true, seen true, map ", "{turns:?}");
    assert!(turns.len() <= 3, "and then there is rest: {turns:?}");
    running.stop().await;
}
