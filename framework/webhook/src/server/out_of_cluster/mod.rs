//! The configurations of an operator outside of a cluster, which are there while it runs.

// DESIGN.md, 204: Outside of a cluster webhooks are asked at a URL while the operator runs
// DESIGN.md, 229: A process at a URL has configurations under its URL
// DESIGN.md, 224: Policies and configurations of a process at a URL carry its mark, which it
// renews

mod host;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceConversion;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::resource::{FullObject, Resource};
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::{WebhookAccess, WebhookListener};

pub(super) use self::host::Host;
use super::admission::{AdmissionConfigurations, Admitting};
use super::definition::{ConversionPlace, Conversions};
use super::precedence::ConfigurationWriter;
use super::repair::{LoggedFaults, PERIOD, is_stopped_within, repair_conversions};
use super::replaced::{FormerConversions, give_back};
use super::status::ServerStatus;
use crate::certificates::{ServingCertificate, TrustingObjects};
use crate::configuration::{ConfigurationOptions, Configurations};
use crate::outside::{MarkTurn, OutsideProcess, has_labels_of};
use crate::webhooks::Webhooks;

/// Pause after configurations that could not be written.
const AGAIN: Duration = Duration::from_secs(2);
/// Time for the removal of configurations at the stop.
const REMOVAL: Duration = Duration::from_secs(5);

/// The configurations of an operator outside of a cluster.
pub(super) struct OutsideConfigurations<'a> {
    webhooks: &'a Webhooks,
    options: ConfigurationOptions,
    client: Client,
    /// The conversions that were written, by the names of their definitions.
    written: Mutex<BTreeMap<String, CustomResourceConversion>>,
    /// The conversions that these replaced.
    former: FormerConversions,
    /// Connections of a test's own API server: then they stay when the operator stops, as they do
    /// in a cluster.
    in_process: Option<Arc<dyn WebhookListener>>,
    /// Start of this process, for those that stay: the replica that started last decides.
    started: Mutex<Timestamp>,
    /// The mark of this process on those that do not stay.
    process: tokio::sync::Mutex<OutsideProcess>,
}

impl<'a> OutsideConfigurations<'a> {
    pub(super) fn new(
        webhooks: &'a Webhooks,
        options: ConfigurationOptions,
        access: &WebhookAccess,
        own: &Client,
    ) -> Self {
        let client = access.client.clone().unwrap_or_else(|| own.clone());
        let (written, in_process) = (Mutex::default(), access.in_process.clone());
        let mut options = options.outside(&access.url, &access.namespaces);
        if in_process.is_none() {
            options = options.alone();
        }
        let started = Mutex::new(client.environment().clock.wall());
        let former = FormerConversions::default();
        let process = tokio::sync::Mutex::new(OutsideProcess::new(&client));
        Self { webhooks, options, client, written, former, in_process, started, process }
    }

    /// Whether they stay when the operator stops.
    fn stays(&self) -> bool {
        self.in_process.is_some()
    }

    /// Returns the objects by which API servers ask at the URL, and a client that reads them.
    pub(super) fn trusting(&self, in_cluster: &TrustingObjects) -> (Client, TrustingObjects) {
        let name = self.options.configuration();
        let at_url = self.options.asked_url().map(|url| (url.to_owned(), name));
        (self.client.clone(), TrustingObjects { at_url, ..in_cluster.clone() })
    }

    /// Writes the configurations, reports the start, and keeps them until `stop`. A request that is
    /// on its way then is answered first, unless that takes long: an API server that executed it
    /// after the removal would put a configuration back.
    pub(super) async fn write_until(
        &self,
        stop: &CancellationToken,
        (certificate, status): (Option<&ServingCertificate>, &ServerStatus),
        started: impl FnOnce(),
    ) {
        let written = async {
            if self.write(certificate, stop).await {
                started();
                Box::pin(self.keep((certificate, status), stop)).await;
            }
        };
        let too_late = async {
            stop.cancelled().await;
            self.client.environment().clock.sleep(REMOVAL).await;
        };
        tokio::select! {
            biased;
            () = written => {}
            () = too_late => {}
        }
    }

