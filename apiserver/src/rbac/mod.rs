//! Whether a user may do something: roles and bindings, evaluated over the stored objects.
//!
//! The evaluation is a pure function of a [`Policy`] view; it stores nothing and caches nothing, so
//! a changed role counts for the next request.

mod defaults;

use std::sync::Arc;

use serde_json::Value;

use crate::auth::{MASTERS, User};

pub(crate) use defaults::default_objects;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What a request wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, … ; for non-resource paths the lower-case HTTP method.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural resource; empty for non-resource paths.
    pub resource: String,
    /// Subresource; may be empty.
    pub subresource: String,
    /// Namespace; empty for cluster-wide requests.
    pub namespace: String,
    /// Name of the object; empty for collections.
    pub name: String,
    /// The path of a non-resource request.
    pub path: String,
}

impl Attributes {
    /// The text of a refusal, as kube-apiserver words it.
    pub fn refusal(&self, user: &User) -> String {
        if self.resource.is_empty() {
            return format!(
                "forbidden: User {:?} cannot {} path {:?}",
                user.name, self.verb, self.path
            );
        }
        let qualified = |resource: &str| match self.group.as_str() {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        };
        let about = match self.name.as_str() {
            "" => format!("{} is forbidden", qualified(&self.resource)),
            name => format!("{} {name:?} is forbidden", qualified(&self.resource)),
        };
        let resource = match self.subresource.as_str() {
            "" => self.resource.clone(),
            sub => format!("{}/{sub}", self.resource),
        };
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "{about}: User {:?} cannot {} resource {resource:?} in API group {:?} {place}",
            user.name, self.verb, self.group
        )
    }
}

/// Read access to the stored roles and bindings.
pub trait Policy {
    /// All objects of one rbac resource: cluster-wide ones for `None`, else those of a namespace.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// One object of an rbac resource.
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>>;
}

/// May `user` do what `wanted` says?
pub fn allowed(policy: &dyn Policy, user: &User, wanted: &Attributes) -> bool {
    user.is_in(MASTERS)
        || rules_of(policy, user, &wanted.namespace).iter().any(|rule| covers(rule, wanted))
}

/// Every rule that applies to `user` in `namespace` (cluster-wide only when empty).
pub fn rules_of(policy: &dyn Policy, user: &User, namespace: &str) -> Vec<Value> {
    let mut rules = Vec::new();
    let mut collect = |bindings: Vec<Arc<Value>>, namespace: Option<&str>| {
        for binding in bindings.iter().filter(|binding| names(binding, user, namespace)) {
            rules.extend(rules_of_role(policy, binding, namespace));
        }
    };
    collect(policy.list("clusterrolebindings", None), None);
    if !namespace.is_empty() {
        collect(policy.list("rolebindings", Some(namespace)), Some(namespace));
    }
    rules
}

fn rules_of_role(policy: &dyn Policy, binding: &Value, namespace: Option<&str>) -> Vec<Value> {
    let name = text(binding, "/roleRef/name");
    let role = match (text(binding, "/roleRef/kind"), namespace) {
        ("ClusterRole", _) => policy.get("clusterroles", None, name),
        ("Role", Some(namespace)) => policy.get("roles", Some(namespace), name),
        _ => None,
    };
    let Some(role) = role else { return Vec::new() };
    let mut rules: Vec<Value> =
        role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    rules.extend(aggregated(policy, &role));
    rules
}

/// Rules that an aggregated ClusterRole takes over from the roles that its selectors match.
fn aggregated(policy: &dyn Policy, role: &Value) -> Vec<Value> {
    let Some(selectors) =
        role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array)
    else {
        return Vec::new();
    };
    let mut rules = Vec::new();
    for other in policy.list("clusterroles", None) {
        let labels = other.pointer("/metadata/labels");
        let matched = selectors
            .iter()
            .filter_map(|selector| selector.get("matchLabels")?.as_object())
            .any(|wanted| {
                !wanted.is_empty()
                    && wanted.iter().all(|(key, value)| {
                        labels.and_then(|labels| labels.get(key)) == Some(value)
                    })
            });
        if matched {
            rules.extend(other.get("rules").and_then(Value::as_array).cloned().unwrap_or_default());
        }
    }
    rules
}

