//! Builder of a controller: watched and owned kinds, permissions, settings.
//!
//! A builder only collects: no request is sent and no cache is created before the manager attaches
//! the built controller. The methods of a builder cannot fail, so an invalid combination is
//! returned as an error when the controller is attached, except that a type without a static kind
//! panics at the call.

mod changes;
mod clusters;
mod dependents;
mod enqueuing;
mod granting;
mod reconciling;

pub use changes::ChangeFuture;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::controller::run::{ErasedController, Handle};
use crate::controller::source::{
    BackgroundSource, Predicate, RESYNC_PERIOD, Reason, ReasonNames, Resync, Source, watches,
};
use crate::controller::spec::{
    Cleanup, CleanupFn, ControllerSpec, DriverNames, Finalizer, ReconcileOptions,
};
use crate::controller::{Context, Finalize, Reconciler};
use crate::workqueue::RetryPolicy;
use windlass_cache::store::{Cached, Index, IndexValue};
use windlass_core::rbac::{self, Rule};
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};

/// Upper bound of a controller's workers: the tasks then take several hundred MB.
pub const MOST_WORKERS: usize = 65_536;

/// Builder of a controller: the kinds that the controller watches and owns, and the permissions.
/// The controller starts when the caches of all its kinds are filled: the reconciled kind and every
/// owned or watched kind, in this and in other clusters.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use windlass::controller::{Action, Context, Reconciler, Result, ControllerBuilder};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # struct Sites;
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
/// #         Ok(Action::done())
/// #     }
/// # }
/// let builder = ControllerBuilder::<Sites>::new().owns::<Deployment>().workers(8);
/// let controller = builder.build(Sites);
/// assert_eq!(controller.name(), "configmap");
/// ```
///
/// Defaults, and the settings of controller-runtime with the same meaning:
///
/// | setting | default | controller-runtime |
/// |---|---|---|
/// | [`name`](Self::name) | the kind in lower case | the same |
/// | [`workers`](Self::workers) | 4 | `MaxConcurrentReconciles`: 1 |
/// | [`reconcile_timeout`](Self::reconcile_timeout) | 5 min | `ReconciliationTimeout`: none |
/// | [`retry`](Self::retry) | for ever, 5 ms to 5 min | `RateLimiter`: 5 ms to 1000 s |
/// | [`resync`](Self::resync) | 10 h | `SyncPeriod`: 10 h |
/// | [`debounce`](Self::debounce), [`rate_limit`](Self::rate_limit) | none | none |
/// | [`loop_guard`](Self::loop_guard) | 50 a minute | none |
/// | [`after_max_retries`](Self::after_max_retries) | no further attempt | none |
#[must_use = "a builder does nothing until its `build` is called"]
pub struct ControllerBuilder<C: Reconciler> {
    /// The reconciled kind.
    info: ResourceInfo,
    /// Name in metrics, logs, Events and `managedFields`.
    name: String,
    /// Number of worker tasks, from 1 to [`MOST_WORKERS`].
    workers: usize,
    /// Deadline of a reconcile; at least a millisecond.
    timeout: Duration,
    /// Backoff of failed keys.
    retry: RetryPolicy,
    /// The finalizer and the clean-up.
    finalizer: Option<Finalizer<C>>,
    /// Clean-ups of graphs, each with the name of a finalizer, if needed. They run after the
    /// finalizer's own clean-up.
    graph_cleanups: Vec<(Option<String>, CleanupFn<C>)>,
    /// Clean-ups of graphs that need no finalizer, for objects that still carry a
    /// finalizer of an earlier version.
    former_cleanups: Vec<CleanupFn<C>>,
    /// Finalizers of earlier versions.
    former_finalizers: Vec<String>,
    /// External resources of graphs.
    drivers: Vec<DriverNames<C>>,
    /// Watches that turn changes into keys.
    sources: Vec<Source>,
    /// Permissions, not merged yet.
    rules: Vec<Rule>,
    /// The permissions among them that no other setting implies, each with a single verb, and the
    /// text by which `can(…)` asks for it.
    granted: Vec<(String, Rule)>,
    /// Settings that each reconcile reads.
    options: ReconcileOptions<C>,
    /// Names of the reasons; a source takes a bit when it is added.
    names: ReasonNames,
    /// Filter of the reconciled kind's changes.
    when: Option<Predicate<C::Object>>,
    /// Triggers, polls and timers.
    background_sources: Vec<Arc<dyn BackgroundSource>>,
    /// Kept apart from `background_sources` because a later call may replace it.
    resync: Option<Resync>,
    /// Quiet time and longest wait of a burst.
    debounce: Option<(Duration, Duration)>,
}

