//! Cost of the client beside the underlying code: a small GET beside hyper-util's client, watch
//! frames beside memchr. `cargo bench -p windlass-bench --bench client` ends with a table of
//! ratios.
//!
//! Times are the client thread's CPU time; the server runs on a separate thread. Both clients send
//! the same request with the same headers and read the whole answer.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cpu_time::ThreadTime;
use criterion::{Criterion, Throughput};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client as Plain;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use windlass::__private::probe;
use windlass::client::{
    BoxIo, Client, ClientConfig, Connect, ConnectFuture, ConnectedStream, Prepared,
};
use windlass::environment::Environment;
use windlass::wire::{Frame, FrameDecoder, StreamPiece};

/// Number of requests of a round.
const REQUESTS: u32 = 1000;
/// Number of rounds of the table, in which both sides take turns.
const ROUNDS: usize = 15;
/// Number of bytes of a read.
const READ: usize = 64 * 1024;
/// Number of bytes of all reads.
const BODY: usize = 4 * 1024 * 1024;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let runtime = runtime();
    let server = Server::start();
    let mut table = Table::default();
    for way in WAYS {
        let pair = Pair::connect(&server, way);
        pair.bench(&mut criterion, &runtime);
        pair.compare(&runtime, &mut table);
    }
    for (name, object) in [("1 KB", small()), ("8.4 KB", large())] {
        let body = watch_body(&object);
        bench_frames(&mut criterion, name, &body);
        compare_frames(name, &body, &mut table);
    }
    criterion.final_summary();
    println!("\n{table}");
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

// ---------------------------------------------------------------------------------- the table

/// A line per comparison: ours, the baseline, their ratio, the goal.
#[derive(Default)]
struct Table(Vec<[String; 5]>);

impl Table {
    fn add(&mut self, label: String, ours: String, baseline: String, ratio: String, goal: &str) {
        self.0.push([label, ours, baseline, ratio, goal.to_owned()]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [label, ours, baseline, ratio, goal] = ["", "ours", "baseline", "ratio", "goal"];
        writeln!(f, "| {label:34} | {ours:>12} | {baseline:>12} | {ratio:>6} | {goal:>8} |")?;
        writeln!(f, "|{:-<36}|{:->14}|{:->14}|{:->8}|{:->10}|", "", ":", ":", ":", ":")?;
        for [label, ours, baseline, ratio, goal] in &self.0 {
            writeln!(f, "| {label:34} | {ours:>12} | {baseline:>12} | {ratio:>6} | {goal:>8} |")?;
        }
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

// --------------------------------------------------------------------------------- small GETs

const PATH: &str = "/api/v1/namespaces/shop/configmaps/home";
const TOKEN: &str = "a-token-of-some-length-as-service-accounts-have-them";

/// Protocols by which both clients reach the server.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    memory: bool,
    http2: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "memory HTTP/1.1", memory: true, http2: false },
    Way { name: "memory HTTP/2", memory: true, http2: true },
    Way { name: "loopback HTTP/1.1", memory: false, http2: false },
    Way { name: "loopback HTTP/2", memory: false, http2: true },
];

/// The two clients of a protocol, with separate connections.
struct Pair {
    way: Way,
    ours: Client,
    plain: Plain<Dial, Full<Bytes>>,
}

impl Pair {
    fn connect(server: &Server, way: Way) -> Self {
        let dial = Dial { server: server.clone(), way };
        let config = ClientConfig::new("http://127.0.0.1:1").expect("an address").with_token(TOKEN);
        let ours = Client::builder()
            .config(config)
            .environment(Environment::system())
            .connector(Arc::new(dial.clone()))
            .build()
            .expect("a client");
        let plain = Plain::builder(TokioExecutor::new()).http2_only(way.http2).build(dial);
        Self { way, ours, plain }
    }

    async fn get_ours(&self) {
        let answer = self.ours.send(Prepared::get(PATH, "get configmaps \"home\"")).await;
        black_box(answer.expect("an answer").body);
    }

    async fn get_plain(&self) {
        let request = Request::get(format!("http://127.0.0.1:1{PATH}"))
            .header("accept", "application/json")
            .header("user-agent", "plain/0.1 (linux/x86_64)")
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(Full::new(Bytes::new()))
            .expect("a request");
        let answer = self.plain.request(request).await.expect("an answer");
        assert!(answer.status().is_success());
        black_box(answer.into_body().collect().await.expect("a body").to_bytes());
    }

    /// Returns the CPU time of the client's thread for `requests` requests, in sequence.
    fn cpu(&self, runtime: &Runtime, ours: bool, requests: u32) -> Duration {
        runtime.block_on(async {
            let started = ThreadTime::now();
            for _ in 0..requests {
                if ours { self.get_ours().await } else { self.get_plain().await }
            }
            started.elapsed()
        })
    }

