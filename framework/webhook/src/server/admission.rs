//! The admission configurations of an operator in a cluster: kept as they are to be, and reported
//! when they are absent or others replace them again and again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::metrics::names;
use windlass_core::resource::FullObject;
use windlass_core::{Error, ErrorKind};

use super::contest::KnownSetting;
use super::overlap::StoredAuthorities;
use super::precedence::{ConfigurationWriter, OtherVersion, Precedence};
use super::status::ServerStatus;

/// Name of the check of readiness.
const CHECK: &str = "webhook configuration";

/// A kind of admission configurations.
pub(super) trait Admitting: FullObject {
    /// A webhook of it.
    type Entry: Clone + PartialEq + Send + Serialize + Sync;
    /// Name in logs.
    const NAME: &'static str;

    fn entries(&mut self) -> &mut Option<Vec<Self::Entry>>;
    fn client_config(entry: &Self::Entry) -> &WebhookClientConfig;
    fn client_config_mut(entry: &mut Self::Entry) -> &mut WebhookClientConfig;
    fn meta(&mut self) -> &mut ObjectMeta;
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

    fn client_config_mut(entry: &mut ValidatingWebhook) -> &mut WebhookClientConfig {
        &mut entry.client_config
    }

    fn meta(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
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

    fn client_config_mut(entry: &mut MutatingWebhook) -> &mut WebhookClientConfig {
        &mut entry.client_config
    }

    fn meta(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Keeps the admission configurations of an operator.
pub(super) struct AdmissionConfigurations<'a> {
    place: Place<'a>,
    validating: KnownConfiguration<ValidatingWebhook>,
    mutating: KnownConfiguration<MutatingWebhook>,
}

/// The process that looks at configurations.
#[derive(Clone, Copy)]
struct Place<'a> {
    client: &'a Client,
    status: &'a ServerStatus,
    is_in_pod: bool,
    started: Timestamp,
    /// Time for which authorities of other replicas are kept.
    overlap: Duration,
}

/// State of one configuration, as this process knows it.
struct KnownConfiguration<E> {
    setting: KnownSetting<Vec<E>>,
    other: OtherVersion,
    authorities: StoredAuthorities,
}

impl<E> Default for KnownConfiguration<E> {
    fn default() -> Self {
        Self {
            setting: KnownSetting::default(),
            other: OtherVersion::default(),
            authorities: StoredAuthorities::default(),
        }
    }
}

impl<'a> AdmissionConfigurations<'a> {
    pub(super) fn new(
        (client, status): (&'a Client, &'a ServerStatus),
        is_in_pod: bool,
        overlap: Duration,
    ) -> Self {
        let started = client.environment().clock.wall();
        let place = Place { client, status, is_in_pod, started, overlap };
        Self { place, validating: Default::default(), mutating: Default::default() }
    }

    /// Sets the start of the process.
    pub(super) fn since(mut self, started: Timestamp) -> Self {
        self.place.started = started;
        self
    }

    pub(super) async fn validating(
        &mut self,
        name: &str,
        right: ValidatingWebhookConfiguration,
    ) -> Result<(), Error> {
        look(&mut self.validating, name, right, self.place).await
    }

