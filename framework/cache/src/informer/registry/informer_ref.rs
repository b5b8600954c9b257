//! References to an informer, which runs while any reference exists.

use std::sync::{Arc, Weak};

use super::Inner;
use crate::informer::core::Core;

/// A shared reference to an informer; when the last is dropped, the informer's watch stops and its
/// memory is freed.
pub(in crate::informer) struct InformerRef {
    core: Arc<Core>,
    registry: Weak<Inner>,
}

impl InformerRef {
    pub(in crate::informer) fn new(core: Arc<Core>, registry: Weak<Inner>) -> Arc<Self> {
        Arc::new(Self { core, registry })
    }

    pub(in crate::informer) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for InformerRef {
    fn drop(&mut self) {
        self.core.stop.cancel();
        match self.registry.upgrade() {
            Some(registry) => registry.release(&self.core),
            // Without a registry no task runs the informer, so the informer is ended here.
            None => self.core.end(),
        }
    }
}
