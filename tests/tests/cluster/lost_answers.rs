//! Writes whose answers are lost, on a server: the client's statements about them are true.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tower::layer::layer_fn;
use tower::{Service, ServiceExt, service_fn};
use windlass::Error;
use windlass::api::{Api, Patch, Propagation};
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

/// Sends a write whose fate is `fate`; the write must fail as ambiguous and carry the request.
/// Returns the object's data after the write, if the object exists.
async fn lost<T: std::fmt::Debug>(
    api: &Api<ConfigMap>,
    fate: &AtomicBool,
    write: impl Future<Output = Result<T, Error>>,
) -> Option<Value> {
    fate.store(true, Ordering::Relaxed);
    let error = write.await.unwrap_err();
    fate.store(false, Ordering::Relaxed);
    assert!(error.is_ambiguous(), "{error:?}");
    let doubt = error.uncertain_write().unwrap();
    assert!(doubt.path.ends_with("/configmaps") || doubt.path.ends_with("/configmaps/home"));
    assert_eq!(doubt.host, api.client().host());
    let stored = api.get_opt("home").await.unwrap()?;
    Some(json!(stored.data))
}

#[tokio::test]
async fn a_write_without_an_answer_is_ambiguous_and_a_read_shows_whether_it_was_executed() {
    let cluster = TestCluster::start().await;
    let luck = Luck::default();
    let api = client(&cluster, &luck).await.namespace::<ConfigMap>(cluster.namespace());
    let (not, yes) = (&*luck.swallows, &*luck.loses);
    let both = || json!({ "k": "1", "old": "x" });
    let first = map(both());
    let create = || api.create(&first).timeout(SOON).into_future();
    assert_eq!(lost(&api, not, create()).await, None);
    assert_eq!(lost(&api, yes, create()).await, Some(both()));
    let apply = |data: Value| {
        api.apply("home", &json!({ "data": data })).force().timeout(SOON).into_future()
    };
    assert_eq!(lost(&api, not, apply(json!({ "k": "0" }))).await, Some(both()));
    let applied = || json!({ "k": "5", "old": "x" });
    assert_eq!(lost(&api, yes, apply(json!({ "k": "5" }))).await, Some(applied()));
    let mut now = api.get("home").await.unwrap();
    now.data = Some([("k".to_owned(), "2".to_owned())].into());
    let replace = || api.replace(&now).timeout(SOON).into_future();
    assert_eq!(lost(&api, not, replace()).await, Some(applied()));
    // The first attempt is executed, the others conflict with the first.
    assert_eq!(lost(&api, yes, replace()).await, Some(json!({ "k": "2" })));
    let patch = || {
        let patch = Patch::Merge(json!({ "data": { "k": "3" } }));
        api.patch("home", patch).timeout(SOON).into_future()
    };
    assert_eq!(lost(&api, not, patch()).await, Some(json!({ "k": "2" })));
    assert_eq!(lost(&api, yes, patch()).await, Some(json!({ "k": "3" })));
    let uid = api.get("home").await.unwrap().metadata.uid.unwrap();
    let delete = || api.delete("home").uid(&uid).timeout(SOON).into_future();
    assert_eq!(lost(&api, not, delete()).await, Some(json!({ "k": "3" })));
    assert_eq!(lost(&api, yes, delete()).await, None);
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
