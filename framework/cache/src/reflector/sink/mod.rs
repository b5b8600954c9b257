//! Targets of a reflector.
//!
//! A sink is called by a single reflector, on a single task. A sink must not wait in any method but
//! `hand_over`: the others run while a chunk of the network's bytes is borrowed.

mod apply_queue;
mod delta_writer;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::store::{self, MarkKind};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::wire::{MetadataScan, Undecodable, times};

pub(crate) use apply_queue::{StoreApplyQueue, StoreDelta};
pub(crate) use delta_writer::{BatchSink, DeltaWriter};

/// An object as received, borrowed from the bytes that were read.
#[derive(Clone, Copy)]
pub struct RawObject<'a> {
    /// The object's metadata, borrowed from the same bytes.
    scan: &'a MetadataScan<'a>,
    /// The object's JSON.
    bytes: &'a [u8],
}

impl<'a> RawObject<'a> {
    pub(super) fn new(scan: &'a MetadataScan<'a>, bytes: &'a [u8]) -> Self {
        Self { scan, bytes }
    }

    /// Returns namespace and name, under which a store keeps the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// Returns the namespace; `None` for kinds that have none.
    pub fn namespace(&self) -> Option<&str> {
        self.scan.namespace.as_deref()
    }

    /// Returns the name; never empty, as an item without a readable name is not handed over.
    pub fn name(&self) -> &str {
        &self.scan.name
    }

    /// Returns the uid; empty only for servers that give none.
    pub fn uid(&self) -> &str {
        &self.scan.uid
    }

    /// Returns the resourceVersion, by which a store tells a newer state from an older one.
    pub fn resource_version(&self) -> &str {
        &self.scan.resource_version
    }

    /// Returns the object's JSON as received; of an object that was too large only the beginning.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the object.
    ///
    /// # Errors
    /// [`Decode`](ErrorKind::Decode) when the bytes are not a `K`.
    pub fn decode<K: Resource>(&self) -> Result<K, Error> {
        times::from_slice(self.bytes).map_err(|error| {
            let text = format!("{} does not decode into its type", self.key());
            Error::new(ErrorKind::Decode, text)
                .because(Undecodable::explain::<K>(self.bytes, &error))
        })
    }
}

/// Key and version only: the content may be that of a Secret.
impl fmt::Debug for RawObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.resource_version())
    }
}

/// A step of a reflector, in the order of its deltas: a sink that has handled all deltas before
/// may act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamProgress {
    /// Everything up to this version has been handed over.
    Reached,
    /// The list is complete as of this version: objects that the list did not show are gone.
    Listed,
    /// The list is complete except for items whose name could not be read: objects that the list
    /// did not show may still exist.
    ListedInPart,
    /// The kind is not served: all objects are gone.
    Absent,
    /// The server's versions went backwards (a restored backup): versions from before do not
    /// compare with those that follow. The list that has just ended is void, and another list
    /// follows.
    NewEpoch,
}

/// The receiver of a reflector's objects. All methods are called in order, by a single caller.
///
/// A list is a run: [`list_begins`](Self::list_begins), [`listed`](Self::listed) for each object, a
/// [`StreamProgress::Listed`]; an object that no `listed`, `changed` or `kept` of the run has shown
/// is gone then. A run may break off; the next `list_begins` begins another, and the objects that
/// the broken run has shown remain valid.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::collections::BTreeSet;
/// use windlass::reflector::{RawObject, ReflectorSink, StreamProgress};
/// use windlass::resource::ObjectKey;
///
/// /// The keys of the existing objects, and no content.
/// #[derive(Default)]
/// struct Keys {
///     known: BTreeSet<ObjectKey>,
///     /// Keys that the list under way has shown.
///     run: BTreeSet<ObjectKey>,
/// }
///
/// impl ReflectorSink for Keys {
///     fn list_begins(&mut self) {
///         self.run.clear();
///     }
///     fn listed(&mut self, seen: &RawObject<'_>) {
///         self.changed(seen);
///     }
///     fn changed(&mut self, seen: &RawObject<'_>) {
///         self.known.insert(seen.key());
///         self.run.insert(seen.key());
///     }
///     fn deleted(&mut self, seen: &RawObject<'_>) {
///         self.known.remove(&seen.key());
///         self.run.remove(&seen.key());
///     }
///     fn kept(&mut self, seen: &RawObject<'_>) {
///         self.changed(seen);
///     }
///     fn reached(&mut self, step: StreamProgress, _version: &str) {
///         match step {
///             // Objects that the whole list did not show are gone.
///             StreamProgress::Listed => self.known = std::mem::take(&mut self.run),
///             StreamProgress::Absent => self.known.clear(),
///             StreamProgress::Reached
///             | StreamProgress::ListedInPart
///             | StreamProgress::NewEpoch => {}
///         }
///     }
/// }
/// ```
pub trait ReflectorSink: Send {
    /// Called when a list begins.
    fn list_begins(&mut self);

