//! Roles and bindings that exist from the start.
//!
//! The defaults are listed in `defaults.txt`, whose head explains the format.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::core::ServerCore;
use crate::kinds::meta;
use crate::verbs::bootstrap;

/// The table.
const TABLE: &str = include_str!("defaults.txt");
/// API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The objects of the table. Read once: tests start servers by the thousand, most of them from a
/// backup that has all of the objects.
static OBJECTS: LazyLock<Vec<(&str, &str, Value)>> = LazyLock::new(|| parse(TABLE));

/// Creates the default roles and bindings; a controller fills the aggregated roles.
pub(crate) fn seed(core: &ServerCore) {
    for (resource, namespace, object) in OBJECTS.iter() {
        if !bootstrap::is_there(core, GROUP, resource, namespace, meta::text(object, "name")) {
            bootstrap::seed(core, GROUP, resource, namespace, object.clone());
        }
    }
}

/// Returns the objects of the table, each with resource and namespace.
fn parse(table: &str) -> Vec<(&'static str, &str, Value)> {
    let mut out: Vec<(&'static str, &str, Value)> = Vec::new();
    for line in table.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (namespace, inner) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "role" => out.push(("clusterroles", "", role(rest))),
            "bind" => out.push(("clusterrolebindings", "", binding("ClusterRole", rest))),
            "role-in" => out.push(("roles", namespace, role(inner))),
            "bind-in" => out.push(("rolebindings", namespace, binding("Role", inner))),
            _ => {}
        }
        if let Some((.., role)) = out.last_mut().filter(|_| line.starts_with("  "))
            && let Value::Array(rules) = &mut role["rules"]
        {
            rules.push(rule(line.trim()));
        }
    }
    out
}

/// Returns the metadata of a default object.
fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

/// Parses the line of a role: a name and the aggregations that include it.
fn role(line: &str) -> Value {
    let mut words = line.split(' ');
    let mut metadata = metadata(words.next().unwrap_or_default());
    let mut selectors = Vec::new();
    for word in words {
        let label = |role: &str| format!("{GROUP}/aggregate-to-{role}");
        if let Some(to) = word.strip_prefix("to=") {
            metadata["labels"][label(to)] = json!("true");
        } else if let Some(from) = word.strip_prefix("from=") {
            selectors.push(json!({"matchLabels": {label(from): "true"}}));
        }
    }
    let mut role = json!({"metadata": metadata, "rules": []});
    if !selectors.is_empty() {
        role["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
    }
    role
}

/// Parses the line of a rule: verbs, groups, resources and paths, separated by `|`.
fn rule(line: &str) -> Value {
    let mut columns = line.split('|').map(str::trim);
    let verbs = match columns.next().unwrap_or_default() {
        "rw" => "create,delete,deletecollection,patch,update",
        "ro" => "get,list,watch",
        "all" => "create,delete,deletecollection,get,list,patch,update,watch",
        other => other,
    };
    let mut rule = Map::new();
    rule.insert("verbs".to_owned(), json!(verbs.split(',').collect::<Vec<_>>()));
    for key in ["apiGroups", "resources", "nonResourceURLs", "resourceNames"] {
        let words = columns.next().unwrap_or_default();
        let words: Vec<&str> = words
            .split(',')
            .filter(|word| !word.is_empty())
            // A dash stands for the core group, whose name is empty.
            .map(|word| if word == "-" { "" } else { word })
            .collect();
        if !words.is_empty() {
            rule.insert(key.to_owned(), json!(words));
        }
    }
    Value::Object(rule)
}

/// Parses the line of a binding: name, name of the role if different, and subjects.
fn binding(kind: &str, line: &str) -> Value {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let (name, role) = name.split_once('=').unwrap_or((name, name));
    let subjects: Vec<Value> = words.map(subject).collect();
    let mut binding = json!({
        "metadata": metadata(name),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
    });
    if !subjects.is_empty() {
        binding["subjects"] = json!(subjects);
    }
    binding
}

/// Parses the subject of a binding.
fn subject(word: &str) -> Value {
    match word.split_once('=') {
        Some(("user", name)) => json!({"kind": "User", "apiGroup": GROUP, "name": name}),
        Some(("account", place)) => {
            let (namespace, name) = place.split_once('/').unwrap_or(("", place));
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        _ => json!({"kind": "Group", "apiGroup": GROUP, "name": word}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_roles_and_bindings() {
        let all = parse(TABLE);
        assert_eq!(all.len(), 133);
        let find = |name: &str| {
            let found = all.iter().find(|(.., object)| object["metadata"]["name"] == name);
            found.map(|(.., object)| object.clone()).unwrap()
        };
        assert_eq!(
            find("cluster-admin")["rules"],
            json!([
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ])
        );
        let edit = find("edit");
        assert_eq!(edit["metadata"]["labels"][format!("{GROUP}/aggregate-to-admin")], "true");
        assert!(edit["aggregationRule"].is_object());
        let view = find("system:aggregate-to-view");
        assert_eq!(view["rules"][0]["apiGroups"], json!([""]));
    }
}