    /// Writes the configurations once; of a certificate with its authorities, once it has some.
    /// Returns false when the stop came before.
    async fn write(
        &self,
        certificate: Option<&ServingCertificate>,
        stop: &CancellationToken,
    ) -> bool {
        let clock = &self.client.environment().clock;
        while !stop.is_cancelled() {
            match self.try_write(certificate).await {
                Ok(()) => return true,
                Err(error) => {
                    tracing::warn!(%error, again_in = ?AGAIN, "webhooks cannot be configured by their URL");
                }
            }
            is_stopped_within(AGAIN, clock, stop).await;
        }
        false
    }

    /// Returns the configurations; those of a certificate with its authorities.
    fn made(&self, certificate: Option<&ServingCertificate>) -> Result<Configurations, Error> {
        let mut options = self.options.clone();
        if let Some(certificate) = certificate {
            let Some(authorities) = certificate.authorities() else {
                let text = "the serving certificate has no authorities yet";
                return Err(Error::new(ErrorKind::Other, text));
            };
            options = options.ca_bundle(authorities);
        }
        self.webhooks.configurations(&options)
    }

    async fn try_write(&self, certificate: Option<&ServingCertificate>) -> Result<(), Error> {
        let made = self.made(certificate)?;
        let name = self.options.configuration();
        if self.stays() {
            self.put_first(&name, made.validating).await?;
            return self.put_first(&name, made.mutating).await;
        }
        let mut process = self.process.lock().await;
        let turn = process.begin(true);
        match &made.validating {
            Some(right) => process.write(&self.client, &name, right).await?,
            // One that an earlier run has left.
            None => remove::<ValidatingWebhookConfiguration>(&self.client, &name).await?,
        }
        match &made.mutating {
            Some(right) => process.write(&self.client, &name, right).await?,
            None => remove::<MutatingWebhookConfiguration>(&self.client, &name).await?,
        }
        tracing::info!(
            configuration = name,
            "the webhook configurations name this process until it stops"
        );
        process.end(turn);
        Ok(())
    }

    /// Writes a configuration that stays at the start, with this process as its writer.
    async fn put_first<K: Admitting>(&self, name: &str, right: Option<K>) -> Result<(), Error> {
        let Some(mut right) = right else { return put::<K>(&self.client, name, None).await };
        let stored = self.client.all::<K>().get_opt(name).await?;
        let stored = stored.and_then(|mut stored| ConfigurationWriter::of(stored.meta()));
        let this = ConfigurationWriter::this(right.entries(), *self.started.lock())?;
        let this = this.after(stored.as_ref());
        *self.started.lock() = this.started();
        this.write(right.meta());
        put(&self.client, name, Some(&right)).await?;
        // A repair by an earlier process has replaced the entries, and an apply leaves those.
        put_back(&self.client, name, Some(right)).await
    }

    /// Keeps configurations and conversions as they are to be, until the stop.
    async fn keep(
        &self,
        (certificate, status): (Option<&ServingCertificate>, &ServerStatus),
        stop: &CancellationToken,
    ) {
        tokio::join!(
            self.keep_admission((certificate, status), stop),
            self.keep_conversions((certificate, status), stop)
        );
    }

    /// Puts back configurations that others change or delete, until the stop.
    async fn keep_admission(
        &self,
        (certificate, status): (Option<&ServingCertificate>, &ServerStatus),
        stop: &CancellationToken,
    ) {
        let clock = &self.client.environment().clock;
        let kept = AdmissionConfigurations::new((&self.client, status), true, Duration::ZERO);
        let mut kept = kept.since(*self.started.lock());
        let mut faults = LoggedFaults::default();
        self.sweep(&mut faults).await;
        while !is_stopped_within(PERIOD, clock, stop).await {
            // Those of faulty webhooks were reported by `write`.
            let Ok(made) = self.made(certificate) else { continue };
            match self.put_back_all(made, &mut kept).await {
                Ok(is_renewed) => {
                    faults.ends("configurations");
                    if is_renewed {
                        self.sweep(&mut faults).await;
                    }
                }
                Err(error) if error.is_conflict() => {}
                Err(error) if faults.begins("configurations", &error) => {
                    tracing::warn!(%error, "the configurations of webhooks may be wrong");
                }
                Err(_) => {}
            }
        }
    }