    /// Called for an object that a list shows.
    fn listed(&mut self, seen: &RawObject<'_>);

    /// Called for an object that a watch shows as created or changed.
    fn changed(&mut self, seen: &RawObject<'_>);

    /// Called for an object that is gone, with the last state.
    fn deleted(&mut self, seen: &RawObject<'_>);

    /// Called for an object that exists with a state that is too large: the last known state stays.
    fn kept(&mut self, seen: &RawObject<'_>);

    /// Called when everything handed over so far belongs to this version.
    fn reached(&mut self, step: StreamProgress, version: &str);

    /// Returns whether the list under way has shown an object in an older state than the state
    /// handed over before, in the same epoch. A list is a consistent read, so the server's store
    /// was set back then. False by default: a target need not compare.
    fn was_set_back(&self) -> bool {
        false
    }

    /// Called after each network read, which may have returned many objects: hands over the
    /// collected objects, and waits until more can be taken. The reflector reads no further
    /// meanwhile. Dropping the future must lose nothing.
    fn hand_over(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Returns whether a resync that is due
    /// ([`ReflectorOptions::resync`](super::ReflectorOptions::resync)) is wanted. True by default.
    fn should_resync(&self) -> bool {
        true
    }

    /// Delivers the sink's content to the listeners again. Does nothing by default.
    ///
    /// # Errors
    /// Any error ends the watch, and the state is listed anew after a pause.
    fn resync(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl From<StreamProgress> for MarkKind {
    fn from(step: StreamProgress) -> Self {
        match step {
            StreamProgress::Reached => Self::Reached,
            StreamProgress::Listed => Self::Listed,
            StreamProgress::ListedInPart => Self::ListedInPart,
            StreamProgress::Absent => Self::Absent,
            StreamProgress::NewEpoch => Self::NewEpoch,
        }
    }
}

impl ReflectorSink for DeltaWriter {
    fn list_begins(&mut self) {
        self.begin_generation();
    }

    fn listed(&mut self, seen: &RawObject<'_>) {
        DeltaWriter::listed(self, seen.scan);
    }

    fn changed(&mut self, seen: &RawObject<'_>) {
        DeltaWriter::changed(self, seen.scan);
    }

    fn deleted(&mut self, seen: &RawObject<'_>) {
        self.delete(seen.scan);
    }

    fn kept(&mut self, seen: &RawObject<'_>) {
        self.keep(seen.scan);
    }

    fn reached(&mut self, step: StreamProgress, version: &str) {
        if step == StreamProgress::NewEpoch {
            // Versions of two epochs do not compare: a cached object of an equal version may be
            // another state.
            self.run.epoch = self.run.epoch.saturating_add(1);
            self.reuse = false;
        }
        self.mark(step.into(), version);
        if matches!(step, StreamProgress::Listed | StreamProgress::ListedInPart) {
            self.reuse = true;
            self.is_initial = false;
        }
    }

    fn was_set_back(&self) -> bool {
        self.has_older_object
    }

    fn hand_over(&mut self) -> impl Future<Output = ()> + Send {
        self.flush()
    }
}

/// A target that fills a [`Store`](store::Store) directly, without listeners: made by
/// [`Reflector::into_store`](super::Reflector::into_store).
pub struct StoreTarget {
    /// Turns objects into deltas.
    writer: DeltaWriter,
}

impl fmt::Debug for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreTarget({})", self.writer.store.info())
    }
}

/// Most deltas applied under a single lock.
const BATCH: usize = 128;

/// A sink that applies deltas to a store, without listeners.
struct StoreSink(Arc<store::StoreCore>);

impl BatchSink for StoreSink {
    fn offer(&self, batch: &mut Vec<StoreDelta>) {
        while batch.len() > BATCH {
            let rest = batch.split_off(BATCH);
            self.0.apply(std::mem::replace(batch, rest));
        }
        self.0.apply(std::mem::take(batch));
    }
}

impl StoreTarget {
    /// Creates the target of a scope.
    pub(super) fn new(store: Arc<store::StoreCore>, namespace: Option<Arc<str>>) -> Self {
        let sink = Arc::new(StoreSink(Arc::clone(&store)));
        Self { writer: DeltaWriter::new(store, sink, 0, namespace) }
    }
}

impl ReflectorSink for StoreTarget {
    fn list_begins(&mut self) {
        ReflectorSink::list_begins(&mut self.writer);
    }

    fn listed(&mut self, seen: &RawObject<'_>) {
        ReflectorSink::listed(&mut self.writer, seen);
    }

    fn changed(&mut self, seen: &RawObject<'_>) {
        ReflectorSink::changed(&mut self.writer, seen);
    }

    fn deleted(&mut self, seen: &RawObject<'_>) {
        ReflectorSink::deleted(&mut self.writer, seen);
    }

    fn kept(&mut self, seen: &RawObject<'_>) {
        ReflectorSink::kept(&mut self.writer, seen);
    }

    fn reached(&mut self, step: StreamProgress, version: &str) {
        ReflectorSink::reached(&mut self.writer, step, version);
        // Applied at once: a caller that waits for the reflector's state reads the store next.
        if step != StreamProgress::Reached {
            self.writer.offer();
        }
    }

    fn was_set_back(&self) -> bool {
        ReflectorSink::was_set_back(&self.writer)
    }

    fn hand_over(&mut self) -> impl Future<Output = ()> + Send {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn an_object_that_is_seen_names_itself_and_decodes() {
        let text = r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"data":{"k":"v"}}"#;
        let scan = MetadataScan::of(text.as_bytes()).expect("it has metadata");
        let seen = RawObject::new(&scan, text.as_bytes());
        assert_eq!(seen.key(), ObjectKey::new(Some("n"), "a"));
        assert_eq!((seen.namespace(), seen.name()), (Some("n"), "a"));
        assert_eq!((seen.uid(), seen.resource_version()), ("u", "7"));
        assert_eq!(seen.bytes(), text.as_bytes());
        let map: ConfigMap = seen.decode().expect("it is a config map");
        assert_eq!(map.metadata.name.as_deref(), Some("a"));
        let shown = format!("{seen:?}");
        assert!(shown.ends_with("@7") && !shown.contains('v'), "key and version only: {shown}");
    }
}
