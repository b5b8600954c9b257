//! `APIServices`: an object for each group and version that is served.
//!
//! On a real cluster controllers of kube-apiserver write these objects a little later; here this
//! happens within the write of the definition. Other servers are never asked: an `APIService` that
//! names a Service is unavailable.

// DESIGN.md, 300: Objects that the server makes by itself are written with their cause

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::options::DeleteOptions;
use super::update::{self, NextState};
use super::{VerbCall, bootstrap, delete};
use crate::core::ServerCore;
use crate::crds;
use crate::kinds::{Kind, meta};
use crate::storage::StoredObject;

const GROUP: &str = "apiregistration.k8s.io";
const PLURAL: &str = "apiservices";
/// Store resource of the objects.
const STORAGE: &str = "apiservices.apiregistration.k8s.io";
/// Label of objects that the server manages.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Priorities of the groups and versions of definitions.
const CUSTOM: (u32, u32) = (1000, 100);

/// Status, reason and message of the condition of objects without another server.
const LOCAL: [&str; 3] = ["True", "Local", "Local APIServices are always available"];

/// Priorities of the built-in groups and versions, as in kube-apiserver.
const BUILTIN: [(&str, &str, u32, u32); 22] = [
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16_000, 9),
];

/// Whether another server is to serve a group and version.
pub(crate) fn is_remote(core: &ServerCore, group: &str, version: &str) -> bool {
    let held = core.store.get(STORAGE, &format!("{version}.{group}"));
    held.is_some_and(|held| held.value["spec"]["service"].is_object())
}

/// Returns the versions of a group that other servers are to serve.
pub(crate) fn remote_versions(core: &ServerCore, group: &str) -> Vec<String> {
    let (held, _) = core.store.snapshot(STORAGE);
    let all = held.keys().map(|name| name_parts(name));
    let all = all.filter(|(version, of)| *of == group && is_remote(core, group, version));
    all.map(|(version, _)| version.to_owned()).collect()
}

/// Marks a new object without another server as available: not a manager's write, but a part of the
/// creation.
pub(crate) fn enter(call: &VerbCall, object: &mut Value, now: &str) {
    let service = object["spec"]["service"].is_object();
    if call.kind.is(GROUP, PLURAL) && !service {
        let [status, reason, message] = LOCAL;
        object["status"]["conditions"] = json!([{
            "type": "Available", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now,
        }]);
    }
}

/// Creates the objects of all groups and versions that are served.
pub(crate) fn seed(core: &ServerCore) {
    let table = core.registry.table();
    for (group, version, minimum, priority) in BUILTIN {
        if table.served.iter().any(|one| one.group == group && one.version == version) {
            bootstrap::seed(
                core,
                GROUP,
                PLURAL,
                "",
                object(group, version, "onstart", (minimum, priority)),
            );
        }
    }
    let (definitions, _) = core.store.snapshot(crds::STORAGE);
    for (_, held) in &definitions {
        versions(&held.value).iter().for_each(|version| settle(core, group(&held.value), version));
    }
}

/// Returns the object of a group and version.
fn object(group: &str, version: &str, managed: &str, (minimum, priority): (u32, u32)) -> Value {
    json!({
        "metadata": {"name": format!("{version}.{group}"), "labels": {MANAGED: managed}},
        "spec": {"group": group, "version": version,
            "groupPriorityMinimum": minimum, "versionPriority": priority},
    })
}

/// Returns the group of a definition.
fn group(definition: &Value) -> &str {
    definition["spec"]["group"].as_str().unwrap_or_default()
}

/// Returns the names of all versions of a definition.
fn versions(definition: &Value) -> Vec<String> {
    let all = definition["spec"]["versions"].as_array().into_iter().flatten();
    all.filter_map(|version| version["name"].as_str()).map(str::to_owned).collect()
}

