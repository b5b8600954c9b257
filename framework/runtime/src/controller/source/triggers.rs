//! Triggers: reconciles requested from outside of the cluster, by a webhook, a message queue, a
//! signal.
//!
//! A [`Trigger`] takes keys from any task. Once a controller's cache is filled they go straight
//! into the controller's queue, where a key that is already queued costs nothing; before that, the
//! trigger holds them. There is no task and no channel in between that could fall behind. Not
//! included: payloads. A key names an object, and the reconcile reads the data; values from outside
//! are kept by a [`Poll`](crate::controller::Poll).

// DESIGN.md, 41: A `Trigger` adds keys to the queue directly

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock, Weak};

use super::background::{BackgroundFuture, BackgroundRun, BackgroundSource};
use super::enqueue::{Enqueuer, ObjectKeys};
use super::reasons::Reason;
use super::watches::Attach;
use windlass_cache::informer::Informer;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::CounterSeries;
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::sync::{Mutex, Notify};

/// Default number of keys held before a controller can take them.
const CAPACITY: usize = 1024;

/// Requests reconciles of objects of kind `K`, from anywhere in the process; cheap to clone.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use windlass::controller::{Action, Context, Reconciler, Result, Trigger, ControllerBuilder};
/// # use windlass::resource::ObjectKey;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # struct Sites;
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
/// #         Ok(Action::done())
/// #     }
/// # }
/// let webhook = Trigger::new("webhook");
/// let builder = ControllerBuilder::<Sites>::new().triggered_by(&webhook);
/// // Anywhere, at any time:
/// webhook.try_send(ObjectKey::new(Some("shop"), "home"))?;
/// # let _ = builder;
/// # Ok::<(), windlass::Error>(())
/// ```
///
/// - Keys sent before the controller's cache is filled are held, each once. On a replica that does
///   not lead they wait in the queue until that replica leads.
/// - A key of an object that does not exist is dropped, counted (`windlass_trigger_keys_total`),
///   and logged at debug level. An object that is created later is reconciled because of its
///   creation.
/// - If several controllers are given the trigger, it sends each key to all of them.
pub struct Trigger<K> {
    shared: Arc<TriggerShared>,
    kind: PhantomData<fn() -> K>,
}

/// State shared by a trigger's handles and targets.
struct TriggerShared {
    name: String,
    capacity: usize,
    state: Mutex<State>,
    /// Notified when held keys were taken, or a target is gone.
    space: Notify,
}

/// The targets, and the keys that were sent before there was a target.
#[derive(Default)]
struct State {
    held: BTreeSet<ObjectKey>,
    targets: Vec<Weak<TriggerTarget>>,
}

/// A controller that is given a trigger.
pub(crate) struct TriggerTarget {
    shared: Arc<TriggerShared>,
    reason: Reason,
    held: Mutex<BTreeSet<ObjectKey>>,
    gate: OnceLock<Gate>,
}

/// The way into the controller's queue, once attached.
struct Gate {
    enqueuer: Enqueuer,
    objects: Box<dyn ObjectKeys>,
    is_synced: Box<dyn Fn() -> bool + Send + Sync>,
    added: CounterSeries,
    absent: CounterSeries,
}

impl<K> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Trigger<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = self.shared.state.lock().targets.len();
        f.debug_struct("Trigger")
            .field("name", &self.shared.name)
            .field("controllers", &targets)
            .finish_non_exhaustive()
    }
}

impl<K: Resource> Trigger<K> {
    /// Creates a trigger with the reason `trigger NAME`. The trigger holds 1024 keys until a
    /// controller can take them.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_capacity(name, CAPACITY)
    }

    /// As [`new`](Self::new), holding at most `capacity` keys, at least 1.
    pub fn with_capacity(name: impl Into<String>, capacity: usize) -> Self {
        let shared = TriggerShared {
            name: name.into(),
            capacity: capacity.max(1),
            state: Mutex::default(),
            space: Notify::new(),
        };
        Self { shared: Arc::new(shared), kind: PhantomData }
    }

    /// The trigger's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Enqueues the object; waits while a controller that is not ready holds too many keys. Several
    /// sends of a key before its reconcile count as one.
    ///
    /// # Cancel safety
    /// Safe: if the future is dropped, some of several controllers may have received the key.
    pub async fn send(&self, key: ObjectKey) {
        // Targets that took the key are skipped: taking the key again would notify `space`, and so
        // wake this loop without end.
        let mut offered = Vec::new();
        loop {
            // Registered before the offer: `notify_waiters` leaves no permit for a later waiter.
            let mut space = std::pin::pin!(self.shared.space.notified());
            space.as_mut().enable();
            if self.shared.offer(&key, &mut offered) {
                return;
            }
            space.await;
        }
    }

    /// As [`send`](Self::send), without waiting.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] when a controller that is not ready holds too many keys. The key may
    /// then be dropped without loss: a controller that becomes ready reconciles every object.
    pub fn try_send(&self, key: ObjectKey) -> Result<(), Error> {
        if self.shared.offer(&key, &mut Vec::new()) {
            return Ok(());
        }
        let TriggerShared { name, capacity, .. } = &*self.shared;
        let text = format!(
            "trigger {name} cannot take {key}: it holds {capacity} keys, as no controller that is \
             triggered by it has filled its cache yet; send it later, or drop it: at its start a controller \
             reconciles every object"
        );
        Err(Error::new(ErrorKind::Other, text))
    }

    /// Wires the trigger to a controller.
    pub(crate) fn target(&self, reason: Reason) -> Arc<TriggerTarget> {
        let shared = Arc::clone(&self.shared);
        let mut state = self.shared.state.lock();
        let held = Mutex::new(std::mem::take(&mut state.held));
        let target = Arc::new(TriggerTarget { shared, reason, held, gate: OnceLock::new() });
        state.targets.push(Arc::downgrade(&target));
        target
    }
}

