//! Limits on writes of roles and bindings: users grant only rights that they have.
//!
//! A role may hold only rights of the writer, unless the writer has the verb `escalate` on the
//! role; a binding may name only a role whose rights the writer has, unless the writer has the verb
//! `bind` on the role. Members of `system:masters` may grant everything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::auth::Attributes;
use crate::auth::rights::{self, Right};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::{ApiError, FailureSubject};
use crate::storage;
use crate::verbs::VerbCall;

/// Group of all resources about rights.
const GROUP: &str = "rbac.authorization.k8s.io";
/// Group whose members may grant everything.
const MASTERS: &str = "system:masters";

/// Checks that a write of a role or binding grants no more than the user has; `old` is the present
/// object of a change.
pub(crate) fn check(
    core: &ServerCore,
    call: &VerbCall,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    let served = &call.kind.served;
    if served.group != GROUP || call.user.groups.iter().any(|group| group == MASTERS) {
        return Ok(());
    }
    // Finalizers and owners must be removable by users without the rights.
    if old.is_some_and(|old| bare(old) == bare(new)) {
        return Ok(());
    }
    match served.plural.as_str() {
        "roles" | "clusterroles" => role(core, call, old, new),
        _ => binding(core, call, new),
    }
}

/// Returns an object without the fields that garbage collection changes.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
        meta::set(&mut object, field, Value::Null);
    }
    object
}

/// Checks the rules of a role.
fn role(
    core: &ServerCore,
    call: &VerbCall,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    if may(core, call, "escalate", &call.kind.served.plural, &call.name) {
        return Ok(());
    }
    let about = FailureSubject::resource(&call.kind.served, meta::text(new, "name"));
    covered(core, call, &new["rules"]).map_err(|why| ApiError::forbidden(about, &why))?;
    let gathers = |role: &Value| {
        let selectors = &role["aggregationRule"]["clusterRoleSelectors"];
        selectors.as_array().is_some_and(|selectors| !selectors.is_empty())
    };
    if !gathers(new) && !old.is_some_and(gathers) {
        return Ok(());
    }
    // The role could come to hold any rule.
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    covered(core, call, &everything).map_err(|_| {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        ApiError::forbidden(about, why)
    })
}

/// Checks the rules of the role that a binding names.
fn binding(core: &ServerCore, call: &VerbCall, new: &Value) -> Result<(), ApiError> {
    let text = |field: &str| new["roleRef"][field].as_str().unwrap_or_default();
    let (name, namespace) = (text("name"), call.namespace.as_str());
    let (resource, key) = match text("kind") {
        "ClusterRole" => ("clusterroles", name.to_owned()),
        "Role" if !namespace.is_empty() => ("roles", storage::key(namespace, name)),
        // Validation refuses other kinds.
        _ => return Ok(()),
    };
    if may(core, call, "bind", resource, name) {
        return Ok(());
    }
    let Some(held) = core.store.get(&format!("{resource}.{GROUP}"), &key) else {
        return Err(ApiError::not_found(FailureSubject::resource(&call.kind.served, name)));
    };
    let about = FailureSubject::resource(&call.kind.served, meta::text(new, "name"));
    covered(core, call, &held.value["rules"]).map_err(|why| ApiError::forbidden(about, &why))
}

/// Returns whether the user has a verb on a role.
fn may(core: &ServerCore, call: &VerbCall, verb: &str, resource: &str, name: &str) -> bool {
    let wanted = Attributes {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        version: "*".to_owned(),
        resource: resource.to_owned(),
        namespace: call.namespace.clone(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    core.authorizer().authorize(&call.user, &wanted).is_ok()
}

/// Most rights of a role that are compared with the writer's rights. kube-apiserver has no such
/// limit, and makes all comparisons.
const MOST_RIGHTS: usize = 10_000;

/// Returns the sentence about the rights of rules that the user lacks.
fn covered(core: &ServerCore, call: &VerbCall, granted: &Value) -> Result<(), String> {
    let own = core.authorizer().rules(&call.user, &call.namespace);
    let granted = granted.as_array().map_or(&[][..], Vec::as_slice);
    // Before they are made: the product of four short lists has billions of rights.
    let count = granted.iter().map(rights::count).fold(0, usize::saturating_add);
    if count > MOST_RIGHTS {
        return Err(format!(
            "more than {MOST_RIGHTS} rights cannot be compared with those of the user"
        ));
    }
    let mut missing: Vec<Right> = Vec::new();
    for right in granted.iter().flat_map(rights::rights) {
        if own.iter().any(|rule| rights::covers(rule, &right)) {
            continue;
        }
        // Rights that differ in the verb only are named together.
        match missing.iter_mut().find(|known| known.joins(&right)) {
            Some(known) => known.verbs.extend(right.verbs),
            None => missing.push(right),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let sorted: BTreeSet<String> = missing.iter().map(Right::to_string).collect();
    let lines: Vec<String> = sorted.into_iter().collect();
    let groups: Vec<String> = call.user.groups.iter().map(|group| format!("{group:?}")).collect();
    Err(format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        call.user.name,
        groups.join(" "),
        lines.join("\n")
    ))
}
