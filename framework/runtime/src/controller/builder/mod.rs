//! Builder of a controller: watched and owned kinds, permissions, settings.

mod clusters;
mod reconciling;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::controller::plan::{Cleanup, ControllerSpec, Finalizer, ReconcileOptions};
use crate::controller::run::{ErasedController, Handle};
use crate::controller::source::{
    BackgroundSource, Predicate, RESYNC_PERIOD, Reason, ReasonNames, Resync, Source, watches,
};
use crate::controller::{Context, Finalize, Reconciler};
use crate::workqueue::RetryPolicy;
use windlass_cache::store::{Cached, Index, IndexValue};
use windlass_core::rbac::{self, Rule, verbs::VerbType};
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};

mod enqueuing;

/// Upper bound of a controller's workers: some hundred MB of tasks.
pub const MOST_WORKERS: usize = 65_536;

/// Builder of a controller: the kinds that it watches and owns, and its permissions. The controller
/// starts when the caches of all its kinds are filled: the reconciled kind and every owned or
/// watched kind, in this and in other clusters.
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
#[must_use = "a builder does nothing until its `build` is called"]
pub struct ControllerBuilder<C: Reconciler> {
    info: ResourceInfo,
    name: String,
    workers: usize,
    timeout: Duration,
    retry: RetryPolicy,
    finalizer: Option<Finalizer<C>>,
    sources: Vec<Source>,
    rules: Vec<Rule>,
    options: ReconcileOptions<C>,
    names: ReasonNames,
    when: Option<Predicate<C::Object>>,
    background_sources: Vec<Arc<dyn BackgroundSource>>,
    resync: Option<Resync>,
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
            sources: Vec::new(),
            options: ReconcileOptions::default(),
            rules: rbac::main_rules(&info).into_iter().chain(rbac::event_rules()).collect(),
            info,
            names: ReasonNames::default(),
            when: None,
            background_sources: Vec::new(),
            resync: Some(Resync::every(RESYNC_PERIOD)),
            debounce: None,
        }
    }

    /// Sets the controller's name. The name labels metrics and logs, is the reporter of Events and
    /// the owner of applied fields. At most 63 ASCII letters, digits, `-`, `_` and `.`, with a
    /// letter or a digit first and last: the operator does not start with any other name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the number of objects that are reconciled at once: at least 1, at most 65 536. Each
    /// worker is a task, also while it is idle. Failing objects get at most half of the workers.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, MOST_WORKERS);
        self
    }

    /// Sets the deadline of one reconcile, after which it is dropped and counted as a failure. At
    /// least a millisecond: zero, which means no deadline in controller-runtime, would let no
    /// reconcile run. `Duration::MAX` means no deadline.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets the retry policy of failed reconciles.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Watches children of kind `K`: a change or the deletion of a child reconciles the object that
    /// its controller owner reference names.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn owns<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(watches::owned::<K>(self.info.clone(), reason, None));
        self
    }

    /// Watches objects of kind `K`: a change reconciles the objects whose keys `mapper` returns for
    /// the old and for the new state.
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
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_by<K: Resource, V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(watches::watched_by::<K, C::Object, V>(index, reason, None));
        self
    }

    /// Adds the permission to watch a kind, and returns the reason of its source.
    #[track_caller]
    fn watching<K: Resource>(&mut self) -> Reason {
        let info = static_info::<K>();
        self.rules.extend(rbac::watched_rules(&info));
        self.names.add(format!("watched {}", info.group_resource()))
    }

    /// Builds an index of the reconciled kind before the first reconcile instead of at its first
    /// use. When the index cannot be built, the controller does not start.
    pub fn index<V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        self.sources.push(watches::indexed(index));
        self
    }

    /// Puts a finalizer on every object before its first reconcile, and removes the finalizer once
    /// [`Finalize::cleanup`] has succeeded. The name is qualified by a domain: `example.dev/dns`.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self
    where
        C: Finalize,
    {
        self.finalizer = Some(Finalizer { name: name.into(), cleanup: boxed_cleanup::<C> });
        self
    }

    /// Adds the permission to use verb `V` on kind `K`; the matching grant is `C:`
    /// [`Can`](windlass_core::rbac::Can)`<V, K>`.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn can<V: VerbType, K: Resource>(mut self) -> Self {
        self.rules.push(Rule::new(&static_info::<K>(), None, &[V::NAME]));
        self
    }

    /// Builds the controller, ready for a manager.
    pub fn build(mut self, controller: C) -> Arc<dyn ErasedController> {
        // A resync is a background source like a trigger or a poll; it is added last because
        // `resync` and `without_resync` may still replace it.
        if let Some(resync) = self.resync.take() {
            self.background_sources.push(Arc::new(resync));
        }
        let plan = ControllerSpec {
            info: self.info,
            name: self.name.into(),
            workers: self.workers,
            timeout: self.timeout,
            retry: self.retry,
            finalizer: self.finalizer,
            rules: rbac::merge(self.rules),
            sources: self.sources,
            options: self.options,
            names: self.names,
            when: self.when,
            background_sources: self.background_sources,
            debounce: self.debounce,
        };
        Arc::new(Handle::new(plan, controller))
    }
}

fn boxed_cleanup<'a, C: Finalize>(
    controller: &'a C,
    object: &'a C::Object,
    cx: &'a Context<C>,
) -> Cleanup<'a> {
    Box::pin(controller.cleanup(object, cx))
}

/// Returns the kind of `K`; panics when it is known at run time only.
#[track_caller]
fn static_info<K: Resource>() -> ResourceInfo {
    match K::static_info() {
        Some(info) => info,
        None => panic!(
            "`{}` does not say which kind it is: a controller is wired with types of one kind, \
             so derive `CustomResource` for a type of your own, or use one of `k8s_openapi::api`",
            std::any::type_name::<K>()
        ),
    }
}
