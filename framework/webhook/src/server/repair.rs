//! The configurations of an operator with certificates of its own, and the conversions in the
//! definitions of its kinds: authorities are written into them, and what others changed is put back.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use parking_lot::Mutex;
use serde_json::json;
use windlass_client::api::Patch;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};

use crate::certificates::ServingCertificate;
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// Pause between two looks at the configurations.
const PERIOD: Duration = Duration::from_secs(15);
/// Pause after a look that failed, such as before the definitions are installed.
const AGAIN: Duration = Duration::from_secs(2);
/// First looks with that pause, for an operator that converts.
const EARLY: u32 = 60;

/// Keeps the configurations of these webhooks as they are to be, for ever.
pub(super) async fn repair(
    webhooks: &Webhooks,
    options: &ConfigurationOptions,
    certificate: &ServingCertificate,
    client: &Client,
) {
    let mut told = String::new();
    let mut looks = 0;
    loop {
        // The definitions may be installed or replaced by the leader, which starts at the same time.
        let is_early = looks < EARLY && !webhooks.conversions().is_empty();
        looks += 1;
        let mut pause = if is_early { AGAIN } else { PERIOD };
        if let Some(authorities) = certificate.authorities() {
            let options = options.clone().ca_bundle(authorities);
            match pass(webhooks, &options, client).await {
                Ok(()) => told.clear(),
                // Another replica wrote the same, or somebody changed it again: the next look sees it.
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    pause = AGAIN;
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
            () = client.environment().clock.sleep(pause) => {}
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
    for (name, right) in &made.conversions {
        repair_conversion(name, right, client).await?;
    }
    Ok(())
}

/// Keeps the conversions of an operator outside of a cluster, for ever. `before` gets those that other
/// operators had written.
pub(super) async fn repair_conversions(
    right: &BTreeMap<String, CustomResourceConversion>,
    before: &Mutex<BTreeMap<String, CustomResourceConversion>>,
    client: &Client,
) {
    let mut told = String::new();
    let mut looks = 0;
    loop {
        let mut pause = if looks < EARLY { AGAIN } else { PERIOD };
        looks += 1;
        for (name, right) in right {
            match repair_conversion(name, right, client).await {
                Ok(Some(other)) => drop(before.lock().entry(name.clone()).or_insert(other)),
                Ok(None) => {}
                Err(error) if error.is_conflict() => {}
                Err(error) => {
                    pause = AGAIN;
                    let text = error.to_string();
                    if told != text {
                        tracing::warn!(%error, "the conversion of a definition may be wrong");
                        told = text;
                    }
                }
            }
        }
        client.environment().clock.sleep(pause).await;
    }
}

/// Replaces the conversion of a definition if it differs, and returns that one; the rest of the definition
/// stays.
pub(super) async fn repair_conversion(
    name: &str,
    right: &CustomResourceConversion,
    client: &Client,
) -> Result<Option<CustomResourceConversion>, Error> {
    let api = client.all::<CustomResourceDefinition>();
    let stored = api.get_opt(name).await?.ok_or_else(|| {
        let text = format!(
            "the definition {name:?} is not there: install its kind, or apply the printed manifests"
        );
        Error::new(ErrorKind::Config, text)
    })?;
    if stored.spec.conversion.as_ref() == Some(right) {
        return Ok(None);
    }
    tracing::info!(definition = name, "the conversion of a definition is repaired");
    let mut conversion = json!(right);
    // A merge patch removes what it names as null.
    match &right.webhook {
        None => conversion["webhook"] = json!(null),
        Some(_) => {
            let client = &mut conversion["webhook"]["clientConfig"];
            let other = if client["url"].is_null() { "url" } else { "service" };
            client[other] = json!(null);
        }
    }
    let patch = Patch::Merge(json!({
        "metadata": { "resourceVersion": stored.metadata.resource_version },
        "spec": { "conversion": conversion },
    }));
    api.patch(name, patch).await?;
    Ok(stored.spec.conversion)
}

fn missing(name: &str) -> Error {
    let text = format!(
        "the configuration of webhooks {name:?} is not there: apply the printed manifests, which have it"
    );
    Error::new(ErrorKind::Config, text)
}
