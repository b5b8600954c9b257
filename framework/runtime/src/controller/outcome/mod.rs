//! Results of a reconcile: the action of a success, and the failure.

pub(super) mod action;
pub(super) mod failure;

pub use action::Action;
pub(crate) use failure::is_refusal;
pub use failure::{Failure, ResultExt};
