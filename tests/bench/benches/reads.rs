//! Cost of reads that become watches: reconciles that read objects by `cx.watch` beside reconciles
//! that read the same objects from the cache. `cargo bench -p windlass-bench --bench reads` prints
//! a table of ratios.
//!
//! Both are reconciles of the same controller, on the same objects and in the same thread, and take
//! turns. Times are the CPU time of that thread; the server runs on a separate thread, and answers
//! nothing meanwhile. Each reconcile decodes an object, reads, and asks for the next reconcile.

use std::convert::Infallible;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use bytes::Bytes;
use cpu_time::ThreadTime;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass::client::{Client, ClientConfig};
use windlass::controller::{LoopGuard, Trigger};
use windlass::environment::Environment;
use windlass::prelude::*;
use windlass::resource::ObjectKey;

/// Number of reconciled objects.
const OBJECTS: usize = 16;
/// Number of Secrets.
const SECRETS: usize = 64;
/// Number of reconciles of a round, which measures a single way of reading.
const RUNS: usize = 4_000;
/// Number of reconciles of a round before the measurement: they register the reads.
const WARM: usize = 400;
/// Number of rounds of each way.
const ROUNDS: usize = 15;

fn main() {
    let server = serve();
    println!("| {:44} | plain µs | watched µs | ratio (quartiles)   |", "reconcile");
    println!("|{:-<46}|{:->10}|{:->12}|{:->21}|", "", ":", ":", ":");
    for is_decoded in [true, false] {
        for reads in [1, 2, 5, 10] {
            let way = if is_decoded { "read and decoded" } else { "read, not decoded" };
            let label = format!("{reads:2} Secrets, {way}");
            let (plain, watched) = measure(server, reads, is_decoded);
            let mut ratios: Vec<f64> =
                plain.iter().zip(&watched).map(|(plain, watched)| watched / plain).collect();
            ratios.sort_by(f64::total_cmp);
            let at = |quarter: usize| ratios[(ratios.len() - 1) * quarter / 4];
            println!(
                "| {label:44} | {:8.2} | {:10.2} | {:.3} ({:.3}–{:.3}) |",
                median(plain),
                median(watched),
                at(2),
                at(1),
                at(3)
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the CPU time of a reconcile in µs, for each round: plain, and watched.
fn measure(server: SocketAddr, reads: usize, is_decoded: bool) -> (Vec<f64>, Vec<f64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let config = ClientConfig::new(&format!("http://{server}")).expect("an address");
        let client = Client::builder().config(config).environment(Environment::system());
        let client = client.build().expect("a client");
        let state = Arc::new(State::default());
        let trigger = Trigger::new("begin");
        let controller = Readers { state: Arc::clone(&state), reads, is_decoded };
        let builder = Readers::builder().loop_guard(LoopGuard::off()).workers(1);
        let builder = builder.without_resync().triggered_by(&trigger);
        let manager = Manager::new(client).erased_controller(builder.build(controller));
        let manager = manager.without_leader_election().without_health().without_metrics();
        let running = manager.without_signals().start();
        let mut times = (Vec::new(), Vec::new());
        state.until_idle().await;
        for _ in 0..ROUNDS {
            for is_watched in [false, true] {
                state.is_watched.store(is_watched, Relaxed);
                state.begin(&trigger, WARM).await;
                let began = ThreadTime::now();
                state.begin(&trigger, RUNS).await;
                let taken = began.elapsed().as_secs_f64() * 1e6 / RUNS as f64;
                if is_watched {
                    times.1.push(taken)
                } else {
                    times.0.push(taken)
                };
            }
        }
        running.stop();
        running.join().await.expect("it stops");
        times
    })
}

/// The work of a reconcile, and the number of reconciles that are left.
#[derive(Debug, Default)]
struct State {
    is_watched: AtomicBool,
    left: AtomicUsize,
    /// Reconciles so far.
    runs: AtomicUsize,
}

impl State {
    /// Reconciles so many times, and waits for the end.
    async fn begin(&self, trigger: &Trigger<ConfigMap>, runs: usize) {
        self.left.store(runs, Relaxed);
        for number in 0..OBJECTS {
            trigger.try_send(ObjectKey::new(Some("shop"), &name("map", number))).expect("room");
        }
        while self.left.load(Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.until_idle().await;
    }

    /// Waits until nothing has been reconciled for a while.
    async fn until_idle(&self) {
        let mut before = usize::MAX;
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let now = self.runs.load(Relaxed);
            if now == before && now >= OBJECTS {
                return;
            }
            before = now;
        }
    }
}

#[derive(Controller)]
#[controller(for = ConfigMap, watches(Secret, by = of_nobody))]
struct Readers {
    state: Arc<State>,
    reads: usize,
    is_decoded: bool,
}

/// The plain reads have a cache, too; changes of that cache enqueue no object.
fn of_nobody(_: &windlass::store::Cached<Secret>) -> Vec<ObjectKey> {
    Vec::new()
}

impl Reconciler for Readers {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let secrets = map.data.as_ref().ok_or("no data")?;
        let is_watched = self.state.is_watched.load(Relaxed);
        for name in secrets.values().take(self.reads) {
            let secret = if is_watched {
                cx.watch::<Secret>(name).await?
            } else {
                cx.watched::<Secret>().get(&ObjectKey::new(map.namespace(), name))
            };
            let secret = secret.ok_or("no secret")?;
            if self.is_decoded {
                black_box(secret.get()?.data.as_ref());
            }
        }
        self.state.runs.fetch_add(1, Relaxed);
        let left = self.state.left.load(Relaxed);
        if left > 0 {
            self.state.left.store(left - 1, Relaxed);
            cx.requeue(map.key());
        }
        Ok(Action::done())
    }
}

// --------------------------------------------------------------------------------- the server

fn name(what: &str, number: usize) -> String {
    format!("{what}-of-a-length-as-names-have-{number:04}")
}

fn metadata(what: &str, number: usize) -> Value {
    let version = (1000 + number).to_string();
    json!({
        "name": name(what, number), "namespace": "shop", "uid": format!("{what}-uid-{number}"),
        "resourceVersion": version, "generation": 1,
        "labels": { "app.kubernetes.io/name": "shop", "app.kubernetes.io/part-of": "all" },
    })
}

/// Returns the list of all objects of a resource.
fn list(path: &str) -> Option<Value> {
    let list = |kind: &str, items: Vec<Value>| {
        json!({
            "kind": kind, "apiVersion": "v1", "metadata": { "resourceVersion": "5000" },
            "items": items
        })
    };
    if path.ends_with("/configmaps") {
        let map = |number| {
            // Ten names each: maps share Secrets.
            let secrets: serde_json::Map<String, Value> = (0..10)
                .map(|at| (format!("key-{at}"), name("secret", (number * 3 + at * 5) % SECRETS)))
                .map(|(key, name)| (key, name.into()))
                .collect();
            json!({ "metadata": metadata("map", number), "data": secrets })
        };
        return Some(list("ConfigMapList", (0..OBJECTS).map(map).collect()));
    }
    let secret = |number| {
        let data = json!({ "tls.crt": "QUJD".repeat(300), "tls.key": "QUJD".repeat(100) });
        json!({ "metadata": metadata("secret", number), "type": "kubernetes.io/tls", "data": data })
    };
    path.ends_with("/secrets").then(|| list("SecretList", (0..SECRETS).map(secret).collect()))
}

/// A body that is sent, or a body that never ends.
enum Answer {
    Whole(Option<Bytes>),
    Open,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Open => Poll::Pending,
        }
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
    let uri = request.uri();
    let is_watch =
        uri.query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    let (status, body) = match list(uri.path()) {
        Some(_) if is_watch => (StatusCode::OK, Answer::Open),
        Some(list) => (StatusCode::OK, Answer::Whole(Some(list.to_string().into()))),
        None => {
            let status =
                json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404 });
            (StatusCode::NOT_FOUND, Answer::Whole(Some(status.to_string().into())))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    Ok(response)
}

/// Starts the server on a separate thread.
fn serve() -> SocketAddr {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("the main thread waits");
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                tokio::spawn(async move {
                    let server = hyper::server::conn::http1::Builder::new();
                    // A client that goes away ends the connection.
                    let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
                });
            }
        });
    });
    receiver.recv().expect("the server starts")
}
