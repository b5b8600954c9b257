//! Revisions of the templates of `StatefulSets` and `DaemonSets`, for `kubectl rollout`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::{self, REVISIONS};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;

/// Label with the revision of a Pod.
pub(super) const HASH: &str = "controller-revision-hash";

/// Returns the number of a revision.
fn number(revision: &Value) -> i64 {
    revision["revision"].as_i64().unwrap_or(0)
}

/// Stores the revision of the present template, as the newest; returns the revision's name. A
/// template that comes back, as by `kubectl rollout undo`, takes the old revision with a new
/// number.
pub(super) fn record(core: &ServerCore, kind: &str, set: &Value) -> Result<String, ApiError> {
    let (namespace, name) = (meta::text(set, "namespace"), meta::text(set, "name"));
    let hash = objects::hash(&set["spec"]["template"]);
    let own = format!("{name}-{hash}");
    let owned = objects::owned(core, REVISIONS, set);
    let others = owned.iter().filter(|one| meta::text(one, "name") != own);
    let next = others.map(number).max().unwrap_or(0).saturating_add(1);
    if let Some(current) = owned.iter().find(|one| meta::text(one, "name") == own) {
        if number(current) < next {
            objects::change(core, REVISIONS, current, "", |one| one["revision"] = json!(next))?;
        }
        return Ok(own);
    }
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    let mut labels = set["spec"]["template"]["metadata"]["labels"].clone();
    if kind == "DaemonSet" {
        labels[HASH] = json!(hash);
    }
    let mut metadata = json!({
        "name": own, "labels": labels, "ownerReferences": objects::owner("apps/v1", kind, set),
    });
    if set["metadata"]["annotations"].is_object() {
        // Among them the cause of the change, which `kubectl rollout history` prints.
        metadata["annotations"] = set["metadata"]["annotations"].clone();
    }
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata,
        "data": {"spec": {"template": template}}, "revision": next,
    });
    objects::create(core, REVISIONS, namespace, revision)?;
    Ok(own)
}

/// Deletes the oldest revisions beyond the limit, except those in use: names, or hashes of Pods.
pub(super) fn prune(core: &ServerCore, set: &Value, used: &BTreeSet<&str>) -> Result<(), ApiError> {
    let mut owned = objects::owned(core, REVISIONS, set);
    owned.sort_by_key(number);
    // The newest revision is that of the present template.
    owned.pop();
    let limit = usize::try_from(objects::number(set, "revisionHistoryLimit", 10)).unwrap_or(0);
    let mut surplus = owned.len().saturating_sub(limit);
    for revision in &owned {
        let hash = revision["metadata"]["labels"][HASH].as_str().unwrap_or_default();
        if surplus == 0 {
            break;
        }
        if !used.contains(hash) && !used.contains(meta::text(revision, "name")) {
            objects::remove(core, REVISIONS, revision, None)?;
            surplus -= 1;
        }
    }
    Ok(())
}
