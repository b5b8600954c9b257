//! The manager: starts the parts of an operator in order and stops them in reverse.
//!
//! An operator is more than its reconcilers: definitions to install, caches to fill, a lease to
//! hold, probes to answer, metrics to show, and a shutdown that loses nothing. A [`Manager`]
//! collects these parts as settings; [`Manager::run`] runs the operator until a signal,
//! [`Manager::start`] in the background.
//!
//! Order of the start: probe and metrics servers, runnables that come before caches (the server of
//! webhooks is one), caches, runnables, leadership, custom resource definitions, controllers and
//! the runnables beside them. Without an election definitions are installed before the caches fill;
//! with an election the leader installs them, under its lease. Replicas that do not lead keep their
//! caches warm and are ready. On the first SIGTERM or SIGINT readiness falls and no reconcile
//! starts any more; running reconciles get the drain time; the lease is given back only if all of
//! them ended; the rest stops in reverse. The second signal ends the process at once. [`Exit`] and
//! [`exit_code`] say how the run ended.
//!
//! Not included: sharding.
//!
//! Files: `run` has the stages, `recording` the last minutes for a replay, `planning` the plan in
//! their place, `runnable` the user's own work, `install` the definitions, `foreign` the comparison
//! with definitions of others, `endpoints` the servers, `manifests` the YAML, `signals` and `exit`
//! the two ends of the process.

mod checks;
mod endpoints;
mod exit;
mod foreign;
mod granted;
mod install;
mod manifests;
mod migration;
mod planning;
mod probe;
mod recording;
mod run;
mod runnable;
mod running;
mod signals;
#[cfg(test)]
mod tests;
mod webhook_access;

pub(crate) use endpoints::Bind;
pub use exit::{Exit, exit_code};
pub use manifests::ManifestOptions;
pub use migration::{MigratedKind, RefusedObject, StorageMigration};
pub use planning::{Plan, PlanOptions};
pub use probe::{Check, ProbeStatus};
pub use recording::RecordingOptions;
#[doc(hidden)]
pub use recording::{Mask, outcome_text};
#[doc(hidden)]
pub use runnable::{ManifestContext, OperatorInfo, RunnableManifest};
pub use runnable::{RunContext, Runnable};
pub use running::Running;
#[doc(hidden)]
pub use webhook_access::{
    AcceptFuture, AdmissionCheck, AdmissionCheckFuture, WebhookAccess, WebhookListener,
    serves_webhooks,
};

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::controller::{
    ChangeLog, Cluster, Controller, ControllerBuilder, ErasedController, MOST_WORKERS, Reconciler,
};
use crate::leader::LeaderElection;
use windlass_cache::informer::CacheOptions;
use windlass_client::client::Client;
use windlass_core::crd::CustomResource;
use windlass_core::error::Error;
use windlass_core::rbac::{self, Rule};
use windlass_core::resource::{Resource, ResourceInfo};

#[doc(hidden)]
pub use endpoints::http::bind;
#[doc(hidden)]
pub use install::{definition_of, install_all};
#[doc(hidden)]
pub use signals::{exit_at_second_signal, first as first_signal};

