//! Functions for the derive macros. Not public API: they may change in any release.

pub use windlass_core::__private::*;
pub use windlass_macros::field_path;

use crate::controller::Reconciler;

/// Compiles if `C` reconciles `K`.
pub fn reconciles<C: Reconciler, K>()
where
    C::Object: Is<K>,
{
}
