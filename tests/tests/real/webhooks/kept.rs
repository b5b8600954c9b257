//! Configurations and the conversion of a definition, while somebody changes them.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhook;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;
use windlass::{Convertible, Schema};

use super::*;

const DEFINITION: &str = "baskets.kept.example.dev";

/// The hub.
mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "kept.example.dev", version = "v1")]
    #[resource(namespaced, versions(v1beta1::Basket))]
    pub(super) struct Basket {
        pub metadata: ObjectMeta,
        pub spec: BasketSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub(super) struct BasketSpec {
        pub grams: i64,
    }
}

/// An older version.
mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Basket)]
    pub(super) struct Basket {
        pub metadata: ObjectMeta,
        pub spec: BasketSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BasketSpec)]
    pub(super) struct BasketSpec {
        #[convert(rename = grams)]
        pub weight: i64,
    }
}

/// An operator that judges and converts.
struct Kept {
    world: World,
    replica: Replica,
}

impl Kept {
    async fn start() -> Self {
        let world = World::start().await;
        let asked = Arc::default();
        let webhooks = world.webhooks(&asked).converting::<v1::Basket>();
        let mut made = webhooks.configurations(&world.options()).unwrap();
        let mut definition = v1::Basket::crd().unwrap();
        definition.spec.conversion = made.conversions.remove(DEFINITION);
        world.admin.all::<CustomResourceDefinition>().create(&definition).await.unwrap();
        let replica = world.replica_of(webhooks, asked, &Clock::system()).await;
        Self { world, replica }
    }

    /// Waits until the handlers are asked, and objects are converted.
    async fn until_all_is_well(&self) {
        self.world.until_judged().await;
        let old = self.world.admin.namespace::<v1beta1::Basket>(&self.world.shop);
        let new = v1beta1::Basket::new("basket", v1beta1::BasketSpec { weight: 5 });
        eventually("objects are converted", async || {
            let made = old.create(&new).dry_run().await;
            made.is_ok_and(|made| made.spec.weight == 5)
        })
        .await;
    }

    async fn definition(&self) -> CustomResourceDefinition {
        self.world.admin.all().get(DEFINITION).await.unwrap()
    }

    /// Changes the entry and the conversion, and waits until both are as before.
    async fn spoil(
        &self,
        of_entry: impl Fn(&mut ValidatingWebhook),
        of_conversion: impl Fn(&mut CustomResourceConversion),
    ) {
        let admin = &self.world.admin;
        let mut configuration = self.world.configuration().await;
        let mut definition = self.definition().await;
        let right = (configuration.webhooks.clone(), definition.spec.conversion.clone());
        of_entry(&mut configuration.webhooks.as_mut().unwrap()[0]);
        of_conversion(definition.spec.conversion.as_mut().unwrap());
        let stored = (
            admin.all().replace(&configuration).await.unwrap().webhooks,
            admin.all().replace(&definition).await.unwrap().spec.conversion,
        );
        assert!(stored.0 != right.0 && stored.1 != right.1, "{stored:?}");
        eventually("both are put back", async || {
            let entries = self.world.configuration().await.webhooks;
            (entries, self.definition().await.spec.conversion) == right
        })
        .await;
        self.until_all_is_well().await;
    }

    /// Returns the level of the metric about the configuration.
    fn faulty(&self) -> Option<f64> {
        let labels = ["validatingwebhookconfiguration", &self.world.name()];
        self.replica.metrics.level(&names::WEBHOOK_CONFIGURATION_FAULTY, &labels)
    }

    /// Deletes the configuration and the conversion; the first comes back by its manifest alone.
    async fn delete(&self) {
        let world = &self.world;
        let configurations = world.admin.all::<ValidatingWebhookConfiguration>();
        configurations.delete(&world.name()).await.unwrap();
        let mut definition = self.definition().await;
        let right = definition.spec.conversion.take();
        definition.spec.conversion =
            Some(CustomResourceConversion { strategy: "None".to_owned(), webhook: None });
        world.admin.all().replace(&definition).await.unwrap();
        eventually("readiness and the metric show it", async || {
            let checks = self.replica.running.readiness().checks;
            let is_shown = checks.iter().any(|check| check.name == "webhook configuration");
            is_shown && self.faulty() == Some(1.0)
        })
        .await;
        assert!(world.judged().await.is_err(), "nobody is asked");
        eventually("the conversion is put back", async || {
            self.definition().await.spec.conversion == right
        })
        .await;
        world.print().await;
        self.until_all_is_well().await;
        eventually("the fault is over", async || self.faulty() == Some(0.0)).await;
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn configurations_and_a_conversion_that_somebody_spoils_are_put_back_and_requests_succeed() {
    let kept = Kept::start().await;
    kept.until_all_is_well().await;
    let no_authorities = (
        |entry: &mut ValidatingWebhook| entry.client_config.ca_bundle = None,
        |conversion: &mut CustomResourceConversion| {
            let client = conversion.webhook.as_mut().unwrap().client_config.as_mut().unwrap();
            client.ca_bundle = None;
        },
    );
    kept.spoil(no_authorities.0, no_authorities.1).await;
    let elsewhere = || Some("https://127.0.0.1:1/elsewhere".to_owned());
    let other_place = (
        |entry: &mut ValidatingWebhook| {
            (entry.client_config.service, entry.client_config.url) = (None, elsewhere());
        },
        |conversion: &mut CustomResourceConversion| {
            let client = conversion.webhook.as_mut().unwrap().client_config.as_mut().unwrap();
            (client.service, client.url) = (None, elsewhere());
        },
    );
    kept.spoil(other_place.0, other_place.1).await;
    kept.delete().await;

    let Kept { world, replica } = kept;
    replica.stop(&world).await;
    world.admin.all::<CustomResourceDefinition>().delete(DEFINITION).await.unwrap();
    world.end().await;
}
