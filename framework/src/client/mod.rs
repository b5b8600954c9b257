//! The HTTP client of an API server: paths, credentials, TLS, retries, deadlines and back-pressure.
//!
//! A call becomes one or more attempts (the module `retry` decides). Each attempt passes the layers
//! that the user added and ends at a pool of HTTP/1.1 and HTTP/2 connections. Time comes from the
//! clock of [`Environment`] and randomness from a fork of their entropy, so that a run in memory is
//! reproducible. [`Request`] builds a call to any path; [`Api`] does so for a kind. Not here: the
//! cache of discovery, and typed objects.

mod auth;
mod builder;
mod call;
mod config;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "for code that starts servers"))]
mod new_server;
mod policy;
mod request;
mod secret;
mod transport;

pub use auth::{ExecPlugin, ExecPolicy, InteractiveMode};
pub use builder::ClientBuilder;
#[cfg(feature = "ws")]
pub(crate) use call::Upgraded;
pub use config::{ClientConfig, Impersonation};
pub(crate) use new_server::NewServer;
pub(crate) use policy::InFlightWrites;
pub use policy::{
    AlwaysAllow, Backoff, BackoffFactory, BackoffManager, NeverAllow, NoBackoff, Permit,
    RateLimiter, TokenBucket, UrlBackoff, WriteGate, WritePermit,
};
pub use request::{
    Body, BodyReader, Encoded, LogWarnings, NoWarnings, PatchType, Prepared, RawEvent, RawWatch,
    Request, RequestBody, Response, Warning, WarningHandler, WriteWarnings,
};
pub use crate::resource::Verb;
pub use secret::Secret;
pub use transport::{
    BoxIo, ByteStream, Connect, HttpRequest, HttpResponse, Io, Opened, Opening, ResponseBody, Stack,
};
pub(crate) use transport::{at_once, inflate};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower::layer::layer_fn;

use crate::api::Api;
use crate::discovery::Discovery;
use crate::environment::Environment;
use crate::error::Error;
use crate::resource::{DynamicObject, Resource, ResourceInfo};
use call::Shared;

/// A client of one API server; cheap to clone.
#[derive(Clone)]
pub struct Client {
    /// Connections, credentials and defaults, shared by all handles.
    shared: Arc<Shared>,
    /// Check that every write passes before it is sent.
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
    /// State of a server that this process started; set by the code that started it.
    new_server: Option<Arc<NewServer>>,
    /// Whether writes are periodic and logged under a target of their own, which the default log
    /// level omits.
    is_routine: bool,
}

impl Client {
    /// Reads `KUBECONFIG`, the in-cluster configuration or `~/.kube/config`, whichever exists
    /// first.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when nothing is configured, or it is wrong.
    pub async fn infer() -> Result<Self, Error> {
        Self::new(ClientConfig::infer()?)
    }

    /// Creates a client for the cluster of `config`. No request is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when certificates cannot be read, or
    /// credentials would be sent in the clear.
    pub fn new(config: ClientConfig) -> Result<Self, Error> {
        Self::builder().config(config).build()
    }

    /// Returns a builder, for layers, seams, a connector or a TLS provider of the caller's own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Creates a client that speaks plain HTTP/1.1 over the streams that `connector` opens.
    pub fn over(connector: Arc<dyn Connect>, environment: Environment) -> Self {
        Self::builder().environment(environment).build_over(connector)
    }

    /// Creates a client without a server: every request fails at once. For code that needs a client
    /// but no cluster, such as the printing of an operator's manifests.
    pub fn offline() -> Self {
        Self::builder()
            // The layer answers before a connection is opened, so no call waits or retries.
            .layer(layer_fn(transport::Offline::new))
            .build_over(Arc::new(transport::Nowhere))
    }

    /// Returns the clock, the randomness and the metrics of this client.
    pub fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// Returns the namespace that the client is restricted to, or that of the context, or
    /// `default`.
    pub fn default_namespace(&self) -> &str {
        self.bound_namespace().unwrap_or(&self.shared.namespace)
    }

    /// Returns the API server's host and port, the label of the client's metrics.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// Returns a handle of the same connections whose writes first ask `gate`, instead of an
    /// earlier gate.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn WriteGate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    /// Returns the gate that writes ask before they are sent.
    pub(crate) fn gate(&self) -> Option<&Arc<dyn WriteGate>> {
        self.gate.as_ref()
    }

