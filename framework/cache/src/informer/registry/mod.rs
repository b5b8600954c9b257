//! The registry of all informers of an operator on a single cluster, and the task that runs the
//! informers.
//!
//! The lock of `informers` is held neither while sources are created nor while a task is woken:
//! both run code that may use the registry.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

mod guard;
mod informer_ref;
mod informers;
mod naming;
mod optional;
mod selection;
mod waiting;

use guard::RegistryGuard;
pub(in crate::informer) use informer_ref::InformerRef;
use informers::{Informers, RegisteredInformer, cached_type};
use naming::InformerNames;
use selection::api_sources;
pub use selection::{Selection, Sources};

use super::core::{InformerCore, report};
use super::invalid::{InvalidReport, Reports};
use super::meter::{Meter, SeriesOwner};
use super::options::sorted;
use super::{CacheOptions, CacheView, Informer, InformerStatus};
use crate::reflector::ServerCapabilities;
use crate::store;
use windlass_client::client::Client;
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ClusterId, Resource, ResourceInfo, Scope};
use windlass_core::sync::{Mutex, Notify, OrderedWatch};

/// All informers of an operator on a single cluster: one per kind, scope and options. Cheap to
/// clone.
///
/// client-go's `SharedInformerFactory`. An informer is created on first request, and runs while
/// [`run`](Self::run) runs and the informer is in use. Registries of several clusters run side by
/// side. The manager makes a registry per cluster; [`Informer`] has an example of a registry
/// without a manager.
#[derive(Clone)]
pub struct InformerRegistry {
    inner: Arc<RegistryInner>,
}

/// The registry behind all handles.
pub(in crate::informer) struct RegistryInner {
    sources: Sources,
    environment: Environment,
    /// Namespaces to read, in order; empty for all.
    namespaces: Vec<String>,
    cluster: ClusterId,
    /// Prefix of the informers' names, outside the operator's own cluster.
    place: Option<Arc<str>>,
    capabilities: Arc<ServerCapabilities>,
    /// The registered informers, and those that no task runs yet.
    informers: Mutex<Informers>,
    /// A permit: an informer waits to be run.
    asked_for: Notify,
    /// Stops every informer.
    stop: CancellationToken,
    phase: OrderedWatch<RegistryPhase>,
    reports: Arc<Reports>,
    series: Arc<SeriesOwner>,
}

/// Stage of a registry's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegistryPhase {
    New,
    Running,
    Ended,
}

impl fmt::Debug for InformerRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.cores().iter().map(|core| core.name.clone()).collect();
        f.debug_struct("InformerRegistry")
            .field("namespaces", &self.inner.namespaces)
            .field("informers", &names)
            .finish()
    }
}

impl InformerRegistry {
    /// Returns whether both are handles of the same registry.
    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns a registry that reads through `client`; empty `namespaces` mean all. Cluster-scoped
    /// kinds are always read whole.
    pub fn new(client: Client, namespaces: Vec<String>) -> Self {
        let environment = client.environment().fork("informers");
        Self::over(api_sources(client), environment, namespaces)
    }

    /// As [`new`](Self::new), for a cluster among several: the keys of the cluster's objects carry
    /// `cluster`, so that objects of several clusters can share one queue.
    pub fn of_cluster(cluster: ClusterId, client: Client, namespaces: Vec<String>) -> Self {
        let environment = client.environment().fork(&format!("informers of cluster {}", cluster.0));
        Self::over_cluster(cluster, api_sources(client), environment, namespaces)
    }

    /// Returns a registry over any sources.
    pub fn over(sources: Sources, environment: Environment, namespaces: Vec<String>) -> Self {
        Self::over_cluster(ClusterId::default(), sources, environment, namespaces)
    }

    /// Returns a registry over any sources, for a cluster among several: see
    /// [`of_cluster`](Self::of_cluster). The names of the informers begin with the cluster, except
    /// for cluster 0: `cluster 2/pods`.
    pub fn over_cluster(
        cluster: ClusterId,
        sources: Sources,
        environment: Environment,
        namespaces: Vec<String>,
    ) -> Self {
        let place =
            (cluster != ClusterId::default()).then(|| format!("cluster {}", cluster.0).into());
        Self::build((cluster, place), sources, environment, namespaces)
    }

    /// Returns a registry for a named cluster; the name precedes the names of the informers in
    /// probes and metrics: `east/pods`.
    #[doc(hidden)]
    pub fn elsewhere(
        (cluster, name): (ClusterId, Arc<str>),
        client: Client,
        environment: Environment,
        namespaces: Vec<String>,
    ) -> Self {
        Self::build((cluster, Some(name)), api_sources(client), environment, namespaces)
    }

