//! Discovery documents: the served groups, versions and resources.
//!
//! Both forms come from the same [`Served`] values: the older documents per group and version, and
//! the aggregated document that newer clients request. Content negotiation and entity tags belong
//! to the handlers.

#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::names::version_rank;
use crate::served::{Served, Subresource};

/// Groups that a real server lists first, in its order.
const ORDER: [&str; 20] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Returns `/api`: the versions of the core group, and the address of the server for all clients.
pub fn api_versions(address: &str) -> Value {
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]);
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses})
}

/// Returns `/apis`: all groups but the core group.
pub fn group_list(served: &[Served]) -> Value {
    let groups: Vec<Value> =
        groups(served).iter().map(|group| Value::Object(describe_group(served, group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns `/apis/{group}`; `None` if nothing of the group is served.
pub fn group(served: &[Served], group: &str) -> Option<Value> {
    if group.is_empty() || !served.iter().any(|s| s.group == group) {
        return None;
    }
    let mut map = describe_group(served, group);
    map.insert("kind".to_owned(), json!("APIGroup"));
    map.insert("apiVersion".to_owned(), json!("v1"));
    Some(Value::Object(map))
}

/// Returns `/apis/{group}` of a group with these versions that others serve; `None` without one.
pub(crate) fn remote_group(group: &str, versions: &[String]) -> Option<Value> {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group,
        "preferredVersion": preferred, "versions": versions,
    }))
}

/// Returns `/api/v1` or `/apis/{group}/{version}`; `None` if nothing of the version is served.
pub fn resource_list(served: &[Served], group: &str, version: &str) -> Option<Value> {
    let resources = resources(served, group, version);
    let first = resources.first()?;
    let mut out = Vec::new();
    for resource in &resources {
        out.push(describe(resource));
        out.extend(subresources(resource).iter().map(|sub| describe_sub(resource, sub)));
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": first.api_version(),
        "resources": out,
    });
    // The list of the core group is older than this field.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// Returns the aggregated document (`apidiscovery.k8s.io/v2`) of `/api` (`core`) or `/apis`.
pub fn aggregated(served: &[Served], core: bool) -> Value {
    let groups = if core { vec![""] } else { groups(served) };
    let items: Vec<Value> = groups.into_iter().map(|g| aggregate_group(served, g)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

/// Returns the served groups: those that a real server knows first, then the others by name.
fn groups(served: &[Served]) -> Vec<&str> {
    let mut groups: Vec<&str> =
        served.iter().map(|s| s.group.as_str()).filter(|g| !g.is_empty()).collect();
    groups.sort_by_key(|g| (ORDER.iter().position(|o| o == g).unwrap_or(ORDER.len()), *g));
    groups.dedup();
    groups
}

/// Returns the versions of a group, the preferred version first.
fn versions<'a>(served: &'a [Served], group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> =
        served.iter().filter(|s| s.group == group).map(|s| s.version.as_str()).collect();
    versions.sort_by(|a, b| version_rank(b).cmp(&version_rank(a)).then(a.cmp(b)));
    // A version serves many resources.
    versions.dedup();
    versions
}

/// Returns name and versions of a group.
fn describe_group(served: &[Served], group: &str) -> Map<String, Value> {
    let versions: Vec<Value> = versions(served, group)
        .iter()
        .map(|v| json!({"groupVersion": format!("{group}/{v}"), "version": v}))
        .collect();
    let mut map = Map::new();
    map.insert("name".to_owned(), json!(group));
    map.insert("preferredVersion".to_owned(), versions.first().cloned().unwrap_or_default());
    map.insert("versions".to_owned(), Value::Array(versions));
    map
}

/// Returns the resources of a group and version, by name.
fn resources<'a>(served: &'a [Served], group: &str, version: &str) -> Vec<&'a Served> {
    let mut found: Vec<&Served> =
        served.iter().filter(|s| s.group == group && s.version == version).collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

/// Returns the subresources in the order of discovery: by name, but as declared for custom
/// resources.
fn subresources(resource: &Served) -> Vec<&Subresource> {
    let mut subs: Vec<&Subresource> = resource.subresources.iter().collect();
    if !resource.custom {
        subs.sort_by(|a, b| a.name.cmp(&b.name));
    }
    subs
}

/// Returns a resource in the unaggregated form.
fn describe(resource: &Served) -> Value {
    let mut out = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        out["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        out["categories"] = json!(resource.categories);
    }
    // Only stored resources have a version in which they are stored.
    if resource.verbs.iter().any(|v| v == "watch") {
        out["storageVersionHash"] = json!(storage_hash(resource));
    }
    out
}

/// Returns a digest that changes with the version in which objects are stored, without naming that
/// version.
fn storage_hash(resource: &Served) -> String {
    STANDARD.encode(&Sha256::digest(resource.stored_as.as_bytes())[..8])
}

/// Whether the kind of a subresource belongs to another group than the parent.
fn foreign(resource: &Served, sub: &Subresource) -> bool {
    !sub.group.is_empty() && sub.group != resource.group
}

/// Returns a subresource in the unaggregated form.
fn describe_sub(resource: &Served, sub: &Subresource) -> Value {
    let mut out = json!({
        "name": format!("{}/{}", resource.plural, sub.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": sub.kind,
        "verbs": sub.verbs,
    });
    if foreign(resource, sub) {
        out["group"] = json!(sub.group);
        out["version"] = json!(sub.version);
    }
    out
}

/// Returns a group in the aggregated form.
fn aggregate_group(served: &[Served], group: &str) -> Value {
    let versions: Vec<Value> = versions(served, group)
        .into_iter()
        .map(|version| {
            let resources: Vec<Value> =
                resources(served, group, version).into_iter().map(aggregate).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

/// Returns a resource in the aggregated form.
fn aggregate(resource: &Served) -> Value {
    // A real server leaves group and version of built-in kinds empty: they are those of the
    // document.
    let own = |kind: &str| match resource.custom {
        true => json!({"group": resource.group, "version": resource.version, "kind": kind}),
        false => json!({"group": "", "version": "", "kind": kind}),
    };
    let subs: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|sub| {
            let kind = match foreign(resource, sub) {
                true => json!({"group": sub.group, "version": sub.version, "kind": sub.kind}),
                false => own(&sub.kind),
            };
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    let mut out = json!({
        "resource": resource.plural,
        "responseKind": own(&resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        out["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        out["categories"] = json!(resource.categories);
    }
    if !subs.is_empty() {
        out["subresources"] = Value::Array(subs);
    }
    out
}
