//! One informer without its type: the task that applies batches and tells listeners.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{CacheView, InformerStatus};
use crate::metrics::names;
use crate::reflector::{
    Feed, Habits, Handoff, ListWatch, Reflector, ReflectorOptions, State, Status, Wiring,
};
use crate::seams::Seams;
use crate::store::{self, Applied, Event, Mark, Milestone, order};

/// Deltas applied under one lock.
const BATCH: usize = 1000;

/// A listener without its type.
pub(crate) type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// How far the first lists have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// Some scope has not been listed.
    Pending,
    /// Every scope was listed, or its kind is not served; the listeners know it.
    Done,
    /// The informer stopped.
    Stopped,
}

/// One scope of an informer.
struct Scope {
    namespace: Option<Arc<str>>,
    source: Arc<dyn ListWatch>,
    status: Arc<Status>,
    seams: Seams,
}

/// What the applying task has seen of a scope.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// A list was applied, and the kind was not found absent since.
    is_listed: bool,
    /// Listed, or known to be absent.
    is_settled: bool,
    version: Arc<str>,
}

/// The shared part of an informer.
pub(crate) struct Core {
    pub(crate) store: Arc<store::Core>,
    handoff: Arc<Handoff>,
    scopes: Vec<Scope>,
    progress: Mutex<Vec<Progress>>,
    /// Listeners that have not been told the store's content yet.
    newcomers: Mutex<Vec<Listener>>,
    sync: watch::Sender<Synced>,
    /// Is a batch in the store that listeners have not been told whole?
    is_telling: AtomicBool,
    seams: Seams,
    habits: Arc<Habits>,
}

impl Core {
    /// `scopes`: where to read, by namespace.
    pub(crate) fn new(
        store: Arc<store::Core>,
        scopes: Vec<(Option<String>, Arc<dyn ListWatch>)>,
        seams: Seams,
        habits: Arc<Habits>,
    ) -> Arc<Self> {
        let info = store.info().clone();
        let scopes: Vec<_> = scopes
            .into_iter()
            .map(|(namespace, source)| {
                let what = match &namespace {
                    Some(namespace) => format!("{info} in {namespace:?}"),
                    None => info.to_string(),
                };
                Scope {
                    seams: seams.fork(&what),
                    status: Arc::new(Status::new(what)),
                    namespace: namespace.map(Arc::from),
                    source,
                }
            })
            .collect();
        Arc::new(Self {
            store,
            handoff: Arc::default(),
            progress: Mutex::new(vec![Progress::default(); scopes.len()]),
            scopes,
            newcomers: Mutex::default(),
            sync: watch::Sender::new(Synced::Pending),
            is_telling: AtomicBool::new(false),
            seams,
            habits,
        })
    }

    /// What the watches have shown.
    pub(crate) fn view(&self) -> CacheView {
        let versions = self
            .store
            .content()
            .into_iter()
            .map(|object| (object.key().clone(), object.head().resource_version().to_owned()));
        CacheView {
            info: self.store.info().clone(),
            namespaces: self
                .scopes
                .iter()
                .map(|scope| scope.namespace.as_deref().map(str::to_owned))
                .collect(),
            versions: versions.collect(),
            // Read after the content: what is in it and no longer being told was told.
            is_told: !self.is_telling.load(Ordering::SeqCst),
        }
    }

