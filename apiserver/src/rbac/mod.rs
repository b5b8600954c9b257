//! Role-based access control over the stored roles and bindings.
//!
//! Every decision reads the store, so a binding counts from the moment when the write was answered.
//! Members of `system:masters` may do everything. `verbs::admit::grants` keeps users from granting
//! more rights than they have.

pub(crate) mod defaults;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Weak;

use serde_json::{Value, json};

use crate::auth::{Attributes, Authorizer, User};
use crate::core::ServerCore;
use crate::storage::{self, Store};

/// Resource of cluster roles in the store.
const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
/// Resource of roles in the store.
const ROLES: &str = "roles.rbac.authorization.k8s.io";
/// Resource of cluster role bindings in the store.
const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
/// Resource of role bindings in the store.
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";

/// Group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// Authorizer that decides by the roles and bindings of a server.
#[derive(Debug)]
pub(crate) struct Rbac {
    core: Weak<ServerCore>,
}

impl Rbac {
    /// Returns an authorizer that decides by the roles and bindings in `core`.
    pub(crate) fn new(core: Weak<ServerCore>) -> Self {
        Self { core }
    }
}

impl Authorizer for Rbac {
    fn authorize(&self, user: &User, attributes: &Attributes) -> Result<(), String> {
        self.explain(user, attributes).map(drop)
    }

    fn explain(&self, user: &User, attributes: &Attributes) -> Result<String, String> {
        match self.core.upgrade() {
            Some(core) => decide(&core.store, user, attributes),
            // The server is gone: nothing is allowed any more.
            None => Err(String::new()),
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> Vec<Value> {
        let mut out = Vec::new();
        if let Some(core) = self.core.upgrade() {
            // A set beside the list: users may have very many rules.
            let mut seen = HashSet::new();
            visit(&core.store, user, namespace, &mut |_, rule| {
                if seen.insert(rule.clone()) {
                    out.push(rule.clone());
                }
                ControlFlow::Continue(())
            });
        }
        out
    }
}

/// Returns the binding that allows a request, or the missing roles of a refused request.
fn decide(store: &Store, user: &User, wanted: &Attributes) -> Result<String, String> {
    // Before the store is read: masters can repair broken roles.
    if user.groups.iter().any(|group| group == MASTERS) {
        return Ok(String::new());
    }
    let mut reason = None;
    let faults = visit(store, user, &wanted.namespace, &mut |found, rule| {
        if !rules::allows(rule, wanted) {
            return ControlFlow::Continue(());
        }
        reason = Some(format!("RBAC: allowed by {}", found.describe()));
        ControlFlow::Break(())
    });
    match (reason, faults.as_slice()) {
        (Some(reason), _) => Ok(reason),
        (None, []) => Err(String::new()),
        (None, [one]) => Err(format!("RBAC: {one}")),
        (None, many) => Err(format!("RBAC: [{}]", many.join(", "))),
    }
}

/// A binding that applies to the user, with the subject that matches.
struct MatchedBinding<'a> {
    binding: &'a Value,
    subject: &'a Value,
}

impl MatchedBinding<'_> {
    /// Describes the binding in upstream's words.
    fn describe(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let role = &self.binding["roleRef"];
        let meta = &self.binding["metadata"];
        let (kind, name) = match meta["namespace"].as_str() {
            Some(namespace) => ("RoleBinding", format!("{}/{namespace}", text(&meta["name"]))),
            None => ("ClusterRoleBinding", text(&meta["name"])),
        };
        let subject = match self.subject["namespace"].as_str() {
            Some(namespace) => format!("{}/{namespace}", text(&self.subject["name"])),
            None => text(&self.subject["name"]),
        };
        format!(
            "{kind} {name:?} of {} {:?} to {} {subject:?}",
            text(&role["kind"]),
            text(&role["name"]),
            text(&self.subject["kind"]),
        )
    }
}

/// Callback for each rule, which may end the visit.
type Visitor<'v> = dyn FnMut(&MatchedBinding<'_>, &Value) -> ControlFlow<()> + 'v;

/// Calls `visitor` with every rule that holds for the user in the namespace; returns the roles that
/// are missing.
fn visit(store: &Store, user: &User, namespace: &str, visitor: &mut Visitor<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    // Cluster role bindings hold in every namespace.
    let (bindings, _) = store.snapshot(CLUSTER_BINDINGS);
    for (_, binding) in &bindings {
        if visit_binding(store, user, &binding.value, visitor, &mut faults).is_break() {
            return faults;
        }
    }
    // Role bindings hold only inside their namespace.
    if namespace.is_empty() {
        return faults;
    }
    let (bindings, _) = store.snapshot(BINDINGS);
    for (_, binding) in storage::in_namespace(&bindings, namespace) {
        if visit_binding(store, user, &binding.value, visitor, &mut faults).is_break() {
            return faults;
        }
    }
    faults
}

/// Visits the rules of a binding that applies to the user.
fn visit_binding(
    store: &Store,
    user: &User,
    binding: &Value,
    visitor: &mut Visitor<'_>,
    faults: &mut Vec<String>,
) -> ControlFlow<()> {
    // A binding finds the Role in its own namespace.
    let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
    let subjects = binding["subjects"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(subject) = subjects.iter().find(|s| rules::is_about(s, user, namespace)) else {
        return ControlFlow::Continue(());
    };
    let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
    let role = match binding["roleRef"]["kind"].as_str() {
        Some("Role") => store.get(ROLES, &storage::key(namespace, name)),
        _ => store.get(CLUSTER_ROLES, name),
    };
    let Some(role) = role else {
        let kind = binding["roleRef"]["kind"].as_str().unwrap_or_default().to_lowercase();
        // A missing role allows nothing, but other bindings may.
        faults.push(format!("{kind}.rbac.authorization.k8s.io {name:?} not found"));
        return ControlFlow::Continue(());
    };
    let found = MatchedBinding { binding, subject };
    let rules = role.value["rules"].as_array().map_or(&[][..], Vec::as_slice);
    rules.iter().try_for_each(|rule| visitor(&found, rule))
}

/// Returns the rules that an aggregated role should have: the rules of all roles that the selectors
/// select.
///
/// `None` for roles that do not aggregate others.
pub(crate) fn aggregate(store: &Store, role: &Value) -> Option<Value> {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array()?;
    let (roles, _) = store.snapshot(CLUSTER_ROLES);
    let own = &role["metadata"]["name"];
    let mut rules: Vec<Value> = Vec::new();
    let mut seen = HashSet::new();
    for selector in selectors {
        for (_, other) in &roles {
            let other = &other.value;
            // A role that selects itself would keep rules for ever.
            if &other["metadata"]["name"] == own || !rules::selects(selector, &other["metadata"]) {
                continue;
            }
            for rule in other["rules"].as_array().into_iter().flatten() {
                if seen.insert(rule.clone()) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(json!(rules))
}
