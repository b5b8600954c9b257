//! API servers that are restarted in sequence (A10: moves or restarts), and whose certificate
//! changes.

use super::http2::{Dial, Peer};
use super::pki::{Authority, Swap};
use super::*;

fn at(path: &str) -> Prepared {
    Prepared::get(path, format!("read {path}"))
}

/// Shuts connections down again and again under traffic: no request fails, and none is sent twice.
async fn a10_rolling_restart(client: Client, peer: &Arc<Peer>, rounds: u32) {
    let mut watch = client.stream(at("/ticks")).await.unwrap();
    let mut sent = 1;
    for round in 1..=rounds {
        let in_flight: Vec<_> = (0..5)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.send(at("/later")).await })
            })
            .collect();
        sent += 5;
        until("they are in flight", || peer.requests() == sent).await;
        peer.farewell();
        // GOAWAY is under way: some of these are sent on a connection that is being shut down.
        for _ in 0..20 {
            client.send(create()).await.unwrap();
            sent += 1;
        }
        peer.permits.add_permits(5);
        for one in in_flight {
            one.await.unwrap().unwrap();
        }
        assert_eq!(peer.requests(), sent, "round {round}: each exactly once");
    }
    peer.ticks.add_permits(1);
    assert_eq!(watch.next().await.unwrap().unwrap(), "tick", "the first watch is still there");
    assert!(peer.connections() > rounds, "{}", peer.connections());
}

#[tokio::test(start_paused = true)]
async fn a10_a_rolling_restart_fails_no_request_over_http2_in_memory() {
    let peer = Peer::new(true);
    a10_rolling_restart(Client::over(Dial::pipe(&peer), environment()), &peer, 20).await;
}

/// Loopback, TLS and ALPN: a stream is under way when `GOAWAY` comes.
#[tokio::test]
async fn a10_goaway_in_mid_stream_fails_nothing_on_a_socket() {
    let authority = Authority::new();
    let peer = Peer::new(true);
    let address = peer.listen(Some(Swap::new(authority.server(&["h2"])))).await;
    let config = ClientConfig::new(&format!("https://{address}")).unwrap();
    let client = Client::new(config.with_ca(&authority.pem)).unwrap();
    a10_rolling_restart(client, &peer, 3).await;
}

/// Accepts a request on the first connection and sends GOAWAY with a reason, which covers that
/// request; later connections are served.
#[derive(Debug)]
struct Leaver {
    reason: h2::Reason,
    /// Whether GOAWAY names the request as a request that was worked on.
    covers: bool,
    connections: AtomicU32,
    good: Arc<Peer>,
}

impl Connect for Leaver {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        if self.connections.fetch_add(1, Ordering::Relaxed) > 0 {
            let next = Dial::pipe(&self.good);
            return Box::pin(async move { next.open().await });
        }
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (reason, covers) = (self.reason, self.covers);
        tokio::spawn(async move {
            let mut server = h2::server::handshake(theirs).await.unwrap();
            if covers {
                let (_request, mut answer) = server.accept().await.unwrap().unwrap();
                server.abrupt_shutdown(reason);
                let _ = std::future::poll_fn(|cx| server.poll_closed(cx)).await;
                answer.send_reset(h2::Reason::CANCEL);
            } else {
                server.abrupt_shutdown(reason);
                let _ = std::future::poll_fn(|cx| server.poll_closed(cx)).await;
            }
        });
        Box::pin(async { Ok(ConnectedStream { io: Box::new(ours), http2: true }) })
    }
}

