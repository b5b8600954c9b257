//! A network between client and server that counts bytes and, on demand, cuts connections at points
//! that a seed chooses. TLS passes through unchanged: the proxy sees bytes, not requests.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use windlass::client::ClientConfig;
use windlass::clock::Clock;
use windlass::rng::Rng;
use windlass::testing::RealServer;

/// Bytes that a client sends before the first request, about: the client's part of the TLS
/// handshake.
const HANDSHAKE: u64 = 700;
/// Bytes from the client until a connection is cut, at most; a write has some 700.
const LONGEST: u64 = 24_000;
/// Time that a half-open connection stays open: longer than the clients wait.
pub(crate) const STALL: Duration = Duration::from_millis(3500);

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cut {
    /// Within the TLS handshake.
    InHandshake,
    /// The client's last bytes never get to the server.
    BeforeRequest,
    /// Half of the client's last bytes get to the server.
    InRequest,
    /// All of them do, and no answer comes back.
    BeforeAnswer,
    /// Half of the next piece of an answer comes back.
    InAnswer,
    /// The client's last bytes are kept back, and no byte passes any more for a while.
    Stalled,
    /// The client's last bytes get to the server, and no byte passes any more for a while.
    StalledAfterRequest,
    /// Within the server's bytes, at any request.
    InStream,
}

const CUTS: [Cut; 6] = [
    Cut::BeforeRequest,
    Cut::InRequest,
    Cut::BeforeAnswer,
    Cut::InAnswer,
    Cut::Stalled,
    Cut::StalledAfterRequest,
];

/// The end that a connection will come to.
struct Fate {
    cut: Cut,
    /// The end comes with the piece after which more bytes than this came from the client.
    after: u64,
    /// Or with the piece after which more bytes than this came from the server.
    received: u64,
    /// Whether the connection ends by a reset, or by a proper end of the stream.
    reset: bool,
    /// Time that the server has after the request, before the server loses the client.
    grace: Duration,
}

impl Fate {
    fn draw(dice: &Rng) -> Self {
        let (cut, after) = if dice.below(6) == 0 {
            (Cut::InHandshake, dice.below(HANDSHAKE))
        } else {
            // Stalls take long: fewer of them.
            let cut = CUTS[usize::try_from(dice.below(10).min(5)).unwrap_or_default()];
            let cut = if dice.below(3) == 0 { cut } else { CUTS[dice.below(4) as usize] };
            (cut, HANDSHAKE + dice.below(LONGEST))
        };
        let reset = dice.below(2) == 0;
        let grace = dice.jitter(Duration::from_millis(40));
        Self { cut, after, received: u64::MAX, reset, grace }
    }

    /// Draws the end of a connection that mostly receives.
    fn of_listener(dice: &Rng) -> Self {
        // As often within the handshake as within the first megabyte.
        let received = 1 << (9 + dice.below(11));
        let received = received + dice.below(received);
        let (reset, grace) = (dice.below(2) == 0, Duration::ZERO);
        Self { cut: Cut::InStream, after: u64::MAX, received, reset, grace }
    }
}

/// A proxy before the real server. A drop ends all connections.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

struct Shared {
    server: SocketAddr,
    dice: Option<Rng>,
    draw: fn(&Rng) -> Fate,
    /// Whether connections that begin now will be cut.
    is_cutting: AtomicBool,
    /// Whether connections are cut at once, old and new.
    out: AtomicBool,
    connections: AtomicU64,
    /// Number of bytes that came from the server.
    received: AtomicU64,
    cuts: Mutex<BTreeMap<Cut, u64>>,
}

impl Proxy {
    /// Starts a proxy that cuts nothing.
    pub(crate) async fn new(server: &RealServer) -> Self {
        Self::with(server, None, Fate::draw).await
    }

    /// Starts a proxy that cuts every connection sooner or later.
    pub(crate) async fn cutting(server: &RealServer, dice: Rng) -> Self {
        Self::with(server, Some(dice), Fate::draw).await
    }

    /// Starts a proxy that cuts every connection sooner or later, by the server's bytes: for
    /// clients that watch.
    pub(crate) async fn cutting_streams(server: &RealServer, dice: Rng) -> Self {
        Self::with(server, Some(dice), Fate::of_listener).await
    }

    /// Stops cutting: connections live on from now on.
    pub(crate) fn stop_cutting(&self) {
        self.shared.is_cutting.store(false, Ordering::Relaxed);
    }

