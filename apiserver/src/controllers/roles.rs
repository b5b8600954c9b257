//! Aggregated roles: copies the rules of the roles that they select by label.

use serde_json::json;

use crate::core::ServerCore;
use crate::rbac;
use crate::verbs::update::{self, NextState};

const GROUP: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "clusterroles.rbac.authorization.k8s.io";

/// Updates every aggregated role.
pub(super) fn aggregate(core: &ServerCore) {
    let (roles, _) = core.store.snapshot(STORAGE);
    for (name, role) in &roles {
        if role.value["aggregationRule"].is_object() {
            fill(core, name);
        }
    }
}

/// Updates the rules of a role that aggregates others.
pub(super) fn fill(core: &ServerCore, name: &str) {
    let Some(role) = core.store.get(STORAGE, name) else { return };
    let Some(rules) = rbac::aggregate(&core.store, &role.value) else { return };
    let same =
        role.value["rules"] == rules || (role.value["rules"].is_null() && rules == json!([]));
    // The write would be observed and lead here again.
    if same {
        return;
    }
    let Some(kind) = core.kind(GROUP, "clusterroles") else { return };
    // Written under the name of upstream's controller, which managed fields show.
    let Some(mut call) = super::call(core, &kind, "", name) else { return };
    "clusterrole-aggregation-controller".clone_into(&mut call.options.manager);
    let filled = update::change(core, &call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        next["rules"] = rules.clone();
        Ok(NextState::Update(next))
    });
    if let Err(error) = filled {
        tracing::debug!(name, %error, "could not fill an aggregated role");
    }
}
