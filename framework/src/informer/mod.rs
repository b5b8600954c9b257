//! Applies deltas to the store and tells listeners, once per kind and scope per process.

use std::marker::PhantomData;

use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::error::Error;
use crate::resource::{Resource, ResourceInfo};
use crate::seams::Seams;
use crate::store::{Cached, Store};

/// One change of an object, with the old and the new state in hand.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// New in the cache.
    Added {
        /// The object.
        new: Cached<K>,
        /// Part of the first list?
        is_initial: bool,
    },
    /// Another version of a cached object (or the same one again, at a resync).
    Updated {
        /// Before.
        old: Cached<K>,
        /// After.
        new: Cached<K>,
    },
    /// Gone.
    Deleted {
        /// The last state seen.
        last: Cached<K>,
        /// The deletion itself was missed (found by a relist): `last` may be stale.
        final_state_unknown: bool,
    },
}

/// All informers of one operator: one per kind and scope. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InformerRegistry {
    _todo: (),
}

/// The shared cache of one kind; cheap to clone.
#[derive(Clone, Debug)]
pub struct Informer<K> {
    _kind: PhantomData<fn() -> K>,
}

/// How one informer is doing, for readiness and debug dumps.
#[derive(Clone, Debug)]
pub struct InformerStatus {
    /// The kind.
    pub info: ResourceInfo,
    /// Has the first list been applied and handed to listeners?
    pub synced: bool,
    /// What it is doing or waiting for; the last error, if one is in force.
    pub state: String,
    /// Objects in the cache, and how many of them do not decode.
    pub objects: usize,
    /// Objects known not to decode.
    pub invalid: usize,
    /// Newest resourceVersion seen.
    pub resource_version: String,
}

#[allow(unused_variables, clippy::unimplemented)]
impl InformerRegistry {
    /// Informers over `client`; `namespaces` empty means all.
    pub fn new(client: Client, namespaces: Vec<String>) -> Self {
        unimplemented!()
    }

    /// Clock, randomness and metrics of the client.
    pub fn seams(&self) -> &Seams {
        unimplemented!()
    }

    /// The informer of a kind; made on first use.
    pub fn informer<K: Resource>(&self) -> Informer<K> {
        unimplemented!()
    }

    /// Runs every informer, those of today and those asked for later, until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        unimplemented!()
    }

    /// Waits until every informer has its first list.
    pub async fn synced(&self) {
        unimplemented!()
    }

    /// One line per informer.
    pub fn status(&self) -> Vec<InformerStatus> {
        unimplemented!()
    }
}

#[allow(unused_variables, clippy::unimplemented)]
impl<K: Resource> Informer<K> {
    /// The cache.
    pub fn store(&self) -> Store<K> {
        unimplemented!()
    }

    /// Shows the cache what a write of ours left, before the watch does.
    pub fn wrote(&self, object: &K) -> Result<(), Error> {
        unimplemented!()
    }

    /// Calls `listener` for each change, in order, never concurrently; a late listener is first
    /// told every cached object. A panic is caught and logged. It must not block.
    pub fn on_change(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        unimplemented!()
    }

    /// Waits until the first list has been applied and handed to the listeners.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if the informer stopped first.
    pub async fn synced(&self) -> Result<(), Error> {
        unimplemented!()
    }
}