/// An operator: a client, its controllers, and the settings of their run.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # async fn example() -> Result<windlass::manager::Exit, windlass::Error> {
/// use windlass::{client::Client, manager::Manager};
///
/// let client = Client::infer().await?;
/// Manager::new(client).leader_election("website-operator").run().await
/// # }
/// ```
///
/// An operator with servers, namespaces and limits set by the program:
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
/// # use windlass::{client::Client, manager::Manager};
/// # struct Sites;
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
/// #         Ok(Action::done())
/// #     }
/// # }
/// # async fn example(client: Client) -> std::result::Result<(), windlass::Error> {
/// use std::time::Duration;
///
/// let exit = Manager::new(client)
///     .controller_with(Sites, ControllerBuilder::new().workers(8))
///     .leader_election("site-operator")
///     .namespaces(["shop", "bank"])
///     .metrics(([0, 0, 0, 0], 8080).into())
///     .drain(Duration::from_secs(10))
///     .run()
///     .await?;
/// std::process::exit(exit.code().into());
/// # }
/// ```
///
/// | setting | default | controller-runtime |
/// |---|---|---|
/// | [`leader_election`](Self::leader_election) | none | `LeaderElection`: off |
/// | [`namespaces`](Self::namespaces) | all | `Cache.DefaultNamespaces`: all |
/// | [`health`](Self::health) | `[::]:8081` | `HealthProbeBindAddress`: off |
/// | [`metrics`](Self::metrics) | `127.0.0.1:8080` | `Metrics.BindAddress`: `:8080` |
/// | [`drain`](Self::drain) | 25 s | `GracefulShutdownTimeout`: 30 s |
/// | [`max_concurrent_reconciles`](Self::max_concurrent_reconciles) | by the builders | by the controllers |
/// | [`memory_budget`](Self::memory_budget) | limit of the control group | none |
/// | [`recording`](Self::recording) | off | none |
#[derive(Debug)]
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    /// The client of the operator's own cluster, without a gate.
    pub(crate) client: Client,
    #[doc(hidden)]
    pub name: Option<String>,
    /// Controllers in the order in which they were added; their names must differ.
    pub(crate) controllers: Vec<Arc<dyn ErasedController>>,
    #[doc(hidden)]
    pub definitions: Vec<Result<CustomResourceDefinition, Error>>,
    /// Whether definitions of others are replaced even if stored data is lost.
    #[doc(hidden)]
    pub force_install: bool,
    /// Definitions that are printed with the manifests, but not installed.
    pub(crate) described: Vec<CustomResourceDefinition>,
    #[doc(hidden)]
    pub election: Option<LeaderElection>,
    #[doc(hidden)]
    pub namespaces: Vec<String>,
    /// Options of kinds that are not cached by default.
    pub(crate) caches: Vec<(ResourceInfo, CacheOptions)>,
    /// Other clusters, whose caches and writes the manager governs.
    pub(crate) clusters: Vec<Cluster>,
    /// Work of the user's own.
    pub(crate) runnables: Vec<Arc<Runnable>>,
    /// Number of objects that each controller reconciles at once, instead of the number in its
    /// builder.
    #[doc(hidden)]
    pub workers: Option<usize>,
    pub(crate) change_log: Option<ChangeLog>,
    /// Time for the running operator to settle, before its shadow reports differences.
    pub(crate) shadow: Option<Duration>,
    /// Address of the probes.
    pub(crate) health: Bind,
    /// Address of the metrics.
    pub(crate) metrics: Bind,
    /// Serves the debug page also beyond the loopback interface.
    pub(crate) debug: bool,
    #[doc(hidden)]
    pub drain: Duration,
    /// Memory budget in bytes, as given by the program; 0 for none.
    pub(crate) memory: Option<u64>,
    #[doc(hidden)]
    pub signals: bool,
    #[doc(hidden)]
    pub webhook_access: Option<WebhookAccess>,
    /// Bounds of the recording, if there is one.
    pub(crate) recording: Option<RecordingOptions>,
}

impl Manager {
    /// Creates an operator without controllers.
    ///
    /// The client must not be gated by a lease: the manager gates the writes of controllers and of
    /// runnables with leadership by itself.
    pub fn new(client: Client) -> Self {
        let at = |ip: IpAddr, port| Bind::Default(SocketAddr::new(ip, port));
        Self {
            client,
            name: None,
            controllers: Vec::new(),
            definitions: Vec::new(),
            force_install: false,
            described: Vec::new(),
            election: None,
            namespaces: Vec::new(),
            caches: Vec::new(),
            clusters: Vec::new(),
            runnables: Vec::new(),
            workers: None,
            change_log: None,
            shadow: None,
            debug: false,
            health: at(Ipv6Addr::UNSPECIFIED.into(), 8081),
            metrics: at(Ipv4Addr::LOCALHOST.into(), 8080),
            drain: Duration::from_secs(25),
            memory: None,
            signals: true,
            webhook_access: None,
            recording: None,
        }
    }

    /// Sets the name of the operator in its manifests. Default: the name of the lease, else
    /// `operator`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a controller whose builder is derived.
    ///
    /// controller-runtime's `ControllerManagedBy(mgr).Complete(r)`.
    pub fn controller(self, controller: impl Controller) -> Self {
        self.controller_configured(controller, |builder| builder)
    }

    /// Adds a controller with its derived builder, modified by `change`:
    /// `|builder| builder.workers(8)`.
    ///
    /// The change applies to this program only; the derive's attributes stay the default of others.
    pub fn controller_configured<C: Controller>(
        self,
        controller: C,
        change: impl FnOnce(ControllerBuilder<C>) -> ControllerBuilder<C>,
    ) -> Self {
        self.controller_with(controller, change(C::builder()))
    }

