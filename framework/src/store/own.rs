//! What this process wrote and the watch has not shown yet, laid over what the watch has shown.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::object::Object;
use super::version::order;
use crate::resource::ObjectKey;

/// So long an own write counts before the watch has confirmed it.
pub(crate) const OWN_WRITE_VALID: Duration = Duration::from_secs(10);
/// So long an unconfirmed write is remembered as stale, unless told otherwise.
const OWN_WRITE_KEPT: Duration = Duration::from_secs(1260);

#[derive(Debug)]
struct Own {
    state: Written,
    at: Instant,
}

enum Written {
    Object(Arc<Object>),
    Gone { uid: Arc<str> },
}

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => write!(f, "{}@{}", object.key(), object.version()),
            Self::Gone { uid } => write!(f, "gone {uid}"),
        }
    }
}

/// Own writes by key; small, because the watch takes them out again.
#[derive(Debug)]
pub(crate) struct Overlay {
    writes: BTreeMap<ObjectKey, Own>,
    /// So long an unconfirmed write is remembered as stale, then it is forgotten. Longer than a
    /// watch can be silent, or a write that was never shown would pass for confirmed.
    kept: Duration,
}

impl Default for Overlay {
    fn default() -> Self {
        Self { writes: BTreeMap::new(), kept: OWN_WRITE_KEPT }
    }
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(crate) fn wrote(&mut self, object: Arc<Object>, now: Instant) {
        self.prune(now);
        if let Some(Own { state: Written::Object(known), .. }) = self.writes.get(object.key())
            && order(object.version(), known.version()) == Some(Ordering::Less)
        {
            return;
        }
        self.writes.insert(object.key().clone(), Own { state: Written::Object(object), at: now });
    }

    pub(crate) fn deleted(&mut self, key: ObjectKey, uid: &str, now: Instant) {
        self.prune(now);
        self.writes.insert(key, Own { state: Written::Gone { uid: Arc::from(uid) }, at: now });
    }

    /// What readers see of `key` when the watch has shown `seen`.
    pub(crate) fn resolve<'a>(
        &'a self,
        key: &ObjectKey,
        seen: Option<&'a Arc<Object>>,
        now: Instant,
    ) -> Option<&'a Arc<Object>> {
        match self.writes.get(key) {
            Some(own) if now < own.at + OWN_WRITE_VALID => match (&own.state, seen) {
                (Written::Object(own), None) => Some(own),
                (Written::Object(own), Some(seen)) => match order(own.version(), seen.version()) {
                    Some(Ordering::Less | Ordering::Equal) => Some(seen),
                    _ => Some(own),
                },
                (Written::Gone { uid }, Some(seen)) if **uid == *seen.head().uid() => None,
                (Written::Gone { .. }, seen) => seen,
            },
            _ => seen,
        }
    }

    /// The keys with a write that readers may see.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.writes.keys()
    }

    /// Is there a write that the watch has not shown in time?
    pub(crate) fn is_stale(&self, key: &ObjectKey, now: Instant) -> bool {
        self.writes.get(key).is_some_and(|own| now >= own.at + OWN_WRITE_VALID)
    }

    /// The watch has shown `object`.
    pub(crate) fn seen(&mut self, object: &Object) {
        let caught_up = match self.writes.get(object.key()).map(|own| &own.state) {
            Some(Written::Object(own)) => {
                matches!(
                    order(object.version(), own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                )
            }
            Some(Written::Gone { uid }) => **uid != *object.head().uid(),
            None => false,
        };
        if caught_up {
            self.writes.remove(object.key());
        }
    }

    /// The watch has shown the deletion of `key`, at `version`.
    pub(crate) fn seen_gone(&mut self, key: &ObjectKey, uid: &str, version: &str) {
        let caught_up = match self.writes.get(key).map(|own| &own.state) {
            Some(Written::Object(own)) => match order(version, own.version()) {
                Some(order) => order != Ordering::Less,
                None => own.head().uid() == uid,
            },
            Some(Written::Gone { .. }) => true,
            None => false,
        };
        if caught_up {
            self.writes.remove(key);
        }
    }

    /// A list at `version` has shown that `absent` keys are not there.
    pub(crate) fn listed(&mut self, version: &str, absent: &dyn Fn(&ObjectKey) -> bool) {
        self.writes.retain(|key, own| {
            if !absent(key) {
                return true;
            }
            match &own.state {
                Written::Object(own) => !matches!(
                    order(version, own.version()),
                    Some(Ordering::Greater | Ordering::Equal)
                ),
                Written::Gone { .. } => false,
            }
        });
    }

    /// Versions have lost their order: forgets the writes that `within` says.
    pub(crate) fn forget(&mut self, within: &dyn Fn(&ObjectKey) -> bool) {
        self.writes.retain(|key, _| !within(key));
    }

    /// How long an unconfirmed write is remembered.
    pub(crate) fn keep_for(&mut self, kept: Duration) {
        self.kept = kept;
    }

    fn prune(&mut self, now: Instant) {
        self.writes.retain(|_, own| now < own.at + self.kept);
    }
}
