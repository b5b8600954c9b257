//! An operator outside of a cluster: the place at which it listens, and the configurations that are
//! there while it runs.

// DESIGN.md, 204: Outside of a cluster webhooks are asked at a URL while the operator runs
// DESIGN.md, 229: A process at a URL has configurations under its URL

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
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

use super::admission::{AdmissionConfigurations, Admitting};
use super::definition::{ConversionPlace, Conversions};
use super::precedence::ConfigurationWriter;
use super::repair::{LoggedFaults, PERIOD, is_stopped_within, repair_conversions};
use super::replaced::{FormerConversions, give_back};
use super::status::ServerStatus;
use crate::certificates::{ServingCertificate, TrustingObjects};
use crate::configuration::{ConfigurationOptions, Configurations};
use crate::webhooks::Webhooks;

/// Pause after configurations that could not be written.
const AGAIN: Duration = Duration::from_secs(2);
/// Time for the removal of configurations at the stop.
const REMOVAL: Duration = Duration::from_secs(5);
/// Port of HTTPS.
const HTTPS: u16 = 443;

/// Host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Name or address, without brackets.
    pub(super) name: String,
    port: u16,
}

impl Host {
    /// Reads a URL of an operator outside of a cluster.
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            let text = format!(
                "webhooks cannot be asked at {url:?}: {why}; write https://HOST:PORT, with a host that \
                 the API server reaches"
            );
            Error::new(ErrorKind::Config, text)
        };
        let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
        let (scheme, host) = (uri.scheme_str(), uri.host().filter(|host| !host.is_empty()));
        let Some(host) = host.filter(|_| scheme == Some("https")) else {
            return Err(refused("it does not begin with https:// and a host"));
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(refused("paths are those of the webhooks"));
        }
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { name, port: uri.port_u16().unwrap_or(HTTPS) })
    }

    /// Returns the address to listen at: on the loopback interface for a host there, else on all.
    pub(super) fn address(&self) -> SocketAddr {
        let any = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let ip = match self.name.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => ip,
            Ok(_) => any,
            Err(_) if self.name == "localhost" => Ipv4Addr::LOCALHOST.into(),
            Err(_) => any,
        };
        SocketAddr::new(ip, self.port)
    }

    /// Returns the address to listen at when the program set one, too: that of a URL from the
    /// command line wins, and is logged; that of the program's own URL, such as one of a tunnel,
    /// does not.
    pub(super) fn choose(&self, set: Option<SocketAddr>, is_flag: bool) -> SocketAddr {
        let own = self.address();
        match set {
            Some(set) if is_flag && set.port() != own.port() => {
                tracing::warn!(
                    url_port = own.port(), listen = %set,
                    "--webhook-url names another port than `WebhookServer::listen`: webhooks are \
                     served at {own}"
                );
                own
            }
            Some(set) => set,
            None => own,
        }
    }

    /// Returns the URL of the address that was bound: port 0 of a URL stands for a free one.
    pub(super) fn url(&self, bound: SocketAddr) -> String {
        let name =
            if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        let port = if self.port == 0 { bound.port() } else { self.port };
        format!("https://{name}:{port}")
    }
}

