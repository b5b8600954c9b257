//! The HTTP client of an API server: paths, credentials, TLS, retries, deadlines and back-pressure.
//!
//! A call becomes one or more attempts (the module `retry` decides). Each attempt passes the layers
//! that the user added and ends at a pool of HTTP/1.1 and HTTP/2 connections. Time comes from the
//! clock of [`Environment`] and randomness from a fork of the environment's generator, so that a
//! run in memory is reproducible. Not included: the cache of discovery, and typed objects.
//!
//! A request has these shapes on the way:
//!
//! | shape | contents | made by |
//! |---|---|---|
//! | object, intent | a value of the caller | the caller |
//! | [`Prepared`] | verb, path, query, headers, body | [`Request`] for any path, [`Api`] for a kind |
//! | `Call` | a `Prepared`, the deadline and the attempts | [`Client::send`], [`Client::stream`] |
//! | [`HttpRequest`] | an attempt with credentials, in the view of layers | `Call` |
//!
//! [`Api`]: crate::api::Api

// DESIGN.md, 116: The client is layers of folders

mod auth;
mod builder;
mod call;
mod config;
mod new_server;
mod policy;
mod request;
mod secret;
#[cfg(any(test, feature = "test-support"))]
#[doc(hidden)]
pub mod test_support;
mod transport;

pub use auth::{ExecPlugin, ExecPolicy, InteractiveMode};
pub use builder::ClientBuilder;
#[cfg(feature = "ws")]
pub(crate) use call::Upgraded;
#[doc(hidden)]
pub use call::{
    BrokenExchange, DryRunObserver, DryRunResponse, ExchangeEnd, ExchangeHook, ObservedRequest,
    RequestObserver, RequestOrigin, ResponseFuture, SentRequest,
};
pub use config::{ClientConfig, Impersonation};
#[doc(hidden)]
pub use new_server::NewServer;
#[doc(hidden)]
pub use policy::InFlightWrites;
pub use policy::{
    AlwaysAllow, Backoff, BackoffFactory, BackoffManager, NeverAllow, NoBackoff, Permit,
    RequestLimiter, TokenBucket, UrlBackoff, WriteGate, WritePermit,
};
#[doc(hidden)]
pub use request::{Address, at_once};
pub use request::{
    Body, ByteStream, Encoded, LogWarnings, NoWarnings, PatchType, Prepared, RawEvent, RawWatch,
    Request, Response, Warning, WarningHandler, WriteWarnings,
};
pub use secret::SecretString;
#[doc(hidden)]
pub use transport::inflate;
pub use transport::{
    BodyReader, BoxIo, Connect, ConnectFuture, ConnectedStream, HttpRequest, HttpResponse, Io,
    RequestBody, ResponseBody, Stack,
};
pub use windlass_core::resource::Verb;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tower::layer::layer_fn;

use call::ClientShared;
use windlass_core::environment::Environment;
use windlass_core::error::Error;

/// A client of one API server; cheap to clone.
///
/// Clones and the handles that [`field_manager`](Self::field_manager), [`gated`](Self::gated) and
/// others return share connections, credentials, limits and the cache of discovery; each has
/// separate settings. Dropping the last handle closes idle connections.
///
/// | setting | default | set by |
/// |---|---|---|
/// | total time of a call | 30 s | [`ClientBuilder::timeout`] |
/// | retries | 10, client-go's number | [`Request::max_retries`] |
/// | longest `Retry-After` that is waited for | 60 s | — |
/// | largest answer read as a whole | 64 MiB | [`ClientBuilder::max_response_size`] |
/// | rate limit | none | [`ClientBuilder::qps`] |
/// | field manager | `windlass` | [`ClientBuilder::field_manager`] |
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass::client::Client;
///
/// # async fn example() -> Result<(), windlass::Error> {
/// let client = Client::infer().await?;
/// let pods = client.namespace::<Pod>(client.default_namespace()).list().await?;
/// println!("{} Pods on {}", pods.items.len(), client.host());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    /// Connections, credentials and defaults, shared by all handles.
    shared: Arc<ClientShared>,
    /// Check that every write passes before sending.
    gate: Option<Arc<dyn WriteGate>>,
    /// Field manager of writes that name none.
    manager: Arc<str>,
    /// Namespaces that this handle is restricted to, the latest last. Two different namespaces
    /// allow no namespaced request.
    bounds: Arc<[Arc<str>]>,
    /// Whether writes are sent as dry runs.
    dry_run: bool,
    /// Whether requests bypass the rate limiter and the backoff that other handles share.
    is_urgent: bool,
    /// State of a server that this process started; set by the code that started the server.
    new_server: Option<Arc<NewServer>>,
    /// Whether writes are periodic and logged under a target of their own, which the default log
    /// level omits.
    is_routine: bool,
    /// Listener for answered requests; of tests.
    observer: Option<Arc<dyn RequestObserver>>,
    /// Listener for the answers to dry runs.
    dry_runs: Option<Arc<dyn DryRunObserver>>,
}