    fn bench(&self, criterion: &mut Criterion, runtime: &Runtime) {
        let mut group = criterion.benchmark_group(format!("get/{}", self.way.name));
        for (name, ours) in [("windlass", true), ("hyper-util", false)] {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|requests| {
                    self.cpu(runtime, ours, u32::try_from(requests).unwrap_or(u32::MAX))
                });
            });
        }
        group.finish();
    }

    fn compare(&self, runtime: &Runtime, table: &mut Table) {
        let both = |requests| {
            let ours = self.cpu(runtime, true, requests);
            let plain = self.cpu(runtime, false, requests);
            (ours.as_secs_f64() / f64::from(requests), plain.as_secs_f64() / f64::from(requests))
        };
        both(REQUESTS);
        let rounds: Vec<_> = (0..ROUNDS).map(|_| both(REQUESTS)).collect();
        let side = |pick: fn(&(f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
        let micros = |seconds: f64| format!("{:.1} µs", seconds * 1e6);
        let (ours, plain, ratio) =
            (side(|round| round.0), side(|round| round.1), side(|round| round.0 / round.1));
        let label = format!("CPU a GET, {}", self.way.name);
        table.add(label, micros(ours), micros(plain), format!("{ratio:.2}"), "<= 1.50");

        let allocations = |ours| {
            let counted = allocation_counter::measure(|| {
                self.cpu(runtime, ours, REQUESTS);
            });
            let each = |total: u64| total as f64 / f64::from(REQUESTS);
            (each(counted.count_total), each(counted.bytes_total))
        };
        let (ours, plain) = (allocations(true), allocations(false));
        let show = |(count, bytes): (f64, f64)| format!("{count:.0}, {bytes:.0} B");
        let label = format!("allocations a GET, {}", self.way.name);
        let ratio = format!("{:.2}", ours.0 / plain.0);
        table.add(label, show(ours), show(plain), ratio, "–");
    }
}

/// The server's address for each protocol.
#[derive(Clone, Debug)]
struct Server {
    http1: SocketAddr,
    http2: SocketAddr,
    pipes: mpsc::Sender<(tokio::io::DuplexStream, bool)>,
}

impl Server {
    fn start() -> Self {
        let (pipes, mut accepted) = mpsc::channel(16);
        let (ready, addresses) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let (one, two) = (bind().await.expect("a port"), bind().await.expect("a port"));
                let address = |listener: &TcpListener| listener.local_addr().expect("an address");
                ready.send((address(&one), address(&two))).expect("the receiver waits");
                loop {
                    tokio::select! {
                        biased;
                        Some((pipe, http2)) = accepted.recv() => serve(pipe, http2),
                        Ok((stream, _)) = one.accept() => serve(quick(stream), false),
                        Ok((stream, _)) = two.accept() => serve(quick(stream), true),
                        else => return,
                    }
                }
            });
        });
        let (http1, http2) = addresses.recv().expect("the server starts");
        Self { http1, http2, pipes }
    }
}

fn quick(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).expect("the option is known");
    stream
}

fn serve(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, http2: bool) {
    let body = Bytes::from(small().to_string());
    let service = service_fn(move |_: Request<Incoming>| {
        let body = body.clone();
        async move {
            let answer = Response::builder().header("content-type", "application/json");
            answer.body(Full::new(body))
        }
    });
    let io = TokioIo::new(io);
    if http2 {
        let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .serve_connection(io, service);
        tokio::spawn(serving);
    } else {
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
    }
}

/// Opens connections for either client.
#[derive(Clone, Debug)]
struct Dial {
    server: Server,
    way: Way,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Dial {
    async fn dial(&self) -> io::Result<BoxIo> {
        let Way { memory, http2, .. } = self.way;
        if memory {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            self.server.pipes.send((theirs, http2)).await.map_err(io::Error::other)?;
            return Ok(Box::new(ours));
        }
        let address = if http2 { self.server.http2 } else { self.server.http1 };
        Ok(Box::new(quick(TcpStream::connect(address).await?)))
    }
}

impl Connect for Dial {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(self.dial())
    }

    fn open(&self) -> ConnectFuture<'_> {
        let http2 = self.way.http2;
        Box::pin(async move { Ok(ConnectedStream { io: self.dial().await?, http2 }) })
    }
}

impl tower::Service<Uri> for Dial {
    type Response = Dialed;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Dialed>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { Ok(Dialed(TokioIo::new(Pipe(dial.dial().await?)))) })
    }
}

struct Pipe(BoxIo);

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A connection with the traits that hyper-util needs.
struct Dialed(TokioIo<Pipe>);

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Dialed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl hyper::rt::Write for Dialed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

// ------------------------------------------------------------------------------- watch frames

