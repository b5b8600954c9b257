//! Children that are known to be as a graph describes them, without a look into the intent or the
//! child.
//!
//! A description is hashed in the serialized form of the type, together with the other parts of the
//! intent. An apply notes the hash beside that of the intent. While the hash is the same, and the
//! cached child has the uid and the resourceVersion of then, an apply would change nothing.

// DESIGN.md, 206: A child at rest is recognized by its description and its version

use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::is_namespaced;
use crate::controller::state::ChildVersion;
use crate::controller::{Context, Reconciler};
use windlass_cache::store::Cached;
use windlass_core::resource::{FullObject, ObjectKey, Resource, ResourceExt};

impl<C: Reconciler> Context<C> {
    /// Returns the key of a child of a graph, which has the object's name and namespace unless the
    /// child names others. The key of a child that an apply refuses belongs to no object.
    pub(crate) fn child_key<K: Resource>(&self, child: &K) -> ObjectKey {
        let name = Some(child.name()).filter(|name| !name.is_empty());
        let namespace = child.namespace().or_else(|| self.key.namespace());
        let namespace = namespace.filter(|_| is_namespaced::<K>());
        ObjectKey::new(namespace, name.unwrap_or(self.key.name())).in_cluster(self.key.cluster())
    }

    /// Returns the hash of a child's description: equal hashes lead to equal intents, within a
    /// process and for one parent. `place` adds the further parts, and `is_marked` is set for a
    /// child without an owner reference. `None` if the conversion to JSON fails.
    pub(crate) fn description<K: FullObject>(
        &self,
        child: &K,
        place: impl Hash,
        is_marked: bool,
    ) -> Option<u64> {
        hash(child, (self.object.uid(), place, is_marked))
    }

    /// Returns the cached child under that key if the same description was applied to this very
    /// version, and whether the child is known to be ready.
    pub(crate) fn described_child<K: FullObject>(
        &self,
        key: &ObjectKey,
        description: u64,
    ) -> Option<(Cached<K>, bool)> {
        let cached = self.cached::<K>(key)?;
        let applied = &self.shared.memory.applied;
        let is_ready =
            applied.recall_described(&self.key, key, description, version_of(&cached))?;
        // A child that is known to be ready in this version was looked at before, for this owner.
        if !is_ready && !self.holds(&cached) {
            return None;
        }
        Some((cached, is_ready))
    }

    /// Notes that a child from [`described_child`](Self::described_child) is ready by the rule of
    /// its kind, and as long as the version is the same: no such rule calls an object ready for a
    /// time.
    pub(crate) fn note_ready<K: FullObject>(&self, child: &Cached<K>, description: u64) {
        let applied = &self.shared.memory.applied;
        applied.note_ready(&self.key, child.key(), description, version_of(child));
    }
}

/// Returns uid and version of a cached child.
fn version_of<K: Resource>(child: &Cached<K>) -> ChildVersion<'_> {
    let metadata = child.metadata();
    ChildVersion { uid: metadata.uid(), resource_version: metadata.resource_version() }
}

/// Returns the hash of a child in the serialized form of its type, with all additions.
fn hash<K: FullObject>(child: &K, added: (&str, impl Hash, bool)) -> Option<u64> {
    let mut text = HashedText { hasher: DefaultHasher::new(), block: [0; BLOCK], used: 0 };
    serde_json::to_writer(&mut text, child).ok()?;
    text.flush_block();
    (TypeId::of::<K>(), added).hash(&mut text.hasher);
    Some(text.hasher.finish())
}

/// Bytes that are hashed at once.
const BLOCK: usize = 256;

/// Hashes the written bytes. In blocks, since JSON is written a few bytes at a time. Nothing of the
/// text is kept: it may be a Secret's.
struct HashedText {
    hasher: DefaultHasher,
    block: [u8; BLOCK],
    /// Bytes of the block that are still to be hashed.
    used: usize,
}

impl HashedText {
    /// Hashes the bytes that are left.
    fn flush_block(&mut self) {
        self.hasher.write(&self.block[..self.used]);
        self.used = 0;
    }
}

impl io::Write for HashedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    // Used for all JSON: a single step instead of the loop around `write`.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.used + bytes.len() > BLOCK {
            self.flush_block();
        }
        match self.block.get_mut(self.used..self.used + bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            None => self.hasher.write(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;

    fn map(data: &serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "name": "web" }, "data": data }))
            .expect("valid")
    }

    #[test]
    fn a_hash_tells_whatever_changes_the_intent() {
        let base = |child: &ConfigMap| hash(child, ("u", "sites.Children.web", false));
        let web = map(&json!({ "a": "1", "b": "2" }));
        assert_eq!(base(&web), base(&map(&json!({ "b": "2", "a": "1" }))));
        assert!(base(&web).is_some());
        for other in [
            base(&map(&json!({ "a": "1", "b": "3" }))),
            base(&map(&json!({ "a": "1" }))),
            base(&map(&json!({}))),
            hash(&web, ("v", "sites.Children.web", false)),
            hash(&web, ("u", "sites.Children.app", false)),
            hash(&web, ("u", "sites.Children.web", true)),
        ] {
            assert_ne!(other, base(&web));
        }
        let (map, secret) = (ConfigMap::default(), Secret::default());
        let added = ("u", "sites.Children.web", false);
        assert_ne!(hash(&map, added), hash(&secret, added), "another kind");
    }

    #[test]
    fn texts_of_every_length_are_hashed_to_their_end() {
        let mut seen = std::collections::BTreeSet::new();
        for length in 0..3 * BLOCK {
            for end in ["x", "y"] {
                let text = format!("{}{end}", "a".repeat(length));
                seen.insert(hash(&map(&json!({ "a": text, "b": "c" })), ("u", "", false)));
            }
        }
        assert_eq!(seen.len(), 6 * BLOCK);
    }
}
