//! Permissions as types and as rules.

use std::collections::BTreeSet;

use crate::client::Verb;
use crate::resource::ResourceInfo;

/// Marker types that name verbs in `can(get Pod)`.
pub mod verbs {
    /// A verb as a type.
    pub trait VerbType {
        /// The verb as RBAC prints it.
        const NAME: &'static str;
    }
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` was not granted this verb on `{K}`",
    note = "add it to the controller's grants: `#[controller(…, can(get {K}))]`"
)]
pub trait Can<V: verbs::VerbType, K> {}

/// `C` owns children of kind `K`. Derived from `#[controller(owns(Deployment))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not own `{K}`",
    note = "add it to the controller: `#[controller(…, owns({K}))]`"
)]
pub trait Owns<K> {}

/// One RBAC rule: verbs on a resource or one of its subresources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API group.
    pub group: String,
    /// Plural, with `/status` and the like.
    pub resource: String,
    /// Verbs, as RBAC prints them.
    pub verbs: BTreeSet<&'static str>,
}

impl Rule {
    /// `verbs` on `info`, or on its subresource.
    pub fn new(info: &ResourceInfo, subresource: Option<&str>, verbs: &[&'static str]) -> Self {
        let resource = match subresource {
            Some(sub) => format!("{}/{sub}", info.plural),
            None => info.plural.to_string(),
        };
        Self { group: info.group.to_string(), resource, verbs: verbs.iter().copied().collect() }
    }
}

/// The RBAC verb of a request.
pub fn verb_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch | Verb::Apply => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
    }
}
