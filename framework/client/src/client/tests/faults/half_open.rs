//! Peers that are gone without closing the connection (A5: a half-open connection).

use super::http2::{Dial, Peer};
use super::*;
use crate::client::ByteStream;

fn ticks() -> Prepared {
    let mut request = watch(600);
    request.path = "/ticks".to_owned();
    request
}

/// A watch that has delivered an event, so that the watch is under way.
async fn under_way(client: &Client, peer: &Peer) -> ByteStream {
    let mut stream = client.stream(ticks()).await.unwrap();
    peer.ticks.add_permits(1);
    assert_eq!(stream.next().await.unwrap().unwrap(), "tick");
    stream
}

fn over(wire: &Arc<Dial>) -> Client {
    Client::over(Arc::clone(wire) as Arc<dyn Connect>, environment())
}

#[tokio::test(start_paused = true)]
async fn a5_a_half_open_connection_is_noticed_within_45_seconds_by_a_watch_in_memory() {
    let peer = Peer::new(true);
    let wire = Dial::pipe(&peer);
    let client = over(&wire);
    let mut stream = under_way(&client, &peer).await;
    // Hours of silence are no fault while pings are answered.
    let quiet = tokio::time::timeout(Duration::from_secs(629), stream.next()).await;
    assert!(quiet.is_err());
    peer.ticks.add_permits(1);
    assert!(stream.next().await.unwrap().is_ok());
    wire.freeze();
    let started = Instant::now();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    let noticed = started.elapsed();
    assert!(noticed <= Duration::from_secs(46), "{noticed:?}");
    client.send(create()).await.unwrap();
    assert_eq!(peer.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a5_requests_on_a_half_open_connection_end_and_others_take_another_in_memory() {
    let peer = Peer::new(true);
    let wire = Dial::pipe(&peer);
    let client = over(&wire);
    client.send(get()).await.unwrap();
    wire.freeze();
    let started = Instant::now();
    client.send(get()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    wire.freeze();
    let (before, started) = (peer.requests(), Instant::now());
    let error = client.send(create()).await.unwrap_err();
    assert_eq!((error.kind(), peer.requests() - before), (ErrorKind::Ambiguous, 0), "{error}");
    assert!(started.elapsed() <= Duration::from_secs(45), "{:?}", started.elapsed());
    client.send(create()).await.unwrap();
    assert_eq!(peer.connections(), 3);
}

/// Upstream calls this reconnecting a broken TCP connection.
#[tokio::test(start_paused = true)]
async fn a5_an_idle_half_open_connection_is_replaced_before_anybody_needs_it_in_memory() {
    let peer = Peer::new(true);
    let wire = Dial::pipe(&peer);
    let client = over(&wire);
    client.send(get()).await.unwrap();
    wire.freeze();
    tokio::time::sleep(Duration::from_secs(50)).await;
    let started = Instant::now();
    client.send(create()).await.unwrap();
    assert_eq!((started.elapsed(), peer.connections()), (Duration::ZERO, 2));
}

#[tokio::test(start_paused = true)]
async fn a5_over_http1_the_deadlines_of_the_call_and_of_the_watch_end_it_in_memory() {
    let peer = Peer::new(false);
    let wire = Dial::pipe(&peer);
    let client = over(&wire);
    let mut stream = under_way(&client, &peer).await;
    client.send(get()).await.unwrap();
    wire.freeze();
    let started = Instant::now();
    client.send(get()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    let started = Instant::now();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains("nothing came for 630 s"), "{error}");
    assert_eq!(started.elapsed().as_secs(), 630);
    assert_eq!(peer.connections(), 3);
}

#[tokio::test]
async fn a5_a_half_open_http2_connection_is_left_on_a_socket() {
    let peer = Peer::new(true);
    let wire = Dial::tcp(&peer).await;
    let client = Client::builder()
        .connector(Arc::clone(&wire) as Arc<dyn Connect>)
        .environment(environment())
        .http2_pings(Duration::from_millis(100), Duration::from_millis(100))
        .build()
        .unwrap();
    let mut stream = under_way(&client, &peer).await;
    wire.freeze();
    let end = tokio::time::timeout(Duration::from_secs(10), stream.next()).await;
    let error = end.expect("pings are missed").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    client.send(create()).await.unwrap();
    assert_eq!((peer.connections(), peer.requests()), (2, 2));
}

/// Accepts requests and never answers, from the first request or from the second.
#[tokio::test]
async fn a5_a_server_that_stops_answering_is_left_for_another_connection_on_a_socket() {
    let stop = Bad::Stop(Bytes::new());
    for script in [vec![stop.clone()], vec![Bad::Write(answer(200, "{}")), stop.clone()]] {
        let warm = script.len() > 1;
        let rig = Rig::on_a_socket(script).await;
        if warm {
            rig.client.send(get()).await.unwrap();
        }
        let (error, times) = rig.fails(create()).await;
        assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error}");
        rig.server.change([stop.clone(), Bad::Write(answer(200, "{}"))]);
        rig.client.send(get()).await.unwrap();
        rig.server.change([stop.clone()]);
        let (error, _) = rig.fails(get()).await;
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        let left = rig.server.left();
        assert!(left > 0, "a connection that does not answer is closed");
        rig.goes_on().await;
    }
}
