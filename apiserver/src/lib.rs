//! A Kubernetes API server in a library: for tests, quickstarts and development.
//!
//! It imports nothing of the operator framework: client and server are two independent readings of
//! the Kubernetes API.

pub mod apply;
pub mod auth;
pub mod crd_schema;
pub mod discovery;
pub mod openapi;
pub mod patch;
pub mod rbac;
pub mod served;
pub mod table;
mod tls;
pub mod typed;

use std::net::SocketAddr;

use tokio::io::DuplexStream;

/// Configures an [`ApiServer`].
#[derive(Debug, Default)]
pub struct Builder {
    _todo: (),
}

/// A running API server; cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiServer {
    _todo: (),
}

/// A server that listens on a socket.
#[derive(Debug)]
pub struct Listening {
    /// Where it listens.
    pub addr: SocketAddr,
    /// A kubeconfig for the administrator (client certificate and token, CA inline), as YAML.
    pub kubeconfig: String,
}

#[allow(unused_variables, clippy::unimplemented)]
impl Builder {
    /// Seed of uids, suffixes and tokens. Default: from the operating system.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        unimplemented!()
    }

    /// Wall time starts here (seconds since 1970) and advances with tokio's clock; default: the system's.
    #[must_use]
    pub fn epoch(self, seconds: i64) -> Self {
        unimplemented!()
    }

    /// Stand-ins that report Deployments available. Default: off.
    #[must_use]
    pub fn stand_ins(self, on: bool) -> Self {
        unimplemented!()
    }

    /// More users, in kube-apiserver's CSV format: token,user,uid,"group1,group2".
    #[must_use]
    pub fn tokens(self, csv: &str) -> Self {
        unimplemented!()
    }

    /// Starts it inside the current tokio runtime.
    pub fn start(self) -> ApiServer {
        unimplemented!()
    }
}

#[allow(unused_variables, clippy::unimplemented)]
impl ApiServer {
    /// A server with default settings, to configure.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A connection in memory, as the administrator (`system:masters`).
    pub fn connect(&self) -> std::io::Result<DuplexStream> {
        unimplemented!()
    }

    /// A connection in memory as `user` with `groups`.
    pub fn connect_as(&self, user: &str, groups: &[&str]) -> std::io::Result<DuplexStream> {
        unimplemented!()
    }

    /// Listens with TLS; port 0 picks a free one.
    pub async fn listen(&self, addr: SocketAddr) -> std::io::Result<Listening> {
        unimplemented!()
    }

    /// The newest resourceVersion.
    pub fn revision(&self) -> u64 {
        unimplemented!()
    }

    /// Cuts every connection and forgets the watch history, as a restart does; objects stay.
    pub async fn restart(&self) {
        unimplemented!()
    }

    /// Stops everything.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
}
