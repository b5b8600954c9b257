//! Ownership of children: the key of the parent in an owner reference, and the allowed owners.
//!
//! Absent: garbage collection, which is the API server's.

use windlass_cache::store::OwnerRef;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, ObjectRef, ResourceInfo, Scope};

/// Returns the key of the managing controller of a child, if that is an object of kind `parent`.
///
/// `owners` are the owner references of `child`. Versions are not compared: the child of a
/// `v1beta1` parent is a child of its `v1`.
///
/// Only the reference with `controller: true` counts, of which an object has at most one. A
/// reference is a claim of the child's creator: compare the uid before acting on it.
pub fn controller_key<'a>(
    owners: impl IntoIterator<Item = OwnerRef<'a>>,
    parent: &ResourceInfo,
    child: &ObjectKey,
) -> Option<ObjectKey> {
    let mut owners = owners.into_iter();
    let owner = owners.find(|owner| owner.controller && is_kind(owner, parent))?;
    let namespace = match parent.scope {
        // Owner references do not cross namespaces.
        Scope::Namespaced => Some(child.namespace()?),
        Scope::Cluster => None,
    };
    Some(ObjectKey::new(namespace, owner.name).in_cluster(child.cluster()))
}

/// Whether the reference names this kind, in any version.
fn is_kind(owner: &OwnerRef<'_>, info: &ResourceInfo) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    owner.kind == info.kind && group == info.group
}

/// Returns the namespace in which `parent` may own a child of kind `child`; `asked` is the
/// namespace in the child's metadata.
///
/// | parent | child | result |
/// |---|---|---|
/// | namespaced | namespaced | the parent's namespace; another one is refused |
/// | namespaced | cluster-scoped | refused |
/// | cluster-scoped | namespaced | the namespace in the child, which is required |
/// | cluster-scoped | cluster-scoped | none |
///
/// # Errors
/// [`ErrorKind::Usage`] when an owner reference cannot express the ownership: garbage collection
/// would delete such a child, or never find its owner.
pub fn child_namespace(
    parent: &ObjectRef,
    child: &ResourceInfo,
    name: &str,
    asked: Option<&str>,
) -> Result<Option<String>, Error> {
    let refuse = |why: String| {
        let kind = &child.kind;
        let text = format!("cannot apply {kind} \"{name}\" as a child of {parent}: {why}");
        Err(Error::new(ErrorKind::Usage, text))
    };
    match (parent.key.namespace(), child.scope, asked) {
        (None, Scope::Cluster, _) => Ok(None),
        (Some(_), Scope::Cluster, _) => refuse(format!(
            "{} is cluster-scoped, and a namespaced object cannot own one; \
             write it through `cx.api()` and remove it in a finalizer",
            child.kind
        )),
        (Some(own), Scope::Namespaced, Some(other)) if other != own => refuse(format!(
            "it asks for namespace \"{other}\", but owner references do not cross namespaces; \
             leave the namespace out, or write it through `cx.api()` and remove it in a finalizer"
        )),
        (Some(own), Scope::Namespaced, _) => Ok(Some(own.to_owned())),
        (None, Scope::Namespaced, Some(asked)) => Ok(Some(asked.to_owned())),
        (None, Scope::Namespaced, None) => refuse(format!(
            "{} is cluster-scoped, so the child has to name its namespace; set `metadata.namespace`",
            parent.info.kind
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(kind: &'static str, scope: Scope) -> ResourceInfo {
        ResourceInfo {
            group: "example.dev".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()).into(),
            scope,
        }
    }

    fn owner(api_version: &str, controller: bool) -> OwnerRef<'_> {
        OwnerRef { api_version, kind: "Website", name: "home", uid: "1", controller }
    }

    fn parent(namespace: Option<&str>) -> ObjectRef {
        let scope = if namespace.is_some() { Scope::Namespaced } else { Scope::Cluster };
        let key = ObjectKey::new(namespace, "home");
        ObjectRef { info: info("Website", scope), key, uid: None }
    }

    #[test]
    fn the_controller_reference_names_the_parent_whatever_its_version() {
        let website = info("Website", Scope::Namespaced);
        let child = ObjectKey::new(Some("shop"), "web");
        let owners = [owner("other.dev/v1", true), owner("example.dev/v1beta1", true)];
        let expected = ObjectKey::new(Some("shop"), "home");
        assert_eq!(controller_key(owners, &website, &child), Some(expected));
    }

    #[test]
    fn an_owner_that_is_not_the_controller_or_of_another_group_is_not_told() {
        let website = info("Website", Scope::Namespaced);
        let child = ObjectKey::new(Some("shop"), "web");
        let owners = [owner("example.dev/v1", false), owner("v1", true)];
        assert_eq!(controller_key(owners, &website, &child), None);
    }

    #[test]
    fn a_cluster_scoped_parent_is_found_from_a_namespaced_child() {
        let website = info("Website", Scope::Cluster);
        let child = ObjectKey::new(Some("shop"), "web");
        let key = controller_key([owner("example.dev/v1", true)], &website, &child);
        assert_eq!(key, Some(ObjectKey::new(None, "home")));
    }

    #[test]
    fn a_child_is_put_into_its_parents_namespace() {
        let child = info("Web", Scope::Namespaced);
        let found = child_namespace(&parent(Some("shop")), &child, "web", None);
        assert_eq!(found.expect("allowed").as_deref(), Some("shop"));
    }

    #[test]
    fn mistakes_of_scope_are_refused_with_advice() {
        let (inside, outside) = (info("Web", Scope::Namespaced), info("Web", Scope::Cluster));
        let cases = [
            (parent(Some("shop")), &inside, Some("bank"), "do not cross namespaces"),
            (parent(Some("shop")), &outside, None, "cannot own one"),
            (parent(None), &inside, None, "set `metadata.namespace`"),
        ];
        for (parent, child, asked, advice) in cases {
            let error = child_namespace(&parent, child, "web", asked).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
