//! Registration and removal of listeners.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Change;
use super::listener::{
    InlineFn, Listener, ListenerIdentity, ListenerState, MailboxItem, MergePolicy, Stage,
};
use super::options::SHORTEST_RESYNC;
use super::registry::InformerRef;
use crate::store::StoreEvent;
use windlass_core::error::{Error, ErrorKind};

/// A listener about to be registered: [`Informer::listen`](crate::informer::Informer::listen).
///
/// ```no_run
/// # extern crate windlass_cache as windlass;
/// # use windlass::informer::{Informer, Registration};
/// # use k8s_openapi::api::core::v1::Node;
/// # fn example(nodes: &Informer<Node>) -> Registration {
/// use std::time::Duration;
///
/// nodes
///     .listen()
///     .name("node inventory")
///     .resync(Duration::from_secs(600))
///     .on_change(|change| println!("{}", change.key()))
/// # }
/// ```
#[must_use = "the listener is not registered until `on_change` is called"]
pub struct Listen<K> {
    /// Keeps the informer in use until the registration does.
    informer_ref: Arc<InformerRef>,
    /// Name in logs.
    name: String,
    /// Resync period; `None` for never.
    resync: Option<Duration>,
    kind: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Listen<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: 'static> Listen<K> {
    pub(super) fn new(informer_ref: Arc<InformerRef>, caller: &Location<'_>) -> Self {
        let name = format!("{}:{}", caller.file(), caller.line());
        let resync = informer_ref.core().options.resync;
        Self { informer_ref, name, resync, kind: PhantomData }
    }

    /// Sets the listener's name in logs and in texts about missing parts. Default: the place where
    /// [`Informer::listen`](crate::informer::Informer::listen) was called, as `src/main.rs:42`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets a resync period, at least 1 s: every cached object is delivered again after each
    /// period, regardless of other listeners. Default: that of
    /// [`CacheOptions::resync`](crate::informer::CacheOptions::resync).
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(SHORTEST_RESYNC));
        self
    }

    /// Calls `listener` for each change: see
    /// [`Informer::on_change`](crate::informer::Informer::on_change).
    pub fn on_change(self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) -> Registration {
        self.register(MergePolicy::Latest, move |item| {
            if let MailboxItem::Change(event) = item {
                listener(&Change::of(event));
            }
        })
    }

    /// Calls `listener` with the steps of an object since the object's last call, and whether the
    /// second step is a sum: of an object that changes faster than `listener` returns, the call
    /// receives the first step, the latest seven, and the others merged into a single step.
    #[doc(hidden)]
    pub fn on_steps(
        self,
        listener: impl Fn(&[StoreEvent], bool) + Send + Sync + 'static,
    ) -> Registration {
        self.register(MergePolicy::EachStep, move |item| {
            if let MailboxItem::Steps { events, is_merged } = item {
                listener(events, *is_merged);
            }
        })
    }

    /// Calls `inline` with each batch of events where the batch is applied. `inline` must return at
    /// once, and call no code of users.
    #[doc(hidden)]
    pub fn inline(self, inline: InlineFn) -> Registration {
        let listener = Listener::inline(self.identity(), inline);
        Registration::new(listener, self.informer_ref)
    }

    /// Creates a listener with a task and a mailbox for this listener alone.
    fn register(
        self,
        merging: MergePolicy,
        call: impl Fn(&MailboxItem) + Send + Sync + 'static,
    ) -> Registration {
        let listener = Listener::queued(self.identity(), merging, self.resync, Box::new(call));
        Registration::new(listener, self.informer_ref)
    }

    /// Returns the listener's name, kind, metrics and clock.
    fn identity(&self) -> ListenerIdentity {
        let core = self.informer_ref.core();
        ListenerIdentity {
            name: self.name.clone(),
            info: core.store.info().clone(),
            metrics: core.meter.metrics().clone(),
            clock: core.environment.clock.clone(),
        }
    }
}

