//! The server of webhooks: a runnable of the manager that answers API servers over TLS.
//!
//! Files: `listener` accepts connections, `connection` serves one, `progress` has its deadlines,
//! `body` bounds what it sends, `tls` has the settings of handshakes, `repair` keeps
//! configurations: `admission` those of admission, `definition` the conversions in definitions,
//! `replaced` what a process outside of a cluster gives back; `contest` notices that others replace
//! them, `precedence` decides between versions of the operator, `overlap` keeps authorities of
//! replicas. `status` is for readiness. `out_of_cluster` has those of an operator outside of a
//! cluster, `startup` chooses between the two.

// DESIGN.md, 199: The webhook server is a runnable that is given to the manager
// DESIGN.md, 200: Bounds of the webhook server hold for each connection and for all together

mod admission;
mod body;
mod connection;
mod contest;
mod definition;
mod listener;
mod out_of_cluster;
mod overlap;
mod precedence;
mod progress;
mod repair;
mod replaced;
mod roles;
mod startup;
mod status;
mod tls;

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::{
    ManifestContext, OperatorInfo, RunContext, Runnable, RunnableManifest, WebhookListener,
};

use self::admission::AdmissionConfigurations;
use self::body::BodyMemory;
use self::connection::ConnectionShared;
use self::definition::{ConversionPlace, Conversions};
pub(crate) use self::out_of_cluster::put;
pub(crate) use self::repair::is_stopped_within;
use self::repair::{KeptObjects, Repaired};
use self::startup::{Opened, trusting_objects};
pub(crate) use self::status::ServerStatus;
use self::tls::{ServerTls, TlsSettings};
use crate::certificates::{
    CertificateContext, CertificateSource, OVERLAP, ServingCertificate, TWO_READINGS,
};
use crate::configuration::ConfigurationOptions;
use crate::webhooks::Webhooks;

