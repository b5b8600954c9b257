//! Tests of the cache against a scripted server, on the paused clock.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Change, Informer, InformerRegistry, InformerStatus, Registration, Selection};
use crate::reflector::test_support::Server;
use crate::reflector::{ListWatch, Read};
use crate::store::Cached;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::Metrics;
use windlass_core::resource::ObjectKey;
use windlass_core::rng::Rng;

mod cache;
mod copies;
mod faults;
mod frames;
mod invalid;
mod listeners;
mod names;
mod order;
mod own;
mod registries;
mod requests;
mod server;

/// An informer of config maps on a scripted server, and a log of the listener.
struct Rig {
    server: Arc<Server>,
    registry: InformerRegistry,
    informer: Informer<ConfigMap>,
    told: Told,
    listening: Registration,
    environment: Environment,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    #[track_caller]
    fn listen(&self, informer: &Informer<ConfigMap>) -> Registration {
        let told = self.clone();
        informer.on_change(move |change| told.hear(change))
    }

    fn hear(&self, change: &Change<ConfigMap>) {
        let show = |cached: &Cached<ConfigMap>| {
            let value = match cached.get() {
                Ok(object) => object.data.iter().flatten().map(|(_, v)| v.clone()).collect(),
                Err(_) => "invalid".to_owned(),
            };
            format!("{}={value}", cached.key().name())
        };
        self.0.lock().push(match change {
            Change::Added { new, is_initial: true } => format!("*{}", show(new)),
            Change::Added { new, .. } => format!("+{}", show(new)),
            Change::Updated { old, new } => format!("~{}>{}", show(old), show(new)),
            Change::Deleted { last, final_state_unknown: true } => format!("?{}", show(last)),
            Change::Deleted { last, .. } => format!("-{}", show(last)),
        });
    }

    /// Returns the events that were delivered since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

fn environment() -> Environment {
    Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() }
}

fn registry(
    server: &Arc<Server>,
    environment: &Environment,
    namespaces: &[&str],
) -> InformerRegistry {
    let server = Arc::clone(server);
    let sources = Box::new(move |_: Selection<'_>| Arc::clone(&server) as Arc<dyn ListWatch>);
    let namespaces = namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
    InformerRegistry::over(sources, environment.clone(), namespaces)
}

fn run(registry: &InformerRegistry, stop: &CancellationToken) -> JoinHandle<()> {
    let (registry, stop) = (registry.clone(), stop.clone());
    tokio::spawn(async move { registry.run(stop).await })
}

impl Rig {
    /// Creates a rig that is not running yet.
    fn idle(server: Arc<Server>) -> Self {
        let environment = environment();
        let registry = registry(&server, &environment, &[]);
        let informer = registry.informer::<ConfigMap>();
        let told = Told::default();
        let listening = told.listen(&informer);
        let stop = CancellationToken::new();
        let task = tokio::spawn(async {});
        Self { server, registry, informer, told, listening, environment, stop, task }
    }

    /// Creates a running rig.
    fn start(server: Arc<Server>) -> Self {
        let mut rig = Self::idle(server);
        rig.task = run(&rig.registry, &rig.stop);
        rig
    }

    /// Creates a running and synced rig.
    async fn synced(server: Arc<Server>) -> Self {
        let rig = Self::start(server);
        let limit = Duration::from_secs(900);
        tokio::time::timeout(limit, rig.listening.synced()).await.expect("it syncs").unwrap();
        rig
    }

    /// Waits until all writes of the server were delivered; returns the events.
    async fn caught_up(&self) -> Vec<String> {
        let version = self.server.version().to_string();
        let is_told = || self.registry.views().iter().all(|view| view.is_delivered);
        let caught_up = || self.status().resource_version == version && is_told();
        eventually("the watch catches up", caught_up).await;
        self.told.take()
    }

    fn status(&self) -> InformerStatus {
        self.informer.status()
    }

    fn get(&self, name: &str) -> Option<Cached<ConfigMap>> {
        self.informer.store().get(&ObjectKey::new(Some("n"), name))
    }
}

fn data(value: &str) -> Value {
    json!({"k": value})
}

/// Waits in virtual time; returns the time spent waiting.
#[track_caller]
fn eventually(what: &'static str, condition: impl Fn() -> bool) -> impl Future<Output = Duration> {
    let caller = std::panic::Location::caller();
    async move {
        let started = Instant::now();
        while !condition() {
            assert!(
                started.elapsed() < Duration::from_secs(900),
                "never happened: {what} ({caller})"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        started.elapsed()
    }
}

/// An informer that does not run; the informer stops with the registry.
pub(super) fn idle_core() -> (InformerRegistry, Arc<super::core::InformerCore>) {
    let registry = registry(&Server::new(), &environment(), &[]);
    let core = Arc::clone(registry.pinned::<ConfigMap>().informer_ref.core());
    (registry, core)
}
