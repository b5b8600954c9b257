//! Watches over a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::faults::{Fault, FaultAction};
use crate::http::test_support::*;
use crate::{ApiServer, Builder};

const PROTOCOL: &str = "sec-websocket-protocol";

/// Returns the address of a watch from now on.
fn from_now(server: &ApiServer) -> String {
    format!("{MAPS}?watch=true&resourceVersion={}", server.revision())
}

#[tokio::test(start_paused = true)]
async fn each_event_of_a_watch_is_a_text_message() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let mut socket = Socket::open(&server, &format!("{MAPS}?watch=true"), &[]).await.unwrap();
    assert_eq!(socket.headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(!socket.headers.contains_key("cache-control"));
    assert_eq!(socket.brief().await, "ADDED a");
    client.delete(&format!("{MAPS}/a")).await;
    assert_eq!(socket.brief().await, "DELETED a");
    let last = server.requests().into_iter().rfind(|request| request.verb == "watch").unwrap();
    assert_eq!(last.code, 101);
}

#[tokio::test(start_paused = true)]
async fn protobuf_comes_in_binary_messages_without_a_length() {
    let (server, mut client) = start().await;
    let url = from_now(&server);
    let mut socket = Socket::open(&server, &url, &[("accept", PROTOBUF)]).await.unwrap();
    let mut watch = Watch::open_as(&server, &url, &[("accept", PROTOBUF)]).await;
    client.post(MAPS, map("a")).await;
    assert_eq!(socket.next().await, Some(Message::Binary(watch.message().await.into())));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_watch_is_a_close_frame() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let url = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=7"
    );
    let started = tokio::time::Instant::now();
    let mut socket = Socket::open(&server, &url, &[]).await.unwrap();
    assert_eq!([socket.brief().await, socket.brief().await], ["ADDED a", "BOOKMARK -"]);
    assert_eq!(started.elapsed().as_secs(), 0);
    assert_eq!([socket.brief().await, socket.brief().await], ["CLOSE 1000", "END"]);
    assert_eq!(started.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn too_old_a_version_is_an_event_and_the_end() {
    let (server, mut client) = start().await;
    let url = from_now(&server);
    client.post(MAPS, map("a")).await;
    server.compact();
    let mut socket = Socket::open(&server, &url, &[]).await.unwrap();
    assert_eq!([socket.brief().await, socket.brief().await], ["ERROR -", "CLOSE 1000"]);
}

#[tokio::test(start_paused = true)]
async fn failures_before_the_handshake_are_plain_answers() {
    let (server, _client) = start().await;
    let watch = format!("{MAPS}?watch=true");
    for (url, headers, code, text) in [
        (format!("{watch}&resourceVersion=abc"), vec![], 500, "invalid syntax"),
        ("/api/v1/foos?watch=1".to_owned(), vec![], 404, "could not find the requested resource"),
        (watch.clone(), vec![("accept", "application/yaml")], 406, "only the following media"),
        (watch.clone(), vec![("origin", "")], 403, ""),
        (watch.clone(), vec![("origin", "null")], 403, ""),
        (watch.clone(), vec![("sec-websocket-key", "")], 400, "mismatch challenge/response"),
        (watch.clone(), vec![("sec-websocket-version", "8")], 400, "bad WebSocket Version"),
        (watch.clone(), vec![(PROTOCOL, "a, b")], 400, ""),
    ] {
        let refused = Socket::open(&server, &url, &headers).await.err().unwrap();
        assert_eq!(refused.0, code, "{url} {headers:?}");
        assert!(refused.1.contains(text), "{url}: {}", refused.1);
    }
    let list = Socket::open(&server, MAPS, &[]).await.err().unwrap();
    assert_eq!(list.0, 200, "only watches upgrade");
}

#[tokio::test(start_paused = true)]
async fn any_single_subprotocol_is_taken() {
    let (server, _client) = start().await;
    for protocol in ["base64.binary.k8s.io", "binary.k8s.io", "other"] {
        let headers = [(PROTOCOL, protocol)];
        let socket = Socket::open(&server, &from_now(&server), &headers).await.unwrap();
        assert_eq!(socket.headers[PROTOCOL], protocol);
    }
    let socket = Socket::open(&server, &from_now(&server), &[]).await.unwrap();
    assert!(!socket.headers.contains_key(PROTOCOL));
}

#[tokio::test(start_paused = true)]
async fn a_token_may_come_as_a_subprotocol() {
    let tokens = "secret,ann,1,\"system:masters\"\n";
    let server = Builder::default().seed(1).controllers(false).tokens(tokens).start();
    let bearer = |token: &str| {
        format!("base64url.bearer.authorization.k8s.io.{}", URL_SAFE_NO_PAD.encode(token))
    };
    let (right, wrong) = (bearer("secret"), bearer("wrong"));
    let unread = "base64url.bearer.authorization.k8s.io.!!!, x";
    for (protocols, authorization, wanted) in [
        (format!("{right}, x"), "", Ok("x")),
        (format!("{right}, x"), "Bearer wrong", Ok("x")),
        (right.clone(), "", Err(401)),
        (format!("{right}, {right}, x"), "", Err(401)),
        (format!("{wrong}, x"), "", Err(401)),
        (unread.to_owned(), "", Err(401)),
        ("x".to_owned(), "", Err(403)),
        // The header counts, and the token is a subprotocol like the other.
        (format!("{right}, x"), "Bearer secret", Err(400)),
    ] {
        let mut client = Client::anonymous(&server).await;
        let headers = [(PROTOCOL, protocols.as_str()), ("authorization", authorization)];
        let opened = Socket::on(&mut client, &from_now(&server), &headers).await;
        let got = opened.as_ref().map(|socket| socket.headers[PROTOCOL].to_str().unwrap());
        assert_eq!(got.map_err(|refused| refused.0), wanted, "{protocols} {authorization}");
    }
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_and_messages_of_the_client_mean_nothing() {
    let (server, mut client) = start().await;
    let mut socket = Socket::open(&server, &from_now(&server), &[]).await.unwrap();
    for message in ["", "hello"] {
        socket.send(Message::text(message)).await;
        socket.send(Message::binary(message)).await;
        socket.send(Message::Ping(message.into())).await;
        assert_eq!(socket.next().await, Some(Message::Pong(message.into())));
    }
    client.post(MAPS, map("a")).await;
    assert_eq!(socket.brief().await, "ADDED a");
    socket.send(Message::Close(None)).await;
    assert_eq!([socket.brief().await, socket.brief().await], ["CLOSE 0", "END"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_two_megabytes_ends_the_watch() {
    let (server, _client) = start().await;
    let mut socket = Socket::open(&server, &from_now(&server), &[]).await.unwrap();
    socket.send_lossy(Message::binary(vec![0; 2 << 20])).await;
    assert_eq!(socket.brief().await, "CLOSE 1009");
}

#[tokio::test(start_paused = true)]
async fn faults_and_restarts_reach_watches_over_sockets() {
    let (server, _client) = start().await;
    server.faults().add(Fault::new(FaultAction::Answer(503)).on("watch"));
    let refused = Socket::open(&server, &from_now(&server), &[]).await.err().unwrap();
    assert_eq!(refused.0, 503);
    server.faults().add(Fault::new(FaultAction::RawFrame("\u{0}no JSON\n".into())).on("watch"));
    let mut socket = Socket::open(&server, &from_now(&server), &[]).await.unwrap();
    assert_eq!(socket.next().await, Some(Message::text("\u{0}no JSON\n")));
    server.faults().close_watches("configmaps");
    assert_eq!(socket.brief().await, "CLOSE 1000");
    let mut socket = Socket::open(&server, &from_now(&server), &[]).await.unwrap();
    server.restart().await;
    assert_eq!(socket.brief().await, "END");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_keeps_its_connection_for_a_minute() {
    let (server, mut client) = start().await;
    let mut big = map("a");
    big["data"] = json!({"k": "x".repeat(500_000)});
    client.post(MAPS, big).await;
    let mut socket = Socket::open(&server, &format!("{MAPS}?watch=true"), &[]).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(socket.brief().await, "END");
}
