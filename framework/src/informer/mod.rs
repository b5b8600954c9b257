//! Applies deltas to the store and tells listeners, once per kind and scope per process.
//!
//! However many controllers look at a kind, it is listed, watched and kept once. Each listener is
//! called inline, in order, with the old and the new state in hand; a work queue behind it is all
//! the buffer that is needed. Kinds run apart: one that is absent, refused or broken delays none.
//!
//! No handler priorities, no periodic resync: a controller that wants to look again asks its queue.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

mod core;
mod registry;
#[cfg(test)]
mod tests;

use self::core::{Core, Synced};
use crate::error::{Error, ErrorKind};
use crate::resource::{ObjectKey, Resource, ResourceExt, ResourceInfo};
use crate::store::{Cached, Event, Store};
use crate::wire::Skim;

pub use registry::InformerRegistry;

/// One change of an object, with the old and the new state in hand.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// New in the cache.
    Added {
        /// The object.
        new: Cached<K>,
        /// Part of the first list, or of what a late listener is told at first?
        is_initial: bool,
    },
    /// Another version of a cached object.
    Updated {
        /// Before.
        old: Cached<K>,
        /// After.
        new: Cached<K>,
    },
    /// Gone.
    Deleted {
        /// The last state told to listeners.
        last: Cached<K>,
        /// The deletion itself was missed (found by a relist, or by a successor of the same name):
        /// `last` may be stale.
        final_state_unknown: bool,
    },
}

impl<K> Change<K> {
    fn of(event: &Event) -> Self {
        match event {
            Event::Added { new, is_initial } => {
                Self::Added { new: Cached::new(Arc::clone(new)), is_initial: *is_initial }
            }
            Event::Updated { old, new } => Self::Updated {
                old: Cached::new(Arc::clone(old)),
                new: Cached::new(Arc::clone(new)),
            },
            Event::Deleted { last, final_state_unknown } => Self::Deleted {
                last: Cached::new(Arc::clone(last)),
                final_state_unknown: *final_state_unknown,
            },
        }
    }
}

/// The shared cache of one kind; cheap to clone.
pub struct Informer<K> {
    core: Arc<Core>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.core))
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&self.core.status()).finish()
    }
}

/// What one cache holds, as the watches have shown it; own writes that they have not are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheView {
    /// The kind.
    pub info: ResourceInfo,
    /// The namespaces that are watched; `None` means all.
    pub namespaces: Vec<Option<String>>,
    /// resourceVersion by key.
    pub versions: BTreeMap<ObjectKey, String>,
    /// Have the listeners been told all that is shown here?
    pub is_told: bool,
}

/// How one informer is doing, for readiness and debug dumps.
#[derive(Clone, Debug)]
pub struct InformerStatus {
    /// The kind.
    pub info: ResourceInfo,
    /// Has the first list been applied and handed to listeners? False while the kind is absent.
    pub synced: bool,
    /// What it is doing or waiting for; the last error, if one is in force.
    pub state: String,
    /// Objects in the cache, those included that do not decode.
    pub objects: usize,
    /// Objects known not to decode.
    pub invalid: usize,
    /// Newest resourceVersion applied and handed to listeners; empty before the first list.
    pub resource_version: String,
}

impl<K> Informer<K> {
    fn new(core: Arc<Core>) -> Self {
        Self { core, kind: PhantomData }
    }
}

impl<K: Resource> Informer<K> {
    /// The cache.
    pub fn store(&self) -> Store<K> {
        Store::new(Arc::clone(&self.core.store))
    }

    /// How it is doing.
    pub fn status(&self) -> InformerStatus {
        self.core.status()
    }

    /// Calls `listener` for each change, in order, never concurrently; a late listener is first
    /// told every cached object. A panic is caught, logged and counted. It must not block: it runs
    /// on the informer's task, while [`InformerRegistry::run`] does.
    pub fn on_change(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.core.listen(Arc::new(move |event| listener(&Change::of(event))));
    }

    /// Waits until the first list has been applied and handed to the listeners. A kind that the API
    /// server does not serve counts as listed, and empty.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the informer stopped first.
    /// # Cancel safety
    /// Safe: dropping it loses nothing.
    pub async fn synced(&self) -> Result<(), Error> {
        let mut sync = self.core.sync();
        match sync.wait_for(|sync| *sync != Synced::Pending).await {
            Ok(sync) if *sync == Synced::Done => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Cancelled,
                format!("the cache of {} stopped before its first list", self.core.store.info()),
            )),
        }
    }

    /// This process wrote `object` and got it back like this: reads of the store show it at once,
    /// until the watch shows it or a later state, for at most 10 s. The object carries the
    /// resourceVersion of the answer. Objects outside the informer's namespaces are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the object does not encode, or has no name or resourceVersion.
    pub fn wrote(&self, object: &K) -> Result<(), Error> {
        if !self.core.covers(object.metadata().namespace.as_deref()) {
            return Ok(());
        }
        let unusable = || {
            let info = self.core.store.info();
            let key = object.key();
            let text = format!(
                "cannot show the written {info} {key} to readers: it does not encode, or has no name or resourceVersion"
            );
            Error::new(ErrorKind::Usage, text)
        };
        let bytes = serde_json::to_vec(object).map_err(|error| unusable().because(error))?;
        let skim = Skim::of(&bytes).map_err(|error| unusable().because(error))?;
        if skim.resource_version.is_empty() {
            return Err(unusable());
        }
        self.core.store.wrote(self.core.store.object(&skim));
        Ok(())
    }

    /// This process deleted the object of that uid, and it is gone (no finalizer held it): reads of
    /// the store do not show it any more, for at most 10 s or until the watch has caught up.
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        self.core.store.deleted(key, uid);
    }
}