/// Name of the port, of at most 15 characters.
const PORT_NAME: &str = "webhooks";
/// Port of the server, as in controller-runtime.
const PORT: u16 = 9443;
/// Most open connections.
const CONNECTIONS: usize = 256;
/// Longest time after the stop in which connections are used once more, in a cluster. Half of the
/// time that a manager has after it lost its lease.
const LAST_REQUESTS: Duration = Duration::from_secs(1);
/// Pause after a source of certificates that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// A server for the webhooks of an operator: HTTPS, as a runnable of its manager.
///
/// Listens before the caches fill and until they have stopped, on every replica. The operator ends
/// with [`ErrorKind::Config`] when the address is in use. After the stop, new connections are
/// accepted for a second, and each is answered once more with `connection: close`, so that no
/// request meets a closed one.
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
/// | [`listen`](Self::listen) | `[::]:9443` |
/// | [`url`](Self::url) | none: API servers ask through the Service |
/// | [`connections`](Self::connections) | 256 |
/// | [`client_ca`](Self::client_ca) | none: any client may ask |
/// | [`http2`](Self::http2) | HTTP/1.1 only |
/// | [`tls13_only`](Self::tls13_only) | TLS 1.2 and 1.3 |
///
/// | of a client | bound |
/// |---|---|
/// | handshake; headers (16 KiB, 64 of them) | 5 s each |
/// | body | 7 MiB, 24 MiB of a conversion; 10 s, or less when the review's `timeout` is |
/// | memory of bodies | 64 KiB for each request, and 28 MiB for all of admission |
/// | memory of conversions with their answers | 128 KiB for each request, and 54 MiB for all; one object above 64 KiB is decoded at a time, whatever its kind |
/// | its answer | taken within 10 s |
/// | a connection without requests | 150 s, or until another needs its place |
/// | a client without a request after the stop, or a slow one | 3 s |
#[derive(Clone)]
#[must_use = "a server does nothing until it is given to a manager"]
pub struct WebhookServer {
    webhooks: Webhooks,
    source: Option<Arc<dyn CertificateSource>>,
    /// `None`: the default, or the port of the URL.
    address: Option<SocketAddr>,
    listener: Option<Arc<dyn WebhookListener>>,
    url: Option<String>,
    connections: usize,
    tls: TlsSettings,
    ca_bundle: Option<Vec<u8>>,
    annotations: Vec<(String, String)>,
    /// Whether the process runs in a Pod: else it leaves the objects of a deployed operator alone.
    pub(crate) is_in_pod: bool,
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
            address: None,
            listener: None,
            url: None,
            connections: CONNECTIONS,
            tls: TlsSettings::default(),
            ca_bundle: None,
            annotations: Vec::new(),
            is_in_pod: ["POD_NAMESPACE", "KUBERNETES_SERVICE_HOST"]
                .iter()
                .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())),
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
        self.address = Some(address);
        self
    }

    /// Lets API servers ask at this URL, `https://HOST:PORT`, in place of the Service: for an
    /// operator on a developer's machine, as `--webhook-url` of the command line does.
    ///
    /// The server listens at the URL's port (on the loopback interface for a host there) unless an
    /// address is set, shows a certificate that is made for the host at each start and replaced in
    /// time, and writes configurations named `<name>-webhooks-by-url-<host>-<port>` with the
    /// operator's client; they are deleted when it stops. Processes at several URLs are all asked.
    /// After a process that was killed they stay, and refuse requests: its next run at the URL
    /// takes them over, any process of the operator at a URL removes them after five minutes, or
    /// `kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations` ends them.
    /// Port 0 stands for a free one.
    ///
    /// A conversion is one per definition: the former one is in the annotation
    /// `windlass.dev/replaced-conversion` meanwhile, from which it is given back. Among several
    /// processes at URLs the one that started last has it. When somebody,
    /// such as the operator in the cluster, replaces it three times, the process leaves it alone:
    /// an error is logged, and readiness fails with the reason.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Accepts connections from a listener of your own, in place of an address.
    pub fn listener(mut self, listener: impl WebhookListener) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets the number of connections that may be open; at least one, default 256. One more
    /// displaces a connection that never sent a request, or else one whose client has been slow for
    /// two seconds, or else the idle connection that was used longest ago. While all others are
    /// being answered, or send since less than two seconds, it waits.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// Answers only clients whose certificate one of these authorities signed: a PEM file, which is
    /// read every 5 s. Default: any client may ask. No connection is accepted before the file was
    /// read once, and the operator is not ready; one that cannot be read later changes nothing.
    /// Both are shown by the check `webhook client CA`.
    ///
    /// API servers show a certificate to webhooks when their `AdmissionConfiguration` names one.
    /// Any certificate of these authorities is accepted: take an authority that signs for API
    /// servers only.
    pub fn client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.client_ca = Some(path.into());
        self
    }

    /// Offers HTTP/2, with at most 100 requests at once on a connection. Default: HTTP/1.1 only,
    /// which has no resets of streams.
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

    /// Sets the authorities of the serving certificate in the printed configurations, PEM. Default:
    /// those that another component injects.
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
        let address = self.address();
        if address.ip().is_loopback() || address.port() == 0 {
            parts.problem = Some(format!(
                "no API server reaches webhooks at {address}; serve them at all addresses and a fixed \
                 port by `WebhookServer::listen`"
            ));
        }
        let mounted = self.source.as_ref().and_then(|source| source.mounted());
        let mounted = mounted.map(|(secret, path)| ("webhook-certificate", secret, path));
        parts.secrets.extend(mounted);
        let source = self.source.as_ref();
        if source.is_some_and(|source| source.is_own()) {
            parts.roles.extend(roles::of(place, &options.service(), &self.webhooks));
        } else {
            parts.roles.extend(roles::of_conversions(place, &self.webhooks));
        }
        parts.ports.push((PORT_NAME, address.port()));
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
        status: &ServerStatus,
        started: impl FnOnce(),
    ) -> Result<(), Error> {
        let environment = client.environment();
        let (clock, metrics) = (environment.clock.clone(), environment.metrics.clone());
        let handler = self.webhooks.clone().build(environment)?;
        let objects = trusting_objects(&self.webhooks, &names.name);
        let cx = CertificateContext::new(client, &names.name, objects);
        if !self.webhooks.conversions().is_empty() {
            status.expect_looks(&names.installed);
        }
        let Opened { listener, certificate, source, tls, outside } =
            self.open((&cx, names), status).await?;
        let certificate = certificate.as_deref();
        // Ends after the configurations by URL: while they are there, requests wait for answers.
        let stopping = CancellationToken::new();
        let shared = Arc::new(ConnectionShared {
            handler,
            tls,
            bodies: BodyMemory::new(),
            clock,
            metrics,
            stop: stopping,
            closing: CancellationToken::new(),
            // No API server asks at a URL once the configurations are deleted.
            last_requests: if outside.is_some() { Duration::ZERO } else { LAST_REQUESTS },
        });
        let written = CancellationToken::new();
        let starting = async {
            let shown = async {
                if let Some(certificate) = certificate {
                    certificate.shown().await;
                }
            };
            let Some(outside) = &outside else {
                shown.await;
                started();
                return std::future::pending().await;
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = shown => outside.write_until(&stop, (certificate, status), started).await,
            }
            written.cancel();
            std::future::pending::<()>().await
        };
        let ending = async {
            stop.cancelled().await;
            if let Some(outside) = &outside {
                Box::pin(outside.remove(&written)).await;
            }
            shared.stop.cancel();
            std::future::pending::<()>().await
        };
        let certificate_in_cluster = certificate.filter(|_| outside.is_none());
        let repaired = self.keep_configurations((&cx, names), certificate_in_cluster, status);
        let served = listener::run(listener, self.connections, Arc::clone(&shared));
        tokio::select! {
            biased;
            () = Box::pin(ending) => {}
            () = maintain(source.as_deref(), certificate, &cx) => {}
            () = follow_client_ca(shared.tls.as_ref(), status) => {}
            () = Box::pin(starting) => {}
            () = Box::pin(repaired) => {}
            () = served => {}
        }
        Ok(())
    }

    /// Returns the address of the server in a cluster.
    fn address(&self) -> SocketAddr {
        self.address.unwrap_or((Ipv6Addr::UNSPECIFIED, PORT).into())
    }

    /// Keeps the configurations and conversions of an operator with certificates of its own; with
    /// others whose authorities are known, the conversions alone.
    async fn keep_configurations(
        &self,
        (cx, names): (&CertificateContext, &OperatorInfo),
        certificate: Option<&ServingCertificate>,
        status: &ServerStatus,
    ) {
        let Some(certificate) = certificate else { return std::future::pending().await };
        let is_own = self.source.as_ref().is_some_and(|source| source.is_own());
        let (repaired, overlap) = match is_own {
            true => (Repaired::All, TWO_READINGS),
            false => (Repaired::Conversions, OVERLAP),
        };
        let options = ConfigurationOptions::new(&cx.operator, &cx.namespace);
        let mut options = options.own_kinds(&names.definitions);
        if let Some(pem) = &self.ca_bundle {
            options = options.ca_bundle(pem.clone());
        }
        let client = &cx.client;
        let kept = KeptObjects {
            conversions: Conversions::new(client, status, ConversionPlace::InCluster)
                .in_pod(self.is_in_pod)
                .overlap(overlap),
            admission: AdmissionConfigurations::new((client, status), self.is_in_pod, overlap),
        };
        let client = (client, status);
        repair::repair(&self.webhooks, &options, (certificate, repaired), kept, client).await;
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
            // A Pod becomes ready once its caches are filled, and lists of older versions need a
            // conversion.
            "publishNotReadyAddresses": true,
            "ports": [{ "name": PORT_NAME, "port": 443, "targetPort": PORT_NAME }],
        },
    })
}

/// Returns an object as the manifests print it.
pub(crate) fn printed(object: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| {
        Error::new(ErrorKind::Other, "cannot print a configuration of webhooks").because(error)
    })
}

/// Keeps a certificate current for ever; without one it does nothing.
async fn maintain(
    source: Option<&dyn CertificateSource>,
    certificate: Option<&ServingCertificate>,
    cx: &CertificateContext,
) {
    let Some((source, certificate)) = source.zip(certificate) else {
        return std::future::pending().await;
    };
    loop {
        if let Err(error) = source.maintain(certificate, cx).await {
            tracing::warn!(%error, again_in = ?AGAIN, "the source of certificates failed");
            certificate.report(&error);
        }
        cx.client.environment().clock.sleep(AGAIN).await;
    }
}

/// Reads the authorities of clients again and again; without TLS it does nothing.
async fn follow_client_ca(tls: Option<&ServerTls>, status: &ServerStatus) {
    match tls {
        Some(tls) => tls.follow_client_ca(status).await,
        None => std::future::pending().await,
    }
}

impl From<WebhookServer> for Runnable {
    fn from(server: WebhookServer) -> Self {
        let status = Arc::new(ServerStatus::default());
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
