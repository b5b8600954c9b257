//! All informers of one operator on one cluster, and the task that keeps them running.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::core::{Core, report};
use super::invalid::InvalidReport;
use super::known::{Informers, Known, kept_type};
use super::lease::Lease;
use super::meter::{Meter, Series};
use super::naming::Names;
use super::options::sorted;
use super::selection::{Selection, Sources, api_sources};
use super::{CacheOptions, CacheView, Informer, InformerStatus};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::reflector::Habits;
use crate::resource::{ClusterId, Resource, ResourceInfo, Scope};
use crate::seams::Seams;
use crate::store;
use crate::sync::{Mutex, Notify, Posted};

/// All informers of one operator on one cluster: one per kind, scope and options. Cheap to clone.
///
/// An informer is made when it is first asked for, and runs while [`run`](Self::run) does and
/// somebody uses it; several registries, for several clusters, may run side by side.
#[derive(Clone)]
pub struct InformerRegistry {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    sources: Sources,
    seams: Seams,
    namespaces: Vec<String>,
    cluster: ClusterId,
    /// Put before the names of informers, where it is not the operator's own cluster.
    place: Option<Arc<str>>,
    habits: Arc<Habits>,
    informers: Mutex<Informers>,
    asked_for: Notify,
    /// Ends every informer.
    stop: CancellationToken,
    phase: Posted<Phase>,
    reports: Arc<Reports>,
    series: Arc<Series>,
}

/// Who is told of objects that do not decode; nobody, unless somebody asked.
#[derive(Default)]
pub(super) struct Reports(Mutex<Option<InvalidReport>>);

