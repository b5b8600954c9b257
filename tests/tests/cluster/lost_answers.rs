//! Writes whose answers are lost, on a server: the client's statements about them are true.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tower::layer::layer_fn;
use tower::{Service, ServiceExt, service_fn};
use windlass::Error;
use windlass::api::{Api, Patch, Propagation, Settled};
use windlass::client::{Client, ClientConfig, HttpRequest, HttpResponse, Stack};
use windlass::testing::TestCluster;

/// Fate of a client's requests.
#[derive(Clone, Default)]
struct Luck {
    /// Requests are not sent, and the client cannot know.
    swallows: Arc<AtomicBool>,
    /// Answers are lost.
    loses: Arc<AtomicBool>,
}

type Lost = Box<dyn std::error::Error + Send + Sync>;

async fn client(cluster: &TestCluster, luck: &Luck) -> Client {
    let luck = luck.clone();
    let layer = layer_fn(move |stack: Stack| {
        let luck = luck.clone();
        service_fn(move |request: HttpRequest| {
            let (mut stack, luck) = (stack.clone(), luck.clone());
            async move {
                if luck.swallows.load(Ordering::Relaxed) {
                    return Err::<HttpResponse, Lost>("swallowed".into());
                }
                let answer = stack.ready().await?.call(request).await?;
                if luck.loses.load(Ordering::Relaxed) { Err("lost".into()) } else { Ok(answer) }
            }
        })
    });
    let config = ClientConfig::from_yaml(&cluster.kubeconfig().await, None).unwrap();
    Client::builder().config(config).field_manager("a b").layer(layer).build().unwrap()
}

fn map(data: Value) -> ConfigMap {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "home" }, "data": data,
    });
    serde_json::from_value(map).unwrap()
}

const SOON: Duration = Duration::from_secs(2);

/// Returns the verdict of `settle` on a write that fails, sent with `fate`.
async fn settled<T: std::fmt::Debug>(
    api: &Api<ConfigMap>,
    fate: &AtomicBool,
    write: impl Future<Output = Result<T, Error>>,
) -> &'static str {
    fate.store(true, Ordering::Relaxed);
    let error = write.await.unwrap_err();
    fate.store(false, Ordering::Relaxed);
    assert!(error.is_ambiguous(), "{error:?}");
    match api.settle(&error).await.unwrap() {
        Settled::Happened(_) => "happened",
        Settled::Gone => "gone",
        Settled::NotHappened => "not happened",
        Settled::Unknown(_) => "unknown",
    }
}

#[tokio::test]
async fn what_became_of_a_write_is_told_rightly_whether_it_was_executed_or_not() {
    let cluster = TestCluster::start().await;
    let luck = Luck::default();
    let api = client(&cluster, &luck).await.namespace::<ConfigMap>(cluster.namespace());
    let (not, yes) = (&*luck.swallows, &*luck.loses);
    let first = map(json!({ "k": "1", "old": "x" }));
    assert_eq!(
        settled(&api, not, api.create(&first).timeout(SOON).into_future()).await,
        "not happened"
    );
    assert_eq!(
        settled(&api, yes, api.create(&first).timeout(SOON).into_future()).await,
        "happened"
    );
    let apply = |data: Value| {
        api.apply("home", &json!({ "data": data })).force().timeout(SOON).into_future()
    };
    let both = || json!({ "k": "1", "old": "x" });
    // All fields are there already, but they are not this manager's by apply.
    assert_eq!(settled(&api, not, apply(both())).await, "unknown");
    assert_eq!(settled(&api, yes, apply(both())).await, "happened");
    // The field that it gives up is still there.
    assert_eq!(settled(&api, not, apply(json!({ "k": "1" }))).await, "unknown");
    assert_eq!(settled(&api, yes, apply(json!({ "k": "1" }))).await, "happened");
    let mut now = api.get("home").await.unwrap();
    now.data = Some([("k".to_owned(), "2".to_owned())].into());
    assert_eq!(
        settled(&api, not, api.replace(&now).timeout(SOON).into_future()).await,
        "not happened"
    );
    // The first attempt is executed, the others conflict with it.
    assert_eq!(settled(&api, yes, api.replace(&now).timeout(SOON).into_future()).await, "happened");
    let patch = |value: &str| {
        let patch = Patch::Merge(json!({ "data": { "k": value } }));
        api.patch("home", patch).timeout(SOON).into_future()
    };
    assert_eq!(settled(&api, not, patch("3")).await, "unknown");
    assert_eq!(settled(&api, yes, patch("3")).await, "happened");
    let uid = api.get("home").await.unwrap().metadata.uid.unwrap();
    let delete = || api.delete("home").uid(&uid).timeout(SOON).into_future();
    assert_eq!(settled(&api, not, delete()).await, "not happened");
    assert_eq!(settled(&api, yes, delete()).await, "gone");
}

#[tokio::test]
async fn a_dry_run_of_a_deletion_with_options_deletes_nothing() {
    let cluster = TestCluster::start().await;
    let api = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    let made = api.create(&map(json!({}))).await.unwrap();
    let uid = made.metadata.uid.unwrap();
    let dry = cluster.client().dry_run().namespace::<ConfigMap>(cluster.namespace());
    dry.delete("home").uid(&uid).await.unwrap();
    dry.delete("home").propagation(Propagation::Foreground).await.unwrap();
    dry.delete_collection().grace_period(Duration::ZERO).await.unwrap();
    api.delete("home").uid(&uid).dry_run().await.unwrap();
    let now = api.get("home").await.unwrap().metadata;
    assert_eq!((now.uid, now.deletion_timestamp), (Some(uid), None));
}
