//! A server of either protocol whose connections can be frozen or shut down, over pipes and TCP.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::*;
use super::pki::Swap;

/// Answers `{}`, but never on `/silent`, with a permit on `/later`, with a `tick` for each separate
/// permit on `/ticks`, without end on `/flood`, and with 100 KiB of headers on `/head`.
#[derive(Debug)]
pub(super) struct Peer {
    http2: bool,
    pub(super) permits: Arc<Semaphore>,
    pub(super) ticks: Arc<Semaphore>,
    connections: AtomicU32,
    requests: AtomicU32,
    pushed: Arc<AtomicUsize>,
    /// Bodies that the client abandoned.
    dropped: Arc<AtomicU32>,
    farewell: tokio::sync::watch::Sender<u32>,
}

impl Peer {
    pub(super) fn new(http2: bool) -> Arc<Self> {
        Arc::new(Self {
            http2,
            permits: Arc::new(Semaphore::new(0)),
            ticks: Arc::new(Semaphore::new(0)),
            connections: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            pushed: Arc::default(),
            dropped: Arc::default(),
            farewell: tokio::sync::watch::Sender::new(0),
        })
    }

    pub(super) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn pushed(&self) -> usize {
        self.pushed.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self) -> u32 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Shuts all open connections down, as an API server does at the end: `GOAWAY`, or
    /// `Connection: close`; requests in work are completed.
    pub(super) fn farewell(&self) {
        self.farewell.send_modify(|count| *count += 1);
    }

    pub(super) async fn listen(self: &Arc<Self>, tls: Option<Arc<Swap>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let Some(swap) = &tls else {
                    Arc::clone(&this).serve(tcp);
                    continue;
                };
                let accepting = TlsAcceptor::from(swap.current()).accept(tcp);
                if let Ok(stream) = accepting.await {
                    Arc::clone(&this).serve(stream);
                }
            }
        });
        address
    }

    fn serve(self: Arc<Self>, io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (http2, mut farewell) = (self.http2, self.farewell.subscribe());
        let io = TokioIo::new(io);
        let service = service_fn(move |request| Arc::clone(&self).answer(request));
        tokio::spawn(async move {
            if http2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let mut serving = Box::pin(builder.serve_connection(io, service));
                tokio::select! {
                    biased;
                    _ = &mut serving => return,
                    _ = farewell.changed() => serving.as_mut().graceful_shutdown(),
                }
                let _ = serving.await;
            } else {
                let builder = hyper::server::conn::http1::Builder::new();
                let mut serving = Box::pin(builder.serve_connection(io, service));
                tokio::select! {
                    biased;
                    _ = &mut serving => return,
                    _ = farewell.changed() => serving.as_mut().graceful_shutdown(),
                }
                let _ = serving.await;
            }
        });
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match request.uri().path() {
            "/silent" => std::future::pending().await,
            "/later" => {
                let permits = Arc::clone(&self.permits);
                permits.acquire().await?.forget();
                Ok(response(200, "{}"))
            }
            "/ticks" => Ok(http::Response::new(
                Produced::new(Arc::clone(&self), Some(Arc::clone(&self.ticks))).boxed_unsync(),
            )),
            "/flood" => {
                Ok(http::Response::new(Produced::new(Arc::clone(&self), None).boxed_unsync()))
            }
            "/head" => {
                let mut response = response(200, "{}");
                for n in 0..25 {
                    let name = http::HeaderName::try_from(format!("x-{n}"))?;
                    response.headers_mut().insert(name, "y".repeat(4096).parse()?);
                }
                Ok(response)
            }
            _ => Ok(response(200, "{}")),
        }
    }
}

/// An endless body: a tick for each permit, or without permits 16 KiB at once.
struct Produced {
    peer: Arc<Peer>,
    permits: Option<tokio_util::sync::PollSemaphore>,
}

impl Produced {
    fn new(peer: Arc<Peer>, permits: Option<Arc<Semaphore>>) -> Self {
        Self { peer, permits: permits.map(tokio_util::sync::PollSemaphore::new) }
    }
}

impl http_body::Body for Produced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let data = match &mut self.permits {
            None => Bytes::from_static(&[b'\n'; 16 << 10]),
            Some(permits) => {
                std::task::ready!(permits.poll_acquire(cx)).expect("open").forget();
                Bytes::from_static(b"tick")
            }
        };
        self.peer.pushed.fetch_add(data.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

impl Drop for Produced {
    fn drop(&mut self) {
        self.peer.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Connects to a [`Peer`]; connections can be frozen.
#[derive(Debug)]
pub(super) struct Dial {
    peer: Arc<Peer>,
    /// `None` is a pipe.
    address: Option<SocketAddr>,
    frozen: Mutex<Vec<Arc<AtomicBool>>>,
}

impl Dial {
    pub(super) fn pipe(peer: &Arc<Peer>) -> Arc<Self> {
        Arc::new(Self { peer: Arc::clone(peer), address: None, frozen: Mutex::default() })
    }

    pub(super) async fn tcp(peer: &Arc<Peer>) -> Arc<Self> {
        let address = Some(peer.listen(None).await);
        Arc::new(Self { peer: Arc::clone(peer), address, frozen: Mutex::default() })
    }

    /// Cuts all open connections off without closing them.
    pub(super) fn freeze(&self) {
        for one in self.frozen.lock().drain(..) {
            one.store(true, Ordering::Relaxed);
        }
    }
}

impl Connect for Dial {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(async {
            let frozen = Arc::<AtomicBool>::default();
            self.frozen.lock().push(Arc::clone(&frozen));
            let io: BoxIo = match self.address {
                None => {
                    let (ours, theirs) = tokio::io::duplex(64 << 10);
                    Arc::clone(&self.peer).serve(theirs);
                    Box::new(ours)
                }
                Some(address) => Box::new(TcpStream::connect(address).await?),
            };
            Ok(ConnectedStream { io: Box::new(Freezing { io, frozen }), http2: self.peer.http2 })
        })
    }
}

/// Stream that, once frozen, swallows writes and delivers no data, like a cut cable.
struct Freezing {
    io: BoxIo,
    frozen: Arc<AtomicBool>,
}

impl Freezing {
    fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }
}

impl AsyncRead for Freezing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_frozen() {
            return Poll::Pending;
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Freezing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_frozen() {
            return Poll::Ready(Ok(data.len()));
        }
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_frozen() { Poll::Ready(Ok(())) } else { Pin::new(&mut self.io).poll_flush(cx) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
