//! The server over pipes in memory, on a paused clock.

mod certificates;
mod definitions;
mod flood;
mod hostile;
mod kept;
mod logs;
mod missing;
mod outside;
mod own;
mod pki;
mod replicas;
mod rotation;
mod secrets;
mod serving;
mod spoilt;
mod stopping;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass_client::client::{BoxIo, Client};
use windlass_core::Error;
use windlass_core::metrics::{Metrics, names};
use windlass_runtime::manager::OperatorInfo;

use self::pki::Authority;
use super::*;
use crate::certificates::SourceFuture;
use crate::server::ServerStatus;
use crate::{
    AcceptFuture, CertificateContext, CertificateSource, ServingCertificate, WebhookListener,
    WebhookServer,
};

/// A listener that accepts pipes.
struct Pipes(Mutex<mpsc::Receiver<BoxIo>>);

impl WebhookListener for Pipes {
    fn accept(&self) -> AcceptFuture<'_> {
        Box::pin(async {
            match self.0.lock().await.recv().await {
                Some(io) => Ok(io),
                None => std::future::pending().await,
            }
        })
    }
}

/// A certificate that is set once.
struct Fixed(String, String);

impl CertificateSource for Fixed {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        _: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async {
            certificate.set(self.0.as_bytes(), self.1.as_bytes())?;
            std::future::pending().await
        })
    }
}

/// A server that runs, and its authority.
struct Hooks {
    authority: Authority,
    dial: mpsc::Sender<BoxIo>,
    metrics: Metrics,
    stop: CancellationToken,
    status: Arc<ServerStatus>,
    task: JoinHandle<Result<(), Error>>,
}

impl Hooks {
    async fn start() -> Self {
        Self::start_with(|server| server).await
    }

    async fn start_with(settings: impl FnOnce(WebhookServer) -> WebhookServer) -> Self {
        let authority = Authority::new("first");
        let (chain, key) = authority.issue();
        let (dial, accepted) = mpsc::channel(16);
        let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
        let server = WebhookServer::new(webhooks)
            .certificates(Fixed(chain, key))
            .listener(Pipes(Mutex::new(accepted)));
        let (server, client) = (settings(server), Client::offline());
        let metrics = client.environment().metrics.clone();
        let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let started = CancellationToken::new();
        let task = tokio::spawn({
            let (stop, status, started) = (stop.clone(), Arc::clone(&status), started.clone());
            async move {
                let names = OperatorInfo::default();
                server.run((&client, &names), stop, &status, || started.cancel()).await
            }
        });
        started.cancelled().await;
        Self { authority, dial, metrics, stop, status, task }
    }

    /// Opens a pipe with room for `bytes`.
    async fn pipe(&self, bytes: usize) -> DuplexStream {
        let (near, far) = tokio::io::duplex(bytes);
        self.dial.send(Box::new(far)).await.unwrap();
        near
    }

    async fn tls(&self) -> TlsStream<DuplexStream> {
        let pipe = self.pipe(64 * 1024).await;
        connect(self.authority.client(&[]), pipe).await.unwrap()
    }

    async fn http(&self) -> SendRequest<Full<Bytes>> {
        http(self.tls().await).await
    }

    /// Returns status and body of the answer to a review on a connection of its own.
    async fn ask(&self, data: Value) -> (u16, Value) {
        send(&mut self.http().await, "", data).await
    }

    fn closed(&self, cause: &str) -> u64 {
        self.metrics.counted(&names::WEBHOOK_REFUSED, &[cause])
    }

    fn open(&self) -> f64 {
        self.metrics.level(&names::WEBHOOK_CONNECTIONS, &[]).unwrap()
    }

    fn check(&self) -> (bool, String) {
        let check = self.status.checks().remove(0);
        (check.ok, check.detail)
    }
}

async fn connect(
    config: rustls::ClientConfig,
    pipe: DuplexStream,
) -> std::io::Result<TlsStream<DuplexStream>> {
    let name = pki::NAME.try_into().unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, pipe).await
}

async fn http(stream: TlsStream<DuplexStream>) -> SendRequest<Full<Bytes>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(query: &str, data: Value) -> Request<Full<Bytes>> {
    let body = review("CREATE", map(data), Value::Null).to_string();
    Request::post(format!("{VALIDATE}{query}"))
        .header("host", pki::NAME)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

/// Sends a review, and returns status and body of its answer.
async fn send(sender: &mut SendRequest<Full<Bytes>>, query: &str, data: Value) -> (u16, Value) {
    sender.ready().await.unwrap();
    let answer = sender.send_request(request(query, data)).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

/// Lets the paused clock run.
async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
