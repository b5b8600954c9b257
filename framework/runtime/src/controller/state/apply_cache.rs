//! Cache of the last apply to each child, so that a repeated apply costs no request.
//!
//! Losing an entry is always safe: the next apply is sent and changes nothing. Also holds the
//! expectations and the parents that lost a child, because all three are updated by the same events
//! of children.

// DESIGN.md, 13: `apply_owned` skips applies whose intent hash is unchanged
// DESIGN.md, 206: A child at rest is recognized by its description and its version
// DESIGN.md, 77: A parent that lost a child is read before the child is made again

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

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

/// A child: its key and the `plural.group`. The key first: a child whose kind is not at hand is
/// found by the key.
type ChildId = (ObjectKey, String);

/// Hashes keys, in the same way in every run.
type KeyHash = BuildHasherDefault<DefaultHasher>;

/// Last apply to a child.
#[derive(Debug)]
struct LastApply {
    /// Hash of the intent; `None` while applied in part, since a second apply has to follow.
    intent: Option<u64>,
    /// Hash of the description that the intent was made of; `None` of an intent from elsewhere.
    description: Option<u64>,
    /// Whether the child was found ready in this version, by the rule of the kind.
    is_ready: bool,
    uid: String,
    resource_version: String,
    hashes: ChildHashes,
}

impl LastApply {
    /// Whether the description is that of the last apply, and the child as found is unchanged
    /// since.
    fn is_of(&self, description: u64, found: ChildVersion<'_>) -> bool {
        self.description == Some(description)
            && self.uid == found.uid
            && self.resource_version == found.resource_version
    }
}

/// Hashes of a child at the last apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildHashes {
    /// Hash of the child without the fields that each write changes, by [`comparable`].
    pub(crate) content: u64,
    /// Hash of the fields that the controller has applied, and of their values; `None` when they
    /// are not known.
    pub(crate) owned: Option<u64>,
}

/// The last apply to a child, compared with an intent and with the child as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecalledApply {
    /// The same intent on the same version.
    Current,
    /// The same intent on another version, with the hashes of then.
    Changed(ChildHashes),
    /// Another intent, another object, or none.
    Unknown,
}

/// Hashes of an intent to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntentHashes {
    /// Hash of the body of the request, by [`fingerprint`].
    pub(crate) intent: u64,
    /// Hash of the description behind the intent, for a child of a graph. Equal descriptions of one
    /// child lead to equal intents.
    pub(crate) description: Option<u64>,
}

/// Identity of a child as found: the uid and the resourceVersion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildVersion<'a> {
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

/// The last apply to each child, by parent.
#[derive(Debug, Default)]
pub(crate) struct ApplyCache {
    /// Hashed, since a key stores its hash. Never walked through.
    parents: Mutex<HashMap<ObjectKey, BTreeMap<ChildId, LastApply>, KeyHash>>,
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
    /// Compares the last apply to this child with an intent, and with the child as found. A
    /// description that turns out to lead to the same intent is remembered in place of the last
    /// description.
    pub(crate) fn recall(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        IntentHashes { intent, description }: IntentHashes,
        found: ChildVersion<'_>,
    ) -> RecalledApply {
        let mut parents = self.parents.lock();
        let last = parents.get_mut(parent).and_then(|children| children.get_mut(&id(child)));
        match last {
            Some(last) if last.intent == Some(intent) && last.uid == found.uid => {
                if last.resource_version == found.resource_version {
                    if description.is_some() && last.description != description {
                        // A child of another type may have another rule of readiness.
                        (last.description, last.is_ready) = (description, false);
                    }
                    return RecalledApply::Current;
                }
                RecalledApply::Changed(last.hashes)
            }
            _ => RecalledApply::Unknown,
        }
    }

