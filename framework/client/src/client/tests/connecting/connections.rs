//! Choice of the connections for requests.

use std::time::Duration;

use crate::client::tests::*;
use windlass_core::error::ErrorKind;

#[tokio::test(start_paused = true)]
async fn requests_one_after_another_share_a_connection() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server);
    for _ in 0..20 {
        client.send(get()).await.unwrap();
    }
    assert_eq!((server.count(), server.connections()), (20, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_answer_leaves_its_connection_usable() {
    let server = Server::with([Reply::Answer(404, "gone"), Reply::Answer(200, "{}")]);
    let client = client(&server);
    client.send(get()).await.unwrap_err();
    client.send(get()).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_have_a_connection_each_and_few_stay_idle() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::with([Reply::Later(Arc::clone(&gate))]);
    let client = client(&server);
    let all: Vec<_> = (0..40)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get()).await })
        })
        .collect();
    while server.count() < 40 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(1000);
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!(server.connections(), 40);
    let shown = format!("{:?}", client.shared.pool);
    assert!(shown.contains("idle: 32"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_closes_after_an_answer_is_replaced() {
    let server = Server::with([
        Reply::With(200, "connection", "close", "{}"),
        Reply::With(200, "connection", "close", "{}"),
        Reply::Answer(201, "{}"),
    ]);
    let client = client(&server);
    client.send(get()).await.unwrap();
    client.send(get()).await.unwrap();
    client.send(create()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_that_breaks_costs_a_read_no_wait_and_a_create_its_certainty() {
    let started = tokio::time::Instant::now();
    let server = Server::with([Reply::Answer(200, "{}"), Reply::Cut, Reply::Answer(200, "{}")]);
    let client = client(&server);
    client.send(get()).await.unwrap();
    client.send(get()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (3, 2));
    assert_eq!(started.elapsed(), Duration::ZERO);

    let server = Server::with([Reply::Answer(200, "{}"), Reply::Cut, Reply::Answer(200, "{}")]);
    let client = crate::client::tests::client(&server);
    client.send(get()).await.unwrap();
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_closes_its_connection() {
    let server = Server::with([Reply::Silence, Reply::Answer(200, "{}")]);
    let client = client(&server);
    let short = tokio::time::timeout(Duration::from_secs(1), client.send(get())).await;
    assert!(short.is_err());
    client.send(get()).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn http2_requests_share_one_connection_even_when_they_start_together() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::http2([Reply::Later(Arc::clone(&gate))]);
    let client = client(&server);
    let all: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get()).await })
        })
        .collect();
    while server.count() < 20 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(100);
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_retired_while_in_use_is_not_used_again() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::with([Reply::Later(Arc::clone(&gate)), Reply::Answer(200, "{}")]);
    let client = client(&server);
    let first = {
        let client = client.clone();
        tokio::spawn(async move { client.send(get()).await })
    };
    while server.count() < 1 {
        tokio::task::yield_now().await;
    }
    client.shared.pool.retire();
    gate.add_permits(1);
    first.await.unwrap().unwrap();
    client.send(get()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (2, 2));
}

/// A10 (an API server that moves or restarts): a rolling restart of API servers.
#[tokio::test(start_paused = true)]
async fn after_goaway_new_requests_take_a_new_connection_and_those_in_flight_finish() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::http2([Reply::Later(Arc::clone(&gate)), Reply::Answer(201, "{}")]);
    let client = client(&server);
    let first = {
        let client = client.clone();
        tokio::spawn(async move { client.send(create()).await })
    };
    while server.count() < 1 {
        tokio::task::yield_now().await;
    }
    server.farewell.add_permits(1);
    // Long enough for GOAWAY to arrive, short enough for no deadline.
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.send(create()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (2, 2));
    gate.add_permits(1);
    first.await.unwrap().unwrap();
}

/// A5: a half-open connection.
#[tokio::test(start_paused = true)]
async fn a_read_that_gets_no_answer_leaves_its_http2_connection_behind() {
    let server = Server::http2([Reply::Silence, Reply::Answer(200, "{}")]);
    let client = client(&server);
    client.send(get()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (2, 2));
}

const EVENTS: &str = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n\
    {\"type\":\"ADDED\",\"object\":{\"a\":2}}\n";

async fn watch(client: &Client) -> crate::client::RawWatch {
    client.get().group_version("", "v1").resource("pods").watch().await.expect("an answer")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_gives_its_connection_back() {
    let server = Server::with([Reply::Answer(200, EVENTS), Reply::Answer(200, EVENTS)]);
    let client = client(&server);
    for _ in 0..3 {
        let mut watch = watch(&client).await;
        for _ in 0..2 {
            assert!(watch.next().await.is_some_and(|event| event.is_ok()));
        }
        assert!(watch.next().await.is_none());
    }
    client.send(get()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dropped_closes_its_connection() {
    let server = Server::with([Reply::Half, Reply::Answer(200, "{}")]);
    let client = client(&server);
    drop(watch(&client).await);
    client.send(get()).await.unwrap();
    assert_eq!((server.count(), server.connections()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_read_by_one_task_after_another() {
    let server = Server::with([Reply::Answer(200, EVENTS), Reply::Answer(200, "{}")]);
    let client = client(&server);
    let mut watch = watch(&client).await;
    for _ in 0..2 {
        watch = tokio::spawn(async move {
            assert!(watch.next().await.is_some_and(|event| event.is_ok()));
            watch
        })
        .await
        .expect("no panic");
    }
    assert!(watch.next().await.is_none());
    client.send(get()).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_in_a_watch_is_told_to_its_reader() {
    let server = Server::with([Reply::Half, Reply::Answer(200, "{}")]);
    let client = client(&server);
    let mut watch = watch(&client).await;
    let error = loop {
        match watch.next().await.expect("an error comes before the end") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Transport);
    client.send(get()).await.unwrap();
    assert_eq!(server.connections(), 2);
}

/// Counts the wake-ups of a task.
#[derive(Default)]
struct Count(AtomicU32);

impl std::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Each such wake-up would queue the task again and wake another thread for the task, once for
/// every event.
#[tokio::test(start_paused = true)]
async fn a_watch_is_not_woken_by_the_connection_that_it_runs_itself() {
    let server = Server::with([Reply::Answer(200, EVENTS)]);
    let mut watch = watch(&client(&server)).await;
    let count = Arc::<Count>::default();
    let waker = std::task::Waker::from(Arc::clone(&count));
    for _ in 0..2 {
        let mut next = std::pin::pin!(watch.next());
        loop {
            let before = count.0.load(Ordering::SeqCst);
            let polled = next.as_mut().poll(&mut std::task::Context::from_waker(&waker));
            assert_eq!(count.0.load(Ordering::SeqCst), before, "nobody else was running");
            if let std::task::Poll::Ready(event) = polled {
                assert!(event.is_some_and(|event| event.is_ok()));
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
