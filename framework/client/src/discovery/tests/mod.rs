//! Discovery against a server that answers by path, on a paused clock.

mod cached;
mod forms;
mod names;
mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::*;
use crate::client::{BoxIo, Connect};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::ErrorKind;
use windlass_core::metrics::Metrics;
use windlass_core::rng::Rng;

/// A scripted reply.
#[derive(Clone, Debug)]
enum Reply {
    Answer(u16, String),
    /// With an entity tag, and 304 for a request with that tag.
    Tagged(&'static str, String),
    /// 406, unless the request accepts plain JSON.
    PlainOnly(String),
    /// Sent when the gate opens.
    Gated(Arc<Semaphore>, String),
    Silence,
}

/// Replies by path and query; the last reply of a path is repeated, other paths are 404.
#[derive(Debug, Default)]
struct Script {
    replies: Mutex<BTreeMap<&'static str, VecDeque<Reply>>>,
    seen: Mutex<Vec<(String, HeaderMap)>>,
}

impl Script {
    fn new(replies: impl IntoIterator<Item = (&'static str, Reply)>) -> Arc<Self> {
        let script = Arc::new(Self::default());
        for (path, reply) in replies {
            script.say(path, reply);
        }
        script
    }

    /// Adds a reply; a path's last reply is repeated.
    fn say(&self, path: &'static str, reply: Reply) {
        self.replies.lock().entry(path).or_default().push_back(reply);
    }

    /// Replaces all replies of a path.
    fn only(&self, path: &'static str, reply: Reply) {
        self.replies.lock().insert(path, VecDeque::from([reply]));
    }

    fn count(&self, path: &str) -> usize {
        self.seen.lock().iter().filter(|(seen, _)| seen == path).count()
    }

    fn paths(&self) -> Vec<String> {
        self.seen.lock().iter().map(|(path, _)| path.clone()).collect()
    }

    fn discovery(self: &Arc<Self>) -> Discovery {
        let environment =
            Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() };
        Client::over(Arc::new(Wire(Arc::clone(self))), environment).discovery()
    }

    async fn answer(self: Arc<Self>, request: http::Request<Incoming>) -> Answered {
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let headers = request.headers().clone();
        self.seen.lock().push((target.clone(), headers.clone()));
        let reply = {
            let mut replies = self.replies.lock();
            let replies = replies.get_mut(target.as_str());
            replies.and_then(|r| if r.len() > 1 { r.pop_front() } else { r.front().cloned() })
        };
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Ok(match reply {
            None => response(404, "404 page not found\n".to_owned()),
            Some(Reply::Answer(code, body)) => response(code, body),
            Some(Reply::Tagged(tag, _)) if header("if-none-match") == Some(tag) => {
                response(304, String::new())
            }
            Some(Reply::Tagged(tag, body)) => {
                let mut response = response(200, body);
                response.headers_mut().insert("etag", tag.parse().unwrap());
                response
            }
            Some(Reply::PlainOnly(_)) if header("accept") != Some("application/json") => {
                response(406, "only the following media types are accepted".to_owned())
            }
            Some(Reply::PlainOnly(body)) => response(200, body),
            Some(Reply::Gated(gate, body)) => {
                gate.acquire().await.unwrap().forget();
                response(200, body)
            }
            Some(Reply::Silence) => std::future::pending().await,
        })
    }
}

type Answered = Result<http::Response<Full<Bytes>>, Infallible>;

fn response(code: u16, body: String) -> http::Response<Full<Bytes>> {
    let mut response = http::Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// Connects to a [`Script`].
#[derive(Debug)]
struct Wire(Arc<Script>);

impl Connect for Wire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let script = Arc::clone(&self.0);
        let service = service_fn(move |request| Arc::clone(&script).answer(request));
        tokio::spawn(async move {
            let mut builder = hyper::server::conn::http1::Builder::new();
            let _ = builder
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(theirs), service)
                .await;
        });
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

fn ok(body: impl ToString) -> Reply {
    Reply::Answer(200, body.to_string())
}

/// An aggregated document of groups.
fn aggregated(groups: &[serde_json::Value]) -> String {
    serde_json::json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": groups,
    })
    .to_string()
}

/// A group in the aggregated form: the versions, each with resources.
fn group(name: &str, versions: &[(&str, &[serde_json::Value])]) -> serde_json::Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|(version, resources)| {
            serde_json::json!({ "version": version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    serde_json::json!({ "metadata": { "name": name }, "versions": versions })
}

/// A namespaced resource in the aggregated form.
fn resource(kind: &str, plural: &str, short: &[&str]) -> serde_json::Value {
    serde_json::json!({
        "resource": plural, "responseKind": { "group": "", "version": "", "kind": kind },
        "scope": "Namespaced", "singularResource": kind.to_lowercase(),
        "verbs": ["get", "list", "watch"], "shortNames": short,
    })
}

/// The core group with pods and events, and a further group.
fn cluster(more: &[serde_json::Value]) -> Arc<Script> {
    let core = group(
        "",
        &[("v1", &[resource("Pod", "pods", &["po"]), resource("Event", "events", &["ev"])])],
    );
    Script::new([("/api", ok(aggregated(&[core]))), ("/apis", ok(aggregated(more)))])
}

fn apps() -> serde_json::Value {
    group("apps", &[("v1", &[resource("Deployment", "deployments", &["deploy"])])])
}
