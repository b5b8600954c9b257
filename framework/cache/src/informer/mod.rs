//! Shared caches of kinds: applies deltas to the store and notifies listeners, once per kind and
//! scope per process.
//!
//! A kind is listed, watched and cached once, however many controllers read it, and for as long as
//! the cache is in use. Each listener has a separate task and mailbox, merged by key: a slow
//! listener costs as many entries as objects changed meanwhile, and delays neither the others nor
//! the watch. Kinds run independently: a kind that is absent, refused or broken delays no other.
//!
//! Listeners have no order among each other and no priorities.
//!
//! Data flow: reflectors (one for each scope) push deltas into the `apply_queue`; the informer's
//! task applies them to the store and passes the resulting events to the listeners; each listener's
//! task calls the user's function. A reader sees a change before the listeners do, so a listener
//! that reads the store finds at least the state of the call.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

mod apply;
mod change;
mod core;
mod health;
mod invalid;
mod listener;
mod meter;
mod options;
mod progress;
mod registration;
mod registry;
#[cfg(test)]
mod tests;
mod validation;

#[doc(hidden)]
pub use self::listener::states;
use self::progress::Synced;
use self::registry::InformerRef;
use crate::store::Store;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, Resource, ResourceExt};
use windlass_core::wire::{MetadataScan, value_at_path};

pub use change::Change;
pub use health::{CacheView, InformerStatus, ListenerStatus};
pub use invalid::{InvalidObject, InvalidReport};
pub use options::{CacheOptions, DecodeCheckTime};
pub use registration::{Listen, Registration};
pub use registry::{InformerRegistry, Selection, Sources};

/// The shared cache of a kind; cheap to clone. The informer runs while an `Informer`, or a
/// [`Store`] or [`Registration`] made of it, is held; dropping the last of these stops the
/// informer.
///
/// client-go's `SharedIndexInformer`.
///
/// ```no_run
/// # extern crate windlass_cache as windlass;
/// # use windlass::{client::Client, informer::InformerRegistry};
/// # async fn example(client: Client) -> Result<(), windlass::Error> {
/// use k8s_openapi::api::core::v1::Pod;
/// use tokio_util::sync::CancellationToken;
/// use windlass::informer::Change;
///
/// let informers = InformerRegistry::new(client, vec!["shop".into()]);
/// let pods = informers.informer::<Pod>();
/// let listener = pods.on_change(|change| match change {
///     Change::Added { new, .. } => println!("{} appeared", new.key()),
///     Change::Updated { new, .. } => println!("{} changed", new.key()),
///     Change::Deleted { last, .. } => println!("{} is gone", last.key()),
/// });
/// let stop = CancellationToken::new();
/// let task = tokio::spawn({
///     let (informers, stop) = (informers.clone(), stop.clone());
///     async move { informers.run(stop).await }
/// });
/// listener.synced().await?;
/// println!("{} Pods in the first list", pods.store().len());
/// stop.cancel();
/// # let _ = task.await;
/// # Ok(())
/// # }
/// ```
pub struct Informer<K> {
    /// Counts as a user: the informer runs while it has one.
    informer_ref: Arc<InformerRef>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.informer_ref))
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&self.informer_ref.core().status()).finish()
    }
}

impl<K> Informer<K> {
    /// Types an informer.
    fn new(informer_ref: Arc<InformerRef>) -> Self {
        Self { informer_ref, kind: PhantomData }
    }
}

impl<K: Resource> Informer<K> {
    /// Returns the cache, which stays up to date for as long as the store, or a clone of it, is
    /// held.
    ///
    /// Before the first list the store is empty: await [`synced`](Self::synced) before drawing
    /// conclusions from an absence.
    pub fn store(&self) -> Store<K> {
        let informer_ref: Arc<dyn std::any::Any + Send + Sync> =
            Arc::clone(&self.informer_ref) as _;
        Store::new(Arc::clone(&self.informer_ref.core().store)).held_by(informer_ref)
    }

    /// Returns the informer's status.
    ///
    /// Computed at the call, from all scopes.
    pub fn status(&self) -> InformerStatus {
        self.informer_ref.core().status()
    }

