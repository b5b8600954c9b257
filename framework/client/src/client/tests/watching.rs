//! Watches of any kind: events, errors, and the empty watch.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::client::{NeverAllow, RawWatch};
use windlass_core::error::ErrorKind;
use windlass_core::wire::EventType;

const EVENTS: &str = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\r\n\n\
    {\"type\":\"MODIFIED\",\"object\":{\"a\":2}}\n{\"type\":\"DELETED\",\"object\":{\"a\":3}}\n\
    {\"type\":\"BOOKMARK\",\"object\":{\"a\":4}}\n{\"type\":\"NEWS\",\"object\":{}}\n\
    {\"type\":\"ADDED\",\"object\":{\"half\":";

fn pods(client: &Client) -> Request {
    client.get().group_version("", "v1").namespace("shop").resource("pods").max_retries(2)
}

async fn rest(mut watch: RawWatch) -> Vec<(EventType, String)> {
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        let event = event.unwrap();
        events.push((event.kind, String::from_utf8(event.object.to_vec()).unwrap()));
    }
    events
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_a_watch_tells_whole_frames_by_their_type() {
    let server = Server::with([Reply::Answer(200, EVENTS)]);
    let watch = pods(&client(&server)).param("timeoutSeconds", "9").watch().await.unwrap();
    assert!(!watch.is_ended());
    let text = |text: &str| text.to_owned();
    assert_eq!(
        rest(watch).await,
        [
            (EventType::Added, text("{\"a\":1}")),
            (EventType::Modified, text("{\"a\":2}")),
            (EventType::Deleted, text("{\"a\":3}")),
            (EventType::Bookmark, text("{\"a\":4}")),
            (EventType::Unknown, text("{}")),
        ]
    );
    let target = server.seen().remove(0).target;
    assert_eq!(target, "/api/v1/namespaces/shop/pods?timeoutSeconds=9&watch=true");
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_an_error_frame_is_a_status_and_ends_the_watch() {
    let server = Server::with([Reply::Answer(
        200,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\
         \"too old\",\"reason\":\"Expired\",\"code\":410}}\n{\"type\":\"ADDED\",\"object\":{}}\n",
    )]);
    let mut watch = pods(&client(&server)).watch().await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Expired);
    assert!(error.to_string().starts_with("cannot watch pods in \"shop\": too old"), "{error}");
    assert!(watch.next().await.is_none() && watch.is_ended());
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_a_frame_that_is_no_event_is_told_and_the_next_one_follows() {
    let server =
        Server::with([Reply::Answer(200, "oops\n{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n")]);
    let mut watch = pods(&client(&server)).watch().await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap_err().kind(), ErrorKind::Decode);
    assert_eq!(watch.next().await.unwrap().unwrap().object, "{\"a\":1}");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_an_event_beyond_the_limit_is_told_and_the_next_one_follows() {
    let server = Server::with([Reply::Answer(
        200,
        "{\"type\":\"ADDED\",\"object\":{\"a\":\"far too long\"}}\n\
         {\"type\":\"ADDED\",\"object\":{}}\n",
    )]);
    let mut watch = pods(&client(&server)).response_limit(32).watch().await.unwrap();
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(error.to_string().contains("larger than 32 bytes"), "{error}");
    assert_eq!(watch.next().await.unwrap().unwrap().object, "{}");
}

/// Upstream: `TestRequestWatch`. Retries are used up in each case.
#[tokio::test(start_paused = true)]
async fn mechanism_16_a_server_that_loses_the_request_makes_an_empty_watch() {
    for reply in [Reply::Cut, Reply::Silence] {
        for http2 in [false, true] {
            let server = match http2 {
                true => Server::http2([reply.clone()]),
                false => Server::with([reply.clone()]),
            };
            let mut watch = pods(&client(&server)).watch().await.unwrap();
            assert!(watch.is_ended(), "{reply:?}");
            assert!(watch.next().await.is_none());
            assert!(server.count() >= 3, "{reply:?}: {}", server.count());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_a_server_that_refuses_a_watch_makes_an_error() {
    for (reply, kind, calls) in [
        (Reply::Answer(403, ""), ErrorKind::Forbidden, 1),
        (Reply::Answer(410, ""), ErrorKind::Expired, 1),
        (Reply::With(429, "retry-after", "1", ""), ErrorKind::TooManyRequests, 3),
        (Reply::Answer(500, ""), ErrorKind::Server, 1),
        (Reply::Answer(503, ""), ErrorKind::Server, 3),
    ] {
        let server = Server::with([reply.clone()]);
        let error = pods(&client(&server)).watch().await.unwrap_err();
        assert_eq!((error.kind(), server.count()), (kind, calls), "{reply:?}");
    }
    let server = Server::with([Reply::Answer(200, "")]);
    server.refusals.store(u32::MAX, Ordering::Relaxed);
    let error = pods(&client(&server)).watch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "nobody was reached: {error}");
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_a_connection_that_breaks_in_a_watch_is_an_error_after_the_whole_frames() {
    let server = Server::with([Reply::Half]);
    let mut watch = pods(&client(&server)).watch().await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap_err().kind(), ErrorKind::Transport);
    assert!(watch.next().await.is_none());
}

/// A client whose server sends nothing after the head of the answer.
fn silent() -> Client {
    #[derive(Debug)]
    struct Silent;
    impl Connect for Silent {
        fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            Box::pin(async {
                let (ours, mut theirs) = tokio::io::duplex(4096);
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    assert!(theirs.read(&mut request).await.unwrap() > 0);
                    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                    theirs.write_all(head).await.unwrap();
                    std::future::pending::<()>().await;
                });
                Ok(Box::new(ours) as BoxIo)
            })
        }
    }
    Client::over(Arc::new(Silent), environment())
}

#[tokio::test(start_paused = true)]
async fn mechanism_16_a_watch_that_is_silent_beyond_its_end_ends() {
    for (asked, seconds) in [(Some("300"), 330), (None, 3630)] {
        let request = pods(&silent());
        let request = match asked {
            Some(seconds) => request.param("timeoutSeconds", seconds),
            None => request,
        };
        let mut watch = request.watch().await.unwrap();
        let started = Instant::now();
        let error = watch.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_a_watch_needs_no_permit() {
    let server = Server::with([Reply::Answer(200, "")]);
    let request = pods(&client(&server)).throttle(Arc::new(NeverAllow));
    assert!(rest(request.watch().await.unwrap()).await.is_empty());
    assert_eq!(request.send().await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(request.stream().await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(server.count(), 1);
}
