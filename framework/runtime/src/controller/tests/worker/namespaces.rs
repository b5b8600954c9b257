//! Controllers while a namespace that they write into is deleted and created (B14).

use k8s_openapi::api::core::v1::Namespace;
use tokio::time::Instant;
use windlass_apiserver::faults::{Fault, FaultAction as Do};

use super::*;

/// Puts a config map into the namespace that the site's host names.
#[derive(Clone, Default)]
struct Movers {
    tries: Arc<Mutex<Vec<Instant>>>,
}

impl Reconciler for Movers {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        self.tries.lock().push(Instant::now());
        let api = cx.client().namespace::<ConfigMap>(&site.spec.host);
        if api.get_opt(site.name()).await?.is_none() {
            api.create(&child(site.name(), "moved")).await?;
        }
        Ok(Action::done())
    }
}

impl Movers {
    fn tries(&self) -> usize {
        self.tries.lock().len()
    }
}

fn named(name: &str) -> Namespace {
    serde_json::from_value(json!({ "metadata": { "name": name } })).expect("a namespace")
}

impl World {
    /// Creates a namespace that stays in deletion.
    async fn doomed(&self, name: &str) {
        self.client.all().create(&named(name)).await.expect("created");
        let mut held = child("holds", "x");
        held.metadata.finalizers = Some(vec!["example.dev/hold".to_owned()]);
        self.client.namespace(name).create(&held).await.expect("created");
        self.client.all::<Namespace>().delete(name).await.expect("it begins to go");
    }

    async fn release(&self, name: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let maps = self.client.namespace::<ConfigMap>(name);
        maps.patch("holds", patch).await.expect("released");
    }

    /// Returns the lists and watches of namespaces.
    fn reads_of_namespaces(&self) -> usize {
        let requests = self.server.requests().into_iter();
        let reads = requests.filter(|r| r.resource == "namespaces");
        reads.filter(|r| r.verb == "list" || r.verb == "watch").count()
    }
}

async fn within(limit: u64, what: &str, mut met: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !met().await {
        assert!(began.elapsed() < Duration::from_secs(limit), "not within {limit} s: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn b14_a_key_is_tried_again_when_its_namespace_goes_and_when_it_comes_back() {
    let (world, movers) = (World::start().await, Movers::default());
    world.doomed("target").await;
    world.create("home", "target").await;
    let running = world.start_only(ControllerBuilder::<Movers>::new().build(movers.clone())).await;
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let tries = movers.tries();
    assert!((5..40).contains(&tries), "with backoff only: {tries}");
    assert!(world.reads_of_namespaces() <= 12, "one watch: {}", world.reads_of_namespaces());

    world.release("target").await;
    within(10, "it is tried when the namespace is gone", async || movers.tries() > tries).await;
    tokio::time::sleep(Duration::from_secs(1800)).await;
    let tries = movers.tries() - tries;
    assert!(tries < 30, "with backoff only: {tries}");

    world.client.all().create(&named("target")).await.expect("created");
    let maps = world.client.namespace::<ConfigMap>("target");
    within(2, "it is written when the namespace is there", async || {
        maps.get_opt("home").await.expect("an answer").is_some()
    })
    .await;
    let reads = world.reads_of_namespaces();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.reads_of_namespaces(), reads, "no key waits any more");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn b14_without_the_right_to_read_namespaces_there_is_the_backoff() {
    let (world, movers) = (World::start().await, Movers::default());
    let refused = Fault::new(Do::Answer(403)).resource("namespaces").on("list|watch").always();
    let _handle = world.server.faults().add(refused);
    world.doomed("target").await;
    world.create("home", "target").await;
    let running = world.start_only(ControllerBuilder::<Movers>::new().build(movers.clone())).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!((5..30).contains(&movers.tries()), "{}", movers.tries());
    world.release("target").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.client.all().create(&named("target")).await.expect("created");
    let maps = world.client.namespace::<ConfigMap>("target");
    within(310, "the backoff is over", async || {
        maps.get_opt("home").await.expect("an answer").is_some()
    })
    .await;
    assert!(running.stop().await);
}

/// The cache of a namespace outlives the namespace: the watch goes on, and shows later objects.
#[tokio::test(start_paused = true)]
async fn b14_a_cache_of_one_namespace_follows_it_through_its_end_and_its_return() {
    let world = World::start().await;
    let informers = InformerRegistry::new(world.client.clone(), vec!["target".to_owned()]);
    let cache = informers.informer::<ConfigMap>();
    let stop = CancellationToken::new();
    tokio::spawn({
        let (informers, stop) = (informers.clone(), stop.clone());
        async move { informers.run(stop).await }
    });
    cache.synced().await.expect("a namespace that is not there is empty");
    for round in ["first", "second"] {
        world.client.all().create(&named("target")).await.expect("created");
        let maps = world.client.namespace::<ConfigMap>("target");
        maps.create(&child(round, "x")).await.expect("created");
        let shown = || cache.store().get(&ObjectKey::new(Some("target"), round)).is_some();
        within(2, "it is shown", async || shown()).await;
        world.client.all::<Namespace>().delete("target").await.expect("deleted");
        within(60, "it is gone", async || !shown()).await;
        let namespaces = world.client.all::<Namespace>();
        within(60, "its namespace is gone", async || {
            namespaces.get_opt("target").await.expect("an answer").is_none()
        })
        .await;
    }
    stop.cancel();
}
