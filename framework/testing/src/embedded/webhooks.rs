//! Webhooks of operators in this process, asked by the embedded API server through memory.

// DESIGN.md, 204: Outside of a cluster webhooks are asked at a URL while the operator runs

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use windlass_apiserver::{Connecting, Connector, Destination, TcpConnector, WebhookStream};
use windlass_client::client::{BoxIo, Client};
use windlass_runtime::manager::{AcceptFuture, Manager, WebhookAccess, WebhookListener};

/// Part of the hosts of these webhooks, which no name server knows.
const DOMAIN: &str = "webhooks.in-process.windlass";
/// Bytes that one side of a connection writes before the other side reads.
const PIPE: usize = 64 * 1024;
/// Connections that wait to be accepted.
const BACKLOG: usize = 64;

/// Connects an API server with the webhooks of operators in this process; all others by TCP.
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct WebhookRoutes {
    open: Arc<OpenRoutes>,
}

/// The listeners of each host, oldest first: replicas of an operator share a host.
#[derive(Default)]
struct OpenRoutes(Mutex<BTreeMap<String, Vec<mpsc::Sender<BoxIo>>>>);

impl OpenRoutes {
    /// Adds a listener to those of a host.
    fn add(&self, host: &str, listener: mpsc::Sender<BoxIo>) {
        self.0.lock().entry(host.to_owned()).or_default().push(listener);
    }

    /// Returns the newest listener of a host.
    fn newest(&self, host: &str) -> Option<mpsc::Sender<BoxIo>> {
        let mut open = self.0.lock();
        let listeners = open.get_mut(host)?;
        // Operators that have stopped.
        listeners.retain(|listener| !listener.is_closed());
        listeners.last().cloned()
    }
}

impl fmt::Debug for WebhookRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookRoutes").finish_non_exhaustive()
    }
}

impl WebhookRoutes {
    /// Lets the API server ask the webhooks of an operator, whose configurations `admin` writes.
    pub fn connect(&self, manager: &mut Manager, admin: &Client) {
        let host = format!("{}.{DOMAIN}", manager.display_name());
        let (sender, accepted) = mpsc::channel(BACKLOG);
        self.open.add(&host, sender);
        let pipes = Pipes { accepted: tokio::sync::Mutex::new(accepted), open: self.open.clone() };
        manager.webhook_access = Some(WebhookAccess {
            url: format!("https://{host}"),
            in_process: Some(Arc::new(pipes)),
            client: Some(admin.clone()),
            namespaces: Vec::new(),
        });
    }
}

impl Connector for WebhookRoutes {
    fn connect(&self, destination: &Destination) -> Connecting {
        if !destination.host.ends_with(DOMAIN) {
            return TcpConnector.connect(destination);
        }
        let (open, host) = (Arc::clone(&self.open), destination.host.clone());
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(PIPE);
            let mut far: BoxIo = Box::new(far);
            loop {
                let Some(listener) = open.newest(&host) else {
                    let text = format!("no operator at {host}: connection refused");
                    return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
                };
                match listener.send(far).await {
                    Ok(()) => return Ok(WebhookStream::plain(near)),
                    // Stopped meanwhile: the next listener is asked.
                    Err(error) => far = error.0,
                }
            }
        })
    }
}

/// The connections to an operator, and the routes to all.
struct Pipes {
    accepted: tokio::sync::Mutex<mpsc::Receiver<BoxIo>>,
    open: Arc<OpenRoutes>,
}

impl WebhookListener for Pipes {
    fn accept(&self) -> AcceptFuture<'_> {
        Box::pin(async {
            match self.accepted.lock().await.recv().await {
                Some(io) => Ok(io),
                // The API server is gone: no client connects again.
                None => std::future::pending().await,
            }
        })
    }

    fn gone<'a>(&'a self, url: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let host = url.strip_prefix("https://").unwrap_or(url).split('/').next();
            let Some(host) = host.filter(|host| host.ends_with(DOMAIN)) else {
                return std::future::pending().await;
            };
            while let Some(listener) = self.open.newest(host) {
                listener.closed().await;
            }
        })
    }
}
