//! The builder of clients.

mod defaults;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri};
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use self::defaults::UnresolvedSettings;
use crate::client::Client;
use crate::client::auth::Credentials;
use crate::client::call::ClientShared;
use crate::client::config::ClientConfig;
use crate::client::policy::{Budgets, HeaderRules};
use crate::client::transport::{
    Connect, Dialer, HttpRequest, HttpResponse, IdentitySource, Pool, Scheme, Stack, Tls,
    TlsSettings, Transport, Tuning, default_provider, proxy_config,
};
use windlass_core::environment::Environment;
use windlass_core::error::{BoxError, Error, ErrorKind};

/// Default field manager, and name in the header `User-Agent`.
const DEFAULT_NAME: &str = "windlass";

/// A layer that was added, to be applied to the services below the layer.
type LayerFn = Box<dyn FnOnce(Stack) -> Stack + Send>;

/// Transport settings of the builder. An unset setting falls back to the environment, then to a
/// default.
#[derive(Clone, Copy, Debug, Default)]
struct ClientSettings {
    /// Whether HTTP/2 is offered.
    http2: Option<bool>,
    /// Interval and timeout of HTTP/2 pings.
    pings: Option<(Duration, Duration)>,
    /// Largest age of connections.
    max_age: Option<Duration>,
    /// Time limit for the head of an answer to a read.
    head: Option<Duration>,
    /// Largest answer that is read as a whole.
    response_limit: Option<usize>,
    /// Whether answers in gzip are requested.
    gzip: Option<bool>,
}

impl ClientSettings {
    /// Returns `tuning` with these settings applied on top.
    fn over(self, tuning: Tuning) -> Tuning {
        let (ping_interval, ping_timeout) = match self.pings {
            Some((interval, timeout)) => (Some(interval).filter(|i| !i.is_zero()), timeout),
            None => (tuning.ping_interval, tuning.ping_timeout),
        };
        Tuning {
            http2: self.http2.unwrap_or(tuning.http2),
            ping_interval,
            ping_timeout,
            max_age: self.max_age.or(tuning.max_age),
            head: self.head.unwrap_or(tuning.head),
            // As by default, the head of a list has three times the time of other heads.
            list_head: self.head.map_or(tuning.list_head, |head| head * 3),
            response_limit: self.response_limit.unwrap_or(tuning.response_limit),
            gzip: self.gzip.unwrap_or(tuning.gzip),
        }
    }
}

/// Configures a [`Client`].
///
/// Settings of the builder go before variables of the environment, and those before the defaults.
/// All connections, layers and limits of the built client belong to the client's clones, too.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use std::time::Duration;
/// use windlass::client::{Client, ClientConfig};
///
/// # fn main() -> Result<(), windlass::Error> {
/// let client = Client::builder()
///     .config(ClientConfig::in_cluster()?)
///     .max_connection_age(Duration::from_secs(600))
///     .http2_pings(Duration::from_secs(10), Duration::from_secs(5))
///     .compression(false)
///     .build()?;
/// # let _ = client;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ClientBuilder {
    config: Option<ClientConfig>,
    connector: Option<Arc<dyn Connect>>,
    provider: Option<Arc<CryptoProvider>>,
    environment: Option<Environment>,
    /// Field manager of writes that name none.
    manager: Option<String>,
    user_agent: Option<HeaderValue>,
    /// Defaults of calls.
    pub(super) unresolved: UnresolvedSettings,
    /// Settings of the transport.
    settings: ClientSettings,
    /// Layers of the user, the innermost first.
    layers: Vec<LayerFn>,
}