    async fn with(server: &RealServer, dice: Option<Rng>, draw: fn(&Rng) -> Fate) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server: server.address(),
            dice,
            draw,
            is_cutting: AtomicBool::new(true),
            out: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            received: AtomicU64::new(0),
            cuts: Mutex::default(),
        });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, listening }
    }

    /// Returns the configuration of the administrator's client of `server` through the proxy.
    pub(crate) fn admin(&self, server: &RealServer) -> ClientConfig {
        let config = ClientConfig::new(&format!("https://{}", self.address)).unwrap();
        config.with_ca(&server.ca()).with_token(RealServer::token("admin"))
    }

    /// Cuts every connection at once, for `duration`.
    pub(crate) async fn out_for(&self, duration: Duration) {
        self.shared.out.store(true, Ordering::Relaxed);
        Clock::system().sleep(duration).await;
        self.shared.out.store(false, Ordering::Relaxed);
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes from the server so far.
    pub(crate) fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that were cut, by kind.
    pub(crate) fn cuts(&self) -> BTreeMap<Cut, u64> {
        self.shared.cuts.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut open = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while open.try_join_next().is_some() {}
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let is_cutting = shared.is_cutting.load(Ordering::Relaxed);
        let dice = shared.dice.as_ref().filter(|_| is_cutting);
        let fate = dice.map(shared.draw);
        let shared = Arc::clone(&shared);
        open.spawn(async move {
            // Broken sockets are the purpose of this proxy.
            let _ = serve(&shared, client, fate).await;
        });
    }
}

async fn serve(shared: &Shared, mut client: TcpStream, fate: Option<Fate>) -> io::Result<()> {
    let mut server = TcpStream::connect(shared.server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let limit = fate.as_ref().map_or(u64::MAX, |fate| fate.after);
    let most = fate.as_ref().map_or(u64::MAX, |fate| fate.received);
    let last = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            biased;
            last = upwards(from_client, to_server, limit, &shared.out) => last?,
            ended = downwards(shared, from_server, to_client, most) => match ended? {
                Some(last) => Some(last),
                None => return Ok(()),
            },
        }
    };
    let (Some(last), Some(fate)) = (last, fate) else { return Ok(()) };
    *shared.cuts.lock().unwrap().entry(fate.cut).or_default() += 1;
    end(&fate, &last, &mut client, &mut server).await?;
    if fate.reset {
        client.set_zero_linger()?;
        server.set_zero_linger()?;
    }
    Ok(())
}

/// Forwards until the client ends, or has sent more than `limit`, or the network is `out`; returns
/// the piece with which that came.
async fn upwards(
    mut client: tokio::net::tcp::ReadHalf<'_>,
    mut server: tokio::net::tcp::WriteHalf<'_>,
    limit: u64,
    out: &AtomicBool,
) -> io::Result<Option<Vec<u8>>> {
    let (mut buffer, mut sent) = (vec![0; 16 << 10], 0);
    loop {
        let count = client.read(&mut buffer).await?;
        if count == 0 {
            return Ok(None);
        }
        sent += count as u64;
        if sent > limit || out.load(Ordering::Relaxed) {
            return Ok(Some(buffer[..count].to_vec()));
        }
        server.write_all(&buffer[..count]).await?;
    }
}

/// Forwards until the server ends, or has sent `most` bytes: then returns an empty piece.
async fn downwards(
    shared: &Shared,
    mut server: tokio::net::tcp::ReadHalf<'_>,
    mut client: tokio::net::tcp::WriteHalf<'_>,
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    let (mut buffer, mut left) = (vec![0; 16 << 10], most);
    loop {
        let count = server.read(&mut buffer).await?;
        if count == 0 {
            return Ok(None);
        }
        shared.received.fetch_add(count as u64, Ordering::Relaxed);
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        client.write_all(&buffer[..count]).await?;
        left -= count as u64;
        if left == 0 {
            return Ok(Some(Vec::new()));
        }
    }
}

/// Ends a connection as drawn; `last` holds the client's last bytes.
async fn end(
    fate: &Fate,
    last: &[u8],
    client: &mut TcpStream,
    server: &mut TcpStream,
) -> io::Result<()> {
    let clock = Clock::system();
    match fate.cut {
        Cut::InHandshake | Cut::BeforeRequest | Cut::InStream => {}
        Cut::InRequest => server.write_all(&last[..last.len() / 2]).await?,
        Cut::BeforeAnswer => {
            server.write_all(last).await?;
            clock.sleep(fate.grace).await;
        }
        Cut::InAnswer => {
            server.write_all(last).await?;
            let mut buffer = vec![0; 16 << 10];
            let answer = clock.timeout(Duration::from_secs(1), server.read(&mut buffer)).await;
            let count = answer.transpose()?.unwrap_or_default();
            client.write_all(&buffer[..count / 2]).await?;
        }
        Cut::Stalled => clock.sleep(STALL).await,
        Cut::StalledAfterRequest => {
            server.write_all(last).await?;
            clock.sleep(STALL).await;
        }
    }
    Ok(())
}
