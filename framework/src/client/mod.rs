//! Sends one request well: addressing, credentials, TLS, retries, deadlines, back-pressure.
//!
//! A call becomes one or more attempts (`retry` decides), each attempt goes through the
//! layers that a user added and ends at a pool of HTTP/1.1 and HTTP/2 connections. Time comes from
//! the seams' clock and randomness from a fork of their entropy, so a run in memory repeats itself.
//! [`Request`] builds a call to any path; [`Api`] does it for a kind. Not here: the caching of
//! discovery, and objects with types.

mod attempt;
mod auth;
mod backoff;
mod body;
mod bounds;
mod brake;
mod builder;
mod call;
mod config;
mod connect;
mod defaults;
mod dial;
mod drive;
mod exec;
mod flights;
mod gate;
mod gzip;
mod header_rules;
mod limit;
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "for code that starts servers"))]
mod new_server;
mod payload;
mod place;
mod pool;
mod prepared;
mod proxy;
mod report;
mod request;
mod response;
mod retry;
mod secret;
mod stream;
mod tls;
mod trace;
mod transport;
mod tuning;
#[cfg(feature = "ws")]
mod upgrade;
mod warning;
mod within;

pub use backoff::{Backoff, BackoffFactory, BackoffManager, NoBackoff, UrlBackoff};
pub use builder::ClientBuilder;
pub use config::{ClientConfig, Impersonation};
pub use connect::{BoxIo, Connect, Io, Opened, Opening};
pub use exec::{ExecPlugin, ExecPolicy, InteractiveMode};
pub(crate) use flights::Flights;
pub use flights::LetOut;
pub use gate::WriteGate;
pub(crate) use gzip::inflate;
pub use limit::{AlwaysAllow, NeverAllow, Permit, RateLimiter, TokenBucket};
pub(crate) use new_server::NewServer;
pub use payload::{BodyReader, RequestBody};
pub use prepared::{Prepared, Verb};
pub use request::{Body, Encoded, PatchType, RawEvent, RawWatch, Request};
pub use response::Response;
pub use secret::Secret;
pub use stream::ByteStream;
pub(crate) use stream::at_once;
pub use transport::{HttpRequest, HttpResponse, ResponseBody, Stack};
pub use warning::{LogWarnings, NoWarnings, Warning, WarningHandler, WriteWarnings};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower::layer::layer_fn;

use crate::api::Api;
use crate::discovery::Discovery;
use crate::error::Error;
use crate::resource::{DynamicObject, Resource, ResourceInfo};
use crate::seams::Seams;
use call::Shared;
#[cfg(feature = "ws")]
pub(crate) use upgrade::Upgraded;

/// A connection to one API server; cheap to clone.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    gate: Option<Arc<dyn WriteGate>>,
    manager: Arc<str>,
    /// Namespaces that it is bound to, the latest last; several let nothing namespaced pass.
    bounds: Arc<[Arc<str>]>,
    dry_run: bool,
    /// Waits neither for the limiter nor for the backoff that other handles share.
    is_urgent: bool,
    /// Set by the code that started the server.
    new_server: Option<Arc<NewServer>>,
    /// Its writes come by themselves, again and again: people look at them only when they look for them.
    is_routine: bool,
}

impl Client {
    /// Reads `KUBECONFIG`, the in-cluster configuration or `~/.kube/config`, the first that is there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when nothing is configured, or it is wrong.
    pub async fn infer() -> Result<Self, Error> {
        Self::new(ClientConfig::infer()?)
    }

    /// A client for the cluster that `config` names. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when certificates cannot be read, or
    /// credentials would be sent in the clear.
    pub fn new(config: ClientConfig) -> Result<Self, Error> {
        Self::builder().config(config).build()
    }

    /// For layers, seams, a connector or a TLS provider of one's own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client that speaks plain HTTP/1.1 over the streams that `connector` opens.
    pub fn over(connector: Arc<dyn Connect>, seams: Seams) -> Self {
        Self::builder().seams(seams).build_over(connector)
    }

    /// A client that reaches nothing: every request fails at once. For what needs a client but no
    /// cluster, such as printing an operator's manifests.
    pub fn offline() -> Self {
        Self::builder()
            .layer(layer_fn(connect::Offline::new))
            .build_over(Arc::new(connect::Nowhere))
    }

