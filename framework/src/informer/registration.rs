//! Listening, and ceasing to.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::change::Change;
use super::lease::Lease;
use super::listener::{Identity, Inline, Life, Listener, Standing};
use super::mailbox::{Item, Merging};
use super::options::SHORTEST_RESYNC;
use crate::error::{Error, ErrorKind};
use crate::store::Event;

/// A listener about to be registered: [`Informer::listen`](super::Informer::listen).
#[must_use = "nobody listens before `on_change` is called"]
pub struct Listen<K> {
    lease: Arc<Lease>,
    name: String,
    resync: Option<Duration>,
    kind: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Listen<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listen").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: 'static> Listen<K> {
    pub(super) fn new(lease: Arc<Lease>, caller: &Location<'_>) -> Self {
        let name = format!("{}:{}", caller.file(), caller.line());
        let resync = lease.core().options.resync;
        Self { lease, name, resync, kind: PhantomData }
    }

    /// What it is called in logs and in texts about what is missing. Default: where
    /// [`Informer::listen`](super::Informer::listen) was called, as `src/main.rs:42`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Shows it every cached object again after each such period, at least 1 s, whatever other
    /// listeners asked for. Default: that of [`CacheOptions::resync`](super::CacheOptions::resync).
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(SHORTEST_RESYNC));
        self
    }

    /// Calls `listener` for each change: see [`Informer::on_change`](super::Informer::on_change).
    pub fn on_change(self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) -> Registration {
        self.register(Merging::Latest, move |item| {
            if let Item::Change(event) = item {
                listener(&Change::of(event));
            }
        })
    }

    /// Calls `listener` with the steps of one object since its last call (of one that changes faster
    /// than `listener` returns, the first and the latest seven; those in between are one), and
    /// whether the second is such a sum.
    pub(crate) fn on_steps(
        self,
        listener: impl Fn(&[Event], bool) + Send + Sync + 'static,
    ) -> Registration {
        self.register(Merging::EachStep, move |item| {
            if let Item::Steps(events, is_summed) = item {
                listener(events, *is_summed);
            }
        })
    }

    /// Calls `inline` with each batch of events where it is applied. It must return at once, and
    /// call no code of users.
    pub(crate) fn inline(self, inline: Inline) -> Registration {
        let listener = Listener::inline(self.identity(), inline);
        Registration::new(listener, self.lease)
    }

    fn register(
        self,
        merging: Merging,
        call: impl Fn(&Item) + Send + Sync + 'static,
    ) -> Registration {
        let listener = Listener::queued(self.identity(), merging, self.resync, Box::new(call));
        Registration::new(listener, self.lease)
    }

    fn identity(&self) -> Identity {
        let core = self.lease.core();
        Identity {
            name: self.name.clone(),
            info: core.store.info().clone(),
            metrics: core.meter.metrics().clone(),
            clock: core.seams.clock.clone(),
        }
    }
}

/// A listener that is registered. It is removed when this is dropped; [`keep`](Self::keep) leaves it
/// registered for as long as the informer runs. While it lives, the informer is in use.
#[must_use = "dropping it removes the listener: keep it, or call `keep`"]
pub struct Registration {
    listener: Arc<Listener>,
    lease: Option<Arc<Lease>>,
    is_kept: bool,
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
    fn new(listener: Arc<Listener>, lease: Arc<Lease>) -> Self {
        lease.core().listen(Arc::clone(&listener));
        Self { listener, lease: Some(lease), is_kept: false }
    }

    /// Was the listener told all that the first lists showed? Calls in which it panicked count.
    pub fn has_synced(&self) -> bool {
        self.listener.is_synced()
    }

    /// Waits until the listener was told all that the first lists showed.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] when it was removed, or the informer stopped, before that.
    /// # Cancel safety
    /// Safe: dropping it loses nothing.
    pub async fn synced(&self) -> Result<(), Error> {
        let over = |standing: &Standing| standing.is_synced || standing.life == Life::Ended;
        if self.listener.stands(over).await.is_synced {
            return Ok(());
        }
        let text = format!(
            "listener {} was removed, or its cache stopped, before it was told the first list",
            self.listener.name()
        );
        Err(Error::new(ErrorKind::Cancelled, text))
    }

    /// The listener's controller waits for the cache by itself: its being empty keeps nobody else from
    /// starting.
    pub(crate) fn is_awaited(&self) {
        if let Some(lease) = &self.lease {
            lease.core().is_awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the cache has its first list, or has stopped, or its kind was found absent; not for
    /// one that is optional.
    pub(crate) async fn filled(&self) {
        let core = self.lease.as_ref().map(|lease| lease.core()).filter(|core| core.is_pending());
        if let Some(core) = core {
            core.progress.settled().await;
        }
    }

    /// What keeps the cache from being filled, with its name.
    pub(crate) fn missing(&self) -> Option<String> {
        let core = self.lease.as_ref().map(|lease| lease.core()).filter(|core| core.is_pending());
        core.and_then(|core| core.missing())
    }

    /// Removes the listener and waits for a call that is running. When this returns, no call is
    /// running and none will come. Harmless when it was removed before, or its informer stopped.
    /// Do not wait for it inside the listener.
    ///
    /// # Cancel safety
    /// Safe: the listener is removed by the first poll, a later call waits for the rest.
    pub async fn remove(&self) {
        self.take_out();
        self.listener.stands(|standing| standing.life == Life::Ended).await;
    }

    /// Leaves the listener registered for as long as the informer runs for others. When nobody else
    /// uses it, it stops here, and the log says so: hold the [`Informer`](super::Informer), or this
    /// registration instead.
    ///
    /// A listener that holds a [`Store`](crate::store::Store) or an
    /// [`Informer`](super::Informer) of the same cache is such an other: it keeps its own informer
    /// going until the registry stops. Let it hold [`Store::unheld`](crate::store::Store::unheld).
    pub fn keep(mut self) {
        self.is_kept = true;
        if let Some(lease) = self.lease.as_ref().filter(|lease| Arc::strong_count(lease) == 1) {
            tracing::warn!(
                cache = lease.core().name,
                listener = self.listener.name(),
                "the listener was to be kept, but nobody else uses the cache: it stops"
            );
        }
    }

    fn take_out(&self) {
        self.listener.remove();
        if let Some(lease) = &self.lease {
            lease.core().handoff.wake();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.is_kept {
            self.take_out();
        }
        // The last user of an informer stops it.
        self.lease = None;
    }
}