    /// Whether the found child is the object to which this description was applied last, with
    /// nothing left to be done: if so, whether the child was found ready since. Needs neither the
    /// intent nor the child's kind: a description stands for both, and a uid is that of one object.
    pub(crate) fn recall_described(
        &self,
        parent: &ObjectKey,
        child: &ObjectKey,
        description: u64,
        found: ChildVersion<'_>,
    ) -> Option<bool> {
        let parents = self.parents.lock();
        let children = parents.get(parent)?.range((child.clone(), String::new())..);
        // By the description first, which is a number: the names of other kinds' children are often
        // the same. The search ends with the entries of the name: others may be thousands.
        let mut own =
            children.take_while(|((key, _), last)| last.is_of(description, found) || key == child);
        let ((key, _), last) = own.find(|(_, last)| last.is_of(description, found))?;
        (key == child).then_some(last.is_ready)
    }

    /// Notes that the child was found ready in this version, by the rule of the kind.
    pub(crate) fn note_ready(
        &self,
        parent: &ObjectKey,
        child: &ObjectKey,
        description: u64,
        found: ChildVersion<'_>,
    ) {
        let mut parents = self.parents.lock();
        let Some(children) = parents.get_mut(parent) else { return };
        let children = children.range_mut((child.clone(), String::new())..);
        let mut own =
            children.take_while(|((key, _), last)| last.is_of(description, found) || key == child);
        if let Some(((key, _), last)) = own.find(|(_, last)| last.is_of(description, found))
            && key == child
        {
            last.is_ready = true;
        }
    }

    /// Records that `intent` is applied at this uid and resourceVersion, which have these hashes.
    pub(crate) fn note(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        (IntentHashes { intent, description }, hashes): (IntentHashes, ChildHashes),
        ChildVersion { uid, resource_version }: ChildVersion<'_>,
    ) {
        let (uid, resource_version) = (uid.into(), resource_version.into());
        let is_ready = false;
        let intent = Some(intent);
        let last = LastApply { intent, description, is_ready, uid, resource_version, hashes };
        let mut parents = self.parents.lock();
        let children = parents.entry(parent.clone()).or_default();
        let child = id(child);
        // Any victim will do: its next apply is sent, and changes nothing.
        if children.len() >= MAX_CHILDREN && !children.contains_key(&child) {
            children.pop_first();
        }
        children.insert(child, last);
    }

    /// Notes that an intent was applied in part: the next apply compares the child anew, whatever
    /// the intent.
    pub(crate) fn note_partial(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) {
        let mut parents = self.parents.lock();
        let last = parents.get_mut(parent).and_then(|children| children.get_mut(&id(child)));
        if let Some(last) = last {
            (last.intent, last.description, last.is_ready) = (None, None, false);
        }
    }

    /// Whether this child was applied, and is not known to be gone.
    pub(crate) fn knows(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) -> bool {
        let parents = self.parents.lock();
        parents.get(parent).is_some_and(|children| children.contains_key(&id(child)))
    }

    /// Returns the child's uid at the last apply.
    pub(crate) fn uid_of(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
    ) -> Option<String> {
        let parents = self.parents.lock();
        parents.get(parent)?.get(&id(child)).map(|last| last.uid.clone())
    }

    /// Notes that the watch has shown the end of a child: the parent may be gone as well, before
    /// the parent's cache shows that.
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
        // A later event has another number, and needs a lookup again.
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

fn id((info, key): &(ResourceInfo, ObjectKey)) -> ChildId {
    (key.clone(), info.group_resource())
}

/// Returns a hash of `intent`; equal values have equal hashes within a process.
pub(crate) fn fingerprint(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.hash(&mut hasher);
    hasher.finish()
}

/// Returns the child as JSON without its status and the fields that each write changes. `None` if
/// the conversion to JSON fails.
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

    const fn hashed(intent: u64) -> IntentHashes {
        IntentHashes { intent, description: None }
    }

    fn at<'a>(uid: &'a str, resource_version: &'a str) -> ChildVersion<'a> {
        ChildVersion { uid, resource_version }
    }

