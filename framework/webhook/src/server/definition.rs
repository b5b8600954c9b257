//! The field `spec.conversion` of installed definitions: kept right while the operator runs, and
//! given back by a process that has it at its URL for a time.
//!
//! Invariant: a process at a URL writes the conversion that it replaces into an annotation of the
//! same definition by the same patch, so that any later process can give it back.

// DESIGN.md, 257: The conversion that a URL replaces is kept in the definition, and a contest for
// it ends
// DESIGN.md, 229: A process at a URL has configurations under its URL
// DESIGN.md, 241: Without known authorities a definition names the Service, and keeps those that
// are there

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, ServiceReference,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_client::api::Patch;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};

use super::admission::{deployed, measure};
use super::contest::KnownSetting;
use super::overlap::StoredAuthorities;
use super::status::{CONVERSION as CHECK, ServerStatus};

/// Annotation of a definition with the conversion that a process at a URL replaced.
pub(crate) const REPLACED: &str = "windlass.dev/replaced-conversion";
/// Kind in the metric.
const KIND: &str = "customresourcedefinition";
/// The contents of the annotation [`REPLACED`].
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replaced {
    /// URL of the process that replaced it, with the path.
    by_url: String,
    /// The conversion before; absent for a definition without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversion: Option<CustomResourceConversion>,
}

impl Replaced {
    /// Reads the annotation of a definition; a spoilt one is none.
    fn of(definition: &CustomResourceDefinition) -> Option<Self> {
        let annotations = definition.metadata.annotations.as_ref()?;
        serde_json::from_str(annotations.get(REPLACED)?).ok()
    }
}

/// Keeps the conversions of definitions.
#[derive(Debug)]
pub(super) struct Conversions<'a> {
    client: Client,
    status: &'a ServerStatus,
    /// Whether the process is asked at a URL: then others have precedence.
    is_at_url: bool,
    /// Whether it runs in a Pod: else the conversion of a deployed operator is left alone.
    is_in_pod: bool,
    /// Time for which authorities of other replicas are kept; zero at a URL, of a single process.
    overlap: Duration,
    authorities: BTreeMap<String, StoredAuthorities>,
    known: BTreeMap<String, KnownSetting<CustomResourceConversion>>,
    /// Definitions that had the conversion of this process.
    had: BTreeSet<String>,
    /// Definitions whose conversion another process at a URL took since.
    taken: BTreeSet<String>,
}

