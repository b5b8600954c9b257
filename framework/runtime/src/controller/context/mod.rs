//! The context of a reconcile: reads, writes, events, requeues and grants.
//!
//! A context is made for one attempt and dropped at the attempt's end. A context has three groups
//! of methods: reads of caches, which cost nothing; requests, each behind a bound on `C` that names
//! the grant; and effects on the controller itself, such as requeues and Events. Every write passes
//! `wrote` or one of its siblings, which put the API server's answer into the caches, so that the
//! next reconcile reads the new state.
//!
//! Locks: `latest` is held for a copy only, never across an `await`.

mod access;
mod apply;
mod change_log;
mod checked;
mod children;
mod conditions;
mod deleted;
mod described;
mod dry_run;
mod expected;
mod gone;
mod guarded;
mod patcher;
mod reads;
mod status;
mod task;

use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::apply::ApplyOwned;
pub use self::checked::CheckedApi;
pub use self::conditions::{OwnsConditions, SetCondition};
use self::dry_run::DryRunViews;
pub use self::dry_run::note_external_call;
pub use self::expected::Expectations;
pub use self::patcher::ContextPatcher;
pub use self::reads::{WatchFuture, WatchRead, WatchScope, WatchTarget};
use self::status::LatestStatus;
pub use self::task::TaskContext;
use crate::controller::Reconciler;
use crate::controller::conditions::StatusConditions;
use crate::controller::planned::DryRunRecord;
use crate::controller::source::{Reads, Reason, Reasons, TriggerNames};
use crate::controller::state::{
    AttemptReads, Changelog, Changes, Drivers, ObjectMemory, SpecVersion, Watch, WriteEffect,
    WrittenKind,
};
use crate::controller::worker::ReconcileAttempt;
use crate::events::{EventKind, Recorder};
use crate::workqueue::WorkQueue;
use windlass_cache::informer::InformerRegistry;
use windlass_cache::store::{Cached, Store};
use windlass_client::api::{Api, Write};
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, ObjectRef, Resource, ResourceExt, ResourceInfo, Scope};
use windlass_core::rng::Rng;

/// State that all reconciles of one run share; each worker has a clone.
#[derive(Clone)]
pub(super) struct ControllerShared {
    /// The controller's name.
    pub(super) controller: Arc<str>,
    /// The reconciled kind.
    pub(super) info: ResourceInfo,
    /// Client of this run; all writes pass the gate of the lease.
    pub(super) client: Client,
    /// The operator's caches.
    pub(super) informers: InformerRegistry,
    /// Queue of Events to write.
    pub(super) recorder: Recorder,
    /// The controller's queue, for requeues.
    pub(super) queue: WorkQueue<ObjectKey>,
    /// State of each object between reconciles.
    pub(super) memory: Arc<ObjectMemory>,
    /// The conditions that are kept, for a controller that keeps some.
    pub(super) conditions: Option<StatusConditions>,
    /// The drivers of external resources.
    pub(super) drivers: Arc<Drivers>,
    /// Log of the writes, for a controller that logs them.
    pub(super) changes: Arc<Changelog>,
    /// Record of the dry runs of one reconcile, if its writes are dry runs.
    pub(super) dry_runs: Option<Arc<DryRunRecord>>,
    /// Reads of other objects whose changes reconcile their readers.
    pub(super) reads: Arc<Reads>,
    /// Names of the reasons, and the filters that apply at the time of a reconcile.
    pub(super) trigger_names: Arc<TriggerNames>,
    /// Clock, randomness and metrics.
    pub(super) environment: Environment,
}