/// Does a binding name this user, one of its groups, or its service account?
fn names(binding: &Value, user: &User, namespace: Option<&str>) -> bool {
    binding.get("subjects").and_then(Value::as_array).into_iter().flatten().any(|subject| {
        let name = text(subject, "/name");
        match text(subject, "/kind") {
            "User" => name == user.name,
            "Group" => user.is_in(name),
            "ServiceAccount" => {
                let own = Some(text(subject, "/namespace"))
                    .filter(|namespace| !namespace.is_empty())
                    .or(namespace);
                own.is_some_and(|namespace| {
                    user.name == format!("system:serviceaccount:{namespace}:{name}")
                })
            }
            _ => false,
        }
    })
}

fn covers(rule: &Value, wanted: &Attributes) -> bool {
    if !has(rule, "verbs", &wanted.verb) {
        return false;
    }
    if wanted.resource.is_empty() {
        return list(rule, "nonResourceURLs").any(|pattern| covers_path(pattern, &wanted.path));
    }
    if !has(rule, "apiGroups", &wanted.group) {
        return false;
    }
    let resource = match wanted.subresource.as_str() {
        "" => wanted.resource.clone(),
        sub => format!("{}/{sub}", wanted.resource),
    };
    let any_of_subresource = format!("*/{}", wanted.subresource);
    let covered = list(rule, "resources").any(|own| {
        own == "*"
            || own == resource
            || (!wanted.subresource.is_empty() && own == any_of_subresource)
    });
    covered
        && (list(rule, "resourceNames").next().is_none()
            || list(rule, "resourceNames").any(|name| name == wanted.name))
}

