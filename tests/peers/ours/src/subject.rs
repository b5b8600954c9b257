//! Windlass in the measured form.

use std::io;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use measure::{Args, Delayed, Delays, Meter, Subject};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use windlass::client::{Client, ClientConfig};
use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
use windlass::informer::{CacheOptions, Change, Informer, InformerRegistry, Registration};
use windlass::manager::{Manager, Running};
use windlass::resource::{ObjectKey, ResourceExt};
use windlass::store::{Index, Representation, Store};

use crate::kinds::Read;
use crate::queue;

/// Reconciles that sleep are all under way at once.
const FLIGHT: usize = 20_000;

/// The cache of `K`, with or without a controller.
pub struct Ours<'a, K: Read> {
    runtime: &'a Runtime,
    client: Client,
    form: Representation,
    meter: Arc<Meter>,
    sleep: Arc<AtomicU64>,
    controller: bool,
    workers: Option<usize>,
    /// Do probes and metrics have their ports?
    listens: bool,
    informers: Option<InformerRegistry>,
    informer: Option<Informer<K>>,
    store: Option<Store<K>>,
    running: Option<Running>,
    listener: Option<Registration>,
    stop: CancellationToken,
}

/// Reads the object and does nothing.
struct Noop<K> {
    meter: Arc<Meter>,
    sleep: Arc<AtomicU64>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Read> Reconciler for Noop<K> {
    type Object = K;

    async fn reconcile(&self, object: &K, _: &Context<Self>) -> Result {
        self.meter.saw(object.resource_version(), || object.stamp());
        let sleep = self.sleep.load(Ordering::Relaxed);
        if sleep > 0 {
            tokio::time::sleep(Duration::from_millis(sleep)).await;
        }
        if self.meter.fails(object.resource_version()).is_some() {
            Err(Refused)?;
        }
        Ok(Action::done())
    }
}

/// Error of a reconcile that has to fail.
#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// A reconcile without a controller.
async fn read<K: Read>(key: ObjectKey, store: Store<K>, meter: Arc<Meter>, sleep: Arc<AtomicU64>) {
    let Some(object) = store.get(&key).and_then(|cached| cached.get().ok()) else { return };
    meter.saw(object.resource_version(), || object.stamp());
    let sleep = sleep.load(Ordering::Relaxed);
    if sleep > 0 {
        tokio::time::sleep(Duration::from_millis(sleep)).await;
    }
}

impl<'a, K: Read> Ours<'a, K> {
    pub fn new(
        args: &Args,
        form: Representation,
        meter: &Arc<Meter>,
        runtime: &'a Runtime,
    ) -> io::Result<Self> {
        let _entered = runtime.enter();
        let config = ClientConfig::new(&args.server).map_err(io::Error::other)?;
        let client = Client::builder().config(config).build().map_err(io::Error::other)?;
        let has_flight =
            args.phases.iter().any(|phase| matches!(phase, measure::Phase::Flight { .. }));
        Ok(Self {
            runtime,
            client,
            form,
            meter: Arc::clone(meter),
            sleep: Arc::default(),
            controller: args.controller,
            workers: args.workers.map(usize::from).or(has_flight.then_some(FLIGHT)),
            listens: args.mode == "template",
            informers: None,
            informer: None,
            store: None,
            running: None,
            listener: None,
            stop: CancellationToken::new(),
        })
    }

    fn options(&self) -> CacheOptions {
        CacheOptions::default().representation(self.form)
    }

    /// Two, as of a typical operator; for metadata only, the index on metadata.
    fn indexes(&self) -> Vec<Index<K, String>> {
        match self.form {
            Representation::Metadata => vec![K::APP],
            _ => vec![K::APP, K::OTHER],
        }
    }