    /// Is `namespace` one that this informer reads?
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.scopes
            .iter()
            .any(|scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace)
    }

    pub(crate) fn listen(&self, listener: Listener) {
        self.newcomers.lock().push(listener);
        self.handoff.wake();
    }

    pub(crate) fn sync(&self) -> watch::Receiver<Synced> {
        self.sync.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.sync.send_replace(Synced::Stopped);
    }

    /// The reflectors, one per scope.
    pub(crate) fn reflectors(&self) -> Vec<Reflector<Feed>> {
        let reflector = |(at, scope): (usize, &Scope)| {
            let (store, handoff) = (Arc::clone(&self.store), Arc::clone(&self.handoff));
            let namespace = scope.namespace.clone();
            let wiring = Wiring {
                seams: scope.seams.clone(),
                status: Arc::clone(&scope.status),
                habits: Arc::clone(&self.habits),
                options: ReflectorOptions::default(),
            };
            let feed = Feed::new(store, handoff, at, namespace);
            Reflector::of_informer(Arc::clone(&scope.source), feed, wiring)
        };
        self.scopes.iter().enumerate().map(reflector).collect()
    }

    /// Applies batches and tells listeners until `stop`. This task alone changes the store, so a
    /// newcomer that it tells the content misses nothing and hears nothing twice.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut listeners = Vec::new();
        loop {
            self.welcome(&mut listeners);
            let (batch, merged) = self.handoff.take(BATCH);
            if batch.is_empty() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    () = self.handoff.filled() => continue,
                }
            }
            self.is_telling.store(true, Ordering::SeqCst);
            let mut applied = self.store.apply(batch);
            applied.dropped += merged;
            for event in &applied.events {
                for listener in &listeners {
                    self.tell(listener, event);
                }
            }
            self.is_telling.store(false, Ordering::SeqCst);
            self.reach(&applied.marks);
            self.measure(&applied);
            if stop.is_cancelled() {
                break;
            }
            // One informer's flood does not keep the others from running.
            tokio::task::yield_now().await;
        }
        self.stop();
    }

    /// Tells newcomers what is in the store.
    fn welcome(&self, listeners: &mut Vec<Listener>) {
        let newcomers = std::mem::take(&mut *self.newcomers.lock());
        if newcomers.is_empty() {
            return;
        }
        let content = self.store.content();
        for newcomer in newcomers {
            for object in &content {
                let event = Event::Added { new: Arc::clone(object), is_initial: true };
                self.tell(&newcomer, &event);
            }
            listeners.push(newcomer);
        }
    }

    fn tell(&self, listener: &Listener, event: &Event) {
        if catch_unwind(AssertUnwindSafe(|| listener(event))).is_err() {
            let info = self.store.info();
            self.seams.metrics.count(
                &names::INFORMER_LISTENER_PANICS,
                &[&info.group_resource()],
                1,
            );
            tracing::error!(resource = %info, object = %event.key(), "a listener panicked; it goes on with the next change");
        }
    }

    /// Everything before these marks has been told.
    fn reach(&self, marks: &[Mark]) {
        let mut progress = self.progress.lock();
        for mark in marks {
            let Some(progress) = progress.get_mut(mark.scope) else { continue };
            match mark.what {
                Milestone::Listed | Milestone::ListedInPart => {
                    progress.is_listed = true;
                    progress.is_settled = true;
                }
                Milestone::Absent => {
                    progress.is_listed = false;
                    progress.is_settled = true;
                }
                Milestone::Reached | Milestone::NewEpoch => {}
            }
            progress.version = Arc::clone(&mark.resource_version);
        }
        if progress.iter().all(|progress| progress.is_settled) {
            self.sync.send_if_modified(|sync| {
                let is_news = *sync == Synced::Pending;
                if is_news {
                    *sync = Synced::Done;
                }
                is_news
            });
        }
    }

    fn measure(&self, applied: &Applied) {
        let info = self.store.info();
        let resource = info.group_resource();
        let metrics = &self.seams.metrics;
        if applied.dropped > 0 {
            metrics.count(&names::INFORMER_DROPPED, &[&resource, "not_newer"], applied.dropped);
        }
        let labels = [&*info.kind, &*info.group, &*info.version, &*info.plural];
        metrics.set(&names::INFORMER_OBJECTS, &labels, self.store.seen_len() as f64);
        metrics.set(&names::INFORMER_INVALID, &labels, self.store.invalid() as f64);
        metrics.set(&names::INFORMER_BYTES, &labels, self.store.bytes() as f64);
        metrics.set(&names::INFORMER_QUEUED, &labels, self.handoff.len() as f64);
        let version = self.version();
        let last_digits = version.get(version.len().saturating_sub(15)..).unwrap_or_default();
        metrics.set(&names::INFORMER_VERSION, &labels, last_digits.parse().unwrap_or_default());
    }

    /// The newest version that has been applied and told.
    fn version(&self) -> Arc<str> {
        let progress = self.progress.lock();
        let newest = progress
            .iter()
            .map(|progress| &progress.version)
            .reduce(|a, b| if order(a, b).is_none_or(std::cmp::Ordering::is_lt) { b } else { a });
        newest.map(Arc::clone).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> InformerStatus {
        let synced = self.progress.lock().iter().all(|progress| progress.is_listed);
        InformerStatus {
            info: self.store.info().clone(),
            synced: synced && *self.sync.borrow() != Synced::Stopped,
            state: self.state(),
            objects: self.store.seen_len(),
            invalid: self.store.invalid(),
            resource_version: self.version().to_string(),
        }
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
