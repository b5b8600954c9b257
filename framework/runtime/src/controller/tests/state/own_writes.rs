//! Own writes are seen by the next reconcile, however far the watch lags behind.

use k8s_openapi::api::core::v1::Service;

use super::*;
use windlass_core::rbac::{Can, verbs};
use windlass_core::resource::ObjectKey;

/// Takes an action on children per reconcile, by number, and notes the visible children.
#[derive(Clone, Default)]
struct Writer {
    turns: Arc<Mutex<Vec<String>>>,
    script: Arc<Vec<&'static str>>,
}

impl Writer {
    fn of(script: &[&'static str]) -> Self {
        Self { turns: Arc::default(), script: Arc::new(script.to_vec()) }
    }

    fn controller(&self) -> Arc<dyn ErasedController> {
        ControllerBuilder::<Self>::new().owns::<ConfigMap>().owns::<Service>().build(self.clone())
    }

    fn turns(&self) -> Vec<String> {
        self.turns.lock().clone()
    }
}

impl Owns<ConfigMap> for Writer {}
impl Owns<Service> for Writer {}
impl Can<verbs::Create, ConfigMap> for Writer {}
impl Can<verbs::Update, ConfigMap> for Writer {}
impl Can<verbs::Patch, ConfigMap> for Writer {}
impl Can<verbs::Delete, ConfigMap> for Writer {}

impl Reconciler for Writer {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let children = cx.store_of::<ConfigMap>();
        let named = children.get(&ObjectKey::new(Some("shop"), "one"));
        let host = named.map(|map| map.get().ok().and_then(|map| map.data.clone()));
        let host = host.map(|data| data.and_then(|mut data| data.remove("host")));
        let services = cx.store_of::<Service>().owned_by(site.uid()).len();
        let seen = format!(
            "{} owned, one: {}, services {services}{}{}",
            children.owned_by(site.uid()).iter().filter(|c| !c.metadata().is_terminating()).count(),
            host.map_or("-".into(), |host| host.unwrap_or_default()),
            if cx.stale() { ", stale" } else { "" },
            if cx.expectations().satisfied() { "" } else { ", unsatisfied" },
        );
        let turn = {
            let mut turns = self.turns.lock();
            turns.push(seen);
            turns.len() - 1
        };
        let mut map = child("one", "a");
        let wait = match self.script.get(turn).copied().unwrap_or_default() {
            "create" => {
                cx.create(&map).await?;
                50
            }
            "replace" => {
                let mut map = cx.get_map("one").await?;
                map.data.get_or_insert_default().insert("host".into(), "r".into());
                cx.replace(&map).await?;
                50
            }
            "patch" => {
                let patch = Patch::Merge(json!({ "data": { "host": "p" } }));
                cx.patch::<ConfigMap>("one", patch).await?;
                50
            }
            "apply" => {
                cx.apply_owned(map).await?;
                50
            }
            "create owned" => {
                map.metadata.name = None;
                map.metadata.generate_name = Some("gen-".into());
                cx.create_owned(map).await?;
                50
            }
            "create service" => {
                let service = json!({ "metadata": { "generateName": "s-" }, "spec": { "ports": [{ "port": 80 }] } });
                cx.create_owned::<Service>(serde_json::from_value(service)?).await?;
                50
            }
            "delete service" => {
                for service in cx.store_of::<Service>().owned_by(site.uid()) {
                    cx.delete_owned::<Service>(service.key().name()).await?;
                }
                50
            }
            "delete" => {
                cx.delete::<ConfigMap>("one").await?;
                50
            }
            "delete owned" => {
                cx.delete_owned::<ConfigMap>("one").await?;
                50
            }
            "delete past" => {
                let known = children.get(&ObjectKey::new(Some("shop"), "one"));
                cx.api::<ConfigMap>().delete("one").await?;
                cx.expectations().expect_deleted(&known.ok_or("it is cached")?);
                50
            }
            "look later" => 12_000,
            "look" => 50,
            _ => return Ok(Action::done()),
        };
        Ok(Action::requeue_after(Duration::from_millis(wait)))
    }
}

impl Context<Writer> {
    async fn get_map(&self, name: &str) -> Result<ConfigMap, windlass_core::Error> {
        self.api::<ConfigMap>().get(name).await
    }
}