impl Client {
    /// Reads `KUBECONFIG`, the in-cluster configuration or `~/.kube/config`, whichever exists
    /// first.
    ///
    /// The order and the treatment of mistakes are in the table of [`ClientConfig`]. Files are read
    /// with blocking calls.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when nothing is configured, or the
    /// configuration is wrong.
    /// # Cancel safety
    /// Safe: the call sends nothing and waits for nothing.
    pub async fn infer() -> Result<Self, Error> {
        Self::new(ClientConfig::infer()?)
    }

    /// Creates a client for the cluster of `config`. No request is sent yet.
    ///
    /// Needs no runtime yet; connections are opened by the first request.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::{Client, ClientConfig};
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// let config = ClientConfig::from_file("/etc/shop/kubeconfig", Some("prod"))?;
    /// let client = Client::new(config)?;
    /// assert!(!client.host().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when certificates cannot be read, or
    /// credentials would be sent in the clear.
    pub fn new(config: ClientConfig) -> Result<Self, Error> {
        Self::builder().config(config).build()
    }

    /// Returns a builder, for layers, a connector or a TLS provider of the caller's own.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use std::time::Duration;
    /// use windlass::client::{Client, ClientConfig};
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// let client = Client::builder()
    ///     .config(ClientConfig::infer()?)
    ///     .field_manager("shop-operator")
    ///     .timeout(Duration::from_secs(10))
    ///     .qps(50.0)
    ///     .burst(100)
    ///     .build()?;
    /// # let _ = client;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Creates a client that speaks plain HTTP/1.1 over the streams that `connector` opens.
    ///
    /// No credentials are sent, and the default namespace is `default`. For tests and for tunnels
    /// of the program's own.
    pub fn over(connector: Arc<dyn Connect>, environment: Environment) -> Self {
        Self::builder().environment(environment).build_over(connector)
    }

    /// Creates a client without a server: every request fails at once. For code that needs a client
    /// but no cluster, such as the printing of an operator's manifests.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::Client;
    ///
    /// let client = Client::offline();
    /// assert_eq!(client.default_namespace(), "default");
    /// ```
    pub fn offline() -> Self {
        Self::builder()
            // The layer answers before a connection is opened, so no call waits or retries.
            .layer(layer_fn(transport::Offline::new))
            .build_over(Arc::new(transport::Nowhere))
    }

    /// Returns the clock, the randomness and the metrics of this client.
    ///
    /// Components that work with this client take their clock, randomness and metrics from here.
    pub fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// Returns the namespace that the client is restricted to, or that of the context, or
    /// `default`.
    ///
    /// For programs that act where the user's context points; [`Client::all`] does not use this
    /// namespace.
    pub fn default_namespace(&self) -> &str {
        self.bound_namespace().unwrap_or(&self.shared.namespace)
    }

    /// Returns the API server's host and port, the label of the client's metrics.
    ///
    /// Without the scheme: `10.0.0.1:6443`.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// Returns a handle of the same connections whose writes first ask `gate`, instead of an
    /// earlier gate.
    ///
    /// Reads pass without a question. A refused write was not sent.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn WriteGate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    /// Returns the gate that writes ask before they are sent.
    #[doc(hidden)]
    pub fn gate(&self) -> Option<&Arc<dyn WriteGate>> {
        self.gate.as_ref()
    }

    /// Returns a handle of the same connections whose requests wait neither for a permit of the
    /// client's limiter nor for the client's backoff. For requests that must not queue behind all
    /// others and are paced by their caller: leader election.
    #[doc(hidden)]
    pub fn urgent(&self) -> Self {
        // An election repeats writes every few seconds, so they are routine as well.
        Self { is_urgent: true, is_routine: true, ..self.clone() }
    }

    /// Returns a handle of the same connections whose writes are logged under
    /// `windlass_client::routine`, a target that the default log level omits.
    #[doc(hidden)]
    pub fn routine(&self) -> Self {
        Self { is_routine: true, ..self.clone() }
    }

    /// Returns the field manager of writes that name none.
    #[doc(hidden)]
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Returns a handle of the same connections, marked as belonging to a server that this process
    /// started. Only crates that start servers have the feature: an election on a client that is
    /// marked by mistake does not wait for a holder that may hang.
    #[doc(hidden)]
    #[cfg(any(test, feature = "own-server"))]
    pub fn of_new_server(self, server: &Arc<NewServer>) -> Self {
        Self { new_server: Some(Arc::clone(server)), ..self }
    }

