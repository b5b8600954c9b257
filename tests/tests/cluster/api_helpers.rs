//! Helpers that read, decide and write.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::{Patch, Retries, Upserted, WaitCondition, retry_on_conflict};
use windlass::resource::ResourceExt;

use crate::bench::Bench;
use crate::gadget::{FINALIZER, Gadget, gadget};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn five_writers_that_try_again_lose_no_count() {
    let bench = Bench::start().await;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("count".into());
    bench.children.create(&map).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (client, maps) = (bench.cluster.client(), bench.children.clone());
        writers.spawn(async move {
            retry_on_conflict(&client, Retries::DEFAULT_RETRY, || async {
                let mut map = maps.get("count").await?;
                let data = map.data.get_or_insert_default();
                let count = data.get("n").and_then(|n| n.parse().ok()).unwrap_or(0);
                data.insert("n".into(), (count + 1).to_string());
                maps.replace(&map).await
            })
            .await
            .unwrap();
        });
    }
    writers.join_all().await;
    assert_eq!(bench.data("count").await.unwrap()["n"], "5");
}

#[tokio::test]
async fn an_upsert_creates_then_changes_then_leaves_alone() {
    let bench = Bench::start().await;
    let blue = |gadget: &mut Gadget| gadget.spec.color = "blue".into();
    let wanted = gadget("home", "red");
    let created = bench.gadgets.create_or_update(&wanted, |_| {}).await.unwrap();
    assert!(matches!(&created, Upserted::Created(_)));
    let patched = bench.gadgets.create_or_patch(&wanted, blue).await.unwrap();
    assert!(matches!(&patched, Upserted::Updated(gadget) if gadget.spec.color == "blue"));
    let version = patched.into_object().resource_version().to_owned();
    for same in [
        bench.gadgets.create_or_patch(&wanted, blue).await.unwrap(),
        bench.gadgets.create_or_update(&wanted, blue).await.unwrap(),
    ] {
        assert!(!same.is_written());
        assert_eq!(same.into_object().resource_version(), version);
    }
    let large = |gadget: &mut Gadget| gadget.spec.size = 3;
    let updated = bench.gadgets.create_or_update(&wanted, large).await.unwrap().into_object();
    assert_eq!((updated.spec.color.as_str(), updated.spec.size), ("blue", 3));
}

#[tokio::test]
async fn a_condition_is_waited_for_from_before_the_object_exists() {
    let bench = Bench::start().await;
    let gadgets = bench.gadgets.clone();
    let small = WaitCondition::is("Small", "True");
    let waiting =
        tokio::spawn(async move { gadgets.wait_for("home", &small, SOON).await.unwrap() });
    tokio::task::yield_now().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let condition = json!({
        "type": "Small", "status": "True", "reason": "Fits", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    let patched = bench.gadgets.patch("home", status).status().await.unwrap();
    assert_eq!(waiting.await.unwrap().resource_version(), patched.resource_version());
    let blue = WaitCondition::new("blue", |gadget: &Gadget| gadget.spec.color == "blue");
    let error = bench.gadgets.wait_for("home", &blue, Duration::from_millis(300)).await;
    let error = error.unwrap_err();
    assert!(error.is_timeout() && error.to_string().contains("it is not blue"), "{error}");
}

#[tokio::test]
async fn a_deletion_is_waited_for_until_its_last_finalizer_is_off() {
    let bench = Bench::start().await;
    let mut held = gadget("home", "red");
    held.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    bench.gadgets.create(&held).await.unwrap();
    let deleted = bench.gadgets.delete("home").await.unwrap();
    let short = Duration::from_millis(300);
    let error = bench.gadgets.wait_deleted("home", deleted.uid(), short).await.unwrap_err();
    assert!(error.to_string().contains(FINALIZER), "{error}");
    let gadgets = bench.gadgets.clone();
    let uid = deleted.uid().to_owned();
    let waiting = tokio::spawn(async move { gadgets.wait_deleted("home", &uid, SOON).await });
    tokio::task::yield_now().await;
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    bench.gadgets.patch("home", off).await.unwrap();
    waiting.await.unwrap().unwrap();
    assert!(bench.gadgets.get_opt("home").await.unwrap().is_none());
}

#[tokio::test]
async fn an_object_that_is_deleted_ends_a_wait_for_its_condition() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let gadgets = bench.gadgets.clone();
    let never = WaitCondition::is("Small", "True");
    let waiting = tokio::spawn(async move { gadgets.wait_for("home", &never, SOON).await });
    // The object is seen before the deletion, or the wait would be for a new one.
    bench.eventually("the wait has begun", async || waiting_begun(&bench).await).await;
    bench.gadgets.delete("home").await.unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.is_not_found() || error.is_timeout(), "{error}");
    assert!(error.is_not_found(), "{error}");
}

/// Gives a spawned task the time of a few requests.
async fn waiting_begun(bench: &Bench) -> bool {
    for _ in 0..5 {
        bench.gadgets.get("home").await.unwrap();
    }
    true
}
