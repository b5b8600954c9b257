//! Tests of the requests that the cache makes, and of their times.

use std::pin::Pin;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::informer::CacheOptions;
use crate::reflector::test_support::{ScriptedResponse, bookmark, frame, status};
use crate::store::Representation;
use windlass_client::client::{BoxIo, Client, Connect};

fn reads(server: &Server) -> Vec<Read> {
    server.requests().into_iter().map(|(_, read)| read).collect()
}

fn version_of(read: &Read) -> &str {
    match read {
        Read::Watch { resource_version, .. } => resource_version,
        _ => "",
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_view_is_one_streaming_list_that_goes_on_as_the_watch() {
    let server = Server::new();
    server.put("a", data("1"));
    let rig = Rig::synced(server).await;
    rig.server.put("b", data("1"));
    rig.caught_up().await;
    let reads = reads(&rig.server);
    assert!(matches!(reads[..], [Read::StreamingList { .. }]), "{reads:?}");
}

/// B5: a server that refuses streaming lists, and a server that does not know such lists.
#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_in_pages_and_remembered() {
    for silent in [false, true] {
        let server = Server::new();
        for i in 0..1203 {
            server.put(&format!("{i:04}"), data("1"));
        }
        server.script(move |_, read| {
            matches!(read, Read::StreamingList { .. }).then(|| {
                if silent {
                    ScriptedResponse::Hang(Vec::new())
                } else {
                    ScriptedResponse::Status(422, "Invalid")
                }
            })
        });
        let started = Instant::now();
        let rig = Rig::synced(server).await;
        assert_eq!(rig.status().objects, 1203);
        assert!(started.elapsed() <= Duration::from_secs(if silent { 31 } else { 1 }));
        eventually("the watch follows", || rig.server.requests().len() == 5).await;
        let page = |token: Option<&str>| Read::Page {
            resource_version: None,
            limit: Some(500),
            continue_token: token.map(str::to_owned),
        };
        let reads_made = reads(&rig.server);
        assert_eq!(reads_made[1..4], [page(None), page(Some("1213:500")), page(Some("1213:1000"))]);
        assert_eq!(version_of(&reads_made[4]), "1213", "the watch begins where the list ended");
        rig.server.compact();
        rig.server.put("late", data("1"));
        rig.server.compact();
        rig.server.close_watches();
        eventually("it is listed again", || rig.get("late").is_some()).await;
        let streams =
            reads(&rig.server).iter().filter(|r| matches!(r, Read::StreamingList { .. })).count();
        assert_eq!(streams, 1, "it is not asked again for what it does not speak");
    }
}

/// B4: pages that expire before they are read.
#[tokio::test(start_paused = true)]
async fn a_page_that_expires_leads_to_one_whole_list() {
    let server = Server::new();
    for i in 0..600 {
        server.put(&format!("{i:04}"), data("1"));
    }
    server.script(|_, read| match read {
        Read::StreamingList { .. } => Some(ScriptedResponse::Status(400, "BadRequest")),
        Read::Page { continue_token: Some(_), .. } => {
            Some(ScriptedResponse::Status(410, "Expired"))
        }
        _ => None,
    });
    let rig = Rig::synced(server).await;
    assert_eq!(rig.status().objects, 600);
    assert_eq!(
        reads(&rig.server)[3],
        Read::Page { resource_version: None, limit: None, continue_token: None },
        "the list that does not depend on its speed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_the_version_that_the_next_watch_begins_at() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.bookmark();
    rig.caught_up().await;
    assert_eq!(rig.status().resource_version, "50");
    rig.server.send(&bookmark(20, false));
    tokio::time::sleep(Duration::from_secs(2)).await;
    rig.server.close_watches();
    eventually("it watches again", || rig.server.requests().len() == 2).await;
    assert_eq!(version_of(&reads(&rig.server)[1]), "50", "an older bookmark takes nothing back");
}

/// 429 is obeyed and causes no new list (B3: an ERROR frame of another code; A1: 429 with
/// `Retry-After`).
#[tokio::test(start_paused = true)]
async fn being_asked_to_slow_down_waits_as_asked_and_does_not_list_again() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.script(|number, _| {
        (number < 4).then_some(ScriptedResponse::SlowDown(Duration::from_secs(20)))
    });
    rig.server.close_watches();
    eventually("it watches again", || rig.server.requests().len() == 5).await;
    let times: Vec<_> = rig.server.requests().into_iter().map(|(at, _)| at).collect();
    for pair in times[1..].windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_secs(20), "{:?}", pair[1] - pair[0]);
    }
    assert_eq!(rig.server.lists(), 1);
    // A wait of a day is not obeyed. The small list beside the watch was number 5.
    rig.server.script(|number, _| {
        (number < 7).then_some(ScriptedResponse::SlowDown(Duration::from_secs(86_400)))
    });
    rig.server.close_watches();
    let took = eventually("it watches again", || rig.server.requests().len() == 7).await;
    assert!(took < Duration::from_secs(100), "{took:?}");
}

/// B3: an ERROR frame is never fatal; only an expired or unknown one costs a list.
#[tokio::test(start_paused = true)]
async fn an_error_frame_is_answered_by_its_code() {
    for (code, reason, lists) in
        [(500, "InternalError", 1), (429, "TooManyRequests", 1), (410, "Expired", 2), (400, "", 2)]
    {
        let rig = Rig::synced(Server::new()).await;
        let error = serde_json::to_string(&status(code, reason)).unwrap();
        rig.server.send(&frame("ERROR", &error));
        eventually("it reads again", || rig.server.requests().len() == 2).await;
        rig.server.put("a", data("1"));
        rig.caught_up().await;
        assert_eq!(rig.server.lists(), lists, "code {code}");
        rig.stop.cancel();
        rig.task.await.unwrap();
    }
}

