//! Watches over a pipe to a server that sends scripted bytes at scripted times.

use std::io;
use std::pin::Pin;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::client::{BoxIo, Client, Connect};
use windlass_core::environment::Environment;

/// Answers any request with these pieces, each after a pause; then nothing.
#[derive(Debug)]
struct Drip(Vec<(u64, String)>);

impl Connect for Drip {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(drip(theirs, self.0.clone()));
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

async fn drip(mut io: DuplexStream, pieces: Vec<(u64, String)>) -> io::Result<()> {
    let mut head = [0; 4096];
    let _ = io.read(&mut head).await?;
    io.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
    for (pause, piece) in pieces {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        io.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await?;
    }
    std::future::pending().await
}

fn event(name: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"{name}\"}}}}}}\n")
}

async fn watch(pieces: Vec<(u64, String)>, limit: usize) -> WatchStream<ConfigMap> {
    let client = Client::over(Arc::new(Drip(pieces)), Environment::system());
    client.all::<ConfigMap>().watch().frame_limit(limit).await.expect("the watch begins")
}

async fn name(stream: &mut WatchStream<ConfigMap>) -> String {
    match stream.next().await {
        Some(Ok(WatchEvent::Added(object))) => object.metadata.name.unwrap_or_default(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a13_an_event_beyond_the_limit_is_an_error_and_the_next_follows() {
    let large = event(&"x".repeat(400));
    let (half, rest) = large.split_at(100).to_owned_pair();
    let pieces = vec![(0, event("a") + &half), (1, rest + &event("b"))];
    let mut stream = watch(pieces, 200).await;
    assert_eq!(name(&mut stream).await, "a");
    let error = stream.next().await.expect("an error").expect_err("no event");
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("larger than 200 bytes"), "{error}");
    assert_eq!(name(&mut stream).await, "b");
}

#[tokio::test(start_paused = true)]
async fn an_error_event_with_garbage_inside_is_an_error_with_that_text() {
    let line = "{\"type\":\"ERROR\",\"object\":{\"oops\":[1]}}\n".to_owned();
    let mut stream = watch(vec![(0, line)], 1 << 20).await;
    let error = stream.next().await.expect("an error").expect_err("no event");
    assert!(error.to_string().contains(r#"{"oops":[1]}"#), "{error}");
    assert!(stream.next().await.is_none());
}

trait ToOwnedPair {
    fn to_owned_pair(self) -> (String, String);
}

impl ToOwnedPair for (&str, &str) {
    fn to_owned_pair(self) -> (String, String) {
        (self.0.to_owned(), self.1.to_owned())
    }
}