    /// Adds a controller with a builder of your own.
    pub fn controller_with<C: Reconciler>(
        self,
        controller: C,
        builder: ControllerBuilder<C>,
    ) -> Self {
        self.erased_controller(builder.build(controller))
    }

    /// Adds a controller whose types are erased.
    pub fn erased_controller(mut self, controller: Arc<dyn ErasedController>) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Lets only one replica work at a time: the holder of the Lease `name` in the operator's own
    /// namespace, with the usual durations.
    ///
    /// The durations are client-go's: a lease of 15 s, a renew deadline of 10 s, an attempt every 2
    /// s. Without an election every replica works: run a single replica then.
    pub fn leader_election(self, name: impl Into<String>) -> Self {
        self.leader_election_with(LeaderElection::new(name))
    }

    /// Lets only one replica work at a time, by an election of your settings.
    ///
    /// Settings that are not safe together are an error of [`run`](Self::run), with the broken rule
    /// and its correction.
    pub fn leader_election_with(mut self, settings: LeaderElection) -> Self {
        self.election = Some(settings);
        self
    }

    /// Lets every replica work, also when an election was asked for before.
    pub fn without_leader_election(mut self) -> Self {
        self.election = None;
        self
    }

    /// Installs the definition of `K` before controllers start, and waits until the API server
    /// serves it; with leader election the leader installs. A stored definition is left alone when
    /// equal, and when a newer version of this program installed the stored one. Without `install`
    /// the definition must already be there.
    ///
    /// A definition that others manage too (a chart, `kubectl apply`, Argo CD) is only replaced if
    /// the replacement loses no part: no served or stored version, no property, no name. Otherwise
    /// the log and `/readyz?verbose` name the loss, and the operator works by the stored
    /// definition; the operator ends with [`ErrorKind::Config`](windlass_core::ErrorKind) when the
    /// operator's own version is not served.
    pub fn install<K: CustomResource>(mut self) -> Self {
        self.definitions.push(install::definition_of::<K>());
        self
    }

    /// Makes [`install`](Self::install) replace definitions that others manage, even if parts of
    /// them are lost: versions that this program does not have are served no more, and the API
    /// server prunes fields that only the replaced schema had from every object that is written.
    /// The command line has this as `--force-install`.
    pub fn force_install(mut self) -> Self {
        self.force_install = true;
        self
    }

    /// Prints `definition` with the manifests, without installing it at run time.
    #[doc(hidden)]
    pub fn describes(mut self, definition: CustomResourceDefinition) -> Self {
        self.described.push(definition);
        self
    }