/// A15: 401 or 403 after a change of permissions.
#[tokio::test(start_paused = true)]
async fn missing_rights_are_named_and_end_by_themselves() {
    let server = Server::new();
    server.put("a", data("1"));
    server.script(|_, _| Some(ScriptedResponse::Status(403, "Forbidden")));
    let rig = Rig::start(server);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let status = rig.status();
    assert!(!status.synced);
    assert!(status.state.starts_with("degraded"), "{}", status.state);
    assert!(status.state.contains("grant the verb watch on configmaps"), "{}", status.state);
    rig.server.recover();
    let took = eventually("it is synced", || rig.status().synced).await;
    assert!(took <= Duration::from_secs(30), "{took:?}");
    assert_eq!(rig.status().state, "watching");
}

#[tokio::test(start_paused = true)]
async fn a_watch_asks_to_be_ended_after_five_to_ten_minutes_and_not_always_the_same() {
    let rig = Rig::synced(Server::new()).await;
    for i in 2..40 {
        rig.server.bookmark();
        rig.server.close_watches();
        eventually("it watches again", || rig.server.requests().len() == i).await;
    }
    let timeouts: std::collections::BTreeSet<_> = reads(&rig.server)
        .into_iter()
        .filter_map(|read| match read {
            Read::Watch { timeout, .. } | Read::StreamingList { timeout, .. } => {
                Some(timeout.as_secs())
            }
            Read::Page { .. } => None,
        })
        .collect();
    assert!(timeouts.len() > 10, "{timeouts:?}");
    assert!(timeouts.iter().all(|seconds| (300..=600).contains(seconds)), "{timeouts:?}");
}

/// An answer that does not begin, or stops in the middle, is given up after 30 s (A12: lists of
/// gigabytes).
#[tokio::test(start_paused = true)]
async fn a_list_without_progress_is_given_up() {
    let server = Server::new();
    server.put("a", data("1"));
    server.script(|number, read| match (number, read) {
        (_, Read::StreamingList { .. }) => Some(ScriptedResponse::Status(422, "Invalid")),
        (1, _) => Some(ScriptedResponse::Never),
        (2, _) => Some(ScriptedResponse::Hang(vec![r#"{"items":[{"#.to_owned()])),
        (3, _) => Some(ScriptedResponse::Body(vec![r#"{"items":[{"#.to_owned()])),
        _ => None,
    });
    let started = Instant::now();
    let rig = Rig::synced(server).await;
    let took = started.elapsed();
    assert!((Duration::from_secs(60)..Duration::from_secs(70)).contains(&took), "{took:?}");
    assert_eq!(rig.told.take(), ["*a=1"]);
}

/// An API server with as little HTTP as the cache needs, which records requests.
#[derive(Debug, Default)]
struct Wire(Arc<Mutex<Vec<String>>>);

impl Connect for Wire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = std::io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(theirs, Arc::clone(&self.0)));
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

async fn serve(mut io: tokio::io::DuplexStream, asked: Arc<Mutex<Vec<String>>>) {
    let whole = |code: u16, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let mut head = Vec::new();
    while let Ok(byte) = io.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(std::mem::take(&mut head)).expect("a head is text");
        let answer = if text.contains("sendInitialEvents") {
            whole(422, r#"{"kind":"Status","code":422,"reason":"Invalid"}"#)
        } else if text.contains("watch=true") {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned()
        } else {
            whole(200, r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#)
        };
        asked.lock().push(text);
        io.write_all(answer.as_bytes()).await.expect("the client listens");
    }
}

/// A server that supports metadata-only answers leaves out the fields that the cache would drop.
#[tokio::test(start_paused = true)]
async fn a_cache_of_metadata_asks_for_metadata_alone_in_lists_streams_and_watches() {
    let accepts = |head: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let accept = lines.filter(|(name, _)| name.eq_ignore_ascii_case("accept"));
        accept.map(|(_, value)| value.to_owned()).collect::<Vec<_>>()
    };
    for is_metadata in [true, false] {
        let wire = Wire::default();
        let asked = Arc::clone(&wire.0);
        let client = Client::over(Arc::new(wire), environment());
        let registry = InformerRegistry::new(client, Vec::new());
        let mut options = CacheOptions::default();
        if is_metadata {
            options = options.representation(Representation::Metadata);
        }
        let _informer = registry.informer_with::<ConfigMap>(options);
        let stop = CancellationToken::new();
        let task = run(&registry, &stop);
        eventually("stream, list and watch are asked for", || asked.lock().len() == 3).await;
        let kinds = ["PartialObjectMetadata", "PartialObjectMetadataList", "PartialObjectMetadata"];
        for (head, kind) in asked.lock().iter().zip(kinds) {
            let json = "application/json";
            let wanted = format!("{json};as={kind};v=v1;g=meta.k8s.io,{json}");
            let wanted = if is_metadata { vec![wanted] } else { accepts(head) };
            assert_eq!(accepts(head), wanted, "{head}");
            assert_eq!(head.contains("PartialObjectMetadata"), is_metadata, "{head}");
        }
        stop.cancel();
        task.await.unwrap();
    }
}
