//! Keys and references of objects.
//!
//! Queues, caches and indexes hold millions of keys, and lookups are more frequent than new keys.
//! So a key is a shared block with a hash, the parts are borrowed from a single text, and a clone
//! costs an atomic increment.

// DESIGN.md, 51: `ObjectKey` is one text with a precomputed hash
// DESIGN.md, 68: A key keeps its queue slot and notes the slot number

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use triomphe::{Arc, HeaderSlice};

use super::ResourceInfo;

/// The cluster of a key, for operators that work on several. Default: the local cluster.
///
/// The number has a meaning only within one process: the operator assigns the number. Cluster 0 is
/// the local cluster, to which all keys belong unless [`ObjectKey::in_cluster`] names another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u16);

/// Namespace and name of an object; cheap to clone. Ordered by cluster, namespace, then name.
///
/// All clones share one block, so that each key has a separate reference count and not a count
/// shared by all keys of a namespace. A key is two words long and stores a hash, because lookups
/// are far more frequent than new keys.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::{ClusterId, ObjectKey};
///
/// let key = ObjectKey::new(Some("shop"), "web");
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web"));
/// assert_eq!(key.to_string(), "shop/web");
/// // The same name in another cluster is another key.
/// assert_ne!(key.clone().in_cluster(ClusterId(1)), key);
/// // An object of a cluster-scoped kind has no namespace.
/// assert_eq!(ObjectKey::new(None, "node-1").namespace(), None);
/// ```
#[derive(Clone)]
pub struct ObjectKey {
    /// The text is `NAMESPACE/NAME`, or the name alone.
    block: Arc<HeaderSlice<Header, str>>,
}

/// Slot number of a key that no queue has stored yet.
const NO_SLOT: u32 = u32::MAX;

/// Header of the shared block: everything but the text.
struct Header {
    /// Computed once, from cluster, offset and text.
    hash: u64,
    /// Slot in a queue that last noted this key: a hint, which the queue checks.
    slot_hint: AtomicU32,
    /// Offset of the name in the text; 0 in a key without namespace.
    name_at: u16,
    /// Part of the key: objects with the same name in two clusters are different.
    cluster: ClusterId,
}

impl ObjectKey {
    /// A key of the local cluster.
    ///
    /// Neither part is checked: the API server refuses names outside of its rules. An empty
    /// namespace is kept and differs from `None`.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        let Some(namespace) = namespace else {
            return Self::of(ClusterId::default(), 0, name);
        };
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        // API servers limit both parts to 253 bytes. A longer namespace makes a name with a slash.
        let name_at = u16::try_from(namespace.len() + 1).unwrap_or(0);
        Self::of(ClusterId::default(), name_at, &text)
    }

    /// Builds a key from a text and computes the hash.
    fn of(cluster: ClusterId, name_at: u16, text: &str) -> Self {
        // Without a random seed, so that the hash is the same in every run. Tables that outsiders
        // could fill with names of their choice hash the value once more with a seed.
        let mut hasher = DefaultHasher::new();
        hasher.write_u16(cluster.0);
        hasher.write_u16(name_at);
        hasher.write(text.as_bytes());
        let header =
            Header { hash: hasher.finish(), slot_hint: AtomicU32::new(NO_SLOT), name_at, cluster };
        Self { block: Arc::from_header_and_str(header, text) }
    }

    /// The same name in another cluster.
    ///
    /// A key that belongs to that cluster already is returned unchanged; otherwise a new block is
    /// made, and clones of this key keep theirs.
    #[must_use]
    pub fn in_cluster(self, cluster: ClusterId) -> Self {
        if self.cluster() == cluster {
            return self;
        }
        Self::of(cluster, self.block.header.name_at, self.text())
    }

    /// Id of the cluster that has the object; that of the operator unless the object is watched in
    /// another cluster.
    pub fn cluster(&self) -> ClusterId {
        self.block.header.cluster
    }

    /// The parts that two equal keys share besides their text: cheap to compare first.
    fn known(&self) -> (u64, u16, ClusterId) {
        let Header { hash, name_at, cluster, .. } = self.block.header;
        (hash, name_at, cluster)
    }

    /// `NAMESPACE/NAME`, or the name alone.
    fn text(&self) -> &str {
        &self.block.slice
    }

    /// Offset of the name in the text.
    fn name_at(&self) -> usize {
        usize::from(self.block.header.name_at)
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.text().get(..self.name_at().checked_sub(1)?)
    }

    /// Name of the object, unique among the objects of a kind in a namespace.
    pub fn name(&self) -> &str {
        self.text().get(self.name_at()..).unwrap_or_default()
    }

    /// Slot that a queue noted last in this key or a clone. A hint, which the queue has to check.
    #[doc(hidden)]
    pub fn slot_hint(&self) -> Option<u32> {
        // Relaxed: the slot publishes no other memory, and a stale slot fails the queue's check.
        Some(self.block.header.slot_hint.load(Relaxed)).filter(|slot| *slot != NO_SLOT)
    }

    /// Notes the slot in which a queue has put the key.
    #[doc(hidden)]
    pub fn set_slot_hint(&self, slot: u32) {
        self.block.header.slot_hint.store(slot, Relaxed);
    }

    /// The parts in their order of comparison; texts compare by their bytes.
    fn parts(&self) -> (ClusterId, Option<&[u8]>, &[u8]) {
        let (text, name_at) = (self.text().as_bytes(), self.name_at());
        let namespace = name_at.checked_sub(1).and_then(|end| text.get(..end));
        (self.cluster(), namespace, text.get(name_at..).unwrap_or_default())
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        // Clones share the block, and most different keys differ in the hash: few texts are
        // compared.
        Arc::ptr_eq(&self.block, &other.block)
            || (self.known() == other.known() && self.text() == other.text())
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.block.header.hash);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.block, &other.block) {
            return Ordering::Equal;
        }
        self.parts().cmp(&other.parts())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A reference to an object of some kind, in the form of events and owner references.
