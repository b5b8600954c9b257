//! Layers of the user in the stack.

use std::task::{Context, Poll};

use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer, Service};

use crate::client::tests::*;
use windlass_core::error::{Error, ErrorKind};

fn with<L, S>(server: &Arc<Server>, layer: L) -> Client
where
    L: Layer<Stack, Service = S> + Send + 'static,
    S: Service<HttpRequest, Response = HttpResponse, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    Client::builder()
        .connector(Arc::new(Wire(Arc::clone(server))))
        .environment(environment())
        .layer(layer)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_counts_and_adds_a_header_is_passed_by_each_attempt() {
    let server = Server::with([
        Reply::Answer(503, ""),
        Reply::Cut,
        Reply::With(429, "retry-after", "1", ""),
        Reply::Answer(200, "{}"),
    ]);
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let client = with(
        &server,
        MapRequestLayer::new(move |mut request: HttpRequest| {
            let attempt = counted.fetch_add(1, Ordering::Relaxed);
            request.headers_mut().insert("x-attempt", attempt.into());
            request
        }),
    );
    client.send(get()).await.unwrap();
    let attempts: Vec<_> =
        server.seen().iter().map(|seen| seen.headers["x-attempt"].clone()).collect();
    // The third is the second again, on another connection, because the first was idle and broke.
    assert_eq!(attempts, ["0", "1", "1", "2"]);
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn layers_added_later_are_further_out_and_see_answers_too() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let order = Arc::new(Mutex::new(Vec::new()));
    let (inner, outer, answer) = (Arc::clone(&order), Arc::clone(&order), Arc::clone(&order));
    let client = Client::builder()
        .connector(Arc::new(Wire(Arc::clone(&server))))
        .environment(environment())
        .layer(MapRequestLayer::new(move |request: HttpRequest| {
            inner.lock().push("inner");
            request
        }))
        .layer(MapRequestLayer::new(move |request: HttpRequest| {
            outer.lock().push("outer");
            request
        }))
        .layer(MapResponseLayer::new(move |response: HttpResponse| {
            answer.lock().push("answer");
            response
        }))
        .build()
        .unwrap();
    client.send(get()).await.unwrap();
    assert_eq!(*order.lock(), ["outer", "inner", "answer"]);
}

/// Layer that refuses each request without sending anything.
struct Refusing<E>(fn() -> E);

impl<E> Clone for Refusing<E> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<S, E> Layer<S> for Refusing<E> {
    type Service = Self;

    fn layer(&self, _: S) -> Self {
        Self(self.0)
    }
}

impl<E> Service<HttpRequest> for Refusing<E> {
    type Response = HttpResponse;
    type Error = E;
    type Future = std::future::Ready<Result<HttpResponse, E>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: HttpRequest) -> Self::Future {
        std::future::ready(Err((self.0)()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_error_of_a_layer_leaves_a_write_in_doubt_and_stays_readable() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = with(&server, Refusing(|| io::Error::other("the quota is used up")));
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
    assert!(format!("{error:?}").contains("the quota is used up"), "{error:?}");
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_frameworks_own_type_reaches_the_caller_as_it_is() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let refuse = || Error::new(ErrorKind::Forbidden, "no writes on Fridays");
    let client = with(&server, Refusing(refuse));
    for request in [create(), get()] {
        let error = client.send(request).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Forbidden, "no writes on Fridays")
        );
    }
    assert_eq!(server.count(), 0);
}
