//! The reader of a watch over HTTP/1.1 drives the connection: the fate of the connection when the
//! reader is slow, gone, cancelled or panics, and of other connections when the server floods the
//! driven connection.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::client::ByteStream;

const EVENT: &str = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n";

/// Sends events at the speed of the reader, one event per chunk, for ever.
fn flood() -> Bad {
    Bad::Drip(chunked(""), chunk(EVENT).repeat(100).into(), Duration::ZERO)
}

/// Sends two events and then nothing.
fn two() -> Bad {
    Bad::Stop([chunked(""), chunk(EVENT), chunk(EVENT)].concat().into())
}

/// The end of a body in chunks.
const LAST: &[u8] = b"0\r\n\r\n";

fn open(rig: &Rig) -> impl Future<Output = Result<ByteStream, Error>> + Send + use<> {
    let client = rig.client.clone();
    async move { client.stream(watch(300)).await }
}

async fn settled() {
    for _ in 0..100 {
        yield_now().await;
    }
}

fn counting() -> (Arc<AtomicU32>, JoinHandle<()>) {
    let turns = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&turns);
    let task = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    });
    (turns, task)
}

/// A single worker thread: a task that never yields would starve all others.
#[tokio::test(start_paused = true)]
async fn a_server_that_floods_a_watch_keeps_no_other_task_from_running_in_memory() {
    let rig = Rig::in_memory([flood()]);
    let mut stream = open(&rig).await.unwrap();
    let (turns, others) = counting();
    let mut bytes = 0;
    while bytes < 8 << 20 {
        bytes += stream.next().await.unwrap().unwrap().len();
    }
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns >= 8, "{turns} turns while {bytes} bytes were read");
    others.abort();
}

/// TCP's own back-pressure: only buffers of fixed size are read ahead.
#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_stops_the_server_and_loses_nothing_in_memory() {
    let rig = Rig::in_memory([flood()]);
    let mut stream = open(&rig).await.unwrap();
    let mut read = stream.next().await.unwrap().unwrap().len();
    for _ in 0..3 {
        settled().await;
        let pushed = rig.server.pushed();
        assert!(pushed < read * 2 + (256 << 10), "{pushed} sent, {read} read");
        // Longer than any timeout for the silence of a server.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(rig.server.pushed(), pushed, "the server is stopped");
        for _ in 0..5000 {
            let piece = stream.next().await.unwrap().unwrap();
            assert!(EVENT.as_bytes().starts_with(&piece) || piece.ends_with(b"}\n"));
            read += piece.len();
        }
    }
}

/// At every point of cancellation the connection is closed, not pooled, and the next call succeeds.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_given_up_after_any_number_of_steps_closes_its_connection_in_memory() {
    let mut was_open = false;
    for steps in 0..40 {
        let rig = Rig::in_memory([two()]);
        {
            let mut reading = pin!(async {
                let mut stream = open(&rig).await.unwrap();
                while let Some(piece) = stream.next().await {
                    piece.unwrap();
                    yield_now().await;
                }
            });
            for _ in 0..steps {
                let ended = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await;
                assert!(!ended, "the server ends nothing");
                yield_now().await;
            }
        }
        settled().await;
        assert_eq!(rig.server.left(), rig.server.connections(), "after {steps} steps");
        was_open |= rig.server.requests() > 0;
        let shown = format!("{:?}", rig.client.shared.pool);
        assert!(shown.contains("idle: 0"), "after {steps} steps: {shown}");
        rig.goes_on().await;
    }
    assert!(was_open);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_panics_closes_its_connection_in_memory() {
    let rig = Rig::in_memory([two()]);
    let opening = open(&rig);
    let reader = tokio::spawn(async move {
        let mut stream = opening.await.unwrap();
        stream.next().await.unwrap().unwrap();
        panic!("a reader's own");
    });
    assert!(reader.await.unwrap_err().is_panic());
    settled().await;
    assert_eq!(rig.server.left(), 1);
    rig.goes_on().await;
}