    fn build(
        (cluster, place): (ClusterId, Option<Arc<str>>),
        sources: Sources,
        environment: Environment,
        namespaces: Vec<String>,
    ) -> Self {
        Self {
            inner: Arc::new(RegistryInner {
                sources,
                environment,
                namespaces: sorted(namespaces),
                cluster,
                place,
                capabilities: Arc::default(),
                informers: Mutex::default(),
                asked_for: Notify::new(),
                stop: CancellationToken::new(),
                phase: OrderedWatch::new(RegistryPhase::New),
                reports: Arc::default(),
                series: Arc::default(),
            }),
        }
    }

    /// Returns the clock, randomness and metrics that the informers use.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// Sets the cache options of a kind, before its first use.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the kind is in use already, or was given other options before.
    pub fn set_options(&self, info: ResourceInfo, options: CacheOptions) -> Result<(), Error> {
        // A single lock for lookup and insertion: two callers with different options must not both
        // succeed.
        let mut informers = self.inner.informers.lock();
        let default = CacheOptions::default();
        let before = informers.options.get(&info);
        if before.unwrap_or(&default) == &options {
            return Ok(());
        }
        let is_used = |one: &RegisteredInformer| {
            one.info == info && one.options == default && one.users.strong_count() > 0
        };
        let why = if before.is_some() {
            "it was given other options before"
        } else if informers.registered.iter().any(is_used) {
            "it is in use already"
        } else {
            informers.options.insert(info, options);
            return Ok(());
        };
        let text = format!(
            "cannot set the cache options of {info}: {why}; set them once, before the kind is \
             first used, or ask for a cache of its own by `informer_with`"
        );
        Err(Error::new(ErrorKind::Usage, text))
    }

    /// Returns the informer of a kind, with the options that were set for the kind. The informer is
    /// created on first use, and runs while [`run`](Self::run) runs and the informer is in use.
    ///
    /// # Panics
    /// When `K` does not know the kind ([`DynamicObject`](windlass_core::resource::DynamicObject)):
    /// use [`informer_of`](Self::informer_of).
    pub fn informer<K: Resource>(&self) -> Informer<K> {
        match K::static_info() {
            Some(info) => self.informer_of(info),
            None => panic!(
                "`{}` does not know its kind: use `InformerRegistry::informer_of`",
                std::any::type_name::<K>()
            ),
        }
    }

    /// Returns the informer of a kind that is known at run time; the informer is shared with the
    /// typed informer of the same kind.
    pub fn informer_of<K: Resource>(&self, info: ResourceInfo) -> Informer<K> {
        Informer::new(self.informer_ref::<K>(info, None))
    }

    /// Returns an informer with other options, beside that of [`informer`](Self::informer): another
    /// selector, other namespaces, another representation. Callers with equal options share the
    /// informer.
    ///
    /// # Panics
    /// As [`informer`](Self::informer).
    pub fn informer_with<K: Resource>(&self, options: CacheOptions) -> Informer<K> {
        match K::static_info() {
            Some(info) => Informer::new(self.informer_ref::<K>(info, Some(options))),
            None => panic!("`{}` does not know its kind", std::any::type_name::<K>()),
        }
    }

    /// Sets the function that is called for each cached object that does not decode, those included
    /// that are known already: once for each reason, and at most 50 times at once for each kind,
    /// then once in 10 s. The function must not block. Replaces the previous function; `None` ends
    /// the reports.
    pub fn report_invalid(&self, report: Option<InvalidReport>) {
        self.inner.reports.set(report.clone());
        if let Some(report) = report {
            self.cores().iter().for_each(|core| core.report_all(&report));
        }
    }

    /// Returns the informer of a kind as [`informer`](Self::informer), in use for as long as the
    /// registry lives.
    #[doc(hidden)]
    pub fn pinned<K: Resource>(&self) -> Informer<K> {
        // Nearly all reads of a reconcile come by here. The options of a kind in use stay, so that
        // the first answer for a type is also the last.
        let known = self.inner.informers.lock().pinned::<K>();
        if let Some(informer_ref) = known {
            return Informer::new(informer_ref);
        }
        let informer = self.informer::<K>();
        // No reader waits for the cache at the start: the first reader takes the cache in the
        // present state.
        informer.informer_ref.core().is_awaited.store(true, Ordering::Relaxed);
        self.inner.informers.lock().pin::<K>(&informer.informer_ref);
        informer
    }