/// Runs the script while the watches of children are stopped, or lag if `lag` is set.
async fn run(world: &World, script: &[&'static str]) -> Vec<String> {
    let writer = Writer::of(script);
    let running = world.run(writer.controller()).await;
    world.server.faults().pause_watches("configmaps");
    world.server.faults().pause_watches("services");
    world.create("home", "x").await;
    let turns = script.len() + 1;
    for _ in 0..600 {
        if writer.turns().len() >= turns {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    running.stop().await;
    writer.turns()
}

#[tokio::test(start_paused = true)]
async fn g_c8_creates_replaces_and_patches_are_seen_by_the_next_reconcile() {
    let world = World::start().await;
    let turns = run(&world, &["create", "replace", "patch"]).await;
    let expected = ["one: -", "one: a", "one: r", "one: p"];
    let expected = expected.map(|one| format!("0 owned, {one}, services 0"));
    assert_eq!(turns, expected);
}

#[tokio::test(start_paused = true)]
async fn g_c8_applied_and_created_children_are_found_by_their_owner() {
    let world = World::start().await;
    let turns = run(&world, &["apply", "create owned", "create owned"]).await;
    let expected = ["0 owned, one: -", "1 owned, one: a", "2 owned, one: a", "3 owned, one: a"];
    assert_eq!(turns, expected.map(|seen| format!("{seen}, services 0")));
}

#[tokio::test(start_paused = true)]
async fn g_c8_deletions_are_seen_after_every_kind_of_answer() {
    let world = World::start().await;
    let script = ["apply", "delete owned", "create", "delete", "look"];
    let turns = run(&world, &script).await;
    let ones: Vec<_> = turns.iter().map(|turn| turn.contains("one: a")).collect();
    assert_eq!(ones, [false, true, false, true, false, false], "{turns:?}");
    // The deletion of a Service is answered with the last state.
    let world = World::start().await;
    let turns = run(&world, &["create service", "delete service", "look"]).await;
    let services: Vec<_> = turns.iter().map(|turn| turn.contains("services 1")).collect();
    assert_eq!(services, [false, true, false, false], "{turns:?}");
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_deletion_of_an_object_that_is_gone_already_is_seen_too() {
    let world = World::start().await;
    let writer = Writer::of(&["look", "delete", "look"]);
    world.maps().create(&child("one", "a")).await.expect("created");
    let running = world.run(writer.controller()).await;
    world.server.faults().pause_watches("configmaps");
    // Another client deletes first.
    world.maps().delete("one").await.expect("deleted");
    world.create("home", "x").await;
    running.settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ones: Vec<_> = writer.turns().iter().map(|turn| turn.contains("one: a")).collect();
    assert_eq!(ones, [true, true, false, false], "{:?}", writer.turns());
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_write_to_a_child_that_no_watch_confirms_makes_the_view_stale() {
    let world = World::start().await;
    let turns = run(&world, &["create owned", "look later", "look"]).await;
    let expected = [
        "0 owned, one: -, services 0",
        "1 owned, one: -, services 0",
        "0 owned, one: -, services 0, stale, unsatisfied",
        "0 owned, one: -, services 0, stale, unsatisfied",
    ];
    assert_eq!(turns, expected);
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_stale_view_recovers_with_the_watch_and_wakes_the_parent() {
    let world = World::start().await;
    let writer = Writer::of(&["create owned", "look later", ""]);
    let running = world.run(writer.controller()).await;
    world.server.faults().pause_watches("configmaps");
    world.create("home", "x").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(writer.turns()[2].ends_with("stale, unsatisfied"), "{:?}", writer.turns());
    world.server.faults().resume_watches("configmaps");
    running.settled().await;
    assert_eq!(writer.turns()[3], "1 owned, one: -, services 0");
}

#[tokio::test(start_paused = true)]
async fn g_c8_own_writes_survive_a_watch_that_starts_anew() {
    for what in ["closed", "expired", "restarted"] {
        let world = World::start().await;
        let writer = Writer::of(&["create owned", "look", "look", "look", "look", "look"]);
        let running = world.run(writer.controller()).await;
        world.server.faults().pause_watches("configmaps");
        world.create("home", "x").await;
        tokio::time::sleep(Duration::from_millis(80)).await;
        match what {
            "closed" => world.server.faults().close_watches("configmaps"),
            "expired" => world.server.faults().fail_watches("configmaps", 410),
            _ => world.server.restart().await,
        }
        running.settled().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.server.faults().resume_watches("configmaps");
        tokio::time::sleep(Duration::from_secs(30)).await;
        let turns = writer.turns();
        assert!(turns.len() >= 7, "{what}: {turns:?}");
        for turn in &turns[1..] {
            assert_eq!(turn, "1 owned, one: -, services 0", "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_past_the_context_is_expected_until_the_watch_shows_it() {
    let world = World::start().await;
    let writer = Writer::of(&["look", "delete past", "look"]);
    world.maps().create(&child("one", "a")).await.expect("created");
    let running = world.run(writer.controller()).await;
    world.server.faults().pause_watches("configmaps");
    world.create("home", "x").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(writer.turns()[2].ends_with("one: a, services 0, unsatisfied"), "{:?}", writer.turns());
    world.server.faults().resume_watches("configmaps");
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.patch("home", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    running.settled().await;
    assert_eq!(writer.turns().last().expect("one"), "0 owned, one: -, services 0");
}

/// The create is executed and the answer lost: the child's name is unknown.
#[tokio::test(start_paused = true)]
async fn a_child_whose_create_was_not_answered_is_expected_until_it_appears() {
    use windlass_apiserver::faults::{Fault, FaultAction as Do};
    let world = World::start().await;
    let writer = Writer::of(&["create owned"]);
    let running = world.run(writer.controller()).await;
    world.server.faults().pause_watches("configmaps");
    let lost = Fault::new(Do::ExecuteThenAnswer(504)).resource("configmaps").on("create");
    world.server.faults().add(lost);
    world.create("home", "x").await;
    running.settled().await;
    let turns = writer.turns();
    assert_eq!(turns[1], "0 owned, one: -, services 0, unsatisfied", "after the retry: {turns:?}");
    world.server.faults().resume_watches("configmaps");
    running.settled().await;
    assert_eq!(writer.turns().last().expect("one"), "1 owned, one: -, services 0");
}

/// A part of a config map.
#[derive(crate::Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
struct Host {
    metadata: ObjectMeta,
    #[projection(path = "data.host")]
    host: Option<String>,
}

/// Creates a child of a generated name, and counts the children; they are cached as parts.
#[derive(Clone, Default)]
struct Projecting(Arc<Mutex<Vec<String>>>);

impl Owns<ConfigMap> for Projecting {}
impl Owns<Host> for Projecting {}

impl Reconciler for Projecting {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let children = cx.store_of::<Host>().owned_by(site.uid());
        let hosts = children.iter().filter_map(|one| one.get().ok()?.host.clone());
        let hosts: Vec<String> = hosts.collect();
        let is_satisfied = cx.expectations().satisfied();
        self.0.lock().push(format!("{hosts:?}, satisfied {is_satisfied}"));
        if children.is_empty() && is_satisfied {
            let mut map = child("", "a");
            (map.metadata.name, map.metadata.generate_name) = (None, Some("gen-".into()));
            cx.create_owned(map).await?;
        } else if let [one] = &children[..]
            && self.0.lock().len() == 2
        {
            cx.delete_owned::<ConfigMap>(one.key().name()).await?;
        }
        let is_over = self.0.lock().len() > 2;
        Ok(if is_over { Action::done() } else { Action::requeue_after(Duration::from_millis(50)) })
    }
}

#[tokio::test(start_paused = true)]
async fn g_c8_own_writes_of_the_whole_are_seen_in_a_cache_of_a_part() {
    let (world, projecting) = (World::start().await, Projecting::default());
    let builder = ControllerBuilder::<Projecting>::new().owns::<Host>();
    let running = world.run(builder.build(projecting.clone())).await;
    world.server.faults().pause_watches("configmaps");
    world.create("home", "x").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reported = projecting.0.lock().clone();
    let one = r#"["a"], satisfied true"#;
    // After the deletion the child is created again.
    assert_eq!(reported[..3], ["[], satisfied true", one, "[], satisfied true"]);
    running.stop().await;
}
