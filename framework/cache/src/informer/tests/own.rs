//! Tests of own writes in caches that transform or project objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;
use crate::informer::CacheOptions;
use crate::store::{Index, Representation, Transform};
use windlass_core::resource::{Resource, ResourceInfo};
use windlass_macros::Projection;

/// A config map whose number of entries a transform counts.
#[derive(Projection, Clone, Debug)]
#[projection(of = ConfigMap, skip(labels))]
struct Counted {
    metadata: ObjectMeta,
    #[projection(path = "count", default)]
    count: i64,
    #[projection(path = "data.k")]
    value: Option<String>,
}

/// A kind whose type lacks a field (`spec.zone`) of the cached objects.
#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", kind = "Zoned", namespaced)]
struct Zoned {
    metadata: ObjectMeta,
    spec: ZonedSpec,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct ZonedSpec {
    host: String,
}

fn answer(version: &str, data: &Value) -> Vec<u8> {
    let metadata = json!({"name": "a", "namespace": "n", "uid": "u-a", "resourceVersion": version,
        "labels": {"team": "blue"}, "managedFields": [{"manager": "us"}]});
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
    object.to_string().into_bytes()
}

/// Returns a filled cache of `K` whose watch is silent.
async fn filled<K: Resource>(options: CacheOptions) -> (Informer<K>, CancellationToken) {
    let server = Server::new();
    server.put("a", data("1"));
    let registry = registry(&server, &environment(), &[]);
    registry.set_options(ResourceInfo::of::<ConfigMap>(), options).unwrap();
    let informer = registry.informer::<K>();
    let stop = CancellationToken::new();
    run(&registry, &stop);
    informer.synced().await.unwrap();
    (informer, stop)
}

#[tokio::test(start_paused = true)]
async fn g_c8_an_answer_is_transformed_whole_and_a_part_of_it_not_at_all() {
    for representation in [Representation::Compact, Representation::Typed] {
        let count = Transform::new(|object| {
            let entries = object["data"].as_object().expect("it is whole").len();
            object["count"] = json!(entries);
        });
        let options = CacheOptions::default().representation(representation).transform(count);
        let (informer, stop) = filled::<Counted>(options).await;
        let shown = || {
            let cached = informer.store().get(&ObjectKey::new(Some("n"), "a")).unwrap();
            let view = cached.get().unwrap();
            (
                view.count,
                view.value.clone().unwrap_or_default(),
                cached.metadata().label("team").is_some(),
            )
        };
        assert_eq!(shown(), (1, "1".to_owned(), false));
        let view = informer.store().list().remove(0).get().unwrap();
        let mut own = (*view).clone();
        own.value = Some("2".to_owned());
        own.metadata.resource_version = Some("900".to_owned());
        informer.wrote(&own).unwrap();
        assert_eq!(shown(), (1, "1".to_owned(), false), "it cannot be told what it would be");
        let bytes = answer("901", &json!({"k": "3", "more": "4"}));
        informer.wrote_response(&bytes).unwrap();
        assert_eq!(shown(), (2, "3".to_owned(), true));
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn g_c8_an_answer_shows_what_the_type_does_not_know() {
    let zone: Index<Zoned, String> = Index::on_path("zone", &["spec", "zone"]);
    for representation in [Representation::Compact, Representation::Cold, Representation::Typed] {
        let registry = registry(&Server::new(), &environment(), &[]);
        let options = CacheOptions::default().representation(representation);
        registry.set_options(ResourceInfo::of::<Zoned>(), options).unwrap();
        let informer = registry.informer::<Zoned>();
        informer.store().ensure_index(zone).unwrap();
        let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"});
        let object = json!({"metadata": metadata, "spec": {"host": "h", "zone": "z"}});
        informer.wrote_response(object.to_string().as_bytes()).unwrap();
        let found = informer.store().by_index(zone, "z");
        assert_eq!(found.len(), 1, "{representation:?}");
        assert_eq!(found[0].get().unwrap().spec.host, "h");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_object_is_refused_and_one_of_elsewhere_ignored() {
    let registry = registry(&Server::new(), &environment(), &["m"]);
    let informer = registry.informer::<ConfigMap>();
    let unversioned = answer("", &json!({}));
    for wrong in [&b"no JSON"[..], b"{}", &unversioned] {
        let refused = informer.wrote_response(wrong).unwrap_err();
        assert_eq!(refused.kind(), windlass_core::ErrorKind::Usage);
        assert!(refused.to_string().contains("configmaps"), "{refused}");
    }
    informer.wrote_response(&answer("7", &json!({}))).unwrap();
    assert!(informer.store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_index_that_comes_after_an_own_write_to_an_empty_cache_is_refused_if_it_would_miss_it() {
    let (server, stop) = (Server::new(), CancellationToken::new());
    let registry = registry(&server, &environment(), &[]);
    let informer = registry.informer::<Counted>();
    run(&registry, &stop);
    informer.synced().await.unwrap();
    const ZONE: Index<Counted, String> = Index::on_path("zone", &["data", "zone"]);
    informer.wrote_response(&answer("900000", &json!({"k": "1", "zone": "z"}))).unwrap();
    assert_eq!(informer.store().list().len(), 1);
    let error = informer.store().ensure_index(ZONE).unwrap_err();
    assert_eq!(error.kind(), windlass_core::ErrorKind::Usage, "{error}");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_for_the_caches_of_all_options() {
    let registry = registry(&Server::new(), &environment(), &[]);
    let _plain = registry.informer::<ConfigMap>();
    let beside = CacheOptions::default().representation(Representation::Metadata);
    let _beside = registry.informer_with::<ConfigMap>(beside);
    assert_eq!(registry.all_caches_of::<ConfigMap>().len(), 2);
    assert_eq!(registry.caches_of::<ConfigMap>().len(), 1, "what a controller waits for");
}

/// B8: such an answer is a sign that the server's store was set back, or that another writer was
/// faster.
#[tokio::test(start_paused = true)]
async fn an_answer_older_than_the_cached_object_makes_the_reflector_read_the_servers_version() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    let older = rig.server.version().to_string();
    rig.server.put("a", data("2"));
    rig.caught_up().await;
    let mut written = (*rig.get("a").unwrap().get().unwrap()).clone();
    rig.informer.wrote(&written).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.server.version_reads(), 0, "the answer is as new as the cached object");
    written.metadata.resource_version = Some(older);
    rig.informer.wrote(&written).unwrap();
    let took = eventually("it looks", || rig.server.version_reads() == 1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}
