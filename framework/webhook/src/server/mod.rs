//! The server of webhooks: a runnable of the manager that answers API servers over TLS.
//!
//! Files: `listener` accepts connections, `connection` serves one, `progress` has its deadlines,
//! `body` bounds what it sends, `tls` has the settings of handshakes, `repair` keeps configurations.

// DESIGN.md, 199: The webhook server is a runnable that is given to the manager
// DESIGN.md, 200: Bounds of the webhook server hold for each connection and for all together

mod body;
mod connection;
mod listener;
mod progress;
mod repair;
mod roles;
mod tls;

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::{
    Check, ManifestContext, OperatorInfo, RunContext, Runnable, RunnableManifest, bind,
};

use self::body::BodyMemory;
use self::connection::Shared;
pub use self::listener::{Accepting, Listen};
use self::tls::{ServerTls, TlsSettings};
use crate::certificates::{CertificateContext, CertificateSource, ServingCertificate};
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// Name of the port, of at most 15 characters.
const PORT_NAME: &str = "webhooks";
/// Port of the server, as in controller-runtime.
const PORT: u16 = 9443;
/// Most open connections.
const CONNECTIONS: usize = 256;
/// Pause after a source of certificates that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// A server for the webhooks of an operator: HTTPS, as a runnable of its manager.
///
/// Listens before the caches fill and until they have stopped, on every replica. The operator ends with
/// [`ErrorKind::Config`] when the address is in use.
///
/// ```no_run
/// # extern crate windlass_webhook as windlass;
/// # use windlass_client::client::Client;
/// # use windlass_runtime::manager::Manager;
/// use windlass::webhook::{MountedFiles, WebhookServer, Webhooks};
///
/// # fn example(client: Client, webhooks: Webhooks) -> Manager {
/// let server = WebhookServer::new(webhooks).certificates(MountedFiles::new("/tls"));
/// Manager::new(client).runnable(server)
/// # }
/// ```
///
/// | setting | default |
/// |---|---|
/// | [`certificates`](Self::certificates) | the operator's own, `OwnCertificates` |
/// | [`listen`](Self::listen) | `[::]:9443`; in the quickstart a free port, of which its API server is told |
/// | [`connections`](Self::connections) | 256 |
/// | [`client_ca`](Self::client_ca) | none: any client may ask |
/// | [`http2`](Self::http2) | HTTP/1.1 only |
/// | [`tls13_only`](Self::tls13_only) | TLS 1.2 and 1.3 |
///
/// | of a client | bound |
/// |---|---|
/// | handshake; headers (16 KiB, 64 of them) | 5 s each |
/// | body | 7 MiB, 24 MiB of a conversion; 10 s, or less when the review's `timeout` is |
/// | memory of all bodies | 64 KiB for each connection, and 28 MiB for all |
/// | its answer | taken within 10 s |
/// | a connection without requests | 150 s, or until another needs its place |
#[derive(Clone)]
#[must_use = "a server does nothing until it is given to a manager"]
pub struct WebhookServer {
    webhooks: Webhooks,
    source: Option<Arc<dyn CertificateSource>>,
    address: SocketAddr,
    listener: Option<Arc<dyn Listen>>,
    connections: usize,
    tls: TlsSettings,
    ca_bundle: Option<Vec<u8>>,
    annotations: Vec<(String, String)>,
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookServer")
            .field("webhooks", &self.webhooks)
            .field("address", &self.address)
            .field("connections", &self.connections)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl WebhookServer {
    /// Returns a server for these webhooks.
    pub fn new(webhooks: Webhooks) -> Self {
        Self {
            webhooks,
            source: own_certificates(),
            address: (Ipv6Addr::UNSPECIFIED, PORT).into(),
            listener: None,
            connections: CONNECTIONS,
            tls: TlsSettings::default(),
            ca_bundle: None,
            annotations: Vec::new(),
        }
    }

    /// Sets the source of the serving certificate. Default: the operator's own, `OwnCertificates`;
    /// built with neither `ring` nor `aws-lc-rs` there is no default, and the operator ends with
    /// [`ErrorKind::Config`].
    pub fn certificates(mut self, source: impl CertificateSource) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets the address. Default `[::]:9443`: every interface, by IPv6 and IPv4.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Accepts connections from a listener of your own, in place of an address.
    pub fn listener(mut self, listener: impl Listen) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets the number of connections that may be open; at least one, default 256. One more displaces a
    /// connection without a request: one that never sent any, or else one that is idle. When all are
    /// being answered, it waits.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// Answers only clients whose certificate one of these authorities signed: a PEM file, which is
    /// read every 5 s. Default: any client may ask.
    ///
    /// API servers show a certificate to webhooks when their `AdmissionConfiguration` names one. Any
    /// certificate of these authorities is accepted: take an authority that signs for API servers only.
    pub fn client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.client_ca = Some(path.into());
        self
    }

