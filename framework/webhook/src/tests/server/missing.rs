//! Repairs while one of the objects to be kept is missing.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::own::World;
use super::*;

const CONFIGURATION: &str = "shop-webhooks";
const DEFINITION: &str = "parcels.example.dev";

/// The three objects of the operator; `None` for one that is missing.
#[derive(Debug)]
struct Objects {
    validating: Option<ValidatingWebhookConfiguration>,
    mutating: Option<MutatingWebhookConfiguration>,
    definition: Option<CustomResourceDefinition>,
}

impl Objects {
    async fn read(world: &World) -> Self {
        Self {
            validating: world.client.all().get_opt(CONFIGURATION).await.unwrap(),
            mutating: world.client.all().get_opt(CONFIGURATION).await.unwrap(),
            definition: world.client.all().get_opt(DEFINITION).await.unwrap(),
        }
    }

    /// Returns the authorities in each.
    fn authorities(&self) -> [Option<&[u8]>; 3] {
        let validating = self.validating.as_ref().and_then(|it| {
            it.webhooks.as_ref()?[0].client_config.ca_bundle.as_ref().map(|pem| pem.0.as_slice())
        });
        let mutating = self.mutating.as_ref().and_then(|it| {
            it.webhooks.as_ref()?[0].client_config.ca_bundle.as_ref().map(|pem| pem.0.as_slice())
        });
        let definition = self.definition.as_ref().and_then(|it| {
            let client = it.spec.conversion.as_ref()?.webhook.as_ref()?.client_config.as_ref()?;
            client.ca_bundle.as_ref().map(|pem| pem.0.as_slice())
        });
        [validating, mutating, definition]
    }

    /// Takes the authorities out of each object, as somebody who applies older manifests does.
    async fn spoil(mut self, world: &World) {
        if let Some(mut it) = self.validating.take() {
            it.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
            world.client.all().replace(&it).await.unwrap();
        }
        if let Some(mut it) = self.mutating.take() {
            it.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
            world.client.all().replace(&it).await.unwrap();
        }
        if let Some(mut it) = self.definition.take() {
            let webhook = it.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
            webhook.client_config.as_mut().unwrap().ca_bundle = None;
            world.client.all().replace(&it).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_there_is_repaired_while_one_configuration_or_a_definition_is_missing() {
    for missing in 0..3 {
        let world = World::start().await;
        let _replica = world.replica();
        pass(3).await;
        let right = Objects::read(&world).await;
        let authorities = right.authorities();
        assert!(authorities.iter().all(Option::is_some), "{authorities:?}");
        let client = &world.client;
        let validating = client.all::<ValidatingWebhookConfiguration>();
        let mutating = client.all::<MutatingWebhookConfiguration>();
        let definitions = client.all::<CustomResourceDefinition>();
        match missing {
            0 => drop(validating.delete(CONFIGURATION).await.unwrap()),
            1 => drop(mutating.delete(CONFIGURATION).await.unwrap()),
            _ => drop(definitions.delete(DEFINITION).await.unwrap()),
        }
        pass(1).await;
        Objects::read(&world).await.spoil(&world).await;
        assert_eq!(Objects::read(&world).await.authorities(), [None; 3], "{missing}");
        pass(16).await;
        let mut wanted = authorities;
        wanted[missing] = None;
        let repaired = Objects::read(&world).await;
        assert!(repaired.authorities() == wanted, "{missing} is missing");
    }
}