impl Reports {
    pub(super) fn get(&self) -> Option<InvalidReport> {
        self.0.lock().clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
    /// Are both handles of one registry?
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Informers over `client`; `namespaces` empty means all. Cluster-scoped kinds are always read
    /// whole.
    pub fn new(client: Client, namespaces: Vec<String>) -> Self {
        let seams = client.seams().fork("informers");
        Self::over(api_sources(client), seams, namespaces)
    }

    /// As [`new`](Self::new), of a cluster of its own: the keys of its objects carry `cluster`, so
    /// that those of several clusters can meet in one queue.
    pub fn of_cluster(cluster: ClusterId, client: Client, namespaces: Vec<String>) -> Self {
        let seams = client.seams().fork(&format!("informers of cluster {}", cluster.0));
        Self::over_cluster(cluster, api_sources(client), seams, namespaces)
    }

    /// Informers over any sources.
    pub fn over(sources: Sources, seams: Seams, namespaces: Vec<String>) -> Self {
        Self::over_cluster(ClusterId::default(), sources, seams, namespaces)
    }

    /// Informers over any sources, of a cluster of its own: see [`of_cluster`](Self::of_cluster). Their
    /// names begin with it, but for cluster 0: `cluster 2/pods`.
    pub fn over_cluster(
        cluster: ClusterId,
        sources: Sources,
        seams: Seams,
        namespaces: Vec<String>,
    ) -> Self {
        let place =
            (cluster != ClusterId::default()).then(|| format!("cluster {}", cluster.0).into());
        Self::build((cluster, place), sources, seams, namespaces)
    }

    /// Informers of a cluster whose name precedes theirs, in probes and metrics: `east/pods`.
    pub(crate) fn elsewhere(
        (cluster, name): (ClusterId, Arc<str>),
        client: Client,
        seams: Seams,
        namespaces: Vec<String>,
    ) -> Self {
        Self::build((cluster, Some(name)), api_sources(client), seams, namespaces)
    }

    fn build(
        (cluster, place): (ClusterId, Option<Arc<str>>),
        sources: Sources,
        seams: Seams,
        namespaces: Vec<String>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                sources,
                seams,
                namespaces: sorted(namespaces),
                cluster,
                place,
                habits: Arc::default(),
                informers: Mutex::default(),
                asked_for: Notify::new(),
                stop: CancellationToken::new(),
                phase: Posted::new(Phase::New),
                reports: Arc::default(),
                series: Arc::default(),
            }),
        }
    }

    /// Clock, randomness and metrics that the informers use.
    pub fn seams(&self) -> &Seams {
        &self.inner.seams
    }

    /// How a kind is cached from its first use on.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when it is in use already, or was given other options before.
    pub fn set_options(&self, info: ResourceInfo, options: CacheOptions) -> Result<(), Error> {
        let mut informers = self.inner.informers.lock();
        let default = CacheOptions::default();
        let before = informers.options.get(&info);
        if before.unwrap_or(&default) == &options {
            return Ok(());
        }
        let is_used = |known: &Known| {
            known.info == info && known.options == default && known.lease.strong_count() > 0
        };
        let why = if before.is_some() {
            "it was given other options before"
        } else if informers.known.iter().any(is_used) {
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

    /// The informer of a kind, by the options that were set for it; made on first use, running while
    /// [`run`](Self::run) does and it is used.
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
        Informer::new(self.lease::<K>(info, None))
    }

    /// An informer with options of its own, beside that of [`informer`](Self::informer): another
    /// selector, other namespaces, another form. Shared by those who ask with equal options.
    ///
    /// # Panics
    /// As [`informer`](Self::informer).
    pub fn informer_with<K: Resource>(&self, options: CacheOptions) -> Informer<K> {
        match K::static_info() {
            Some(info) => Informer::new(self.lease::<K>(info, Some(options))),
            None => panic!("`{}` does not know its kind", std::any::type_name::<K>()),
        }
    }

    /// Calls `report` for each cached object that does not decode, those included that are known
    /// already: once for each reason, and at most 50 times at once for each kind, then once in 10 s.
    /// It must not wait. Replaces the one before; `None` ends it.
    pub fn report_invalid(&self, report: Option<InvalidReport>) {
        self.inner.reports.0.lock().clone_from(&report);
        if let Some(report) = report {
            self.cores().iter().for_each(|core| core.report_all(&report));
        }
    }

    /// As [`informer`](Self::informer), used for as long as the registry lives.
    pub(crate) fn pinned<K: Resource>(&self) -> Informer<K> {
        let informer = self.informer::<K>();
        // Its first reader finds it as it is.
        informer.lease.core().is_awaited.store(true, Ordering::Relaxed);
        let mut informers = self.inner.informers.lock();
        if !informers.pinned.iter().any(|pinned| Arc::ptr_eq(pinned, &informer.lease)) {
            informers.pinned.push(Arc::clone(&informer.lease));
        }
        drop(informers);
        informer
    }

    /// The informers of a kind that somebody uses, of the options that were set for it, whatever they
    /// keep: the objects, and projections of them. For keys, heads and own writes; values of another
    /// type than `K` are not to be read by it.
    pub(crate) fn caches_of<K: Resource>(&self) -> Vec<Informer<K>> {
        self.caches(false)
    }

    /// As [`caches_of`](Self::caches_of), with those of other options beside.
    pub(crate) fn all_caches_of<K: Resource>(&self) -> Vec<Informer<K>> {
        self.caches(true)
    }

    fn caches<K: Resource>(&self, of_all_options: bool) -> Vec<Informer<K>> {
        let Some(info) = K::static_info() else { return Vec::new() };
        let informers = self.inner.informers.lock();
        let options = informers.options_of(&info);
        let known = informers.known.iter();
        known
            .filter(|known| known.info == info && (of_all_options || known.options == options))
            .filter_map(|known| known.lease.upgrade())
            .map(Informer::new)
            .collect()
    }

    fn lease<K: Resource>(&self, info: ResourceInfo, options: Option<CacheOptions>) -> Arc<Lease> {
        let known = |informers: &Informers| informers.find::<K>(&info, options.as_ref());
        let wanted =
            |informers: &Informers| options.clone().unwrap_or_else(|| informers.options_of(&info));
        let place = self.inner.place.as_deref();
        let mut made: Option<(Arc<Core>, (CacheOptions, Names))> = None;
        let (mut informers, core, options) = loop {
            let informers = self.inner.informers.lock();
            // Somebody may have been faster: then the one that was made is of no use.
            if let Some(lease) = known(&informers) {
                drop(informers);
                lease.core().read_as::<K>();
                return lease;
            }
            let options = wanted(&informers);
            // One that nobody holds any more is about to go.
            let is_taken = |name: &str| {
                let mut known = informers.known.iter();
                known.any(|known| known.lease.strong_count() > 0 && known.core.name == name)
            };
            let names = Names::free::<K>(place, &info, &options, is_taken);
            let wanted = (options, names);
            if let Some((core, _)) = made.take_if(|(_, made_for)| *made_for == wanted) {
                break (informers, core, wanted.0);
            }
            drop(informers);
            // Its sources are code of users.
            let core = self.make::<K>(&info, wanted.0.clone(), wanted.1.clone());
            core.read_as::<K>();
            made = Some((core, wanted));
        };
        let lease = Lease::new(Arc::clone(&core), Arc::downgrade(&self.inner));
        let kept = kept_type::<K>(&options);
        let known =
            Known { info, options, kept, core: Arc::clone(&core), lease: Arc::downgrade(&lease) };
        let at = informers.known.partition_point(|other| other.info <= known.info);
        informers.known.insert(at, known);
        if informers.is_stopped {
            drop(informers);
            core.end();
            return lease;
        }
        informers.idle.push(core);
        drop(informers);
        self.inner.asked_for.notify_one();
        lease
    }

    fn make<K: Resource>(
        &self,
        info: &ResourceInfo,
        options: CacheOptions,
        names: Names,
    ) -> Arc<Core> {
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
        let seed = inner.seams.entropy.fork("store").next_u64();
        let mode = store::Mode::of::<K>(options.representation, options.transform.clone());
        let mode = mode.in_cluster(inner.cluster);
        let store = store::Core::with_mode(info.clone(), inner.seams.clock.clone(), mode, seed);
        let meter = Meter::new(&inner.series, &inner.seams.metrics, names.label, info);
        let surroundings =
            (inner.seams.clone(), Arc::clone(&inner.habits), inner.stop.child_token());
        let core = Core::new((names.name, meter), options, store, scopes, surroundings);
        core.report_invalid(&inner.reports);
        core
    }

    /// Runs every informer, those of today and those asked for later, until `stop` or
    /// [`shutdown`](Self::shutdown); returns when their tasks have ended. A second call, at the same
    /// time or later, returns at once.
    pub async fn run(&self, stop: CancellationToken) {
        let is_first = self.inner.phase.update(|phase| {
            let is_new = *phase == Phase::New;
            if is_new {
                *phase = Phase::Running;
            }
            is_new
        });
        if !is_first {
            tracing::warn!("the informers of a registry run already, or have run");
            return;
        }
        let ending = Ending(Arc::clone(&self.inner));
        let mut tasks = JoinSet::new();
        loop {
            for core in std::mem::take(&mut self.inner.informers.lock().idle) {
                tasks.spawn(core.run());
            }
            tokio::select! {
                biased;
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
        drop(ending);
    }

    /// Stops every informer and waits until their tasks have ended. Nothing is told any more, and no
    /// informer starts any more. Harmless when it has stopped before.
    ///
    /// # Cancel safety
    /// Safe: the informers stop anyway.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        if self.inner.phase.get() == Phase::New {
            drop(Ending(Arc::clone(&self.inner)));
        }
        self.inner.phase.wait_for(|phase| *phase == Phase::Ended).await;
    }

    /// Waits until every informer in use that is not optional has its first list, or has stopped. A
    /// kind that the API server does not serve counts as listed, and empty: it must not keep the
    /// others from working; [`status`](Self::status) says that it is absent.
    ///
    /// # Cancel safety
    /// Safe: dropping it loses nothing.
    pub async fn synced(&self) {
        self.none_pending(|_| true).await;
    }

    /// As [`synced`](Self::synced), but for those whose readers wait for them by themselves.
    pub(crate) async fn others_synced(&self) {
        let is_for_all = |core: &Core| {
            core.is_asked.load(Ordering::Relaxed) || !core.is_awaited.load(Ordering::Relaxed)
        };
        self.none_pending(is_for_all).await;
    }

    /// What is there was asked for by the program: everybody waits for it.
    pub(crate) fn is_asked(&self) {
        self.cores().iter().for_each(|core| core.is_asked.store(true, Ordering::Relaxed));
    }

    async fn none_pending(&self, counts: impl Fn(&Core) -> bool) {
        loop {
            let mut cores = self.cores().into_iter();
            let Some(core) = cores.find(|core| core.is_pending() && counts(core)) else { return };
            core.progress.settled().await;
        }
    }

    /// As [`synced`](Self::synced), for at most `limit`, and until every listener of those informers
    /// was told what was listed, too.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] that names each cache and each listener that was not ready, and why.
    /// # Cancel safety
    /// Safe: dropping it loses nothing.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), Error> {
        let synced = async {
            self.synced().await;
            for core in self.cores().into_iter().filter(|core| !core.options.is_optional) {
                core.told().await;
            }
        };
        if self.inner.seams.clock.within(limit, synced).await.is_some() {
            return Ok(());
        }
        let text = format!(
            "the caches were not filled within {limit:?}; what is missing: {}",
            self.missing().join("; ")
        );
        Err(Error::new(ErrorKind::Timeout, text))
    }

    /// What keeps the caches from being synced: one line for each cache that has no first list, and
    /// for each listener that was not told it. Empty when nothing is missing.
    pub fn missing(&self) -> Vec<String> {
        let cores = self.cores().into_iter().filter(|core| !core.options.is_optional);
        cores
            .flat_map(|core| match core.missing() {
                Some(missing) => vec![missing],
                None => core.behind(),
            })
            .collect()
    }

    /// What the watches have shown, per informer, by kind: for comparing a cache with its server.
    pub fn views(&self) -> Vec<CacheView> {
        self.cores().iter().map(|core| core.view()).collect()
    }

    /// One entry per informer in use, by kind.
    pub fn status(&self) -> Vec<InformerStatus> {
        self.cores().iter().map(|core| core.status()).collect()
    }

    /// Has those of these kinds looked for that were not there. Tells which of their caches do not show
    /// a whole list yet; of optional ones, those that are absent.
    pub(crate) fn seek(&self, resources: &BTreeSet<String>) -> Vec<String> {
        let mut missing = Vec::new();
        for core in self.cores() {
            let status = core.status();
            let is_missing = !status.synced && (!status.is_optional || status.is_absent);
            if is_missing && resources.contains(&status.info.group_resource()) {
                core.scopes.iter().for_each(|scope| scope.status.nudge());
                missing.push(status.name);
            }
        }
        missing
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        let informers = self.inner.informers.lock();
        informers.known.iter().map(|known| Arc::clone(&known.core)).collect()
    }
}

impl Inner {
    /// The last user of `core` is gone.
    pub(super) fn release(&self, core: &Arc<Core>) {
        let mut informers = self.informers.lock();
        informers.known.retain(|known| !Arc::ptr_eq(&known.core, core));
        let idle = informers.idle.len();
        informers.idle.retain(|idle| !Arc::ptr_eq(idle, core));
        let never_ran = informers.idle.len() < idle;
        drop(informers);
        if never_ran {
            core.end();
        }
    }
}

/// Ends the registry when its task is gone.
struct Ending(Arc<Inner>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.stop.cancel();
        let cores: Vec<_> = {
            let mut informers = self.0.informers.lock();
            informers.is_stopped = true;
            informers.idle.clear();
            informers.known.iter().map(|known| Arc::clone(&known.core)).collect()
        };
        cores.iter().for_each(|core| core.end());
        self.0.phase.set(Phase::Ended);
    }
}
