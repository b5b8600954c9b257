//! Remembers what was last applied to which child, so that applying it again costs no request.
//!
//! Forgetting is always safe: the next apply is sent and changes nothing. Beside it stands the ledger
//! of what the view of the children lacks, because both hear of the same children.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use serde_json::Value;

use super::expectations::Ledger;
use crate::resource::{ObjectKey, ResourceInfo};

/// Children remembered per parent; those beyond cost a request each time.
const CHILDREN: usize = 4096;

/// A child: its `plural.group` and its key.
type Child = (String, ObjectKey);

#[derive(Debug)]
struct Last {
    intent: u64,
    uid: String,
    resource_version: String,
}

/// The last apply to each child, by parent.
#[derive(Debug, Default)]
pub(super) struct Applied {
    parents: Mutex<BTreeMap<ObjectKey, BTreeMap<Child, Last>>>,
    pub(super) ledger: Ledger,
}

impl Applied {
    /// Did we apply exactly `intent` to this child, and is it still as that left it?
    pub(super) fn stands(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        intent: u64,
        (uid, resource_version): (&str, &str),
    ) -> bool {
        let parents = self.parents.lock();
        let last = parents.get(parent).and_then(|children| children.get(&id(child)));
        last.is_some_and(|last| {
            last.intent == intent && last.uid == uid && last.resource_version == resource_version
        })
    }

    /// `intent` was applied, and the answer had this uid and resourceVersion.
    pub(super) fn note(
        &self,
        parent: &ObjectKey,
        child: &(ResourceInfo, ObjectKey),
        intent: u64,
        (uid, resource_version): (&str, &str),
    ) {
        let last = Last { intent, uid: uid.into(), resource_version: resource_version.into() };
        let mut parents = self.parents.lock();
        let children = parents.entry(parent.clone()).or_default();
        let child = id(child);
        if children.len() >= CHILDREN && !children.contains_key(&child) {
            children.pop_first();
        }
        children.insert(child, last);
    }

    /// The child is gone, or no longer wanted.
    pub(super) fn forget_child(&self, parent: &ObjectKey, child: &(ResourceInfo, ObjectKey)) {
        let mut parents = self.parents.lock();
        if let Some(children) = parents.get_mut(parent) {
            children.remove(&id(child));
            if children.is_empty() {
                parents.remove(parent);
            }
        }
    }

    /// The parent is gone.
    pub(super) fn forget(&self, parent: &ObjectKey) {
        self.ledger.forget(parent);
        self.parents.lock().remove(parent);
    }
}

fn id((info, key): &(ResourceInfo, ObjectKey)) -> Child {
    (info.group_resource(), key.clone())
}

/// A hash of `intent`; equal values have equal hashes within a process.
pub(super) fn fingerprint(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn only_the_same_intent_on_the_same_version_stands() {
        let applied = Applied::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = (ResourceInfo::of::<Deployment>(), ObjectKey::new(Some("shop"), "web"));
        applied.note(&parent, &child, 1, ("u", "7"));
        assert!(applied.stands(&parent, &child, 1, ("u", "7")));
        assert!(!applied.stands(&parent, &child, 2, ("u", "7")), "another intent");
        assert!(!applied.stands(&parent, &child, 1, ("u", "8")), "somebody wrote");
        assert!(!applied.stands(&parent, &child, 1, ("v", "7")), "another object");
        applied.forget(&parent);
        assert!(!applied.stands(&parent, &child, 1, ("u", "7")));
    }

    #[test]
    fn children_that_are_gone_or_too_many_are_forgotten() {
        let applied = Applied::default();
        let parent = ObjectKey::new(Some("shop"), "home");
        let child = |n: usize| {
            let key = ObjectKey::new(Some("shop"), &format!("web-{n:05}"));
            (ResourceInfo::of::<Deployment>(), key)
        };
        applied.note(&parent, &child(0), 1, ("u", "7"));
        applied.forget_child(&parent, &child(0));
        assert!(applied.parents.lock().is_empty());
        for n in 0..=CHILDREN {
            applied.note(&parent, &child(n), 1, ("u", "7"));
        }
        assert_eq!(applied.parents.lock()[&parent].len(), CHILDREN);
        assert!(applied.stands(&parent, &child(CHILDREN), 1, ("u", "7")), "the newest is kept");
    }
}
