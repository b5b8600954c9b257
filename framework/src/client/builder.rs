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
use super::dial::Dialer;
use super::pool::Pool;
use super::retry::Budget;
use super::tls::{Tls, default_provider};
use super::transport::{HttpRequest, HttpResponse, Stack, Transport};
use crate::error::{BoxError, Error, ErrorKind};
use crate::seams::Seams;

/// Time of a call that names none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_NAME: &str = "windlass";

type Wrap = Box<dyn FnOnce(Stack) -> Stack + Send>;

/// Configures a [`Client`].
#[derive(Default)]
pub struct ClientBuilder {
    config: Option<ClientConfig>,
    connector: Option<Arc<dyn Connect>>,
    provider: Option<Arc<CryptoProvider>>,
    seams: Option<Seams>,
    manager: Option<String>,
    user_agent: Option<HeaderValue>,
    timeout: Option<Duration>,
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
    /// [`config`](Self::config), if there is one.
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

    /// Total time of a call that names none, with all its retries. Default: 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Cryptography for TLS. Default: ring, or what the crate's features say.
    #[must_use]
    pub fn crypto_provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Wraps each attempt of each request. Layers added later are further out; the innermost
    /// service sends. A layer that makes a request of its own must keep the extensions of the one
    /// that it got: deadlines and retries travel in them.
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
    /// [`ErrorKind::Config`] without a cluster, and when certificates are unusable or credentials
    /// would be sent in the clear.
    pub fn build(mut self) -> Result<Client, Error> {
        if let Some(connector) = self.connector.take() {
            return Ok(self.build_over(connector));
        }
        let config = self.config.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Config, "a client needs a cluster: give it a ClientConfig")
        })?;
        config.check()?;
        let tls = match config.server.scheme_str() {
            Some("http") => None,
            _ => Some(Arc::new(self.tls(config)?)),
        };
        let seams = self.seams.get_or_insert_default().clone();
        let credentials = Arc::new(Credentials::new(config.auth.clone(), seams.clock));
        let rotating = tls.clone().filter(|tls| tls.rotates());
        let dialer = Dialer {
            host: config.server.host().unwrap_or_default().to_owned(),
            port: config.server.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 }),
            tls,
            credentials: Arc::clone(&credentials),
        };
        Ok(self.assemble(Arc::new(dialer), credentials, rotating))
    }

    /// As [`build`](Self::build) over `connector`, which cannot fail.
    pub(crate) fn build_over(self, connector: Arc<dyn Connect>) -> Client {
        let source = self.config.as_ref().map(|config| config.auth.clone()).unwrap_or_default();
        let clock = self.seams.as_ref().map(|seams| seams.clock.clone()).unwrap_or_default();
        self.assemble(connector, Arc::new(Credentials::new(source, clock)), None)
    }

    fn tls(&self, config: &ClientConfig) -> Result<Tls, Error> {
        let provider = self.provider.clone().or_else(default_provider).ok_or_else(|| {
            Error::new(
                ErrorKind::Config,
                "this build has no TLS: enable the feature `ring` or `aws-lc-rs`, or give the \
                 client builder a crypto_provider",
            )
        })?;
        if config.tls.insecure {
            tracing::warn!(
                server = %config.server,
                "insecure-skip-tls-verify: anybody on the network can pose as the API server"
            );
        }
        let tls = Tls::new(config.tls.clone(), provider);
        let with_origin = |error: Error| {
            let origin = config.origin();
            Error::new(ErrorKind::Config, format!("{origin}: TLS cannot be set up")).because(error)
        };
        tls.config(None).map_err(with_origin)?;
        tls.server_name(config.server.host().unwrap_or_default()).map_err(with_origin)?;
        Ok(tls)
    }

    fn assemble(
        self,
        connector: Arc<dyn Connect>,
        credentials: Arc<Credentials>,
        rotating: Option<Arc<Tls>>,
    ) -> Client {
        let seams = self.seams.unwrap_or_default();
        let pool = Pool::new(connector);
        let innermost: Stack = BoxCloneSyncService::new(Transport::new(Arc::clone(&pool)));
        let stack = self.layers.into_iter().fold(innermost, |inner, wrap| wrap(inner));
        let (server, namespace, headers) = match self.config {
            Some(config) => (config.server, config.namespace, config.headers),
            None => (Uri::from_static("http://localhost"), "default".to_owned(), HeaderMap::new()),
        };
        let shared = Shared {
            stack,
            pool,
            credentials,
            rotating,
            base: server.to_string().trim_end_matches('/').to_owned(),
            host: server.authority().map(ToString::to_string).unwrap_or_default(),
            namespace,
            headers,
            user_agent: self.user_agent.unwrap_or_else(user_agent),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            jitter: seams.entropy.fork("client"),
            budget: Mutex::new(Budget::new(seams.clock.now())),
            warned: Mutex::default(),
            discovery: Arc::default(),
            seams,
        };
        let manager = self.manager.as_deref().unwrap_or(DEFAULT_NAME).into();
        Client { shared: Arc::new(shared), gate: None, manager }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("connector", &self.connector)
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
