//! The field `spec.conversion` of installed definitions: kept right while the operator runs.

// DESIGN.md, 257: The conversion that a URL replaces is kept in the definition, and a contest for
// it ends
// DESIGN.md, 229: A process at a URL has configurations under its URL
// DESIGN.md, 226: Operators of a test's own server hand a conversion over as processes at URLs do
// DESIGN.md, 241: Without known authorities a definition names the Service, and keeps those that
// are there

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference,
};
use serde_json::Value;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::WebhookListener;

use super::admission::{deployed, measure};
use super::contest::KnownSetting;
use super::overlap::StoredAuthorities;
use super::replaced::{FormerConversions, Replaced, url, write};
use super::status::{CONVERSION as CHECK, ServerStatus};

/// Kind in the metric.
const KIND: &str = "customresourcedefinition";

/// The place at which an operator converts.
#[derive(Clone)]
pub(super) enum ConversionPlace {
    /// In a cluster, behind a Service.
    InCluster,
    /// At a URL: an operator in the cluster has precedence.
    AtUrl,
    /// In the process of a test's own API server, whose routes the listener knows.
    InProcess(Arc<dyn WebhookListener>),
}

impl ConversionPlace {
    /// Whether the process has a conversion for a time, and leaves it to one that starts later.
    fn is_outside(&self) -> bool {
        !matches!(self, Self::InCluster)
    }

    /// Whether the process leaves a contested conversion to others.
    fn is_at_url(&self) -> bool {
        matches!(self, Self::AtUrl)
    }