    /// Returns a handle of the same connections whose requests wait neither for a permit of the
    /// client's limiter nor for its backoff. For requests that must not queue behind all others and
    /// are paced by their caller: leader election.
    pub(crate) fn urgent(&self) -> Self {
        // An election repeats its writes every few seconds, so they are routine as well.
        Self { is_urgent: true, is_routine: true, ..self.clone() }
    }

    /// Returns a handle of the same connections whose writes are logged under
    /// `windlass::client::routine`, a target that the default log level omits.
    pub(crate) fn routine(&self) -> Self {
        Self { is_routine: true, ..self.clone() }
    }

    /// Returns the field manager of writes that name none.
    pub(crate) fn manager(&self) -> &str {
        &self.manager
    }

    /// Returns a handle of the same connections, marked as belonging to a server that this process
    /// started.
    #[cfg(any(test, feature = "local", feature = "testing"))]
    pub(crate) fn of_new_server(self, server: &Arc<NewServer>) -> Self {
        Self { new_server: Some(Arc::clone(server)), ..self }
    }

    /// Returns the state of elections on the server, if this process started the server.
    pub(crate) fn new_server(&self) -> Option<&NewServer> {
        self.new_server.as_deref()
    }

    /// Returns a handle of the same connections whose writes carry `manager` as field manager
    /// unless they name one.
    #[must_use]
    pub fn field_manager(&self, manager: &str) -> Self {
        Self { manager: Arc::from(manager), ..self.clone() }
    }

    /// Returns the API of a kind, in all namespaces.
    pub fn all<K: Resource>(&self) -> Api<K> {
        Api::new(self.clone(), K::static_info(), self.bound_namespace())
    }

    /// Returns the API of a kind in one namespace. For a cluster-scoped kind the namespace is
    /// ignored.
    pub fn namespace<K: Resource>(&self, namespace: &str) -> Api<K> {
        Api::new(self.clone(), K::static_info(), Some(namespace))
    }

    /// Returns the API of a kind that is known at run time; a `namespace` of `None` means all.
    pub fn dynamic(&self, info: ResourceInfo, namespace: Option<&str>) -> Api<DynamicObject> {
        Api::new(self.clone(), Some(info), namespace.or(self.bound_namespace()))
    }

    /// Returns the timeout that the builder was given, which servers receive as well.
    fn asked_timeout(&self) -> Option<Duration> {
        self.shared.defaults.asked_timeout
    }

    /// Creates a backoff manager for one request, unless the handle is urgent.
    fn new_backoff(&self) -> Option<Arc<dyn BackoffManager>> {
        let backoff = self.shared.defaults.backoff.as_ref().filter(|_| !self.is_urgent);
        backoff.map(|make| make())
    }

    /// Returns the media type of bodies that name none.
    fn content_type(&self) -> &str {
        &self.shared.defaults.content_type
    }

    /// Returns the discovery of the kinds that the API server serves. All clones of this client
    /// share its cache.
    pub fn discovery(&self) -> Discovery {
        Discovery::new(self.clone(), Arc::clone(&self.shared.discovery))
    }

    /// Sends a request and reads the whole answer, of at most 64 MiB; error answers become errors.
    ///
    /// # Errors
    /// By the answer's status; [`Ambiguous`](crate::ErrorKind::Ambiguous) when it is unknown
    /// whether a write was executed; [`Timeout`](crate::ErrorKind::Timeout),
    /// [`Connect`](crate::ErrorKind::Connect) or [`Transport`](crate::ErrorKind::Transport) without
    /// an answer; [`NotLeader`](crate::ErrorKind::NotLeader) when the gate refused.
    /// # Cancel safety
    /// Dropping the future cancels the request; a write may have been executed.
    pub async fn send(&self, request: Prepared) -> Result<Response, Error> {
        call::send(self, request).await
    }

    /// Sends a request and streams the answer's body; error answers become errors.
    ///
    /// The deadline covers the time up to the answer's head, not the stream.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn stream(&self, request: Prepared) -> Result<ByteStream, Error> {
        call::stream(self, request).await
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
pub(crate) mod tests;