/// Whether a definition serves a version of a group.
fn is_served(core: &ServerCore, wanted: &str, version: &str) -> bool {
    let (definitions, _) = core.store.snapshot(crds::STORAGE);
    definitions.iter().filter(|(_, held)| group(&held.value) == wanted).any(|(_, held)| {
        let all = held.value["spec"]["versions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["name"] == version && one["served"] == true)
    })
}

/// Acts on a write of a definition or of an `APIService`.
pub(crate) fn observe(
    core: &ServerCore,
    kind: &Kind,
    before: Option<&Arc<StoredObject>>,
    after: Option<&Arc<StoredObject>>,
) {
    let states = [before, after].into_iter().flatten();
    if kind.storage == crds::STORAGE {
        let all: BTreeSet<(&str, String)> = states
            .flat_map(|held| {
                versions(&held.value).into_iter().map(move |one| (group(&held.value), one))
            })
            .collect();
        // Only changes of versions lead to other objects, and the end of a definition.
        let same = before.zip(after).is_some_and(|(before, after)| {
            !meta::terminating(&after.value)
                && before.value["spec"]["versions"] == after.value["spec"]["versions"]
        });
        if !same {
            all.iter().for_each(|(group, version)| settle(core, group, version));
        }
    } else if kind.is(GROUP, PLURAL)
        && let Some(held) = after.or(before)
    {
        let (version, group) = name_parts(meta::text(&held.value, "name"));
        settle(core, group, version);
        condition(core, meta::text(&held.value, "name"));
    } else if let (Some(custom), None) = (&kind.custom, after)
        && core.store.get(crds::STORAGE, &custom.definition).is_none()
    {
        // The last instance held the definition back.
        release(core, &kind.served.group);
    }
}

/// Brings all objects of a group into line, whose definition is gone.
fn release(core: &ServerCore, group: &str) {
    let (held, _) = core.store.snapshot(STORAGE);
    for name in held.keys() {
        let (version, of) = name_parts(name);
        if of == group {
            settle(core, group, version);
        }
    }
}

/// Returns version and group of an object's name.
fn name_parts(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

/// Brings the object of a definition's group and version into line with the definitions.
fn settle(core: &ServerCore, group: &str, version: &str) {
    if core.registry.table().is_builtin_group(group) {
        return;
    }
    let wanted = is_served(core, group, version);
    let name = format!("{version}.{group}");
    let Ok(call) = VerbCall::by_server(core, GROUP, PLURAL, "", &name) else { return };
    let made = object(group, version, "true", CUSTOM);
    let Ok(held) = call.find(core) else {
        if wanted {
            bootstrap::seed(core, GROUP, PLURAL, "", made);
        }
        return;
    };
    let is_managed = held.value["metadata"]["labels"][MANAGED] == "true";
    let done = match (is_managed, wanted) {
        (true, false) => {
            let asked = delete::DeletionRequest::Other;
            delete::delete_as(core, &call, &DeleteOptions::default(), asked, &mut Vec::new())
                .map(drop)
        }
        (true, true) if held.value["spec"] != made["spec"] => update::change(core, &call, |held| {
            let mut next = held.cloned().ok_or_else(|| call.not_found())?;
            next["spec"] = made["spec"].clone();
            Ok(NextState::Update(next))
        })
        .map(drop),
        _ => Ok(()),
    };
    if let Err(error) = done {
        tracing::debug!(name, %error, "could not bring an APIService into line");
    }
}

/// Writes whether the server behind an object answers.
fn condition(core: &ServerCore, name: &str) {
    let Ok(mut call) = VerbCall::by_server(core, GROUP, PLURAL, "", name) else { return };
    let Ok(held) = call.find(core) else { return };
    let state = availability(core, &held.value["spec"]["service"]);
    let [status, reason, message] = &state;
    let conditions = held.value["status"]["conditions"].as_array().into_iter().flatten();
    let present = conditions.into_iter().find(|one| one["type"] == "Available");
    let is_same = |one: &Value| {
        one["status"] == **status && one["reason"] == **reason && one["message"] == **message
    };
    if present.is_some_and(is_same) {
        return;
    }
    let since = present.filter(|one| one["status"] == **status);
    let since =
        since.map_or_else(|| json!(core.clock.rfc3339()), |one| one["lastTransitionTime"].clone());
    let fresh = json!({"type": "Available", "status": status, "reason": reason,
        "message": message, "lastTransitionTime": since});
    "status".clone_into(&mut call.subresource);
    let written = update::change(core, &call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        let others = next["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mut others: Vec<Value> =
            others.into_iter().filter(|one| one["type"] != "Available").collect();
        others.push(fresh.clone());
        next["status"]["conditions"] = json!(others);
        Ok(NextState::Update(next))
    });
    if let Err(error) = written {
        tracing::debug!(name, %error, "could not write the condition of an APIService");
    }
}

/// Returns status, reason and message of the condition of an object with this Service.
fn availability(core: &ServerCore, service: &Value) -> [String; 3] {
    if !service.is_object() {
        return LOCAL.map(str::to_owned);
    }
    let text = |field: &str| service[field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let held = core.store.get("services", &crate::storage::key(namespace, name));
    let (reason, message) = if held.is_none() {
        ("ServiceNotFound", format!("service/{name} in {namespace:?} is not present"))
    } else {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        ("EndpointsNotFound", message)
    };
    ["False".to_owned(), reason.to_owned(), message]
}
