//! Two triggers for changes that no watch shows: a webhook that names objects, and a list that is
//! polled.
//!
//! ```text
//! cargo run --bin external_trigger
//! ```
//!
//! The program serves a cluster, creates a ConfigMap `shop/home`, and listens for lines on a port:
//! each line is the name of a shop that was changed somewhere else. Prices come from a system that
//! has to be polled; here a function stands for that system. The program plays both parts, and ends
//! without a signal.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use windlass::controller::ControllerBuilder;
use windlass::controller::{Poll, PollHandle, Trigger};
use windlass::error::BoxError;
use windlass::local::LocalCluster;
use windlass::prelude::*;
use windlass::resource::ObjectKey;

/// Prints the reasons of reconciles; reads prices from the poll, and sends no request.
struct Shops {
    prices: PollHandle<u32>,
    sender: mpsc::Sender<String>,
}

impl Reconciler for Shops {
    type Object = ConfigMap;

    async fn reconcile(&self, shop: &ConfigMap, cx: &Context<Self>) -> Result {
        let price = self.prices.get(&shop.key());
        let line = format!("{}: {}, price {price:?}", shop.key(), cx.reasons());
        self.sender.send(line).await?;
        Ok(Action::done())
    }
}

/// Every line that comes in names a shop to reconcile.
async fn webhook(listener: TcpListener, trigger: Trigger<ConfigMap>) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(name)) = lines.next_line().await {
            // A name that does not exist is dropped and counted.
            trigger.send(ObjectKey::new(Some("shop"), name.trim())).await;
        }
    }
}

/// Plays a caller of the webhook.
async fn call(webhook: SocketAddr, name: &str) -> std::io::Result<()> {
    TcpStream::connect(webhook).await?.write_all(format!("{name}\n").as_bytes()).await
}

#[tokio::main]
async fn main() -> std::result::Result<(), BoxError> {
    let cluster = LocalCluster::start("external-trigger").await?;
    let client = cluster.client();
    let namespace = object!(Namespace { metadata: { name: "shop" } });
    client.all().create(&namespace).await?;
    let home = object!(ConfigMap { metadata: { name: "home" } });

    // The system that has to be polled.
    let price = Arc::new(AtomicU32::new(10));
    let prices =
        Poll::every(Duration::from_secs(1), "prices").deadline(Duration::from_secs(5)).list({
            let price = Arc::clone(&price);
            move || {
                let price = price.load(Ordering::Relaxed);
                async move { Ok(BTreeMap::from([(ObjectKey::new(Some("shop"), "home"), price)])) }
            }
        });
    let trigger = Trigger::new("webhook");
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(webhook(listener, trigger.clone()));

    let builder = ControllerBuilder::new().triggered_by(&trigger).polls(&prices);
    let (sender, mut lines) = mpsc::channel(16);
    let running = Manager::new(client.clone())
        .namespaces(["shop"])
        .without_leader_election()
        .without_health()
        .without_metrics()
        .without_signals()
        .controller_with(Shops { prices, sender }, builder)
        .start();
    let mut until = async |part: &str| {
        while let Some(line) = lines.recv().await {
            println!("{line}");
            if line.contains(part) {
                return;
            }
        }
    };

    client.namespace("shop").create(&home).await?;
    until("shop/home").await;
    call(address, "nobody").await?;
    call(address, "home").await?;
    until("trigger webhook").await;
    price.store(12, Ordering::Relaxed);
    until("poll prices, price Some(12)").await;
    drop(lines);
    running.stop();
    running.join().await?;
    println!("done");
    Ok(())
}
