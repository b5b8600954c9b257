//! The admission configurations while others delete or replace them.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_runtime::manager::WebhookAccess;

use super::own::{Replica, World};
use super::*;

const CONFIGURATION: &str = "shop-webhooks";
const AT_URL: &str = "shop-webhooks-by-url-laptop.example";

/// Returns the details of the checks about configurations; all of them leave the Pod ready.
fn shown(replica: &Replica) -> Vec<String> {
    let checks = replica.status.checks().into_iter();
    let checks = checks.filter(|check| check.name == "webhook configuration");
    checks
        .map(|check| {
            assert!(check.ok, "{check:?}");
            check.detail
        })
        .collect()
}

/// Returns the metric of a configuration, `None` before the first look.
fn faulty(world: &World, kind: &str, name: &str) -> Option<f64> {
    let metrics = &world.client.environment().metrics;
    metrics.level(&names::WEBHOOK_CONFIGURATION_FAULTY, &[kind, name])
}

async fn validating(world: &World, name: &str) -> Option<ValidatingWebhookConfiguration> {
    world.client.all().get_opt(name).await.unwrap()
}

async fn mutating(world: &World, name: &str) -> Option<MutatingWebhookConfiguration> {
    world.client.all().get_opt(name).await.unwrap()
}

/// Returns the namespace of the Service that API servers ask.
async fn asked(world: &World) -> String {
    let entry = validating(world, CONFIGURATION).await.unwrap().webhooks.unwrap().remove(0);
    entry.client_config.service.unwrap().namespace
}

