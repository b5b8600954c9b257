//! Sessions up to the upgrade.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;
use crate::client::test_support::Counting;
use crate::client::{ClientConfig, InFlightWrites, WriteGate};
use windlass_core::error::Error;

/// Answers with `text` instead of an upgrade, and closes.
fn answering(text: &'static str) -> Arc<Door> {
    Door::to(move |mut io| async move {
        head(&mut io).await;
        io.write_all(text.as_bytes()).await.unwrap();
    })
}

async fn exec(door: &Arc<Door>) -> Result<Session, Error> {
    door.pods().exec("db-0", &["x"], ExecOptions::default()).await
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_upgrade_is_the_servers_error_and_is_not_repeated() {
    let status = |code: u16, reason: &str| {
        let body = format!(
            r#"{{"kind":"Status","status":"Failure","message":"no","reason":"{reason}","code":{code}}}"#
        );
        let length = body.len();
        let text = format!("HTTP/1.1 {code} x\r\ncontent-length: {length}\r\n\r\n{body}");
        &*Box::leak(text.into_boxed_str())
    };
    let cases = [
        (status(400, "BadRequest"), ErrorKind::BadRequest),
        (status(401, "Unauthorized"), ErrorKind::Unauthorized),
        (status(403, "Forbidden"), ErrorKind::Forbidden),
        (status(404, "NotFound"), ErrorKind::NotFound),
        (status(429, "TooManyRequests"), ErrorKind::TooManyRequests),
        (status(503, "ServiceUnavailable"), ErrorKind::Server),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>no backend</html>", ErrorKind::Server),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", ErrorKind::Server),
    ];
    for (answer, kind) in cases {
        let door = answering(answer);
        let error = exec(&door).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with("cannot run a command in pods \"db-0\""), "{error}");
        assert_eq!(door.connections(), 1, "{error}");
        if answer.contains("Status") {
            assert_eq!(error.status().unwrap().message, "no");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_to_something_else_is_refused() {
    let answers = [
        ("Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n", "not our WebSocket"),
        ("Sec-WebSocket-Accept: bm90IHRoZSByaWdodCBrZXk=\r\n", "not our WebSocket"),
        ("accept\r\n", "none of the protocols v5.channel.k8s.io, v4.channel.k8s.io"),
        ("accept\r\nSec-WebSocket-Protocol: channel.k8s.io\r\n", "`channel.k8s.io`, which was not"),
    ];
    for (headers, expected) in answers {
        let door = Door::to(move |mut io| async move {
            let head = head(&mut io).await;
            let accept = derive_accept_key(header(&head, "sec-websocket-key").unwrap().as_bytes());
            let headers = headers.replace("accept", &format!("Sec-WebSocket-Accept: {accept}"));
            let answer = format!(
                "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n{headers}\r\n"
            );
            io.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let error = exec(&door).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_it_is_tried_again_and_after_it_was_sent_never() {
    let door = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        peer.send(3, SUCCESS).await;
    });
    door.refusals.store(3, Ordering::Relaxed);
    assert!(exec(&door).await.unwrap().wait().await.unwrap().success());
    assert_eq!(door.connections(), 4);
    door.refusals.store(100, Ordering::Relaxed);
    let error = exec(&door).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);

    let lost = Door::to(|mut io| async move {
        head(&mut io).await;
    });
    let error = exec(&lost).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.to_string().contains("may have been executed"), "{error}");
    assert_eq!(lost.connections(), 1);
    let error = lost.pods().port_forward("db-0", &[80]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
}

#[tokio::test(start_paused = true)]
async fn a_total_deadline_holds_up_to_the_upgrade_and_not_beyond() {
    let silent = Door::to(|mut io| async move {
        head(&mut io).await;
        std::future::pending::<()>().await;
    });
    let started = Instant::now();
    let error = exec(&silent).await.unwrap_err();
    assert_eq!((error.kind(), started.elapsed()), (ErrorKind::Ambiguous, Duration::from_secs(30)));
    let started = Instant::now();
    let options = ExecOptions { timeout: Some(Duration::from_secs(5)), ..ExecOptions::default() };
    let error = silent.pods().attach("db-0", options.clone()).await.unwrap_err();
    assert_eq!((error.kind(), started.elapsed()), (ErrorKind::Timeout, Duration::from_secs(5)));

    let slow = Door::to(|io| async {
        let mut peer = Peer::accept(io, V5).await;
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            peer.send(1, ".").await;
        }
        peer.send(3, SUCCESS).await;
    });
    let session = slow.pods().exec("db-0", &["x"], options).await.unwrap();
    assert_eq!(session.output(100).await.unwrap().stdout.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_read_again_once() {
    let folder = std::env::temp_dir().join(format!("windlass-upgrade-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("token"), "old").unwrap();
    let path = folder.join("token");
    let door = Door::to(move |mut io| {
        let path = path.clone();
        async move {
            let head = head(&mut io).await;
            assert_eq!(header(&head, "impersonate-user"), Some("jane"));
            if header(&head, "authorization") == Some("Bearer new") {
                agree(&mut io, &head, V5).await;
                let mut peer = Peer { socket: Socket::new(io, Role::Server), head };
                peer.send(3, SUCCESS).await;
            } else {
                std::fs::write(path, "new").unwrap();
                let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
                io.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let text = format!(
        "current-context: c\n\
         clusters: [{{name: c, cluster: {{server: 'https://c.example'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u, namespace: shop}}}}]\n\
         users: [{{name: u, user: {{tokenFile: '{}/token', as: jane}}}}]\n",
        folder.display()
    );
    let config = ClientConfig::from_yaml(&text, None).unwrap();
    let connector = Arc::clone(&door) as Arc<dyn Connect>;
    let client = Client::builder().config(config).connector(connector).environment(environment());
    let pods = client.build().unwrap().namespace::<Pod>("shop");
    let mut session = pods.exec("db-0", &["x"], ExecOptions::default()).await.unwrap();
    assert!(session.wait().await.unwrap().success());
    assert_eq!(door.connections(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Admits this number of requests, each for a limited time.
#[derive(Debug)]
struct Gate(Mutex<u32>, Option<Duration>);

impl WriteGate for Gate {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        let mut left = self.0.lock();
        let refused = || Error::new(ErrorKind::NotLeader, "the lease is lost");
        *left = left.checked_sub(1).ok_or_else(refused)?;
        Ok(self.1)
    }
}

#[tokio::test(start_paused = true)]
async fn the_write_gate_is_asked_before_connecting_and_before_sending() {
    let silent = Door::to(|mut io| async move {
        head(&mut io).await;
        std::future::pending::<()>().await;
    });
    let attempt = async |admitted, limit| {
        let gate = Arc::new(Gate(Mutex::new(admitted), limit));
        let pods = silent.client().gated(gate).namespace::<Pod>("shop");
        pods.exec("db-0", &["x"], ExecOptions::default()).await.unwrap_err().kind()
    };
    assert_eq!(attempt(0, None).await, ErrorKind::NotLeader);
    assert_eq!(silent.connections(), 0);
    assert_eq!(attempt(1, None).await, ErrorKind::NotLeader);
    assert_eq!(silent.connections(), 1);
    let started = Instant::now();
    assert_eq!(attempt(2, Some(Duration::from_secs(3))).await, ErrorKind::Ambiguous);
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn l8_a_command_whose_start_was_given_up_counts_for_the_lease() {
    let silent = Door::to(|mut io| async move {
        head(&mut io).await;
        std::future::pending::<()>().await;
    });
    let second = Duration::from_secs(1);
    let client = silent.client();
    let in_flight_writes = InFlightWrites::new(client.environment().clock.clone(), 2 * second);
    let pods = client.gated(Arc::new(Counting(in_flight_writes.clone()))).namespace::<Pod>("shop");
    let started = pods.exec("db-0", &["x"], ExecOptions::default());
    assert!(tokio::time::timeout(second, started).await.is_err());
    // The request had 7.5 s, and the margin is added.
    assert_eq!(in_flight_writes.outstanding(), (0, Duration::from_millis(8_500)));
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let door = Door::to(|_| async {});
    let pods = door.pods();
    let no_streams = ExecOptions { stdout: false, stderr: false, ..ExecOptions::default() };
    let error = pods.exec("db-0", &["x"], no_streams.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let only_stderr_of_a_terminal = ExecOptions { stderr: true, tty: true, ..no_streams };
    let error = pods.attach("db-0", only_stderr_of_a_terminal).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let error = pods.exec("db-0", &[], ExecOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("there is no command"), "{error}");
    for name in ["", "a/b", ".."] {
        let error = pods.exec(name, &["x"], ExecOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
    let everywhere = door.client().all::<Pod>();
    let error = everywhere.exec("db-0", &["x"], ExecOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(door.connections(), 0);
}
