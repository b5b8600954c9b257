//! Dry runs: calls that are named and not made.
//!
//! This file alone decides whether calls are made, and records the calls that are not.

use super::call::{self, CallKind};
use crate::controller::{Context, Reconciler, note_external_call};

/// Whether the calls of this reconcile that would change a resource are named and not made.
pub(super) fn is_dry_run<C: Reconciler>(cx: &Context<C>) -> bool {
    cx.client().is_dry_run()
}

/// Records a call that was not made; `text` names it with its resource.
pub(super) fn not_called<C: Reconciler>(cx: &Context<C>, verb: CallKind, text: &str) {
    note_external_call(cx, text);
    call::count(cx, verb, "dry_run");
    tracing::info!(verb = verb.name(), "a dry run leaves out this call: {text}");
}
