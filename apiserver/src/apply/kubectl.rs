//! kubectl's step from client-side to server-side apply.
//!
//! The first server-side apply of the manager `kubectl` takes over what its last client-side apply
//! set, and later ones keep the annotation of client-side apply in step.

use serde_json::Value;

use super::ApplyRequest;
use super::set::PathSet;
use super::updater::{Clash, Updater};
use super::{compare, fields, validate};

/// The manager whose applies are treated so.
pub(crate) const MANAGER: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The clashes about fields that kubectl did not apply itself, client side, with their present
/// value.
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
    if all.difference(&allowed).is_empty() {
        return Vec::new();
    }
    clashes
        .into_iter()
        .map(|clash| Clash { fields: clash.fields.difference(&allowed), ..clash })
        .filter(|clash| !clash.fields.is_empty())
        .collect()
}

fn last_applied(request: &ApplyRequest<'_>, updater: &Updater<'_>, live: &Value) -> Option<Value> {
    let text = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    validate::validate(updater.table, updater.root, &last, false).ok()?;
    Some(last)
}

/// Keeps kubectl's own annotation in step when the object has one.
pub(crate) fn renew_last_applied(intent: &Value, object: &mut Value) {
    let mut intent = intent.clone();
    let annotations = intent.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
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