impl TriggerShared {
    /// Offers the key to all targets but those in `offered`; false when a target holds too many
    /// keys.
    fn offer(&self, key: &ObjectKey, offered: &mut Vec<Weak<TriggerTarget>>) -> bool {
        let mut state = self.state.lock();
        state.targets.retain(|target| target.strong_count() > 0);
        if state.targets.is_empty() {
            return hold(&mut state.held, key, self.capacity);
        }
        let mut targets = state.targets.clone();
        // Released before the targets are called: they lock their own state and add to queues.
        drop(state);
        targets.retain(|target| !offered.iter().any(|offered| offered.ptr_eq(target)));
        // The key is offered to all targets, whether or not any target is full.
        let (taken, full): (Vec<_>, Vec<_>) = targets
            .into_iter()
            .partition(|target| target.upgrade().is_none_or(|target| target.offer(key)));
        offered.extend(taken);
        full.is_empty()
    }
}

/// Holds the key; false when too many keys are held.
fn hold(held: &mut BTreeSet<ObjectKey>, key: &ObjectKey, capacity: usize) -> bool {
    held.contains(key) || held.len() < capacity && held.insert(key.clone())
}

impl TriggerTarget {
    /// Adds the key to the controller's queue, or holds the key; false when the trigger holds too
    /// many.
    fn offer(&self, key: &ObjectKey) -> bool {
        // Held before the gate is checked: if the gate opens in between, `prepare` takes the key.
        let is_held = hold(&mut self.held.lock(), key, self.shared.capacity);
        let Some(gate) = self.gate.get().filter(|gate| (gate.is_synced)()) else { return is_held };
        let mut due = std::mem::take(&mut *self.held.lock());
        if !is_held {
            due.insert(key.clone());
        }
        self.enqueue_pending(gate, due);
        true
    }

    /// Enqueues the held keys; keys of objects that do not exist are dropped.
    fn enqueue_pending(&self, gate: &Gate, due: BTreeSet<ObjectKey>) {
        let (keys, absent): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|key| gate.objects.has(key));
        for key in &absent {
            let trigger = &self.shared.name;
            tracing::debug!(trigger, object = %key, "dropped: there is no such object");
        }
        gate.added.count(keys.len() as u64);
        gate.absent.count(absent.len() as u64);
        gate.enqueuer.enqueue_all(keys, self.reason);
        // After the held keys were taken and enqueued: a woken sender offers the key to a set with
        // space, or through the open gate.
        self.shared.space.notify_waiters();
    }

    /// Connects the target to the controller's queue.
    pub(crate) fn attach<K: Resource>(&self, at: &Attach<'_>) {
        let informer: Informer<K> = at.informers.informer();
        // A trigger must not keep the cache running when the controller is gone.
        let objects = Box::new(informer.store().non_owning());
        let metrics = &at.informers.environment().metrics;
        let keys = |result| {
            let labels = [at.controller, &*self.shared.name, result];
            metrics.counter(&windlass_core::metrics::names::TRIGGER_KEYS, &labels)
        };
        let gate = Gate {
            enqueuer: at.enqueuer.clone(),
            objects,
            is_synced: informer.sync_probe(),
            added: keys("added"),
            absent: keys("absent"),
        };
        // A second attempt to attach changes nothing.
        let _ = self.gate.set(gate);
    }
}

impl Drop for TriggerTarget {
    /// Wakes the senders that wait for space in this target.
    fn drop(&mut self) {
        self.shared.space.notify_waiters();
    }
}

impl BackgroundSource for TriggerTarget {
    fn prepare(self: Arc<Self>, _: BackgroundRun) -> BackgroundFuture {
        if let Some(gate) = self.gate.get() {
            let due = std::mem::take(&mut *self.held.lock());
            self.enqueue_pending(gate, due);
        }
        Box::pin(std::future::ready(()))
    }

    fn run(self: Arc<Self>, _: BackgroundRun) -> BackgroundFuture {
        Box::pin(std::future::ready(()))
    }
}