impl ClientBuilder {
    /// Sets the cluster. Required unless there is a [`connector`](Self::connector).
    ///
    /// A later call replaces an earlier value.
    #[must_use]
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Sets the code that opens connections, in place of TCP and TLS. Addresses and credentials
    /// stay those of the [`config`](Self::config), if any. The address decides whether the
    /// connections count as encrypted: with `http://` and another machine no credentials are sent
    /// over these connections, so write `https://` when the connector does TLS.
    ///
    /// Proxies and TLS settings of the configuration are then not used.
    #[must_use]
    pub fn connector(mut self, connector: Arc<dyn Connect>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// Sets clock, randomness and metrics. Default: the machine's, and metrics of the client's own.
    ///
    /// The client forks the randomness, so that the client's jitter does not change the numbers of
    /// other components.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Sets the field manager of writes that name none. Default: `windlass`.
    ///
    /// Servers accept at most 128 characters.
    #[must_use]
    pub fn field_manager(mut self, manager: &str) -> Self {
        self.manager = Some(manager.to_owned());
        self
    }

    /// Sets the header `User-Agent`. Default: `windlass/<version> (<os>/<architecture>)`.
    #[must_use]
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.user_agent = Some(user_agent);
        self
    }

    /// Sets the cryptography for TLS. Default: ring, or the provider that the crate's features
    /// select.
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets whether HTTP/2 is offered to the server. Default: yes, unless the variable
    /// `DISABLE_HTTP2` is set. Without HTTP/2 each request and each watch has a separate
    /// connection.
    #[must_use]
    pub fn http2(mut self, offer: bool) -> Self {
        self.settings.http2 = Some(offer);
        self
    }

    /// Sets the pings of HTTP/2: a connection that was silent for `interval` is pinged, and closed
    /// when no answer comes within `timeout`. Default: 30 s and 15 s, as in client-go, or the
    /// variables `HTTP2_READ_IDLE_TIMEOUT_SECONDS` and `HTTP2_PING_TIMEOUT_SECONDS`. An `interval`
    /// of zero disables pings.
    #[must_use]
    pub fn http2_pings(mut self, interval: Duration, timeout: Duration) -> Self {
        self.settings.pings = Some((interval, timeout));
        self
    }

    /// Sets the age beyond which a connection gets no new requests; requests under way on the
    /// connection are completed. Each connection's own limit is up to a fifth shorter, at random.
    /// Spreads long-lived clients over the servers behind a load balancer. Default: none, a
    /// connection lives until the server closes the connection.
    #[must_use]
    pub fn max_connection_age(mut self, age: Duration) -> Self {
        self.settings.max_age = Some(age);
        self
    }

