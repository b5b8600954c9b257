//! Back-pressure, broken connections, silent peers.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

const MUCH: usize = 10 << 20;
/// Bytes that servers send in a single message.
const PIECE: usize = 32 << 10;
/// Bytes that may be buffered between two programs: the pipe, the read buffer, three messages of
/// 32 KiB and some slack.
const UNDER_WAY: usize = 300 << 10;

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_go_through_in_both_directions_at_once() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        while let Some((channel, data)) = peer.data().await {
            match channel {
                0 => peer.send(1, data).await,
                _ => break,
            }
        }
        peer.send(3, SUCCESS).await;
    });
    let mut session = door.pods().exec("db-0", &["cat"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    let writing = tokio::spawn(async move {
        let all: Vec<u8> = (0..MUCH).map(byte).collect();
        stdin.write_all(&all).await.unwrap();
        stdin.shutdown().await.unwrap();
    });
    let mut read = Vec::new();
    stdout.read_to_end(&mut read).await.unwrap();
    writing.await.unwrap();
    assert_eq!(read.len(), MUCH);
    assert!(read.iter().enumerate().all(|(at, found)| *found == byte(at)));
    assert!(session.wait().await.unwrap().success());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_stops_the_server_and_nothing_is_lost() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let door = Door::to(move |io| {
        let counter = Arc::clone(&counter);
        async move {
            let mut peer = Peer::accept(io, V5).await;
            for at in 0..MUCH / PIECE {
                peer.send(1, vec![byte(at); PIECE]).await;
                counter.fetch_add(PIECE, Ordering::Relaxed);
            }
            peer.send(3, SUCCESS).await;
            peer.close().await;
        }
    });
    let mut session = door.pods().exec("db-0", &["dump"], ExecOptions::default()).await.unwrap();
    let mut stdout = session.stdout().unwrap();
    // Longer than a server may be silent: the client is the side that does not read.
    sleep(Duration::from_secs(3600)).await;
    let under_way = sent.load(Ordering::Relaxed);
    assert!((PIECE..UNDER_WAY).contains(&under_way), "{under_way}");
    let mut piece = [0; PIECE];
    for at in 0..MUCH / PIECE {
        stdout.read_exact(&mut piece).await.unwrap();
        assert_eq!(piece, [byte(at); PIECE]);
        if at % 32 == 0 {
            sleep(Duration::from_secs(50)).await;
            let under_way = sent.load(Ordering::Relaxed) - at * PIECE;
            assert!(under_way < UNDER_WAY, "{under_way}");
        }
    }
    assert_eq!(stdout.read(&mut piece).await.unwrap(), 0);
    assert!(session.wait().await.unwrap().success());
}

#[tokio::test(start_paused = true)]
async fn output_that_nobody_wants_is_thrown_away() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        for _ in 0..MUCH / PIECE {
            peer.send(1, vec![0; PIECE]).await;
        }
        peer.send(2, "the end").await;
        peer.send(3, CODE_3).await;
    });
    let mut session = door.pods().exec("db-0", &["dump"], ExecOptions::default()).await.unwrap();
    let mut stderr = session.stderr().unwrap();
    drop(session.stdout());
    let mut read = String::new();
    stderr.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "the end");
    let mut session = door.pods().exec("db-0", &["dump"], ExecOptions::default()).await.unwrap();
    assert_eq!(session.wait().await.unwrap().code(), 3, "nothing was taken at all");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_stops_the_writer_for_up_to_ten_minutes() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        sleep(Duration::from_secs(590)).await;
        let mut read = 0;
        while let Some((0, data)) = peer.data().await {
            read += data.len();
        }
        peer.send(1, read.to_string()).await;
        peer.send(3, SUCCESS).await;
    });
    let mut session = door.pods().exec("db-0", &["count"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    let started = Instant::now();
    let mut written = 0;
    while tokio::time::timeout(Duration::from_secs(1), stdin.write_all(&[0; 1024])).await.is_ok() {
        written += 1024;
    }
    assert!(written < UNDER_WAY, "{written}");
    drop(stdin);
    let mut read = String::new();
    stdout.read_to_string(&mut read).await.unwrap();
    let read: usize = read.parse().unwrap();
    assert!((written..=written + 1024).contains(&read), "{read} of {written}");
    assert!(started.elapsed() >= Duration::from_secs(590));
    assert!(session.wait().await.unwrap().success());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_never_reads_is_given_up_after_ten_minutes() {
    let door = Door::to(|io| async {
        let _peer = Peer::accept(io, V5).await;
        std::future::pending::<()>().await;
    });
    let mut session = door.pods().exec("db-0", &["count"], with_stdin()).await.unwrap();
    let mut stdin = session.stdin().unwrap();
    let started = Instant::now();
    while stdin.write_all(&[0; 1024]).await.is_ok() {}
    let took = started.elapsed().as_secs();
    assert!((600..=616).contains(&took), "{took}");
    let error = session.wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.to_string().contains("said nothing for 600 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a5_a_half_open_session_is_noticed_within_45_seconds() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        sleep(Duration::from_secs(7)).await;
        peer.send(1, "last words").await;
        std::future::pending::<()>().await;
    });
    let started = Instant::now();
    let mut session = door.pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    let error = session.wait().await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 7 + 45);
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_session_lives_on_pings_and_answers_those_of_the_server() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        let started = Instant::now();
        let mut pings = 0;
        while pings < 240 {
            if let Some(Message::Ping(_)) = peer.next().await {
                pings += 1;
            }
        }
        assert_eq!(started.elapsed(), Duration::from_secs(3600));
        peer.put(Message::Ping(Bytes::from("well?"))).await.unwrap();
        while peer.next().await.unwrap() != Message::Pong(Bytes::from("well?")) {}
        peer.send(3, SUCCESS).await;
    });
    let mut session = door.pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    assert!(session.wait().await.unwrap().success());
}

