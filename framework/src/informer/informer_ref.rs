//! References to an informer, which runs while there is one.

use std::sync::{Arc, Weak};

use super::core::Core;
use super::registry::Inner;

/// A shared reference to one informer; when the last is dropped, the informer's watch stops and its
/// memory is freed.
pub(super) struct InformerRef {
    core: Arc<Core>,
    registry: Weak<Inner>,
}

impl InformerRef {
    pub(super) fn new(core: Arc<Core>, registry: Weak<Inner>) -> Arc<Self> {
        Arc::new(Self { core, registry })
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for InformerRef {
    fn drop(&mut self) {
        self.core.stop.cancel();
        match self.registry.upgrade() {
            Some(registry) => registry.release(&self.core),
            // Without a registry no task runs the informer, so it is ended here.
            None => self.core.end(),
        }
    }
}
