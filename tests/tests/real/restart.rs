//! The server goes away and comes back, on the same port and with the same data.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio_util::sync::CancellationToken;
use windlass::api::{Api, WatchEvent};
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::informer::{Change, InformerRegistry};
use windlass::resource::ResourceExt;
use windlass::testing::RealServer;
use windlass::{Error, ErrorKind};

use crate::bench::{client, config_map, eventually, new_namespace};
use crate::proxy::Proxy;

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a10_an_informer_survives_that_the_server_is_killed() {
    let server = RealServer::start().await;
    outlives(&server, async || server.kill().await).await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a10_an_informer_survives_that_the_server_is_shut_down() {
    let server = RealServer::start().await;
    outlives(&server, async || server.terminate().await).await;
}

/// A cache, and all events that the listener received.
struct Cache {
    stop: CancellationToken,
    running: tokio::task::JoinHandle<()>,
    informer: windlass::informer::Informer<ConfigMap>,
    received: Arc<Mutex<Vec<String>>>,
}

impl Cache {
    async fn start(client: Client, namespace: &str) -> Self {
        let registry = InformerRegistry::new(client, vec![namespace.to_owned()]);
        let informer = registry.informer::<ConfigMap>();
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&received);
        let listening = informer.on_change(move |change| {
            let line = match change {
                Change::Added { new, .. } => format!("added {}", new.key().name()),
                Change::Updated { new, .. } => format!("updated {}", new.key().name()),
                Change::Deleted { last, .. } => format!("deleted {}", last.key().name()),
            };
            sink.lock().unwrap().push(line);
        });
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { registry.run(token).await });
        listening.synced().await.unwrap();
        listening.keep();
        Self { stop, running, informer, received }
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

async fn create(api: &Api<ConfigMap>, prefix: &str, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for number in 0..count {
        let name = format!("{prefix}-{number:02}");
        api.create(&config_map(&name)).await.unwrap();
        lines.push(format!("added {name}"));
    }
    lines
}

async fn outlives(server: &RealServer, end: impl AsyncFnOnce()) {
    let namespace = new_namespace(server).await;
    let impatient = Client::builder().config(server.admin()).timeout(Duration::from_secs(2));
    let impatient = impatient.build().unwrap();
    let api = impatient.namespace::<ConfigMap>(&namespace);
    let mut wanted = create(&api, "early", 10).await;
    let cache = Cache::start(client(server.admin()), &namespace).await;
    wanted.extend(create(&api, "before", 20).await);

    end().await;
    let error = api.get("early-00").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error:?}");
    let text = error.to_string();
    for part in ["cannot get configmaps \"early-00\"", "no connection", "Connection refused"] {
        assert!(text.contains(part), "{text}");
    }
    let error = api.create(&config_map("never")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "it was certainly not executed: {error:?}");
    let seen = cache.informer.store().len();
    assert!(seen >= 10, "the cache goes on showing what it had: {seen}");

    server.start_again().await;
    wanted.extend(create(&api, "after", 20).await);
    eventually("the cache has caught up", async || cache.received().len() >= wanted.len()).await;
    Clock::system().sleep(Duration::from_millis(500)).await;
    let mut received = cache.received();
    received.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(
        received, wanted,
        "each object was delivered once, none is missing, none was deleted"
    );
    assert_eq!(cache.informer.store().len(), 50);
    cache.stop().await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a10_a_watch_ends_with_its_server_and_goes_on_from_the_last_version() {
    let server = RealServer::start().await;
    let namespace = new_namespace(&server).await;
    let client = client(server.admin());
    let api = client.namespace::<ConfigMap>(&namespace);
    let mut version = api.list().await.unwrap().resource_version;
    let mut watch = api.watch().resource_version(&version).await.unwrap();
    create(&api, "before", 5).await;
    let mut seen = Vec::new();
    while seen.len() < 5 {
        take(watch.next().await.unwrap().unwrap(), &mut seen, &mut version);
    }
    server.kill().await;
    loop {
        match watch.next().await {
            Some(Ok(event)) => take(event, &mut seen, &mut version),
            Some(Err(error)) => assert_eq!(error.kind(), ErrorKind::Transport, "{error:?}"),
            None => break,
        }
    }
    assert!(watch.next().await.is_none(), "an ended watch stays ended");

    server.start_again().await;
    create(&api, "after", 5).await;
    if let Err(error) = go_on(&api, &mut version, &mut seen).await {
        // The new server knows the events since the server's own list. If any client, the server
        // included, wrote between our last event and that list, the server answers so, and a list
        // has the missing objects.
        assert_eq!(error.kind(), ErrorKind::Expired, "{error:?}");
        seen = api.list().await.unwrap().items.iter().map(|map| map.name().to_owned()).collect();
    }
    let names = |prefix: &str| (0..5).map(|n| format!("{prefix}-{n:02}")).collect::<Vec<_>>();
    seen.sort_by_key(|name| name.starts_with("after"));
    assert_eq!(seen, [names("before"), names("after")].concat());
}

/// Watches from `version` on, until ten objects were seen.
async fn go_on(
    api: &Api<ConfigMap>,
    version: &mut String,
    seen: &mut Vec<String>,
) -> Result<(), Error> {
    let mut watch = api.watch().resource_version(&*version).await?;
    while seen.len() < 10 {
        take(watch.next().await.expect("it goes on")?, seen, version);
    }
    Ok(())
}

fn take(event: WatchEvent<ConfigMap>, seen: &mut Vec<String>, version: &mut String) {
    match event {
        WatchEvent::Added(object) => {
            // The namespace's own, which a controller manager would have made.
            seen.push(object.name().to_owned());
            object.resource_version().clone_into(version);
        }
        WatchEvent::Bookmark { resource_version, .. } => *version = resource_version,
        other => panic!("no object was changed: {other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a5_a_server_that_stands_still_ends_calls_at_their_deadline_and_answers_when_it_goes_on() {
    let server = RealServer::start().await;
    let namespace = new_namespace(&server).await;
    let limit = Duration::from_secs(2);
    let client = Client::builder().config(server.admin()).timeout(limit).build().unwrap();
    let api = client.namespace::<ConfigMap>(&namespace);
    api.create(&config_map("home")).await.unwrap();

    server.freeze().await;
    let clock = Clock::system();
    let began = clock.now();
    let error = api.get("home").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    let error = api.create(&config_map("doubtful")).await.unwrap_err();
    assert!(clock.now() - began < 3 * limit, "it took {:?}", clock.now() - began);
    // The kernel opens connections for a server that stands still; a new connection stops at TLS.
    let kinds = [ErrorKind::Ambiguous, ErrorKind::Connect];
    assert!(kinds.contains(&error.kind()), "{error:?}");

    server.thaw().await;
    eventually("it answers again", async || api.get("home").await.is_ok()).await;
    api.create(&config_map("later")).await.unwrap();
}

/// kube-apiserver can send GOAWAY to HTTP/2 connections at random, to spread clients over servers.
#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a10_a_server_that_often_says_goaway_fails_no_request() {
    let server = RealServer::start_with(&["--goaway-chance=0.02"]).await;
    let namespace = new_namespace(&server).await;
    let proxy = Proxy::new(&server).await;
    let api = client(proxy.admin(&server)).namespace::<ConfigMap>(&namespace);
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..16 {
        let api = api.clone();
        callers.spawn(async move {
            for number in 0..30 {
                let name = format!("call-{caller}-{number}");
                api.create(&config_map(&name)).await.unwrap();
                api.get(&name).await.unwrap();
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    assert_eq!(api.list().await.unwrap().items.len(), 480);
    let connections = proxy.connections();
    println!("960 calls over {connections} connections");
    assert!(connections > 3, "it did not say goaway: {connections}");
}
