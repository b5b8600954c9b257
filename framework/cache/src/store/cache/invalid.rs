//! Objects that do not decode: findings of readers, and the observer that is notified of them.

use std::any::TypeId;
use std::sync::Arc;

use super::core::{Observer, StoreCore};
use crate::store::object::{InvalidChange, InvalidSink, Object};
use crate::store::slots::parts;

impl StoreCore {
    /// Returns the number of cached objects that are known not to decode.
    pub(crate) fn invalid(&self) -> usize {
        self.shared.invalid.len()
    }

    /// Returns the cached objects that are known not to decode, in key order, with the errors.
    pub(crate) fn invalid_list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        self.shared.invalid.list()
    }

    /// Sets the observer, which is called when an object is found not to decode. Only once.
    pub(crate) fn observe_invalid(&self, observer: Observer) {
        // A second observer would be a defect of the informer: the first stays.
        let _ = self.observer.set(observer);
    }

    /// Notifies the observer; not under a lock, because it is foreign code.
    fn notify(&self, object: &Arc<Object>, message: &Arc<str>) {
        if let Some(observer) = self.observer.get() {
            observer(object, message);
        }
    }
}

impl InvalidSink for StoreCore {
    fn note_invalid(&self, object: &Arc<Object>, of: TypeId, message: &Arc<str>) {
        // The read lock is held until the finding is added: `apply_some` removes outdated findings
        // under the write lock, so none can be added afterwards.
        let state = self.state.read();
        let slot = state.slots.get(parts(object.key()));
        if !slot.is_some_and(|slot| Arc::ptr_eq(&slot.object, object)) {
            return;
        }
        let news = self.shared.invalid.add(object, of, message);
        drop(state);
        // Without a lock: subscribers of the log and the observer may run for long.
        if news == InvalidChange::First {
            tracing::warn!(
                resource = %self.shared.info, object = %object.key(), version = object.version(),
                error = &**message,
                "the object does not decode into its type; it is skipped until it changes"
            );
        }
        if news != InvalidChange::Nothing {
            self.notify(object, message);
        }
    }
}
