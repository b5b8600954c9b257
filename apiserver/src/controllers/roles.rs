//! Aggregated `ClusterRoles`: their rules are those of the `ClusterRoles` that their
//! `aggregationRule` selects.

use serde_json::json;

use crate::core::ServerCore;
use crate::rbac;
use crate::verbs::update::{self, NextState};

const GROUP: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";

/// Updates every aggregated role.
pub(super) fn aggregate(core: &ServerCore) {
    let (roles, _) = core.store.snapshot(CLUSTER_ROLES);
    for (name, role) in &roles {
        if role.value["aggregationRule"].is_object() {
            update_rules(core, name);
        }
    }
}

/// Updates the rules of a role that aggregates others.
pub(super) fn update_rules(core: &ServerCore, name: &str) {
    // Roles that are gone or do not aggregate any more need nothing.
    let Some(role) = core.store.get(CLUSTER_ROLES, name) else { return };
    let Some(rules) = rbac::aggregate(&core.store, &role.value) else { return };
    let is_same =
        role.value["rules"] == rules || (role.value["rules"].is_null() && rules == json!([]));
    // The write would be observed and lead here again.
    if is_same {
        return;
    }
    let Some(kind) = core.kind(GROUP, "clusterroles") else { return };
    // Written under the name of upstream's controller, which managed fields show.
    let Some(mut call) = super::call(core, &kind, "", name) else { return };
    "clusterrole-aggregation-controller".clone_into(&mut call.options.manager);
    let updated = update::change(core, &call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        next["rules"] = rules.clone();
        Ok(NextState::Update(next))
    });
    if let Err(error) = updated {
        tracing::debug!(name, %error, "could not update the rules of an aggregated ClusterRole");
    }
}