/// A registered listener. Dropping the registration removes it; [`keep`](Self::keep) leaves it
/// registered for as long as the informer runs. While the registration exists, the informer is in
/// use.
#[must_use = "dropping it removes the listener: keep it, or call `keep`"]
pub struct Registration {
    /// The listener, shared with the informer that calls it.
    listener: Arc<Listener>,
    /// Keeps the informer in use; `None` only during the drop.
    informer_ref: Option<Arc<InformerRef>>,
    /// Whether the listener stays when this is dropped.
    is_kept: bool,
    /// Whether the listener's controller can do without the cache.
    is_dispensable: bool,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("listener", &self.listener.name())
            .field("synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}

impl Registration {
    /// Adds the listener to the informer.
    fn new(listener: Arc<Listener>, informer_ref: Arc<InformerRef>) -> Self {
        informer_ref.core().listen(Arc::clone(&listener));
        Self { listener, informer_ref: Some(informer_ref), is_kept: false, is_dispensable: false }
    }

    /// Notes that the listener's controller can do without the cache, if the cache is optional.
    #[doc(hidden)]
    pub fn dispensable(mut self) -> Self {
        self.is_dispensable = true;
        self
    }

    /// Returns whether the listener has received the first lists whole. Calls in which the listener
    /// panicked count.
    ///
    /// Never waits; [`synced`](Self::synced) does.
    pub fn has_synced(&self) -> bool {
        self.listener.is_synced()
    }

    /// Waits until the listener has received the first lists whole.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] when the listener was removed, or the informer stopped, before
    /// that.
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn synced(&self) -> Result<(), Error> {
        let over = |state: &ListenerState| state.is_synced || state.stage == Stage::Ended;
        if self.listener.wait_for(over).await.is_synced {
            return Ok(());
        }
        let text = format!(
            "listener {} was removed, or its cache stopped, before it received the first list",
            self.listener.name()
        );
        Err(Error::new(ErrorKind::Cancelled, text))
    }

    /// Notes that the listener's controller waits for the cache on its own: an unfilled cache keeps
    /// no other controller from starting.
    #[doc(hidden)]
    pub fn mark_awaited(&self) {
        if let Some(informer_ref) = &self.informer_ref {
            // Relaxed: the flag guards no data.
            informer_ref.core().is_awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the listener waits for a kind that is not served, and that nothing else of the
    /// operator does.
    #[doc(hidden)]
    pub fn tolerate_absence(&self) {
        self.listener.tolerate_absence();
    }

    /// Waits until the cache has the first list, or has stopped, or the kind was found absent; does
    /// not wait for an optional cache, unless the cache is optional for the sake of other
    /// controllers alone.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    #[doc(hidden)]
    pub async fn filled(&self) {
        let core = self
            .informer_ref
            .as_ref()
            .map(|informer_ref| informer_ref.core())
            .filter(|core| core.is_pending_for(self.is_dispensable));
        if let Some(core) = core {
            core.progress.settled().await;
        }
    }

    /// Returns the reason for which the cache is not filled, with the cache's name.
    #[doc(hidden)]
    pub fn missing(&self) -> Option<String> {
        let core = self
            .informer_ref
            .as_ref()
            .map(|informer_ref| informer_ref.core())
            .filter(|core| core.is_pending_for(self.is_dispensable));
        core.and_then(|core| core.missing())
    }

    /// Whether the cache cannot be read because a right is missing.
    #[doc(hidden)]
    pub fn lacks_right(&self) -> bool {
        let informer = self.informer_ref.as_ref();
        let scopes = informer.into_iter().flat_map(|informer| &informer.core().scopes);
        scopes.into_iter().any(|scope| scope.status.lacks_right())
    }

    /// Removes the listener and waits for a running call. When this returns, no call is running and
    /// none will follow. Harmless when the listener was removed before, or the informer stopped.
    /// Must not be awaited inside the listener.
    ///
    /// # Cancel safety
    /// Safe: the listener is removed by the first poll, a later call waits for the rest.
    pub async fn remove(&self) {
        self.take_out();
        self.listener.wait_for(|state| state.stage == Stage::Ended).await;
    }

    /// Leaves the listener registered for as long as the informer runs for other users. Without
    /// other users the informer stops here, and the log says so: hold the
    /// [`Informer`](crate::informer::Informer), or this registration, instead.
    ///
    /// A listener that holds a [`Store`](crate::store::Store) or an
    /// [`Informer`](crate::informer::Informer) of the same cache counts as such a user: the
    /// listener keeps the informer running until the registry stops. Such a listener should hold
    /// [`Store::non_owning`](crate::store::Store::non_owning).
    ///
    /// For listeners that live as long as the process and have no owner.
    pub fn keep(mut self) {
        self.is_kept = true;
        if let Some(informer_ref) =
            self.informer_ref.as_ref().filter(|informer_ref| Arc::strong_count(informer_ref) == 1)
        {
            tracing::warn!(
                cache = informer_ref.core().name,
                listener = self.listener.name(),
                "nothing else uses this cache, so the kept listener does not keep it running: the \
                 cache stops"
            );
        }
    }

    /// Removes the listener, without waiting for a running call.
    fn take_out(&self) {
        // First the listener, so that no call starts afterwards; then the wake-up of the task that
        // drops the listener.
        self.listener.remove();
        if let Some(informer_ref) = &self.informer_ref {
            // The informer's task drops removed listeners; without a wake-up the task would do so
            // only with the next batch.
            informer_ref.core().apply_queue.wake();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.is_kept {
            self.take_out();
        }
        // Dropped after the removal: the last user of an informer stops it.
        self.informer_ref = None;
    }
}
