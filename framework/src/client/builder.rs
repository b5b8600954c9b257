//! Puts a client together.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Uri};
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use super::Client;
use super::auth::Credentials;
use super::call::Shared;
use super::config::ClientConfig;
use super::connect::Connect;
use super::defaults::Wishes;
use super::dial::Dialer;
use super::header_rules::HeaderRules;
use super::pool::Pool;
use super::proxy::Scheme;
use super::retry::Budgets;
use super::tls::{Tls, TlsSettings, default_provider, proxy_config};
use super::transport::{HttpRequest, HttpResponse, Stack, Transport};
use super::tuning::Tuning;
use crate::error::{BoxError, Error, ErrorKind};
use crate::seams::Seams;

const DEFAULT_NAME: &str = "windlass";

type Wrap = Box<dyn FnOnce(Stack) -> Stack + Send>;

/// What was said about the transport; what was not is the environment's to say, or a default.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    http2: Option<bool>,
    pings: Option<(Duration, Duration)>,
    max_age: Option<Duration>,
    head: Option<Duration>,
    answer_limit: Option<usize>,
    gzip: Option<bool>,
}

impl Settings {
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
            list_head: self.head.map_or(tuning.list_head, |head| head * 3),
            answer_limit: self.answer_limit.unwrap_or(tuning.answer_limit),
            gzip: self.gzip.unwrap_or(tuning.gzip),
        }
    }
}

/// Configures a [`Client`].
#[derive(Default)]
pub struct ClientBuilder {
    config: Option<ClientConfig>,
    connector: Option<Arc<dyn Connect>>,
    provider: Option<Arc<CryptoProvider>>,
    seams: Option<Seams>,
    manager: Option<String>,
    user_agent: Option<HeaderValue>,
    pub(super) wishes: Wishes,
    settings: Settings,
    layers: Vec<Wrap>,
}

impl ClientBuilder {
    /// The cluster. Needed unless there is a [`connector`](Self::connector).
    #[must_use]
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Opens connections instead of TCP and TLS; addresses and credentials stay those of the
    /// [`config`](Self::config), if there is one. The address says whether the connections are
    /// encrypted: for `http://` and another machine no credentials are sent over them, so write
    /// `https://` when the connector does TLS by itself.
    #[must_use]
    pub fn connector(mut self, connector: Arc<dyn Connect>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// Clock, randomness and metrics. Default: the machine's, and metrics of the client's own.
    #[must_use]
    pub fn seams(mut self, seams: Seams) -> Self {
        self.seams = Some(seams);
        self
    }

    /// Field manager of writes that name none. Default: `windlass`.
    #[must_use]
    pub fn field_manager(mut self, manager: &str) -> Self {
        self.manager = Some(manager.to_owned());
        self
    }

    /// What the client calls itself. Default: `windlass/<version> (<os>/<architecture>)`.
    #[must_use]
    pub fn user_agent(mut self, user_agent: HeaderValue) -> Self {
        self.user_agent = Some(user_agent);
        self
    }

    /// Cryptography for TLS. Default: ring, or what the crate's features say.
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Offer HTTP/2 to the server? Default: yes, unless the variable `DISABLE_HTTP2` says otherwise.
    /// Without it each request and each watch has a connection of its own.
    #[must_use]
    pub fn http2(mut self, offer: bool) -> Self {
        self.settings.http2 = Some(offer);
        self
    }

    /// Pings an HTTP/2 connection that was silent for `interval`, and gives it up when no answer comes
    /// within `timeout`. Default: 30 s and 15 s, as in client-go, or what the variables
    /// `HTTP2_READ_IDLE_TIMEOUT_SECONDS` and `HTTP2_PING_TIMEOUT_SECONDS` say. An `interval` of zero
    /// is no pings.
    #[must_use]
    pub fn http2_pings(mut self, interval: Duration, timeout: Duration) -> Self {
        self.settings.pings = Some((interval, timeout));
        self
    }

    /// Connections older than this get no new requests; those that they carry end in peace. Each
    /// one's own age is up to a fifth shorter, at random. Spreads long-lived clients over the servers
    /// behind a load balancer. Default: none, a connection lives for as long as its server lets it.
    #[must_use]
    pub fn max_connection_age(mut self, age: Duration) -> Self {
        self.settings.max_age = Some(age);
        self
    }

    /// Time in which the head of an answer to a get or a watch must come before another connection is
    /// tried; a list has three times that. Writes have all the time of their call, because giving up
    /// early leaves their fate unknown. Default: 10 s.
    #[must_use]
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.settings.head = Some(timeout);
        self
    }

    /// Largest answer that is read as a whole, in bytes, decoded. Default: 64 MiB. Streams have no
    /// such limit.
    #[must_use]
    pub fn max_answer(mut self, bytes: usize) -> Self {
        self.settings.answer_limit = Some(bytes);
        self
    }

    /// Ask for answers in gzip? Default: yes, but never for watches and logs. API servers compress
    /// what is larger than 128 KiB. Worth turning off where the network is fast and CPU is dear.
    #[must_use]
    pub fn compression(mut self, ask: bool) -> Self {
        self.settings.gzip = Some(ask);
        self
    }

