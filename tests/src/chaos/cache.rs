//! A cache under observation: reads, listeners, start.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use windlass::informer::{CacheOptions, Informer, InformerRegistry, Registration};
use windlass::resource::{ObjectKey, Selector};
use windlass::store::Cached;

use super::content::Content;
use super::kinds::Subject;
use super::listen::{Manner, listen, look_inside, shown};
use super::stats::{Stats, by_label};
use super::{Ledger, kinds};
use crate::oracle::{KeyId, Reader, Scope, Shown, Start, View, Violation};

/// Least time for which reads show an own write, or report that they do not.
const OWN_WRITE: Duration = Duration::from_secs(10);

/// A cache of some kind.
pub trait Watched: Debug + Send + Sync {
    /// Returns the number of the cache's kind.
    fn kind(&self) -> usize;
    /// Returns the part of the kind that the cache watches.
    fn scope(&self) -> &Scope;
    /// Reads everything and compares; `is_exact` when no other task can run meanwhile.
    fn read(&self, is_exact: bool);
    /// Compares the shown objects with the server's, while the server rests.
    ///
    /// # Errors
    /// The first difference.
    fn settled(&self) -> Result<(), Violation>;
    /// Adds a listener, and checks the events received by the time the listener reports that it is
    /// synced.
    fn listen(self: Arc<Self>, manner: Manner);
    /// Removes the listener that was added last, unless few are left; from then on that listener
    /// must not receive any event. Returns false when the listener stays.
    fn unlisten(self: Arc<Self>) -> Pin<Box<dyn Future<Output = bool> + Send>>;
    /// Waits until the cache reports that it is synced, and checks the claim.
    fn synced(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// Notes that this process wrote `object`, which is the state at `position`.
    fn wrote(&self, key: KeyId, position: u64, object: Value);
    /// Notes that this process deleted the object of `uid`; the deletion is the state at
    /// `position`. Returns false when the cache does not show that object.
    fn deleted(&self, key: KeyId, position: u64, uid: &str);
    /// Whether the cache shows an object of this uid.
    fn shows(&self, key: KeyId, uid: &str) -> bool;
    /// Returns the version that the cache reports, and the number of announced new epochs.
    fn reached(&self) -> (u64, u64);
    /// Notes that the cache was stopped: no listener must receive any event any more.
    fn stopped(&self);
}

/// A listener, by number in the book.
#[derive(Clone, Debug)]
struct Attached {
    number: usize,
    registration: Arc<Registration>,
}

/// A cache of `K`. Locks are taken in the order reader, book.
#[derive(Debug)]
pub struct Cache<K> {
    observer: String,
    scope: Scope,
    informer: Informer<K>,
    registry: InformerRegistry,
    ledger: Ledger,
    stats: Stats,
    began: Instant,
    start: Start,
    reader: Mutex<Reader>,
    listeners: Mutex<Vec<Attached>>,
    /// Number of listeners so far.
    most: AtomicU64,
}

impl<K: Subject> Cache<K> {
    /// Creates the cache of `registry`; `observer` names the cache, `options` give the form of the
    /// objects. Call this function before the registry sends any request.
    pub fn new(
        registry: &InformerRegistry,
        observer: &str,
        scope: Scope,
        options: CacheOptions,
        (ledger, stats): (&Ledger, &Stats),
    ) -> Arc<Self> {
        let observer = format!("{observer}, {}", kinds::NAMES[K::KIND]);
        let start = Start::now(ledger.book().history(K::KIND));
        Arc::new(Self {
            informer: informer(registry, &scope, options),
            registry: registry.clone(),
            reader: Mutex::new(Reader::new(&observer, scope.clone())),
            ledger: ledger.clone(),
            stats: stats.clone(),
            began: Instant::now(),
            start,
            listeners: Mutex::default(),
            most: AtomicU64::new(0),
            observer,
            scope,
        })
    }

