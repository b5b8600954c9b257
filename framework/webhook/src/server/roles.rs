//! Rights of an operator that keeps certificates and configurations by itself: by name.

use serde_json::{Value, json};
use windlass_runtime::manager::ManifestContext;

use crate::certificates::secret_name;
use crate::webhooks::Webhooks;

/// API of roles.
const API: &str = "rbac.authorization.k8s.io/v1";

/// Returns the roles and their bindings. The configurations are printed, so none is created.
pub(super) fn of(
    place: &ManifestContext<'_>,
    configuration: &str,
    webhooks: &Webhooks,
) -> Vec<Value> {
    let mut resources = Vec::new();
    if webhooks.registered().any(|hook| hook.is_mutating) {
        resources.push("mutatingwebhookconfigurations");
    }
    if webhooks.registered().any(|hook| !hook.is_mutating) {
        resources.push("validatingwebhookconfigurations");
    }
    let secrets = json!([
        // A role cannot compare the name of a creation.
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create"] },
        {
            "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"],
            "resourceNames": [secret_name(place.name)],
        },
    ]);
    let configurations = json!({
        "apiGroups": ["admissionregistration.k8s.io"], "resources": resources,
        "verbs": ["get", "update"], "resourceNames": [configuration],
    });
    let mut rules = match resources.is_empty() {
        true => Vec::new(),
        false => vec![configurations],
    };
    rules.extend(definitions(webhooks));
    let mut roles = pair(place, ("Role", "RoleBinding"), secrets);
    if !rules.is_empty() {
        roles.extend(pair(place, ("ClusterRole", "ClusterRoleBinding"), json!(rules)));
    }
    roles
}

/// Returns the roles of an operator that keeps conversions in its definitions, and no more.
pub(super) fn of_conversions(place: &ManifestContext<'_>, webhooks: &Webhooks) -> Vec<Value> {
    let rules = definitions(webhooks);
    let roles = rules.map(|rule| pair(place, ("ClusterRole", "ClusterRoleBinding"), json!([rule])));
    roles.unwrap_or_default()
}

/// Returns the rule about the definitions of converted kinds, if there are any.
fn definitions(webhooks: &Webhooks) -> Option<Value> {
    let definitions: Vec<&str> =
        webhooks.conversions().iter().map(|it| it.definition.as_str()).collect();
    let rule = || {
        json!({
            "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "verbs": ["get", "patch"], "resourceNames": definitions,
        })
    };
    (!definitions.is_empty()).then(rule)
}

/// Returns a role and its binding to the operator's account.
fn pair(place: &ManifestContext<'_>, (role, binding): (&str, &str), rules: Value) -> Vec<Value> {
    let name = format!("{}-webhooks", place.name);
    let object = |kind: &str| {
        let labels = json!({ "app.kubernetes.io/name": place.name });
        let mut metadata = json!({ "name": name, "labels": labels });
        if role == "Role" {
            metadata["namespace"] = json!(place.namespace);
        }
        json!({ "apiVersion": API, "kind": kind, "metadata": metadata })
    };
    let (mut granted, mut bound) = (object(role), object(binding));
    granted["rules"] = rules;
    bound["roleRef"] = json!({
        "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name,
    });
    bound["subjects"] = json!([{
        "kind": "ServiceAccount", "name": place.name, "namespace": place.namespace,
    }]);
    vec![granted, bound]
}