#[tokio::test(start_paused = true)]
async fn a10_only_a_goaway_that_leaves_a_request_out_says_that_it_was_not_executed() {
    for reason in [h2::Reason::NO_ERROR, h2::Reason::ENHANCE_YOUR_CALM, h2::Reason::INTERNAL_ERROR]
    {
        for covers in [true, false] {
            let good = Peer::new(true);
            let connections = AtomicU32::new(0);
            let leaver = Leaver { reason, covers, connections, good: Arc::clone(&good) };
            let client = Client::over(Arc::new(leaver), environment());
            let result = client.send(create()).await;
            if covers {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Ambiguous, "{reason:?}: {error}");
                assert_eq!(good.requests(), 0, "{reason:?}: it may have been executed");
            } else {
                assert_eq!(result.unwrap().body, "{}", "{reason:?}");
                assert_eq!(good.requests(), 1, "{reason:?}");
            }
            client.send(create()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a10_an_http1_server_that_closes_after_its_answer_fails_nothing_in_memory() {
    let peer = Peer::new(false);
    let client = Client::over(Dial::pipe(&peer), environment());
    for _ in 0..20 {
        let first = {
            let client = client.clone();
            tokio::spawn(async move { client.send(at("/later")).await })
        };
        let before = peer.requests();
        until("it is in flight", || peer.requests() > before).await;
        peer.farewell();
        tokio::time::sleep(Duration::from_millis(10)).await;
        peer.permits.add_permits(1);
        first.await.unwrap().unwrap();
        client.send(create()).await.unwrap();
        assert_eq!(peer.requests() - before, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a10_a_connection_that_is_too_old_gets_no_new_request_and_keeps_its_streams() {
    for http2 in [false, true] {
        let peer = Peer::new(http2);
        let client = Client::builder()
            .connector(Dial::pipe(&peer))
            .environment(environment())
            .max_connection_age(Duration::from_secs(100))
            .build()
            .unwrap();
        let mut watch = client.stream(at("/ticks")).await.unwrap();
        client.send(create()).await.unwrap();
        let young = peer.connections();
        tokio::time::sleep(Duration::from_secs(79)).await;
        client.send(create()).await.unwrap();
        assert_eq!(peer.connections(), young, "up to a fifth shorter, not more");
        tokio::time::sleep(Duration::from_secs(21)).await;
        client.send(create()).await.unwrap();
        client.send(create()).await.unwrap();
        assert_eq!(peer.connections(), young + 1, "a new one, which is kept");
        peer.ticks.add_permits(1);
        assert_eq!(watch.next().await.unwrap().unwrap(), "tick");
    }
}

#[tokio::test(start_paused = true)]
async fn ages_differ_from_connection_to_connection() {
    let peer = Peer::new(false);
    let client = Client::builder()
        .connector(Dial::pipe(&peer))
        .environment(environment())
        .max_connection_age(Duration::from_secs(50))
        .build()
        .unwrap();
    let all: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(at("/later")).await })
        })
        .collect();
    until("all are in flight", || peer.requests() == 20).await;
    peer.permits.add_permits(20);
    for one in all {
        one.await.unwrap().unwrap();
    }
    tokio::time::sleep(Duration::from_secs(45)).await;
    let again: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(at("/later")).await })
        })
        .collect();
    until("all are in flight", || peer.requests() == 40).await;
    peer.permits.add_permits(20);
    for one in again {
        one.await.unwrap().unwrap();
    }
    let new = peer.connections() - 20;
    assert!((5..=15).contains(&new), "half of them are too old: {new}");
}

#[tokio::test(start_paused = true)]
async fn an_http1_connection_that_was_idle_for_long_is_not_used_again() {
    let peer = Peer::new(false);
    let client = Client::over(Dial::pipe(&peer), environment());
    client.send(get()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(89)).await;
    client.send(get()).await.unwrap();
    assert_eq!(peer.connections(), 1);
    tokio::time::sleep(Duration::from_secs(91)).await;
    client.send(get()).await.unwrap();
    assert_eq!(peer.connections(), 2);
}

/// Changes the server's certificate: to another of the same authority, to a certificate of a
/// foreign authority, and back.
async fn swap(http2: bool) {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let protocols: &[&str] = if http2 { &["h2"] } else { &["http/1.1"] };
    let certificate = Swap::new(authority.server(protocols));
    let peer = Peer::new(http2);
    let address = peer.listen(Some(Arc::clone(&certificate))).await;
    let config = ClientConfig::new(&format!("https://{address}")).unwrap().with_ca(&authority.pem);
    let client = short(config);
    let mut watch = client.stream(at("/ticks")).await.unwrap();
    client.send(create()).await.unwrap();
    let before = peer.connections();

    // While connected: open connections stay open, and trusted.
    certificate.to(stranger.server(protocols));
    client.send(create()).await.unwrap();
    peer.ticks.add_permits(1);
    assert_eq!(watch.next().await.unwrap().unwrap(), "tick");
    assert_eq!(peer.connections(), before);

    // Between connections: a server of a foreign authority gets no request, regardless of the verb.
    let requests = peer.requests();
    client.shared.pool.retire();
    for request in [get(), create()] {
        let error = client.send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(error.to_string().contains("TLS handshake failed"), "{error}");
    }
    assert_eq!((peer.requests(), peer.connections()), (requests, before));

    // A certificate of the same authority is as good as the old certificate.
    certificate.to(authority.server(protocols));
    client.send(create()).await.unwrap();
    assert_eq!((peer.requests(), peer.connections()), (requests + 1, before + 1));
}

#[tokio::test]
async fn a_server_certificate_that_is_swapped_costs_no_open_connection_and_fools_no_new_one_on_a_socket()
 {
    swap(false).await;
    swap(true).await;
}

#[tokio::test]
async fn a_client_that_may_not_speak_http2_does_not_offer_it_on_a_socket() {
    let authority = Authority::new();
    let peer = Peer::new(false);
    let offers = Swap::new(authority.server(&["h2", "http/1.1"]));
    let address = peer.listen(Some(offers)).await;
    let config = ClientConfig::new(&format!("https://{address}")).unwrap().with_ca(&authority.pem);
    let client = Client::builder().config(config).http2(false).build().unwrap();
    client.send(create()).await.unwrap();
}