///
/// Equal references have equal uids, or both none: compare [`key`](Self::key) where the uid may be
/// unknown on either side.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::{ObjectKey, ObjectRef, ResourceInfo};
///
/// let web = ObjectRef {
///     info: ResourceInfo::of::<k8s_openapi::api::apps::v1::Deployment>(),
///     key: ObjectKey::new(Some("shop"), "web"),
///     uid: None,
/// };
/// assert_eq!(web.to_string(), "Deployment shop/web");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Group, version, kind, plural name and scope of the object.
    pub info: ResourceInfo,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Uid, when known.
    pub uid: Option<String>,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.info.kind, self.key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hash_of(key: &ObjectKey) -> u64 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn keys_are_equal_when_all_of_their_parts_are_and_hash_alike_then() {
        let keys = || {
            let other = ClusterId(1);
            [
                ObjectKey::new(None, ""),
                ObjectKey::new(None, "a"),
                ObjectKey::new(None, "a/b"),
                ObjectKey::new(Some(""), "a"),
                ObjectKey::new(Some("a"), "b"),
                ObjectKey::new(Some("a"), "b").in_cluster(other),
                ObjectKey::new(Some("a/b"), "c"),
                ObjectKey::new(Some("a"), "b/c"),
            ]
        };
        for (at, a) in keys().iter().enumerate() {
            for (other, b) in keys().iter().enumerate() {
                assert_eq!(a == b, at == other, "{a} {b}");
                assert_eq!(hash_of(a) == hash_of(b), at == other, "{a} {b}");
                assert_eq!(a.cmp(b) == Ordering::Equal, at == other, "{a} {b}");
            }
        }
        let back = ObjectKey::new(Some("a"), "b").in_cluster(ClusterId(1));
        assert_eq!(back.in_cluster(ClusterId::default()), ObjectKey::new(Some("a"), "b"));
    }

    #[test]
    fn a_key_has_its_parts() {
        let parts = |key: ObjectKey| (key.namespace().map(str::to_owned), key.name().to_owned());
        assert_eq!(parts(ObjectKey::new(None, "a")), (None, "a".into()));
        assert_eq!(parts(ObjectKey::new(Some(""), "a")), (Some("".into()), "a".into()));
        assert_eq!(parts(ObjectKey::new(Some("ä/b"), "ö")), (Some("ä/b".into()), "ö".into()));
        assert_eq!(ObjectKey::new(Some("shop"), "home").to_string(), "shop/home");
        assert_eq!(format!("{:?}", ObjectKey::new(None, "home")), "home");
    }

    #[test]
    fn keys_are_ordered_by_cluster_then_namespace_then_name() {
        let keys = [
            ObjectKey::new(None, "z"),
            ObjectKey::new(Some("a"), "b"),
            ObjectKey::new(Some("a"), "c"),
            // As texts they would compare the other way round: `-` comes before `/`.
            ObjectKey::new(Some("a-a"), "a"),
            ObjectKey::new(Some("b"), "a"),
            ObjectKey::new(None, "a").in_cluster(ClusterId(1)),
        ];
        let sorted: BTreeSet<_> = keys.iter().rev().cloned().collect();
        assert!(sorted.iter().eq(&keys));
    }
}