/// Everything that a reconcile may use: the object, caches, writes, events. The grants are bounds
/// on `C`.
///
/// Writes through the context carry the controller's name as field manager, and are refused once
/// this process has lost the lease.
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
/// # async fn body(map: &ConfigMap, cx: &Context<Sites>) -> Result {
/// use std::time::Duration;
/// use windlass::events::Normal;
///
/// // Other objects of the same kind, from the cache.
/// let all = cx.store().len();
/// cx.event(Normal, "Counted", format!("{all} maps exist"));
/// // Again in about an hour, not at the same moment as all others.
/// Ok(Action::requeue_after(cx.spread(Duration::from_secs(3600))))
/// # }
/// ```
pub struct Context<C: Reconciler> {
    /// State of the run.
    shared: Arc<ControllerShared>,
    /// Cache of the reconciled kind.
    store: Arc<Store<C::Object>>,
    /// The object that the reconciler is given; newer than `cached_at_start` once a finalizer was
    /// added.
    object: Arc<C::Object>,
    /// The object's key, with its cluster.
    key: ObjectKey,
    /// Number, reasons and cancellation of this attempt.
    attempt: ReconcileAttempt,
    /// The newest status that this reconcile has read or written, upon which the next status write
    /// is based.
    latest: Mutex<Option<LatestStatus>>,
    /// The object as cached when the reconcile began.
    cached_at_start: Cached<C::Object>,
    /// The object at the last successful reconcile, if that state is kept.
    before: Option<Cached<C::Object>>,
    /// Registration for `until_superseded`; made at the first call, because most reconciles never
    /// wait.
    watch: OnceLock<Watch>,
    /// Client for users' tasks that may outlive the reconcile; made at the first request.
    detached_client: OnceLock<Client>,
    /// Whether a read of this reconcile has shown that the object is gone, or being deleted.
    has_ended: AtomicBool,
    /// The reads of this attempt that become watches.
    /// In a box: the context is part of each step, and few reconciles read.
    reads: OnceLock<Box<AttemptReads>>,
    /// Source of the first read.
    read_source: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Answers to dry runs that the caches show until the end of this reconcile.
    dry_runs: DryRunViews,
}

/// The object of a context, in several states.
pub(super) struct ReconcileSubject<K> {
    /// As cached when the attempt began.
    pub(super) cached_at_start: Cached<K>,
    /// As passed to the reconciler.
    pub(super) object: Arc<K>,
    /// As of the last successful reconcile, if that is kept.
    pub(super) before: Option<Cached<K>>,
}

