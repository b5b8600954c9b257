//! Own deletions: the API server's answer, and the caches that show it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::controller::state::WriteEffect;
use crate::controller::{Context, Reconciler};
use windlass_core::resource::{ObjectKey, Resource};

/// The part of the answer to a deletion that is evaluated.
///
/// The API server answers with a `Status`, or with the object in its last or present state.
#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    kind: String,
    details: Option<Details>,
    #[serde(default)]
    metadata: ObjectMeta,
}

/// The deleted object in an answer of kind `Status`.
#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

impl<C: Reconciler> Context<C> {
    /// Applies the API server's answer to an own deletion to the caches.
    pub(super) fn deleted<K: Resource>(&self, key: &ObjectKey, answer: &[u8]) {
        let Ok(deleted) = serde_json::from_slice::<Deleted>(answer) else { return };
        let metadata = &deleted.metadata;
        let is_held = metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty())
            || metadata.deletion_grace_period_seconds != Some(0);
        let uid = if deleted.kind == "Status" {
            deleted.details.and_then(|details| details.uid)
        } else if metadata.deletion_timestamp.is_some() && is_held {
            // The object stays until its finalizers or its grace period end: the caches show the
            // answer, and the watch reports the deletion later. Without finalizers and with a grace
            // period of 0 the answer is the last state of an object that is gone.
            let uid = deleted.metadata.uid.unwrap_or_default();
            self.show::<K>(answer);
            return self.sent::<K>(WriteEffect::Deleted, key, &uid);
        } else {
            // Some kinds answer with the last state of the deleted object.
            deleted.metadata.uid
        };
        if let Some(uid) = uid {
            self.note_gone::<K>(key, &uid);
        }
    }

    /// Removes the object with that uid from the caches.
    pub(super) fn note_gone<K: Resource>(&self, key: &ObjectKey, uid: &str) {
        if self.is_dry_run() {
            return self.hide_in_dry_run::<K>(key, uid);
        }
        for cache in self.shared.informers.all_caches_of::<K>() {
            if cache.covers(key.namespace()) {
                cache.deleted(key, uid);
            }
        }
        self.sent::<K>(WriteEffect::Deleted, key, uid);
    }
}
