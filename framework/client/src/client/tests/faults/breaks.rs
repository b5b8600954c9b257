//! Connections that are refused or break (A3: connection refused or reset), and answers that break
//! off (A4: reset in the middle of a body).

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::net::TcpListener;

use super::*;

fn good() -> Bad {
    Bad::Write(answer(200, "{}"))
}

/// A reset before the answer.
async fn a3_reset_after_send(rig: Rig) {
    let (error, times) = rig.fails(create()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error}");
    assert!(error.to_string().contains("it may have been executed"), "{error}");
    for request in [get(), apply()] {
        rig.server.change([Bad::Reset(Bytes::new()), Bad::Reset(Bytes::new()), good()]);
        let before = rig.server.requests();
        rig.client.send(request).await.unwrap();
        assert_eq!(rig.server.requests() - before, 3, "twice does no harm: tried again");
    }
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a3_a_reset_after_send_is_retried_only_where_twice_does_no_harm_in_memory() {
    a3_reset_after_send(Rig::in_memory([Bad::Reset(Bytes::new())])).await;
}

#[tokio::test]
async fn a3_a_reset_after_send_is_retried_only_where_twice_does_no_harm_on_a_socket() {
    a3_reset_after_send(Rig::on_a_socket([Bad::Reset(Bytes::new())]).await).await;
}

#[tokio::test]
async fn a3_a_refused_connection_is_never_sent_and_tried_again_with_every_verb_on_a_socket() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = short(ClientConfig::new(&format!("http://{address}")).unwrap());
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(error.to_string().contains("tried"), "a refused connection is tried again: {error}");
}

/// Answers that announce more data than they contain.
fn torn() -> [Bytes; 4] {
    let torn_chunk = [&chunked("")[..], b"40\r\n{\"metadata\":{"].concat();
    let no_last_chunk = [&chunked("")[..], &chunk("{\"metadata\":")].concat();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&[b'x'; 5000]).unwrap();
    let gzip = gzip.finish().unwrap();
    let half = &gzip[..gzip.len() / 2];
    let mut torn_gzip = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        half.len()
    )
    .into_bytes();
    torn_gzip.extend(half);
    [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":".into(),
        torn_chunk.into(),
        no_last_chunk.into(),
        torn_gzip.into(),
    ]
}

async fn a4_torn_answers(rig: Rig, end: fn(Bytes) -> Bad) {
    for torn in torn() {
        rig.server.change([end(torn.clone())]);
        let (error, times) = rig.fails(create()).await;
        assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error} {torn:?}");
        for request in [get(), apply()] {
            rig.server.change([end(torn.clone()), good()]);
            let before = rig.server.requests();
            let answer = rig.client.send(request).await.unwrap();
            assert_eq!((answer.body, rig.server.requests() - before), ("{}".into(), 2));
        }
        rig.goes_on().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a4_a_torn_answer_is_no_answer_in_memory() {
    a4_torn_answers(Rig::in_memory([]), Bad::Close).await;
}

#[tokio::test]
async fn a4_a_torn_answer_is_no_answer_on_a_socket() {
    a4_torn_answers(Rig::on_a_socket([]).await, Bad::Close).await;
    a4_torn_answers(Rig::on_a_socket([]).await, Bad::Reset).await;
}

async fn a4_torn_watch(rig: Rig, end: fn(Bytes) -> Bad) {
    let (one, two) = (event("one", 7), event("two", 8));
    let api = rig.client.namespace::<k8s_openapi::api::core::v1::ConfigMap>("shop");
    for cut in [0, 1, two.len() / 2, two.len() - 1] {
        let frames = format!("{one}{}", &two[..cut]);
        rig.server.change([end([&chunked("")[..], &chunk(frames)].concat().into())]);
        let mut events = api.watch().resource_version("6").await.unwrap();
        let first = events.next().await.unwrap().unwrap();
        assert!(
            matches!(first, crate::api::WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("one"))
        );
        let error = events.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
        assert!(events.next().await.is_none(), "half an event is not told");
    }
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a4_a_torn_watch_tells_no_half_event_in_memory() {
    a4_torn_watch(Rig::in_memory([]), Bad::Close).await;
}

#[tokio::test]
async fn a4_a_torn_watch_tells_no_half_event_on_a_socket() {
    a4_torn_watch(Rig::on_a_socket([]).await, Bad::Close).await;
}