/// Whether the object of that uid is the child's controller owner.
fn is_controlled_by<K: Resource>(child: &K, uid: &str) -> bool {
    let owners = child.metadata().owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

/// Whether kind `K` is namespaced; assumed for kinds that are known at run time only.
fn is_namespaced<K: Resource>() -> bool {
    K::static_info().is_none_or(|info| info.scope == Scope::Namespaced)
}

impl<C: Reconciler> fmt::Debug for Context<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.shared.controller)
            .field("object", &self.key)
            .field("attempt", &self.attempt.number)
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> Context<C> {
    /// Creates the context of an attempt.
    pub(super) fn new(
        shared: Arc<ControllerShared>,
        store: Arc<Store<C::Object>>,
        subject: ReconcileSubject<C::Object>,
        attempt: ReconcileAttempt,
    ) -> Self {
        let ReconcileSubject { cached_at_start, object, before } = subject;
        let key = cached_at_start.key().clone();
        let (latest, watch, detached_client) = (Mutex::new(None), OnceLock::new(), OnceLock::new());
        let has_ended = AtomicBool::new(false);
        Self {
            shared,
            store,
            object,
            key,
            attempt,
            latest,
            cached_at_start,
            before,
            watch,
            detached_client,
            has_ended,
            reads: OnceLock::new(),
            read_source: OnceLock::new(),
            dry_runs: DryRunViews::default(),
        }
    }

    /// Returns the same context for a newer version of the object.
    pub(super) fn with_object(self, object: C::Object) -> Self {
        self.attempt.cancel.set_generation(object.metadata().generation);
        Self { object: Arc::new(object), latest: Mutex::new(None), ..self }
    }

    /// The reconciled object, to keep or to send to a task.
    ///
    /// The same value that [`Reconciler::reconcile`] is given by reference.
    pub fn object(&self) -> &Arc<C::Object> {
        &self.object
    }

    /// Returns kind, namespace, name and uid of the object.
    pub fn object_ref(&self) -> ObjectRef {
        let uid = Some(self.object.uid().to_owned());
        ObjectRef { info: self.shared.info.clone(), key: self.key.clone(), uid }
    }

    /// The client, for requests that the methods of the context do not cover. No grant is checked
    /// at compile time: uses of the client have to be listed in `can(…)` to be in the manifest.
    ///
    /// A task may keep a clone of the client. When the reconcile completes, the clone may write for
    /// as long as this process leads. When the reconcile is dropped (at the deadline, at the end of
    /// the drain, or superseded), writes of the clone are refused with
    /// [`ErrorKind::Cancelled`](windlass_core::ErrorKind::Cancelled) from then on.
    ///
    /// Requests of the clone carry the controller's name as field manager and count towards the
    /// client's limit of requests.
    pub fn client(&self) -> &Client {
        self.detached_client
            .get_or_init(|| self.attempt.cancel.gated(&self.shared.client, &self.key))
    }

    /// The cache of the reconciled kind.
    ///
    /// Reads cost no request and show own writes at once.
    pub fn store(&self) -> &Store<C::Object> {
        &self.store
    }

    /// Reports an Event about the object, [`Normal`](crate::events::Normal) or
    /// [`Warning`](crate::events::Warning): `reason` is one word in `CamelCase` for programs,
    /// `note` a sentence for people. Never waits and never fails; a repeated event is counted. An
    /// object may cause 25 different events at once and another each 5 min, so that no object fills
    /// the cluster with Events: further events are dropped, with a line in the log at the level
    /// debug.
    ///
    /// The same Event within 6 minutes grows a series instead of making another object.
    pub fn event(&self, kind: EventKind, reason: &str, note: impl fmt::Display) {
        self.shared.recorder.event(&self.object_ref(), kind, reason, note);
    }

    /// Enqueues another object of the reconciled kind, or this object again.
    ///
    /// The key is added at once, with the reason `asked by another reconcile`. The key of this
    /// object is reconciled again after the present reconcile has ended. A key of an object that
    /// does not exist is dropped.
    pub fn requeue(&self, key: ObjectKey) {
        self.shared.queue.add_with(key, Reason::ASKED.add_options());
    }

    /// Cancelled when the operator shuts down, and when this reconcile hit the deadline: a long
    /// reconcile should then end soon. Until a reconcile is dropped, at the deadline or at the end
    /// of the drain, the reconcile may still write, unless the lease was lost: then every write is
    /// refused.
    ///
    /// A task that the reconcile spawned is not dropped with it: give the task a clone of the
    /// token, and let it end. Later writes of the task through a clone of [`client`](Self::client)
    /// are refused.
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
    /// # async fn copy_part(_: usize) {}
    /// # async fn body(cx: &Context<Sites>) -> Result {
    /// for part in 0..1000 {
    ///     if cx.cancellation().is_cancelled() {
    ///         // The next reconcile continues, in this process or in the next leader.
    ///         return Ok(Action::done());
    ///     }
    ///     copy_part(part).await;
    /// }
    /// Ok(Action::done())
    /// # }
    /// ```
    pub fn cancellation(&self) -> &CancellationToken {
        self.attempt.cancel.token()
    }

    /// Whether this reconcile is superseded: the object's spec changed since it began (by
    /// `metadata.generation`; in kinds without a generation, by anything but metadata and status),
    /// the object was marked for deletion, or the object is gone. Further work would be for an
    /// outdated state, and the object is reconciled again at once after this reconcile. A change of
    /// the spec by this reconcile itself counts, too.
    ///
    /// A comparison of two versions in the cache: cheap enough for each step of a loop.
    pub fn superseded(&self) -> bool {
        let cached_at_start = SpecVersion::of(&self.cached_at_start);
        self.store.get(&self.key).is_none_or(|now| SpecVersion::of(&now) != cached_at_start)
    }

    /// Waits until this reconcile is [superseded](Self::superseded).
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
    /// # async fn build_image() {}
    /// # async fn body(cx: &Context<Sites>) -> Result {
    /// tokio::select! {
    ///     biased;
    ///     () = cx.until_superseded() => return Ok(Action::done()),
    ///     () = build_image() => {}
    /// }
    /// Ok(Action::done())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn until_superseded(&self) {
        let all = &self.shared.memory.superseded;
        let watch =
            self.watch.get_or_init(|| all.watch(&self.key, SpecVersion::of(&self.cached_at_start)));
        // A change between the start of the reconcile and the registration above cancels no token,
        // so the cache is compared once after registering.
        if !self.superseded() {
            watch.token().cancelled().await;
        }
    }

    /// Returns the changes since the last successful reconcile of this object; enabled by
    /// [`ControllerBuilder::track_changes`](super::ControllerBuilder::track_changes).
    ///
    /// `None` when the last state is not known: at the first reconcile, after a restart or a change
    /// of leaders, or because the state did not fit the byte limit. Treat everything as changed
    /// then.
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
    /// # async fn restart() {}
    /// # async fn body(cx: &Context<Sites>) -> Result {
    /// if cx.changes().is_none_or(|changes| changes.touches("spec.image")) {
    ///     restart().await;
    /// }
    /// Ok(Action::done())
    /// # }
    /// ```
    pub fn changes(&self) -> Option<Changes<C::Object>> {
        let before = self.before.clone()?;
        Some(Changes::between(before, self.cached_at_start.clone()))
    }

    /// The number of failed reconciles of this object in a row before the current reconcile,
    /// without those that have a [delay of their own](super::Failure::retry_after).
    ///
    /// Zero for the first attempt. Starts again at zero when an object that was given up changes.
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// Returns the reasons of this reconcile: all causes since the object was last reconciled. For
    /// logs, and for work that only a single source makes necessary; see [`Reasons`] for the
    /// limits.
    ///
    /// A reconcile must be correct without the reasons: a restart loses reasons, and two causes may
    /// lead to a single reconcile.
    pub fn reasons(&self) -> Reasons {
        self.shared.trigger_names.named_for(&self.key, self.attempt.reasons)
    }

    /// Returns `delay` plus up to a tenth, for
    /// [`Action::requeue_after`](super::Action::requeue_after), so that objects which were
    /// reconciled together drift apart.
    pub fn spread(&self, delay: Duration) -> Duration {
        delay.saturating_add(self.shared.environment.rng.jitter(delay / 10))
    }

    /// Whether a reconcile of this object wrote, more than 10 s ago, to the object itself or to
    /// another cached object, and the watch has not delivered the write yet. Reads of that object
    /// are then older than the write.
    ///
    /// For reconciles that would do harm on an old state; return an action with a short delay then.
    /// The value is false while the watch keeps up, mostly within milliseconds.
    pub fn stale(&self) -> bool {
        let expectations = &self.shared.memory.applied.expectations;
        self.store.is_stale(&self.key) || expectations.is_stale(&self.key, &self.shared.informers)
    }

    /// The clock of the operator.
    ///
    /// Use this clock instead of the system's clock, so that tests can pause time.
    pub fn clock(&self) -> &Clock {
        &self.shared.environment.clock
    }

    /// The source of randomness of the operator.
    ///
    /// Use this source instead of a generator of your own, so that a test with a seed repeats
    /// exactly.
    pub fn rng(&self) -> &Rng {
        &self.shared.environment.rng
    }

    /// The object as cached when the reconcile began.
    pub(super) fn cached_at_start(&self) -> &Cached<C::Object> {
        &self.cached_at_start
    }

    /// The object at the last successful reconcile, if that state is known.
    pub(super) fn before(&self) -> Option<&Cached<C::Object>> {
        self.before.as_ref()
    }

    /// Returns the API of the reconciled kind in the object's namespace.
    pub(super) fn own_api(&self) -> Api<C::Object> {
        self.nearby()
    }

    /// Returns the API of kind `K` in the object's namespace, or in all namespaces when either has
    /// none. For calls that are dropped with the reconcile.
    fn nearby<K: Resource>(&self) -> Api<K> {
        self.nearby_by(&self.shared.client)
    }

    /// As [`nearby`](Self::nearby), with the given client.
    fn nearby_by<K: Resource>(&self, client: &Client) -> Api<K> {
        match self.key.namespace() {
            Some(namespace) if is_namespaced::<K>() => client.namespace(namespace),
            _ => client.all(),
        }
    }

    /// Records that an own write on top of version `from` left the object in this state, by the API
    /// server's answer.
    pub(super) fn wrote_own(&self, from: &str, object: &C::Object, answer: &[u8]) {
        self.wrote_upon(from, object, answer);
    }

    /// As [`wrote_own`](Self::wrote_own), for the same object as another type.
    fn wrote_upon<K: Resource>(&self, from: &str, object: &K, answer: &[u8]) {
        // A version other than the reconciled one holds changes that this reconcile has not seen:
        // the event of a write upon it must still enqueue the object.
        let cached_at_start = if self.attempt.cancel.has_start_version(from) { from } else { "" };
        let to = object.resource_version();
        if !self.is_dry_run() {
            self.shared.memory.own_writes.wrote(&self.key, cached_at_start, (from, to));
        }
        self.show::<K>(answer);
    }

    /// Puts the API server's answer to an own write into the caches before the watch delivers it.
    /// Takes the answer's bytes, because the type may hold only a part of the object.
    fn show<K: Resource>(&self, answer: &[u8]) {
        if self.is_dry_run() {
            return self.show_dry_run::<K>(answer);
        }
        // Only existing caches: a write alone does not start a cache.
        for cache in self.shared.informers.all_caches_of::<K>() {
            if let Err(error) = cache.wrote_response(answer) {
                // Not an error: the watch delivers the object later.
                tracing::debug!(
                    %error,
                    "the cache shows this process's write only after the watch event"
                );
            }
        }
    }

    /// Sends a write. An answer that does not decode as `K` was executed all the same: the answer
    /// goes to the caches, too.
    async fn answered<K: Resource>(
        &self,
        write: Write<K>,
        (verb, key): (&'static str, &ObjectKey),
    ) -> Result<(K, Bytes), Error> {
        let pending = self.before_write::<K>(verb, key);
        let (decoded, answer) = write.executed().await?;
        self.after_write(pending, &answer);
        if decoded.is_err() {
            self.show::<K>(&answer);
        }
        Ok((decoded?, answer))
    }

    /// As [`show`](Self::show), and expects the write until the watch has delivered it.
    fn wrote<K: Resource>(&self, what: WriteEffect, object: &K, answer: &[u8]) {
        self.show::<K>(answer);
        let key = object.key().in_cluster(self.key.cluster());
        self.sent::<K>(what, &key, object.uid());
    }

    /// Expects a write until the watch has delivered it.
    fn sent<K: Resource>(&self, what: WriteEffect, key: &ObjectKey, uid: &str) {
        // The watch never shows a dry run.
        if self.is_dry_run() {
            return;
        }
        let caches = self.shared.informers.caches_of::<K>();
        // A change that no cache holds as an own write cannot be missing from a view.
        let is_unshown = match what {
            WriteEffect::Changed => caches.iter().any(|cache| cache.store().unseen(key).is_some()),
            WriteEffect::Created | WriteEffect::Deleted => !caches.is_empty(),
        };
        if let Some(kind) = WrittenKind::of::<K>().filter(|_| is_unshown) {
            let now = self.shared.environment.clock.now();
            self.shared.memory.applied.expectations.sent(
                self.parent_ref(),
                kind,
                (what, key, uid),
                now,
            );
        }
    }

    /// Returns the uid of the cached object at `key`.
    fn cached_uid<K: Resource>(&self, key: &ObjectKey) -> Option<String> {
        let caches = self.shared.informers.caches_of::<K>();
        let cached = caches.iter().find_map(|cache| cache.store().get(key));
        cached.map(|cached| cached.metadata().uid().to_owned())
    }
}
