//! Reads that become watches: changes of objects that reconciles have read wake the readers.
//!
//! Each read type has a source: a listener at the cache of the kind, and the indexes by whose
//! values the type was read. A source exists while a read of the source is registered or in
//! progress; the cache runs as long as it has a source or another user.

// DESIGN.md, 155: Reads are registered before the cache is asked
// DESIGN.md, 316: A kind that only reconciles read may be absent

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::enqueue::{EnqueueReason, Enqueuer};
use super::reasons::Reason;
use crate::controller::state::{
    ReadChange, ReadMeters, ReadSelection, ReadSourceRef, ReadTarget, RegisteredReads,
};
use windlass_cache::informer::{Informer, InformerRegistry, Registration};
use windlass_cache::store::{Index, IndexProbe, IndexValue, Object, Store, StoreEvent};
use windlass_core::error::Error;
use windlass_core::metrics::{Metrics, names};
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo, Selector};
use windlass_core::sync::Mutex;

/// Type-erased sources that do not keep themselves running.
type Sources = BTreeMap<TypeId, Weak<dyn Any + Send + Sync>>;

/// Reads of a controller: the registered reads, and the sources.
pub(crate) struct Reads {
    pub(crate) registered: Arc<RegisteredReads>,
    enqueuer: Enqueuer,
    sources: Mutex<Sources>,
    /// Number of the next source.
    next: AtomicU64,
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads").field("registered", &self.registered).finish_non_exhaustive()
    }
}

/// Changes of a read type.
pub(crate) struct ReadSource<K: Resource> {
    pub(crate) number: u64,
    pub(crate) info: ResourceInfo,
    pub(crate) informer: Informer<K>,
    /// The cache of `informer`.
    pub(crate) store: Store<K>,
    /// Delivers the changes.
    pub(crate) registration: Registration,
    /// Whether the registration has been found synced; never reset.
    is_filled: AtomicBool,
    /// Indexes by whose values the kind is read; the place is the number of the index.
    probes: Mutex<Vec<IndexProbe>>,
    /// Whether the kind is, or was, read by labels.
    reads_labels: AtomicBool,
}

impl Reads {
    pub(crate) fn new(
        controller: &str,
        registered: Arc<RegisteredReads>,
        enqueuer: Enqueuer,
        metrics: &Metrics,
    ) -> Arc<Self> {
        registered.set_meters(ReadMeters {
            reads: metrics.gauge(&names::READS, &[controller]),
            wakes: metrics.counter(&names::READ_WAKES, &[controller]),
            widened: metrics.counter(&names::READS_WIDENED, &[controller]),
        });
        let (sources, next) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { registered, enqueuer, sources, next })
    }

    /// Returns the source of a read type; the first reader starts the source.
    pub(crate) fn source<K: Resource>(
        self: &Arc<Self>,
        informers: &InformerRegistry,
    ) -> Arc<ReadSource<K>> {
        if let Some(source) = self.running::<K>(&self.sources.lock()) {
            return source;
        }
        // Outside of the lock: the start creates a cache, and the listener takes the lock of the
        // reads.
        let made = self.start::<K>(informers);
        let mut sources = self.sources.lock();
        // Another reader may have started the source meanwhile.
        if let Some(source) = self.running::<K>(&sources) {
            drop(sources);
            return source;
        }
        let erased: Arc<dyn Any + Send + Sync> = Arc::clone(&made) as _;
        sources.insert(TypeId::of::<K>(), Arc::downgrade(&erased));
        made
    }

    /// Returns the source of a read type if running.
    fn running<K: Resource>(&self, sources: &Sources) -> Option<Arc<ReadSource<K>>> {
        sources.get(&TypeId::of::<K>())?.upgrade()?.downcast().ok()
    }

    fn start<K: Resource>(self: &Arc<Self>, informers: &InformerRegistry) -> Arc<ReadSource<K>> {
        let informer = informers.informer::<K>();
        let store = informer.store();
        let info = informer.status().info;
        // Relaxed: the number guards no data.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Arc::new_cyclic(|source: &Weak<ReadSource<K>>| {
            let (source, reads) = (source.clone(), Arc::downgrade(self));
            let listen = informer.listen().name("reads of a controller");
            let registration = listen.inline(Box::new(move |events| {
                // Until the source exists there is no reader.
                if let (Some(source), Some(reads)) = (source.upgrade(), reads.upgrade()) {
                    source.deliver(&reads, events);
                }
            }));
            // Only the source's readers wait for the cache.
            registration.mark_awaited();
            registration.tolerate_absence();
            ReadSource {
                number,
                info,
                informer,
                store,
                registration,
                is_filled: AtomicBool::new(false),
                probes: Mutex::default(),
                reads_labels: AtomicBool::new(false),
            }
        })
    }
}

