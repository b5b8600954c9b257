//! A moment of the store: what it held then, told from what it holds now and what has changed.
//!
//! Nothing is copied when a moment is taken. While somebody holds it the store tells it what stood at
//! a key before the key changes for the first time, so it costs what changed and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::Object;
use crate::resource::ObjectKey;
use crate::sync::Mutex;

/// What readers see instead of what the slots hold; `None` where they see nothing.
pub(super) type Differences = BTreeMap<ObjectKey, Option<Arc<Object>>>;

/// How a moment differs from what the store's slots hold now. Locked after the store's state.
pub(crate) struct Moment {
    differences: Mutex<Differences>,
}

impl Moment {
    /// A moment at which own writes are seen as `differences` say.
    pub(super) fn new(differences: Differences) -> Arc<Self> {
        Arc::new(Self { differences: Mutex::new(differences) })
    }

    /// This stood at `key` until now.
    pub(super) fn remember(&self, key: &ObjectKey, before: Option<&Arc<Object>>) {
        let mut differences = self.differences.lock();
        if !differences.contains_key(key) {
            differences.insert(key.clone(), before.map(Arc::clone));
        }
    }

    /// Calls `read` with the differences. Not for user code.
    pub(super) fn with<R>(&self, read: impl FnOnce(&Differences) -> R) -> R {
        read(&self.differences.lock())
    }
}
