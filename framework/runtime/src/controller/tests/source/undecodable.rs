//! Objects that do not decode.

use super::*;

/// The same kind as `Site`, with a schema that accepts more than `Site` decodes.
mod loose {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    pub(super) struct Site {
        metadata: ObjectMeta,
        spec: Spec,
        status: Option<SiteStatus>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Spec {
        host: Option<String>,
        config: Option<String>,
    }

    impl Site {
        pub(super) fn without_host(name: &str) -> Self {
            Self::new(name, Spec { host: None, config: None })
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_delays_no_other_and_is_reported_once() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let world = World::with(loose::Site::crd().expect("a schema")).await;
    let sites = Sites::default();
    let bad = loose::Site::without_host("bad");
    let bad = world.client.namespace("shop").create(&bad).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("good", "a.example").await;
    running.settled().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(world.maps().get_opt("good").await.expect("an answer").is_some());
    assert_eq!(world.counted(&names::RECONCILE_TERMINAL_ERRORS), 1, "it is not tried again");
    let info = <Site as windlass_core::resource::Resource>::static_info().expect("static");
    let mut owned = child("owned", "x");
    owned.metadata.owner_references = Some(vec![bad.controller_reference(&info).expect("a uid")]);
    world.maps().create(&owned).await.expect("created");
    running.settled().await;
    assert_eq!(world.counted(&names::RECONCILE_TERMINAL_ERRORS), 2, "its child woke it");
    let events = world.client.namespace::<Event>("shop").list().await.expect("events").items;
    let reported: Vec<_> =
        events.iter().filter(|event| event.reason.as_deref() == Some("Undecodable")).collect();
    assert_eq!(reported.len(), 1);
    assert!(reported[0].series.is_none(), "the same version is reported once");
    let lines = logged.with("decode");
    assert_eq!(lines.len(), 1, "one line, by the cache: {}", logged.text());
    assert!(logged.with("the reconcile failed").is_empty(), "{}", logged.text());
    assert!(reported[0].note.as_deref().is_some_and(|note| note.contains("host")), "{reported:?}");
    world.patch("bad", json!({ "spec": { "host": "b.example" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("bad").await.expect("an answer").is_some(), "it recovers");
    world.sites().delete("bad").await.expect("deleted");
    running.settled().await;
}
