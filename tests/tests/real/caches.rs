//! Caches of the real server over a network that cuts connections, and the oracle that knows every
//! version.
//!
//! Each object has a single writer, so the answers to the writes are the object's history. The
//! states that caches show are judged when the writers are done, because a watch may be faster than
//! an answer. The promise about own writes is checked on the embedded server only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass::client::{Client, Prepared, Verb};
use windlass::clock::Clock;
use windlass::informer::InformerRegistry;
use windlass::resource::ResourceInfo;
use windlass::rng::Rng;
use windlass::testing::RealServer;
use windlass_tests::chaos::{
    Content, GADGETS, Gadget, LateCache, Ledger, Manner, definition, uid_number,
};
use windlass_tests::oracle::{Book, Scope, Shown};

use crate::bench::{client, eventually, new_namespace, post};
use crate::proxy::Proxy;

/// Number of versions, unless `WINDLASS_VERSIONS` gives another.
const VERSIONS: u64 = 20_000;
const WRITERS: u64 = 120;
/// Number of objects of a writer.
const OBJECTS: u64 = 3;
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the real API server: see tests/README.md"]
async fn g_c1_to_g_c9_hold_over_a_network_that_cuts_connections() {
    let (seed, versions) = (number("WINDLASS_SEED", 1), number("WINDLASS_VERSIONS", VERSIONS));
    let dice = Rng::seeded(seed);
    let server = RealServer::shared().await;
    let direct = client(server.admin());
    let ledger = Ledger::new(Book::late());
    post(&direct, CRDS, "define gadgets", &definition(GADGETS)).await.unwrap();
    let mut namespaces = Vec::new();
    for _ in 0..3 {
        namespaces.push(new_namespace(server).await);
    }
    let path = ResourceInfo::of::<Gadget>().collection_path(Some(&namespaces[0]));
    let served = async || direct.send(Prepared::get(&path, "list gadgets")).await.is_ok();
    eventually("gadgets are served", served).await;

    let clock = Clock::system();
    let began = clock.now();
    let tickets = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let namespace = namespaces[writer as usize % namespaces.len()].clone();
        let writer = Writer::new(writer, namespace, &direct, &ledger, dice.fork("writer"));
        writers.spawn(writer.work(Arc::clone(&tickets), versions));
    }
    let proxy = Proxy::cutting_streams(server, dice.fork("network")).await;
    let all: Vec<String> = Vec::new();
    let two = namespaces[..2].to_vec();
    let mut fleets = Vec::new();
    for (observer, scope, http2) in
        [("all", &all, true), ("all by HTTP/1.1", &all, false), ("two namespaces", &two, true)]
    {
        fleets.push(Fleet::start(&proxy, server, observer, scope, http2, &ledger));
    }
    let mut ended = Vec::new();
    while tickets.load(Ordering::Relaxed) < versions {
        clock.sleep(Duration::from_millis(100)).await;
        fleets.iter().for_each(|fleet| fleet.cache.read());
        // A cache ends now and then, and another begins.
        if dice.below(40) == 0 {
            let old = std::mem::replace(
                &mut fleets[0],
                Fleet::start(&proxy, server, "all, anew", &all, dice.below(2) == 0, &ledger),
            );
            ended.push(Arc::clone(&old.cache));
            old.end().await;
        }
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    let took = clock.now() - began;
    proxy.stop_cutting();
    let settled = async || {
        ledger.book().catch_up();
        let settled = ledger.book().settled();
        fleets.iter().try_for_each(|fleet| fleet.cache.settled()).and(settled).is_ok()
    };
    eventually("every cache and listener knows everything", settled).await;
    let settled = clock.now() - began - took;
    let reads: usize =
        fleets.iter().map(|fleet| &fleet.cache).chain(&ended).map(|cache| cache.judge()).sum();
    for fleet in fleets {
        fleet.end().await;
    }
    ledger.book().catch_up();
    let (counts, violations) = {
        let book = ledger.book();
        (book.counts(), book.violations().to_vec())
    };
    let (connections, cuts) = (proxy.connections(), proxy.cuts());
    println!(
        "seed {seed}: {counts:?} in {took:?}, settled in {settled:?}; {connections} connections, \
         cuts {cuts:?}; {reads} reads judged, {} processes ended",
        ended.len()
    );
    assert!(violations.is_empty(), "{}", violations[0]);
    assert!(counts.commits >= versions, "{counts:?}");
    assert!(cuts.values().sum::<u64>() > 20, "too little went wrong: {cuts:?}");
}