/// Returns a config map of 1 KB.
fn small() -> Value {
    let data: serde_json::Map<_, _> =
        (0..7).map(|at| (format!("setting-{at}"), json!(format!("{:=<40}", at)))).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "name": "home", "namespace": "shop", "uid": "9a1e6d6e-6a0b-4d2c-8f39-0f5ab2f2a001",
        "resourceVersion": "48213377", "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"app.kubernetes.io/name": "home", "app.kubernetes.io/part-of": "shop"},
        "managedFields": [{"manager": "kubectl", "operation": "Update", "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]}})
}

/// Returns a pod of 8.4 KB, a third of which are managed fields.
fn large() -> Value {
    let fields = |prefix: &str, count: usize| -> Value {
        let all = (0..count).map(|at| (format!("f:{prefix}-{at}"), json!({".": {}, "f:a": {}})));
        Value::Object(all.collect())
    };
    let container = |at: usize| {
        json!({"name": format!("container-{at}"), "image": format!("registry.example/shop/{at}:1"),
        "env": (0..8).map(|n| json!({"name": format!("VARIABLE_{n}"),
            "value": format!("http://service-{n}.shop.svc:8080/path")})).collect::<Vec<_>>(),
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "10m"}},
        "volumeMounts": (0..4).map(|n| json!({"name": format!("volume-{n}"),
            "mountPath": format!("/var/run/{n}"), "readOnly": true})).collect::<Vec<_>>(),
        "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent"})
    };
    let conditions: Vec<_> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| {
            json!({"type": kind, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-02T03:04:05Z"})
        })
        .to_vec();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shop-7d4b9c6f5-x2x9z", "namespace": "shop",
            "uid": "9a1e6d6e-6a0b-4d2c-8f39-0f5ab2f2a001", "resourceVersion": "48213377",
            "creationTimestamp": "2026-01-02T03:04:05Z", "generateName": "shop-7d4b9c6f5-",
            "labels": {"app": "shop", "pod-template-hash": "7d4b9c6f5"},
            "annotations": {"note": "{\"checksum\":\"9f86d081884c7d659a2feaa0c55ad015\"}"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
                "name": "shop-7d4b9c6f5", "uid": "9a1e6d6e-6a0b-4d2c-8f39-0f5ab2f2a002"}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": fields("label", 20),
                    "f:spec": fields("container", 45), "f:status": fields("condition", 20)}}]},
        "spec": {"nodeName": "node-17", "serviceAccountName": "shop", "containers":
            [container(0), container(1), container(2)], "restartPolicy": "Always",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
        "status": {"phase": "Running", "podIP": "10.1.2.3", "conditions": conditions}})
}

/// Returns frames with `object`, as a watch's reads bring them.
fn watch_body(object: &Value) -> Vec<u8> {
    let line = format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
    line.into_bytes().repeat(BODY / object.to_string().len())
}

fn newlines(body: &[u8]) -> usize {
    body.chunks(READ).map(|read| memchr::memchr_iter(b'\n', read).count()).sum()
}

/// Calls `each` with each complete frame of `body`.
fn frames(body: &[u8], each: &mut dyn FnMut(Frame<'_>)) {
    let mut decoder = FrameDecoder::new();
    for read in body.chunks(READ) {
        decoder.push(read, &mut |part| {
            let StreamPiece::Whole(line) = part else { panic!("nothing is large") };
            each(Frame::of(line).expect("a frame"));
        });
    }
}

fn decode(body: &[u8]) -> usize {
    let mut bytes = 0;
    frames(body, &mut |frame| bytes += black_box(frame.object).len());
    bytes
}

/// Decodes up to the bytes that a cache keeps, copied once.
fn decode_and_keep(body: &[u8]) -> usize {
    let mut bytes = 0;
    frames(body, &mut |frame| {
        bytes += black_box(probe::kept(frame.object)).expect("an object").len();
    });
    bytes
}

fn bench_frames(criterion: &mut Criterion, name: &str, body: &[u8]) {
    let mut group = criterion.benchmark_group(format!("frames/{name}"));
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("windlass", |bencher| bencher.iter(|| decode(black_box(body))));
    group.bench_function("windlass, kept", |bencher| {
        bencher.iter(|| decode_and_keep(black_box(body)));
    });
    group.bench_function("memchr", |bencher| bencher.iter(|| newlines(black_box(body))));
    group.finish();
}

fn compare_frames(name: &str, body: &[u8], table: &mut Table) {
    let rate = |run: fn(&[u8]) -> usize| {
        let started = ThreadTime::now();
        for _ in 0..20 {
            black_box(run(black_box(body)));
        }
        20.0 * body.len() as f64 / 1e9 / started.elapsed().as_secs_f64()
    };
    let rounds: Vec<_> =
        (0..ROUNDS).map(|_| (rate(decode), rate(decode_and_keep), rate(newlines))).collect();
    let side = |pick: fn(&(f64, f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
    let show = |rate: f64| format!("{rate:.1} GB/s");
    let memchr = side(|round| round.2);
    let mut add = |label: String, ours: f64, ratio: f64, goal| {
        table.add(label, show(ours), show(memchr), format!("1/{:.1}", 1.0 / ratio), goal);
    };
    let ratio = side(|round| round.0 / round.2);
    add(format!("watch frames of {name}"), side(|round| round.0), ratio, ">= 1/10");
    let ratio = side(|round| round.1 / round.2);
    add(format!("… scanned, copied, {name}"), side(|round| round.1), ratio, "–");
}