    /// Watches only these namespaces; a name given twice counts once, and empty names are left out.
    /// Default, and for none given: all.
    ///
    /// Cluster-scoped kinds are watched whole in any case. The manifests have Roles in these
    /// namespaces instead of `ClusterRole`s.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let names = namespaces.into_iter().map(|name| name.into().trim().to_owned());
        let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
        self.namespaces = names.into_iter().collect();
        self
    }

    /// Sets the cache options of the kind `K`: the form, the selection of objects, and whether the
    /// operator can work without the cache. Set for a kind twice, the options must be equal.
    ///
    /// The [printed roles](Self::manifests) grant reading the kind, also if no controller uses it.
    ///
    /// ```no_run
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::{client::Client, manager::Manager};
    /// # fn example(client: Client) -> Manager {
    /// use windlass::informer::CacheOptions;
    /// use windlass::store::Representation;
    ///
    /// let options = CacheOptions::default()
    ///     .labels("app.kubernetes.io/managed-by=site-operator")
    ///     .representation(Representation::Metadata);
    /// Manager::new(client).cache::<Pod>(options)
    /// # }
    /// ```
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn cache<K: Resource>(mut self, options: CacheOptions) -> Self {
        let Some(info) = K::static_info() else {
            panic!("`{}` does not say which kind it is", std::any::type_name::<K>());
        };
        self.caches.push((info, options));
        self
    }

    /// Sets the address at which `/healthz` and `/readyz` are served; port 0 picks a free port.
    /// Default `[::]:8081`: every interface, by IPv6 and IPv4, or by IPv4 alone on a machine
    /// without IPv6.
    ///
    /// A page is `ok` when all checks pass, and names the checks when a check fails or with
    /// `?verbose`. An address in use is an [`ErrorKind::Config`](windlass_core::ErrorKind::Config)
    /// of [`run`](Self::run).
    pub fn health(mut self, addr: SocketAddr) -> Self {
        self.health = Bind::At(addr);
        self
    }

    /// Serves no probes: `/healthz` and `/readyz` have no address, and the printed Deployment has
    /// no probes. Replaces an earlier [`health`](Self::health).
    pub fn without_health(mut self) -> Self {
        self.health = Bind::Off;
        self
    }

    /// Sets the address at which `/metrics` is served; port 0 picks a free port, the probes'
    /// address shares their server. Default 127.0.0.1:8080.
    ///
    /// The page is not authenticated: an address beyond the loopback interface is a decision for
    /// the network policy, too.
    pub fn metrics(mut self, addr: SocketAddr) -> Self {
        self.metrics = Bind::At(addr);
        self
    }

    /// Serves the debug page on every address at which metrics are served. Default: only on the
    /// loopback interface. The page shows names of objects and texts of errors.
    pub fn debug_everywhere(mut self) -> Self {
        self.debug = true;
        self
    }

    /// Serves no metrics, and no debug page. Replaces an earlier [`metrics`](Self::metrics).
    pub fn without_metrics(mut self) -> Self {
        self.metrics = Bind::Off;
        self
    }

    /// Fills the caches of another cluster before controllers start, and fences the writes by the
    /// operator's lease.
    ///
    /// Two clusters of one manager cannot share a name. A cluster that controllers watch must be
    /// given to the manager, or those controllers do not start.
    pub fn cluster(mut self, cluster: &Cluster) -> Self {
        // The first manager decides whose clock and metrics they use.
        cluster.managed_by(self.client.environment());
        self.clusters.push(cluster.clone());
        self
    }

    /// Runs work of your own beside the controllers.
    ///
    /// controller-runtime's `mgr.Add`. The names of a manager's runnables must differ. A server of
    /// webhooks is a runnable, too.
    pub fn runnable(mut self, runnable: impl Into<Runnable>) -> Self {
        self.runnables.push(Arc::new(runnable.into()));
        self
    }

    /// Sets the number of objects that each controller reconciles at once, in place of its
    /// builder's number; at least 1, at most 65 536.
    pub fn max_concurrent_reconciles(mut self, workers: usize) -> Self {
        self.workers = Some(workers.clamp(1, MOST_WORKERS));
        self
    }

    /// Logs the writes of all controllers in this detail, in place of their builders' settings; see
    /// [`ControllerBuilder::change_log`](crate::controller::ControllerBuilder::change_log).
    pub fn change_log(mut self, detail: ChangeLog) -> Self {
        self.change_log = Some(detail);
        self
    }

    /// Makes the operator the shadow of a running one: it watches and reconciles as usual, every
    /// write is a dry run, and the shadow reports where the writes would differ from the state that
    /// the running operator leaves. For a new version beside the old one.
    ///
    /// A difference is logged at the level warn, once, when a reconcile at least `settle_time`
    /// later (10 s are usual) finds the same difference: until then the running operator may be
    /// about to write. `windlass_shadow_differences` counts the objects whose reported differences
    /// stand. Differences of times alone do not count.
    ///
    /// Like a [plan](Self::plan) a shadow needs a manager that was built with [`Client::dry_run`],
    /// and leaves out the election, definitions, runnables, tasks of objects and Events. The
    /// command line has this as `shadow`.
    pub fn shadow(mut self, settle_time: Duration) -> Self {
        self.shadow = Some(settle_time);
        self
    }

    /// Sets the time that running reconciles and runnables may take to end once the operator is
    /// asked to stop; default 25 s. A Pod's `terminationGracePeriodSeconds` must be longer (the
    /// manifests say 15 s more).
    ///
    /// Counted from the request to stop, over all stages. After a loss of the lease running work
    /// has 2 s at most, because another replica works soon.
    pub fn drain(mut self, duration: Duration) -> Self {
        self.drain = duration;
        self
    }

    /// Sets the memory that this process may use, in bytes. Default: the limit of the process's
    /// control group, that is of the container; 0, or no limit: none. The budget is only reported:
    /// `windlass_memory_budget_bytes` stands beside `process_resident_memory_bytes`, and a line in
    /// the log names the largest caches when four fifths of it are in use.
    pub fn memory_budget(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Keeps the last minutes of the exchange with the API server in memory, for a test that
    /// replays them: `/debug/recording` serves them where the debug page is served. Default: off; a
    /// time of zero is off, too. The command line has this as `--record`.
    ///
    /// The recording has the requests of this operator's own client, their answers, the objects and
    /// events of its caches, and the begin and end of each reconcile. Values of Secrets and tokens
    /// are replaced by masks before they are kept; everything else is shown as it is, so that a
    /// recording is as confidential as the objects in it.
    pub fn recording(mut self, options: RecordingOptions) -> Self {
        self.recording = Some(options);
        self
    }

    /// Leaves SIGTERM and SIGINT alone; stop the operator by [`Running::stop`].
    ///
    /// For an operator that is a part of a larger program, or of a test. The handlers of that
    /// program stay in force.
    pub fn without_signals(mut self) -> Self {
        self.signals = false;
        self
    }

    /// Runs until a signal requests a stop, and drains.
    ///
    /// The operator runs in a task of its own; this future waits for it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) for settings that cannot work, an
    /// address that cannot be listened on, two controllers, runnables or clusters of one name, a
    /// definition that cannot be installed within a minute, a controller that ended by itself; the
    /// error of an essential runnable. [`exit_code`] converts the error into a number.
    ///
    /// # Cancel safety
    /// Dropping the future stops everything at once, as a crash would.
    pub async fn run(self) -> Result<Exit, Error> {
        self.start().join().await
    }

    /// Runs the operator in the background of the current tokio runtime.
    ///
    /// ```no_run
    /// # extern crate windlass_runtime as windlass;
    /// # use windlass::{client::Client, manager::Manager};
    /// # async fn example(client: Client) -> Result<(), windlass::Error> {
    /// let operator = Manager::new(client).without_signals().start();
    /// // Other work of this program.
    /// operator.stop();
    /// let exit = operator.join().await?;
    /// # let _ = exit;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub fn start(self) -> Running {
        let budget = endpoints::memory::budget(self.memory);
        let mut running = run::start(self);
        running._memory =
            budget.map(|bytes| endpoints::memory::watch_budget(bytes, &running.status));
        running
    }

    /// Returns the objects that a cluster needs to run the operator, as YAML: namespace, service
    /// account, custom resource definitions, roles with exactly the grants of the controllers, and
    /// a hardened Deployment.
    ///
    /// Pure: no request is sent, so this works without a cluster. The output is deterministic, and
    /// fit for a repository.
    ///
    /// # Errors
    /// Those of the definitions; see [`CustomResource::crd`].
    /// [`ErrorKind::Config`](windlass_core::ErrorKind) when an operator that is limited to
    /// namespaces has a controller that needs a kind of the cluster.
    pub fn manifests(&self, options: &ManifestOptions) -> Result<String, Error> {
        manifests::print(self, options)
    }

    /// Returns the definitions that the manifests have, for the command line.
    #[doc(hidden)]
    pub fn printed_definitions(
        &self,
        options: &ManifestOptions,
    ) -> Result<Vec<CustomResourceDefinition>, Error> {
        manifests::definitions(self, options.max_description)
    }

    /// Returns the rights of all controllers and [caches](Self::cache), merged and sorted.
    ///
    /// As printed into the manifests' roles, without the manager's own rights on its Lease and
    /// definitions.
    pub fn rules(&self) -> Vec<Rule> {
        let controllers = self.controllers.iter().flat_map(|controller| controller.rules());
        rbac::merge(controllers.chain(self.cache_rules()))
    }

    /// Returns the rights to fill the caches that have options, and to report objects of theirs
    /// that cannot be decoded. No controller need use such a kind; its informers are requested by
    /// name.
    fn cache_rules(&self) -> impl Iterator<Item = Rule> {
        let read = self.caches.iter().flat_map(|(info, _)| rbac::watched_rules(info));
        let events = if self.caches.is_empty() { Vec::new() } else { rbac::event_rules() };
        read.chain(events)
    }

    /// Returns the operator's name in manifests.
    #[doc(hidden)]
    pub fn display_name(&self) -> &str {
        let lease = self.election.as_ref().map(|election| election.name.as_str());
        self.name.as_deref().or(lease).unwrap_or("operator")
    }

    /// Adapts the defaults to a developer's machine: no probes, and metrics, debug page and
    /// webhooks on free ports, so that several operators can run at once. Explicit settings stay.
    #[doc(hidden)]
    pub fn on_free_ports(mut self) -> Self {
        if matches!(self.health, Bind::Default(_)) {
            self.health = Bind::Off;
        }
        if matches!(self.metrics, Bind::Default(_)) {
            self.metrics = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
        }
        self
    }
}