    /// Waits until no server answers at one of the URLs; for ever where that is not known.
    async fn gone(&self, urls: impl Iterator<Item = &str>) {
        let Self::InProcess(routes) = self else { return std::future::pending().await };
        let mut gone: Vec<_> = urls.map(|url| routes.gone(url)).collect();
        std::future::poll_fn(|cx| {
            match gone.iter_mut().any(|one| one.as_mut().poll(cx).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Whether no server answers at a URL now, as far as that is known.
    async fn is_gone(&self, url: &str) -> bool {
        tokio::select! {
            biased;
            () = self.gone(std::iter::once(url)) => true,
            () = std::future::ready(()) => false,
        }
    }
}

/// Keeps the conversions of definitions.
pub(super) struct Conversions<'a> {
    client: Client,
    status: &'a ServerStatus,
    place: ConversionPlace,
    /// The conversions that this process replaced, while it is outside of a cluster.
    former: FormerConversions,
    /// Whether it runs in a Pod: else the conversion of a deployed operator is left alone.
    is_in_pod: bool,
    /// Time for which authorities of other replicas are kept; zero at a URL, of a single process.
    overlap: Duration,
    authorities: BTreeMap<String, StoredAuthorities>,
    known: BTreeMap<String, KnownSetting<CustomResourceConversion>>,
    /// Definitions that had the conversion of this process.
    had: BTreeSet<String>,
    /// Definitions whose conversion another process took since, with its URL.
    taken: BTreeMap<String, String>,
}

impl<'a> Conversions<'a> {
    pub(super) fn new(client: &Client, status: &'a ServerStatus, place: ConversionPlace) -> Self {
        let client = client.clone();
        let (overlap, authorities) = (Duration::ZERO, BTreeMap::new());
        let (is_in_pod, known, former) = (true, BTreeMap::new(), FormerConversions::default());
        let (had, taken) = (BTreeSet::new(), BTreeMap::new());
        Self { client, status, place, former, is_in_pod, overlap, authorities, known, had, taken }
    }

    /// Sets the memory of what this process replaces, which outlives this value.
    pub(super) fn remembering(mut self, former: &FormerConversions) -> Self {
        self.former = former.clone();
        self
    }

    /// Sets whether the process runs in a Pod.
    pub(super) fn in_pod(mut self, is_in_pod: bool) -> Self {
        self.is_in_pod = is_in_pod;
        self
    }

    /// Sets the time for which authorities of other replicas are kept.
    pub(super) fn overlap(mut self, overlap: Duration) -> Self {
        self.overlap = overlap;
        self
    }

    /// Whether another process has a conversion, which this one takes when that one stops.
    pub(super) fn waits(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Waits until such a process has stopped; for ever where only its definition tells that.
    pub(super) async fn taker_gone(&self) {
        self.place.gone(self.taken.values().map(String::as_str)).await;
    }

    /// Writes the right conversion of a definition if it has another one.
    pub(super) async fn look(
        &mut self,
        name: &str,
        right: &CustomResourceConversion,
    ) -> Result<(), Error> {
        let done = self.try_look(name, right).await;
        let is_failed = done.as_ref().is_err_and(|error| !error.is_conflict());
        measure(&self.client, (KIND, name), is_failed || self.status.shows(name));
        done
    }

    /// Returns the right conversion with the authorities of other replicas.
    fn joined(
        &mut self,
        name: &str,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> CustomResourceConversion {
        let (mut joined, found) = (right.clone(), stored.spec.conversion.as_ref());
        let found = found.filter(|_| service(found) == service(Some(right)));
        let limit = (self.overlap, &self.client.environment().clock);
        let known = self.authorities.entry(name.to_owned()).or_default();
        let bundle = known.join(authorities(right), found.and_then(authorities), limit);
        if let Some(client) = joined.webhook.as_mut().and_then(|it| it.client_config.as_mut()) {
            client.ca_bundle = bundle;
        }
        joined
    }

    async fn try_look(
        &mut self,
        name: &str,
        right: &CustomResourceConversion,
    ) -> Result<(), Error> {
        let found = self.client.all::<CustomResourceDefinition>().get_opt(name).await?;
        let Some(stored) = found else {
            // A definition that is installed again has no writer yet.
            self.known.remove(name);
            self.had.remove(name);
            self.taken.remove(name);
            self.status.hide(name);
            return Err(missing(name));
        };
        // Requests of a test's own server come without TLS, and those at a URL have authorities.
        if authorities(right).is_none() && service(Some(right)).is_some() {
            return self.without_authorities(name, right, &stored).await;
        }
        let newer = self.newer_process(right, &stored).filter(|_| self.had.contains(name));
        if let Some(url) = newer
            && !self.place.is_gone(&url).await
        {
            self.leave(name, url);
            return Ok(());
        }
        if self.taken.remove(name).is_some() {
            self.status.hide(name);
        }
        let now = self.client.environment().clock.now();
        let joined = self.joined(name, right, &stored);
        let known = self.known.entry(name.to_owned()).or_default();
        if known.expect(right) {
            self.status.hide(name);
        }
        if stored.spec.conversion.as_ref() == Some(&joined) {
            self.had.insert(name.to_owned());
            if known.keep(now) {
                self.status.hide(name);
            }
            return self.keep_mark(name, &joined, &stored).await;
        }
        self.repair(name, &joined, &stored).await
    }

    /// Replaces the conversion of a definition, unless it is left to others.
    async fn repair(
        &mut self,
        name: &str,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> Result<(), Error> {
        let now = self.client.environment().clock.now();
        let known = self.known.entry(name.to_owned()).or_default();
        let found = service(stored.spec.conversion.as_ref());
        let has_authorities = stored.spec.conversion.as_ref().and_then(authorities).is_some();
        let is_other = !self.is_in_pod && found != service(Some(right));
        let other = found.filter(|_| is_other && has_authorities);
        if let Some((namespace, service)) = other {
            return Err(deployed(&format!("conversion of {name:?}"), namespace, service));
        }
        if known.lose(now, self.place.is_at_url()) {
            let text = contest(name, stored, self.place.is_at_url());
            tracing::error!(definition = name, "{text}");
            self.status.show(name.to_owned(), CHECK, !self.place.is_at_url(), text);
        }
        if known.is_left(now, self.place.is_at_url()) {
            return Ok(());
        }
        tracing::info!(definition = name, "the conversion of a definition is repaired");
        // What a process at a URL replaced is here again.
        let mut annotation = Value::Null;
        if self.place.is_outside() {
            let replaced = Replaced::by(right, stored, self.former.get(name));
            annotation = replaced.annotation()?;
            // Before the write, whose answer may be lost.
            self.former.remember(name, replaced);
        }
        write(&self.client, stored, right, &annotation).await?;
        known.repaired(now);
        self.had.insert(name.to_owned());
        Ok(())
    }

    /// Puts the annotation of a conversion outside of a cluster back if somebody removed it.
    async fn keep_mark(
        &self,
        name: &str,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> Result<(), Error> {
        if !self.place.is_outside() {
            return Ok(());
        }
        if let Some(found) = Replaced::of(stored).filter(|found| found.is_by(right)) {
            self.former.remember(name, found);
            return Ok(());
        }
        tracing::info!(definition = name, "the annotation of a replaced conversion is put back");
        let replaced = Replaced::by(right, stored, self.former.get(name));
        write(&self.client, stored, right, &replaced.annotation()?).await
    }

    /// Returns the URL of another process that has the conversion for a time.
    fn newer_process(
        &self,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> Option<String> {
        let found = url(stored.spec.conversion.as_ref()).filter(|_| self.place.is_outside())?;
        let by_url = Replaced::of(stored)?.by_url;
        (by_url == *found && url(Some(right)) != Some(found)).then_some(by_url)
    }

    /// Leaves the conversion to a process at a URL that started later.
    fn leave(&mut self, name: &str, url: String) {
        self.known.entry(name.to_owned()).or_default().leave();
        if self.taken.get(name) == Some(&url) {
            return;
        }
        let text = format!(
            "the conversion of the definition {name:?} is asked at {url} since another process started \
             there; this process takes it again when that one stops, or when this one is started again"
        );
        self.taken.insert(name.to_owned(), url);
        tracing::info!(definition = name, "{text}");
        self.status.show(name.to_owned(), CHECK, true, text);
    }

    /// Looks at a definition while the authorities of the serving certificate are not known: those
    /// that are there stay, as does a conversion that somebody else has set.
    async fn without_authorities(
        &mut self,
        name: &str,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> Result<(), Error> {
        let found = stored.spec.conversion.as_ref();
        let is_own = service(found) == service(Some(right));
        if !is_own && !is_unset(stored, right) {
            if !self.status.shows(name) {
                let text = asked_elsewhere(name);
                tracing::warn!(definition = name, "{text}");
                self.status.show(name.to_owned(), CHECK, true, text);
            }
            return Ok(());
        }
        let mut right = right.clone();
        if let Some(client) = right.webhook.as_mut().and_then(|it| it.client_config.as_mut()) {
            client.ca_bundle = found.filter(|_| is_own).and_then(authorities).cloned();
        }
        if found != Some(&right) {
            tracing::info!(definition = name, "the conversion of a definition is repaired");
            write(&self.client, stored, &right, &Value::Null).await?;
        }
        if authorities(&right).is_some() {
            self.status.hide(name);
        } else if !self.status.shows(name) {
            let text = unknown_authorities(name);
            tracing::warn!(definition = name, "{text}");
            self.status.show(name.to_owned(), CHECK, true, text);
        }
        Ok(())
    }
}

/// Whether a definition has no conversion, or the one of its type, which names no operator.
fn is_unset(stored: &CustomResourceDefinition, right: &CustomResourceConversion) -> bool {
    let client = stored.spec.conversion.as_ref().and_then(|it| it.webhook.as_ref());
    let Some(client) = client.and_then(|it| it.client_config.as_ref()) else { return true };
    let of_type = |service: &ServiceReference| {
        let path = right.webhook.as_ref().and_then(|it| it.client_config.as_ref());
        let path = path.and_then(|it| it.service.as_ref()?.path.as_ref());
        service.name == format!("{}-webhooks", stored.spec.names.plural)
            && (&*service.namespace, service.path.as_ref()) == ("default", path)
    };
    client.ca_bundle.is_none() && client.service.as_ref().is_some_and(of_type)
}

/// Returns the text about a conversion that somebody else has set.
fn asked_elsewhere(name: &str) -> String {
    format!(
        "the conversion of the definition {name:?} names another place or has authorities of others, and \
         stays: this operator knows none for its own certificate; add `ca.crt` to the mounted files, or \
         set `WebhookServer::ca_bundle`, to have it asked here"
    )
}

/// Returns the text about a conversion without authorities.
fn unknown_authorities(name: &str) -> String {
    format!(
        "the conversion of the definition {name:?} has no authorities, and API servers refuse the \
         certificate of this operator unless their own machines trust it: add `ca.crt` to the \
         mounted files, set `WebhookServer::ca_bundle`, or let another component write `caBundle`"
    )
}

/// Returns the error about a definition that is not installed.
fn missing(name: &str) -> Error {
    let text = format!(
        "the definition {name:?} is not there: install its kind, or apply the printed manifests"
    );
    Error::new(ErrorKind::Config, text)
}

/// Returns namespace and name of the Service of a conversion.
fn service(conversion: Option<&CustomResourceConversion>) -> Option<(&str, &str)> {
    let service = conversion?.webhook.as_ref()?.client_config.as_ref()?.service.as_ref()?;
    Some((&service.namespace, &service.name))
}

/// Returns the authorities that an operator has written.
fn authorities(conversion: &CustomResourceConversion) -> Option<&ByteString> {
    conversion.webhook.as_ref()?.client_config.as_ref()?.ca_bundle.as_ref()
}

/// Returns the text about a conversion that others replace.
fn contest(name: &str, stored: &CustomResourceDefinition, is_at_url: bool) -> String {
    let by = match writer(stored) {
        Some(writer) => format!(" by {writer:?}"),
        None => String::new(),
    };
    let conversion = stored.spec.conversion.as_ref();
    let at = url(conversion).map(|url| format!(" with {url}")).unwrap_or_default();
    let remedy = match is_at_url {
        true => {
            "this process converts no objects of it; stop the operator in the cluster, and start this \
             process again"
        }
        false => {
            "it is repaired every five minutes; stop the other process, or let one operator own the kind"
        }
    };
    format!(
        "the conversion of the definition {name:?} was replaced again and again, the last time{by}{at}: {remedy}"
    )
}

/// Returns the field manager that wrote the conversion last.
fn writer(stored: &CustomResourceDefinition) -> Option<&str> {
    let entries = stored.metadata.managed_fields.iter().flatten();
    let writers = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| !fields.0["f:spec"]["f:conversion"].is_null())
    });
    writers.max_by_key(|entry| entry.time.as_ref().map(|time| time.0))?.manager.as_deref()
}
