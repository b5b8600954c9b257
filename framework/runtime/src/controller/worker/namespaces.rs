//! Retries for keys whose reconcile failed because a namespace is being deleted, or does not exist
//! (B14): the keys are tried again when that namespace is deleted or created, and not only when
//! their backoff is over.
//!
//! Such a namespace is watched alone, by name, for as long as a key waits. If the operator may not
//! read namespaces, only the backoff remains.
//!
//! A namespace that merely changes causes no retry, and a state of a namespace causes at most one
//! retry of a key: a server whose cache of namespaces lags is not queried in a loop.

// DESIGN.md, 32: Keys that failed because of a namespace wait for this namespace

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use k8s_openapi::api::core::v1::Namespace;

use crate::controller::Failure;
use crate::controller::outcome::failure::Retry;
use crate::controller::source::Reason;
use crate::workqueue::WorkQueue;
use windlass_cache::informer::{CacheOptions, Informer, InformerRegistry, Registration};
use windlass_cache::store::Representation;
use windlass_core::error::{Error, MissingNamespace};
use windlass_core::resource::{ObjectKey, Selector};
use windlass_core::sync::{Mutex, Notify};

/// Most namespaces that are watched at once, and most keys that wait for a namespace. Keys beyond
/// that only have the backoff.
const MAX_NAMESPACES: usize = 16;
const MAX_KEYS: usize = 4096;

/// Known state of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamespaceState {
    /// Not read yet.
    Unknown,
    Absent,
    /// Being deleted.
    Terminating,
    /// Existing, with this uid.
    Active(String),
}

impl NamespaceState {
    /// Returns the state of a namespace that exists.
    fn of(uid: &str, is_terminating: bool) -> Self {
        if is_terminating { Self::Terminating } else { Self::Active(uid.to_owned()) }
    }
}

/// The keys of a controller that wait for a namespace.
#[derive(Default)]
pub(crate) struct Namespaces {
    waiting: Mutex<WaitingKeys>,
    /// Whether any key waits, so that other reconciles take no lock.
    is_waited_for: AtomicBool,
    changed: Notify,
}

/// By namespace, the waiting keys, each with the state of the last try.
type WaitingKeys = BTreeMap<String, BTreeMap<ObjectKey, NamespaceState>>;

/// A watched namespace.
struct WatchedNamespace {
    informer: Informer<Namespace>,
    _listening: Registration,
    is_listed: bool,
}

impl Namespaces {
    /// Handles a failed reconcile of `key`: the key waits if the failure is due to a namespace.
    pub(crate) fn failed(&self, key: &ObjectKey, failure: &Failure) {
        let missing = missing_namespace(failure).filter(|_| failure.retry != Retry::Never);
        let Some(missing) = missing else { return self.ended(key) };
        let namespace = missing.name.or(key.namespace()).unwrap_or_default();
        if !is_label(namespace) {
            return self.ended(key);
        }
        let mut waiting = self.waiting.lock();
        // The watch may already show a state newer than the start of this reconcile: a key that did
        // not wait before has seen only the answer to the key's own request.
        let seen =
            if missing.is_missing { NamespaceState::Absent } else { NamespaceState::Unknown };
        let tried = waiting.get(namespace).and_then(|keys| keys.get(key)).cloned();
        // A key that goes on waiting changes no watch: the next change of the namespace enqueues
        // the key.
        let is_new = tried.is_none();
        remove(&mut waiting, key);
        if waiting.len() >= MAX_NAMESPACES && !waiting.contains_key(namespace) {
            return;
        }
        let keys = waiting.entry(namespace.to_owned()).or_default();
        if keys.len() < MAX_KEYS {
            keys.insert(key.clone(), tried.unwrap_or(seen));
        }
        // Under the lock of `waiting`, so that the flag is that of the map. `ended` needs no
        // ordering (see there); `SeqCst` costs nothing, as failures are rare.
        self.is_waited_for.store(true, Ordering::SeqCst);
        // A permit stays if `run` is not waiting yet.
        if is_new {
            self.changed.notify_one();
        }
    }

    /// Handles another end of a reconcile of `key`: the key waits no longer.
    pub(crate) fn ended(&self, key: &ObjectKey) {
        // Relaxed: `failed` for this key was called by the worker that had the key before, and the
        // queue orders the two.
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.waiting.lock();
        let watched = waiting.len();
        remove(&mut waiting, key);
        // Under the lock, as in `failed`.
        self.is_waited_for.store(!waiting.is_empty(), Ordering::SeqCst);
        // A namespace without waiting keys: the watch can end.
        if waiting.len() < watched {
            self.changed.notify_one();
        }
    }

