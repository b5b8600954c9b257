//! Ownership of children: the key of the parent in an owner reference, and the allowed owners.
//!
//! A child where an owner reference cannot reach, in another namespace or cluster-scoped, carries a
//! mark instead: a label with the uid of the owner, and an annotation with kind, key and uid.
//!
//! Not included: garbage collection, which is the API server's.

// DESIGN.md, 171: Children beyond owner references carry a mark of their owner, by uid

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use windlass_cache::store::{Index, Object, OwnerRef};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, ObjectRef, Resource, ResourceInfo, Scope};

/// Label of a child without an owner reference: the uid of the owner.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// assert_eq!(windlass::owner::OWNER_UID, "windlass.dev/owner-uid");
/// ```
pub const OWNER_UID: &str = "windlass.dev/owner-uid";

/// Annotation of a child without an owner reference: `KIND.GROUP NAMESPACE/NAME UID` of the owner.
///
/// The annotation is read together with the label [`OWNER_UID`], and means nothing without the
/// label.
pub const OWNER: &str = "windlass.dev/owner";

/// The mark of an owner on children without owner references.
///
/// A mark is a claim, like an owner reference: every user who may write an object can write a mark.
/// A mark proves that the object may be deleted and overwritten for that owner, and nothing about
/// any other object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerMark {
    pub(crate) uid: String,
    /// Value of the annotation.
    pub(crate) text: String,
}

impl OwnerMark {
    /// Returns the mark of an object with that uid.
    pub(crate) fn of(info: &ResourceInfo, key: &ObjectKey, uid: &str) -> Self {
        let text = format!("{} {} {uid}", kind_of(info), path_of(key));
        Self { uid: uid.to_owned(), text }
    }

    /// Whether an object carries this mark, with both parts.
    pub(crate) fn is_on(&self, metadata: &ObjectMeta) -> bool {
        let label = metadata.labels.as_ref().and_then(|labels| labels.get(OWNER_UID));
        let annotations = metadata.annotations.as_ref();
        label == Some(&self.uid)
            && annotations.and_then(|annotations| annotations.get(OWNER)) == Some(&self.text)
    }

    /// As [`is_on`](Self::is_on), for a cached object.
    pub(crate) fn is_on_cached(
        &self,
        label: Option<&str>,
        annotation: impl FnOnce() -> Option<String>,
    ) -> bool {
        label == Some(self.uid.as_str()) && annotation().as_ref() == Some(&self.text)
    }
}

/// An owner as named by a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkedOwner<'a> {
    /// `KIND.GROUP`.
    pub(crate) kind: &'a str,
    /// `NAMESPACE/NAME`.
    pub(crate) path: &'a str,
    pub(crate) uid: &'a str,
}

impl<'a> MarkedOwner<'a> {
    /// Reads the annotation; `None` for a text that [`OwnerMark`] does not write.
    pub(crate) fn read(annotation: &'a str) -> Option<Self> {
        let mut words = annotation.split(' ');
        let owner = Self { kind: words.next()?, path: words.next()?, uid: words.next()? };
        let is_whole = words.next().is_none() && !owner.uid.is_empty();
        is_whole.then_some(owner)
    }

    /// Whether the owner has that kind and key, whatever the uid.
    pub(crate) fn is_named(&self, info: &ResourceInfo, key: &ObjectKey) -> bool {
        self.kind == kind_of(info) && self.path == path_of(key)
    }
}

/// Returns the index of marked children by the uid of their owner.
pub(crate) const fn marked_index<K: Resource>() -> Index<K, String> {
    Index::on_path("owner uid", &["metadata", "labels", OWNER_UID])
}

/// Returns the key of the owner that the mark of a child names, if that is an object of kind
/// `parent`.
pub(crate) fn marked_key(child: &Object, parent: &ResourceInfo) -> Option<ObjectKey> {
    let uid = child.metadata().label(OWNER_UID)?.to_owned();
    let annotation = child.annotation(OWNER)?;
    let owner = MarkedOwner::read(&annotation).filter(|owner| owner.uid == uid)?;
    if owner.kind != kind_of(parent) {
        return None;
    }
    let key = match (owner.path.split_once('/'), parent.scope) {
        (Some((namespace, name)), Scope::Namespaced) => ObjectKey::new(Some(namespace), name),
        (None, Scope::Cluster) => ObjectKey::new(None, owner.path),
        _ => return None,
    };
    Some(key.in_cluster(child.key().cluster()))
}

/// Kind and group, without a version: an object is the same in all of them.
fn kind_of(info: &ResourceInfo) -> String {
    if info.group.is_empty() {
        info.kind.to_string()
    } else {
        format!("{}.{}", info.kind, info.group)
    }
}

/// Namespace and name.
fn path_of(key: &ObjectKey) -> String {
    match key.namespace() {
        Some(namespace) => format!("{namespace}/{}", key.name()),
        None => key.name().to_owned(),
    }
}

