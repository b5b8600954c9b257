//! A cache of a real server: the history of the objects is known only later, so reads are kept
//! until then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass::informer::{Informer, InformerRegistry, Registration};
use windlass::store::Cached;

use super::content::Content;
use super::kinds::Subject;
use super::listen::{Manner, listen, look_inside, shown};
use super::{Ledger, kinds};
use crate::oracle::{KeyId, Reader, Scope, Shown, Start, View, Violation};

/// A cache whose reads are judged in the end. The keys of the kind must be in the book already.
#[derive(Debug)]
pub struct LateCache<K> {
    observer: String,
    scope: Scope,
    informer: Informer<K>,
    ledger: Ledger,
    start: Start,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The objects that the cache showed on reporting that it was synced.
    synced: Option<BTreeMap<KeyId, Shown>>,
    /// The objects that the cache showed later, in order, and the reported version.
    reads: Vec<(u64, View)>,
    listeners: Vec<(usize, Registration)>,
}

impl<K: Subject> LateCache<K> {
    /// Creates the cache of `registry`, with a listener for each of `manners`. Call this function
    /// before the registry runs.
    pub fn new(
        registry: &InformerRegistry,
        observer: &str,
        scope: Scope,
        ledger: &Ledger,
        manners: &[Manner],
    ) -> Arc<Self> {
        let observer = format!("{observer}, {}", kinds::NAMES[K::KIND]);
        let informer = registry.informer::<K>();
        let kept = Kept {
            listeners: manners
                .iter()
                .map(|manner| {
                    let name = format!("{observer}, listener ({manner:?})");
                    listen(&informer, ledger, &name, &scope, *manner)
                })
                .collect(),
            ..Kept::default()
        };
        let start = Start::now(ledger.book().history(K::KIND));
        let ledger = ledger.clone();
        Arc::new(Self { observer, scope, informer, ledger, start, kept: Mutex::new(kept) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the list, and the objects that the index finds at the same moment.
    fn view(&self) -> View {
        let store = self.informer.store().snapshot();
        let objects = store.list();
        if let Some(Err(violation)) = objects.first().map(look_inside) {
            self.ledger.book().broken(violation);
        }
        let terms = Content::shards().map(|shard| {
            let found = self.known(&store.by_index(K::BY_SHARD, &shard));
            (shard, found)
        });
        View { list: self.known(&objects), by_term: terms.collect() }
    }

    fn known(&self, objects: &[Cached<K>]) -> Vec<(KeyId, Shown)> {
        let book = self.ledger.book();
        let history = book.history(K::KIND);
        let known = objects.iter().filter_map(|object| {
            let (namespace, name) = (object.key().namespace(), object.key().name());
            Some((history.find_key(namespace.unwrap_or_default(), name)?, shown(object)))
        });
        known.collect()
    }

    /// Waits until the cache reports that it is synced, and keeps the objects shown then.
    pub async fn synced(&self) {
        if self.informer.synced().await.is_ok() {
            let view = self.view().list.into_iter().collect();
            self.kept().synced = Some(view);
        }
    }

    /// Keeps the objects that the cache shows now.
    pub fn read(&self) {
        let version = self.informer.status().resource_version.parse().unwrap_or_default();
        let view = self.view();
        self.kept().reads.push((version, view));
    }

    /// Checks, while the server rests, that the cache shows the server's objects.
    ///
    /// # Errors
    /// The first difference.
    pub fn settled(&self) -> Result<(), Violation> {
        let view = self.view().list.into_iter().collect();
        let reader = Reader::new(&self.observer, self.scope.clone());
        reader.settled(self.ledger.book().history(K::KIND), &view)
    }

    /// Judges all kept reads, now that the history is complete, and forgets them. Returns their
    /// number.
    pub fn judge(&self) -> usize {
        let (synced, reads) = {
            let mut kept = self.kept();
            (kept.synced.take(), std::mem::take(&mut kept.reads))
        };
        let mut book = self.ledger.book();
        let number = reads.len();
        if let Some(view) = synced {
            let history = book.history(K::KIND);
            let synced = self.start.synced(&self.observer, history, &self.scope, &view);
            book.note(synced);
        }
        let mut reader = Reader::new(&self.observer, self.scope.clone());
        let term = |serial| vec![Content { serial }.shard()];
        for (version, view) in reads {
            let forward = reader.version(version, || 0);
            book.note(forward);
            let read = reader.read(book.history(K::KIND), &view, term);
            book.note(read);
        }
        number
    }

    /// Removes the listeners: from then on they must not receive any event.
    pub async fn silence(&self) {
        let listeners = std::mem::take(&mut self.kept().listeners);
        for (number, registration) in listeners {
            registration.remove().await;
            self.ledger.book().remove(number);
        }
    }
}
