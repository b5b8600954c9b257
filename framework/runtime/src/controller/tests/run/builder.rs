//! Watches, indexes and permissions of a builder.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_object_named_by_an_index_is_reconciled_when_what_it_names_changes() {
    let (world, sites) = (World::start().await, Sites::default());
    let builder = ControllerBuilder::<Sites>::new().owns::<ConfigMap>();
    let builder = builder.watches_by::<ConfigMap, _>(Site::BY_CONFIG);
    let running = world.run(builder.build(sites.clone())).await;
    let spec = SiteSpec { host: "a".into(), config: Some("settings".into()) };
    world.sites().create(&Site::new("home", spec)).await.expect("created");
    world.create("other", "b").await;
    running.settled().await;
    let (home, other) = (sites.runs("home"), sites.runs("other"));
    world.maps().create(&child("settings", "x")).await.expect("created");
    running.settled().await;
    assert_eq!((sites.runs("home"), sites.runs("other")), (home + 1, other));
}

/// Lookups would find nothing, and a reconciler would take that for a fact.
#[tokio::test(start_paused = true)]
async fn a_controller_with_an_index_that_cannot_be_built_does_not_start() {
    let world = World::start().await;
    let by_config: Index<Site, String> = Index::on_path("config", &["spec", "config"]);
    let builders = [
        ControllerBuilder::<Sites>::new().index(by_config),
        ControllerBuilder::<Sites>::new().watches_by::<ConfigMap, _>(by_config),
    ];
    for builder in builders {
        let informers = InformerRegistry::new(world.client.clone(), vec![]);
        let options = CacheOptions::default().representation(Representation::Metadata);
        informers.set_options(ResourceInfo::of::<Site>(), options).expect("it is not in use");
        let refused = builder.build(Sites::default()).attach(&informers).unwrap_err();
        assert_eq!(refused.kind(), windlass_core::ErrorKind::Usage);
        let text = refused.to_string();
        assert!(text.contains("controller site") && text.contains("spec.config"), "{text}");
    }
}

#[test]
fn a_builder_lists_the_permissions_that_it_needs() {
    let controller = ControllerBuilder::<Sites>::new()
        .owns::<ConfigMap>()
        .finalizer(FINALIZER)
        .can::<windlass_core::rbac::verbs::Get, k8s_openapi::api::core::v1::Pod>()
        .name("sites")
        .build(Sites::default());
    assert_eq!(controller.name(), "sites");
    let printed: Vec<_> = controller
        .rules()
        .iter()
        .map(|rule| {
            let verbs: Vec<_> = rule.verbs.iter().copied().collect();
            format!("{}/{}: {}", rule.group, rule.resource, verbs.join(","))
        })
        .collect();
    assert_eq!(
        printed,
        [
            "/configmaps: create,delete,get,list,patch,watch",
            "/pods: get",
            "events.k8s.io/events: create,patch",
            "example.dev/sites: get,list,patch,watch",
            "example.dev/sites/finalizers: update",
            "example.dev/sites/status: get,patch,update",
        ]
    );
}