    /// Sets the time limit for the head of an answer to a get or a watch; then another connection
    /// is tried. A list has three times that. Writes have all the time of their call, because an
    /// early end would leave the execution of a write unknown. Default: 10 s.
    #[must_use]
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.settings.head = Some(timeout);
        self
    }

    /// Sets the largest answer that is read as a whole, in bytes, decoded. Default: 64 MiB. Streams
    /// have no such limit.
    #[must_use]
    pub fn max_response_size(mut self, bytes: usize) -> Self {
        self.settings.response_limit = Some(bytes);
        self
    }

    /// Sets whether answers in gzip are requested. Default: yes, but never for watches and logs.
    /// API servers compress answers larger than 128 KiB. Worth turning off where the network is
    /// fast and CPU is scarce.
    #[must_use]
    pub fn compression(mut self, ask: bool) -> Self {
        self.settings.gzip = Some(ask);
        self
    }

    /// Wraps each attempt of each request, retries included. Layers added later are further out;
    /// the innermost service sends.
    ///
    /// A layer that makes a new request must keep the extensions of the received request, which
    /// carry deadlines and retries. After an error of a layer the execution of the request is
    /// unknown, so a write that ends in such an error is [`Ambiguous`](ErrorKind::Ambiguous) and a
    /// read is tried again. A layer that knows better returns a [`windlass::Error`](Error): this
    /// error reaches the caller unchanged, and nothing is tried again. A layer should return errors
    /// of the inner service unchanged, or as the source of a new error.
    ///
    /// Layers see decoded answers: gzip is decoded further in.
    ///
    /// ```
    /// # extern crate windlass_client as windlass;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::task::{Context, Poll};
    ///
    /// use tower::{Layer, Service};
    /// use windlass::client::{Client, ClientConfig, HttpRequest};
    ///
    /// /// Counts attempts, and marks them for the audit log.
    /// #[derive(Clone, Default)]
    /// struct Marked(Arc<AtomicUsize>);
    ///
    /// #[derive(Clone)]
    /// struct Marking<S>(S, Arc<AtomicUsize>);
    ///
    /// impl<S> Layer<S> for Marked {
    ///     type Service = Marking<S>;
    ///     fn layer(&self, inner: S) -> Marking<S> {
    ///         Marking(inner, Arc::clone(&self.0))
    ///     }
    /// }
    ///
    /// impl<S: Service<HttpRequest>> Service<HttpRequest> for Marking<S> {
    ///     type Response = S::Response;
    ///     type Error = S::Error;
    ///     type Future = S::Future;
    ///
    ///     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
    ///         self.0.poll_ready(cx)
    ///     }
    ///
    ///     fn call(&mut self, mut request: HttpRequest) -> S::Future {
    ///         let attempt = self.1.fetch_add(1, Ordering::Relaxed);
    ///         request.headers_mut().insert("x-attempt", attempt.into());
    ///         self.0.call(request)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// let config = ClientConfig::new("http://127.0.0.1:8001")?;
    /// let client = Client::builder().config(config).layer(Marked::default()).build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<Stack, Service = S> + Send + 'static,
        S: Service<HttpRequest, Response = HttpResponse, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.layers.push(Box::new(move |inner| {
            BoxCloneSyncService::new(layer.layer(inner).map_err(Into::into))
        }));
        self
    }

    /// Builds the client. No request is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without a cluster, and when certificates are unusable, credentials
    /// would be sent in the clear, or a credential plugin may not run.
    pub fn build(mut self) -> Result<Client, Error> {
        // The variables of the backoff count with a connector as well; those of the transport do
        // not.
        self.unresolved.read_env(&|name| std::env::var(name).ok());
        if let Some(config) = &self.config {
            // Also with a connector: the rules concern the address, regardless of the code that
            // opens the connections.
            config.check()?;
            config.check_exec()?;
        }
        if let Some(connector) = self.connector.take() {
            return Ok(self.build_over(connector));
        }
        let config = self.config.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Config, "a client needs a cluster: give it a ClientConfig")
        })?;
        let mut tuning = Tuning::from_env(|name| std::env::var(name).ok());
        tuning.gzip = config.compression();
        let tuning = self.settings.over(tuning);
        let environment = self.environment.get_or_insert_default().clone();
        // An explicit provider first: the process-wide provider is never read.
        let provider = self.provider.clone().or_else(default_provider);
        let proxy = config.proxy.resolve(&config.server)?;
        let tls = match config.server.scheme_str() {
            // Only `http://` goes without TLS: any other scheme must not send credentials in the
            // clear.
            Some("http") => None,
            _ => Some(Arc::new(tls(config, provider.as_ref(), &environment, tuning.http2)?)),
        };
        let proxy_tls = match &proxy {
            Some(proxy) if proxy.scheme == Scheme::Https => {
                let provider = provider.as_ref().ok_or_else(no_provider)?;
                Some(proxy_config(&config.tls, provider)?)
            }
            _ => None,
        };
        let credentials = Arc::new(Credentials::new(config.auth_source(), environment.clock));
        let via = proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}"));
        let dialer = Dialer {
            host: config.server.host().unwrap_or_default().to_owned(),
            port: config.server.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 }),
            tls: tls.clone(),
            proxy,
            proxy_tls,
            identities: Arc::clone(&credentials) as Arc<dyn IdentitySource>,
            origin: config.origin().to_owned(),
            metrics: environment.metrics,
        };
        Ok(self.assemble(Arc::new(dialer), credentials, tls, tuning, via.unwrap_or_default()))
    }

    /// As [`build`](Self::build) over `connector`, but infallible and without the environment.
    pub(crate) fn build_over(self, connector: Arc<dyn Connect>) -> Client {
        let source = self.config.as_ref().map(ClientConfig::auth_source).unwrap_or_default();
        let clock = self
            .environment
            .as_ref()
            .map(|environment| environment.clock.clone())
            .unwrap_or_default();
        let credentials = Arc::new(Credentials::new(source, clock));
        let gzip = self.config.as_ref().is_none_or(ClientConfig::compression);
        let tuning = self.settings.over(Tuning { gzip, ..Tuning::default() });
        self.assemble(connector, credentials, None, tuning, String::new())
    }

    /// Connects the parts of a client: the pool innermost, then the transport, then the layers.
    fn assemble(
        self,
        connector: Arc<dyn Connect>,
        credentials: Arc<Credentials>,
        tls: Option<Arc<Tls>>,
        tuning: Tuning,
        via: String,
    ) -> Client {
        let environment = self.environment.unwrap_or_default();
        // A fork, so that other users of the generator do not change the client's waits.
        let jitter = environment.rng.fork("client");
        let pool = Pool::new(connector, tuning, environment.clock.clone(), jitter.clone());
        // Rotated credentials close the pool's connections, so credentials must know the pool.
        credentials.concern(&pool, tls.clone());
        let rules = HeaderRules::new(self.config.as_ref().and_then(ClientConfig::cleartext));
        let transport = Transport::new(Arc::clone(&pool), rules.clone());
        let innermost: Stack = BoxCloneSyncService::new(transport);
        let stack = self.layers.into_iter().fold(innermost, |inner, wrap| wrap(inner));
        let (server, namespace, headers) = match self.config {
            Some(config) => (config.server, config.namespace, config.headers),
            None => (Uri::from_static("http://localhost"), "default".to_owned(), HeaderMap::new()),
        };
        // Paths are appended to the base and begin with a slash of their own.
        let base = server.to_string().trim_end_matches('/').to_owned();
        let shared = ClientShared {
            stack,
            hook: OnceLock::new(),
            #[cfg(any(test, feature = "ws"))]
            pool,
            #[cfg(feature = "ws")]
            rules,
            extensions: Mutex::default(),
            credentials,
            rotating: tls.filter(|tls| tls.rotates()),
            base_path_at: base.len() - server.path().trim_end_matches('/').len(),
            base,
            host: server.authority().map(ToString::to_string).unwrap_or_default(),
            via,
            namespace,
            headers,
            user_agent: self.user_agent.unwrap_or_else(user_agent),
            tuning,
            defaults: self.unresolved.defaults(&environment.clock),
            jitter,
            budgets: Mutex::new(Budgets::new(environment.clock.now())),
            slow: Mutex::default(),
            environment,
        };
        let manager = self.manager.as_deref().unwrap_or(DEFAULT_NAME).into();
        let bounds = Arc::default();
        Client {
            shared: Arc::new(shared),
            gate: None,
            manager,
            bounds,
            dry_run: false,
            dry_runs: None,
            is_urgent: false,
            new_server: None,
            is_routine: false,
            observer: None,
        }
    }
}

