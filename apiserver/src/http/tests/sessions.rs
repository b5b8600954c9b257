//! Logs and sessions of Pods, with the stand-in for a kubelet and without.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::http::test_support::*;
use crate::{ApiServer, Builder};

const PODS: &str = "/api/v1/namespaces/default/pods";
const PROTOCOL: &str = "sec-websocket-protocol";
const V5: &str = "v5.channel.k8s.io";

/// Returns a server whose Pods run, and a Pod `p` with a log.
async fn start_kubelet(annotations: Value) -> (ApiServer, Client) {
    let set = "kubelet".parse().unwrap();
    let server = Builder::default().seed(1).epoch(1_767_225_600).controller_set(set).start();
    let mut client = Client::of(&server).await;
    let pod = json!({"metadata": {"name": "p", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(client.post(PODS, pod).await.code, 201);
    while client.get(&format!("{PODS}/p")).await.value["status"]["phase"] != "Running" {
        tokio::task::yield_now().await;
    }
    (server, client)
}

/// Opens a session without an origin, which only watches need.
async fn open(server: &ApiServer, path: &str, protocol: &str) -> Result<Socket, (u16, String)> {
    let headers = [(PROTOCOL, protocol), ("origin", "")];
    Socket::open(server, &format!("{PODS}/p/{path}"), &headers).await
}

/// Returns the next message as channel and text.
async fn next(socket: &mut Socket) -> (u8, String) {
    match socket.next().await {
        Some(Message::Binary(data)) => (data[0], String::from_utf8_lossy(&data[1..]).into_owned()),
        other => panic!("no message on a channel: {other:?}"),
    }
}

fn data(channel: u8, text: &str) -> Message {
    Message::binary([&[channel], text.as_bytes()].concat())
}

#[tokio::test(start_paused = true)]
async fn a_log_comes_from_annotations() {
    let annotations = json!({"windlass.dev/log": "one\ntwo\n", "windlass.dev/log.other": "x"});
    let (_server, mut client) = start_kubelet(annotations).await;
    let reply = client.get(&format!("{PODS}/p/log")).await;
    assert_eq!((reply.code, reply.text.as_str()), (200, "one\ntwo\n"));
    assert_eq!(reply.headers["content-type"], "text/plain");
    let reply = client.get(&format!("{PODS}/p/log?tailLines=1&timestamps=true")).await;
    assert_eq!(reply.text, "2026-01-01T00:00:00.000000000Z two\n");
    for (query, code, text) in [
        ("tailLines=abc", 400, "strconv.ParseInt: parsing \"abc\": invalid syntax"),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
        ("previous=true", 400, "previous terminated container \"c\" in pod \"p\" not found"),
    ] {
        let reply = client.get(&format!("{PODS}/p/log?{query}")).await;
        assert_eq!(reply.code, code, "{}", reply.text);
        assert!(reply.message().contains(text), "{}", reply.text);
    }
    let pending = json!({"metadata": {"annotations": {"windlass.dev/pod-state": "Pending"}}});
    client.merge(&format!("{PODS}/p"), pending).await;
    let mut reply = client.get(&format!("{PODS}/p/log")).await;
    while reply.code == 200 {
        reply = client.get(&format!("{PODS}/p/log")).await;
    }
    assert!(reply.message().ends_with("is waiting to start: ContainerCreating"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_command_echoes_its_words_and_ends() {
    let (server, _client) = start_kubelet(json!({})).await;
    let path = "exec?command=echo&command=a%20b&stdout=true&stderr=true";
    let mut socket = open(&server, path, V5).await.unwrap();
    assert_eq!(socket.headers[PROTOCOL], V5);
    assert_eq!(next(&mut socket).await, (1, String::new()), "it has begun");
    assert_eq!(next(&mut socket).await, (1, "echo a b\n".to_owned()));
    let (channel, status) = next(&mut socket).await;
    assert_eq!(channel, 3);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status, json!({"metadata": {}, "status": "Success"}));
    assert_eq!(socket.brief().await, "CLOSE 1000");
}

#[tokio::test(start_paused = true)]
async fn a_command_echoes_its_input_until_that_ends() {
    let code = json!({"windlass.dev/exit-code": "3"});
    let (server, _client) = start_kubelet(code).await;
    let path = "exec?command=cat&stdin=true&stdout=true";
    let mut socket = open(&server, path, V5).await.unwrap();
    next(&mut socket).await;
    assert_eq!(next(&mut socket).await.1, "cat\n");
    socket.send(data(4, "{\"Width\":80}")).await;
    socket.send(data(0, "hello")).await;
    assert_eq!(next(&mut socket).await, (1, "hello".to_owned()));
    socket.send(Message::binary(&[255, 0][..])).await;
    let (channel, status) = next(&mut socket).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!((channel, &status["reason"]), (3, &json!("NonZeroExitCode")));
    assert_eq!(status["details"]["causes"], json!([{"reason": "ExitCode", "message": "3"}]));
    assert_eq!(socket.brief().await, "CLOSE 1000");
}

#[tokio::test(start_paused = true)]
async fn older_protocols_and_base64_are_spoken_too() {
    let (server, _client) = start_kubelet(json!({"windlass.dev/log": "up\n"})).await;
    let path = "attach?stdout=true&stdin=true&tty=true";
    let mut socket = open(&server, path, "foo, v4.base64.channel.k8s.io").await.unwrap();
    assert_eq!(socket.headers[PROTOCOL], "v4.base64.channel.k8s.io");
    assert_eq!(socket.next().await, Some(Message::text("1")));
    assert_eq!(socket.next().await, Some(Message::text("1dXAK")), "the log of the program");
    // The byte by which a terminal ends the input.
    socket.send(Message::text("0BA==")).await;
    assert_eq!(socket.next().await, Some(Message::text("1BA==")));
    assert!(socket.next().await.unwrap().to_text().unwrap().starts_with('3'));
    let mut socket = open(&server, "exec?command=x&stdout=true", "").await.unwrap();
    next(&mut socket).await;
    assert_eq!(next(&mut socket).await.1, "x\n");
    assert_eq!(socket.brief().await, "CLOSE 1000", "the oldest protocol has no status");
}

#[tokio::test(start_paused = true)]
async fn forwarded_ports_echo_each_on_its_own_channels() {
    let (server, _client) = start_kubelet(json!({})).await;
    let mut socket = open(&server, "portforward?ports=80,258", "v4.channel.k8s.io").await.unwrap();
    for (channel, port) in [(0, [80, 0]), (1, [80, 0]), (2, [2, 1]), (3, [2, 1])] {
        let wanted = Message::binary([&[channel], &port[..]].concat());
        assert_eq!(socket.next().await, Some(wanted));
    }
    socket.send(data(2, "second")).await;
    socket.send(data(1, "errors are not read")).await;
    socket.send(data(4, "no such port")).await;
    socket.send(data(0, "first")).await;
    assert_eq!(next(&mut socket).await, (2, "second".to_owned()));
    assert_eq!(next(&mut socket).await, (0, "first".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn forwarded_ports_echo_within_a_tunnel_of_spdy() {
    let (server, _client) = start_kubelet(json!({})).await;
    let protocol = "SPDY/3.1+portforward.k8s.io";
    let mut socket = open(&server, "portforward", protocol).await.unwrap();
    assert_eq!(socket.headers[PROTOCOL], protocol);
    let data = Message::binary(&[0, 0, 0, 1, 0, 0, 0, 2, b'h', b'i'][..]);
    socket.send(data.clone()).await;
    assert_eq!(socket.next().await, Some(data));
    socket.send(Message::binary(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff][..])).await;
    assert_eq!(socket.brief().await, "CLOSE 1009");
}

#[tokio::test(start_paused = true)]
async fn sessions_need_an_upgrade_that_is_known() {
    let (server, mut client) = start_kubelet(json!({})).await;
    let plain = client.get(&format!("{PODS}/p/exec?command=x")).await;
    assert_eq!((plain.code, plain.message()), (400, "Upgrade request required"));
    let unknown = open(&server, "exec?command=x", "foo").await.err().unwrap();
    assert_eq!(unknown.0, 403);
    let ports = open(&server, "portforward?ports=x", "v4.channel.k8s.io").await.err().unwrap();
    assert_eq!(ports.0, 400);
    assert!(ports.1.contains("cannot convert to []int32"), "{}", ports.1);
    let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let spdy = client.send("POST", &format!("{PODS}/p/exec?command=x"), &spdy, "").await;
    assert_eq!(spdy.code, 400);
    assert!(spdy.message().contains("WebSocket"), "{}", spdy.text);
    let post = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-key", "x"),
        ("sec-websocket-version", "13"),
    ];
    let post = client.send("POST", &format!("{PODS}/p/exec?command=x"), &post, "").await;
    assert_eq!((post.code, post.text.as_str()), (405, "bad method"));
}

#[tokio::test(start_paused = true)]
async fn without_a_kubelet_the_newest_protocol_tells_the_failure_inside() {
    let (server, mut client) = start().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "i"}]}});
    client.post(PODS, pod).await;
    let status = json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]});
    client.post("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    client.merge("/api/v1/nodes/n/status", json!({"status": status})).await;
    let path = "exec?command=a%20b&stdout=true&stderr=true";
    let mut socket = open(&server, path, &format!("v4.channel.k8s.io, {V5}")).await.unwrap();
    assert_eq!(socket.headers[PROTOCOL], V5);
    assert_eq!(next(&mut socket).await, (1, String::new()));
    let status: Value = serde_json::from_str(&next(&mut socket).await.1).unwrap();
    let text = "error sending request: Post \"https://192.0.2.1:10250/exec/default/p/c?\
                command=a+b&error=1&output=1\": dial tcp 192.0.2.1:10250: connect: connection refused";
    assert_eq!(status["message"], format!("Internal error occurred: {text}"));
    assert_eq!((&status["code"], status.get("kind")), (&json!(500), None));
    assert_eq!(socket.brief().await, "CLOSE 1000");
    let refused = open(&server, "exec?command=a", "v4.channel.k8s.io").await.err().unwrap();
    assert_eq!(refused.0, 500);
    assert!(refused.1.contains("error dialing backend: dial tcp 192.0.2.1:10250"), "{}", refused.1);
    let plain = client.get(&format!("{PODS}/p/attach")).await;
    assert_eq!((plain.code, plain.message()), (400, "Upgrade request required"));
    let log = client.get(&format!("{PODS}/p/log?tailLines=3&follow=true")).await;
    assert!(
        log.message().contains("/containerLogs/default/p/c?follow=true&tailLines=3\""),
        "{}",
        log.text
    );
}
