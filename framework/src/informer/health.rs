//! How one informer is doing, for readiness, for waiting with names, and for debug dumps.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::core::Core;
use super::progress::Synced;
use crate::reflector::State;
use crate::resource::{ObjectKey, ResourceInfo};

/// What one cache holds, as the watches have shown it; own writes that they have not are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheView {
    /// The kind.
    pub info: ResourceInfo,
    /// The namespaces that are watched; `None` means all.
    pub namespaces: Vec<Option<String>>,
    /// The selector of labels that the cache is limited to.
    pub labels: Option<String>,
    /// The selector of fields that the cache is limited to.
    pub fields: Option<String>,
    /// resourceVersion by key.
    pub versions: BTreeMap<ObjectKey, String>,
    /// Have the listeners been told all that is shown here?
    pub is_told: bool,
}

/// How one informer is doing, for readiness and debug dumps.
#[derive(Clone, Debug)]
pub struct InformerStatus {
    /// What it is called: the resource, and what sets it apart: `pods`, `pods (app=web)`.
    pub name: String,
    /// The kind.
    pub info: ResourceInfo,
    /// May the operator be ready without it?
    pub is_optional: bool,
    /// Has the first list been applied and handed to listeners? False while the kind is absent, and
    /// when a task that reads it has fallen.
    pub synced: bool,
    /// Does the API server not serve the kind now?
    pub is_absent: bool,
    /// What it is doing or waiting for; the last error, if one is in force.
    pub state: String,
    /// Objects in the cache, those included that do not decode.
    pub objects: usize,
    /// Bytes of what is kept of them.
    pub bytes: usize,
    /// Objects known not to decode.
    pub invalid: usize,
    /// Newest resourceVersion applied and handed to listeners; empty before the first list.
    pub resource_version: String,
    /// How long ago that version came; of several namespaces, where it is longest. `None` before
    /// the first lists. A healthy watch of an idle kind brings a bookmark about once a minute.
    pub age: Option<Duration>,
    /// How long ago its server was heard of last, be it by a bookmark or a part of a list; of
    /// several namespaces, where it is longest. `None` until each was heard of.
    pub heard: Option<Duration>,
    /// Deltas that wait to be applied.
    pub queued: usize,
    /// Its listeners with a task of their own, in the order in which they came.
    pub listeners: Vec<ListenerStatus>,
}

/// How one listener is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// What it is called; where it was registered, unless it was given a name.
    pub name: String,
    /// Was it told all that the first lists showed?
    pub synced: bool,
    /// Objects whose changes wait to be told.
    pub waiting: usize,
}

impl Core {
    /// What the watches have shown.
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
            // Read after the content: what is in it and no longer being told was told.
            is_told: self.is_told(),
        }
    }

    pub(super) fn status(&self) -> InformerStatus {
        let now = self.seams.clock.now();
        let queued = self.audience.all().into_iter();
        let queued = queued.filter(|listener| listener.is_queued() && !listener.is_internal());
        InformerStatus {
            name: self.name.clone(),
            info: self.store.info().clone(),
            is_optional: self.options.is_optional,
            synced: self.progress.is_listed()
                && self.progress.now() == Synced::Done
                && !self.has_fallen.load(Ordering::SeqCst),
            is_absent: self.scopes.iter().any(|one| matches!(one.status.get(), State::Absent(_))),
            state: self.state(),
            objects: self.store.seen_len(),
            bytes: self.store.sizes().bytes,
            invalid: self.store.invalid(),
            resource_version: self.progress.version().to_string(),
            age: self.age(now),
            heard: self.heard_at().map(|at| now.saturating_duration_since(at)),
            queued: self.handoff.len(),
            listeners: queued
                .map(|listener| ListenerStatus {
                    name: listener.name().to_owned(),
                    synced: listener.is_synced(),
                    waiting: listener.waiting(),
                })
                .collect(),
        }
    }

    pub(super) fn age(&self, now: Instant) -> Option<Duration> {
        self.progress.newest_at().map(|at| now.saturating_duration_since(at))
    }

    /// When the scope that waits longest heard of its server; `None` when one never did.
    fn heard_at(&self) -> Option<Instant> {
        let heard = self.scopes.iter().map(|scope| scope.status.freshness().heard);
        heard.min().flatten()
    }

    /// For how long nothing was heard of the server; of one that was never heard of, since the
    /// informer was made.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard_at().unwrap_or(self.made_at))
    }

    /// What keeps it from being synced, if something does.
    pub(super) fn missing(&self) -> Option<String> {
        match self.progress.now() {
            Synced::Done => None,
            Synced::Stopped => Some(format!("cache {}: stopped", self.name)),
            Synced::Pending => Some(format!("cache {}: {}", self.name, self.state())),
        }
    }

    /// The listeners that have not been told the first lists.
    pub(super) fn behind(&self) -> Vec<String> {
        let all = self.audience.all().into_iter();
        let behind = all.filter(|listener| {
            !listener.is_synced() && !listener.is_removed() && !listener.is_internal()
        });
        behind
            .map(|listener| {
                let (name, waiting) = (listener.name(), listener.waiting());
                format!("listener {name} of cache {}: not told the first list yet, {waiting} objects wait beside those that it is being told", self.name)
            })
            .collect()
    }

    /// The state of the scopes: of those in trouble, or of all when there is none.
    fn state(&self) -> String {
        let states: Vec<_> =
            self.scopes.iter().map(|scope| (&scope.namespace, scope.status.get())).collect();
        let is_well = |state: &State| matches!(state, State::Watching);
        let told = states.iter().filter(|(_, state)| !is_well(state));
        let texts: Vec<_> = told
            .map(|(namespace, state)| match namespace {
                Some(namespace) => format!("{namespace}: {state}"),
                None => state.to_string(),
            })
            .collect();
        if texts.is_empty() { State::Watching.to_string() } else { texts.join("; ") }
    }
}