impl<C: Reconciler> fmt::Debug for ControllerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("kind", &self.info.group_resource())
            .field("sources", &self.sources.len())
            .field("when", &self.when)
            .field("finalizer", &self.finalizer.as_ref().map(|finalizer| &finalizer.name))
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> Default for ControllerBuilder<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Reconciler> ControllerBuilder<C> {
    /// Creates a builder that watches the kind that `C` reconciles, with 4 workers, a deadline of 5
    /// min per reconcile and endless retries. The controller's name is the kind in lower case.
    ///
    /// # Panics
    /// Panics when the kind is known at run time only, as for
    /// [`DynamicObject`](windlass_core::resource::DynamicObject).
    #[track_caller]
    pub fn new() -> Self {
        let info = static_info::<C::Object>();
        Self {
            name: info.kind.to_lowercase(),
            workers: 4,
            timeout: Duration::from_secs(300),
            retry: RetryPolicy::forever(),
            finalizer: None,
            graph_cleanups: Vec::new(),
            former_cleanups: Vec::new(),
            former_finalizers: Vec::new(),
            drivers: Vec::new(),
            sources: Vec::new(),
            options: ReconcileOptions::default(),
            rules: rbac::main_rules(&info).into_iter().chain(rbac::event_rules()).collect(),
            info,
            granted: Vec::new(),
            names: ReasonNames::default(),
            when: None,
            background_sources: Vec::new(),
            resync: Some(Resync::every(RESYNC_PERIOD)),
            debounce: None,
        }
    }

    /// Sets the controller's name. The name labels metrics and logs, is the reporter of Events and
    /// the owner of applied fields. At most 63 ASCII letters, digits, `-`, `_` and `.`, with a
    /// letter or a digit first and last: with any other name the operator refuses to start.
    ///
    /// Two controllers of one manager cannot share one name. Changing the name of a deployed
    /// controller changes the field manager: fields that were applied under the old name are not
    /// removed when a later apply leaves them out.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of objects that are reconciled at once: at least 1, at most 65 536. Each
    /// worker is a task, also while idle. Failing objects get at most half of the workers.
    ///
    /// Default: 4. Reconciles of one object never overlap, however many workers there are. More
    /// workers help reconciles that wait for requests; the client's limit of requests applies to
    /// all workers together.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, MOST_WORKERS);
        self
    }

    /// Sets the deadline of one reconcile, after which the reconcile is dropped and counted as a
    /// failure. At least a millisecond: zero, which means no deadline in controller-runtime, would
    /// let no reconcile run. `Duration::MAX` means no deadline.
    ///
    /// Default: 5 min. The deadline covers reads, writes and the code of the reconciler up to its
    /// `await`s; code that blocks its thread is dropped only at its next yield. The
    /// [`cancellation`](Context::cancellation) token is cancelled at the same moment.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets the retry policy of failed reconciles.
    ///
    /// Default: [`RetryPolicy::forever`], a random delay below a bound that grows from 5 ms to 5
    /// min.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// # struct Sites;
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    /// use std::time::Duration;
    /// use windlass::controller::{AfterMaxRetries, RetryPolicy};
    ///
    /// let policy = RetryPolicy::at_most(10)
    ///     .between(Duration::from_millis(100), Duration::from_secs(60));
    /// let builder = ControllerBuilder::<Sites>::new()
    ///     .retry(policy)
    ///     .after_max_retries(AfterMaxRetries::Every(Duration::from_secs(3600)));
    /// # let _ = builder;
    /// ```
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Watches children of kind `K`: a change or the deletion of a child reconciles the object that
    /// its controller owner reference names.
    ///
    /// controller-runtime's `Owns`. Adds the permissions to read, create, patch and delete the
    /// kind, and starts the kind's cache. Children are made by [`Context::apply_owned`] and
    /// [`Context::create_owned`].
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn owns<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(watches::owned::<K>(self.owners(false), reason, None));
        self
    }

    /// Watches objects of kind `K`: a change reconciles the objects whose keys `mapper` returns for
    /// the old and for the new state.
    ///
    /// controller-runtime's `Watches` with `EnqueueRequestsFromMapFunc`. The mapper must not block
    /// and sees cached state only; the mapper runs once for each of the two states, and duplicate
    /// keys are one. Keys of objects that do not exist are dropped by the reconcile.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::controller::{Action, Context, ControllerBuilder, Reconciler, Result};
    /// # use windlass::resource::ObjectKey;
    /// # use windlass::store::Cached;
    /// # struct Sites;
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
    /// #         Ok(Action::done())
    /// #     }
    /// # }
    /// /// The map of the same name as the Secret.
    /// fn map_of(secret: &Cached<Secret>) -> Vec<ObjectKey> {
    ///     vec![secret.key().clone()]
    /// }
    ///
    /// let builder = ControllerBuilder::<Sites>::new().watches::<Secret>(map_of);
    /// # let _ = builder;
    /// ```
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches<K: Resource>(mut self, mapper: fn(&Cached<K>) -> Vec<ObjectKey>) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(watches::watched::<K>(mapper, reason, None));
        self
    }

    /// Watches objects of kind `K`: a change reconciles the objects that refer to it by the values
    /// of `index`, in the same namespace if both kinds are namespaced. When the index cannot be
    /// built, the controller does not start.
    ///
    /// Cheaper than a mapper that lists all objects: a change of one `K` costs one lookup.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_by<K: Resource, V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(watches::watched_by::<K, C::Object, V>(index, reason, None));
        self
    }

    /// Adds the permission to watch a kind, and returns the reason of that source.
    #[track_caller]
    fn watching<K: Resource>(&mut self) -> Reason {
        let info = static_info::<K>();
        self.rules.extend(rbac::watched_rules(&info));
        self.names.add(format!("watched {}", info.group_resource()))
    }

    /// Builds an index of the reconciled kind before the first reconcile instead of at the first
    /// use. When the index cannot be built, the controller does not start.
    ///
    /// Lookups by the index are made by `Context::store().by_index(…)`.
    pub fn index<V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        self.sources.push(watches::indexed(index));
        self
    }

    /// Puts a finalizer on every object before its first reconcile, and removes the finalizer once
    /// [`Finalize::cleanup`] has succeeded. The name is qualified by a domain: `example.dev/dns`.
    ///
    /// The finalizer is a separate patch, before the first reconcile of an object. Removing this
    /// setting from a deployed controller leaves the finalizer on existing objects, which then
    /// cannot be deleted: declare the finalizer by [`former_finalizer`](Self::former_finalizer)
    /// until no object carries the finalizer.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self
    where
        C: Finalize,
    {
        self.finalizer = Some(Finalizer { name: name.into(), cleanups: vec![boxed_cleanup::<C>] });
        self
    }

    /// Removes a finalizer that an earlier version of the controller used from objects that are
    /// deleted. Nothing is cleaned up for that finalizer; external resources whose field left a
    /// graph hold their objects.
    ///
    /// For the name of a [`finalizer`](Self::finalizer), or of a graph's external field, that this
    /// version lacks: objects that carry the finalizer could not be deleted otherwise.
    /// `windlass.dev/<controller>` is always removed.
    pub fn former_finalizer(mut self, name: impl Into<String>) -> Self {
        self.former_finalizers.push(name.into());
        self
    }

    /// Builds the controller, ready for a manager.
    ///
    /// The result is shared by all terms of leadership, and goes to
    /// [`Manager::erased_controller`](crate::manager::Manager::erased_controller), as
    /// [`Manager::controller`](crate::manager::Manager::controller) and its siblings do.
    pub fn build(mut self, controller: C) -> Arc<dyn ErasedController> {
        // A resync is a background source like a trigger or a poll; the resync is added last
        // because `resync` and `without_resync` may still replace it.
        if let Some(resync) = self.resync.take() {
            self.background_sources.push(Arc::new(resync));
        }
        let (finalizer, former) = self.finalizers();
        let spec = ControllerSpec {
            info: self.info,
            name: self.name.into(),
            workers: self.workers,
            timeout: self.timeout,
            retry: self.retry,
            finalizer,
            former,
            drivers: self.drivers,
            rules: rbac::merge(self.rules),
            granted: self.granted,
            sources: self.sources,
            options: self.options,
            names: self.names,
            when: self.when,
            background_sources: self.background_sources,
            debounce: self.debounce,
        };
        Arc::new(Handle::new(spec, controller))
    }
}

/// Boxes the clean-up, so that only controllers with a finalizer require [`Finalize`].
fn boxed_cleanup<'a, C: Finalize>(
    controller: &'a C,
    object: &'a C::Object,
    cx: &'a Context<C>,
) -> Cleanup<'a> {
    Box::pin(controller.cleanup(object, cx))
}

/// Returns the kind of `K`; panics when the kind is known at run time only.
#[track_caller]
fn static_info<K: Resource>() -> ResourceInfo {
    match K::static_info() {
        Some(info) => info,
        None => panic!(
            "`{}` has no kind at compile time; a controller needs a type of a single kind: derive \
             `CustomResource` for a type of your own, or use one of `k8s_openapi::api`",
            std::any::type_name::<K>()
        ),
    }
}