impl<K: Resource> ReadSource<K> {
    /// Returns the reference that a registered read keeps.
    pub(crate) fn reference(self: &Arc<Self>) -> ReadSourceRef {
        ReadSourceRef { number: self.number, holder: Arc::clone(self) as _ }
    }

    /// Whether the cache is filled.
    pub(crate) fn is_filled(&self) -> bool {
        // A separate flag, because the registration takes a lock for the answer. Acquire, with the
        // release below: a reader that sees `true` sees the filled cache. A `false` that overwrites
        // the `true` of another reader only asks the registration again.
        self.is_filled.load(Ordering::Acquire) || {
            let is_filled = self.registration.has_synced();
            self.is_filled.store(is_filled, Ordering::Release);
            is_filled
        }
    }

    /// Returns the target for a value of an index, which is built if new.
    pub(crate) fn value_target<V: IndexValue>(
        &self,
        index: Index<K, V>,
        value: &str,
    ) -> Result<ReadTarget, Error> {
        let probe = self.store.probe(index)?;
        let mut probes = self.probes.lock();
        let known = probes.iter().position(|known| known.is_same(&probe));
        let number = known.unwrap_or_else(|| {
            probes.push(probe);
            probes.len() - 1
        });
        Ok(ReadTarget::Value(number, value.into()))
    }

    /// Returns the target for the objects of a namespace, or of all, that a selector matches.
    pub(crate) fn selection_target(&self, namespace: Option<&str>, labels: Selector) -> ReadTarget {
        // Before the registration: a change that is delivered without labels is older than the
        // registration, and visible to the read. Relaxed: the lock of the cache orders this store
        // and the load in `deliver`. A delivery that loads `false` has changed the cache before the
        // read takes that lock; otherwise the lock would have shown it the store.
        self.reads_labels.store(true, Ordering::Relaxed);
        ReadTarget::Selection(Arc::new(ReadSelection {
            namespace: namespace.map(Into::into),
            labels,
        }))
    }

    /// Wakes the readers of changed objects.
    fn deliver(&self, reads: &Reads, events: &[StoreEvent]) {
        if reads.registered.is_empty() {
            return;
        }
        // A copy: index functions are user code, which must not run under the lock.
        let probes = self.probes.lock().clone();
        // After the change of the cache, see `selection_target`.
        let reads_labels = self.reads_labels.load(Ordering::Relaxed);
        let change = |event| change(event, &probes, reads_labels);
        let changes: Vec<_> = events.iter().filter_map(change).collect();
        let name = |key: &ObjectKey| Arc::from(format!("reads {} {key}", self.info.kind));
        let woken = reads.registered.changed(self.number, &changes, name);
        reads.enqueuer.enqueue(
            woken.into_iter().map(|key| (key, EnqueueReason::changed(Reason::READ))).collect(),
        );
    }
}

/// Returns the change of an event, with the index values before and after the change, and the
/// labels if labels are read; `None` for an event without a change.
fn change<'a>(
    event: &'a StoreEvent,
    probes: &[IndexProbe],
    reads_labels: bool,
) -> Option<ReadChange<'a>> {
    let (old, new) = match event {
        StoreEvent::Added { new, .. } => (None, Some(new)),
        StoreEvent::Updated { old, new } if Arc::ptr_eq(old, new) => return None,
        StoreEvent::Updated { old, new } => (Some(old), Some(new)),
        StoreEvent::Deleted { last, .. } => (Some(last), None),
    };
    let mut values = Vec::new();
    for (number, probe) in probes.iter().enumerate() {
        let mut of_index: Vec<String> =
            old.iter().chain(&new).flat_map(|object| probe.values(object)).collect();
        of_index.sort_unstable();
        of_index.dedup();
        values.extend(of_index.into_iter().map(|value| (number, value)));
    }
    let version = |object: &'a Arc<Object>| object.metadata().resource_version();
    let labels = [old, new].map(|state| {
        state.filter(|_| reads_labels).map(|object| object.metadata().labels().collect())
    });
    let (old, new) = (old.map(version), new.map(version));
    Some(ReadChange { key: event.key(), old, new, values, labels })
}
