//! Forwarded ports.

use std::time::Duration;

use super::*;

/// Sends the port on both channels, as kubelets do, then echoes until the word to end.
async fn echo(io: BoxIo) {
    let mut peer = Peer::accept(io, V4).await;
    let line = peer.head.lines().next().unwrap();
    let port = line.split_once("ports=").unwrap().1.split(' ').next().unwrap();
    let port: u16 = port.parse().unwrap();
    assert_eq!(header(&peer.head, "sec-websocket-protocol"), Some(V4));
    peer.send(0, port.to_le_bytes()).await;
    peer.send(1, port.to_le_bytes()).await;
    while let Some((channel, data)) = peer.data().await {
        assert_eq!(channel, 0);
        if data == "end" {
            break;
        }
        peer.send(0, format!("{port}:").as_bytes()).await;
        peer.send(0, data).await;
    }
    peer.close().await;
}

#[tokio::test(start_paused = true)]
async fn each_port_is_a_stream_of_its_own() {
    let door = Door::to(echo);
    let mut ports = door.pods().port_forward("db-0", &[5432, 80]).await.unwrap();
    assert_eq!(ports.ports().collect::<Vec<_>>(), [80, 5432]);
    assert_eq!(door.connections(), 2);
    let (mut db, mut web) = (ports.take(5432).unwrap(), ports.take(80).unwrap());
    assert!(ports.take(80).is_none());
    assert_eq!((db.port(), web.port()), (5432, 80));
    let mut read = [0; 9];
    db.write_all(b"ping").await.unwrap();
    db.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"5432:ping");
    web.write_all(b"end").await.unwrap();
    let mut rest = Vec::new();
    web.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() && web.error().is_none());
    assert!(web.write_all(b"x").await.is_err());
    db.write_all(b"pong").await.unwrap();
    db.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"5432:pong", "the end of one port is not the end of another");
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_what_the_pod_sends_still_arrives() {
    let mut ports = Door::to(echo).pods().port_forward("db-0", &[80]).await.unwrap();
    let mut web = ports.take(80).unwrap();
    web.write_all(b"last").await.unwrap();
    web.shutdown().await.unwrap();
    let mut read = [0; 7];
    web.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"80:last");
    assert_eq!(web.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_nobody_listens_on_is_told_by_its_stream() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V4).await;
        // The port byte by byte, and the error with the second of them.
        peer.send(0, [80]).await;
        peer.send(1, [80]).await;
        peer.send(1, b"\0error forwarding port 80: connection refused").await;
        peer.send(0, b"\0rest").await;
        peer.close().await;
    });
    let mut web = door.pods().port_forward("db-0", &[80]).await.unwrap().take(80).unwrap();
    let mut read = Vec::new();
    let error = web.read_to_end(&mut read).await.unwrap_err();
    assert_eq!(read, b"rest");
    assert!(error.to_string().contains("connection refused"), "{error}");
    let error = web.error().unwrap();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.to_string().contains("forward ports of pods \"db-0\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_cut_does_not_look_complete() {
    for port in [80_u16, 81] {
        let door = Door::to(move |io| async move {
            let mut peer = Peer::accept(io, V4).await;
            peer.send(0, port.to_le_bytes()).await;
            peer.send(0, "half").await;
        });
        let mut web = door.pods().port_forward("db-0", &[80]).await.unwrap().take(80).unwrap();
        let mut read = Vec::new();
        let error = web.read_to_end(&mut read).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let expected = if port == 80 { ("half", "without a word") } else { ("", "another port") };
        assert_eq!(read, expected.0.as_bytes());
        assert!(error.to_string().contains(expected.1), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_closes_its_connection() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let tell = Arc::clone(&gone);
    let door = Door::to(move |io| {
        let tell = Arc::clone(&tell);
        async move {
            let mut peer = Peer::accept(io, V4).await;
            assert!(peer.data().await.is_none());
            tell.notify_one();
        }
    });
    let ports = door.pods().port_forward("db-0", &[80]).await.unwrap();
    drop(ports);
    tokio::time::timeout(Duration::from_secs(1), gone.notified()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ports_that_make_no_sense_are_refused_before_anything_is_sent() {
    let door = Door::to(echo);
    let pods = door.pods();
    for ports in [&[][..], &[0], &[80, 0], &[1; 33]] {
        let error = pods.port_forward("db-0", ports).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    assert_eq!(pods.port_forward("a/b", &[80]).await.unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(door.connections(), 0);
    let error = pods.port_forward("db-0", &[80, 80]).await.unwrap_err();
    assert!(error.to_string().contains("named twice"), "{error}");
}
