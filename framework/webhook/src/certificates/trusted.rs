//! The authorities that API servers trust at the moment: those of the configurations and
//! definitions that name the operator's Service.

// DESIGN.md, 308: Authorities of the own certificates are compared with those that API servers
// trust

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::de::DeserializeOwned;
use windlass_client::client::Client;
use windlass_core::Error;
use windlass_core::resource::Resource;

use super::bundle::has;

/// The objects by which API servers may ask an operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustingObjects {
    /// Name of the Service, and of the configurations.
    pub(crate) service: String,
    pub(crate) has_validating: bool,
    pub(crate) has_mutating: bool,
    /// Names of the definitions of converted kinds.
    pub(crate) definitions: Vec<String>,
}

/// The authorities in one object that names the operator's Service.
pub(super) struct TrustedBundle {
    /// Kind and name.
    object: String,
    /// PEM; empty without authorities.
    pub(super) pem: String,
}

impl TrustingObjects {
    /// Returns an object whose authorities are without a certificate, PEM; `None` when all have it.
    /// Objects that are absent, that may not be read or that name another Service do not count.
    pub(super) async fn lacking(
        &self,
        (client, namespace): (&Client, &str),
        certificate: &str,
    ) -> Result<Option<String>, Error> {
        let bundles = self.bundles(client, namespace).await?;
        let lacking = bundles.into_iter().find(|bundle| !has(&bundle.pem, certificate));
        Ok(lacking.map(|bundle| bundle.object))
    }

    /// Returns the authorities of all objects.
    pub(super) async fn bundles(
        &self,
        client: &Client,
        namespace: &str,
    ) -> Result<Vec<TrustedBundle>, Error> {
        let service = (namespace, &*self.service);
        let mut all = Vec::new();
        let mut add = |kind: &str, name: &str, pem: Option<ByteString>| {
            let pem = pem.map(|pem| String::from_utf8_lossy(&pem.0).into_owned());
            all.push(TrustedBundle {
                object: format!("{kind} {name}"),
                pem: pem.unwrap_or_default(),
            });
        };
        if self.has_validating {
            let stored = read::<ValidatingWebhookConfiguration>(client, &self.service).await?;
            let entries = stored.and_then(|stored| stored.webhooks).into_iter().flatten();
            for config in entries.map(|entry| entry.client_config).filter(|it| names(it, service)) {
                add("validatingwebhookconfiguration", &self.service, config.ca_bundle);
            }
        }
        if self.has_mutating {
            let stored = read::<MutatingWebhookConfiguration>(client, &self.service).await?;
            let entries = stored.and_then(|stored| stored.webhooks).into_iter().flatten();
            for config in entries.map(|entry| entry.client_config).filter(|it| names(it, service)) {
                add("mutatingwebhookconfiguration", &self.service, config.ca_bundle);
            }
        }
        for name in &self.definitions {
            let stored = read::<CustomResourceDefinition>(client, name).await?;
            if let Some(bundle) = of_conversion(stored, service) {
                add("customresourcedefinition", name, bundle);
            }
        }
        Ok(all)
    }
}

/// Whether API servers ask through this Service.
fn names(config: &WebhookClientConfig, (namespace, name): (&str, &str)) -> bool {
    config.service.as_ref().is_some_and(|it| (&*it.namespace, &*it.name) == (namespace, name))
}

/// Returns the authorities of the conversion in a definition; `None` if it names no such Service.
fn of_conversion(
    stored: Option<CustomResourceDefinition>,
    service: (&str, &str),
) -> Option<Option<ByteString>> {
    let config = stored?.spec.conversion?.webhook?.client_config?;
    let named = config.service.as_ref().map(|it| (&*it.namespace, &*it.name));
    (named == Some(service)).then_some(config.ca_bundle)
}

/// Reads an object; one that may not be read counts as absent: then somebody else writes it.
async fn read<K>(client: &Client, name: &str) -> Result<Option<K>, Error>
where
    K: Resource + DeserializeOwned,
{
    match client.all::<K>().get_opt(name).await {
        Err(error) if error.is_forbidden() => {
            tracing::debug!(%error, "authorities that API servers trust may not be read");
            Ok(None)
        }
        read => read,
    }
}