/// Builds the TLS settings of a cluster; fails early, with the origin of the configuration.
fn tls(
    config: &ClientConfig,
    provider: Option<&Arc<CryptoProvider>>,
    environment: &Environment,
    http2: bool,
) -> Result<Tls, Error> {
    let provider = provider.ok_or_else(no_provider)?;
    config.check_insecure()?;
    if config.tls.insecure {
        tracing::warn!(
            server = %config.server,
            "insecure-skip-tls-verify: anybody on the network can pose as the API server"
        );
    }
    let settings = TlsSettings { http1_only: !http2, ..config.tls.clone() };
    let made = Tls::new(settings, Arc::clone(provider), environment.clock.clone());
    let tls = made.map_err(|error| error.preface(config.origin()))?;
    // A host that is no valid server name fails here and not in each handshake.
    let name = tls.server_name(config.server.host().unwrap_or_default());
    name.map_err(|error| error.preface(config.origin()))?;
    Ok(tls)
}

/// Returns the error of a build without a TLS provider.
fn no_provider() -> Error {
    Error::new(
        ErrorKind::Config,
        "this build has no TLS: enable the feature `ring` or `aws-lc-rs`, or give the client \
         builder a crypto_provider",
    )
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("connector", &self.connector)
            .field("settings", &self.settings)
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}

/// Returns the default of the header `User-Agent`.
fn user_agent() -> HeaderValue {
    let text = format!(
        "{DEFAULT_NAME}/{} ({}/{})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(DEFAULT_NAME))
}