    /// Watches the namespaces that keys wait for, and enqueues the keys. Runs until dropped.
    pub(crate) async fn run(
        self: Arc<Self>,
        informers: InformerRegistry,
        queue: WorkQueue<ObjectKey>,
    ) {
        let mut watched = BTreeMap::new();
        loop {
            self.update_watches(&informers, &mut watched);
            for (namespace, watched) in &watched {
                self.enqueue_due(namespace, &watched.state(), &queue);
            }
            // A change that comes during the loop leaves a permit, so no notification is lost.
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                listed = first_list(&watched) => {
                    watched.get_mut(&listed).into_iter().for_each(|watched| watched.is_listed = true);
                }
            }
        }
    }

    /// Starts the wanted watches and ends the others.
    fn update_watches(
        self: &Arc<Self>,
        informers: &InformerRegistry,
        watched: &mut BTreeMap<String, WatchedNamespace>,
    ) {
        let wanted: Vec<String> = self.waiting.lock().keys().cloned().collect();
        watched.retain(|namespace, _| wanted.contains(namespace));
        for namespace in wanted {
            watched
                .entry(namespace)
                .or_insert_with_key(|namespace| self.watch(informers, namespace));
        }
    }

    /// Starts to watch a namespace.
    fn watch(self: &Arc<Self>, informers: &InformerRegistry, namespace: &str) -> WatchedNamespace {
        let options = CacheOptions::default()
            .fields(format!("metadata.name={namespace}"))
            .representation(Representation::Metadata)
            .optional();
        let informer = informers.informer_with::<Namespace>(options);
        let waits = Arc::downgrade(self);
        let listening = informer.listen().inline(Box::new(move |_| {
            waits.upgrade().iter().for_each(|waits| waits.changed.notify_one());
        }));
        WatchedNamespace { informer, _listening: listening, is_listed: false }
    }

    /// Enqueues the keys that were not tried yet since the namespace was deleted or created.
    fn enqueue_due(&self, namespace: &str, state: &NamespaceState, queue: &WorkQueue<ObjectKey>) {
        if !matches!(state, NamespaceState::Absent | NamespaceState::Active(_)) {
            return;
        }
        let mut due = Vec::new();
        let mut waiting = self.waiting.lock();
        for (key, tried) in waiting.get_mut(namespace).into_iter().flatten() {
            if tried != state {
                tried.clone_from(state);
                due.push(key.clone());
            }
        }
        // Released before the keys are added: adding takes the queue's lock.
        drop(waiting);
        if due.is_empty() {
            return;
        }
        tracing::debug!(
            namespace,
            ?state,
            keys = due.len(),
            "the namespace changed: its keys are enqueued"
        );
        // The keys go on waiting until their reconciles end.
        let options = Reason::NAMESPACE.add_options();
        queue.add_each(due.into_iter().map(|key| (key, options)));
    }
}

impl WatchedNamespace {
    /// Returns the namespace's current state.
    fn state(&self) -> NamespaceState {
        if !self.is_listed {
            return NamespaceState::Unknown;
        }
        // The watch selects a single namespace.
        match self.informer.store().select(None, &Selector::everything()).first() {
            None => NamespaceState::Absent,
            Some(found) => {
                NamespaceState::of(found.metadata().uid(), found.metadata().is_terminating())
            }
        }
    }
}