    /// Returns the informers of a kind that are in use with the options that were set for the kind,
    /// regardless of the cached form: whole objects, and projections of them. For keys, heads and
    /// own writes; values of another type than `K` must not be read through them.
    #[doc(hidden)]
    pub fn caches_of<K: Resource>(&self) -> Vec<Informer<K>> {
        self.caches(false)
    }

    /// Returns the informers as [`caches_of`](Self::caches_of), and those with other options too.
    #[doc(hidden)]
    pub fn all_caches_of<K: Resource>(&self) -> Vec<Informer<K>> {
        self.caches(true)
    }

    /// Returns the informers of a kind that are in use.
    fn caches<K: Resource>(&self, of_all_options: bool) -> Vec<Informer<K>> {
        let Some(info) = K::static_info() else { return Vec::new() };
        let informers = self.inner.informers.lock();
        let options = informers.options_of(&info);
        let registered = informers.registered.iter();
        registered
            .filter(|one| one.is_of(&info) && (of_all_options || one.options == options))
            .filter_map(|one| one.users.upgrade())
            .map(Informer::new)
            .collect()
    }

    /// Returns a reference to the informer of these options, which is created if necessary.
    fn informer_ref<K: Resource>(
        &self,
        info: ResourceInfo,
        options: Option<CacheOptions>,
    ) -> Arc<InformerRef> {
        let find = |informers: &Informers| informers.find::<K>(&info, options.as_ref());
        let wanted =
            |informers: &Informers| options.clone().unwrap_or_else(|| informers.options_of(&info));
        let place = self.inner.place.as_deref();
        let mut made: Option<(Arc<InformerCore>, (CacheOptions, InformerNames))> = None;
        let (mut informers, core, options) = loop {
            let informers = self.inner.informers.lock();
            // Another caller may have created the informer meanwhile: then the new informer is
            // discarded.
            if let Some(informer_ref) = find(&informers) {
                drop(informers);
                informer_ref.core().read_as::<K>();
                return informer_ref;
            }
            let options = wanted(&informers);
            // An informer without users is about to stop, and the name is free.
            let is_taken = |name: &str| {
                let mut registered = informers.registered.iter();
                registered.any(|one| one.users.strong_count() > 0 && one.core.name == name)
            };
            let names = InformerNames::first_untaken::<K>(place, &info, &options, is_taken);
            let wanted = (options, names);
            // Used only if options and names are still the same: another caller may have changed
            // them meanwhile.
            if let Some((core, _)) = made.take_if(|(_, made_for)| *made_for == wanted) {
                break (informers, core, wanted.0);
            }
            drop(informers);
            // Outside of the lock: creating the sources runs code of users, which may use this
            // registry.
            let core = self.make::<K>(&info, wanted.0.clone(), wanted.1.clone());
            core.read_as::<K>();
            made = Some((core, wanted));
        };
        let informer_ref = InformerRef::new(Arc::clone(&core), Arc::downgrade(&self.inner));
        let cached_type = cached_type::<K>(&options);
        let is_preferred_optional =
            informers.preferred_optional.contains(&info) && options == informers.options_of(&info);
        // Relaxed: the flag guards no data.
        core.is_preferred_optional.store(is_preferred_optional, Ordering::Relaxed);
        let informer = RegisteredInformer {
            info,
            options,
            cached_type,
            core: Arc::clone(&core),
            users: Arc::downgrade(&informer_ref),
        };
        let at = informers.registered.partition_point(|other| other.info <= informer.info);
        informers.registered.insert(at, informer);
        // No task will run the informer: waiters are notified at once.
        if informers.is_stopped {
            drop(informers);
            core.end();
            return informer_ref;
        }
        informers.idle.push(core);
        drop(informers);
        // After the lock, which the woken task takes.
        self.inner.asked_for.notify_one();
        informer_ref
    }

