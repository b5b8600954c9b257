//! Rights to name parameters of admission policies: only parameters that the writer may read.
//!
//! A policy may name only a kind whose objects the writer may get; a binding only objects that the
//! writer may get or list. Members of `system:masters` may name everything.

use std::fmt::Write;

use serde_json::Value;

use crate::auth::{Attributes, User};
use crate::core::ServerCore;
use crate::served::Cause;
use crate::status::forbidden_field;
use crate::verbs::VerbCall;

/// Group of admission policies.
const GROUP: &str = "admissionregistration.k8s.io";
/// Group whose members may name everything.
const MASTERS: &str = "system:masters";

/// Returns the fault of a sound policy or binding whose parameters the user may not read; `old` is
/// the present object of a change.
pub(crate) fn check(
    core: &ServerCore,
    call: &VerbCall,
    old: Option<&Value>,
    new: &Value,
) -> Option<Cause> {
    let served = &call.kind.served;
    if served.group != GROUP || call.user.groups.iter().any(|group| group == MASTERS) {
        return None;
    }
    // Fields that the user did not change need no right.
    let same = |field: &str| old.is_some_and(|old| old["spec"][field] == new["spec"][field]);
    let spec = &new["spec"];
    match served.plural.as_str() {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            let kind = &spec["paramKind"];
            let known = kind.is_null() || same("paramKind");
            (!known).then(|| policy(core, call, kind)).flatten()
        }
        "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => {
            let known = spec["paramRef"].is_null() || same("paramRef") && same("policyName");
            (!known).then(|| binding(core, call, spec)).flatten()
        }
        _ => None,
    }
}

/// Returns the fault of a policy whose writer may not get all objects of the policy's kind of
/// parameters.
fn policy(core: &ServerCore, call: &VerbCall, kind: &Value) -> Option<Cause> {
    let wanted = Attributes {
        verb: "get".to_owned(),
        namespace: "*".to_owned(),
        name: "*".to_owned(),
        ..resource(core, kind).0
    };
    core.authorizer().authorize(&call.user, &wanted).err()?;
    let text = |field: &str| kind[field].as_str().unwrap_or_default();
    let why = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
        shown(&call.user),
        text("kind"),
        text("apiVersion")
    );
    Some(forbidden_field("spec.paramKind", &why))
}

/// Returns the fault of a binding whose writer may not read the objects that the binding names.
fn binding(core: &ServerCore, call: &VerbCall, spec: &Value) -> Option<Cause> {
    let text = |field: &str| spec["paramRef"][field].as_str().filter(|text| !text.is_empty());
    let name = spec["policyName"].as_str().unwrap_or_default();
    let policies = call.kind.served.plural.replace("policybindings", "policies");
    let held = core.store.get(&format!("{policies}.{GROUP}"), name);
    let kind = held.as_ref().map(|held| &held.value["spec"]["paramKind"]);
    let (resource, known) = resource(core, kind.unwrap_or(&Value::Null));
    let verb = if text("name").is_some() { "get" } else { "list" };
    let wanted = Attributes {
        verb: verb.to_owned(),
        namespace: text("namespace").unwrap_or("*").to_owned(),
        name: text("name").unwrap_or("*").to_owned(),
        ..resource
    };
    core.authorizer().authorize(&call.user, &wanted).err()?;
    let user = shown(&call.user);
    let all = format!(
        "user {user} does not have {verb:?} permission for all groups, versions and resources"
    );
    let why = match kind {
        None => {
            format!(
                "unable to get policy {name} to determine minimum required permissions and {all}"
            )
        }
        Some(kind) if !known && !kind.is_null() => {
            let text = |field: &str| kind[field].as_str().unwrap_or_default();
            let kind = format!("&{{{} {}}}", text("apiVersion"), text("kind"));
            format!(
                "unable to resolve paramKind {kind} to determine minimum required permissions and {all}"
            )
        }
        Some(_) => {
            format!(
                "user {user} does not have {verb:?} permission on the object referenced by paramRef"
            )
        }
    };
    Some(forbidden_field("spec.paramRef", &why))
}

/// Returns the resource of a kind of parameters, and whether that resource is served; an unknown
/// kind stands for every resource.
fn resource(core: &ServerCore, kind: &Value) -> (Attributes, bool) {
    let star = || "*".to_owned();
    let all =
        Attributes { group: star(), version: star(), resource: star(), ..Attributes::default() };
    let text = |field: &str| kind[field].as_str().unwrap_or_default();
    if kind.is_null() {
        return (all, false);
    }
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let found = core.registry.table().of_type(group, version, text("kind"));
    let resource = found.as_ref().map_or_else(star, |found| found.served.plural.clone());
    let own = Attributes { group: group.to_owned(), version: version.to_owned(), resource, ..all };
    (own, found.is_some())
}

/// Returns a user as printed by Go: `&{name uid [groups] map[extra]}`.
fn shown(user: &User) -> String {
    let mut extra = String::new();
    for (name, values) in &user.extra {
        let space = if extra.is_empty() { "" } else { " " };
        // Writing to a text cannot fail.
        let _ = write!(extra, "{space}{name}:[{}]", values.join(" "));
    }
    format!("&{{{} {} [{}] map[{extra}]}}", user.name, user.uid, user.groups.join(" "))
}
