//! Cache of the last apply to each child, so that a repeated apply costs no request.
//!
//! Losing an entry is always safe: the next apply is sent and changes nothing. Also holds the
//! expectations and the parents that lost a child, because all three are updated by the same events
//! of children.

// DESIGN.md, 13: `apply_owned` skips applies whose intent hash is unchanged
// DESIGN.md, 77: A parent that lost a child is read before the child is made again

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use serde_json::Value;

use super::expectations::ExpectationTracker;
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};

/// Most children remembered per parent; a child beyond costs a request each time.
const MAX_CHILDREN: usize = 4096;
/// Most parents that lost a child and were not looked up since. An entry is removed when the parent
/// creates a child again and when the parent is deleted; the bound matters for parents that a
/// predicate on children keeps from being reconciled.
const MAX_UNCHECKED_PARENTS: usize = 65_536;

/// A child: its `plural.group` and its key.
type Child = (String, ObjectKey);

/// The last apply to one child.
#[derive(Debug)]
struct LastApply {
    intent: u64,
    uid: String,
    resource_version: String,
    hashes: ChildHashes,
}

/// Hashes of a child at its last apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildHashes {
    /// Of the child without what each write changes, by [`comparable`].
    pub(crate) content: u64,
    /// Of the fields that the controller has applied, and of their values; `None` when they are not
    /// known.
    pub(crate) owned: Option<u64>,
}

/// The last apply to a child, compared with an intent and with the child as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recalled {
    /// The same intent on the same version.
    Current,
    /// The same intent on another version, with the hashes of then.
    Changed(ChildHashes),
    /// Another intent, another object, or none.
    Unknown,
}

/// Identity of a child as found: its uid and its resourceVersion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildVersion<'a> {
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

/// The last apply to each child, by parent.
#[derive(Debug, Default)]
pub(crate) struct ApplyCache {
    parents: Mutex<BTreeMap<ObjectKey, BTreeMap<Child, LastApply>>>,
    pub(crate) expectations: ExpectationTracker,
    unchecked: Mutex<UncheckedParents>,
}

/// Parents of which the watch has shown the end of a child, each with the number of the last such
/// event.
#[derive(Debug, Default)]
struct UncheckedParents {
    parents: BTreeMap<ObjectKey, u64>,
    events: u64,
}

impl ApplyCache {
    /// Compares the last apply to this child with an intent, and with the child as found.
    pub(crate) fn recall(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        intent: u64,
        found: ChildVersion<'_>,
    ) -> Recalled {
        let parents = self.parents.lock();
        let last = parents.get(parent).and_then(|children| children.get(&id(child)));
        match last {
            Some(last) if last.intent == intent && last.uid == found.uid => {
                if last.resource_version == found.resource_version {
                    return Recalled::Current;
                }
                Recalled::Changed(last.hashes)
            }
            _ => Recalled::Unknown,
        }
    }

    /// Records that `intent` is applied at this uid and resourceVersion, which have these hashes.
    pub(crate) fn note(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        (intent, hashes): (u64, ChildHashes),
        ChildVersion { uid, resource_version }: ChildVersion<'_>,
    ) {
        let (uid, resource_version) = (uid.into(), resource_version.into());
        let last = LastApply { intent, uid, resource_version, hashes };
        let mut parents = self.parents.lock();
        let children = parents.entry(parent.clone()).or_default();
        let child = id(child);
        // Any victim will do: its next apply is sent, and changes nothing.
        if children.len() >= MAX_CHILDREN && !children.contains_key(&child) {
            children.pop_first();
        }
        children.insert(child, last);
    }

    /// Whether this child was applied, and is not known to be gone.
    pub(crate) fn knows(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) -> bool {
        let parents = self.parents.lock();
        parents.get(parent).is_some_and(|children| children.contains_key(&id(child)))
    }

    /// Returns the child's uid at its last apply.
    pub(crate) fn uid_of(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
    ) -> Option<String> {
        let parents = self.parents.lock();
        parents.get(parent)?.get(&id(child)).map(|last| last.uid.clone())
    }

    /// Notes that the watch has shown the end of a child: the parent may be gone as well, before
    /// its own cache shows that.
    pub(crate) fn child_ended(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) {
        let mut unchecked = self.unchecked.lock();
        unchecked.events += 1;
        let event = unchecked.events;
        if unchecked.parents.len() >= MAX_UNCHECKED_PARENTS
            && !unchecked.parents.contains_key(parent)
        {
            unchecked.parents.pop_first();
        }
        unchecked.parents.insert(parent.clone(), event);
        drop(unchecked);
        self.forget_child(parent, child);
    }