    fn start_controller(&mut self) -> InformerRegistry {
        let noop = Noop::<K> {
            meter: Arc::clone(&self.meter),
            sleep: Arc::clone(&self.sleep),
            kind: PhantomData,
        };
        let mut builder = ControllerBuilder::new();
        for index in self.indexes() {
            builder = builder.index(index);
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        let manager = Manager::new(self.client.clone());
        let manager = if self.listens {
            let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
            manager.health(any).metrics(any)
        } else {
            manager.without_health().without_metrics()
        };
        let manager =
            manager.without_signals().cache::<K>(self.options()).controller_with(noop, builder);
        let running = manager.start();
        let informers = running.informers().clone();
        self.running = Some(running);
        informers
    }

    /// The cache alone, with the same indexes.
    fn start_cache(&mut self) -> InformerRegistry {
        let informers = InformerRegistry::new(self.client.clone(), Vec::new());
        if let Some(info) = K::static_info()
            && let Err(error) = informers.set_options(info, self.options())
        {
            panic!("{error}");
        }
        let informer = informers.informer::<K>();
        let store = informer.store();
        // Without a user an informer ends.
        self.informer = Some(informer);
        for index in self.indexes() {
            if let Err(error) = store.ensure_index(index) {
                panic!("{error}");
            }
        }
        let (registry, stop) = (informers.clone(), self.stop.clone());
        self.runtime.spawn(async move { registry.run(stop).await });
        informers
    }
}

impl<K: Read> Subject for Ours<'_, K> {
    fn start(&mut self) {
        let _entered = self.runtime.enter();
        let informers = if self.controller { self.start_controller() } else { self.start_cache() };
        let informer = informers.informer::<K>();
        self.store = Some(informer.store());
        self.informer = Some(informer);
        self.informers = Some(informers);
    }

    fn is_synced(&self) -> bool {
        self.informer.as_ref().is_some_and(|informer| informer.status().synced)
    }

    fn version(&self, namespace: &str, name: &str) -> String {
        let key = ObjectKey::new(Some(namespace), name);
        let object = self.store.as_ref().and_then(|store| store.get(&key));
        object.map(|object| object.metadata().resource_version().to_owned()).unwrap_or_default()
    }

    fn visit(&self, visit: &mut dyn FnMut(&str, &str, &str)) {
        for object in self.store.iter().flat_map(Store::list) {
            let key = object.key();
            let namespace = key.namespace().unwrap_or_default();
            visit(namespace, key.name(), object.metadata().resource_version());
        }
    }

    fn lookup(&self, app: &str) -> usize {
        self.store.as_ref().map_or(0, |store| store.by_index(K::APP, app).len())
    }

    fn sleep(&self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.sleep.store(milliseconds, Ordering::Relaxed);
    }

    fn tasks(&self, count: u64, sleep: Duration) -> bool {
        self.runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..count {
                tasks.spawn(tokio::time::sleep(sleep));
            }
            while tasks.join_next().await.is_some() {}
        });
        true
    }

    /// A listener sends keys to a task, which has a `JoinSet` run a task for each: plain code
    /// without a controller. The task of a key reads the object and sleeps, no more.
    fn bare(&mut self) -> bool {
        let (Some(informer), Some(store)) = (&self.informer, self.store.clone()) else {
            return false;
        };
        let (keys, mut changed) = tokio::sync::mpsc::unbounded_channel::<ObjectKey>();
        let (meter, sleep) = (Arc::clone(&self.meter), Arc::clone(&self.sleep));
        self.runtime.spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    biased;
                    Some(_) = tasks.join_next() => {}
                    Some(key) = changed.recv() => {
                        tasks.spawn(read(key, store.clone(), Arc::clone(&meter), Arc::clone(&sleep)));
                    }
                    else => break,
                }
            }
        });
        let send = move |change: &Change<K>| drop(keys.send(change.key().clone()));
        self.listener = Some(informer.on_change(send));
        true
    }

    fn queue(&self, adds: u64) -> Option<f64> {
        Some(queue::run(self.runtime, adds))
    }

    fn own_queue(&self, adds: u64) -> Option<f64> {
        Some(queue::run_own(self.runtime, adds))
    }

    fn delays(&self, delays: &Delays) -> Option<Delayed> {
        Some(queue::delay(self.runtime, delays))
    }
}

impl<K: Read> Drop for Ours<'_, K> {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}
