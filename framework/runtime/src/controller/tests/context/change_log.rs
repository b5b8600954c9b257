//! The log of a controller's writes.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use windlass_core::rbac::{Can, SubresourceOf, subresources, verbs};

use super::*;

fn changes(running: &Running) -> Vec<(String, String, String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dump = running.handle.dump(50);
    let records = dump["changes"].as_array().expect("a list").iter().rev();
    records
        .map(|record| {
            let reasons = record["reasons"].as_array().expect("a list").iter().map(text).collect();
            (text(&record["verb"]), text(&record["object"]), text(&record["changes"]), reasons)
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_write_is_logged_with_its_reasons_and_the_paths_that_it_changed() {
    let (world, sites) = (World::start().await, Sites::default());
    let builder = ControllerBuilder::<Sites>::new().owns::<ConfigMap>().change_log(ChangeLog::Full);
    let running = world.run(builder.build(sites.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    let found = changes(&running);
    let verbs: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(verbs, ["apply", "patch status", "patch status"], "{found:?}");
    assert_eq!(found[0].1, "configmaps shop/home");
    assert_eq!(found[1].1, "sites.example.dev shop/home");

    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    let found = changes(&running).split_off(3);
    assert_eq!(found[0].2, ".data.host: \"a\" -> \"b\"", "{found:?}");
    assert!(found[0].3.contains(&"changed".to_owned()), "{found:?}");
    assert!(
        found[1].2.contains(".status.conditions[type=Ready].message: \"a\" -> \"b\""),
        "{found:?}"
    );
    running.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_has_no_values_and_nothing_is_logged_by_default() {
    for (detail, expected) in [(ChangeLog::Summary, true), (ChangeLog::Off, false)] {
        let (world, sites) = (World::start().await, Sites::default());
        let builder = ControllerBuilder::<Sites>::new().owns::<ConfigMap>().change_log(detail);
        let running = world.run(builder.build(sites.clone())).await;
        world.create("home", "a-host").await;
        running.settled().await;
        let found = changes(&running);
        assert_eq!(!found.is_empty(), expected);
        assert!(!format!("{found:?}").contains("a-host"), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn finalizers_and_deletions_are_logged() {
    let (world, sites) = (World::start().await, Sites::default());
    let builder = ControllerBuilder::<Sites>::new()
        .owns::<ConfigMap>()
        .finalizer(FINALIZER)
        .change_log(ChangeLog::Summary);
    let running = world.run(builder.build(sites.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    world.patch("home", json!({ "spec": { "host": "prunes" } })).await;
    running.settled().await;
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    let found = changes(&running);
    let has = |verb: &str, object: &str, change: &str| {
        found.iter().any(|it| it.0 == verb && it.1.starts_with(object) && it.2.contains(change))
    };
    assert!(has("patch", "sites.example.dev", ".metadata.finalizers"), "{found:?}");
    assert!(has("delete", "configmaps", ""), "{found:?}");
}

/// Waits three times in its clean-up.
#[derive(Default)]
struct Slow(AtomicU32);

impl Reconciler for Slow {
    type Object = Site;

    async fn reconcile(&self, _: &Site, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

impl Finalize for Slow {
    async fn cleanup(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0..3 => Err(Failure::wait_for("Backup", "is being written")),
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_removal_of_the_last_finalizer_is_compared_with_the_object_before() {
    let world = World::start().await;
    let builder = ControllerBuilder::<Slow>::new()
        .finalizer(FINALIZER)
        .outcome_condition("Ready")
        .change_log(ChangeLog::Full);
    let running = world.run(builder.build(Slow::default())).await;
    world.create("home", "a").await;
    running.settled().await;
    world.sites().delete("home").await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.settled().await;
    let found = changes(&running);
    // The newest first.
    let removal = &found[0];
    assert!(removal.2.contains(".metadata.finalizers"), "{found:?}");
    assert!(!removal.2.contains(".spec") && !removal.2.contains(".metadata: -"), "{removal:?}");
}

/// Makes the calls that go past the caches.
struct Calls;

impl Can<verbs::DeleteCollection, ConfigMap> for Calls {}
impl Can<verbs::Create, SubresourceOf<Pod, subresources::Eviction>> for Calls {}
impl Can<verbs::Patch, SubresourceOf<Deployment, subresources::Scale>> for Calls {}

impl Reconciler for Calls {
    type Object = Site;

    async fn reconcile(&self, _: &Site, cx: &Context<Self>) -> Result<Action> {
        cx.checked::<ConfigMap>().delete_collection().labels("kind=scrap").await?;
        cx.evict("web-0").await?;
        cx.checked::<Deployment>().scale_to("web", 3).await?;
        let missing = cx.evict("web-9").await;
        assert!(missing.is_err_and(|error| error.is_not_found()));
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_go_past_the_caches_are_logged_once_they_are_executed() {
    let world = World::start().await;
    let containers = json!([{ "name": "web", "image": "nginx" }]);
    let pod = json!({ "metadata": { "name": "web-0" }, "spec": { "containers": containers } });
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    world.client.namespace("shop").create(&pod).await.expect("created");
    let labels = json!({ "app": "web" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "containers": containers } });
    let spec = json!({ "selector": { "matchLabels": labels }, "template": template });
    let web = json!({ "metadata": { "name": "web" }, "spec": spec });
    let web: Deployment = serde_json::from_value(web).expect("a Deployment");
    world.client.namespace("shop").create(&web).await.expect("created");
    let builder = ControllerBuilder::<Calls>::new().change_log(ChangeLog::Summary);
    let running = world.run(builder.build(Calls)).await;
    world.create("home", "a").await;
    running.settled().await;
    let found = changes(&running);
    let found: Vec<_> = found.iter().map(|it| (&*it.0, &*it.1, &*it.2)).collect();
    let expected = [
        ("deletecollection", "configmaps shop/*", "deleted"),
        ("create", "pods/eviction shop/web-0", "requested"),
        ("patch", "deployments.apps/scale shop/web", "requested"),
    ];
    assert_eq!(found, expected);
}