/// The configurations of an operator outside of a cluster.
pub(super) struct OutsideConfigurations<'a> {
    webhooks: &'a Webhooks,
    options: ConfigurationOptions,
    client: Client,
    /// The conversions that were written, by the names of their definitions.
    written: Mutex<BTreeMap<String, CustomResourceConversion>>,
    /// What they replaced.
    former: FormerConversions,
    /// Connections of a test's own API server: then they stay when the operator stops, as they do in
    /// a cluster.
    in_process: Option<Arc<dyn WebhookListener>>,
    /// Start of this process, for those that stay: the replica that started last decides.
    started: Mutex<Timestamp>,
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
        Self { webhooks, options, client, written, former, in_process, started }
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
        self.put_first(&name, made.validating).await?;
        self.put_first(&name, made.mutating).await?;
        if !self.stays() {
            tracing::info!(
                configuration = name,
                "the webhook configurations name this process until it stops"
            );
        }
        Ok(())
    }

    /// Writes a configuration at the start. One that stays names this process as its writer.
    async fn put_first<K: Admitting>(&self, name: &str, right: Option<K>) -> Result<(), Error> {
        let Some(mut right) = right else { return put::<K>(&self.client, name, None).await };
        if !self.stays() {
            return put(&self.client, name, Some(&right)).await;
        }
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
        while !is_stopped_within(PERIOD, clock, stop).await {
            // Those of faulty webhooks were reported by `write`.
            let Ok(made) = self.made(certificate) else { continue };
            match self.put_back_all(made, &mut kept).await {
                Ok(()) => faults.ends("configurations"),
                Err(error) if error.is_conflict() => {}
                Err(error) if faults.begins("configurations", &error) => {
                    tracing::warn!(%error, "the configurations of webhooks may be wrong");
                }
                Err(_) => {}
            }
        }
    }

    /// Puts both configurations back. Replicas and versions of an operator share those that stay.
    async fn put_back_all(
        &self,
        made: Configurations,
        kept: &mut AdmissionConfigurations<'_>,
    ) -> Result<(), Error> {
        let (client, name) = (&self.client, self.options.configuration());
        if !self.stays() {
            let validating = put_back(client, &name, made.validating).await;
            return put_back(client, &name, made.mutating).await.and(validating);
        }
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
        // Made anew for each look: the authorities change. Those of faulty webhooks were reported by
        // `write`.
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
        let validating = async { remove::<ValidatingWebhookConfiguration>(client, &name).await };
        let mutating = async { remove::<MutatingWebhookConfiguration>(client, &name).await };
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
        _ => "a webhook configuration stays, and refuses requests: delete it by kubectl",
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

/// Writes a configuration of a process at a URL again if it was changed or deleted.
async fn put_back<K: Admitting>(
    client: &Client,
    name: &str,
    right: Option<K>,
) -> Result<(), Error> {
    let Some(mut right) = right else { return Ok(()) };
    let api = client.all::<K>();
    let Some(mut stored) = api.get_opt(name).await? else {
        tracing::info!(configuration = name, kind = K::NAME, "it was deleted, and is put back");
        return put(client, name, Some(&right)).await;
    };
    if stored.entries() == right.entries() {
        return Ok(());
    }
    tracing::info!(configuration = name, kind = K::NAME, "it was changed, and is put back");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_on_the_loopback_interface_is_listened_to_there_and_another_everywhere() {
        let cases = [
            ("https://127.0.0.1:9443", "127.0.0.1:9443", "https://127.0.0.1:9443"),
            ("https://localhost:9443/", "127.0.0.1:9443", "https://localhost:9443"),
            ("https://[::1]:9443", "[::1]:9443", "https://[::1]:9443"),
            ("https://192.168.1.5:9443", "[::]:9443", "https://192.168.1.5:9443"),
            ("https://laptop.example", "[::]:443", "https://laptop.example:443"),
            ("https://127.0.0.1:0", "127.0.0.1:0", "https://127.0.0.1:7"),
        ];
        for (url, address, shown) in cases {
            let host = Host::of(url).unwrap();
            assert_eq!(host.address().to_string(), address, "{url}");
            assert_eq!(host.url(SocketAddr::from((Ipv4Addr::LOCALHOST, 7))), shown);
        }
    }

    #[test]
    fn the_port_of_a_url_from_the_command_line_wins_over_the_address_of_the_program() {
        let host = Host::of("https://127.0.0.1:9443").unwrap();
        let chosen = |set: &str, is_flag| host.choose(set.parse().ok(), is_flag).to_string();
        assert_eq!(chosen("[::]:8443", true), "127.0.0.1:9443");
        assert_eq!(chosen("[::]:9443", true), "[::]:9443", "the ports agree");
        assert_eq!(chosen("[::]:8443", false), "[::]:8443", "a tunnel leads there");
        assert_eq!(chosen("", false), "127.0.0.1:9443");
    }

    #[test]
    fn a_url_that_no_api_server_can_ask_is_refused_with_its_reason() {
        let cases = [
            ("http://127.0.0.1:9443", "does not begin with https://"),
            ("127.0.0.1:9443", "does not begin with https://"),
            ("https://a.example/path", "paths are those of the webhooks"),
            ("https://a.example?x=1", "paths are those of the webhooks"),
            ("https:// a", "it is no URL"),
        ];
        for (url, why) in cases {
            let text = Host::of(url).unwrap_err().to_string();
            assert!(text.contains(why), "{url}: {text}");
        }
    }
}