    /// Creates an informer, without an addition to the registry.
    fn make<K: Resource>(
        &self,
        info: &ResourceInfo,
        options: CacheOptions,
        names: InformerNames,
    ) -> Arc<InformerCore> {
        let inner = &self.inner;
        let options = options.fitting::<K>();
        let read = options.namespaces.as_ref().unwrap_or(&inner.namespaces);
        let is_whole = read.is_empty() || info.scope == Scope::Cluster;
        let namespaces: Vec<Option<&String>> =
            if is_whole { vec![None] } else { read.iter().map(Some).collect() };
        let scopes = namespaces
            .into_iter()
            .map(|namespace| {
                let wanted =
                    Selection { info, namespace: namespace.map(String::as_str), options: &options };
                (namespace.cloned(), (inner.sources)(wanted))
            })
            .collect();
        let seed = inner.environment.rng.fork("store").next_u64();
        let settings =
            store::StoreSettings::of::<K>(options.representation, options.transform.clone());
        let settings = settings.in_cluster(inner.cluster);
        let store = store::StoreCore::with_settings(
            info.clone(),
            inner.environment.clock.clone(),
            settings,
            seed,
        );
        let meter = Meter::new(&inner.series, &inner.environment.metrics, names.label, info);
        let context =
            (inner.environment.clone(), Arc::clone(&inner.capabilities), inner.stop.child_token());
        let core = InformerCore::new((names.name, meter), options, store, scopes, context);
        core.report_invalid(&inner.reports);
        core
    }

    /// Runs every informer, present and later ones, until `stop` or [`shutdown`](Self::shutdown);
    /// returns when their tasks have ended. A second call, at the same time or later, returns at
    /// once.
    ///
    /// Needed once for each registry; a manager makes this call. Until then caches stay empty and
    /// their waiters wait.
    ///
    /// # Cancel safety
    /// Dropping the future of the first call aborts the informers' tasks.
    pub async fn run(&self, stop: CancellationToken) {
        let is_first = self.inner.phase.update(|phase| {
            let is_new = *phase == RegistryPhase::New;
            if is_new {
                *phase = RegistryPhase::Running;
            }
            is_new
        });
        if !is_first {
            tracing::warn!("the informers of a registry run already, or have run");
            return;
        }
        let ending = RegistryGuard(Arc::clone(&self.inner));
        let mut tasks = JoinSet::new();
        loop {
            // Taken before the wait: `asked_for` keeps a permit for an informer that is added
            // meanwhile.
            let idle = std::mem::take(&mut self.inner.informers.lock().idle);
            for core in idle {
                tasks.spawn(core.run());
            }
            tokio::select! {
                biased;
                // Biased: a stop goes before new informers.
                () = stop.cancelled() => break,
                () = self.inner.stop.cancelled() => break,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
                () = self.inner.asked_for.notified() => {}
            }
        }
        self.inner.stop.cancel();
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
        // Only after all tasks have ended: `shutdown` waits for the phase that this drop sets.
        drop(ending);
    }

    /// Stops every informer and waits until their tasks have ended. No listener is called any more,
    /// and no informer starts any more. Harmless when the registry has stopped before.
    ///
    /// # Cancel safety
    /// Safe: the informers stop anyway.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        // A registry that never ran has no task that would end the informers.
        if self.inner.phase.get() == RegistryPhase::New {
            drop(RegistryGuard(Arc::clone(&self.inner)));
        }
        self.inner.phase.wait_for(|phase| *phase == RegistryPhase::Ended).await;
    }

    /// Returns the contents that the watches have shown, per informer, by kind: for comparing a
    /// cache with the server.
    pub fn views(&self) -> Vec<CacheView> {
        self.cores().iter().map(|core| core.view()).collect()
    }

    /// Returns the status of each informer in use, by kind.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.cores().iter().map(|core| core.status()).collect()
    }

    /// Makes absent kinds among these kinds be looked up again. Returns the names of their caches
    /// that do not show a whole list yet; of optional caches, those whose kind is absent.
    #[doc(hidden)]
    pub fn seek(&self, resources: &BTreeSet<String>) -> Vec<String> {
        let mut missing = Vec::new();
        for core in self.cores() {
            let status = core.status();
            let is_missing = !status.synced && (!status.is_optional || status.is_absent);
            if is_missing && resources.contains(&status.info.group_resource()) {
                core.scopes.iter().for_each(|scope| scope.status.end_pause());
                missing.push(status.name);
            }
        }
        missing
    }

    /// Returns all informers.
    fn cores(&self) -> Vec<Arc<InformerCore>> {
        let informers = self.inner.informers.lock();
        informers.registered.iter().map(|one| Arc::clone(&one.core)).collect()
    }
}

impl RegistryInner {
    /// Removes an informer whose last user is gone.
    pub(in crate::informer) fn release(&self, core: &Arc<InformerCore>) {
        let mut informers = self.informers.lock();
        informers.registered.retain(|one| !Arc::ptr_eq(&one.core, core));
        let idle = informers.idle.len();
        informers.idle.retain(|idle| !Arc::ptr_eq(idle, core));
        let never_ran = informers.idle.len() < idle;
        drop(informers);
        // An informer that ran is ended by its task; an informer that never ran has none.
        if never_ran {
            core.end();
        }
    }
}
