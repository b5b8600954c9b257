//! Records of the writes of a reconcile for the change log.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::controller::state::{ChangeLog, ChangeRecord, FieldChange, differences};
use crate::controller::{Context, Reconciler};
use windlass_core::resource::{ObjectKey, Resource, ResourceInfo};
use windlass_core::text::shorten;

/// Longest list of fields in the text about fields that were set back, in bytes.
const SET_BACK_LIMIT: usize = 512;

/// A write that was not sent yet, with the state before the write.
pub(super) struct PendingChange {
    verb: &'static str,
    info: ResourceInfo,
    key: ObjectKey,
    /// `None` for an object that is not there, or not cached.
    before: Option<Value>,
}

impl<C: Reconciler> Context<C> {
    /// Notes the state before a write, if writes are logged. Called before the request, because the
    /// watch may show the result before the answer comes. Boxed: most controllers log nothing.
    pub(super) fn before_write<K: Resource>(
        &self,
        verb: &'static str,
        key: &ObjectKey,
    ) -> Option<Box<PendingChange>> {
        if self.shared.changes.detail() == ChangeLog::Off {
            return None;
        }
        let info = K::static_info()?;
        let caches = self.shared.informers.caches_of::<K>();
        // A projection holds a part of the object: the rest would look new.
        let caches = if K::projection().is_some() { Vec::new() } else { caches };
        let cached = caches.iter().find_map(|cache| cache.store().get(key));
        let before = cached.and_then(|cached| serde_json::from_slice(&cached.raw()).ok());
        Some(Box::new(PendingChange { verb, info, key: key.clone(), before }))
    }

    /// Logs a change of the object's finalizers, by the answer.
    pub(in crate::controller) fn changed_finalizers(&self, answer: &[u8]) {
        let verb = "patch";
        if let Some(mut pending) = self.before_write::<C::Object>(verb, &self.key) {
            // The state of the reconcile: the cache may show the result already, or, of the last
            // finalizer, nothing.
            let is_whole = C::Object::projection().is_none();
            let before = is_whole.then(|| serde_json::from_slice(&self.cached_at_start.raw()).ok());
            pending.before = before.flatten();
            self.after_write(Some(pending), answer);
        }
    }

    /// Keeps a record of fields of a child that others had changed and an apply has set back; also
    /// when writes are not logged. Returns the fields as a text.
    pub(super) fn set_back(
        &self,
        (info, key): (&ResourceInfo, &ObjectKey),
        changes: Vec<FieldChange>,
        more: usize,
    ) -> String {
        let record = ChangeRecord {
            at: self.shared.environment.clock.wall(),
            owner: self.key.clone(),
            reasons: self.reasons().iter().map(str::to_owned).collect(),
            verb: "set back",
            resource: info.group_resource(),
            key: key.clone(),
            changes,
            more,
            is_compared: true,
        };
        let text = shorten(record.text(), SET_BACK_LIMIT);
        self.shared.changes.keep(record);
        text
    }

    /// Names the children that others change again and again in the message of a success. Returns
    /// the time after which the first of these fights is over, unless it goes on.
    pub(in crate::controller) fn remark_fights(&self) -> Option<Duration> {
        let now = self.shared.environment.clock.now();
        let fights = self.shared.memory.fights.of(&self.key, now);
        let rests = fights.into_iter().map(|fight| {
            self.remark(fight.text);
            fight.rest
        });
        rests.min()
    }

    /// Returns a function that logs a call whose effect is not compared, once the answer has come;
    /// `None` when writes are not logged. `part` is a subresource.
    pub(super) fn log_of_call<K: Resource>(
        &self,
        verb: &'static str,
        (part, key): (&str, ObjectKey),
    ) -> Option<impl Fn(&Bytes) + Send + Sync + 'static> {
        if self.shared.changes.detail() == ChangeLog::Off {
            return None;
        }
        let resource = format!("{}{part}", K::static_info()?.group_resource());
        let (log, clock) =
            (Arc::clone(&self.shared.changes), self.shared.environment.clock.clone());
        let owner = self.key.clone();
        let reasons: Vec<String> = self.reasons().iter().map(str::to_owned).collect();
        Some(move |_: &Bytes| {
            log.add(ChangeRecord {
                at: clock.wall(),
                owner: owner.clone(),
                reasons: reasons.clone(),
                verb,
                resource: resource.clone(),
                key: key.clone(),
                changes: Vec::new(),
                more: 0,
                is_compared: false,
            });
        })
    }

    /// Logs a write by the API server's answer; empty for a deletion.
    pub(super) fn after_write(&self, pending: Option<Box<PendingChange>>, answer: &[u8]) {
        let Some(pending) = pending else { return };
        let PendingChange { verb, info, mut key, before } = *pending;
        let after: Value = serde_json::from_slice(answer).unwrap_or_default();
        // A generated name is known from the answer only.
        if let Some(name) = after["metadata"]["name"].as_str().filter(|_| key.name().is_empty()) {
            key = ObjectKey::new(key.namespace(), name).in_cluster(key.cluster());
        }
        let log = &self.shared.changes;
        let (changes, more) = if verb == "delete" {
            (Vec::new(), 0)
        } else {
            differences(&info, (before.as_ref(), &after), log.detail())
        };
        log.add(ChangeRecord {
            at: self.shared.environment.clock.wall(),
            owner: self.key.clone(),
            reasons: self.reasons().iter().map(str::to_owned).collect(),
            verb,
            resource: info.group_resource().to_string(),
            key,
            changes,
            more,
            is_compared: before.is_some(),
        });
    }
}
