//! Each cache has a separate name and separate gauges.

use super::*;
use crate::informer::CacheOptions;
use crate::store::Transform;
use windlass_core::metrics::names;
use windlass_core::resource::ClusterId;
use windlass_macros::Projection;

mod one {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    #[derive(Projection, Clone, Debug)]
    #[projection(of = ConfigMap)]
    pub(super) struct View {
        metadata: ObjectMeta,
    }
}

mod two {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    #[derive(Projection, Clone, Debug)]
    #[projection(of = ConfigMap)]
    pub(super) struct View {
        metadata: ObjectMeta,
        #[projection(path = "data.k")]
        value: Option<String>,
    }
}

/// Returns the number of objects of a cache, by the gauge.
fn counted(environment: &Environment, name: &str) -> Option<f64> {
    environment.metrics.level(&names::INFORMER_OBJECTS, &[name, "", "v1", "configmaps"])
}

#[tokio::test(start_paused = true)]
async fn caches_that_no_name_tells_apart_are_numbered_and_have_gauges_of_their_own() {
    let (server, environment, stop) = (Server::new(), environment(), CancellationToken::new());
    let registry = registry(&server, &environment, &[]);
    let first = registry.informer::<one::View>();
    let second = registry.informer::<two::View>();
    let plain = registry.informer::<ConfigMap>();
    let without = CacheOptions::default().transform(Transform::drop_paths(&[&["data"]]));
    let cut = registry.informer_with::<ConfigMap>(without);
    let task = run(&registry, &stop);
    registry.synced().await;
    let mut names: Vec<_> = registry.status().into_iter().map(|status| status.name).collect();
    names.sort_unstable();
    let apart = ["configmaps", "configmaps #2", "configmaps (as View)", "configmaps (as View) #2"];
    assert_eq!(names, apart);
    server.put("a", data("1"));
    let all =
        || [first.store().len(), second.store().len(), plain.store().len(), cut.store().len()];
    eventually("it comes", || all() == [1; 4]).await;
    drop(second);
    eventually("its gauges go", || counted(&environment, "ConfigMap (as View) #2").is_none()).await;
    server.put("b", data("1"));
    eventually("the others stay", || {
        let of = ["ConfigMap", "ConfigMap #2", "ConfigMap (as View)"];
        of.iter().all(|name| counted(&environment, name) == Some(2.0))
    })
    .await;
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn registries_side_by_side_have_gauges_of_their_own() {
    let (server, environment, stop) = (Server::new(), environment(), CancellationToken::new());
    server.put("a", data("1"));
    let other = Server::new();
    for name in ["b", "c"] {
        other.put(name, data("1"));
    }
    let far = Arc::clone(&other);
    let sources = Box::new(move |_: Selection<'_>| Arc::clone(&far) as Arc<dyn ListWatch>);
    let registries = [
        registry(&server, &environment, &[]),
        registry(&other, &environment, &[]),
        InformerRegistry::over_cluster(ClusterId(2), sources, environment.clone(), Vec::new()),
    ];
    let informers = registries.each_ref().map(InformerRegistry::informer::<ConfigMap>);
    let tasks = registries.each_ref().map(|registry| run(registry, &stop));
    for registry in &registries {
        registry.synced().await;
    }
    let labels = ["ConfigMap", "ConfigMap #2", "cluster 2/ConfigMap"];
    let all = || labels.map(|label| counted(&environment, label));
    assert_eq!(all(), [Some(1.0), Some(2.0), Some(2.0)]);
    let [first, second, far] = informers;
    drop(first);
    eventually("its gauges go", || all() == [None, Some(2.0), Some(2.0)]).await;
    drop((second, far));
    eventually("all are gone", || all() == [None; 3]).await;
    stop.cancel();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_gauges_of_a_cache_outlive_the_end_of_the_one_before_it() {
    let (server, environment, stop) = (Server::new(), environment(), CancellationToken::new());
    let registry = registry(&server, &environment, &[]);
    let before = registry.informer::<ConfigMap>();
    let task = run(&registry, &stop);
    registry.synced().await;
    drop(before);
    // The previous informer's task has not run yet to end that informer.
    let after = registry.informer::<ConfigMap>();
    after.synced().await.unwrap();
    server.put("a", data("1"));
    eventually("it comes", || after.store().len() == 1).await;
    eventually("it is counted", || counted(&environment, "ConfigMap") == Some(1.0)).await;
    drop(after);
    eventually("the last one takes them along", || counted(&environment, "ConfigMap").is_none())
        .await;
    stop.cancel();
    task.await.unwrap();
}
