//! The certificate of a process at a URL that runs for a long time.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::at_url::Laptop;
use super::own::World;
use super::*;
use crate::certificates::certificates;
use crate::tests::versions::v1;

const CONFIGURATION: &str = "shop-webhooks-by-url-laptop.example";
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn laptop(world: &World) -> Laptop {
    let webhooks = Webhooks::new().validating(Rules).converting::<v1::Parcel>();
    Laptop::start_with(world, webhooks, "https://laptop.example").await
}

/// Returns the authorities of the configuration and of the conversion, PEM.
async fn bundles(world: &World) -> [String; 2] {
    let stored = world.client.all::<ValidatingWebhookConfiguration>();
    let mut hooks = stored.get(CONFIGURATION).await.unwrap().webhooks.unwrap();
    let of_admission = hooks.remove(0).client_config.ca_bundle.unwrap();
    let stored = world.client.all::<CustomResourceDefinition>();
    let definition = stored.get("parcels.example.dev").await.unwrap();
    let conversion = definition.spec.conversion.unwrap().webhook.unwrap();
    let of_conversion = conversion.client_config.unwrap().ca_bundle.unwrap();
    [of_admission, of_conversion].map(|bundle| String::from_utf8(bundle.0).unwrap())
}

/// Asks as the API server does, by the authorities of the configuration and of the conversion.
async fn ask(world: &World, laptop: &Laptop) {
    for bundle in bundles(world).await {
        let config = pki::client_at(&bundle, &world.clock);
        let (near, far) = tokio::io::duplex(64 * 1024);
        laptop.dial.send(Box::new(far)).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let name = "laptop.example".try_into().unwrap();
        let stream = connector.connect(name, near).await.expect("the certificate is trusted");
        assert_eq!(send(&mut http(stream).await, "", json!({})).await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn w1_a_certificate_at_a_url_is_replaced_in_time_for_years_and_is_always_trusted() {
    let world = World::start().await;
    let laptop = laptop(&world).await;
    let (mut authorities, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..240 {
        ask(&world, &laptop).await;
        let end = laptop.status.certificate().unwrap().not_after().unwrap();
        let left = end.as_second() - world.clock.wall().as_second();
        assert!(left > 14 * 24 * 3600, "{left} s are left");
        ends.insert(end);
        let trusted = bundles(&world).await.map(|bundle| certificates(&bundle).collect::<Vec<_>>());
        assert!(trusted.iter().all(|bundle| bundle.len() <= 3), "{trusted:?}");
        authorities.extend(trusted.into_iter().flatten());
        world.clock.sleep_machine(DAY * 3);
        pass(70).await;
    }
    // Two years: an authority every 292 days, a certificate every 72.
    assert_eq!(authorities.len(), 3);
    assert!((9..=13).contains(&ends.len()), "{}", ends.len());
    laptop.stop().await;
}

#[tokio::test(start_paused = true)]
async fn w1_the_next_authority_at_a_url_signs_only_once_all_objects_have_it() {
    let world = World::start().await;
    let laptop = laptop(&world).await;
    let [first, _] = bundles(&world).await;
    world.clock.sleep_machine(DAY * 291);
    pass(70).await;
    for resource in ["validatingwebhookconfigurations", "customresourcedefinitions"] {
        let refused = |verb| {
            let fault = Fault::new(FaultAction::Answer(500)).on(verb).resource(resource);
            world.server.faults().add(fault.times(usize::MAX))
        };
        let faults = [refused("update"), refused("patch")];
        world.clock.sleep_machine(DAY * 2);
        for _ in 0..3 {
            pass(70).await;
            // The machine sleeps just after the next authority was made.
            world.clock.sleep_machine(Duration::from_secs(2 * 3600));
            ask(&world, &laptop).await;
        }
        faults.iter().for_each(windlass_apiserver::faults::FaultHandle::remove);
    }
    for _ in 0..10 {
        pass(20).await;
        ask(&world, &laptop).await;
    }
    // What the first authority did not sign is shown.
    let config = pki::client_at(&first, &world.clock);
    let (near, far) = tokio::io::duplex(64 * 1024);
    laptop.dial.send(Box::new(far)).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    assert!(connector.connect("laptop.example".try_into().unwrap(), near).await.is_err());
    laptop.stop().await;
}
