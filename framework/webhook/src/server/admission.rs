//! The admission configurations of an operator in a cluster: kept as they are to be, and reported
//! when they are absent or others replace them again and again.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_client::client::Client;
use windlass_core::metrics::names;
use windlass_core::resource::FullObject;
use windlass_core::{Error, ErrorKind};

use super::ServerStatus;
use super::contest::KnownSetting;

/// Name of the check of readiness.
const CHECK: &str = "webhook configuration";

/// A kind of admission configurations.
pub(super) trait Admitting: FullObject {
    /// A webhook of it.
    type Entry: Clone + PartialEq + Send + Sync;
    /// Name in logs.
    const NAME: &'static str;

    fn entries(&mut self) -> &mut Option<Vec<Self::Entry>>;
    fn client_config(entry: &Self::Entry) -> &WebhookClientConfig;
    fn meta(&self) -> &ObjectMeta;
}

impl Admitting for ValidatingWebhookConfiguration {
    type Entry = ValidatingWebhook;
    const NAME: &'static str = "validatingwebhookconfiguration";

    fn entries(&mut self) -> &mut Option<Vec<ValidatingWebhook>> {
        &mut self.webhooks
    }

    fn client_config(entry: &ValidatingWebhook) -> &WebhookClientConfig {
        &entry.client_config
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Admitting for MutatingWebhookConfiguration {
    type Entry = MutatingWebhook;
    const NAME: &'static str = "mutatingwebhookconfiguration";

    fn entries(&mut self) -> &mut Option<Vec<MutatingWebhook>> {
        &mut self.webhooks
    }

    fn client_config(entry: &MutatingWebhook) -> &WebhookClientConfig {
        &entry.client_config
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Keeps the admission configurations of an operator.
pub(super) struct AdmissionConfigurations<'a> {
    client: &'a Client,
    status: &'a ServerStatus,
    is_in_pod: bool,
    validating: KnownSetting<Vec<ValidatingWebhook>>,
    mutating: KnownSetting<Vec<MutatingWebhook>>,
}

impl<'a> AdmissionConfigurations<'a> {
    pub(super) fn new(client: &'a Client, status: &'a ServerStatus, is_in_pod: bool) -> Self {
        let (validating, mutating) = (KnownSetting::default(), KnownSetting::default());
        Self { client, status, is_in_pod, validating, mutating }
    }

    pub(super) async fn validating(
        &mut self,
        name: &str,
        right: ValidatingWebhookConfiguration,
    ) -> Result<(), Error> {
        let place = (self.client, self.status, self.is_in_pod);
        look(&mut self.validating, name, right, place).await
    }

    pub(super) async fn mutating(
        &mut self,
        name: &str,
        right: MutatingWebhookConfiguration,
    ) -> Result<(), Error> {
        let place = (self.client, self.status, self.is_in_pod);
        look(&mut self.mutating, name, right, place).await
    }
}

/// Compares a stored configuration with the right one, replaces it if it differs, and shows in
/// readiness why that cannot be done.
async fn look<K: Admitting>(
    known: &mut KnownSetting<Vec<K::Entry>>,
    name: &str,
    right: K,
    place: (&Client, &ServerStatus, bool),
) -> Result<(), Error> {
    let done = try_look(known, name, right, place).await;
    let (status, key) = (place.1, format!("absent {} {name}", K::NAME));
    match &done {
        Ok(()) => status.hide(&key),
        // Another replica wrote it: the next look sees the result.
        Err(error) if error.is_conflict() => {}
        // Other webhooks and the controllers work: the Pod stays ready.
        Err(error) => status.show(key.clone(), CHECK, true, error.to_string()),
    }
    let keys = [key, format!("contested {} {name}", K::NAME)];
    measure(place.0, (K::NAME, name), keys.iter().any(|key| status.shows(key)));
    done
}

/// Sets the metric of a configuration, or of the conversion in a definition.
pub(super) fn measure(client: &Client, (kind, name): (&str, &str), is_faulty: bool) {
    let metrics = &client.environment().metrics;
    let level = if is_faulty { 1.0 } else { 0.0 };
    metrics.set(&names::WEBHOOK_CONFIGURATION_FAULTY, &[kind, name], level);
}

async fn try_look<K: Admitting>(
    known: &mut KnownSetting<Vec<K::Entry>>,
    name: &str,
    mut right: K,
    (client, status, is_in_pod): (&Client, &ServerStatus, bool),
) -> Result<(), Error> {
    let api = client.all::<K>();
    let mut stored = api.get_opt(name).await?.ok_or_else(|| missing::<K>(name))?;
    let (now, key) = (client.environment().clock.now(), format!("contested {} {name}", K::NAME));
    let right = right.entries().take().unwrap_or_default();
    if known.expect(&right) {
        status.hide(&key);
    }
    let found = stored.entries().clone().unwrap_or_default();
    if found == right {
        if known.keep(now) {
            status.hide(&key);
        }
        return Ok(());
    }
    let service = service::<K>(&found).filter(|one| Some(*one) != service::<K>(&right));
    if let Some((namespace, service)) = service.filter(|_| !is_in_pod && is_written::<K>(&found)) {
        return Err(deployed(&format!("{} {name:?}", K::NAME), namespace, service));
    }
    if known.lose(now, false) {
        let text = contest::<K>(name, stored.meta(), service);
        tracing::error!(configuration = name, "{text}");
        status.show(key, CHECK, true, text);
    }
    if known.is_left(now, false) {
        return Ok(());
    }
    tracing::info!(configuration = name, kind = K::NAME, "a webhook configuration is repaired");
    *stored.entries() = Some(right);
    api.replace(&stored).await?;
    known.repaired(now);
    Ok(())
}

/// Returns namespace and name of the Service that the first webhook is asked through.
fn service<K: Admitting>(entries: &[K::Entry]) -> Option<(&str, &str)> {
    let ServiceReference { namespace, name, .. } =
        K::client_config(entries.first()?).service.as_ref()?;
    Some((namespace, name))
}

/// Whether an operator has written its authorities.
fn is_written<K: Admitting>(entries: &[K::Entry]) -> bool {
    entries.first().is_some_and(|entry| K::client_config(entry).ca_bundle.is_some())
}

fn missing<K: Admitting>(name: &str) -> Error {
    let text = format!(
        "the {} {name:?} is not there, and its webhooks are not asked: apply the printed manifests, \
         which have it",
        K::NAME
    );
    Error::new(ErrorKind::Config, text)
}

/// Returns the error of a process outside of Pods about an object of a deployed operator.
pub(super) fn deployed(object: &str, namespace: &str, service: &str) -> Error {
    let text = format!(
        "the {object} names the Service {service:?} in the namespace {namespace:?}, of an operator in the \
         cluster: it is left alone, and this process is not asked; start it with --webhook-url to \
         be asked, too"
    );
    Error::new(ErrorKind::Config, text)
}

/// Returns the text about a configuration that others replace.
fn contest<K: Admitting>(name: &str, meta: &ObjectMeta, service: Option<(&str, &str)>) -> String {
    let entries = meta.managed_fields.iter().flatten();
    let last = entries.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    let by = last.and_then(|entry| entry.manager.as_deref());
    let by = by.map(|manager| format!(" by {manager:?}")).unwrap_or_default();
    let at = service.map(|(namespace, name)| format!(" with the Service {namespace}/{name}"));
    let at = at.unwrap_or_default();
    format!(
        "the {} {name:?} was replaced again and again, the last time{by}{at}: it is repaired every five \
         minutes; stop the other operator, or give it another name",
        K::NAME
    )
}