    /// Removes the configurations that processes of the operator left which were killed.
    async fn sweep(&self, faults: &mut LoggedFaults<'_>) {
        if self.stays() {
            return;
        }
        let (process, client) = (self.process.lock().await, &self.client);
        let swept = async {
            let operator = self.options.operator();
            process.sweep::<ValidatingWebhookConfiguration>(client, operator).await?;
            process.sweep::<MutatingWebhookConfiguration>(client, operator).await
        };
        match swept.await {
            Ok(()) => faults.ends("left over"),
            Err(error) if error.is_conflict() => {}
            Err(error) if faults.begins("left over", &error) => {
                tracing::warn!(%error, "webhook configurations of processes that ended may be left over");
            }
            Err(_) => {}
        }
    }

    /// Puts both configurations back; returns whether the marks of this process were renewed.
    /// Replicas and versions of an operator share those that stay.
    async fn put_back_all(
        &self,
        made: Configurations,
        kept: &mut AdmissionConfigurations<'_>,
    ) -> Result<bool, Error> {
        if self.stays() {
            return self.put_back_shared(made, kept).await.map(|()| false);
        }
        let (client, name) = (&self.client, self.options.configuration());
        let mut process = self.process.lock().await;
        let turn = process.begin(false);
        let validating = put_back_own(client, (&name, made.validating), &mut process, turn).await;
        put_back_own(client, (&name, made.mutating), &mut process, turn).await.and(validating)?;
        Ok(process.end(turn))
    }

    async fn put_back_shared(
        &self,
        made: Configurations,
        kept: &mut AdmissionConfigurations<'_>,
    ) -> Result<(), Error> {
        let (client, name) = (&self.client, self.options.configuration());
        let mut done = Ok(());
        if let Some(right) = made.validating {
            done = match client.all::<ValidatingWebhookConfiguration>().get_opt(&name).await? {
                Some(_) => kept.validating(&name, right).await,
                None => self.put_first(&name, Some(right)).await,
            };
        }
        if let Some(right) = made.mutating {
            let kept = match client.all::<MutatingWebhookConfiguration>().get_opt(&name).await? {
                Some(_) => kept.mutating(&name, right).await,
                None => self.put_first(&name, Some(right)).await,
            };
            done = kept.and(done);
        }
        done
    }

    /// Keeps the conversions in the definitions of own kinds, which may be installed later, until
    /// the stop.
    async fn keep_conversions(
        &self,
        (certificate, status): (Option<&ServingCertificate>, &ServerStatus),
        stop: &CancellationToken,
    ) {
        // Made anew for each look: the authorities change. Those of faulty webhooks were reported
        // by `write`.
        let made = || self.made(certificate).map(|made| made.conversions).unwrap_or_default();
        let first = made();
        if first.is_empty() {
            return;
        }
        self.written.lock().clone_from(&first);
        let place = match &self.in_process {
            Some(routes) => ConversionPlace::InProcess(Arc::clone(routes)),
            None => ConversionPlace::AtUrl,
        };
        let conversions = Conversions::new(&self.client, status, place);
        let mut conversions = conversions.remembering(&self.former);
        let names: Vec<&str> = first.keys().map(String::as_str).collect();
        let client = (&self.client, status, stop);
        repair_conversions((&names, made), &mut conversions, client).await;
    }