#[tokio::test(start_paused = true)]
async fn readiness_shows_a_configuration_that_was_deleted_until_it_is_applied_again() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    assert!(shown(&replica).is_empty(), "{:?}", shown(&replica));
    let mut deleted = validating(&world, CONFIGURATION).await.unwrap();
    world.client.all::<ValidatingWebhookConfiguration>().delete(CONFIGURATION).await.unwrap();
    world.client.all::<MutatingWebhookConfiguration>().delete(CONFIGURATION).await.unwrap();
    pass(16).await;
    let texts = shown(&replica);
    assert_eq!(texts.len(), 2, "{texts:?}");
    for text in &texts {
        assert!(text.contains("apply the printed manifests"), "{text}");
    }
    deleted.metadata.resource_version = None;
    world.client.all().create(&deleted).await.unwrap();
    pass(16).await;
    let texts = shown(&replica);
    assert!(texts.len() == 1 && texts[0].contains("mutatingwebhook"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_metric_is_one_while_a_configuration_is_absent_or_contested_and_zero_otherwise() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let of = |kind: &str| faulty(&world, kind, CONFIGURATION);
    let (rules, defaults) = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration");
    assert_eq!((of(rules), of(defaults)), (Some(0.0), Some(0.0)));
    let conversion = || faulty(&world, "customresourcedefinition", "parcels.example.dev");
    assert_eq!(conversion(), Some(0.0));

    let mut deleted = validating(&world, CONFIGURATION).await.unwrap();
    world.client.all::<ValidatingWebhookConfiguration>().delete(CONFIGURATION).await.unwrap();
    let definitions = world.client.all::<CustomResourceDefinition>();
    let mut uninstalled = definitions.get("parcels.example.dev").await.unwrap();
    definitions.delete("parcels.example.dev").await.unwrap();
    pass(16).await;
    assert_eq!((of(rules), of(defaults), conversion()), (Some(1.0), Some(0.0), Some(1.0)));
    deleted.metadata.resource_version = None;
    world.client.all().create(&deleted).await.unwrap();
    uninstalled.metadata.resource_version = None;
    definitions.create(&uninstalled).await.unwrap();
    pass(16).await;
    assert_eq!((of(rules), conversion()), (Some(0.0), Some(0.0)));

    for _ in 0..6 {
        let mut changed = validating(&world, CONFIGURATION).await.unwrap();
        changed.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
        world.client.all().replace(&changed).await.unwrap();
        pass(20).await;
    }
    assert!(shown(&replica)[0].contains("again and again"), "{:?}", shown(&replica));
    assert_eq!((of(rules), of(defaults)), (Some(1.0), Some(0.0)));
    pass(1300).await;
    assert_eq!(of(rules), Some(0.0), "{:?}", shown(&replica));
}

#[tokio::test(start_paused = true)]
async fn configurations_of_a_process_at_a_url_are_put_back_until_it_stops() {
    let world = World::start().await;
    let (_dial, accepted) = mpsc::channel(16);
    let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
    let server = WebhookServer::new(webhooks).listener(Pipes(Mutex::new(accepted)));
    let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
    let (client, of_server) = (world.client.clone(), stop.clone());
    let task = tokio::spawn(async move {
        let access = Some(WebhookAccess::at("https://laptop.example"));
        let names =
            OperatorInfo { name: "shop".to_owned(), webhooks: access, ..OperatorInfo::default() };
        server.run((&client, &names), of_server, &status, || ()).await
    });
    pass(3).await;
    let right = validating(&world, AT_URL).await.expect("it is written").webhooks;
    let defaults = mutating(&world, AT_URL).await.expect("it is written").webhooks;
    world.client.all::<MutatingWebhookConfiguration>().delete(AT_URL).await.unwrap();
    let mut changed = validating(&world, AT_URL).await.unwrap();
    changed.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
    let labels = changed.metadata.labels.take();
    world.client.all().replace(&changed).await.unwrap();
    pass(16).await;
    let put_back = validating(&world, AT_URL).await.unwrap();
    assert_eq!(put_back.webhooks, right);
    assert_eq!(put_back.metadata.labels, labels);
    assert_eq!(mutating(&world, AT_URL).await.map(|it| it.webhooks), Some(defaults));
    pass(600).await;
    let generation = validating(&world, AT_URL).await.unwrap().metadata.generation;
    assert_eq!(generation, put_back.metadata.generation, "only its mark is renewed");
    stop.cancel();
    task.await.unwrap().unwrap();
    assert!(validating(&world, AT_URL).await.is_none() && mutating(&world, AT_URL).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn two_operators_of_one_name_write_their_configurations_seldom_and_show_it() {
    let world = World::start().await;
    world.add_namespace("elsewhere").await;
    let replicas = [world.replica(), world.replica_at("elsewhere", true)];
    pass(240).await;
    let (mut versions, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..360 {
        let stored = validating(&world, CONFIGURATION).await.unwrap();
        versions.insert(stored.metadata.resource_version);
        namespaces.insert(asked(&world).await);
        pass(10).await;
    }
    assert_eq!(namespaces.len(), 2, "{namespaces:?}");
    assert!(versions.len() <= 26, "{} writes in an hour", versions.len());
    let texts: Vec<_> = replicas.iter().flat_map(shown).collect();
    assert!(texts.iter().any(|text| text.contains("give it another name")), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_outside_of_pods_leaves_the_objects_of_a_deployed_operator_alone_and_shows_it() {
    let world = World::start().await;
    let deployed = world.replica();
    pass(3).await;
    let before = validating(&world, CONFIGURATION).await;
    let definition = || world.client.all::<CustomResourceDefinition>().get("parcels.example.dev");
    let conversion = definition().await.unwrap().spec.conversion;
    world.add_namespace("elsewhere").await;
    let stray = world.replica_at("elsewhere", false);
    pass(600).await;
    assert_eq!(validating(&world, CONFIGURATION).await, before);
    assert_eq!(definition().await.unwrap().spec.conversion, conversion);
    assert_eq!(world.ask(&deployed).await.0, 200);
    assert!(shown(&deployed).is_empty(), "{:?}", shown(&deployed));
    let texts = shown(&stray);
    assert!(texts.len() == 2 && texts[0].contains("--webhook-url"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_contested_configuration_that_is_deleted_and_applied_again_is_repaired_at_once() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let mut spoilt = validating(&world, CONFIGURATION).await.unwrap();
    spoilt.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
    for _ in 0..7 {
        let mut changed = validating(&world, CONFIGURATION).await.unwrap();
        changed.webhooks.clone_from(&spoilt.webhooks);
        world.client.all().replace(&changed).await.unwrap();
        pass(20).await;
    }
    assert!(shown(&replica)[0].contains("again and again"), "{:?}", shown(&replica));
    world.client.all::<ValidatingWebhookConfiguration>().delete(CONFIGURATION).await.unwrap();
    pass(16).await;
    assert!(shown(&replica)[0].contains("is not there"), "{:?}", shown(&replica));
    spoilt.metadata.resource_version = None;
    world.client.all().create(&spoilt).await.unwrap();
    pass(16).await;
    let entries = validating(&world, CONFIGURATION).await.unwrap().webhooks.unwrap();
    assert!(entries[0].client_config.ca_bundle.is_some());
    assert!(shown(&replica).is_empty(), "{:?}", shown(&replica));
}

#[tokio::test(start_paused = true)]
async fn a_contested_conversion_that_is_installed_again_is_repaired_at_once() {
    let world = World::start().await;
    let replica = world.replica();
    pass(2).await;
    let definitions = world.client.all::<CustomResourceDefinition>();
    let mut spoilt = definitions.get("parcels.example.dev").await.unwrap();
    let webhook = spoilt.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
    webhook.client_config.as_mut().unwrap().ca_bundle = None;
    for _ in 0..7 {
        let mut changed = definitions.get("parcels.example.dev").await.unwrap();
        changed.spec.conversion.clone_from(&spoilt.spec.conversion);
        definitions.replace(&changed).await.unwrap();
        pass(20).await;
    }
    let contested = || replica.status.checks().iter().any(|it| it.name == "webhook conversion");
    assert!(contested());
    definitions.delete("parcels.example.dev").await.unwrap();
    pass(16).await;
    assert!(!contested());
    spoilt.metadata.resource_version = None;
    definitions.create(&spoilt).await.unwrap();
    pass(16).await;
    let conversion = definitions.get("parcels.example.dev").await.unwrap().spec.conversion;
    let client = conversion.unwrap().webhook.unwrap().client_config.unwrap();
    assert!(client.ca_bundle.is_some());
}