/// The cache of a process.
struct Fleet {
    cache: Arc<LateCache<Gadget>>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Fleet {
    fn start(
        proxy: &Proxy,
        server: &RealServer,
        observer: &str,
        namespaces: &[String],
        http2: bool,
        ledger: &Ledger,
    ) -> Self {
        let client = Client::builder().config(proxy.admin(server)).http2(http2).build().unwrap();
        let registry = InformerRegistry::new(client, namespaces.to_vec());
        let scope = Scope { namespaces: namespaces.to_vec(), selects: None };
        let manners = [
            Manner::Prompt,
            Manner::Panics(101),
            Manner::Slow(Duration::from_millis(2)),
            Manner::Resyncs(Duration::from_secs(7)),
        ];
        let cache = LateCache::new(&registry, observer, scope, ledger, &manners);
        let syncing = Arc::clone(&cache);
        tokio::spawn(async move { syncing.synced().await });
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { registry.run(token).await });
        Self { cache, stop, running }
    }

    /// Removes the listeners, then ends the fleet.
    async fn end(self) {
        self.cache.silence().await;
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

/// The owner and only writer of some objects, with a single write at a time.
struct Writer {
    namespace: String,
    client: Client,
    ledger: Ledger,
    dice: Rng,
    /// Uid and version of each present object, by name.
    live: BTreeMap<String, Option<(String, String)>>,
}

impl Writer {
    fn new(id: u64, namespace: String, client: &Client, ledger: &Ledger, dice: Rng) -> Self {
        let names = (0..OBJECTS).map(|object| format!("gadget-{id}-{object}"));
        let live: BTreeMap<_, _> = names.map(|name| (name, None)).collect();
        for name in live.keys() {
            ledger.book().know(GADGETS, &namespace, name);
        }
        Self { namespace, client: client.clone(), ledger: ledger.clone(), dice, live }
    }

    /// Writes until all writers together have made `versions` writes.
    async fn work(mut self, tickets: Arc<AtomicU64>, versions: u64) {
        loop {
            let serial = tickets.fetch_add(1, Ordering::Relaxed);
            if serial >= versions {
                return;
            }
            let at = self.dice.below(self.live.len() as u64) as usize;
            let name = self.live.keys().nth(at).unwrap().clone();
            let deletes = self.live[&name].is_some() && self.dice.below(10) == 0;
            let state = if deletes {
                self.send(Verb::Delete, Method::DELETE, &name, None).await;
                None
            } else {
                Some(self.put(&name, Content { serial: serial + 1 }).await)
            };
            self.live.insert(name.clone(), state.clone());
            let object = state.map(|(uid, version)| Shown {
                uid: uid_number(&uid),
                version: version.parse().unwrap(),
                serial: serial + 1,
            });
            self.ledger.book().commit(GADGETS, &self.namespace, &name, object);
        }
    }

    /// Creates or replaces an object; returns uid and version.
    async fn put(&self, name: &str, content: Content) -> (String, String) {
        let mut object = content.object::<Gadget>(&self.namespace, name, "");
        object["apiVersion"] = json!("chaos.windlass.dev/v1");
        object["kind"] = json!("Gadget");
        let answer = match &self.live[name] {
            Some((_, version)) => {
                object["metadata"]["resourceVersion"] = json!(version);
                self.send(Verb::Update, Method::PUT, name, Some(object)).await
            }
            None => self.send(Verb::Create, Method::POST, "", Some(object)).await,
        };
        let text = |field: &str| answer["metadata"][field].as_str().unwrap().to_owned();
        (text("uid"), text("resourceVersion"))
    }

    async fn send(&self, verb: Verb, method: Method, name: &str, body: Option<Value>) -> Value {
        let info = ResourceInfo::of::<Gadget>();
        let path = match name {
            "" => info.collection_path(Some(&self.namespace)),
            name => info.object_path(Some(&self.namespace), name),
        };
        let mut request = Prepared::new(verb, method, path, format!("write {name}"));
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.body = body.map(|body| body.to_string()).unwrap_or_default().into();
        let answer = self.client.send(request).await.unwrap();
        serde_json::from_slice(&answer.body).unwrap()
    }
}
