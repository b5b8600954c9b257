//! Ten thousand writes over a network that cuts connections: nothing is made twice, nothing is
//! lost.
//!
//! Every write carries an id. The results that callers got are compared with the history of the
//! server that a watch past the network shows: each state that ever was, in order.

mod history;
mod verdict;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::JoinSet;
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::rng::Rng;
use windlass::testing::RealServer;

use crate::bench::{client, config_map, new_namespace};
use crate::proxy::{Cut, Proxy, STALL};
use history::History;
use verdict::{Counts, verdict};
use worker::Worker;

const WRITES: usize = 10_000;
/// Number of clients; half of them speak HTTP/2, half HTTP/1.1.
const CLIENTS: usize = 8;
const WORKERS_PER_CLIENT: usize = 8;
/// Deadline of a call, with retries; shorter than a stall.
const PATIENCE: Duration = Duration::from_millis(2500);
const END: &str = "the-end";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs the real API server: see tests/README.md"]
async fn g_r3_of_ten_thousand_writes_over_a_cutting_network_none_is_done_twice_and_none_is_lost() {
    assert!(PATIENCE < STALL);
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let dice = Rng::seeded(seed);
    let server = RealServer::shared().await;
    let namespace = new_namespace(server).await;
    let direct = client(server.admin()).namespace::<ConfigMap>(&namespace);
    let start = direct.list().await.unwrap().resource_version;
    let history = tokio::spawn(History::until(direct.clone(), start, END));
    let proxy = Proxy::cutting(server, dice.fork("network")).await;

    let clock = Clock::system();
    let began = clock.now();
    let tickets = Arc::new(AtomicUsize::new(0));
    let (mut workers, mut clients) = (JoinSet::new(), Vec::new());
    for number in 0..CLIENTS {
        let config = proxy.admin(server);
        let client = Client::builder().config(config).timeout(PATIENCE).http2(number % 2 == 0);
        let client = client.build().unwrap();
        for _ in 0..WORKERS_PER_CLIENT {
            let api = client.namespace(&namespace);
            let id = workers.len();
            let dice = dice.fork("worker");
            let worker = Worker::new(id, api, direct.clone(), dice, Arc::clone(&tickets));
            workers.spawn(worker.work(WRITES));
        }
        clients.push(client);
    }
    for part in 1..=2 {
        while tickets.load(Ordering::Relaxed) < WRITES * part / 3 {
            clock.sleep(Duration::from_millis(10)).await;
        }
        proxy.out_for(PATIENCE + PATIENCE / 5).await;
    }
    let mut books = Vec::new();
    while let Some(book) = workers.join_next().await {
        books.push(book.unwrap());
    }
    let took = clock.now() - began;
    let cuts = proxy.cuts();
    let connections = proxy.connections();
    drop(proxy);
    // Writes that still run in the server have lost their client, and end in no time.
    clock.sleep(Duration::from_secs(2)).await;
    direct.create(&config_map(END)).await.unwrap();
    let history = history.await.unwrap();
    let stored = direct.list().await.unwrap().items;

    let (counts, faults) = verdict(&books, &history, &stored);
    println!("seed {seed}: {WRITES} writes in {took:?}, {connections} connections, cuts {cuts:?}");
    println!("{counts}; retries {}", clients.iter().map(retries).sum::<u64>());
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert_eq!(counts.writes(), WRITES);
    enough(&counts, &cuts);
}

/// Checks that enough faults happened for the run to mean something.
fn enough(counts: &Counts, cuts: &BTreeMap<Cut, u64>) {
    assert_eq!(cuts.len(), 7, "every kind of cut: {cuts:?}");
    assert!(cuts.values().sum::<u64>() > 200, "{cuts:?}");
    assert!(counts.doubtful_done > 10 && counts.doubtful_undone > 10, "{counts}");
    assert!(counts.done > WRITES / 2 && !counts.refused.is_empty(), "{counts}");
}

fn retries(client: &Client) -> u64 {
    let text = client.environment().metrics.encode();
    let lines = text.lines().filter(|line| line.starts_with("rest_client_request_retries_total{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
