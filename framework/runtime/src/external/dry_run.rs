//! Dry runs: calls that are named and not made.
//!
//! The only place that decides about it, and the only one that hears of a call that was not made.

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
    tracing::info!(verb = verb.name(), "not called in a dry run: {text}");
}