/// Returns the namespace of a child that carries a mark instead of an owner reference.
///
/// # Errors
/// [`ErrorKind::Usage`] when the owner is cluster-scoped, which can own every object by reference,
/// and when a namespaced child does not name a namespace.
pub(crate) fn marked_namespace(
    parent: &ObjectRef,
    child: &ResourceInfo,
    name: &str,
    asked: Option<&str>,
) -> Result<Option<String>, Error> {
    let refuse = |why: &str| {
        let kind = &child.kind;
        let text = format!("cannot apply {kind} \"{name}\" as a child of {parent}: {why}");
        Err(Error::new(ErrorKind::Usage, text))
    };
    match (parent.key.namespace(), child.scope, asked) {
        (None, _, _) => refuse(
            "a cluster-scoped object owns children everywhere by reference; leave `scope = cluster` out",
        ),
        (Some(_), Scope::Cluster, _) => Ok(None),
        (Some(_), Scope::Namespaced, Some(asked)) => Ok(Some(asked.to_owned())),
        (Some(_), Scope::Namespaced, None) => refuse(
            "a child with `scope = cluster` has to name its namespace; set `metadata.namespace`",
        ),
    }
}

/// Returns the key of the managing controller of a child, if that is an object of kind `parent`.
///
/// `owners` are the owner references of `child`. Versions are not compared: the child of a
/// `v1beta1` parent is a child of the `v1` parent.
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
/// | namespaced | namespaced | the parent's namespace; another namespace is refused |
/// | namespaced | cluster-scoped | refused |
/// | cluster-scoped | namespaced | the namespace in the child, which is required |
/// | cluster-scoped | cluster-scoped | none |
///
/// # Errors
/// [`ErrorKind::Usage`] when an owner reference cannot express the ownership: garbage collection
/// would delete such a child, or never find the owner.
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
            "{} is cluster-scoped, and a namespaced object cannot own one by reference; \
             make it a child of a graph with `scope = cluster`",
            child.kind
        )),
        (Some(own), Scope::Namespaced, Some(other)) if other != own => refuse(format!(
            "it asks for namespace \"{other}\", but owner references do not cross namespaces; \
             leave the namespace out, or make it a child of a graph with `scope = cluster`"
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

    #[test]
    fn a_mark_names_kind_group_key_and_uid_and_is_read_back() {
        let key = ObjectKey::new(Some("shop"), "home");
        let mark = OwnerMark::of(&info("Website", Scope::Namespaced), &key, "1");
        assert_eq!(mark.text, "Website.example.dev shop/home 1");
        let owner = MarkedOwner::read(&mark.text).expect("a mark");
        assert!(owner.is_named(&info("Website", Scope::Namespaced), &key));
        assert!(!owner.is_named(&info("Web", Scope::Namespaced), &key));
        assert!(
            !owner
                .is_named(&info("Website", Scope::Namespaced), &ObjectKey::new(Some("a"), "home"))
        );
        for text in ["", "Website.example.dev shop/home", "a b c d", "a b "] {
            assert_eq!(MarkedOwner::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_mark_counts_only_with_label_and_annotation_of_one_uid() {
        let key = ObjectKey::new(Some("shop"), "home");
        let mark = OwnerMark::of(&info("Website", Scope::Namespaced), &key, "1");
        let with = |uid: &str, text: &str| ObjectMeta {
            labels: Some([(OWNER_UID.to_owned(), uid.to_owned())].into()),
            annotations: Some([(OWNER.to_owned(), text.to_owned())].into()),
            ..ObjectMeta::default()
        };
        assert!(mark.is_on(&with("1", &mark.text)));
        assert!(!mark.is_on(&with("2", &mark.text)));
        assert!(!mark.is_on(&with("1", "Website.example.dev shop/home 2")));
        assert!(!mark.is_on(&with("1", "Website.example.dev bank/home 1")));
        assert!(!mark.is_on(&ObjectMeta::default()));
    }

    #[test]
    fn a_marked_child_lies_anywhere_but_says_where() {
        let (inside, outside) = (info("Web", Scope::Namespaced), info("Web", Scope::Cluster));
        let place =
            |parent: &ObjectRef, child, asked| marked_namespace(parent, child, "web", asked);
        let shop = parent(Some("shop"));
        assert_eq!(place(&shop, &inside, Some("bank")).expect("allowed").as_deref(), Some("bank"));
        assert_eq!(place(&shop, &outside, None).expect("allowed"), None);
        let error = place(&shop, &inside, None).expect_err("refused");
        assert!(error.to_string().contains("set `metadata.namespace`"), "{error}");
        let error = place(&parent(None), &inside, Some("bank")).expect_err("refused");
        assert!(error.to_string().contains("leave `scope = cluster` out"), "{error}");
    }
}