fn covers_path(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

fn has(rule: &Value, field: &str, wanted: &str) -> bool {
    list(rule, field).any(|own| own == "*" || own == wanted)
}

fn list<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Fixed(BTreeMap<(String, Option<String>, String), Arc<Value>>);

    impl Fixed {
        fn with(mut self, resource: &str, namespace: Option<&str>, object: Value) -> Self {
            let name = text(&object, "/metadata/name").to_owned();
            self.0.insert(
                (resource.to_owned(), namespace.map(str::to_owned), name),
                Arc::new(object),
            );
            self
        }
    }

    impl Policy for Fixed {
        fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
            self.0
                .iter()
                .filter(|((r, n, _), _)| r == resource && n.as_deref() == namespace)
                .map(|(_, v)| Arc::clone(v))
                .collect()
        }

        fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
            self.0
                .get(&(resource.to_owned(), namespace.map(str::to_owned), name.to_owned()))
                .cloned()
        }
    }

    fn role(name: &str, rules: Value) -> Value {
        json!({ "metadata": { "name": name }, "rules": rules })
    }

    fn binding(role_kind: &str, role: &str, subject: Value) -> Value {
        json!({ "metadata": { "name": "b" }, "roleRef": { "kind": role_kind, "name": role }, "subjects": [subject] })
    }

    fn wants(verb: &str, resource: &str, namespace: &str, name: &str) -> Attributes {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes {
            verb: verb.into(),
            resource: resource.into(),
            subresource: sub.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        }
    }

    fn ann() -> User {
        User::authenticated("ann", &["dev"])
    }

    #[test]
    fn a_master_may_do_everything() {
        assert!(allowed(&Fixed::default(), &User::admin(), &wants("delete", "nodes", "", "n")));
    }

    #[test]
    fn a_role_counts_in_its_namespace_only() {
        let policy = Fixed::default()
            .with(
                "roles",
                Some("shop"),
                role("r", json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }])),
            )
            .with(
                "rolebindings",
                Some("shop"),
                binding("Role", "r", json!({ "kind": "User", "name": "ann" })),
            );
        assert!(allowed(&policy, &ann(), &wants("get", "pods", "shop", "p")));
        assert!(!allowed(&policy, &ann(), &wants("get", "pods", "other", "p")));
        assert!(!allowed(&policy, &ann(), &wants("list", "pods", "shop", "")));
        assert!(!allowed(&policy, &ann(), &wants("get", "pods", "", "")));
    }

    #[test]
    fn a_cluster_role_bound_in_a_namespace_does_not_reach_others() {
        let policy = Fixed::default()
            .with(
                "clusterroles",
                None,
                role("r", json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }])),
            )
            .with(
                "rolebindings",
                Some("shop"),
                binding("ClusterRole", "r", json!({ "kind": "Group", "name": "dev" })),
            );
        assert!(allowed(&policy, &ann(), &wants("delete", "secrets", "shop", "s")));
        assert!(!allowed(&policy, &ann(), &wants("delete", "secrets", "other", "s")));
    }

    #[test]
    fn a_subresource_needs_its_own_rule() {
        let rules =
            json!([{ "verbs": ["update"], "apiGroups": [""], "resources": ["pods", "*/scale"] }]);
        let policy = Fixed::default().with("clusterroles", None, role("r", rules)).with(
            "clusterrolebindings",
            None,
            binding("ClusterRole", "r", json!({ "kind": "User", "name": "ann" })),
        );
        assert!(allowed(&policy, &ann(), &wants("update", "pods", "x", "p")));
        assert!(!allowed(&policy, &ann(), &wants("update", "pods/status", "x", "p")));
        assert!(allowed(&policy, &ann(), &wants("update", "pods/scale", "x", "p")));
    }

    #[test]
    fn resource_names_limit_a_rule_and_exclude_collections() {
        let rules = json!([{ "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"] }]);
        let policy = Fixed::default().with("clusterroles", None, role("r", rules)).with(
            "clusterrolebindings",
            None,
            binding("ClusterRole", "r", json!({ "kind": "User", "name": "ann" })),
        );
        assert!(allowed(&policy, &ann(), &wants("get", "configmaps", "x", "a")));
        assert!(!allowed(&policy, &ann(), &wants("get", "configmaps", "x", "b")));
        assert!(!allowed(&policy, &ann(), &wants("list", "configmaps", "x", "")));
    }

    #[test]
    fn a_service_account_is_its_qualified_user() {
        let policy = Fixed::default()
            .with(
                "clusterroles",
                None,
                role("r", json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }])),
            )
            .with(
                "clusterrolebindings",
                None,
                binding(
                    "ClusterRole",
                    "r",
                    json!({ "kind": "ServiceAccount", "name": "op", "namespace": "shop" }),
                ),
            );
        let account = User::authenticated("system:serviceaccount:shop:op", &[]);
        assert!(allowed(&policy, &account, &wants("get", "pods", "x", "p")));
        assert!(!allowed(
            &policy,
            &User::authenticated("op", &[]),
            &wants("get", "pods", "x", "p")
        ));
    }

    #[test]
    fn paths_match_exactly_or_by_a_final_star() {
        let policy = Fixed::default()
            .with(
                "clusterroles",
                None,
                role(
                    "r",
                    json!([{ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/openapi/*"] }]),
                ),
            )
            .with(
                "clusterrolebindings",
                None,
                binding("ClusterRole", "r", json!({ "kind": "User", "name": "ann" })),
            );
        let path = |path: &str| Attributes {
            verb: "get".into(),
            path: path.into(),
            ..Attributes::default()
        };
        assert!(allowed(&policy, &ann(), &path("/healthz")));
        assert!(allowed(&policy, &ann(), &path("/openapi/v3")));
        assert!(!allowed(&policy, &ann(), &path("/healthz/etcd")));
    }

    #[test]
    fn the_default_roles_let_everybody_discover_and_nobody_read_secrets() {
        let mut policy = Fixed::default();
        for (resource, object) in default_objects() {
            policy = policy.with(resource, None, object);
        }
        let path = Attributes {
            verb: "get".into(),
            path: "/apis/apps/v1".into(),
            ..Attributes::default()
        };
        assert!(allowed(&policy, &ann(), &path));
        assert!(!allowed(&policy, &User::anonymous(), &path));
        assert!(!allowed(&policy, &ann(), &wants("get", "secrets", "default", "s")));
    }

    #[test]
    fn an_aggregated_role_has_the_rules_of_the_roles_it_selects() {
        let policy = Fixed::default()
            .with(
                "clusterroles",
                None,
                json!({ "metadata": { "name": "all" }, "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "to": "all" } }] } }),
            )
            .with(
                "clusterroles",
                None,
                json!({ "metadata": { "name": "part", "labels": { "to": "all" } }, "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }] }),
            )
            .with("clusterrolebindings", None, binding("ClusterRole", "all", json!({ "kind": "User", "name": "ann" })));
        assert!(allowed(&policy, &ann(), &wants("get", "pods", "x", "p")));
    }

    #[test]
    fn a_refusal_reads_like_kube_apiservers() {
        let wanted =
            Attributes { group: "apps".into(), ..wants("get", "deployments/scale", "shop", "x") };
        assert_eq!(
            wanted.refusal(&ann()),
            r#"deployments.apps "x" is forbidden: User "ann" cannot get resource "deployments/scale" in API group "apps" in the namespace "shop""#
        );
        let path =
            Attributes { verb: "get".into(), path: "/metrics".into(), ..Attributes::default() };
        assert_eq!(path.refusal(&ann()), r#"forbidden: User "ann" cannot get path "/metrics""#);
        assert_eq!(GROUP, "rbac.authorization.k8s.io");
    }
}
