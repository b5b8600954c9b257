//! RBAC rules as data: constructors, the rules that settings of a controller imply, merging.

use std::collections::{BTreeMap, BTreeSet};

use crate::resource::{ResourceInfo, Scope, Verb};

/// Resources of Kubernetes that no namespace contains, by group, with those that only the verbs
/// `impersonate`, `approve`, `sign` and `attest` know. A Role permits nothing on them; on
/// `namespaces` a Role permits requests for its own namespace.
const CLUSTER: &[(&str, &[&str])] = &[
    ("", &["componentstatuses", "groups", "nodes", "persistentvolumes", "users"]),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apiregistration.k8s.io", &["apiservices"]),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews", "uids", "userextras"]),
    (
        "authorization.k8s.io",
        &["selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles", "signers"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("networking.k8s.io", &["ingressclasses", "ipaddresses", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
    ("resource.k8s.io", &["deviceclasses", "resourceslices"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &[
            "csidrivers",
            "csinodes",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
];

/// An RBAC rule: verbs on a resource or a subresource, or on URLs.
///
/// Rules are compared and sorted by group, resource, scope, names, URLs and verbs, so that printed
/// manifests do not change from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group.
    pub group: String,
    /// Plural, with `/status` and the like; empty in a rule about [URLs](Self::urls).
    pub resource: String,
    /// Scope of the resource. A cluster-scoped resource cannot be granted in a namespace.
    pub scope: Scope,
    /// Names of the objects (`resourceNames`); empty for all.
    pub names: BTreeSet<String>,
    /// Paths that are no resources (`nonResourceURLs`); empty in a rule about a resource.
    pub urls: BTreeSet<String>,
    /// Verbs, as RBAC prints them.
    ///
    /// Sorted; an apply is a `patch`.
    pub verbs: BTreeSet<&'static str>,
}

impl Rule {
    /// `verbs` on `info`, or on a subresource of `info`.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use windlass::rbac::Rule;
    /// use windlass::resource::ResourceInfo;
    ///
    /// let info = ResourceInfo::of::<Deployment>();
    /// let rule = Rule::new(&info, Some("scale"), &["patch"]);
    /// assert_eq!((rule.group.as_str(), rule.resource.as_str()), ("apps", "deployments/scale"));
    /// ```
    pub fn new(info: &ResourceInfo, subresource: Option<&str>, verbs: &[&'static str]) -> Self {
        let resource = match subresource {
            Some(sub) => format!("{}/{sub}", info.plural),
            None => info.plural.to_string(),
        };
        Self { scope: info.scope, ..Self::about(info.group.to_string(), resource, verbs) }
    }

    /// `verbs` on a resource without a Rust type, by the resource's name in RBAC: the plural, the
    /// group behind a dot, a subresource behind a slash.
    ///
    /// Counts as namespaced, except for resources of Kubernetes that no namespace contains, such as
    /// `nodes`, `users` and `signers.certificates.k8s.io`.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use windlass::rbac::Rule;
    ///
    /// let rule = Rule::of_resource("signers.certificates.k8s.io", &["approve"])
    ///     .named(["example.dev/*"]);
    /// assert_eq!((rule.group.as_str(), rule.resource.as_str()), ("certificates.k8s.io", "signers"));
    /// let rule = Rule::of_resource("rollouts.argoproj.io/status", &["get"]);
    /// assert_eq!((rule.group.as_str(), rule.resource.as_str()), ("argoproj.io", "rollouts/status"));
    /// ```
    pub fn of_resource(resource: &str, verbs: &[&'static str]) -> Self {
        let (whole, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let (plural, group) = whole.split_once('.').unwrap_or((whole, ""));
        let is_cluster =
            CLUSTER.iter().any(|(of, plurals)| *of == group && plurals.contains(&plural));
        let resource = if sub.is_empty() { plural.into() } else { format!("{plural}/{sub}") };
        let scope = if is_cluster { Scope::Cluster } else { Scope::Namespaced };
        Self { scope, ..Self::about(group.to_owned(), resource, verbs) }
    }

    /// `verbs`, which are HTTP methods in small letters, on a path that is no resource. A `*` at
    /// the end stands for every path with that beginning.
    ///
    /// Only a `ClusterRole` can grant the rule.
    pub fn of_url(url: &str, verbs: &[&'static str]) -> Self {
        let urls = BTreeSet::from([url.to_owned()]);
        Self { urls, scope: Scope::Cluster, ..Self::about(String::new(), String::new(), verbs) }
    }

    /// Limits the rule to objects of these names.
    ///
    /// RBAC knows no name for decisions about `create` and `deletecollection`: a rule with names
    /// never permits them. `list` and `watch` are permitted for requests with the field selector
    /// `metadata.name=…` only.
    #[must_use]
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// A namespaced rule without names.
    fn about(group: String, resource: String, verbs: &[&'static str]) -> Self {
        let (names, urls) = (BTreeSet::new(), BTreeSet::new());
        let verbs = verbs.iter().copied().collect();
        Self { group, resource, scope: Scope::Namespaced, names, urls, verbs }
    }
}

/// Rules that a controller needs on the reconciled kind: to watch objects, to add the controller's
/// finalizer, to write the status, and to name objects in owner references that block their
/// deletion.
///
/// Three rules: the kind, `status` and `finalizers`.
pub fn main_rules(info: &ResourceInfo) -> Vec<Rule> {
    vec![
        Rule::new(info, None, &["get", "list", "watch", "patch"]),
        Rule::new(info, Some("status"), &["get", "patch", "update"]),
        // For `blockOwnerDeletion`, which an admission plugin checks.
        Rule::new(info, Some("finalizers"), &["update"]),
    ]
}

/// Rules that a controller needs on a kind of children: to watch and to write them.
///
/// `patch` covers applies.
pub fn owned_rules(info: &ResourceInfo) -> Vec<Rule> {
    vec![Rule::new(info, None, &["get", "list", "watch", "create", "patch", "delete"])]
}

/// Rules that a controller needs on a kind that is only watched.
///
/// The verbs of a cache.
pub fn watched_rules(info: &ResourceInfo) -> Vec<Rule> {
    vec![Rule::new(info, None, &["get", "list", "watch"])]
}

/// Rules that are needed to write Events.
///
/// The grants on `events` of `events.k8s.io/v1`. An event that repeats is patched, not created
/// again.
pub fn event_rules() -> Vec<Rule> {
    let info = ResourceInfo::of::<k8s_openapi::api::events::v1::Event>();
    vec![Rule::new(&info, None, &["create", "patch"])]
}

/// A single rule per resource and list of names with the verbs of all, sorted by group and
/// resource.
///
/// A kind in two scopes keeps two rules, and so do all objects of a kind and some by name.
pub fn merge(rules: impl IntoIterator<Item = Rule>) -> Vec<Rule> {
    let mut merged: BTreeMap<Rule, BTreeSet<&'static str>> = BTreeMap::new();
    for mut rule in rules {
        let verbs = std::mem::take(&mut rule.verbs);
        merged.entry(rule).or_default().extend(verbs);
    }
    merged.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule }).collect()
}

/// The RBAC name of a request's verb.
pub fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        // An apply is a PATCH request: RBAC has no verb for an apply.
        Verb::Patch | Verb::Apply => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn rules_for_one_resource_become_one_and_all_are_sorted() {
        let (deployment, pod) = (ResourceInfo::of::<Deployment>(), ResourceInfo::of::<Pod>());
        let mut rules = owned_rules(&deployment);
        rules.extend(watched_rules(&pod));
        rules.push(Rule::new(&deployment, None, &["update"]));
        rules.extend(event_rules());
        let merged = merge(rules);
        let printed: Vec<_> = merged
            .iter()
            .map(|rule| {
                let verbs: Vec<_> = rule.verbs.iter().copied().collect();
                format!("{}/{}: {}", rule.group, rule.resource, verbs.join(","))
            })
            .collect();
        assert_eq!(
            printed,
            [
                "/pods: get,list,watch",
                "apps/deployments: create,delete,get,list,patch,update,watch",
                "events.k8s.io/events: create,patch",
            ]
        );
    }

    #[test]
    fn a_resource_without_a_type_has_the_scope_that_kubernetes_gives_it() {
        let scope = |name| Rule::of_resource(name, &["get"]).scope;
        for cluster in [
            "nodes",
            "nodes/proxy",
            "users",
            "clusterroles.rbac.authorization.k8s.io",
            "signers.certificates.k8s.io",
            "uids.authentication.k8s.io",
            "userextras.authentication.k8s.io/scopes",
        ] {
            assert_eq!(scope(cluster), Scope::Cluster, "{cluster}");
        }
        for namespaced in ["secrets", "roles.rbac.authorization.k8s.io", "users.example.dev"] {
            assert_eq!(scope(namespaced), Scope::Namespaced, "{namespaced}");
        }
    }

    #[test]
    fn rules_with_names_stay_apart_from_rules_for_all_objects() {
        let pod = ResourceInfo::of::<Pod>();
        let rules = merge([
            Rule::new(&pod, None, &["get"]).named(["b", "a"]),
            Rule::new(&pod, None, &["list"]),
            Rule::new(&pod, None, &["delete"]).named(["a", "b"]),
            Rule::of_url("/metrics", &["get"]),
        ]);
        let verbs = |rule: &Rule| rule.verbs.iter().copied().collect::<Vec<_>>().join(",");
        let printed: Vec<_> =
            rules.iter().map(|rule| (rule.names.len(), rule.urls.len(), verbs(rule))).collect();
        let expected =
            [(0, 0, "list".into()), (2, 0, "delete,get".into()), (0, 1, "get".to_owned())];
        assert_eq!(rules.len(), 3);
        for one in expected {
            assert!(printed.contains(&one), "{one:?} not in {printed:?}");
        }
    }
}