    /// Offers HTTP/2, with at most 100 requests at once on a connection. Default: HTTP/1.1 only, which
    /// has no resets of streams.
    pub fn http2(mut self) -> Self {
        self.tls.http2 = true;
        self
    }

    /// Refuses TLS 1.2.
    pub fn tls13_only(mut self) -> Self {
        self.tls.tls13_only = true;
        self
    }

    /// Sets the cryptography for TLS. Default: ring, or the provider that the features of the crate
    /// choose.
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.tls.provider = Some(provider);
        self
    }

    /// Sets the authorities of the serving certificate in the printed configurations, PEM. Default: those
    /// that another component injects.
    pub fn ca_bundle(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_bundle = Some(pem.into());
        self
    }

    /// Adds an annotation to the printed configurations. With cert-manager:
    /// `cert-manager.io/inject-ca-from` and `<namespace>/<certificate>`.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.push((key.into(), value.into()));
        self
    }

    /// Returns the parts of the manifests.
    fn attachment(&self, place: &ManifestContext<'_>) -> Result<RunnableManifest, Error> {
        let mut options = ConfigurationOptions::new(place.name, place.namespace);
        options = options.own_kinds(place.definitions);
        for (key, value) in &self.annotations {
            options = options.annotation(key, value);
        }
        if let Some(pem) = &self.ca_bundle {
            options = options.ca_bundle(pem.clone());
        }
        let mut parts = RunnableManifest::default();
        if self.address.ip().is_loopback() || self.address.port() == 0 {
            parts.problem = Some(format!(
                "no API server reaches webhooks at {}; serve them at all addresses and a fixed port by \
                 `WebhookServer::listen`",
                self.address
            ));
        }
        let mounted = self.source.as_ref().and_then(|source| source.mounted());
        let mounted = mounted.map(|(secret, path)| ("webhook-certificate", secret, path));
        parts.secrets.extend(mounted);
        if self.source.as_ref().is_some_and(|source| source.is_own()) {
            parts.roles.extend(roles::of(place, &options.service(), &self.webhooks));
        }
        parts.ports.push((PORT_NAME, self.address.port()));
        parts.objects.push(service(place, &options.service()));
        let made = self.webhooks.configurations(&options)?;
        for (definition, conversion) in made.conversions {
            parts.conversions.push((definition, printed(conversion)?));
        }
        let objects = made.validating.map(printed).into_iter().chain(made.mutating.map(printed));
        for object in objects {
            parts.objects.push(object?);
        }
        Ok(parts)
    }

    /// Serves until `stop`, and reports the start by `started`.
    pub(crate) async fn run(
        &self,
        (client, names): (&Client, &OperatorInfo),
        stop: CancellationToken,
        status: &Status,
        started: impl FnOnce(),
    ) -> Result<(), Error> {
        let environment = client.environment();
        let (clock, metrics) = (environment.clock.clone(), environment.metrics.clone());
        let handler = self.webhooks.clone().build(environment)?;
        let Some(source) = &self.source else {
            let text = "the webhook server has no certificates; give it a source by \
                        `WebhookServer::certificates`";
            return Err(Error::new(ErrorKind::Config, text));
        };
        let provider = self.tls.provider()?;
        let certificate = ServingCertificate::new(provider, clock.clone(), metrics.clone());
        let certificate = Arc::clone(status.0.get_or_init(|| Arc::new(certificate)));
        let tls = ServerTls::new(self.tls.clone(), Arc::clone(&certificate), clock.clone())?;
        let (listener, url) = self.listening(names.is_local).await?;
        let bodies = BodyMemory::new();
        let shared = Arc::new(Shared { handler, tls, bodies, clock, metrics, stop });
        let starting = async {
            certificate.shown().await;
            started();
            std::future::pending::<()>().await
        };
        let cx = CertificateContext::new(client, &names.name);
        let repaired = self.keep_configurations(&cx, names, url, &certificate);
        let served = listener::run(listener, self.connections, Arc::clone(&shared));
        tokio::select! {
            biased;
            () = maintain(&**source, &certificate, &cx) => {}
            () = shared.tls.follow_client_ca() => {}
            () = starting => {}
            () = repaired => {}
            () = served => {}
        }
        Ok(())
    }

    /// Returns the listener; on a developer's machine a free port of the loopback interface, and the URL
    /// at which an API server on this machine asks.
    async fn listening(&self, is_local: bool) -> Result<(Arc<dyn Listen>, Option<String>), Error> {
        if let Some(listener) = &self.listener {
            return Ok((Arc::clone(listener), None));
        }
        if !is_local || self.address != SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT)) {
            let listener: Arc<dyn Listen> = Arc::new(bind(self.address, "webhooks").await?);
            return Ok((listener, None));
        }
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into(), "webhooks").await?;
        let address = listener.local_addr().map_err(|error| {
            Error::new(ErrorKind::Config, "cannot tell the port of the webhooks").because(error)
        })?;
        let listener: Arc<dyn Listen> = Arc::new(listener);
        Ok((listener, Some(format!("https://{address}"))))
    }

    /// Keeps the configurations of an operator with certificates of its own; others are left alone.
    async fn keep_configurations(
        &self,
        cx: &CertificateContext,
        names: &OperatorInfo,
        url: Option<String>,
        certificate: &ServingCertificate,
    ) {
        if !self.source.as_ref().is_some_and(|source| source.is_own()) {
            return std::future::pending().await;
        }
        let options = ConfigurationOptions::new(&cx.operator, &cx.namespace);
        let mut options = options.own_kinds(&names.definitions);
        if let Some(url) = url {
            // Nobody printed configurations for this port, and all there is runs in one namespace.
            options = options.url(url).every_namespace();
        }
        repair::repair(&self.webhooks, &options, certificate, &cx.client).await;
    }
}

