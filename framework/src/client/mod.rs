//! Sends one request well: addressing, credentials, TLS, retries, deadlines, back-pressure.

mod connect;
mod gate;
mod request;
mod stream;

pub use connect::{BoxIo, Connect, Io};
pub use gate::WriteGate;
pub use request::{Request, Response, Verb};
pub use stream::ByteStream;

use std::sync::Arc;

use crate::api::Api;
use crate::error::Error;
use crate::resource::{DynamicObject, Resource, ResourceInfo};
use crate::seams::Seams;

/// A connection to one API server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    _todo: (),
}

#[allow(unused_variables, clippy::unimplemented)]
impl Client {
    /// Reads `KUBECONFIG`, `~/.kube/config` or the in-cluster configuration.
    pub async fn infer() -> Result<Self, Error> {
        unimplemented!()
    }

    /// A client that speaks plain HTTP/1.1 over the streams that `connector` opens.
    pub fn over(connector: Arc<dyn Connect>, seams: Seams) -> Self {
        unimplemented!()
    }

    /// Clock, randomness and metrics that this client uses.
    pub fn seams(&self) -> &Seams {
        unimplemented!()
    }

    /// Namespace of the context, or `default`.
    pub fn default_namespace(&self) -> &str {
        unimplemented!()
    }

    /// The same connection; every write first asks `gate`.
    #[must_use]
    pub fn gated(&self, gate: Arc<dyn WriteGate>) -> Self {
        unimplemented!()
    }

    /// The same connection; writes carry `manager` as field manager unless they name one.
    #[must_use]
    pub fn field_manager(&self, manager: &str) -> Self {
        unimplemented!()
    }

    /// All objects of a kind, in all namespaces.
    pub fn all<K: Resource>(&self) -> Api<K> {
        unimplemented!()
    }

    /// Objects of a kind in one namespace.
    pub fn namespace<K: Resource>(&self, namespace: &str) -> Api<K> {
        unimplemented!()
    }

    /// Objects of a kind that is known at run time; `namespace` `None` means all.
    pub fn dynamic(&self, info: ResourceInfo, namespace: Option<&str>) -> Api<DynamicObject> {
        unimplemented!()
    }

    /// Sends a request and reads the whole answer; error answers become errors.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        unimplemented!()
    }

    /// Sends a request and streams the answer's body; error answers become errors.
    pub async fn stream(&self, request: Request) -> Result<ByteStream, Error> {
        unimplemented!()
    }
}