    pub(super) async fn mutating(
        &mut self,
        name: &str,
        right: MutatingWebhookConfiguration,
    ) -> Result<(), Error> {
        look(&mut self.mutating, name, right, self.place).await
    }
}

/// Compares a stored configuration with the right one, replaces it if it differs, and shows in
/// readiness why that cannot be done.
async fn look<K: Admitting>(
    known: &mut KnownConfiguration<K::Entry>,
    name: &str,
    right: K,
    place: Place<'_>,
) -> Result<(), Error> {
    let done = try_look(known, name, right, place).await;
    let (status, key) = (place.status, format!("absent {} {name}", K::NAME));
    match &done {
        Ok(()) => status.hide(&key),
        // Another replica wrote it: the next look sees the result.
        Err(error) if error.is_conflict() => {}
        // Other webhooks and the controllers work: the Pod stays ready.
        Err(error) => status.show(key.clone(), CHECK, true, error.to_string()),
    }
    let keys = [key, contested::<K>(name)];
    measure(place.client, (K::NAME, name), keys.iter().any(|key| status.shows(key)));
    done
}

/// Sets the metric of a configuration, or of the conversion in a definition.
pub(super) fn measure(client: &Client, (kind, name): (&str, &str), is_faulty: bool) {
    let metrics = &client.environment().metrics;
    let level = if is_faulty { 1.0 } else { 0.0 };
    metrics.set(&names::WEBHOOK_CONFIGURATION_FAULTY, &[kind, name], level);
}

async fn try_look<K: Admitting>(
    known: &mut KnownConfiguration<K::Entry>,
    name: &str,
    mut right: K,
    place: Place<'_>,
) -> Result<(), Error> {
    let Some(mut stored) = place.client.all::<K>().get_opt(name).await? else {
        // A configuration that is applied again has no writer yet.
        *known = KnownConfiguration::default();
        place.status.hide(&contested::<K>(name));
        return Err(missing::<K>(name));
    };
    let now = place.client.environment().clock.now();
    let mut right = right.entries().take().unwrap_or_default();
    if known.setting.expect(&right) {
        place.status.hide(&contested::<K>(name));
    }
    let this = ConfigurationWriter::this(&right, place.started)?;
    let writer = ConfigurationWriter::of(stored.meta());
    let found = stored.entries().clone().unwrap_or_default();
    let limit = (place.overlap, &place.client.environment().clock);
    join::<K>(&mut known.authorities, (&mut right, &found), limit);
    if found == right {
        if known.setting.keep(now) {
            place.status.hide(&contested::<K>(name));
        }
        return answer(stored, (writer, this), place).await;
    }
    let is_own = service::<K>(&found) == service::<K>(&right);
    let this = this.no_earlier_than(writer.as_ref());
    let other = writer.filter(|writer| is_own && !writer.has_webhooks_of(&this));
    match other.map(|writer| (known.other.judge(&this, &writer, now), writer)) {
        None if !may_repair::<K>(&mut known.setting, name, (&mut stored, &right), place)? => {
            return Ok(());
        }
        None | Some((Precedence::Replace, _)) => {}
        Some((precedence, writer)) => {
            known.setting.leave();
            place.status.hide(&contested::<K>(name));
            return leave(stored, name, (precedence, writer), place).await;
        }
    }
    tracing::info!(configuration = name, kind = K::NAME, "a webhook configuration is repaired");
    *stored.entries() = Some(right);
    this.write(stored.meta());
    place.client.all::<K>().replace(&stored).await?;
    known.setting.repaired(now);
    Ok(())
}

/// Adds the authorities that other replicas wrote just now.
fn join<K: Admitting>(
    known: &mut StoredAuthorities,
    (right, found): (&mut [K::Entry], &[K::Entry]),
    limit: (Duration, &Clock),
) {
    let is_own = service::<K>(found) == service::<K>(right);
    let bundle = |entries: &[K::Entry]| K::client_config(entries.first()?).ca_bundle.clone();
    let found = bundle(found).filter(|_| is_own);
    let joined = known.join(bundle(right).as_ref(), found.as_ref(), limit);
    for entry in right {
        K::client_config_mut(entry).ca_bundle.clone_from(&joined);
    }
}

/// Returns the key of the fault that others replace a configuration.
fn contested<K: Admitting>(name: &str) -> String {
    format!("contested {} {name}", K::NAME)
}

/// Whether what others changed may be put back now.
fn may_repair<K: Admitting>(
    known: &mut KnownSetting<Vec<K::Entry>>,
    name: &str,
    (stored, right): (&mut K, &[K::Entry]),
    place: Place<'_>,
) -> Result<bool, Error> {
    let now = place.client.environment().clock.now();
    let found = stored.entries().clone().unwrap_or_default();
    let service = service::<K>(&found).filter(|one| Some(*one) != service::<K>(right));
    let deployed_one = service.filter(|_| !place.is_in_pod && is_written::<K>(&found));
    if let Some((namespace, service)) = deployed_one {
        return Err(deployed(&format!("{} {name:?}", K::NAME), namespace, service));
    }
    if known.lose(now, false) {
        let text = contest::<K>(name, stored.meta(), service);
        tracing::error!(configuration = name, "{text}");
        place.status.show(contested::<K>(name), CHECK, true, text);
    }
    Ok(!known.is_left(now, false))
}

/// Writes that this process has the stored webhooks, if it started after their writer, or if the
/// question is there whether a process with them runs.
async fn answer<K: Admitting>(
    mut stored: K,
    (writer, this): (Option<ConfigurationWriter>, ConfigurationWriter),
    place: Place<'_>,
) -> Result<(), Error> {
    let now = place.client.environment().clock.wall();
    let renewed = match writer.filter(|writer| writer.has_webhooks_of(&this)) {
        Some(writer) => writer.renewed(&this, now),
        None => Some(this),
    };
    let Some(renewed) = renewed else { return Ok(()) };
    renewed.write(stored.meta());
    place.client.all::<K>().replace(&stored).await.map(drop)
}

/// Leaves the webhooks of another version as they are.
async fn leave<K: Admitting>(
    mut stored: K,
    name: &str,
    (precedence, writer): (Precedence, ConfigurationWriter),
    place: Place<'_>,
) -> Result<(), Error> {
    if precedence == (Precedence::Leave { is_new: true }) {
        tracing::info!(
            configuration = name,
            kind = K::NAME,
            "a replica that started later has other webhooks: they are left as they are; another \
             operator needs another name"
        );
    }
    if precedence != Precedence::Ask {
        return Ok(());
    }
    writer.ask(place.client.environment().clock.wall()).write(stored.meta());
    place.client.all::<K>().replace(&stored).await.map(drop)
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