/// Accepts the upgrade, then sends `bytes` as they are and closes the connection.
fn raw(bytes: Vec<u8>) -> Arc<Door> {
    Door::to(move |mut io| {
        let bytes = bytes.clone();
        async move {
            let head = head(&mut io).await;
            agree(&mut io, &head, V5).await;
            io.write_all(&bytes).await.unwrap();
            // Reads until the client closes.
            let _ = tokio::io::copy(&mut io, &mut tokio::io::sink()).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_message_in_many_frames_is_one_message() {
    let (mut bytes, status) = (frame(0x02, b"\x01fra"), [b"\x03", SUCCESS.as_bytes()].concat());
    bytes.extend(frame(0x89, b"a ping between"));
    bytes.extend(frame(0x00, b"gmen"));
    bytes.extend(frame(0x80, b"ted"));
    bytes.extend(frame(0x82, &status));
    let session = raw(bytes).pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    assert_eq!(session.output(100).await.unwrap().stdout, b"fragmented");
}

#[tokio::test(start_paused = true)]
async fn what_comes_on_an_unknown_channel_is_ignored() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        for channel in [0, 4, 5, 77, 255] {
            peer.send(channel, "?").await;
        }
        peer.put(Message::Binary(Bytes::new())).await.unwrap();
        peer.send(1, "!").await;
        peer.send(3, SUCCESS).await;
    });
    let session = door.pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    assert_eq!(session.output(100).await.unwrap().stdout, b"!");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_breaks_the_protocol_is_left() {
    let huge = [&[0x82, 127][..], &(5_u64 << 20).to_be_bytes()].concat();
    let masked = [0x82, 0x82, 0, 0, 0, 0, 1, b'x'].to_vec();
    let compressed = frame(0xc2, b"\x01x");
    let verdict = frame(0x82, b"\x03well done");
    let closed = frame(0x88, &[&1011_u16.to_be_bytes()[..], b"out of order"].concat());
    let cases = [
        (huge, "more than 4194304 bytes"),
        (masked, "violates the WebSocket protocol"),
        (compressed, "violates the WebSocket protocol"),
        (frame(0x81, b"\x01x"), "text where only bytes"),
        (verdict, "not a Status"),
        (closed, "code 1011 \"out of order\""),
    ];
    for (bytes, expected) in cases {
        let pods = raw(bytes).pods();
        let mut session = pods.exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
        let mut stdout = session.stdout().unwrap();
        let read = stdout.read_u8().await.unwrap_err();
        assert_eq!(read.kind(), io::ErrorKind::UnexpectedEof, "{expected}");
        let error = session.wait().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// Sends half of the promised bytes, then closes.
async fn cut(io: BoxIo) {
    let mut io = io;
    let head = head(&mut io).await;
    agree(&mut io, &head, V5).await;
    let mut bytes = frame(0x82, b"\x01whole");
    bytes.extend(&frame(0x82, b"\x01half a frame")[..8]);
    io.write_all(&bytes).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_in_a_frame_delivers_whole_frames_and_then_an_error() {
    let door = Door::to(cut);
    let mut session = door.pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    let mut read = Vec::new();
    let error = session.stdout().unwrap().read_to_end(&mut read).await.unwrap_err();
    assert_eq!((&*read, error.kind()), (&b"whole"[..], io::ErrorKind::UnexpectedEof));
    let error = session.wait().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.to_string().contains("how it ended is unknown"), "{error}");
    assert_eq!(door.connections(), 1, "a command is not started again");
    let mut session = door.pods().attach("db-0", ExecOptions::default()).await.unwrap();
    assert_eq!(session.wait().await.unwrap_err().kind(), ErrorKind::Transport);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_without_a_status_leaves_doubt() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        peer.send(1, "done?").await;
        peer.close().await;
    });
    let session = door.pods().exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    let error = session.output(100).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.to_string().contains("closed the connection"), "{error}");
}

#[tokio::test]
async fn a_reset_on_loopback_is_told_by_every_stream() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
        let mut peer = Peer::accept(Box::new(tcp), V5).await;
        peer.data().await.unwrap();
    });
    let config = crate::client::ClientConfig::new(&server).unwrap();
    let pods = Client::new(config).unwrap().namespace::<Pod>("shop");
    let mut session = pods.exec("db-0", &["x"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    stdin.write_all(b"x").await.unwrap();
    serving.await.unwrap();
    assert!(stdout.read_u8().await.is_err());
    assert_eq!(session.wait().await.unwrap_err().kind(), ErrorKind::Ambiguous);
    assert!(stdin.write_all(b"x").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_session_closes_the_connection_and_its_streams() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let tell = Arc::clone(&gone);
    let door = Door::to(move |io| {
        let tell = Arc::clone(&tell);
        async move {
            let mut peer = Peer::accept(io, V5).await;
            assert!(peer.data().await.is_none());
            tell.notify_one();
        }
    });
    let mut session = door.pods().exec("db-0", &["x"], with_stdin()).await.unwrap();
    let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
    drop(session);
    gone.notified().await;
    assert_eq!(stdout.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    assert_eq!(stdin.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
