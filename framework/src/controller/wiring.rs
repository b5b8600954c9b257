//! What a controller watches, owns and may do, before it runs.

mod clusters;
mod reconciling;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(super) use self::reconciling::Around;
use super::erased::ErasedController;
use super::predicates::Predicate;
use super::pump::Pump;
use super::reasons::{Names, Reason};
use super::resync::{self, Resync};
use super::runtime::{Handle, Plan};
use super::sources::{self, Source};
use super::{Context, Finalize, Reconciler, Result};
use crate::rbac::{self, Rule, verbs::VerbType};
use crate::resource::{ObjectKey, Resource, ResourceInfo};
use crate::store::{Cached, Index, IndexValue};
use crate::workqueue::RetryPolicy;

mod waking;

/// The most workers of a controller: some hundred MB of tasks.
pub(crate) const MOST_WORKERS: usize = 65_536;

/// A boxed clean-up.
pub(super) type Cleanup<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A finalizer's name and what runs before it is removed.
pub(super) struct Finalizer<C: Reconciler> {
    pub(super) name: String,
    pub(super) cleanup: for<'a> fn(&'a C, &'a C::Object, &'a Context<C>) -> Cleanup<'a>,
}

/// What a controller watches, owns and may do. It starts when the caches of its kinds are filled: the
/// reconciled one and all that are owned or watched, here and in other clusters.
///
/// ```
/// # use windlass::controller::{Action, Context, Reconciler, Result, Wiring};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # struct Sites;
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result { Ok(Action::done()) }
/// # }
/// let wiring = Wiring::<Sites>::new().owns::<Deployment>().workers(8);
/// let controller = wiring.build(Sites);
/// assert_eq!(controller.name(), "configmap");
/// ```
#[must_use = "a wiring does nothing until it is built"]
pub struct Wiring<C: Reconciler> {
    info: ResourceInfo,
    name: String,
    workers: usize,
    timeout: Duration,
    retry: RetryPolicy,
    finalizer: Option<Finalizer<C>>,
    sources: Vec<Source>,
    rules: Vec<Rule>,
    around: Around<C>,
    names: Names,
    when: Option<Predicate<C::Object>>,
    pumps: Vec<Arc<dyn Pump>>,
    resync: Option<Resync>,
    debounce: Option<(Duration, Duration)>,
}

impl<C: Reconciler> fmt::Debug for Wiring<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiring")
            .field("name", &self.name)
            .field("kind", &self.info.group_resource())
            .field("sources", &self.sources.len())
            .field("when", &self.when)
            .field("finalizer", &self.finalizer.as_ref().map(|finalizer| &finalizer.name))
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> Default for Wiring<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Reconciler> Wiring<C> {
    /// Watches the kind that `C` reconciles, with 4 workers, a deadline of 5 min per reconcile and
    /// endless retries. The controller's name is the kind in lower case.
    ///
    /// # Panics
    /// When the kind is known at run time only, as [`DynamicObject`](crate::resource::DynamicObject)s
    /// are.
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
            around: Around::default(),
            rules: rbac::main_rules(&info).into_iter().chain(rbac::event_rules()).collect(),
            info,
            names: Names::default(),
            when: None,
            pumps: Vec::new(),
            resync: Some(Resync::every(resync::PERIOD)),
            debounce: None,
        }
    }

    /// The controller's name: labels metrics and logs, reports Events, owns the fields it applies. At most
    /// 63 ASCII letters, digits, `-`, `_` and `.`, a letter or a digit first and last: the operator does
    /// not start with another.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many objects are reconciled at once; at least one, at most 65 536: each has a task, also while
    /// there is nothing to do. Failing objects get at most half.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, MOST_WORKERS);
        self
    }

    /// How long one reconcile may take before it is dropped and counted as a failure. At least a
    /// millisecond: zero, which means none in controller-runtime, would let none run. `Duration::MAX` is
    /// none.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// How failed reconciles are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Children of kind `K`: a change or the deletion of one reconciles the object that its
    /// controller owner reference names.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn owns<K: Resource>(mut self) -> Self {
        let info = static_info::<K>();
        let reason = self.names.add(format!("owned {}", info.group_resource()));
        self.rules.extend(rbac::owned_rules(&info));
        self.sources.push(sources::owned::<K>(self.info.clone(), reason, None));
        self
    }

    /// Objects of kind `K`: a change of one reconciles the objects whose keys `mapper` makes of it;
    /// it is asked about the old and the new state.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches<K: Resource>(mut self, mapper: fn(&Cached<K>) -> Vec<ObjectKey>) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(sources::watched::<K>(mapper, reason, None));
        self
    }

    /// Objects of kind `K`: a change of one reconciles the objects that name it, in the same
    /// namespace if both are namespaced, by the values of `index`. When that cannot be built, the
    /// controller does not start.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_by<K: Resource, V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        let reason = self.watching::<K>();
        self.sources.push(sources::watched_by::<K, C::Object, V>(index, reason, None));
        self
    }

    /// The permission to watch a kind, and the reason of its source.
    #[track_caller]
    fn watching<K: Resource>(&mut self) -> Reason {
        let info = static_info::<K>();
        self.rules.extend(rbac::watched_rules(&info));
        self.names.add(format!("watched {}", info.group_resource()))
    }

    /// Builds an index of the reconciled kind before the first reconcile instead of at its first use.
    /// When it cannot be built, the controller does not start.
    pub fn index<V: IndexValue>(mut self, index: Index<C::Object, V>) -> Self {
        self.sources.push(sources::indexed(index));
        self
    }

    /// Puts a finalizer on every object before it is first reconciled, and removes it once
    /// [`Finalize::cleanup`] has succeeded. Its name is qualified by a domain: `example.dev/dns`.
    pub fn finalizer(mut self, name: impl Into<String>) -> Self
    where
        C: Finalize,
    {
        self.finalizer = Some(Finalizer { name: name.into(), cleanup: boxed_cleanup::<C> });
        self
    }

    /// The permission to use verb `V` on kind `K`; what it allows is `C:`
    /// [`Can`](crate::rbac::Can)`<V, K>`.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn can<V: VerbType, K: Resource>(mut self) -> Self {
        self.rules.push(Rule::new(&static_info::<K>(), None, &[V::NAME]));
        self
    }

    /// The controller, ready to be given to a manager.
    pub fn build(mut self, controller: C) -> Arc<dyn ErasedController> {
        if let Some(resync) = self.resync.take() {
            self.pumps.push(Arc::new(resync));
        }
        let plan = Plan {
            info: self.info,
            name: self.name.into(),
            workers: self.workers,
            timeout: self.timeout,
            retry: self.retry,
            finalizer: self.finalizer,
            rules: rbac::merge(self.rules),
            sources: self.sources,
            around: self.around,
            names: self.names,
            when: self.when,
            pumps: self.pumps,
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
