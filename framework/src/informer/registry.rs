//! All informers of one operator, and the task that keeps them running.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::core::{Core, Synced};
use super::{CacheView, Informer, InformerStatus};
use crate::client::Client;
use crate::reflector::{ApiServer, Habits, ListWatch};
use crate::resource::{Resource, ResourceInfo, Scope};
use crate::seams::Seams;
use crate::store;

/// Makes the source of a kind in one namespace, or in all.
pub(crate) type Sources =
    Box<dyn Fn(&ResourceInfo, Option<&str>) -> Arc<dyn ListWatch> + Send + Sync>;

/// All informers of one operator: one per kind and scope. Cheap to clone.
#[derive(Clone)]
pub struct InformerRegistry {
    inner: Arc<Inner>,
}

struct Inner {
    sources: Sources,
    seams: Seams,
    namespaces: Vec<String>,
    habits: Arc<Habits>,
    informers: Mutex<Informers>,
    asked_for: Notify,
}

#[derive(Default)]
struct Informers {
    by_kind: BTreeMap<ResourceInfo, Arc<Core>>,
    /// Made and not yet running.
    idle: Vec<Arc<Core>>,
    is_stopped: bool,
}

impl fmt::Debug for InformerRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> =
            self.inner.informers.lock().by_kind.keys().map(ToString::to_string).collect();
        f.debug_struct("InformerRegistry")
            .field("namespaces", &self.inner.namespaces)
            .field("kinds", &kinds)
            .finish()
    }
}

impl InformerRegistry {
    /// Informers over `client`; `namespaces` empty means all. Cluster-scoped kinds are always read
    /// whole.
    pub fn new(client: Client, namespaces: Vec<String>) -> Self {
        let seams = client.seams().fork("informers");
        let sources: Sources = Box::new(move |info, namespace| {
            Arc::new(ApiServer {
                client: client.clone(),
                info: info.clone(),
                namespace: namespace.map(str::to_owned),
            })
        });
        Self::over(sources, seams, namespaces)
    }

    /// Informers over any sources.
    pub(crate) fn over(sources: Sources, seams: Seams, mut namespaces: Vec<String>) -> Self {
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            inner: Arc::new(Inner {
                sources,
                seams,
                namespaces,
                habits: Arc::default(),
                informers: Mutex::default(),
                asked_for: Notify::new(),
            }),
        }
    }

    /// Clock, randomness and metrics that the informers use.
    pub fn seams(&self) -> &Seams {
        &self.inner.seams
    }

    /// The informer of a kind; made on first use, running while [`run`](Self::run) does.
    ///
    /// # Panics
    /// When `K` does not know its kind ([`DynamicObject`](crate::resource::DynamicObject)): use
    /// [`informer_of`](Self::informer_of).
    pub fn informer<K: Resource>(&self) -> Informer<K> {
        match K::static_info() {
            Some(info) => self.informer_of(info),
            None => panic!(
                "`{}` does not know its kind: use `InformerRegistry::informer_of`",
                std::any::type_name::<K>()
            ),
        }
    }

    /// The informer of a kind that is known at run time; it is shared with the typed informer of the
    /// same kind.
    pub fn informer_of<K: Resource>(&self, info: ResourceInfo) -> Informer<K> {
        let mut informers = self.inner.informers.lock();
        if let Some(core) = informers.by_kind.get(&info) {
            return Informer::new(Arc::clone(core));
        }
        let core = self.make(&info);
        if informers.is_stopped {
            core.stop();
        }
        informers.by_kind.insert(info, Arc::clone(&core));
        informers.idle.push(Arc::clone(&core));
        drop(informers);
        self.inner.asked_for.notify_one();
        Informer::new(core)
    }

    /// The informer of a kind if somebody asked for one already; makes none.
    pub(crate) fn existing<K: Resource>(&self) -> Option<Informer<K>> {
        let info = K::static_info()?;
        let informers = self.inner.informers.lock();
        informers.by_kind.get(&info).map(|core| Informer::new(Arc::clone(core)))
    }

    fn make(&self, info: &ResourceInfo) -> Arc<Core> {
        let inner = &self.inner;
        let is_whole = inner.namespaces.is_empty() || info.scope == Scope::Cluster;
        let namespaces: Vec<Option<&String>> =
            if is_whole { vec![None] } else { inner.namespaces.iter().map(Some).collect() };
        let scopes = namespaces
            .into_iter()
            .map(|namespace| {
                (namespace.cloned(), (inner.sources)(info, namespace.map(String::as_str)))
            })
            .collect();
        let seed = inner.seams.entropy.fork("store").next_u64();
        let store = store::Core::seeded(info.clone(), inner.seams.clock.clone(), seed);
        Core::new(store, scopes, inner.seams.clone(), Arc::clone(&inner.habits))
    }

    /// Runs every informer, those of today and those asked for later, until `stop`; returns when
    /// their tasks have ended. Call it once.
    pub async fn run(&self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            for core in std::mem::take(&mut self.inner.informers.lock().idle) {
                for reflector in core.reflectors() {
                    tasks.spawn(reflector.run(stop.clone()));
                }
                tasks.spawn(core.run(stop.clone()));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
                () = self.inner.asked_for.notified() => {}
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
        let mut informers = self.inner.informers.lock();
        informers.is_stopped = true;
        for core in informers.by_kind.values() {
            core.stop();
        }
    }

    /// Waits until every informer that was asked for has its first list, or has stopped. A kind
    /// that the API server does not serve counts as listed, and empty: it must not keep the others
    /// from working; [`status`](Self::status) says that it is absent.
    ///
    /// # Cancel safety
    /// Safe: dropping it loses nothing.
    pub async fn synced(&self) {
        let mut known = 0;
        loop {
            let cores: Vec<_> = {
                let informers = self.inner.informers.lock();
                informers.by_kind.values().map(Arc::clone).collect()
            };
            if cores.len() == known {
                return;
            }
            known = cores.len();
            for core in cores {
                // The sender lives in `core`: this cannot fail.
                let _ = core.sync().wait_for(|sync| *sync != Synced::Pending).await;
            }
        }
    }

    /// What the watches have shown, per informer, by kind: for comparing a cache with its server.
    pub fn views(&self) -> Vec<CacheView> {
        let cores: Vec<_> = {
            let informers = self.inner.informers.lock();
            informers.by_kind.values().map(Arc::clone).collect()
        };
        cores.iter().map(|core| core.view()).collect()
    }

    /// One entry per informer, by kind.
    pub fn status(&self) -> Vec<InformerStatus> {
        let cores: Vec<_> = {
            let informers = self.inner.informers.lock();
            informers.by_kind.values().map(Arc::clone).collect()
        };
        cores.iter().map(|core| core.status()).collect()
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task of the cache ended by a panic: this is a defect of windlass");
    }
}