    /// Removes the configurations, unless they stay, each for itself, once none is `written` any
    /// more. Failures are logged: the operator must stop.
    pub(super) async fn remove(&self, written: &CancellationToken) {
        if self.stays() {
            return;
        }
        written.cancelled().await;
        let name = self.options.configuration();
        let (client, written) = (&self.client, std::mem::take(&mut *self.written.lock()));
        let clock = &client.environment().clock;
        let process = self.process.lock().await;
        let validating = process.remove::<ValidatingWebhookConfiguration>(client, &name);
        let mutating = process.remove::<MutatingWebhookConfiguration>(client, &name);
        let (validating, mutating) =
            tokio::join!(clock.timeout(REMOVAL, validating), clock.timeout(REMOVAL, mutating));
        report("validatingwebhookconfiguration", &name, validating);
        report("mutatingwebhookconfiguration", &name, mutating);
        for (definition, own) in written {
            let given = give_back(client, (&definition, &own), &self.former);
            let given = clock.timeout(REMOVAL, given).await;
            report("customresourcedefinition", &definition, given);
        }
    }
}

/// Logs an object that still names this process.
fn report(resource: &str, name: &str, removed: Option<Result<(), Error>>) {
    let error = match removed {
        Some(Ok(())) => return,
        Some(Err(error)) => error.to_string(),
        None => format!("no answer within {REMOVAL:?}"),
    };
    let text = match resource {
        "customresourcedefinition" => {
            "the conversion of a definition still names this process, and fails: the next start of the \
             operator corrects it"
        }
        _ => {
            "a webhook configuration stays, and refuses requests: the operator's next process at a URL \
             removes it after five minutes, or delete it by kubectl"
        }
    };
    tracing::warn!(resource, name, error, "{text}");
}

/// Writes an object; `None` removes one that an earlier run has left.
pub(crate) async fn put<K>(client: &Client, name: &str, object: Option<&K>) -> Result<(), Error>
where
    K: FullObject,
{
    match object {
        Some(object) => client.all::<K>().apply(name, object).force().await.map(drop),
        None => remove::<K>(client, name).await,
    }
}

/// Keeps a configuration of a process at a URL, with its mark. That of a process which started
/// later at the same URL, on another machine, is left alone.
async fn put_back_own<K: Admitting>(
    client: &Client,
    (name, right): (&str, Option<K>),
    process: &mut OutsideProcess,
    turn: MarkTurn,
) -> Result<(), Error> {
    let Some(mut right) = right else { return Ok(()) };
    let Some(mut stored) = client.all::<K>().get_opt(name).await? else {
        tracing::info!(
            configuration = name,
            kind = K::NAME,
            "a deleted configuration is written again"
        );
        return process.write(client, name, &right).await;
    };
    let is_right =
        stored.entries() == right.entries() && has_labels_of(stored.metadata(), right.metadata());
    if process.is_of_another(stored.meta()) || is_right && process.is_kept(stored.meta(), turn) {
        return Ok(());
    }
    if !is_right {
        tracing::info!(
            configuration = name,
            kind = K::NAME,
            "a changed configuration is written again"
        );
        *stored.entries() = right.entries().take();
        let labels = right.meta().labels.take().unwrap_or_default();
        stored.meta().labels.get_or_insert_default().extend(labels);
    }
    process.replace(client, stored).await
}

/// Writes a configuration that stays again if it was changed or deleted.
async fn put_back<K: Admitting>(
    client: &Client,
    name: &str,
    right: Option<K>,
) -> Result<(), Error> {
    let Some(mut right) = right else { return Ok(()) };
    let api = client.all::<K>();
    let Some(mut stored) = api.get_opt(name).await? else {
        tracing::info!(
            configuration = name,
            kind = K::NAME,
            "a deleted configuration is written again"
        );
        return put(client, name, Some(&right)).await;
    };
    if stored.entries() == right.entries() {
        return Ok(());
    }
    tracing::info!(
        configuration = name,
        kind = K::NAME,
        "a changed configuration is written again"
    );
    *stored.entries() = right.entries().take();
    api.replace(&stored).await.map(drop)
}

/// Deletes an object; one that is gone is no error.
async fn remove<K>(client: &Client, name: &str) -> Result<(), Error>
where
    K: Resource + DeserializeOwned,
{
    match client.all::<K>().delete(name).await {
        Err(error) if error.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}