/// Returned to the pool once: a second entry would put two requests on the same connection.
#[tokio::test(start_paused = true)]
async fn a_watch_read_to_its_end_gives_its_connection_back_once_in_memory() {
    let body: Bytes = [&chunked("")[..], &chunk(EVENT), LAST].concat().into();
    for bytewise in [false, true] {
        let steps = match bytewise {
            false => vec![body.clone()],
            true => body.chunks(1).map(Bytes::copy_from_slice).collect(),
        };
        let gate = Arc::new(Semaphore::new(body.len()));
        let rig = Rig::in_memory([Bad::Steps(steps, gate)]);
        let mut stream = open(&rig).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), EVENT);
        for _ in 0..3 {
            assert!(stream.next().await.is_none());
        }
        drop(stream);
        let shown = format!("{:?}", rig.client.shared.pool);
        assert!(shown.contains("idle: 1"), "{shown}");
        rig.goes_on().await;
        assert_eq!(rig.server.connections(), 1);
    }
}

/// Unrequested data of a server answers no request.
#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_behind_a_watch_is_nobodys_in_memory() {
    let smuggled = answer(200, "smuggled");
    let whole: Bytes = [&chunked("")[..], &chunk(EVENT), LAST, &smuggled].concat().into();
    let late = vec![whole.slice(..whole.len() - smuggled.len()), smuggled];
    for steps in [vec![whole], late] {
        let gate = Arc::new(Semaphore::new(9));
        let rig = Rig::in_memory([Bad::Steps(steps, gate), Bad::Write(answer(200, "{}"))]);
        let mut stream = open(&rig).await.unwrap();
        while let Some(piece) = stream.next().await {
            assert_eq!(piece.unwrap(), EVENT);
        }
        for _ in 0..3 {
            assert_eq!(rig.client.send(get()).await.unwrap().body, "{}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_with_its_connection_is_at_its_end_and_nothing_is_pooled_in_memory() {
    for head in ["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n"] {
        let rig = Rig::in_memory([Bad::Close([head, EVENT].concat().into())]);
        let mut stream = open(&rig).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), EVENT);
        assert!(stream.next().await.is_none());
        rig.goes_on().await;
        assert_eq!(rig.server.connections(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_tells_why_in_memory() {
    for (broken, why) in [
        (Bad::Close([chunked(""), "5\r\nab".into()].concat().into()), "end of file"),
        (Bad::Close([chunked(""), "xyz\r\n".into()].concat().into()), "chunk size"),
        (Bad::Close([chunked(""), "fffffffffffffffffff\r\n".into()].concat().into()), "overflow"),
    ] {
        let rig = Rig::in_memory([broken]);
        let mut stream = open(&rig).await.unwrap();
        let error = loop {
            match stream.next().await.expect("an error comes before the end") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
        let mut told = String::new();
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            told = format!("{told}: {source}");
            cause = source.source();
        }
        assert!(told.contains(why), "{why} in {told}");
        assert!(stream.next().await.is_none());
        rig.goes_on().await;
    }
}

/// Each of many watches on a single worker thread gets events, though one of the watches is
/// flooded.
#[tokio::test(start_paused = true)]
async fn a_flooded_watch_delays_none_of_many_others_in_memory() {
    let gate = Arc::new(Semaphore::new(0));
    let quiet = Bad::Steps(vec![chunked(""), chunk(EVENT)], Arc::clone(&gate));
    let rig = Rig::in_memory([quiet]);
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let opening = open(&rig);
        waiting.push(tokio::spawn(
            async move { opening.await.unwrap().next().await.unwrap().unwrap() },
        ));
    }
    gate.add_permits(50);
    until("all have begun", || rig.server.requests() == 50).await;
    settled().await;
    rig.server.change([flood()]);
    let mut hot = open(&rig).await.unwrap();
    let flooded = tokio::spawn(async move {
        let mut bytes = 0;
        loop {
            bytes += hot.next().await.unwrap().unwrap().len();
            if bytes > 64 << 20 {
                return;
            }
        }
    });
    gate.add_permits(50);
    for one in waiting {
        assert_eq!(one.await.unwrap(), EVENT);
    }
    assert!(!flooded.is_finished(), "the others came first");
    flooded.abort();
}