    /// Wraps each attempt of each request, retries included. Layers added later are further out; the
    /// innermost service sends.
    ///
    /// A layer that makes a request of its own must keep the extensions of the one that it got:
    /// deadlines and retries travel in them. An error of a layer leaves the fate of the request in
    /// doubt, so a write that ends in one is [`Ambiguous`](ErrorKind::Ambiguous) and a read is tried
    /// again. A layer that knows better returns a [`windlass::Error`](Error): it reaches the caller
    /// as it is, and nothing is tried again. Errors of the inner service should be handed on as they
    /// are, or as a source.
    ///
    /// Answers pass layers in plain: gzip is decoded further in.
    ///
    /// ```
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

    /// The client. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without a cluster, and when certificates are unusable, credentials
    /// would be sent in the clear, or a credential plugin may not run.
    pub fn build(mut self) -> Result<Client, Error> {
        self.wishes.read_env(&|name| std::env::var(name).ok());
        if let Some(config) = &self.config {
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
        let seams = self.seams.get_or_insert_default().clone();
        let provider = self.provider.clone().or_else(default_provider);
        let proxy = config.proxy.resolve(&config.server)?;
        let tls = match config.server.scheme_str() {
            Some("http") => None,
            _ => Some(Arc::new(tls(config, provider.as_ref(), &seams, tuning.http2)?)),
        };
        let proxy_tls = match &proxy {
            Some(proxy) if proxy.scheme == Scheme::Https => {
                let provider = provider.as_ref().ok_or_else(no_provider)?;
                Some(proxy_config(&config.tls, provider)?)
            }
            _ => None,
        };
        let credentials = Arc::new(Credentials::new(config.auth_source(), seams.clock));
        let via = proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}"));
        let dialer = Dialer {
            host: config.server.host().unwrap_or_default().to_owned(),
            port: config.server.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 }),
            tls: tls.clone(),
            proxy,
            proxy_tls,
            credentials: Arc::clone(&credentials),
            origin: config.origin().to_owned(),
            metrics: seams.metrics,
        };
        Ok(self.assemble(Arc::new(dialer), credentials, tls, tuning, via.unwrap_or_default()))
    }

    /// As [`build`](Self::build) over `connector`, which cannot fail.
    pub(crate) fn build_over(self, connector: Arc<dyn Connect>) -> Client {
        let source = self.config.as_ref().map(ClientConfig::auth_source).unwrap_or_default();
        let clock = self.seams.as_ref().map(|seams| seams.clock.clone()).unwrap_or_default();
        let credentials = Arc::new(Credentials::new(source, clock));
        let gzip = self.config.as_ref().is_none_or(ClientConfig::compression);
        let tuning = self.settings.over(Tuning { gzip, ..Tuning::default() });
        self.assemble(connector, credentials, None, tuning, String::new())
    }

    fn assemble(
        self,
        connector: Arc<dyn Connect>,
        credentials: Arc<Credentials>,
        tls: Option<Arc<Tls>>,
        tuning: Tuning,
        via: String,
    ) -> Client {
        let seams = self.seams.unwrap_or_default();
        let jitter = seams.entropy.fork("client");
        let pool = Pool::new(connector, tuning, seams.clock.clone(), jitter.clone());
        credentials.concern(&pool, tls.clone());
        let rules = HeaderRules::of(self.config.as_ref());
        let transport = Transport::new(Arc::clone(&pool), rules.clone());
        let innermost: Stack = BoxCloneSyncService::new(transport);
        let stack = self.layers.into_iter().fold(innermost, |inner, wrap| wrap(inner));
        let (server, namespace, headers) = match self.config {
            Some(config) => (config.server, config.namespace, config.headers),
            None => (Uri::from_static("http://localhost"), "default".to_owned(), HeaderMap::new()),
        };
        let base = server.to_string().trim_end_matches('/').to_owned();
        let shared = Shared {
            stack,
            #[cfg(any(test, feature = "ws"))]
            pool,
            #[cfg(feature = "ws")]
            rules,
            discovery: Arc::default(),
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
            defaults: self.wishes.defaults(&seams.clock),
            jitter,
            budgets: Mutex::new(Budgets::new(seams.clock.now())),
            slow: Mutex::default(),
            seams,
        };
        let manager = self.manager.as_deref().unwrap_or(DEFAULT_NAME).into();
        let bounds = Arc::default();
        Client {
            shared: Arc::new(shared),
            gate: None,
            manager,
            bounds,
            dry_run: false,
            is_urgent: false,
            new_server: None,
            is_routine: false,
        }
    }
}

fn tls(
    config: &ClientConfig,
    provider: Option<&Arc<CryptoProvider>>,
    seams: &Seams,
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
    let made = Tls::new(settings, Arc::clone(provider), seams.clock.clone());
    let tls = made.map_err(|error| error.preface(config.origin()))?;
    let name = tls.server_name(config.server.host().unwrap_or_default());
    name.map_err(|error| error.preface(config.origin()))?;
    Ok(tls)
}

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

fn user_agent() -> HeaderValue {
    let text = format!(
        "{DEFAULT_NAME}/{} ({}/{})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(DEFAULT_NAME))
}
