//! Streams and results of healthy sessions.

use std::time::Duration;

use super::*;

/// `cat` in a container, on a server that ends input by version 5 of the protocol.
async fn cat(io: BoxIo) {
    let mut peer = Peer::accept(io, V5).await;
    peer.send(1, "").await;
    while let Some((channel, data)) = peer.data().await {
        match (channel, &data[..]) {
            (0, _) => peer.send(1, data).await,
            (255, [0]) => break,
            other => panic!("not expected: {other:?}"),
        }
    }
    peer.send(3, SUCCESS).await;
    peer.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_prints_on_two_streams_and_ends_with_its_exit_code() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        let line = peer.head.lines().next().unwrap();
        assert_eq!(
            line,
            "GET /api/v1/namespaces/shop/pods/db-0/exec?command=sh&command=-c&command=echo%20%26\
             &container=main&stdin=false&stdout=true&stderr=true&tty=false HTTP/1.1"
        );
        let shown = ["connection", "upgrade", "sec-websocket-version", "sec-websocket-protocol"];
        let shown = shown.map(|name| header(&peer.head, name).unwrap());
        assert_eq!(shown, ["Upgrade", "websocket", "13", "v5.channel.k8s.io, v4.channel.k8s.io"]);
        peer.send(1, "").await;
        peer.send(1, "one ").await;
        peer.send(2, "two").await;
        peer.send(1, "three").await;
        // In two pieces, which is unusual but allowed.
        peer.send(3, &CODE_3[..20]).await;
        peer.send(3, &CODE_3[20..]).await;
        peer.close().await;
    });
    let options = ExecOptions { container: Some("main".into()), ..ExecOptions::default() };
    let session = door.pods().exec("db-0", &["sh", "-c", "echo &"], options).await.unwrap();
    assert_eq!(session.protocol(), V5);
    let printed = session.output(100).await.unwrap();
    assert_eq!((&*printed.stdout, &*printed.stderr), (&b"one three"[..], &b"two"[..]));
    assert_eq!(printed.status.code(), 3);
    assert!(!printed.status.success());
}

async fn echo_through(pods: Api<Pod>) {
    let mut session = pods.exec("db-0", &["cat"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    assert!(session.stdin().is_none() && session.stdout().is_none());
    stdin.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    stdout.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"hello");
    stdin.write_all(b" and good-bye").await.unwrap();
    stdin.shutdown().await.unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, " and good-bye");
    assert!(session.wait().await.unwrap().success());
    assert!(session.wait().await.unwrap().success(), "it says the same again");
    let error = stdin.write(b"more").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn input_comes_back_and_its_end_is_told_in_version_5() {
    echo_through(Door::to(cat).pods()).await;
}

#[tokio::test]
async fn input_comes_back_over_loopback_tcp() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { cat(Box::new(listener.accept().await.unwrap().0)).await });
    let config = crate::client::ClientConfig::new(&server).unwrap();
    echo_through(Client::new(config).unwrap().namespace::<Pod>("shop")).await;
}

#[tokio::test(start_paused = true)]
async fn input_that_is_dropped_or_closed_from_outside_has_ended() {
    let mut session = Door::to(cat).pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    drop(session.stdin());
    assert!(session.wait().await.unwrap().success());

    let mut session = Door::to(cat).pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    stdin.write_all(b"kept").await.unwrap();
    session.close_stdin().await.unwrap();
    let mut read = String::new();
    stdout.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "kept");
    assert!(stdin.write_all(b"lost").await.is_err());

    let mut session = Door::to(cat).pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    assert!(session.wait().await.unwrap().success(), "waiting closes input that nobody took");
}

#[tokio::test(start_paused = true)]
async fn version_4_cannot_tell_the_end_of_input_and_says_so() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V4).await;
        assert_eq!(peer.data().await.unwrap(), (0, Bytes::from("all")));
        // No other message comes, whichever stream the client closes.
        let more = tokio::time::timeout(Duration::from_secs(5), peer.data()).await;
        assert!(more.is_err(), "{more:?}");
        peer.send(1, "ok").await;
        peer.send(3, SUCCESS).await;
    });
    let mut session = door.pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    assert_eq!(session.protocol(), V4);
    let mut stdin = session.stdin().unwrap();
    stdin.write_all(b"all").await.unwrap();
    assert_eq!(stdin.shutdown().await.unwrap_err().kind(), io::ErrorKind::Unsupported);
    let error = session.close_stdin().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains(V4), "{error}");
    drop(stdin);
    assert_eq!(session.output(10).await.unwrap().stdout, b"ok");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_is_told_its_size_and_has_one_output() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        assert!(peer.head.contains("stderr=false&tty=true"), "{}", peer.head);
        let (channel, size) = peer.data().await.unwrap();
        assert_eq!((channel, &*size), (4, &br#"{"Width":120,"Height":40}"#[..]));
        peer.send(3, SUCCESS).await;
    });
    let options = ExecOptions { tty: true, ..ExecOptions::default() };
    let mut session = door.pods().exec("db-0", &["top"], options).await.unwrap();
    assert!(session.stderr().is_none());
    session.resize(120, 40).await.unwrap();
    assert!(session.wait().await.unwrap().success());

    let session = Door::to(cat).pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    assert_eq!(session.resize(1, 1).await.unwrap_err().kind(), ErrorKind::Usage);
}

#[tokio::test(start_paused = true)]
async fn attach_joins_what_runs() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        let line = peer.head.lines().next().unwrap();
        assert!(line.contains("/pods/db-0/attach?stdin=false&stdout=true"), "{line}");
        peer.send(1, "tick").await;
        peer.send(3, SUCCESS).await;
    });
    let session = door.pods().attach("db-0", ExecOptions::default()).await.unwrap();
    assert_eq!(session.output(10).await.unwrap().stdout, b"tick");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_cannot_be_started_is_the_servers_error() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        peer.send(
            3,
            r#"{"status":"Failure","message":"no such file","reason":"InternalError","code":500}"#,
        )
        .await;
    });
    let mut session = door.pods().exec("db-0", &["nothing"], ExecOptions::default()).await.unwrap();
    let mut stdout = session.stdout().unwrap();
    let error = session.wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.to_string().contains("no such file"), "{error}");
    assert!(stdout.read_u8().await.unwrap_err().to_string().contains("no such file"));
}

#[tokio::test(start_paused = true)]
async fn output_beyond_its_limit_gives_the_session_up() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        peer.send(1, "123").await;
        peer.send(2, "456").await;
        peer.send(3, SUCCESS).await;
    });
    let pods = door.pods();
    let session = pods.exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    assert_eq!(session.output(6).await.unwrap().stderr, b"456");
    let session = pods.exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    let error = session.output(5).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("more than 5 bytes"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_debug_output_shows_what_a_command_was_told_or_printed() {
    let mut session = Door::to(cat).pods().exec("db-0", &["canary"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    stdin.write_all(b"canary").await.unwrap();
    stdin.shutdown().await.unwrap();
    let mut read = [0];
    stdout.read_exact(&mut read).await.unwrap();
    let mut text = format!("{session:?} {stdin:?} {stdout:?}");
    drop(stdout);
    let status = session.wait().await.unwrap();
    let captured = Captured { status, stdout: b"canary".to_vec(), stderr: b"canary".to_vec() };
    text += &format!("{session:?} {captured:?}");
    assert!(!text.contains("canary") && !text.contains("97, 110"), "{text}");
}
