//! Graphs of children: order, readiness, failures, removal, restarts.

mod changes;
mod declared;
mod deletion;
mod externals;
mod failures;
mod joins;
mod moves;
mod order;
mod plans;
mod readiness;
mod refused_kinds;
mod removal;
mod restarts;
mod rollouts;
mod scopes;
mod webhooks;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::controller::Finalize;
use windlass::dependents::Dependents;
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::testing::{RunningOperator, TestCluster};

/// A shop, of whose parts some come after others.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "graph.example.dev", version = "v1", namespaced)]
struct Shop {
    metadata: ObjectMeta,
    spec: ShopSpec,
    status: Option<ShopStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct ShopSpec {
    #[serde(default)]
    exposed: bool,
    #[serde(default)]
    shards: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct ShopStatus {
    #[serde(default)]
    conditions: Conditions,
}

impl Shop {
    fn is_exposed(&self) -> bool {
        self.spec.exposed
    }
}

/// A kind that not every cluster has.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "graph.example.dev", version = "v1", namespaced)]
struct Route {
    metadata: ObjectMeta,
    spec: RouteSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct RouteSpec {
    host: String,
}

#[derive(Dependents)]
#[dependents(by = Shops)]
struct Parts {
    #[dependent(after(app))]
    shards: Vec<Secret>,
    #[dependent(after(config), ready = is_open)]
    app: ConfigMap,
    config: ConfigMap,
    #[dependent(when = Shop::is_exposed, optional)]
    route: Route,
}

/// Whether the test has opened the part.
fn is_open(part: &ConfigMap) -> bool {
    part.annotation("open") == Some("yes")
}

#[derive(Controller)]
#[controller(for = Shop, dependents(Parts), finalizer = "graph.example.dev/parts", name = "shops")]
struct Shops;

fn map(name: String) -> ConfigMap {
    object!(ConfigMap { metadata: { name }, data: { color: "blue" } })
}

/// The text of each Secret, which is found nowhere else.
const CONFIDENTIAL: &str = "hush-7f41c9";

fn secret(name: String) -> Secret {
    object!(Secret { metadata: { name }, stringData: { key: CONFIDENTIAL } })
}

impl DesiredParts for Shops {
    async fn shards(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<Secret>> {
        let names = shop.spec.shards.iter();
        Ok(names.map(|shard| secret(format!("{}-{shard}", shop.name()))).collect())
    }

    async fn app(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(map(format!("{}-app", shop.name())))
    }

    async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(map(format!("{}-config", shop.name())))
    }

    async fn route(&self, shop: &Shop, _: &Context<Self>) -> Result<Route> {
        Ok(Route::new(shop.name(), RouteSpec { host: "shop.example".to_owned() }))
    }
}

impl Reconciler for Shops {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
        if shop.label("notes") == Some("yes") {
            // Beside the graph.
            cx.apply_owned(secret(format!("{}-notes", shop.name()))).await?;
        }
        let parts = Parts::apply_each(self, shop, cx).await;
        let condition = if parts.all_ready() {
            met("Ready", "Open", "")
        } else {
            unmet("Ready", "Parts", parts.summary())
        };
        cx.set_condition(condition).await?;
        parts.action()
    }
}

impl Finalize for Shops {
    async fn cleanup(&self, shop: &Shop, cx: &Context<Self>) -> Result<()> {
        Parts::delete(self, shop, cx).await
    }
}

fn operator(client: Client) -> Manager {
    Manager::new(client).controller(Shops)
}

/// Finalizer of an object that goes after all that it owns.
const FOREGROUND: &str = "foregroundDeletion";

/// A cluster with the kind `Shop`, on the paused clock where the server is embedded.
struct World {
    cluster: TestCluster,
}

impl World {
    /// With the kind `Route`.
    async fn start() -> Self {
        let world = Self::on(TestCluster::start().await).await;
        world.cluster.install::<Route>().await;
        world
    }

    /// On the embedded server, without the kind `Route`: for its faults and its requests.
    async fn embedded() -> Self {
        Self::on(TestCluster::builder().embedded().start().await).await
    }

    async fn on(cluster: TestCluster) -> Self {
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Shop>().await;
        Self { cluster }
    }

    fn spawn(&self) -> RunningOperator {
        self.cluster.spawn(operator(self.cluster.client()))
    }

    fn api<K: Resource>(&self) -> Api<K> {
        self.cluster.client().namespace(self.cluster.namespace())
    }

    async fn create(&self, name: &str, shards: &[&str]) -> Shop {
        let shards = shards.iter().map(ToString::to_string).collect();
        let spec = ShopSpec { shards, exposed: false };
        self.api().create(&Shop::new(name, spec)).await.unwrap()
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.api::<Shop>().patch(name, Patch::Merge(patch)).await.unwrap();
    }

    async fn open(&self, name: &str) {
        let patch = json!({ "metadata": { "annotations": { "open": "yes" } } });
        self.api::<ConfigMap>().patch(&format!("{name}-app"), Patch::Merge(patch)).await.unwrap();
    }

    /// Returns the names of the objects of a kind that have a controller, in order.
    async fn owned<K: Resource>(&self) -> Vec<String> {
        let items = self.api::<K>().list().await.unwrap().items;
        let owned = items.iter().filter(|item| item.metadata().owner_references.is_some());
        let mut names: Vec<String> = owned.map(|item| item.name().to_owned()).collect();
        names.sort();
        names
    }

    /// Returns message of the condition `Ready`, or "ready".
    async fn told(&self, name: &str) -> String {
        let shop = self.api::<Shop>().get(name).await.unwrap();
        let conditions = shop.status.unwrap_or_default().conditions;
        match conditions.get("Ready") {
            Some(ready) if ready.status == "True" => "ready".to_owned(),
            Some(ready) => ready.message.clone(),
            None => "nothing".to_owned(),
        }
    }

    /// Ends the use of this world, before another one of the same test begins.
    fn end(&self) {
        if self.cluster.is_embedded() {
            // The next world pauses the clock anew.
            tokio::time::resume();
        }
    }

    /// Lets the operator do what it does by itself: a minute where it costs nothing.
    async fn rest(&self) {
        if self.cluster.is_embedded() {
            return self.pass(60).await;
        }
        for _ in 0..20 {
            self.collect().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Stands in for garbage collection, which nobody does beside the real server. Returns the
    /// number of its writes.
    async fn collect(&self) -> usize {
        if self.cluster.is_embedded() {
            return 0;
        }
        let mut all = self.metadata_of::<Shop>().await;
        all.extend(self.metadata_of::<ConfigMap>().await);
        all.extend(self.metadata_of::<Secret>().await);
        all.extend(self.metadata_of::<Route>().await);
        let maps = self.collect_of::<ConfigMap>(&all).await;
        maps + self.collect_of::<Secret>(&all).await + self.collect_of::<Route>(&all).await
    }

    async fn metadata_of<K: Resource>(&self) -> Vec<ObjectMeta> {
        let items = self.api::<K>().list().await.unwrap().items;
        items.iter().map(|item| item.metadata().clone()).collect()
    }

    async fn collect_of<K: Resource>(&self, all: &[ObjectMeta]) -> usize {
        let api = self.api::<K>();
        let is_foreground = |it: &ObjectMeta| {
            let mut finalizers = it.finalizers.iter().flatten();
            it.deletion_timestamp.is_some() && finalizers.any(|it| it == FOREGROUND)
        };
        let owns = |owner: &ObjectMeta, it: &ObjectMeta| {
            it.owner_references.iter().flatten().any(|its| Some(&its.uid) == owner.uid.as_ref())
        };
        let mut writes = 0;
        for item in api.list().await.unwrap().items {
            let it = item.metadata();
            let mut owners = all.iter().filter(|owner| owns(owner, it)).peekable();
            let is_orphan = it.owner_references.is_some() && owners.peek().is_none();
            let goes = is_orphan || owners.any(is_foreground);
            if goes && it.deletion_timestamp.is_none() {
                writes += usize::from(api.delete(item.name()).await.is_ok());
            } else if is_foreground(it) && !all.iter().any(|other| owns(it, other)) {
                let rest: Vec<_> = it.finalizers.iter().flatten().collect();
                let rest: Vec<_> = rest.into_iter().filter(|name| *name != FOREGROUND).collect();
                let patch = json!({ "metadata": { "finalizers": rest } });
                writes += usize::from(api.patch(item.name(), Patch::Merge(patch)).await.is_ok());
            }
        }
        writes
    }

    async fn pass(&self, seconds: u64) {
        let clock = self.cluster.client().environment().clock.clone();
        clock.sleep(Duration::from_secs(seconds)).await;
    }

    async fn eventually(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        for _ in 0..1200 {
            if is_so().await {
                return;
            }
            self.collect().await;
            let clock = self.cluster.client().environment().clock.clone();
            clock.sleep(Duration::from_millis(100)).await;
        }
        panic!("not within two minutes: {what}");
    }
}
