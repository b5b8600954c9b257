//! kube-rs in the measured form.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config, ResourceExt};
use measure::{Args, Meter, Subject};
use tokio::runtime::Runtime;

use crate::kinds::Read;

/// A reflector of `K`, with or without a controller on top.
pub struct Theirs<'a, K: Read> {
    runtime: &'a Runtime,
    client: Client,
    meter: Arc<Meter>,
    sleep: Arc<AtomicU64>,
    controller: bool,
    mode: String,
    workers: Option<u16>,
    store: Option<Store<K>>,
    objects: usize,
}

/// State shared by reconciles.
struct Shared {
    meter: Arc<Meter>,
    sleep: Arc<AtomicU64>,
}

/// Error of a reconcile that has to fail, with the number of failures in a row. The only backoff is
/// the backoff of the error policy, so the driver counts for the policy.
#[derive(Debug)]
struct Refused(u32);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// The first delay of both rivals' backoff, doubled by each failure.
const BACKOFF: Duration = Duration::from_millis(5);

fn back_off<K: Read>(_: Arc<K>, refused: &Refused, _: Arc<Shared>) -> Action {
    Action::requeue(BACKOFF * 2_u32.saturating_pow(refused.0.saturating_sub(1)))
}

async fn reconcile<K: Read>(object: Arc<K>, shared: Arc<Shared>) -> Result<Action, Refused> {
    shared.meter.saw(object.version(), || object.stamp());
    let sleep = shared.sleep.load(Ordering::Relaxed);
    if sleep > 0 {
        tokio::time::sleep(Duration::from_millis(sleep)).await;
    }
    match shared.meter.fails(object.version()) {
        Some(times) => Err(Refused(times)),
        None => Ok(Action::await_change()),
    }
}

impl<'a, K: Read> Theirs<'a, K> {
    pub fn new(args: &Args, meter: &Arc<Meter>, runtime: &'a Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        let config = Config::new(args.server.parse().map_err(io::Error::other)?);
        Ok(Self {
            runtime,
            client: Client::try_from(config).map_err(io::Error::other)?,
            meter: Arc::clone(meter),
            sleep: Arc::default(),
            controller: args.controller,
            mode: args.mode.clone(),
            workers: args.workers,
            store: None,
            objects: usize::try_from(args.objects).map_err(io::Error::other)?,
        })
    }
}

impl<K: Read> Subject for Theirs<'_, K> {
    fn start(&mut self) {
        let _entered = self.runtime.enter();
        let api: Api<K> = Api::all(self.client.clone());
        let config = match self.mode.as_str() {
            "streaming" => watcher::Config::default().streaming_lists(),
            _ => watcher::Config::default(),
        };
        let is_stripped = self.mode == "stripped";
        let strip = move |object: &mut K| {
            if is_stripped {
                object.managed_fields_mut().clear();
            }
        };
        let store = if self.controller {
            let shared = Shared { meter: Arc::clone(&self.meter), sleep: Arc::clone(&self.sleep) };
            let controller = if is_stripped {
                let (store, writer) = reflector::store();
                let objects = watcher(api, config).default_backoff().modify(strip);
                Controller::for_stream(objects.reflect(writer).applied_objects(), store)
            } else {
                Controller::new(api, config)
            };
            // None is no limit.
            let limit = controller::Config::default().concurrency(self.workers.unwrap_or(0));
            let controller = controller.with_config(limit);
            let store = controller.store();
            let results = controller.run(reconcile, back_off, Arc::new(shared));
            self.runtime.spawn(results.for_each(|_| std::future::ready(())));
            store
        } else {
            let (store, writer) = reflector::store();
            let objects = watcher(api, config).default_backoff().modify(strip);
            let events = reflector(writer, objects);
            self.runtime.spawn(events.for_each(|_| std::future::ready(())));
            store
        };
        self.store = Some(store);
    }

    fn is_synced(&self) -> bool {
        // A list is put into the store as a whole. Waiting by `wait_until_ready` as well would
        // compete with the controller's own wait.
        self.store.as_ref().is_some_and(|store| store.len() >= self.objects)
    }

    fn version(&self, namespace: &str, name: &str) -> String {
        let key = ObjectRef::new(name).within(namespace);
        let object = self.store.as_ref().and_then(|store| store.get(&key));
        object.map(|object| object.version().to_owned()).unwrap_or_default()
    }

    fn visit(&self, visit: &mut dyn FnMut(&str, &str, &str)) {
        for object in self.store.iter().flat_map(Store::state) {
            let namespace = object.namespace().unwrap_or_default();
            visit(&namespace, &object.name_any(), object.version());
        }
    }

    /// There are no indexes: everything is looked at.
    fn lookup(&self, app: &str) -> usize {
        let all = self.store.iter().flat_map(Store::state);
        all.filter(|object| object.is_of(app)).count()
    }

    fn sleep(&self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.sleep.store(milliseconds, Ordering::Relaxed);
    }
}
