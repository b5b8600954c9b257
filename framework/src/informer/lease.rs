//! Who uses an informer: it runs while somebody does.

use std::sync::{Arc, Weak};

use super::core::Core;
use super::registry::Inner;

/// A share in the use of one informer; when the last is dropped, its watch stops and its memory
/// goes.
pub(super) struct Lease {
    core: Arc<Core>,
    registry: Weak<Inner>,
}

impl Lease {
    pub(super) fn new(core: Arc<Core>, registry: Weak<Inner>) -> Arc<Self> {
        Arc::new(Self { core, registry })
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.core.stop.cancel();
        match self.registry.upgrade() {
            Some(registry) => registry.release(&self.core),
            None => self.core.end(),
        }
    }
}
