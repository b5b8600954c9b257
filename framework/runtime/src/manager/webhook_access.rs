//! Connections to the webhooks of an operator outside of a cluster: through memory, or at a URL.

// DESIGN.md, 204: Outside of a cluster webhooks are asked at a URL while the operator runs

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;
use windlass_client::client::{BoxIo, Client};
use windlass_core::resource::ResourceInfo;

use super::Manager;

/// Future of [`WebhookListener::accept`].
pub type AcceptFuture<'a> = Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + 'a>>;

/// Accepts connections: a socket, or a pipe in memory for tests.
pub trait WebhookListener: Send + Sync + 'static {
    /// Waits for the next connection. TLS comes above the connection.
    ///
    /// # Errors
    /// Any error is logged, and followed by a pause of 100 ms.
    /// # Cancel safety
    /// The future is dropped when the server stops; no connection may be lost by the drop.
    fn accept(&self) -> AcceptFuture<'_>;

    /// Waits until the API server reaches no operator at a URL any more; for ever where that is not
    /// known, as for a socket.
    #[doc(hidden)]
    fn gone<'a>(&'a self, _url: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

impl WebhookListener for TcpListener {
    fn accept(&self) -> AcceptFuture<'_> {
        Box::pin(async {
            let (stream, _) = TcpListener::accept(self).await?;
            // Answers are small: none waits for a further answer.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxIo)
        })
    }
}

/// URL at which API servers ask the webhooks of this process, in place of a Service.
#[derive(Clone)]
pub struct WebhookAccess {
    /// `https://` and the host, with the port unless that is 443.
    pub url: String,
    /// Connections of an API server in this process, without TLS; `None`: by TLS at the host's
    /// port.
    pub in_process: Option<Arc<dyn WebhookListener>>,
    /// Client that may write the configurations; `None` for the operator's own.
    pub client: Option<Client>,
    /// Namespaces whose requests are asked about; empty for all.
    pub namespaces: Vec<String>,
}

impl fmt::Debug for WebhookAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_process = self.in_process.is_some();
        f.debug_struct("WebhookAccess")
            .field("url", &self.url)
            .field("is_in_process", &is_in_process)
            .finish_non_exhaustive()
    }
}

impl WebhookAccess {
    /// Returns the access by TLS at a URL, with configurations by the operator's own client.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), in_process: None, client: None, namespaces: Vec::new() }
    }
}

/// Future of [`AdmissionCheck::refused_fields`].
#[doc(hidden)]
pub type AdmissionCheckFuture<'a> = Pin<Box<dyn Future<Output = Option<Vec<String>>> + Send + 'a>>;

/// Judges creations without an API server: the handlers of webhooks, for tests that name no
/// webhooks.
#[doc(hidden)]
pub trait AdmissionCheck: Send + Sync {
    /// Returns the fields of which the validating handlers of a kind refuse the creation of an
    /// object; empty when they allow it, `None` when it was not judged by its fields: there is no
    /// handler, or its answer names no field.
    fn refused_fields<'a>(
        &'a self,
        info: &'a ResourceInfo,
        object: &'a Value,
    ) -> AdmissionCheckFuture<'a>;
}

/// Whether a manager has a server of webhooks, or admission policies, which are written outside of
/// a cluster as the webhooks' configurations are.
#[doc(hidden)]
pub fn serves_webhooks(manager: &Manager) -> bool {
    let names = ["webhooks", "admission policies"];
    manager.runnables.iter().any(|one| names.contains(&one.name()))
}