    /// Declares the index, before the first list.
    pub(super) fn indexed(self: Arc<Self>) -> Arc<Self> {
        let declared = self.informer.store().ensure_index(K::BY_SHARD);
        declared.expect("no object was listed yet");
        self
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Attached>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns keys and versions of these objects; an object that never was is a violation.
    fn known(&self, objects: &[Cached<K>]) -> Vec<(KeyId, Shown)> {
        let mut book = self.ledger.book();
        let mut known = Vec::with_capacity(objects.len());
        for object in objects {
            let (namespace, name) = place(object.key());
            match book.history(K::KIND).find_key(namespace, name) {
                Some(key) => known.push((key, shown(object))),
                None => {
                    let text = "an object that never was";
                    let violation = Violation::new("G-C1", &self.observer, text);
                    book.broken(violation.of(object.key().to_string()));
                }
            }
        }
        known
    }

    /// Returns everything in the cache, and the objects that indexes find.
    fn view(&self, with_terms: bool) -> View {
        let store = self.informer.store();
        let mut view = View { list: self.known(&store.list()), by_term: BTreeMap::new() };
        if !with_terms {
            return view;
        }
        for shard in Content::shards() {
            let found = self.known(&store.by_index(K::BY_SHARD, &shard));
            view.by_term.insert(shard, found);
        }
        for owner in (0..5).map(|owner| format!("owner-{owner}")) {
            let found = self.known(&store.owned_by(&owner));
            view.by_term.insert(owner, found);
        }
        let red = Selector::everything().equals("colour", "red");
        view.by_term.insert("red".to_owned(), self.known(&store.select(None, &red)));
        view
    }

    /// Returns the states of each key that the watch has shown, without own writes.
    fn seen(&self) -> BTreeMap<KeyId, Shown> {
        let store = self.informer.store();
        let book = self.ledger.book();
        let history = book.history(K::KIND);
        let seen = |key| {
            let (namespace, name) = history.place(key);
            let cached = store.get_seen(&ObjectKey::new(Some(namespace), name))?;
            Some((key, shown(&cached)))
        };
        history.keys().filter_map(seen).collect()
    }

    fn key(&self, key: KeyId) -> ObjectKey {
        let book = self.ledger.book();
        let (namespace, name) = book.history(K::KIND).place(key);
        ObjectKey::new(Some(namespace), name)
    }

    fn read_own(&self) {
        let store = self.informer.store();
        // The lock is released here: the checks below take the lock again.
        let own = self.reader().own();
        for key in own {
            let object = self.key(key);
            let view = store.get(&object).map(|cached| shown(&cached));
            let is_stale = store.is_stale(&object);
            let now = self.began.elapsed();
            let mut reader = self.reader();
            let mut book = self.ledger.book();
            let read = reader.read_own(book.history(K::KIND), key, view, is_stale, now);
            book.note(read);
        }
    }
}

fn informer<K: Subject>(
    registry: &InformerRegistry,
    scope: &Scope,
    options: CacheOptions,
) -> Informer<K> {
    if scope.selects.is_some() {
        return registry.informer_with(options.labels("colour=red"));
    }
    match registry.set_options(K::info(), options) {
        Ok(()) => registry.informer_of(K::info()),
        Err(error) => panic!("cannot make a cache: {error}"),
    }
}

fn place(key: &ObjectKey) -> (&str, &str) {
    (key.namespace().unwrap_or_default(), key.name())
}

/// Returns the terms under which an object is found.
fn terms(serial: u64) -> Vec<String> {
    let content = Content { serial };
    let red = Content::is_red(serial).then(|| "red".to_owned());
    [content.shard()].into_iter().chain(content.owner()).chain(red).collect()
}

impl<K: Subject> Watched for Cache<K> {
    fn kind(&self) -> usize {
        K::KIND
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn read(&self, is_exact: bool) {
        self.stats.count("reads of a whole cache");
        self.read_own();
        let view = self.view(is_exact);
        let version = self.informer.status().resource_version.parse().unwrap_or_default();
        let objects = self.informer.store().list();
        let number = usize::try_from(version).unwrap_or_default();
        let inside = objects.get(number % objects.len().max(1)).map(look_inside);
        let mut reader = self.reader();
        let gone_back = reader.version(version, || self.reached().1);
        let mut book = self.ledger.book();
        book.note(gone_back);
        book.note(inside.unwrap_or(Ok(())));
        let read = reader.read(book.history(K::KIND), &view, terms);
        book.note(read);
    }

    fn settled(&self) -> Result<(), Violation> {
        let view = self.seen();
        self.reader().settled(self.ledger.book().history(K::KIND), &view)
    }

    fn listen(self: Arc<Self>, manner: Manner) {
        let number = self.most.fetch_add(1, Ordering::Relaxed);
        let observer = format!("{}, listener {number} ({manner:?})", self.observer);
        let view = self.seen();
        let start = Start::of(self.ledger.book().history(K::KIND), &view);
        let (number, registration) =
            listen(&self.informer, &self.ledger, &observer, &self.scope, manner);
        let attached = Attached { number, registration: Arc::new(registration) };
        self.listeners().push(attached.clone());
        tokio::spawn(async move {
            if attached.registration.synced().await.is_ok() {
                self.stats.count("listeners that said they were synced");
                let mut book = self.ledger.book();
                let history = book.history(K::KIND);
                let delivered = start.received(history, book.of(number));
                let delivered =
                    delivered.and_then(|()| self.start.received(history, book.of(number)));
                book.note(delivered);
            }
        });
    }

    fn unlisten(self: Arc<Self>) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(async move {
            let last = {
                let mut listeners = self.listeners();
                if listeners.len() > 2 { listeners.pop() } else { None }
            };
            let Some(attached) = last else { return false };
            attached.registration.remove().await;
            self.ledger.book().remove(attached.number);
            true
        })
    }

