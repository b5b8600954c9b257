//! The authorities that API servers trust at the moment: those of the configurations and
//! definitions that name the operator's Service, or its URL.

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
    /// Name of the Service, and of the configurations that name it.
    pub(crate) service: String,
    /// URL and name of the configurations of an operator outside of the cluster, in place of the
    /// Service.
    pub(crate) at_url: Option<(String, String)>,
    pub(crate) has_validating: bool,
    pub(crate) has_mutating: bool,
    /// Names of the definitions of converted kinds.
    pub(crate) definitions: Vec<String>,
}

/// The authorities in one object that names the operator.
pub(super) struct TrustedBundle {
    /// Kind and name.
    object: String,
    /// PEM; empty without authorities.
    pub(super) pem: String,
}

impl TrustingObjects {
    /// Returns an object whose authorities are without a certificate, PEM; `None` when all have it.
    /// Objects that are absent, that may not be read or that name another operator do not count.
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
        let mut all = Vec::new();
        let mut add = |kind: &str, name: &str, pem: Option<ByteString>| {
            let pem = pem.map(|pem| String::from_utf8_lossy(&pem.0).into_owned());
            all.push(TrustedBundle {
                object: format!("{kind} {name}"),
                pem: pem.unwrap_or_default(),
            });
        };
        let name = self.at_url.as_ref().map_or(&self.service, |(_, name)| name);
        let asks = |it: &WebhookClientConfig| {
            let service = it.service.as_ref().map(|it| (&*it.namespace, &*it.name));
            self.is_asked(namespace, (service, it.url.as_deref()))
        };
        if self.has_validating {
            let stored = read::<ValidatingWebhookConfiguration>(client, name).await?;
            let entries = stored.and_then(|stored| stored.webhooks).into_iter().flatten();
            for config in entries.map(|entry| entry.client_config).filter(asks) {
                add("validatingwebhookconfiguration", name, config.ca_bundle);
            }
        }
        if self.has_mutating {
            let stored = read::<MutatingWebhookConfiguration>(client, name).await?;
            let entries = stored.and_then(|stored| stored.webhooks).into_iter().flatten();
            for config in entries.map(|entry| entry.client_config).filter(asks) {
                add("mutatingwebhookconfiguration", name, config.ca_bundle);
            }
        }
        for name in &self.definitions {
            let stored = read::<CustomResourceDefinition>(client, name).await?;
            if let Some(bundle) = self.of_conversion(stored, namespace) {
                add("customresourcedefinition", name, bundle);
            }
        }
        Ok(all)
    }

    /// Whether API servers ask this operator through a Service or at a URL.
    fn is_asked(
        &self,
        namespace: &str,
        (service, url): (Option<(&str, &str)>, Option<&str>),
    ) -> bool {
        match &self.at_url {
            Some((base, _)) => {
                let path = url.and_then(|url| url.strip_prefix(base.trim_end_matches('/')));
                path.is_some_and(|path| path.starts_with('/'))
            }
            None => service == Some((namespace, &self.service)),
        }
    }

    /// Returns the authorities of the conversion in a definition; `None` if it names no such place.
    fn of_conversion(
        &self,
        stored: Option<CustomResourceDefinition>,
        namespace: &str,
    ) -> Option<Option<ByteString>> {
        let config = stored?.spec.conversion?.webhook?.client_config?;
        let service = config.service.as_ref().map(|it| (&*it.namespace, &*it.name));
        let is_asked = self.is_asked(namespace, (service, config.url.as_deref()));
        is_asked.then_some(config.ca_bundle)
    }
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