/// Waits until another namespace has been listed; for ever when there is none.
async fn first_list(watched: &BTreeMap<String, WatchedNamespace>) -> String {
    let pending = watched.iter().filter(|(_, watched)| !watched.is_listed);
    let mut lists: Vec<Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>> = Vec::new();
    for (namespace, watched) in pending {
        lists.push(Box::pin(async {
            let listed = watched.informer.synced().await;
            listed.is_ok().then(|| namespace.clone())
        }));
    }
    poll_fn(|cx| {
        let mut listed = None;
        lists.retain_mut(|list| match list.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(name) => {
                listed = listed.take().or(name);
                false
            }
        });
        listed.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Removes a key from every namespace that the key waits for.
fn remove(waiting: &mut WaitingKeys, key: &ObjectKey) {
    waiting.retain(|_, keys| {
        keys.remove(key);
        !keys.is_empty()
    });
}

/// Returns the namespace that caused the failure, or one beside it, if any.
fn missing_namespace(failure: &Failure) -> Option<MissingNamespace<'_>> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(failure.cause());
    while let Some(error) = cause {
        let missing = error.downcast_ref::<Error>().and_then(Error::missing_namespace);
        if missing.is_some() {
            return missing;
        }
        cause = error.source();
    }
    failure.beside().iter().find_map(missing_namespace)
}

/// Whether the name is a valid label: the name comes from a server's text and goes into a selector.
fn is_label(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 63 && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workqueue::QueueSettings;
    use windlass_core::clock::Clock;
    use windlass_core::environment::Environment;
    use windlass_core::error::ApiStatus;
    use windlass_core::metrics::Metrics;
    use windlass_core::rng::Rng;

    struct Rig {
        namespaces: Namespaces,
        queue: WorkQueue<ObjectKey>,
    }

    impl Rig {
        fn new() -> Self {
            let (clock, rng) = (Clock::system(), Rng::seeded(1));
            let environment = Environment { clock, rng, metrics: Metrics::new() };
            let queue = WorkQueue::new(QueueSettings::new("site"), &environment);
            Self { namespaces: Namespaces::default(), queue }
        }

        /// A reconcile of that object ends: the namespace did not exist.
        fn not_there(&self, name: &str) {
            self.not_there_in(name, "tn");
        }

        fn not_there_in(&self, name: &str, namespace: &str) {
            self.namespaces.failed(&key(name), &Self::failure_in(namespace));
        }

        fn failure_in(namespace: &str) -> Failure {
            let answer = r#"{"code":404,"reason":"NotFound","message":"namespaces \"tn\" not found",
                "details":{"name":"tn","kind":"namespaces"}}"#;
            let answer = answer.replace("tn", namespace);
            let status: ApiStatus = serde_json::from_str(&answer).expect("a status");
            Failure::from(Error::from_status("try it", status))
        }

        /// The keys that this state enqueues.
        fn enqueued(&self, state: &NamespaceState) -> Vec<String> {
            self.namespaces.enqueue_due("tn", state, &self.queue);
            let mut names = Vec::new();
            while let Some(work) = self.queue.try_get() {
                names.push(work.key().name().to_owned());
                work.done();
            }
            names
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Some("shop"), name)
    }

    #[tokio::test(start_paused = true)]
    async fn the_watch_is_notified_only_when_the_waiting_keys_change() {
        let rig = Rig::new();
        let is_notified = async || {
            let clock = Clock::system();
            clock.timeout(Duration::from_secs(1), rig.namespaces.changed.notified()).await.is_some()
        };
        rig.not_there("a");
        rig.not_there("b");
        assert!(is_notified().await);
        rig.not_there("a");
        rig.namespaces.ended(&key("of another namespace"));
        rig.namespaces.ended(&key("b"));
        assert!(!is_notified().await, "one still waits, as before");
        rig.namespaces.ended(&key("a"));
        assert!(is_notified().await, "the watch can end");
    }

    #[tokio::test(start_paused = true)]
    async fn b14_a_key_whose_reconcile_ends_after_the_namespace_came_is_woken_too() {
        let (rig, open) = (Rig::new(), NamespaceState::Active("u1".to_owned()));
        rig.not_there("a");
        assert!(rig.enqueued(&NamespaceState::Absent).is_empty(), "it has seen that itself");
        assert_eq!(rig.enqueued(&open), ["a"]);
        // The reconcile was answered before the namespace came.
        rig.not_there("b");
        assert_eq!(rig.enqueued(&open), ["b"]);
        // The server's memory lags: each state enqueues a key once.
        rig.not_there("a");
        rig.not_there("b");
        assert!(rig.enqueued(&open).is_empty());
        assert_eq!(rig.enqueued(&NamespaceState::Absent), ["a", "b"]);
        assert_eq!(rig.enqueued(&NamespaceState::Active("u2".to_owned())), ["a", "b"]);
        rig.namespaces.ended(&key("a"));
        assert_eq!(rig.enqueued(&open), ["b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_and_keys_beyond_the_limits_have_their_backoff_only() {
        let rig = Rig::new();
        let waiting =
            |namespace: &str| rig.namespaces.waiting.lock().get(namespace).map(BTreeMap::len);
        for number in 0..MAX_NAMESPACES {
            rig.not_there_in(&format!("a{number}"), &format!("n{number}"));
        }
        rig.not_there_in("b", "one-more");
        rig.not_there_in("c", "n0");
        assert_eq!((waiting("one-more"), waiting("n0")), (None, Some(2)));
        for number in 0..MAX_KEYS {
            rig.not_there_in(&format!("k{number}"), "n0");
        }
        assert_eq!(waiting("n0"), Some(MAX_KEYS));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_beside_another_one_waits_for_its_namespace() {
        let rig = Rig::new();
        let failure = Failure::from("another child is refused").and(Rig::failure_in("tn"));
        rig.namespaces.failed(&key("a"), &failure);
        assert_eq!(rig.enqueued(&NamespaceState::Active("u1".to_owned())), ["a"]);
    }

    #[test]
    fn a_name_from_an_answer_is_a_label_or_is_not_watched() {
        for (name, is_fine) in [("a-b1", true), ("", false), ("A", false), ("a.b", false)] {
            assert_eq!(is_label(name), is_fine, "{name}");
        }
        assert!(is_label(&"x".repeat(63)) && !is_label(&"x".repeat(64)));
    }

    #[test]
    fn a_namespace_that_is_being_deleted_is_not_open() {
        assert_eq!(NamespaceState::of("u1", true), NamespaceState::Terminating);
        assert_eq!(NamespaceState::of("u1", false), NamespaceState::Active("u1".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn b14_a_namespace_enqueues_its_keys_when_it_opens_and_not_before() {
        let rig = Rig::new();
        rig.not_there("a");
        assert!(rig.enqueued(&NamespaceState::Unknown).is_empty());
        rig.not_there("b");
        assert!(rig.enqueued(&NamespaceState::Absent).is_empty(), "both have seen that themselves");
        assert!(rig.enqueued(&NamespaceState::Terminating).is_empty());
        assert_eq!(rig.enqueued(&NamespaceState::Active("u1".to_owned())), ["a", "b"]);
    }
}