    #[test]
    fn only_the_same_intent_on_the_same_version_stands() {
        let applied = ApplyCache::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = (ResourceInfo::of::<Deployment>(), ObjectKey::new(Some("shop"), "web"));
        applied.note(&parent, &child, (hashed(1), HASHES), at("u", "7"));
        let recall = |intent, found| applied.recall(&parent, &child, hashed(intent), found);
        assert_eq!(recall(1, at("u", "7")), RecalledApply::Current);
        assert_eq!(recall(2, at("u", "7")), RecalledApply::Unknown, "another intent");
        assert_eq!(
            recall(1, at("u", "8")),
            RecalledApply::Changed(HASHES),
            "another writer was first"
        );
        assert_eq!(recall(1, at("v", "7")), RecalledApply::Unknown, "another object");
        applied.note(&parent, &child, (hashed(1), HASHES), at("u", "8"));
        assert_eq!(recall(1, at("u", "8")), RecalledApply::Current, "and is known from then on");
        applied.note_partial(&parent, &child);
        assert_eq!(recall(1, at("u", "8")), RecalledApply::Unknown, "a second apply has to follow");
        assert!(applied.knows(&parent, &child));
        applied.forget(&parent);
        assert_eq!(recall(1, at("u", "8")), RecalledApply::Unknown);
    }

    #[test]
    fn a_description_stands_for_its_own_intent_on_the_same_version_alone() {
        let applied = ApplyCache::default();
        let key = |name: &str| ObjectKey::new(Some("shop"), name);
        let parent = key("home");
        let child = (ResourceInfo::of::<Deployment>(), key("web"));
        let described = |intent, it| IntentHashes { intent, description: Some(it) };
        let recall =
            |child: &str, it, found| applied.recall_described(&parent, &key(child), it, found);
        applied.note(&parent, &child, (described(1, 11), HASHES), at("u", "7"));
        assert_eq!(recall("web", 11, at("u", "7")), Some(false), "not known to be ready");
        applied.note_ready(&parent, &key("web"), 12, at("u", "7"));
        applied.note_ready(&parent, &key("web"), 11, at("u", "6"));
        applied.note_ready(&parent, &key("we"), 11, at("u", "7"));
        assert_eq!(recall("web", 11, at("u", "7")), Some(false), "another one was ready");
        applied.note_ready(&parent, &key("web"), 11, at("u", "7"));
        assert_eq!(recall("web", 11, at("u", "7")), Some(true));
        assert_eq!(recall("web", 12, at("u", "7")), None, "another description");
        assert_eq!(recall("web", 11, at("u", "8")), None, "another version");
        assert_eq!(recall("web", 11, at("v", "7")), None, "another object");
        assert_eq!(recall("we", 11, at("u", "7")), None, "another child");
        assert_eq!(applied.recall_described(&key("house"), &key("web"), 11, at("u", "7")), None);
        // Without a graph the same intent is no reason to forget the description; another intent
        // is.
        let recalled = applied.recall(&parent, &child, hashed(1), at("u", "7"));
        assert_eq!(
            (recalled, recall("web", 11, at("u", "7"))),
            (RecalledApply::Current, Some(true))
        );
        let recalled = applied.recall(&parent, &child, described(1, 12), at("u", "7"));
        assert_eq!(
            (recalled, recall("web", 12, at("u", "7"))),
            (RecalledApply::Current, Some(false))
        );
        applied.note(&parent, &child, (hashed(2), HASHES), at("u", "7"));
        assert_eq!(recall("web", 12, at("u", "7")), None, "another intent was applied since");
        applied.note(&parent, &child, (described(1, 11), HASHES), at("u", "7"));
        applied.forget_child(&parent, &child);
        assert_eq!(recall("web", 11, at("u", "7")), None);
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
        applied.note(&parent, &child(0), (hashed(1), HASHES), at("u", "7"));
        applied.forget_child(&parent, &child(0));
        assert!(applied.parents.lock().is_empty());
        for n in 0..=MAX_CHILDREN {
            applied.note(&parent, &child(n), (hashed(1), HASHES), at("u", "7"));
        }
        assert_eq!(applied.parents.lock()[&parent].len(), MAX_CHILDREN);
        let newest = applied.recall(&parent, &child(MAX_CHILDREN), hashed(1), at("u", "7"));
        assert_eq!(newest, RecalledApply::Current, "the newest is kept");
    }
}