/// Returns the default source.
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
fn own_certificates() -> Option<Arc<dyn CertificateSource>> {
    Some(Arc::new(crate::certificates::OwnCertificates::new()))
}

/// Returns no default source: there is no cryptography to make certificates.
#[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
fn own_certificates() -> Option<Arc<dyn CertificateSource>> {
    None
}

/// Returns the Service by which API servers reach the Pods.
fn service(place: &ManifestContext<'_>, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "labels": { "app.kubernetes.io/name": place.name },
            "namespace": place.namespace,
        },
        "spec": {
            "selector": place.labels,
            "ports": [{ "name": PORT_NAME, "port": 443, "targetPort": PORT_NAME }],
        },
    })
}

/// Returns an object as the manifests print it.
fn printed(object: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| {
        Error::new(ErrorKind::Other, "cannot print a configuration of webhooks").because(error)
    })
}

/// Keeps a certificate current for ever.
async fn maintain(
    source: &dyn CertificateSource,
    certificate: &ServingCertificate,
    cx: &CertificateContext,
) {
    loop {
        if let Err(error) = source.maintain(certificate, cx).await {
            tracing::warn!(%error, again_in = ?AGAIN, "the source of certificates failed");
            certificate.report(&error);
        }
        cx.client.environment().clock.sleep(AGAIN).await;
    }
}

/// State of a server for readiness: its certificate, once it runs.
#[derive(Debug, Default)]
pub(crate) struct Status(OnceLock<Arc<ServingCertificate>>);

impl Status {
    /// Returns the checks of readiness.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let waiting = || Check {
            name: "webhook certificate".to_owned(),
            ok: false,
            detail: "the server has not started".to_owned(),
        };
        vec![self.0.get().map_or_else(waiting, |certificate| certificate.check())]
    }
}

#[cfg(test)]
impl Status {
    /// Returns the certificate that the server shows.
    pub(crate) fn certificate(&self) -> Option<&ServingCertificate> {
        self.0.get().map(Arc::as_ref)
    }
}

impl From<WebhookServer> for Runnable {
    fn from(server: WebhookServer) -> Self {
        let status = Arc::new(Status::default());
        let (running, attached) = (server.clone(), server);
        let shown = Arc::clone(&status);
        let runnable = Runnable::new("webhooks", move |cx: RunContext| {
            let (server, status) = (running.clone(), Arc::clone(&status));
            async move {
                let names = (cx.client(), cx.names());
                server.run(names, cx.stop(), &status, || cx.started()).await?;
                Ok(())
            }
        });
        runnable
            .before_caches()
            .awaited()
            .essential()
            .readiness(move || shown.checks())
            .attaching(move |place| attached.attachment(place))
    }
}
