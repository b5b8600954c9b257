//! Permissions as types and as RBAC rules.
//!
//! The derive `#[controller(…)]` implements the traits from the same words from which it prints the
//! rules, so that code which compiles has its permissions in the manifest.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use k8s_openapi::api::core::v1::Pod;
//! use windlass::rbac::{Rule, merge};
//! use windlass::resource::ResourceInfo;
//!
//! let pods = ResourceInfo::of::<Pod>();
//! let rules = merge([Rule::new(&pods, None, &["get"]), Rule::new(&pods, None, &["list", "get"])]);
//! assert_eq!(rules.len(), 1);
//! assert_eq!(rules[0].verbs.iter().copied().collect::<Vec<_>>(), ["get", "list"]);
//! ```

// DESIGN.md, 79: `Can<V, K>` is implemented; calls require `CanGet<K>` and its siblings

use std::collections::{BTreeMap, BTreeSet};

use crate::resource::{ResourceInfo, Scope, Verb};

/// Marker types that name verbs in `can(get Pod)`.
pub mod verbs {
    /// A verb as a type.
    ///
    /// Implemented by the types of this module; none of them has a value of interest.
    pub trait VerbType {
        /// The verb as RBAC prints it.
        const NAME: &'static str;
    }
    /// Defines a type for each verb.
    macro_rules! verb {
        ($($type:ident = $name:literal),*) => {$(
            #[doc = concat!("The verb `", $name, "`.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $type;
            impl VerbType for $type {
                const NAME: &'static str = $name;
            }
        )*};
    }
    verb!(
        Get = "get",
        List = "list",
        Watch = "watch",
        Create = "create",
        Update = "update",
        Patch = "patch",
        Delete = "delete"
    );
}

/// `C` may use verb `V` on kind `K`. Derived from `#[controller(can(get Pod))]`.
///
/// Methods require the trait of their verb, such as [`CanGet`], which this trait implies: the
/// compiler then names the missing verb as it is written in `can(…)`.
pub trait Can<V: verbs::VerbType, K> {}

/// `C` may get objects of kind `K`: [`Can`]`<`[`verbs::Get`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `get` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(get {K}))]`"
)]
pub trait CanGet<K> {}

// Here and below: the compiler then names the missing `Can…`, and not this bound.
#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Get, K>, K> CanGet<K> for C {}

/// `C` may list objects of kind `K`: [`Can`]`<`[`verbs::List`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `list` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(list {K}))]`"
)]
pub trait CanList<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::List, K>, K> CanList<K> for C {}

/// `C` may watch objects of kind `K`: [`Can`]`<`[`verbs::Watch`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `watch` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(watch {K}))]`",
    note = "reading a cache needs `list` as well; `watches({K}, by = …)` grants both and wakes the controller's objects"
)]
pub trait CanWatch<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Watch, K>, K> CanWatch<K> for C {}

/// `C` may create objects of kind `K`: [`Can`]`<`[`verbs::Create`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `create` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(create {K}))]`"
)]
pub trait CanCreate<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Create, K>, K> CanCreate<K> for C {}

/// `C` may update objects of kind `K`: [`Can`]`<`[`verbs::Update`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `update` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(update {K}))]`"
)]
pub trait CanUpdate<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Update, K>, K> CanUpdate<K> for C {}

/// `C` may patch objects of kind `K`: [`Can`]`<`[`verbs::Patch`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `patch` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(patch {K}))]`"
)]
pub trait CanPatch<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Patch, K>, K> CanPatch<K> for C {}

/// `C` may delete objects of kind `K`: [`Can`]`<`[`verbs::Delete`]`, K>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted `delete` on `{K}`",
    note = "add it to the controller: `#[controller(…, can(delete {K}))]`"
)]
pub trait CanDelete<K> {}

#[diagnostic::do_not_recommend]
impl<C: Can<verbs::Delete, K>, K> CanDelete<K> for C {}

/// `C` owns children of kind `K`. Derived from `#[controller(owns(Deployment))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "add it to the controller: `#[controller(…, owns({K}))]`"
)]
pub trait Owns<K> {}

/// `C` has a cache of children of kind `K`: it [`Owns`] the kind.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "the cache of a kind that it only watches is `cx.watched::<{K}>()`",
    note = "if it makes children of that kind: `#[controller(…, owns({K}))]`"
)]
pub trait OwnsCache<K> {}

#[diagnostic::do_not_recommend]
impl<C: Owns<K>, K> OwnsCache<K> for C {}

/// One RBAC rule: verbs on a resource or one of its subresources.
///
/// Rules are compared and sorted by group, resource, scope and verbs, so that printed manifests do
/// not change from run to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group.
    pub group: String,
    /// Plural, with `/status` and the like.
    pub resource: String,
    /// Scope of the resource. A cluster-scoped one cannot be granted in a namespace.
    pub scope: Scope,
    /// Verbs, as RBAC prints them.
    ///
    /// Sorted; an apply is a `patch`.
    pub verbs: BTreeSet<&'static str>,
}

impl Rule {
    /// `verbs` on `info`, or on its subresource.
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
        let verbs = verbs.iter().copied().collect();
        Self { group: info.group.to_string(), resource, scope: info.scope, verbs }
    }
}

/// Rules that a controller needs on the kind it reconciles: to watch it, to put its finalizer on
/// it, to write its status, and to name it in owner references that block its deletion.
///
/// Three rules: the kind, its `status` and its `finalizers`.
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

/// Rules that a controller needs on a kind it only watches.
///
/// The verbs of a cache.
pub fn watched_rules(info: &ResourceInfo) -> Vec<Rule> {
    vec![Rule::new(info, None, &["get", "list", "watch"])]
}

/// Rules that are needed to write Events.
///
/// Of `events.k8s.io/v1`. An event that repeats is patched, not created again.
pub fn event_rules() -> Vec<Rule> {
    let info = ResourceInfo::of::<k8s_openapi::api::events::v1::Event>();
    vec![Rule::new(&info, None, &["create", "patch"])]
}

/// One rule per resource with the verbs of all, sorted by group and resource.
///
/// A kind in two scopes keeps two rules.
pub fn merge(rules: impl IntoIterator<Item = Rule>) -> Vec<Rule> {
    let mut merged: BTreeMap<(String, String, Scope), BTreeSet<&'static str>> = BTreeMap::new();
    for rule in rules {
        merged.entry((rule.group, rule.resource, rule.scope)).or_default().extend(rule.verbs);
    }
    let rule = |((group, resource, scope), verbs)| Rule { group, resource, scope, verbs };
    merged.into_iter().map(rule).collect()
}

/// The RBAC name of a request's verb.
pub fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        // An apply is a PATCH request: RBAC has no verb of its own for it.
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
}
