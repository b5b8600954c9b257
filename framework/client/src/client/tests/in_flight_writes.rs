//! Reports to a gate about the writes that the gate admitted.

use std::time::Duration;

use super::*;
use crate::client::test_support::Counting;

const SECOND: Duration = Duration::from_secs(1);

/// A client whose writes are counted, with a margin of 2 s.
fn counted(server: &Arc<Server>) -> (Client, InFlightWrites) {
    let writes = InFlightWrites::new(environment().clock, 2 * SECOND);
    (client(server).gated(Arc::new(Counting(writes.clone()))), writes)
}

/// Returns the time for which a write may still be executed after `reply`.
async fn doubt_after(reply: Reply) -> Duration {
    let (client, writes) = counted(&Server::with([reply]));
    let _ = client.send(create()).await;
    let (in_flight, doubt) = writes.outstanding();
    assert_eq!(in_flight, 0);
    doubt
}

#[tokio::test(start_paused = true)]
async fn l8_a_write_that_its_caller_gives_up_may_be_executed_for_what_the_server_was_told() {
    for server in [Server::with([Reply::Silence]), Server::http2([Reply::Silence])] {
        let (client, writes) = counted(&server);
        let given_up = client.environment().clock.timeout(SECOND, client.send(create())).await;
        assert!(given_up.is_none());
        assert!(server.seen()[0].target.ends_with("timeout=7s"), "{:?}", server.seen());
        // The 7 s that were sent to the server and the margin, less the second that has passed.
        assert_eq!(writes.outstanding(), (0, 8 * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn l8_a_write_is_under_way_until_it_is_answered() {
    let answer = Arc::new(Semaphore::new(0));
    let (client, writes) = counted(&Server::with([Reply::Later(Arc::clone(&answer))]));
    let sending = tokio::spawn(async move { client.send(create()).await });
    tokio::time::sleep(SECOND).await;
    assert_eq!(writes.outstanding(), (1, Duration::ZERO));
    answer.add_permits(1);
    sending.await.unwrap().unwrap();
    assert_eq!(writes.outstanding(), (0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn l8_an_answer_ends_the_doubt_unless_it_leaves_one() {
    for code in [200, 201, 403, 404, 409, 422, 429] {
        assert_eq!(doubt_after(Reply::Answer(code, "{}")).await, Duration::ZERO, "{code}");
    }
    assert_eq!(doubt_after(Reply::With(503, "retry-after", "1", "")).await, Duration::ZERO);
    for code in [500, 502, 503, 504] {
        assert_eq!(doubt_after(Reply::Answer(code, "{}")).await, 9 * SECOND, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn l8_a_lost_or_late_answer_leaves_the_doubt() {
    assert_eq!(doubt_after(Reply::Cut).await, 9 * SECOND);
    // The client waits until the gate's limit, half a second longer than the limit sent to the
    // server.
    assert_eq!(doubt_after(Reply::Silence).await, Duration::from_millis(1_500));
}

#[tokio::test(start_paused = true)]
async fn l8_a_write_that_found_no_connection_and_a_read_leave_no_doubt() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    server.refusals.store(u32::MAX, Ordering::Relaxed);
    let (client, writes) = counted(&server);
    client.send(create()).await.unwrap_err();
    assert_eq!(writes.outstanding(), (0, Duration::ZERO));
    let server = Server::with([Reply::Silence]);
    let (client, writes) = counted(&server);
    let given_up = client.environment().clock.timeout(SECOND, client.send(get())).await;
    assert!(given_up.is_none());
    assert_eq!(writes.outstanding(), (0, Duration::ZERO));
}
