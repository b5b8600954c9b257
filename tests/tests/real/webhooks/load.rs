//! Requests at a steady rate: creations of maps by dry runs, each of which asks a webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass::client::Client;
use windlass::clock::Clock;

use super::World;
use crate::bench::{client, config_map};

/// Requests of a second.
const RATE: u32 = 200;
/// Clients, with connections of their own.
const CLIENTS: u32 = 8;

/// Answered requests, and the texts of failed ones.
type Outcome = (u64, Vec<String>);

/// Longest time in which clients that were held up make up for it.
const CATCH_UP: Duration = Duration::from_secs(60);

/// Clients that send until they are ended.
pub(super) struct Load {
    stop: CancellationToken,
    clients: JoinSet<Outcome>,
    began: tokio::time::Instant,
    /// Number of requests so far.
    sent: Arc<AtomicU64>,
}

impl Load {
    pub(super) fn start(world: &World) -> Self {
        let (stop, sent) = (CancellationToken::new(), Arc::<AtomicU64>::default());
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let client = client(world.server.admin());
            let shared = (stop.clone(), Arc::clone(&sent));
            clients.spawn(send(client, world.shop.clone(), number, shared));
        }
        Self { stop, clients, began: Clock::system().now(), sent }
    }

    /// Ends the clients, and returns the number of requests; each must have been answered. They are
    /// as many as the rate demands until now: clients that a slow machine held up go on until then.
    pub(super) async fn end(self) -> u64 {
        let clock = Clock::system();
        let due = (clock.now() - self.began).as_secs() * u64::from(RATE);
        // `Relaxed`: a count.
        let sent = || self.sent.load(Ordering::Relaxed);
        let caught_up = async {
            while sent() < due {
                clock.sleep(Duration::from_millis(50)).await;
            }
        };
        let is_sent = clock.timeout(CATCH_UP, caught_up).await.is_some();
        assert!(is_sent, "{} of {due} requests, {RATE} a second", sent());
        self.stop.cancel();
        let (mut answered, mut failed) = (0, Vec::new());
        for (of_one, failures) in self.clients.join_all().await {
            answered += of_one;
            failed.extend(failures);
        }
        let took = (Clock::system().now() - self.began).as_secs_f64();
        let rate = answered as f64 / took;
        println!("{answered} requests in {took:.0} s, {rate:.0} a second; {} failed", failed.len());
        assert!(failed.is_empty(), "{} failed, the first by {}", failed.len(), failed[0]);
        answered
    }
}

async fn send(
    client: Client,
    shop: String,
    number: u32,
    (stop, sent): (CancellationToken, Arc<AtomicU64>),
) -> Outcome {
    let (maps, clock) = (client.namespace::<ConfigMap>(&shop), Clock::system());
    let between = Duration::from_secs(1) * CLIENTS / RATE;
    // All at the same time: kube-apiserver has a connection for each, and uses all of them.
    let mut due = clock.now();
    let (mut answered, mut failed) = (0, Vec::new());
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return (answered, failed),
            () = clock.sleep_until(due) => {}
        }
        // A slow answer is made up for by the next requests.
        due += between;
        match maps.create(&config_map(&format!("load-{number}"))).dry_run().await {
            Ok(_) => answered += 1,
            Err(error) => failed.push(format!("{error:?}")),
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
}