    /// Clock, randomness and metrics that this client uses.
    pub fn seams(&self) -> &Seams {
        &self.shared.seams
    }

    /// Namespace that the client is bound to, or of the context, or `default`.
    pub fn default_namespace(&self) -> &str {
        self.bound_namespace().unwrap_or(&self.shared.namespace)
    }

    /// The API server's host and port, as metrics name it.
    pub fn host(&self) -> &str {
        &self.shared.host
    }

    /// The same connection; every write first asks `gate`, and no longer an earlier gate.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn WriteGate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    /// What its writes ask first.
    pub(crate) fn gate(&self) -> Option<&Arc<dyn WriteGate>> {
        self.gate.as_ref()
    }

    /// The same connection; requests wait for no permit of the client's limiter and not for its
    /// backoff. For the few that must not queue behind all others, and pace themselves: elections.
    pub(crate) fn urgent(&self) -> Self {
        Self { is_urgent: true, is_routine: true, ..self.clone() }
    }

    /// The same connection; its writes are logged under `windlass::client::routine`, which the first
    /// screen leaves out.
    pub(crate) fn routine(&self) -> Self {
        Self { is_routine: true, ..self.clone() }
    }

    /// The field manager of writes that name none.
    pub(crate) fn manager(&self) -> &str {
        &self.manager
    }

    /// The same connection, to a server that this process started.
    #[cfg(any(test, feature = "local", feature = "testing"))]
    pub(crate) fn of_new_server(self, server: &Arc<NewServer>) -> Self {
        Self { new_server: Some(Arc::clone(server)), ..self }
    }

    /// What is known of elections on its server, when this process started that.
    pub(crate) fn new_server(&self) -> Option<&NewServer> {
        self.new_server.as_deref()
    }

    /// The same connection; writes carry `manager` as field manager unless they name one.
    #[must_use]
    pub fn field_manager(&self, manager: &str) -> Self {
        Self { manager: Arc::from(manager), ..self.clone() }
    }

    /// All objects of a kind, in all namespaces.
    pub fn all<K: Resource>(&self) -> Api<K> {
        Api::new(self.clone(), K::static_info(), self.bound_namespace())
    }

    /// Objects of a kind in one namespace. For a cluster-scoped kind the namespace does not count.
    pub fn namespace<K: Resource>(&self, namespace: &str) -> Api<K> {
        Api::new(self.clone(), K::static_info(), Some(namespace))
    }

    /// Objects of a kind that is known at run time; `namespace` `None` means all.
    pub fn dynamic(&self, info: ResourceInfo, namespace: Option<&str>) -> Api<DynamicObject> {
        Api::new(self.clone(), Some(info), namespace.or(self.bound_namespace()))
    }

    fn asked_timeout(&self) -> Option<Duration> {
        self.shared.defaults.asked_timeout
    }

    /// A backoff manager for one request.
    fn new_backoff(&self) -> Option<Arc<dyn BackoffManager>> {
        let backoff = self.shared.defaults.backoff.as_ref().filter(|_| !self.is_urgent);
        backoff.map(|make| make())
    }

    fn content_type(&self) -> &str {
        &self.shared.defaults.content_type
    }

    /// What the API server serves; all handles of this client and its clones share what was read.
    pub fn discovery(&self) -> Discovery {
        Discovery::new(self.clone(), Arc::clone(&self.shared.discovery))
    }

    /// Sends a request and reads the whole answer, of at most 64 MiB; error answers become errors.
    ///
    /// # Errors
    /// By the answer's status; [`Ambiguous`](crate::ErrorKind::Ambiguous) when a write's fate is
    /// unknown; [`Timeout`](crate::ErrorKind::Timeout), [`Connect`](crate::ErrorKind::Connect) or
    /// [`Transport`](crate::ErrorKind::Transport) without an answer;
    /// [`NotLeader`](crate::ErrorKind::NotLeader) when the gate refused.
    /// # Cancel safety
    /// Dropping it cancels the request; a write may have been executed.
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
    /// Dropping it cancels the request.
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