    /// Calls `listener` for each change, in order, never concurrently, on a separate task while
    /// [`InformerRegistry::run`] runs. A late listener first receives every cached object.
    ///
    /// A listener may be slow: changes that arrive meanwhile are merged by key, so that each call
    /// leads from the state of an object that the listener received last to the present state;
    /// deletions are never left out. The first call that takes longer than 10 ms blocks a thread of
    /// the runtime; from then on the listener's calls are made on threads that may block, so that
    /// the listener delays no other task. For asynchronous work send the key, or the [`Change`],
    /// into a channel. A panic is caught, logged and counted, and the next change follows.
    #[track_caller]
    pub fn on_change(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) -> Registration {
        self.listen().on_change(listener)
    }

    /// Prepares a listener as [`on_change`](Self::on_change), with a name or a resync period.
    #[track_caller]
    pub fn listen(&self) -> Listen<K> {
        Listen::new(Arc::clone(&self.informer_ref), Location::caller())
    }

    /// Notes that another component reports objects of this kind that do not decode: the registry
    /// does not report them.
    #[doc(hidden)]
    pub fn is_reported_elsewhere(&self) {
        let core = self.informer_ref.core();
        // Relaxed: the flag guards no data.
        core.is_reported_elsewhere.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Keeps the fields that this field manager has applied to objects that arrive from now on.
    #[doc(hidden)]
    pub fn keep_applied_fields(&self, manager: &str) {
        self.informer_ref.core().store.keep_applied_fields(manager);
    }

    /// Whether objects are kept with everything that an apply could set: no transform changes them,
    /// and more than their metadata is kept.
    #[doc(hidden)]
    pub fn keeps_intents(&self) -> bool {
        self.informer_ref.core().store.keeps_intents()
    }

    /// Returns a function that says whether the first list has been applied; the function does not
    /// keep the cache running.
    #[doc(hidden)]
    pub fn sync_probe(&self) -> Box<dyn Fn() -> bool + Send + Sync> {
        let core = Arc::clone(self.informer_ref.core());
        Box::new(move || core.progress.now() == Synced::Done)
    }

    /// Waits until the first list has been applied and handed over to the listeners;
    /// [`Registration::synced`] waits until a listener has processed the list. A kind that the API
    /// server does not serve counts as listed, and empty.
    ///
    /// Waits for ever while the kind cannot be listed; [`status`](Self::status) names the reason.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the informer stopped first.
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn synced(&self) -> Result<(), Error> {
        match self.informer_ref.core().progress.settled().await {
            Synced::Done => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Cancelled,
                format!(
                    "the cache of {} stopped before its first list",
                    self.informer_ref.core().name
                ),
            )),
        }
    }

    /// Records a write of this process, whose answer was `object`: reads of the store show the
    /// object at once, until the watch shows this or a later state, for at most 10 s. The object
    /// carries the resourceVersion of the answer. Objects outside the informer's namespaces are
    /// ignored, and all of them when the cache is limited by a selector.
    ///
    /// Fields that `K` lacks cannot be shown and read as absent until the watch shows these fields.
    /// In a projection, labels that the projection skips and index values of missing fields stay
    /// unchanged, and the projection's objects are ignored when the kind has a
    /// [transform](CacheOptions::transform) that is a function, since that function needs the whole
    /// object. [`wrote_response`](Self::wrote_response) has no such limits.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::informer::Informer;
    /// # use windlass::resource::ResourceExt;
    /// /// Shows the answer to a write before the watch does.
    /// fn show(maps: &Informer<ConfigMap>, answer: &ConfigMap) -> Result<(), windlass::Error> {
    ///     maps.wrote(answer)?;
    ///     println!("{:?}", maps.store().get(&answer.key()));
    ///     Ok(())
    /// }
    /// # let _ = show;
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the object does not encode, or has no name or resourceVersion.
    pub fn wrote(&self, object: &K) -> Result<(), Error> {
        let store = &self.informer_ref.core().store;
        let is_part = K::projection().is_some();
        if !self.shows_own(object.metadata().namespace.as_deref())
            || (is_part && store.is_transformed_whole())
        {
            return Ok(());
        }
        let what = || format!("the written {} {}", store.info(), object.key());
        let bytes = serde_json::to_vec(object).map_err(|error| unusable(&what()).because(error))?;
        let scan = MetadataScan::of(&bytes).map_err(|error| unusable(&what()).because(error))?;
        if scan.resource_version.is_empty() {
            return Err(unusable(&what()));
        }
        if store.wrote(store.object(&scan)) {
            self.informer_ref.core().check_rollback();
        }
        Ok(())
    }

    /// Records a write as [`wrote`](Self::wrote), by the API server's answer as received: the JSON
    /// of the whole object ([`Response::raw`](windlass_client::client::Response::raw)). All fields
    /// of the answer are shown, also those that `K` lacks. A `Context` does this with each write.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the answer is not an object of the kind, or has no name or
    /// resourceVersion.
    pub fn wrote_response(&self, answer: &[u8]) -> Result<(), Error> {
        let store = &self.informer_ref.core().store;
        let what = || format!("the answer to a write of {}", store.info());
        let scan = MetadataScan::of(answer).map_err(|error| unusable(&what()).because(error))?;
        // The answer of a subresource may be of another kind and have the same name.
        let kind = value_at_path(answer, &["kind"]);
        let is_another =
            kind.is_some_and(|kind| kind != format!("{:?}", store.info().kind).as_bytes());
        if scan.resource_version.is_empty() || is_another {
            return Err(unusable(&what()));
        }
        if self.shows_own(scan.namespace.as_deref()) && store.wrote_response(store.object(&scan)) {
            self.informer_ref.core().check_rollback();
        }
        Ok(())
    }

    /// Shows the answer to a dry run, as [`wrote_response`](Self::wrote_response), until
    /// [withdrawn](Self::withdraw); returns the object's key. `None` for an object that the cache
    /// does not show.
    ///
    /// The version in the answer is ignored: that of an update is the old version.
    ///
    /// # Errors
    /// As [`wrote_response`](Self::wrote_response).
    #[doc(hidden)]
    pub fn wrote_in_dry_run(&self, answer: &[u8]) -> Result<Option<ObjectKey>, Error> {
        let store = &self.informer_ref.core().store;
        let what = || format!("the answer to a dry run of {}", store.info());
        let scan = MetadataScan::of(answer).map_err(|error| unusable(&what()).because(error))?;
        let kind = value_at_path(answer, &["kind"]);
        if kind.is_some_and(|kind| kind != format!("{:?}", store.info().kind).as_bytes()) {
            return Err(unusable(&what()));
        }
        if !self.shows_own(scan.namespace.as_deref()) {
            return Ok(None);
        }
        let object = store.object(&scan);
        let key = object.key().clone();
        store.wrote_in_dry_run(object);
        Ok(Some(key))
    }

    /// Hides the object of that uid, which a dry run deleted, until that is
    /// [withdrawn](Self::withdraw).
    #[doc(hidden)]
    pub fn deleted_in_dry_run(&self, key: &ObjectKey, uid: &str) {
        self.informer_ref.core().store.deleted_in_dry_run(key, uid);
    }

    /// Withdraws a dry run: reads of the store show the state that the watch has shown.
    #[doc(hidden)]
    pub fn withdraw(&self, key: &ObjectKey) {
        self.informer_ref.core().store.withdraw(key);
    }

    /// Returns whether own writes to this namespace are shown. A cache that is limited by a
    /// selector shows none.
    #[doc(hidden)]
    pub fn shows_own(&self, namespace: Option<&str>) -> bool {
        let core = self.informer_ref.core();
        core.is_whole() && core.covers(namespace)
    }

    /// Returns whether the informer reads this namespace.
    #[doc(hidden)]
    pub fn covers(&self, namespace: Option<&str>) -> bool {
        self.informer_ref.core().covers(namespace)
    }

    /// Records that this process deleted the object with this uid, and that the object is gone (no
    /// finalizer held it): reads of the store do not show it any more, for at most 10 s or until
    /// the watch has caught up.
    ///
    /// An object of another uid under the key stays visible.
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        self.informer_ref.core().store.deleted(key, uid);
    }
}

/// The error for an own write that cannot be shown.
fn unusable(what: &str) -> Error {
    let text = format!(
        "cannot show {what} to readers: it does not encode, or has no name or resourceVersion"
    );
    Error::new(ErrorKind::Usage, text)
}
