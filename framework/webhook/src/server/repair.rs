//! The configurations of an operator with certificates of its own: authorities are written into
//! them, and what others changed is put back.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};

use crate::certificates::ServingCertificate;
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// Pause between two looks at the configurations.
const PERIOD: Duration = Duration::from_secs(15);

/// Keeps the configurations of these webhooks as they are to be, for ever.
pub(super) async fn repair(
    webhooks: &Webhooks,
    options: &ConfigurationOptions,
    certificate: &ServingCertificate,
    client: &Client,
) {
    let mut told = String::new();
    loop {
        if let Some(authorities) = certificate.authorities() {
            let options = options.clone().ca_bundle(authorities);
            match pass(webhooks, &options, client).await {
                Ok(()) => told.clear(),
                // Another replica wrote the same, or somebody changed it again: the next look sees it.
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    let text = error.to_string();
                    if told != text {
                        tracing::warn!(%error, "the configurations of webhooks may be wrong");
                        told = text;
                    }
                }
            }
        }
        tokio::select! {
            biased;
            () = certificate.authorities_changed() => {}
            () = client.environment().clock.sleep(PERIOD) => {}
        }
    }
}

/// Compares the stored configurations with the right ones, and replaces those that differ.
async fn pass(
    webhooks: &Webhooks,
    options: &ConfigurationOptions,
    client: &Client,
) -> Result<(), Error> {
    let name = options.service();
    let made = webhooks.configurations(options)?;
    if let Some(right) = made.validating {
        let api = client.all::<ValidatingWebhookConfiguration>();
        let mut stored = api.get_opt(&name).await?.ok_or_else(|| missing(&name))?;
        if stored.webhooks != right.webhooks {
            tracing::info!(configuration = name, "a validating webhook configuration is repaired");
            stored.webhooks = right.webhooks;
            api.replace(&stored).await?;
        }
    }
    if let Some(right) = made.mutating {
        let api = client.all::<MutatingWebhookConfiguration>();
        let mut stored = api.get_opt(&name).await?.ok_or_else(|| missing(&name))?;
        if stored.webhooks != right.webhooks {
            tracing::info!(configuration = name, "a mutating webhook configuration is repaired");
            stored.webhooks = right.webhooks;
            api.replace(&stored).await?;
        }
    }
    Ok(())
}

fn missing(name: &str) -> Error {
    let text = format!(
        "the configuration of webhooks {name:?} is not there: apply the printed manifests, which have it"
    );
    Error::new(ErrorKind::Config, text)
}