    /// Returns a handle of the same connections whose requests are passed to `observer`.
    #[doc(hidden)]
    #[must_use]
    pub fn observed(&self, observer: Arc<dyn RequestObserver>) -> Self {
        Self { observer: Some(observer), ..self.clone() }
    }

    /// Whether both handles share connections and credentials.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns a handle with the settings of `self`, and with connections and credentials of
    /// `other`.
    #[doc(hidden)]
    #[must_use]
    pub fn over_connections_of(&self, other: &Self) -> Self {
        Self { shared: Arc::clone(&other.shared), ..self.clone() }
    }

    /// Returns the state of elections on the server, if this process started the server.
    #[doc(hidden)]
    pub fn new_server(&self) -> Option<&NewServer> {
        self.new_server.as_deref()
    }

    /// Returns a handle of the same connections whose writes carry `manager` as field manager
    /// unless they name a manager.
    ///
    /// The API server records the manager as the owner of written fields; at most 128 characters.
    /// [`Write::manager`](crate::api::Write::manager) overrides it for a single write.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # fn example(client: windlass::client::Client) {
    /// let client = client.field_manager("shop-operator");
    /// # let _ = client;
    /// # }
    /// ```
    #[must_use]
    pub fn field_manager(&self, manager: &str) -> Self {
        Self { manager: Arc::from(manager), ..self.clone() }
    }

    /// Returns the timeout that the builder was given, which servers receive as well.
    pub(crate) fn asked_timeout(&self) -> Option<Duration> {
        self.shared.defaults.asked_timeout
    }

    /// Creates a backoff manager for a single request, unless the handle is urgent.
    pub(crate) fn new_backoff(&self) -> Option<Arc<dyn BackoffManager>> {
        let backoff = self.shared.defaults.backoff.as_ref().filter(|_| !self.is_urgent);
        backoff.map(|make| make())
    }

    /// Returns the media type of bodies that name none.
    fn content_type(&self) -> &str {
        &self.shared.defaults.content_type
    }

    /// Returns the value of this type that all handles of the client share; the first call creates
    /// it. For state of modules above the client, whose types this module does not know.
    pub(crate) fn extension<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        Arc::clone(self.shared.extensions.lock().get_or_insert_default::<Arc<T>>())
    }

    /// Sends a request and reads the whole answer, of at most 64 MiB; error answers become errors.
    ///
    /// The deadline covers all attempts and the waits between them. Which failures are tried again
    /// is decided by the verb and by [`Prepared::repeatable`]; reads and applies always are.
    ///
    /// # Errors
    /// By the answer's status; [`Ambiguous`](windlass_core::ErrorKind::Ambiguous) when the
    /// execution of a write is unknown; [`Timeout`](windlass_core::ErrorKind::Timeout),
    /// [`Connect`](windlass_core::ErrorKind::Connect) or
    /// [`Transport`](windlass_core::ErrorKind::Transport) without an answer;
    /// [`NotLeader`](windlass_core::ErrorKind::NotLeader) when the gate refused.
    /// # Cancel safety
    /// Dropping the future cancels the request; a write may have been executed.
    pub async fn send(&self, request: Prepared) -> Result<Response, Error> {
        call::send(self, request).await
    }

    /// Sends a request and streams the answer's body; error answers become errors.
    ///
    /// The deadline covers the time up to the answer's head, not the stream.
    ///
    /// [`ByteStream`] describes the limits of the time between two chunks.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn stream(&self, request: Prepared) -> Result<ByteStream, Error> {
        call::stream(self, request).await
    }

    /// Sends the request of a watch. The watch is empty when the server was reached but did not
    /// answer, or the connection broke.
    pub(crate) async fn watch(&self, request: Prepared) -> Result<RawWatch, Error> {
        let what = request.what.clone();
        Ok(RawWatch::new(call::watch(self, request).await?, what))
    }

    /// Returns the absolute URI of a request, after the restrictions of this handle.
    fn uri(&self, request: Prepared) -> Result<Uri, Error> {
        call::uri(self, &self.apply_restrictions(request)?)
    }

    /// Returns a `curl` command line for a request, after the restrictions of this handle.
    fn curl(&self, request: Prepared) -> Result<String, Error> {
        call::curl(self, &self.apply_restrictions(request)?)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("host", &self.shared.host)
            .field("namespace", &self.shared.namespace)
            .field("manager", &self.manager)
            .field("gate", &self.gate)
            .field("bounds", &self.bounds)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
