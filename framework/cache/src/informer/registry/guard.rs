//! The end of a registry together with its task.

use std::sync::Arc;

use super::{RegistryInner, RegistryPhase};

/// Stops the registry when the task ends or is dropped.
pub(super) struct RegistryGuard(pub(super) Arc<RegistryInner>);

impl Drop for RegistryGuard {
    fn drop(&mut self) {
        self.0.stop.cancel();
        let cores: Vec<_> = {
            let mut informers = self.0.informers.lock();
            informers.is_stopped = true;
            informers.idle.clear();
            informers.registered.iter().map(|one| Arc::clone(&one.core)).collect()
        };
        // Outside of the lock: the end of an informer calls into listeners and metrics.
        cores.iter().for_each(|core| core.end());
        self.0.phase.set(RegistryPhase::Ended);
    }
}
