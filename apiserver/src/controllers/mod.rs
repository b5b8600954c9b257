//! Controllers that run beside the server, as kube-controller-manager does.
//!
//! Each follows the store and writes through the verbs, as the server's own user. Garbage collection,
//! namespace deletion and stand-ins for workload controllers belong here.

use std::sync::Arc;

use crate::core::Core;

/// Starts the controllers; they end when `core.stop` does.
pub(crate) fn start(core: &Arc<Core>, stand_ins: bool) {
    tracing::debug!(stand_ins, revision = core.store.revision(), "no controllers run");
}