impl<'a> Conversions<'a> {
    pub(super) fn new(client: &Client, status: &'a ServerStatus, is_at_url: bool) -> Self {
        let client = client.clone();
        let (overlap, authorities) = (Duration::ZERO, BTreeMap::new());
        let (is_in_pod, known) = (true, BTreeMap::new());
        let (had, taken) = (BTreeSet::new(), BTreeSet::new());
        Self { client, status, is_at_url, is_in_pod, overlap, authorities, known, had, taken }
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

    /// Whether another process at a URL has a conversion, which it gives back when it stops.
    pub(super) fn waits(&self) -> bool {
        !self.taken.is_empty()
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
        if let Some(url) = self.newer_process(right, &stored).filter(|_| self.had.contains(name)) {
            self.leave(name, &url);
            return Ok(());
        }
        if self.taken.remove(name) {
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
            return Ok(());
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
        if known.lose(now, self.is_at_url) {
            let text = contest(name, stored, self.is_at_url);
            tracing::error!(definition = name, "{text}");
            self.status.show(name.to_owned(), CHECK, !self.is_at_url, text);
        }
        if known.is_left(now, self.is_at_url) {
            return Ok(());
        }
        tracing::info!(definition = name, "the conversion of a definition is repaired");
        let annotation = match self.is_at_url {
            true => replaced(stored, right)?,
            // What a process at a URL replaced is here again.
            false => Value::Null,
        };
        write(&self.client, stored, right, &annotation).await?;
        known.repaired(now);
        self.had.insert(name.to_owned());
        Ok(())
    }

    /// Returns the URL of another process that has the conversion, and gives it back at its stop.
    fn newer_process(
        &self,
        right: &CustomResourceConversion,
        stored: &CustomResourceDefinition,
    ) -> Option<String> {
        let found = url(stored.spec.conversion.as_ref()).filter(|_| self.is_at_url)?;
        let by_url = Replaced::of(stored)?.by_url;
        (by_url == *found && url(Some(right)) != Some(found)).then_some(by_url)
    }

    /// Leaves the conversion to a process at a URL that started later.
    fn leave(&mut self, name: &str, url: &str) {
        self.known.entry(name.to_owned()).or_default().leave();
        if !self.taken.insert(name.to_owned()) {
            return;
        }
        let text = format!(
            "the conversion of the definition {name:?} is asked at {url} since another process started \
             there; this process takes it again when that one stops, or when this one is started again"
        );
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

/// Returns the annotation with the conversion that `right` replaces. That of a process that was
/// killed is not it: it stays as that process found it.
fn replaced(
    stored: &CustomResourceDefinition,
    right: &CustomResourceConversion,
) -> Result<Value, Error> {
    let former = Replaced::of(stored);
    let is_of_url = former
        .as_ref()
        .is_some_and(|former| url(stored.spec.conversion.as_ref()) == Some(&former.by_url));
    let conversion = match former {
        Some(former) if is_of_url => former.conversion,
        _ => stored.spec.conversion.clone(),
    };
    let by_url = url(Some(right)).cloned().unwrap_or_default();
    let text = serde_json::to_string(&Replaced { by_url, conversion });
    text.map(Value::from).map_err(|error| {
        Error::new(ErrorKind::Other, "cannot keep the conversion of a definition").because(error)
    })
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

/// Returns the URL of a conversion.
fn url(conversion: Option<&CustomResourceConversion>) -> Option<&String> {
    conversion?.webhook.as_ref()?.client_config.as_ref()?.url.as_ref()
}

/// Most attempts to give a conversion back.
const ATTEMPTS: usize = 5;

/// Gives the conversion of a definition back: the one that was there before a process at a URL. One
/// that somebody else wrote since stays.
pub(super) async fn give_back(
    client: &Client,
    name: &str,
    own: &CustomResourceConversion,
) -> Result<(), Error> {
    for _ in 1..ATTEMPTS {
        match try_give_back(client, name, own).await {
            // Others write definitions, too: an API server its status.
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
    }
    try_give_back(client, name, own).await
}

async fn try_give_back(
    client: &Client,
    name: &str,
    own: &CustomResourceConversion,
) -> Result<(), Error> {
    let Some(stored) = client.all::<CustomResourceDefinition>().get_opt(name).await? else {
        return Ok(());
    };
    let Some(former) = Replaced::of(&stored) else { return Ok(()) };
    let has_own = url(stored.spec.conversion.as_ref()) == url(Some(own));
    if !has_own && former.by_url != url(Some(own)).map_or("", String::as_str) {
        // Another process at a URL has it now, and gives it back.
        return Ok(());
    }
    let none = CustomResourceConversion { strategy: "None".to_owned(), webhook: None };
    let right = match has_own {
        true => former.conversion.unwrap_or(none),
        false => stored.spec.conversion.clone().unwrap_or(none),
    };
    write(client, &stored, &right, &Value::Null).await
}

/// Writes conversion and annotation; the rest of the definition stays.
async fn write(
    client: &Client,
    stored: &CustomResourceDefinition,
    right: &CustomResourceConversion,
    annotation: &Value,
) -> Result<(), Error> {
    let mut conversion = json!(right);
    // A merge patch removes what it names as null.
    match &right.webhook {
        None => conversion["webhook"] = json!(null),
        Some(_) => {
            let client = &mut conversion["webhook"]["clientConfig"];
            let other = if client["url"].is_null() { "url" } else { "service" };
            client[other] = json!(null);
            if client["caBundle"].is_null() {
                client["caBundle"] = json!(null);
            }
        }
    }
    let mut metadata = json!({ "resourceVersion": stored.metadata.resource_version });
    let has_annotation =
        stored.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(REPLACED));
    if has_annotation || !annotation.is_null() {
        metadata["annotations"] = json!({ REPLACED: annotation });
    }
    let patch = Patch::Merge(json!({ "metadata": metadata, "spec": { "conversion": conversion } }));
    let name = stored.metadata.name.as_deref().unwrap_or_default();
    client.all::<CustomResourceDefinition>().patch(name, patch).await.map(drop)
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
