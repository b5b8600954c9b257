//! Attacks by hostile or broken servers and proxies. Credentials and configurations are in
//! `credentials`.

mod credentials;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use windlass_core::error::ErrorKind;

/// Sends `count` requests at once.
async fn together(client: &Client, count: usize) -> Vec<Result<Response, windlass_core::Error>> {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        let client = client.clone();
        tasks.spawn(async move { client.send(get()).await });
    }
    tasks.join_all().await
}

/// Connector that is as slow as TLS over a long distance.
#[derive(Debug)]
struct Slow(Arc<Server>, Duration);

impl Connect for Slow {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(async {
            tokio::time::sleep(self.1).await;
            Ok(ConnectedStream {
                io: Box::new(Wire(Arc::clone(&self.0)).pipe()?),
                http2: self.0.http2,
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_requests_over_http1_do_not_connect_one_after_another() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let slow = Slow(Arc::clone(&server), Duration::from_secs(1));
    let client = Client::over(Arc::new(slow), environment());
    let started = tokio::time::Instant::now();
    for result in together(&client, 20).await {
        result.unwrap();
    }
    assert!(started.elapsed() <= Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_dial_leaves_the_way_to_the_next_caller() {
    let server = Server::http2([Reply::Answer(200, "{}")]);
    let slow = Slow(Arc::clone(&server), Duration::from_secs(1));
    let client = Client::over(Arc::new(slow), environment());
    let (first, second) = (client.clone(), client.clone());
    let first = tokio::spawn(async move { first.send(get()).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = tokio::spawn(async move { second.send(get()).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    second.await.unwrap().unwrap();
    assert_eq!(server.connections(), 1);
}

/// HTTP/2 server whose first connection sends GOAWAY to all requests at once, without having worked
/// on any.
#[derive(Debug)]
struct Storm {
    server: Arc<Server>,
    first: AtomicBool,
    go: Arc<Semaphore>,
}

impl Connect for Storm {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(async {
            if !self.first.swap(false, Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let io = Wire(Arc::clone(&self.server)).pipe()?;
                return Ok(ConnectedStream { io: Box::new(io), http2: true });
            }
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            let go = Arc::clone(&self.go);
            tokio::spawn(async move {
                // SETTINGS; reads input; GOAWAY of stream 0, which means that no request was worked
                // on.
                theirs.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await?;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    tokio::select! {
                        biased;
                        permit = go.acquire() => {
                            permit.map_err(io::Error::other)?.forget();
                            break;
                        }
                        read = theirs.read(&mut buffer) => {
                            read?;
                        }
                    }
                }
                theirs.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await?;
                theirs.flush().await?;
                while theirs.read(&mut buffer).await? > 0 {}
                Ok::<_, io::Error>(())
            });
            Ok(ConnectedStream { io: Box::new(ours), http2: true })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a10_a_goaway_to_fifty_requests_opens_one_connection_and_not_fifty() {
    let server = Server::http2([Reply::Answer(200, "{}")]);
    let go = Arc::new(Semaphore::new(0));
    let storm =
        Storm { server: Arc::clone(&server), first: AtomicBool::new(true), go: Arc::clone(&go) };
    let client = Client::over(Arc::new(storm), environment());
    let asking = {
        let client = client.clone();
        tokio::spawn(async move { together(&client, 50).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    go.add_permits(1);
    for result in asking.await.unwrap() {
        result.unwrap();
    }
    assert_eq!(server.count(), 50);
    assert_eq!(server.connections(), 1);
}

/// Connector to a server that works on a single request of a connection at a time.
#[derive(Debug)]
struct Narrow(Arc<Server>);

impl Connect for Narrow {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        let server = Arc::clone(&self.0);
        let service = service_fn(move |request| Arc::clone(&server).answer(request));
        tokio::spawn(async move {
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.max_concurrent_streams(1);
            builder.serve_connection(TokioIo::new(theirs), service).await
        });
        Box::pin(async { Ok(ConnectedStream { io: Box::new(ours), http2: true }) })
    }
}

/// A request behind a watch waits for the time of a head, and then gets a separate connection.
#[tokio::test(start_paused = true)]
async fn a_server_that_takes_one_stream_a_connection_starves_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::http2([Reply::Later(Arc::clone(&gate)), Reply::Answer(200, "{}")]);
    let client = Client::over(Arc::new(Narrow(Arc::clone(&server))), environment());
    let watch = {
        let client = client.clone();
        tokio::spawn(async move {
            let mut request = create();
            request.timeout = Some(Duration::from_secs(300));
            client.send(request).await
        })
    };
    while server.count() < 1 {
        tokio::task::yield_now().await;
    }
    let started = tokio::time::Instant::now();
    for result in together(&client, 10).await {
        result.unwrap();
    }
    client.send(create()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
    assert_eq!(server.connections(), 2);
    gate.add_permits(1);
    watch.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn http2_connections_of_a_burst_are_closed_when_it_is_over() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::http2([Reply::Later(Arc::clone(&gate))]);
    let client = client(&server);
    let asking = {
        let client = client.clone();
        tokio::spawn(async move { together(&client, 450).await })
    };
    while server.count() < 450 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(10_000);
    for result in asking.await.unwrap() {
        result.unwrap();
    }
    assert_eq!(server.connections(), 5);
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        client.send(get()).await.unwrap();
    }
    let shown = format!("{:?}", client.shared.pool);
    assert!(shown.contains("shared: 1"), "{shown}");
    assert_eq!(server.connections(), 5, "the one that is left is still used");
}

/// Answers each request as soon as the head has arrived, and reads no body.
#[derive(Debug, Default)]
struct Hasty {
    connections: AtomicU32,
}

impl Connect for Hasty {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(theirs.read_u8().await?);
            }
            theirs.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\n{}").await?;
            if head.starts_with(b"GET") {
                theirs.shutdown().await?;
            }
            std::future::pending::<io::Result<()>>().await
        });
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_server_answered_early_and_reads_no_more_holds_nobody_up() {
    let hasty = Arc::new(Hasty::default());
    let client = Client::over(hasty.clone(), environment());
    let mut large = create();
    large.body = vec![b' '; 1 << 20].into();
    let error = client.send(large).await.unwrap_err();
    assert!(error.to_string().contains("413"), "{error}");
    let started = tokio::time::Instant::now();
    let error = client.send(get()).await.unwrap_err();
    assert!(error.to_string().contains("413"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(hasty.connections.load(Ordering::Relaxed), 2);
}

/// Sends a second, unrequested answer behind the first.
#[derive(Debug, Default)]
struct Smuggler {
    connections: AtomicU32,
}

impl Connect for Smuggler {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while theirs.read(&mut buffer).await? > 0 {
                let two = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n\"mine\"\
                            HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n\"stolen\"";
                theirs.write_all(two).await?;
            }
            Ok::<_, io::Error>(())
        });
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_answers_no_later_request() {
    let smuggler = Arc::new(Smuggler::default());
    let client = Client::over(smuggler.clone(), environment());
    for _ in 0..5 {
        assert_eq!(client.send(get()).await.unwrap().body, "\"mine\"");
    }
    assert_eq!(smuggler.connections.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_says_it_reads_and_does_not_passes_no_gate() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for verb in [Verb::Get, Verb::List, Verb::Watch] {
            let mut request = get();
            (request.verb, request.method) = (verb, method.clone());
            let error = client.send(request.clone()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{verb:?} {method}: {error}");
            let error = client.stream(request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{verb:?} {method}: {error}");
        }
    }
    assert_eq!(server.count(), 0);
}

/// Sends data, keeps the connection open, and stops reading.
async fn babbler(said: Vec<u8>) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut tcp, _)) = listener.accept().await {
            let _ = tcp.write_all(&said).await;
            open.push(tcp);
        }
    });
    port
}

/// The clock moves automatically while nothing happens on the sockets.
#[tokio::test(start_paused = true)]
async fn whatever_a_proxy_says_it_ends_in_an_error_within_the_deadline() {
    let rng = Rng::seeded(7);
    let heads: [&[u8]; 8] = [
        b"",
        b"\x05",
        b"\x05\0",
        b"\x05\0\x05\0\0\x03\xff",
        b"\x05\0\x05\0\0\x04",
        b"\x05\xff",
        b"HTTP/1.1 200",
        b"HTTP/1.1 100 C\r\n\r\n",
    ];
    for (round, head) in heads.iter().cycle().take(64).enumerate() {
        let mut said = head.to_vec();
        let length = rng.next_u64() % 1500;
        said.extend((0..length).map(|_| rng.next_u64().to_le_bytes()[0]));
        let port = babbler(said.clone()).await;
        let scheme = if round % 2 == 0 { "socks5" } else { "http" };
        let config = ClientConfig::new("https://api.invalid:6443").unwrap();
        let config = config.with_insecure_skip_tls_verify().with_token("canary");
        let config = config.with_proxy(&format!("{scheme}://127.0.0.1:{port}")).unwrap();
        let client = Client::builder().config(config).environment(environment()).build().unwrap();
        let started = tokio::time::Instant::now();
        let mut request = get();
        request.timeout = Some(Duration::from_secs(2));
        let error = client.send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{scheme} {said:?}: {error}");
        assert!(started.elapsed() <= Duration::from_secs(3), "{scheme} {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn g_r1_a_time_that_no_clock_can_hold_is_a_long_time() {
    for http2 in [false, true] {
        let server = Arc::new(Server { http2, ..Server::bare([Reply::Answer(200, "{}")]) });
        let client = Client::builder()
            .connector(Arc::new(Wire(Arc::clone(&server))))
            .environment(environment())
            .http2_pings(Duration::MAX, Duration::MAX)
            .max_connection_age(Duration::MAX)
            .head_timeout(Duration::MAX / 3)
            .timeout(Duration::MAX)
            .build()
            .unwrap();
        for _ in 0..2 {
            let mut request = get();
            request.timeout = Some(Duration::MAX);
            client.send(request.clone()).await.unwrap();
            client.send(create()).await.unwrap();
            let mut stream = client.stream(request).await.unwrap().idle_limit(Some(Duration::MAX));
            assert_eq!(stream.next().await.unwrap().unwrap(), "{}");
        }
        assert_eq!(server.connections(), 1);
    }
}