    fn synced(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if self.informer.synced().await.is_err() {
                return;
            }
            self.stats.count("caches that said they were synced");
            let view = self.seen();
            let mut book = self.ledger.book();
            let history = book.history(K::KIND);
            let synced = self.start.synced(&self.observer, history, &self.scope, &view);
            book.note(synced);
        })
    }

    fn wrote(&self, key: KeyId, position: u64, object: Value) {
        let written = serde_json::from_value::<K>(object).map_err(|error| error.to_string());
        let written = written
            .and_then(|object| self.informer.wrote(&object).map_err(|error| error.to_string()));
        let mut reader = self.reader();
        let mut book = self.ledger.book();
        match written {
            Ok(()) => {
                let until = self.began.elapsed() + OWN_WRITE;
                reader.wrote(book.history(K::KIND), key, position, until);
            }
            Err(error) => book.broken(Violation::new("G-C8", &self.observer, error)),
        }
    }

    fn deleted(&self, key: KeyId, position: u64, uid: &str) {
        self.informer.deleted(&self.key(key), uid);
        let mut reader = self.reader();
        let book = self.ledger.book();
        let until = self.began.elapsed() + OWN_WRITE;
        reader.wrote(book.history(K::KIND), key, position, until);
    }

    fn shows(&self, key: KeyId, uid: &str) -> bool {
        let cached = self.informer.store().get_seen(&self.key(key));
        cached.is_some_and(|cached| cached.metadata().uid() == uid)
    }

    fn reached(&self) -> (u64, u64) {
        let version = self.informer.status().resource_version.parse().unwrap_or_default();
        let text = self.registry.environment().metrics.encode();
        let plural = format!("\"{}", kinds::NAMES[K::KIND]);
        // A cache with a separate selector counts with the other caches of the kind, as their
        // announcements do.
        let lists = by_label(&text, "windlass_informer_lists_total", "cause", &plural);
        (version, lists.get("new_epoch").copied().unwrap_or_default())
    }

    fn stopped(&self) {
        for attached in std::mem::take(&mut *self.listeners()) {
            self.ledger.book().remove(attached.number);
        }
    }
}
