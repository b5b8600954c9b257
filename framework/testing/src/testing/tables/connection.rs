//! The connection of a client to answers in this process: HTTP through memory, without an API
//! server.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use windlass_client::client::{BoxIo, Client, ClientConfig, Connect};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::metrics::Metrics;
use windlass_core::rng::Rng;

use super::answers::{GivenObjects, ScriptedResponse};
use super::given::GivenObject;
use crate::testing::EPOCH;

/// Bytes that one side of a connection writes before the other one reads.
const PIPE: usize = 64 * 1024;

/// Returns a client of these objects.
///
/// # Errors
/// Those of the client's settings.
pub(super) fn client(objects: Vec<(String, GivenObject)>) -> Result<Client, Error> {
    let epoch = Timestamp::from_second(EPOCH).unwrap_or(Timestamp::UNIX_EPOCH);
    let environment = Environment {
        clock: Clock::simulated(epoch),
        rng: Rng::seeded(1),
        metrics: Metrics::new(),
    };
    // The name is never resolved: the connector opens pipes.
    let config = ClientConfig::new("http://in-process.windlass")?.with_namespace("default");
    let connector = Arc::new(Memory(Arc::new(GivenObjects(objects))));
    Client::builder().config(config).connector(connector).environment(environment).build()
}

/// Opens connections to answers.
struct Memory(Arc<GivenObjects>);

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Connect for Memory {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (near, far) = tokio::io::duplex(PIPE);
        let answers = Arc::clone(&self.0);
        let service = service_fn(move |request| respond(Arc::clone(&answers), request));
        // It ends with the client's side of the pipe.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(far), service));
        Box::pin(std::future::ready(Ok(Box::new(near) as BoxIo)))
    }
}

/// Answers a request.
async fn respond(
    answers: Arc<GivenObjects>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let (parts, body) = request.into_parts();
    // A body that breaks off is one of a client that is gone.
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let ScriptedResponse { code, body, is_open } = answers.answer(&parts, &body);
    let mut response = Response::new(AnswerBody { data: Some(body), is_open });
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

/// The body of an answer.
struct AnswerBody {
    data: Option<Bytes>,
    is_open: bool,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.data.take() {
            Some(data) if !data.is_empty() => Poll::Ready(Some(Ok(Frame::data(data)))),
            // Nothing changes any more: a watch stays silent until its client goes.
            _ if self.is_open => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }
}
