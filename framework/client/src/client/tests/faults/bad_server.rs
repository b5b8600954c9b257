//! An HTTP/1.1 server that misbehaves byte by byte, over a pipe, TCP or TLS.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::super::*;
use super::pki::Swap;

/// Reaction of the server to a request. Bytes are written unchanged.
#[derive(Clone, Debug)]
pub(super) enum Bad {
    /// Writes, and waits for the next request.
    Write(Bytes),
    /// Writes, and closes the connection.
    Close(Bytes),
    /// Writes, and resets the connection.
    Reset(Bytes),
    /// Writes, and then stays silent.
    Stop(Bytes),
    /// Writes the first bytes, then the second ones again and again with a pause between.
    Drip(Bytes, Bytes, Duration),
    /// Writes the pieces in sequence, each when a permit comes.
    Steps(Vec<Bytes>, Arc<Semaphore>),
}

/// An end of a connection.
enum Wire {
    Pipe(DuplexStream),
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    fn io(&mut self) -> &mut dyn Io {
        match self {
            Self::Pipe(io) => io,
            Self::Tcp(io) => io,
            Self::Tls(io) => &mut **io,
        }
    }

    /// Drops the connection so that the other end sees a reset (on a pipe, just an end).
    fn reset(self) {
        let tcp = match &self {
            Self::Pipe(_) => return,
            Self::Tcp(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        };
        SockRef::from(tcp).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// Server that follows a script, request by request; the last entry is repeated.
#[derive(Debug)]
pub(super) struct BadServer {
    script: Mutex<VecDeque<Bad>>,
    heads: Mutex<Vec<String>>,
    connections: AtomicU32,
    /// Connections that the client closed.
    left: AtomicU32,
    pushed: AtomicU32,
}

impl BadServer {
    pub(super) fn new(script: impl IntoIterator<Item = Bad>) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(script.into_iter().collect()),
            heads: Mutex::default(),
            connections: AtomicU32::new(0),
            left: AtomicU32::new(0),
            pushed: AtomicU32::new(0),
        })
    }

    /// Replaces the script.
    pub(super) fn change(&self, script: impl IntoIterator<Item = Bad>) {
        *self.script.lock() = script.into_iter().collect();
    }

    /// Number of requests that arrived, which is the number of executions.
    pub(super) fn requests(&self) -> usize {
        self.heads.lock().len()
    }

    /// Head of the last request.
    pub(super) fn last_head(&self) -> String {
        self.heads.lock().last().cloned().unwrap_or_default()
    }

    pub(super) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn left(&self) -> u32 {
        self.left.load(Ordering::Relaxed)
    }

    /// Number of bytes that were sent while dripping.
    pub(super) fn pushed(&self) -> usize {
        self.pushed.load(Ordering::Relaxed) as usize
    }

    /// Listens on a free port of this machine.
    pub(super) async fn listen(self: &Arc<Self>, tls: Option<Arc<Swap>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let this = Arc::clone(&this);
                let acceptor = tls.as_ref().map(|swap| TlsAcceptor::from(swap.current()));
                tokio::spawn(async move {
                    let wire = match acceptor {
                        None => Wire::Tcp(tcp),
                        Some(acceptor) => match acceptor.accept(tcp).await {
                            Ok(tls) => Wire::Tls(Box::new(tls)),
                            Err(_) => return,
                        },
                    };
                    this.serve(wire).await;
                });
            }
        });
        address
    }

    async fn serve(self: Arc<Self>, mut wire: Wire) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        while let Some(head) = request(wire.io()).await {
            self.heads.lock().push(head);
            let next = {
                let mut script = self.script.lock();
                if script.len() > 1 { script.pop_front() } else { script.front().cloned() }
            };
            let gone = match next.expect("a line of the script") {
                Bad::Write(bytes) => wire.io().write_all(&bytes).await.is_err(),
                Bad::Close(bytes) => {
                    let _ = wire.io().write_all(&bytes).await;
                    let _ = wire.io().shutdown().await;
                    return;
                }
                Bad::Reset(bytes) => {
                    let _ = wire.io().write_all(&bytes).await;
                    // The client has to read the data before the reset discards the data.
                    settle().await;
                    return wire.reset();
                }
                Bad::Stop(bytes) => {
                    let _ = wire.io().write_all(&bytes).await;
                    !matches!(wire.io().read(&mut [0; 64]).await, Ok(1..))
                }
                Bad::Drip(first, again, pause) => {
                    self.drip(wire.io(), &first, &again, pause).await;
                    true
                }
                Bad::Steps(steps, gate) => {
                    let mut gone = false;
                    for step in steps {
                        gate.acquire().await.unwrap().forget();
                        gone |= wire.io().write_all(&step).await.is_err();
                    }
                    gone
                }
            };
            if gone {
                self.left.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// Drips until the client is gone.
    async fn drip(&self, io: &mut dyn Io, first: &[u8], again: &[u8], pause: Duration) {
        if io.write_all(first).await.is_err() {
            return;
        }
        loop {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            // A write notices late, or on a pipe with capacity never, that the peer has stopped
            // reading: so read, too.
            let (mut reading, mut byte) = (true, [0; 1]);
            let mut written = 0;
            while written < again.len() {
                let (mut read, mut write) = tokio::io::split(&mut *io);
                let wrote = tokio::select! {
                    biased;
                    end = read.read(&mut byte), if reading => match end {
                        Ok(1..) => { reading = false; continue; }
                        _ => return,
                    },
                    wrote = write.write(&again[written..]) => wrote,
                };
                let Ok(wrote @ 1..) = wrote else { return };
                written += wrote;
                self.pushed.fetch_add(u32::try_from(wrote).unwrap(), Ordering::Relaxed);
            }
        }
    }
}

/// Lets the client's tasks read the data that was written, on a real clock.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Reads the head of the next request, and the body. `None` when the client is gone.
async fn request(io: &mut dyn Io) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    io.read_exact(&mut body).await.ok()?;
    Some(head)
}

/// Connects to a [`BadServer`] over a pipe.
#[derive(Debug)]
pub(super) struct Pipe(pub(super) Arc<BadServer>);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(16 << 10);
        tokio::spawn(Arc::clone(&self.0).serve(Wire::Pipe(theirs)));
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

/// A whole answer.
pub(super) fn answer(code: u16, body: impl AsRef<[u8]>) -> Bytes {
    let body = body.as_ref();
    let mut bytes =
        format!("HTTP/1.1 {code} X\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend(body);
    bytes.into()
}

/// The head of an answer in chunks, with more headers.
pub(super) fn chunked(headers: &str) -> Bytes {
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{headers}\r\n").into()
}

/// A chunk; an empty chunk ends the answer.
pub(super) fn chunk(data: impl AsRef<[u8]>) -> Bytes {
    let data = data.as_ref();
    let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
    bytes.extend(data);
    bytes.extend(b"\r\n");
    bytes.into()
}
