//! Migration of kubectl from client-side to server-side apply.
//!
//! The first server-side apply of the manager `kubectl` takes over the fields of its last
//! client-side apply, and later applies keep the annotation of client-side apply up to date.

use serde_json::Value;

use super::ApplyRequest;
use super::set::PathSet;
use super::updater::{Clash, Updater};
use super::{compare, fields, validate};

/// The manager to which this applies.
pub(crate) const MANAGER: &str = "kubectl";
/// Annotation in which client-side apply keeps the last applied configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the clashes without the fields that kubectl applied on the client side and that still
/// have this value.
pub(crate) fn without_client_side(
    request: &ApplyRequest<'_>,
    updater: &Updater<'_>,
    live: &Value,
    clashes: Vec<Clash>,
) -> Vec<Clash> {
    let Some(last) = last_applied(request, updater, live) else { return clashes };
    let Ok(difference) = compare::compare(updater.table, updater.root, &last, live) else {
        return clashes;
    };
    let allowed = fields::of(updater.table, updater.root, &last)
        .difference(&difference.modified)
        .difference(&difference.added)
        .difference(&difference.removed);
    let mut all = PathSet::default();
    for clash in &clashes {
        all = all.union(&clash.fields);
    }
    // Everything is kubectl's own: no clash is left.
    if all.difference(&allowed).is_empty() {
        return Vec::new();
    }
    clashes
        .into_iter()
        .map(|clash| Clash { fields: clash.fields.difference(&allowed), ..clash })
        .filter(|clash| !clash.fields.is_empty())
        .collect()
}

/// Returns the last client-side apply from the annotation, if valid and of the same version.
fn last_applied(request: &ApplyRequest<'_>, updater: &Updater<'_>, live: &Value) -> Option<Value> {
    let text = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    // A configuration of another version would name other fields.
    if last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    validate::validate(updater.table, updater.root, &last, false).ok()?;
    Some(last)
}

/// Updates kubectl's annotation of client-side apply, if present.
pub(crate) fn renew_last_applied(intent: &Value, object: &mut Value) {
    let mut intent = intent.clone();
    let annotations = intent.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        // The annotation does not contain itself; an annotations map that is then empty is left
        // out.
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty()
            && let Some(meta) = intent.get_mut("metadata").and_then(Value::as_object_mut)
        {
            meta.remove("annotations");
        }
    }
    let slot = object
        .pointer_mut("/metadata/annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    if let Some(Value::String(text)) = slot
        && !text.is_empty()
    {
        *text = format!("{intent}\n");
    }
}
