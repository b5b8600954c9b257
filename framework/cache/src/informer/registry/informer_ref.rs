//! References to an informer, which runs while any reference exists.

use std::sync::{Arc, Weak};

use super::RegistryInner;
use crate::informer::core::InformerCore;

/// A shared reference to an informer; when the last is dropped, the informer's watch stops and its
/// memory is freed.
pub(in crate::informer) struct InformerRef {
    core: Arc<InformerCore>,
    registry: Weak<RegistryInner>,
}

impl InformerRef {
    pub(in crate::informer) fn new(
        core: Arc<InformerCore>,
        registry: Weak<RegistryInner>,
    ) -> Arc<Self> {
        Arc::new(Self { core, registry })
    }

    pub(in crate::informer) fn core(&self) -> &Arc<InformerCore> {
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