    /// Returns the number of the last unchecked end of a child of this parent.
    pub(crate) fn unchecked_deletion(&self, parent: &ObjectKey) -> Option<u64> {
        self.unchecked.lock().parents.get(parent).copied()
    }

    /// Notes that the parent was found alive by a read that began after the event of that number.
    pub(crate) fn parent_is_alive(&self, parent: &ObjectKey, event: u64) {
        // A later event has another number, and needs a lookup of its own.
        let mut unchecked = self.unchecked.lock();
        if unchecked.parents.get(parent) == Some(&event) {
            unchecked.parents.remove(parent);
        }
    }

    /// Forgets a child that is gone, or no longer wanted.
    pub(crate) fn forget_child(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) {
        let mut parents = self.parents.lock();
        if let Some(children) = parents.get_mut(parent) {
            children.remove(&id(child));
            if children.is_empty() {
                parents.remove(parent);
            }
        }
    }

    /// Forgets a parent that is gone.
    pub(crate) fn forget(&self, parent: &ObjectKey) {
        self.expectations.forget(parent);
        self.unchecked.lock().parents.remove(parent);
        self.parents.lock().remove(parent);
    }
}

fn id((info, key): &(ResourceInfo, ObjectKey)) -> Child {
    (info.group_resource(), key.clone())
}

/// Returns a hash of `intent`; equal values have equal hashes within a process.
pub(crate) fn fingerprint(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.hash(&mut hasher);
    hasher.finish()
}

/// Returns the child as JSON without its status and the fields that each write changes. `None` when
/// it cannot be turned into JSON.
pub(crate) fn comparable<K: Resource>(child: &K) -> Option<Value> {
    let mut value = serde_json::to_value(child).ok()?;
    let object = value.as_object_mut()?;
    object.remove("status");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    const HASHES: ChildHashes = ChildHashes { content: 9, owned: Some(8) };

    fn at<'a>(uid: &'a str, resource_version: &'a str) -> ChildVersion<'a> {
        ChildVersion { uid, resource_version }
    }

    #[test]
    fn only_the_same_intent_on_the_same_version_stands() {
        let applied = ApplyCache::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = (ResourceInfo::of::<Deployment>(), ObjectKey::new(Some("shop"), "web"));
        applied.note(&parent, &child, (1, HASHES), at("u", "7"));
        let recall = |intent, found| applied.recall(&parent, &child, intent, found);
        assert_eq!(recall(1, at("u", "7")), Recalled::Current);
        assert_eq!(recall(2, at("u", "7")), Recalled::Unknown, "another intent");
        assert_eq!(recall(1, at("u", "8")), Recalled::Changed(HASHES), "another writer was first");
        assert_eq!(recall(1, at("v", "7")), Recalled::Unknown, "another object");
        applied.note(&parent, &child, (1, HASHES), at("u", "8"));
        assert_eq!(recall(1, at("u", "8")), Recalled::Current, "and is known from then on");
        applied.forget(&parent);
        assert_eq!(recall(1, at("u", "8")), Recalled::Unknown);
    }

    #[test]
    fn a_child_that_ends_while_its_parent_is_looked_up_is_looked_into_again() {
        let applied = ApplyCache::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = (ResourceInfo::of::<Deployment>(), ObjectKey::new(Some("shop"), "web"));
        assert_eq!(applied.unchecked_deletion(&parent), None);
        applied.child_ended(&parent, &child);
        let first = applied.unchecked_deletion(&parent).expect("it lost one");
        applied.child_ended(&parent, &child);
        applied.parent_is_alive(&parent, first);
        let second = applied.unchecked_deletion(&parent).expect("it lost another since");
        applied.parent_is_alive(&parent, second);
        assert_eq!(applied.unchecked_deletion(&parent), None);
    }

    #[test]
    fn children_that_are_gone_or_too_many_are_forgotten() {
        let applied = ApplyCache::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = |n: usize| {
            let key = ObjectKey::new(Some("shop"), &format!("web-{n:05}"));
            (ResourceInfo::of::<Deployment>(), key)
        };
        applied.note(&parent, &child(0), (1, HASHES), at("u", "7"));
        applied.forget_child(&parent, &child(0));
        assert!(applied.parents.lock().is_empty());
        for n in 0..=MAX_CHILDREN {
            applied.note(&parent, &child(n), (1, HASHES), at("u", "7"));
        }
        assert_eq!(applied.parents.lock()[&parent].len(), MAX_CHILDREN);
        let newest = applied.recall(&parent, &child(MAX_CHILDREN), 1, at("u", "7"));
        assert_eq!(newest, Recalled::Current, "the newest is kept");
    }
}
