//! An object with five children as a graph of windlass, for `run` in this folder.
//!
//! `children setup KUBECONFIG N` installs the kind and makes N objects;
//! `children KUBECONFIG N ROUNDS [bare]` runs the controller. The program prints `settled` when
//! nothing is reconciled any more. Then a line of the input asks for a measurement, which is
//! printed: nanoseconds of CPU of the process, and reconciles, while every object is reconciled
//! ROUNDS times; then nanoseconds of CPU within `Children::apply`. The end of the input ends the
//! program. With `bare` a reconcile does nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use windlass::client::ClientConfig;
use windlass::conditions::ConditionedStatus;
use windlass::controller::{LoopGuard, Trigger};
use windlass::prelude::*;
use windlass::resource::ObjectKey;
use windlass::{Dependents, Error};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "peers.example", version = "v1", namespaced)]
pub struct Site {
    metadata: ObjectMeta,
    spec: SiteSpec,
    status: Option<ConditionedStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct SiteSpec {
    host: String,
    replicas: i32,
}

#[derive(Dependents)]
#[dependents(by = Sites)]
struct Children {
    config: ConfigMap,
    login: Secret,
    account: ServiceAccount,
    #[dependent(after(config, login, account))]
    app: Deployment,
    #[dependent(after(app))]
    service: Service,
}

#[derive(Controller)]
#[controller(for = Site, dependents(Children))]
struct Sites {
    reconciles: Arc<AtomicU64>,
    /// CPU time of all applies in nanoseconds. At rest an apply waits for nothing, and stays in a
    /// single thread.
    applies: Arc<AtomicU64>,
    is_bare: bool,
}

impl Reconciler for Sites {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        if self.is_bare {
            return Ok(Action::done());
        }
        let began = cpu(ClockId::ThreadCPUTime);
        let children = Children::apply(self, site, cx).await?;
        let spent = cpu(ClockId::ThreadCPUTime).saturating_sub(began);
        self.applies.fetch_add(spent, Ordering::Relaxed);
        children.action()
    }
}

impl DesiredChildren for Sites {
    async fn config(&self, site: &Site, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(
            object!(ConfigMap { data: { "host": site.spec.host.as_str(), "index.html": "<h1>Welcome</h1>" } }),
        )
    }

    async fn login(&self, site: &Site, _: &Context<Self>) -> Result<Secret> {
        let mut login = object!(Secret { type: "Opaque" });
        let user = k8s_openapi::ByteString(site.spec.host.clone().into_bytes());
        login.data = Some([("user".to_owned(), user)].into());
        Ok(login)
    }

    async fn account(&self, _: &Site, _: &Context<Self>) -> Result<ServiceAccount> {
        Ok(ServiceAccount::default())
    }

    async fn app(&self, site: &Site, _: &Context<Self>) -> Result<Deployment> {
        let name = site.name();
        Ok(object!(Deployment { spec: {
            replicas: site.spec.replicas,
            selector: { matchLabels: { app: name } },
            template: {
                metadata: { labels: { app: name } },
                spec: {
                    serviceAccountName: name,
                    containers: [{
                        name: "nginx", image: "nginx:1.29", ports: [{ containerPort: 80 }],
                        env: [{ name: "HOST", value: &site.spec.host }],
                    }],
                },
            },
        } }))
    }

    async fn service(&self, site: &Site, _: &Context<Self>) -> Result<Service> {
        Ok(object!(Service { spec: { selector: { app: site.name() }, ports: [{ port: 80 }] } }))
    }
}

/// CPU time in nanoseconds.
fn cpu(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Waits until no reconcile has begun for `quiet`.
async fn rest(reconciles: &AtomicU64, least: u64, quiet: Duration) {
    let mut before = u64::MAX;
    loop {
        let now = reconciles.load(Ordering::Relaxed);
        if now == before && now >= least {
            return;
        }
        before = now;
        tokio::time::sleep(quiet).await;
    }
}

async fn setup(client: &Client, count: u64) -> Result<(), Error> {
    client.all().create(&Site::crd()?).await?;
    let sites = client.namespace::<Site>("default");
    for at in 0..count {
        let site = Site::new(
            &format!("site-{at}"),
            SiteSpec { host: format!("{at}.example"), replicas: 2 },
        );
        while let Err(error) = sites.create(&site).await {
            // The definition is not served at once.
            if error.code() != Some(404) {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_setup = words.first().is_some_and(|word| word == "setup");
    let word = |at: usize| words.get(at + usize::from(is_setup)).map_or("", String::as_str);
    let number = |at: usize| word(at).parse::<u64>().map_err(io::Error::other);
    let config = ClientConfig::from_file(word(0), None).map_err(io::Error::other)?;
    let client = Client::builder().config(config).build().map_err(io::Error::other)?;
    let count = number(1)?;
    if is_setup {
        return setup(&client, count).await.map_err(io::Error::other);
    }
    let rounds = number(2)?;
    let reconciles = Arc::new(AtomicU64::new(0));
    let applies = Arc::new(AtomicU64::new(0));
    let (counted, timed) = (Arc::clone(&reconciles), Arc::clone(&applies));
    let sites = Sites { reconciles: counted, applies: timed, is_bare: word(3) == "bare" };
    let trigger = Trigger::new("rounds");
    // The guard counts, and slows nothing down: every reconcile here is on purpose.
    let guard = LoopGuard::new(u32::MAX, Duration::from_secs(60));
    let builder = Sites::builder().triggered_by(&trigger).loop_guard(guard);
    let manager = Manager::new(client).without_health().without_metrics().without_signals();
    let running = manager.controller_with(sites, builder).start();
    rest(&reconciles, count, Duration::from_secs(2)).await;
    println!("settled");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while lines.next_line().await?.is_some() {
        let (began, before) = (cpu(ClockId::ProcessCPUTime), reconciles.load(Ordering::Relaxed));
        applies.store(0, Ordering::Relaxed);
        for round in 1..=rounds {
            for at in 0..count {
                trigger.send(ObjectKey::new(Some("default"), &format!("site-{at}"))).await;
            }
            while reconciles.load(Ordering::Relaxed) < before + round * count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let spent = cpu(ClockId::ProcessCPUTime) - began;
        let count = reconciles.load(Ordering::Relaxed) - before;
        println!("{spent} {count} {}", applies.load(Ordering::Relaxed));
    }
    running.stop();
    running.join().await.map_err(io::Error::other)?;
    Ok(())
}
