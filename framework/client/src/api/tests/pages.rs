//! Lists as streams.

use std::pin::pin;
use std::task::Poll;

use futures_core::Stream;

use super::*;

fn expired(token: &str) -> (u16, Value) {
    let metadata = json!({ "continue": token, "resourceVersion": "20" });
    (410, json!({"kind": "Status", "metadata": metadata, "reason": "Expired", "code": 410}))
}

async fn names(stream: &mut ListStream<ConfigMap>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(map) = stream.next().await {
        names.push(map.unwrap().metadata.name.unwrap());
    }
    names
}

fn stream(echo: &Arc<Echo>) -> ListStream<ConfigMap> {
    client(echo).all::<ConfigMap>().list().page_size(2).stream()
}

#[tokio::test(start_paused = true)]
async fn pages_are_requested_when_their_objects_are_wanted_and_not_before() {
    let echo = Echo::with([(200, page(&["a", "b"], "t1")), (200, page(&["c"], ""))]);
    let mut stream = stream(&echo);
    assert_eq!(echo.seen().len(), 0);
    stream.next().await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    assert_eq!(echo.lines(), ["GET /api/v1/configmaps?limit=2"]);
    assert_eq!(stream.next().await.unwrap().unwrap().metadata.name.as_deref(), Some("c"));
    assert!(stream.next().await.is_none() && stream.next().await.is_none());
    assert_eq!(echo.lines()[1..], ["GET /api/v1/configmaps?limit=2&continue=t1"]);
    assert!(stream.is_consistent());
    assert_eq!(stream.resource_version(), "9");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_requests_nothing_more() {
    let echo = Echo::with([(200, page(&["a", "b"], "t1"))]);
    let mut stream = stream(&echo);
    stream.next().await.unwrap().unwrap();
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(echo.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_loses_nothing_and_the_request_goes_on_with_the_next() {
    let echo = Echo::with([(200, page(&["a"], ""))]);
    let mut stream = stream(&echo);
    {
        let mut next = pin!(stream.next());
        let first = std::future::poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        assert!(first.is_pending());
    }
    assert_eq!(names(&mut stream).await, ["a"]);
    assert_eq!(echo.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_replaced_by_the_one_that_the_server_offers() {
    let echo =
        Echo::with([(200, page(&["a", "b"], "t1")), expired("fresh"), (200, page(&["c"], ""))]);
    let mut stream = stream(&echo);
    assert_eq!(names(&mut stream).await, ["a", "b", "c"]);
    assert!(!stream.is_consistent());
    assert_eq!(echo.lines()[2], "GET /api/v1/configmaps?limit=2&continue=fresh");
}

#[tokio::test(start_paused = true)]
async fn without_an_offer_the_list_begins_anew_and_no_object_comes_twice() {
    let echo = Echo::with([
        (200, page(&["a", "c"], "t1")),
        expired(""),
        (200, page(&["a", "b"], "u1")),
        (200, page(&["c", "d"], "")),
    ]);
    let mut stream = client(&echo).all::<ConfigMap>().list();
    stream = stream.page_size(2).resource_version("5");
    let mut stream = stream.stream();
    assert_eq!(names(&mut stream).await, ["a", "c", "d"]);
    assert!(!stream.is_consistent());
    assert_eq!(
        echo.lines(),
        [
            "GET /api/v1/configmaps?resourceVersion=5&limit=2",
            "GET /api/v1/configmaps?limit=2&continue=t1",
            "GET /api/v1/configmaps?limit=2",
            "GET /api/v1/configmaps?limit=2&continue=u1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_without_order_tells_that_its_token_expired() {
    let echo = Echo::with([(200, page(&["b", "a"], "t1")), expired("")]);
    let mut stream = stream(&echo);
    for _ in 0..2 {
        stream.next().await.unwrap().unwrap();
    }
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(error.is_expired() && error.to_string().contains("did not sort"), "{error}");
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_expires_again_and_again_is_told_in_the_end() {
    let echo = Echo::with([(200, page(&["a"], "t1")), expired("fresh")]);
    let mut stream = stream(&echo);
    stream.next().await.unwrap().unwrap();
    assert!(stream.next().await.unwrap().unwrap_err().is_expired());
    assert_eq!(echo.seen().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_costs_itself_only() {
    let mut list = page(&["a"], "");
    let items = list["items"].as_array_mut().unwrap();
    items.push(json!({ "metadata": { "name": "bad" }, "data": 5 }));
    items.push(json!({ "metadata": { "name": "c" } }));
    let echo = Echo::with([(200, list)]);
    let mut stream = stream(&echo);
    stream.next().await.unwrap().unwrap();
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(error.kind() == ErrorKind::Decode && error.to_string().contains("\"bad\""), "{error}");
    assert_eq!(names(&mut stream).await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn any_other_error_ends_the_stream() {
    let echo = Echo::with([(403, json!({}))]);
    let mut stream = stream(&echo);
    let next = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await;
    assert!(next.unwrap().unwrap_err().is_forbidden());
    assert!(stream.next().await.is_none());
    assert_eq!(echo.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_repeats_its_token_does_not_keep_a_list_going_for_ever() {
    let echo = Echo::with([(200, page(&["a"], "t1")), (200, page(&["b"], "t1"))]);
    let mut stream = stream(&echo);
    assert_eq!(stream.next().await.unwrap().unwrap().metadata.name.as_deref(), Some("a"));
    assert_eq!(stream.next().await.unwrap().unwrap().metadata.name.as_deref(), Some("b"));
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(error.to_string().contains("continue token"), "{error}");
    assert!(stream.next().await.is_none());
    assert_eq!(echo.seen().len(), 2);
    let echo = Echo::with([(200, page(&["a"], "t1")), (200, page(&[], "t1"))]);
    let error = client(&echo).all::<ConfigMap>().list().await.unwrap_err();
    assert!(error.to_string().contains("continue token"), "{error}");
    assert_eq!(echo.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_empty_page_that_has_a_successor_is_no_end() {
    let answers = || [(200, page(&[], "t1")), (200, page(&[], "t2")), (200, page(&["a"], ""))];
    assert_eq!(names(&mut stream(&Echo::with(answers()))).await, ["a"]);
    let list = client(&Echo::with(answers())).all::<ConfigMap>().list().await.unwrap();
    assert_eq!(list.items.len(), 1);
}
