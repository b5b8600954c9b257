//! Status of an informer, for readiness, for waits that name their reasons, and for debug dumps.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::core::InformerCore;
use super::progress::Synced;
use crate::reflector::ReflectorState;
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// The content of a cache, as shown by the watches; own writes that the watches have not shown are
/// left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheView {
    /// Group, version, kind, plural name and scope of the cached kind.
    pub info: ResourceInfo,
    /// The namespaces that are watched; `None` means all.
    pub namespaces: Vec<Option<String>>,
    /// The selector of labels that the cache is limited to.
    pub labels: Option<String>,
    /// The selector of fields that the cache is limited to.
    pub fields: Option<String>,
    /// The resourceVersion of each object that the watches have shown.
    pub versions: BTreeMap<ObjectKey, String>,
    /// Whether the listeners have received all that is shown here.
    pub is_delivered: bool,
}

/// Status of an informer, for readiness and debug dumps.
///
/// A view of a single moment; the fields are read in sequence, so they may differ by a change.
#[derive(Clone, Debug)]
pub struct InformerStatus {
    /// Name: the resource, and the options that distinguish the informer from others: `pods`,
    /// `pods (app=web)`.
    pub name: String,
    /// Group, version, kind, plural name and scope of the cached kind.
    pub info: ResourceInfo,
    /// Whether the operator can be ready without the cache.
    pub is_optional: bool,
    /// Whether the first list has been applied and handed to listeners. False while the kind is
    /// absent, and after a panic of a task that reads the kind.
    pub synced: bool,
    /// Whether the API server does not serve the kind at present.
    pub is_absent: bool,
    /// Whether all listeners wait for a kind that is not served, as reads of reconciles do.
    #[doc(hidden)]
    pub tolerates_absence: bool,
    /// Present activity or wait; the last error, if any is in force.
    pub state: String,
    /// Objects in the cache, those included that do not decode.
    pub objects: usize,
    /// Bytes of the stored content of the objects, without keys and indexes.
    pub bytes: usize,
    /// Objects that a reader could not decode into their type; typed readers skip them.
    pub invalid: usize,
    /// Newest resourceVersion applied and handed to listeners; empty before the first list.
    pub resource_version: String,
    /// Time since that version was received; of several namespaces, the longest. `None` before the
    /// first lists. A healthy watch of an idle kind receives a bookmark about once a minute.
    pub age: Option<Duration>,
    /// Time since the server last sent anything, be it a bookmark or a part of a list; of several
    /// namespaces, the longest. `None` until each scope has received something.
    pub silence: Option<Duration>,
    /// Deltas that the reflectors have received and the cache has not applied; 0 at rest.
    pub queued: usize,
    /// Listeners with a task of their own, in the order of their registration.
    pub listeners: Vec<ListenerStatus>,
}

/// Status of a listener that has a task of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Name; the place of the registration, unless the listener was given a name.
    pub name: String,
    /// Whether the listener has received the first lists whole.
    pub synced: bool,
    /// Objects with changes that wait to be delivered.
    pub waiting: usize,
}

impl InformerCore {
    /// Returns the content that the watches have shown.
    pub(super) fn view(&self) -> CacheView {
        let versions = self
            .store
            .content()
            .into_iter()
            .map(|object| (object.key().clone(), object.version().to_owned()));
        CacheView {
            info: self.store.info().clone(),
            namespaces: self
                .scopes
                .iter()
                .map(|scope| scope.namespace.as_deref().map(str::to_owned))
                .collect(),
            labels: self.options.labels.clone(),
            fields: self.options.fields.clone(),
            versions: versions.collect(),
            // Read after the content: if no delivery is under way then, the content has been
            // delivered.
            is_delivered: self.is_delivered(),
        }
    }

    /// Returns the informer's status.
    pub(super) fn status(&self) -> InformerStatus {
        // A single time for all ages of the status.
        let now = self.environment.clock.now();
        let queued = self.listeners.all().into_iter();
        let queued = queued.filter(|listener| listener.is_queued() && !listener.is_internal());
        InformerStatus {
            name: self.name.clone(),
            info: self.store.info().clone(),
            is_optional: self.options.is_optional,
            // SeqCst, as at the store by `PanicGuard`: a task that the status of the panic wakes
            // finds the cache not synced.
            synced: self.progress.is_listed()
                && self.progress.now() == Synced::Done
                && !self.has_panicked.load(Ordering::SeqCst),
            is_absent: self
                .scopes
                .iter()
                .any(|one| matches!(one.status.get(), ReflectorState::Absent(_))),
            tolerates_absence: self.tolerates_absence(),
            state: self.state(),
            objects: self.store.seen_len(),
            bytes: self.store.sizes().bytes,
            invalid: self.store.invalid(),
            resource_version: self.progress.version().to_string(),
            age: self.age(now),
            silence: self.last_data_at().map(|at| now.saturating_duration_since(at)),
            queued: self.apply_queue.len(),
            listeners: queued
                .map(|listener| ListenerStatus {
                    name: listener.name().to_owned(),
                    synced: listener.is_synced(),
                    waiting: listener.waiting(),
                })
                .collect(),
        }
    }

    /// Whether there are listeners, and all of them tolerate that the kind is not served.
    fn tolerates_absence(&self) -> bool {
        let listeners = self.listeners.all();
        let mut users = listeners.iter().filter(|listener| !listener.is_internal()).peekable();
        users.peek().is_some() && users.all(|listener| listener.tolerates_absence())
    }

    /// Returns the time since the newest version was received.
    pub(super) fn age(&self, now: Instant) -> Option<Duration> {
        self.progress.newest_at().map(|at| now.saturating_duration_since(at))
    }

    /// Returns the time of the last data from the server, of the scope with the longest silence;
    /// `None` when a scope never received data.
    fn last_data_at(&self) -> Option<Instant> {
        let received = self.scopes.iter().map(|scope| scope.status.freshness().last_received);
        received.min().flatten()
    }

    /// Returns the time since the last data from the server; if there never was any, the time since
    /// the informer was made.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_data_at().unwrap_or(self.made_at))
    }

    /// Returns the reason for which the cache is not synced, if there is such a reason.
    pub(super) fn missing(&self) -> Option<String> {
        match self.progress.now() {
            Synced::Done => None,
            Synced::Stopped => Some(format!("cache {}: stopped", self.name)),
            Synced::Pending => Some(format!("cache {}: {}", self.name, self.state())),
        }
    }

    /// Returns a text for each listener that has not received the first lists.
    pub(super) fn behind(&self) -> Vec<String> {
        let all = self.listeners.all().into_iter();
        let behind = all.filter(|listener| {
            !listener.is_synced() && !listener.is_removed() && !listener.is_internal()
        });
        behind
            .map(|listener| {
                let (name, waiting) = (listener.name(), listener.waiting());
                format!("listener {name} of cache {}: has not received the first list yet, {waiting} objects wait beside those being delivered", self.name)
            })
            .collect()
    }

    /// Returns the state of the scopes: of those in trouble, or of all when none is.
    fn state(&self) -> String {
        let states: Vec<_> =
            self.scopes.iter().map(|scope| (&scope.namespace, scope.status.get())).collect();
        let is_well = |state: &ReflectorState| matches!(state, ReflectorState::Watching);
        let shown = states.iter().filter(|(_, state)| !is_well(state));
        let texts: Vec<_> = shown
            .map(|(namespace, state)| match namespace {
                Some(namespace) => format!("{namespace}: {state}"),
                None => state.to_string(),
            })
            .collect();
        if texts.is_empty() { ReflectorState::Watching.to_string() } else { texts.join("; ") }
    }
}
