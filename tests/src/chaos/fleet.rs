//! The caches of a process: a client with a network, a registry with caches.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::environment::Environment;
use windlass::informer::{CacheOptions, InformerRegistry};
use windlass::metrics::Metrics;
use windlass::reflector::ReflectorOptions;
use windlass::rng::Rng;
use windlass_apiserver::ApiServer;

use super::cache::{Cache, Watched};
use super::content::Content;
use super::follow::Follower;
use super::forms::{Forms, paged};
use super::kinds::{Gadget, Gizmo};
use super::listen::Manner;
use super::stats::by_label;
use super::{Ledger, Net, Stats};
use crate::oracle::Scope;
use crate::sim::epoch;

/// A running registry.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) net: Net,
    pub(super) caches: Vec<Arc<dyn Watched>>,
    followers: Vec<Follower>,
    ledger: Ledger,
    registry: InformerRegistry,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Parts of the world that a fleet uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) dice: &'a Rng,
    pub(super) ledger: &'a Ledger,
    pub(super) stats: &'a Stats,
}

impl Fleet {
    /// Starts the caches of `namespaces` (empty: all), with two listeners each. A fleet of all
    /// namespaces that lists in pages has slow consumers as well.
    pub(super) fn start(
        ground: Ground<'_>,
        observer: &str,
        forms: Forms,
        namespaces: &[&str],
        healthy: bool,
    ) -> Self {
        let net = Net::new(ground.server.clone(), ground.dice.fork("network"));
        net.set_healthy(healthy);
        let environment = Environment {
            clock: Clock::simulated(epoch()),
            rng: ground.dice.fork("client"),
            metrics: Metrics::new(),
        };
        let client = Client::over(Arc::new(net.clone()), environment);
        let namespaces: Vec<String> = namespaces.iter().map(ToString::to_string).collect();
        let registry = InformerRegistry::new(client.clone(), namespaces.clone());
        let scope = Scope { namespaces: namespaces.clone(), selects: None };
        let records = (ground.ledger, ground.stats);
        let mut caches = forms.caches(&registry, observer, &scope, records);
        if scope.namespaces.len() > 1 {
            let scope = Scope { selects: Some(Content::is_red), ..scope };
            let observer = format!("{observer}, red ones only");
            let options = CacheOptions::default();
            caches.push(Cache::<Gadget>::new(&registry, &observer, scope, options, records));
        }
        for cache in &caches {
            Arc::clone(cache).listen(Manner::Panics(37));
            Arc::clone(cache).listen(Manner::Prompt);
            tokio::spawn(Arc::clone(cache).synced());
        }
        let stop = CancellationToken::new();
        let mut followers = Vec::new();
        if namespaces.is_empty() && forms == Forms::Paged {
            let options = ReflectorOptions::new();
            followers.push(Follower::start::<Gadget>(&client, options, observer, records, &stop));
            followers.push(Follower::start::<Gizmo>(&client, paged(), observer, records, &stop));
        }
        let (running, token) = (registry.clone(), stop.clone());
        let task = tokio::spawn(async move { running.run(token).await });
        let ledger = ground.ledger.clone();
        Self { net, caches, followers, ledger, registry, stop, task }
    }

    /// Stops the process; from then on no listener must receive any event.
    pub(super) async fn stop(self, stats: &Stats) {
        self.stop.cancel();
        // Only the end of the task counts; a panic within is reported by the registry.
        let _ = self.task.await;
        for follower in self.followers {
            follower.ended(&self.ledger).await;
        }
        for cache in &self.caches {
            cache.stopped();
        }
        Self::sum(&self.net, &self.registry, stats);
    }

    /// Adds the network's faults and their effects to `stats`.
    fn sum(net: &Net, registry: &InformerRegistry, stats: &Stats) {
        for (fate, number) in net.fates() {
            stats.add(fate, number);
        }
        let text = registry.environment().metrics.encode();
        for (title, metric, label) in [
            ("lists", "windlass_informer_lists_total", "cause"),
            ("dropped", "windlass_informer_dropped_frames_total", "reason"),
            ("watches", "windlass_informer_watches_total", "resource"),
            ("panics of listeners", "windlass_informer_listener_panics_total", "resource"),
        ] {
            for (value, number) in by_label(&text, metric, label, "") {
                stats.add(&format!("{title}: {value}"), number);
            }
        }
    }
}
