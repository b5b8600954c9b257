//! Kubernetes objects as types and as values.

mod dynamic;
mod info;
mod key;
mod selector;
mod time;
mod verb;

pub use dynamic::{DynamicObject, PartialObject};
pub use info::{KnownScope, ResourceInfo, Scope};
pub use key::{ClusterId, ObjectKey, ObjectRef};
pub use selector::{Requirement, Selector};
pub use time::ApiTime;
pub use verb::Verb;

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A Kubernetes object type: every k8s-openapi kind, every `#[derive(CustomResource)]` struct, and
/// [`DynamicObject`] for kinds that are known at run time only.
///
/// Implemented for you: derive `CustomResource`, or use a k8s-openapi type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes resource",
    note = "derive `windlass::CustomResource` for a kind of your own, or use a type of `k8s_openapi::api`"
)]
pub trait Resource: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// Group, version, kind, plural and scope; `None` for types that carry them as a value.
    fn static_info() -> Option<ResourceInfo>;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The object's metadata, to change.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// Sets the type of an object that carries its type as a value: API servers leave it out of the
    /// items of lists, and write another into metadata-only answers.
    #[doc(hidden)]
    fn set_type(&mut self, _: &ResourceInfo) {}

    /// The type's name, if it holds only a part of the object: `#[derive(Projection)]`. A
    /// projection has a cache of its own beside the caches of the whole kind, and is not [`Whole`].
    fn projection() -> Option<&'static str> {
        None
    }

    /// Paths of the fields that a projection has of an object; the root for other types.
    #[doc(hidden)]
    fn projected() -> &'static [&'static [&'static str]] {
        &[&[]]
    }

    /// Decodes a projection with the scanner, which skips fields that the projection does not read.
    ///
    /// `None` when that fails, and for types that are no projection. A method of the type, so that
    /// only projections have the code for it.
    #[doc(hidden)]
    fn decode_lean(_text: &str) -> Option<Self> {
        None
    }
}

/// A resource type that holds its objects completely, so that they can be created or replaced
/// with it. Every [`Resource`] but projections.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold whole objects: they cannot be created or replaced with it",
    note = "a projection knows some fields only, and the others would be lost: use the type of the whole kind, or `patch` or `apply` the fields that you mean"
)]
pub trait Whole: Resource {}

#[diagnostic::do_not_recommend]
impl<K> Whole for K
where
    K: k8s_openapi::Resource<Scope: KnownScope> + k8s_openapi::Metadata<Ty = ObjectMeta>,
    K: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
}

impl<K> Resource for K
where
    K: k8s_openapi::Resource<Scope: KnownScope> + k8s_openapi::Metadata<Ty = ObjectMeta>,
    K: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    fn static_info() -> Option<ResourceInfo> {
        Some(ResourceInfo::of::<K>())
    }

    fn metadata(&self) -> &ObjectMeta {
        k8s_openapi::Metadata::metadata(self)
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        k8s_openapi::Metadata::metadata_mut(self)
    }
}

/// Short-hands over [`Resource::metadata`].
pub trait ResourceExt: Resource {
    /// Name; empty before the API server has generated one.
    fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// Namespace; `None` for cluster-scoped objects.
    fn namespace(&self) -> Option<&str> {
        self.metadata().namespace.as_deref()
    }

    /// Uid; empty before creation.
    fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }

    /// resourceVersion; empty before creation.
    fn resource_version(&self) -> &str {
        self.metadata().resource_version.as_deref().unwrap_or_default()
    }

    /// Generation; 0 when the kind has none.
    fn generation(&self) -> i64 {
        self.metadata().generation.unwrap_or_default()
    }

    /// Whether the object was created before the other one, by their creation times.
    ///
    /// Creation times are whole seconds: of two objects in the same second the one with the smaller
    /// uid counts as the older, always the same one. For rules by which one of several rivals wins.
    /// An object that was not created yet is the younger one.
    fn is_older_than(&self, other: &Self) -> bool
    where
        Self: Sized,
    {
        let age = |object: &Self| {
            let created = object.metadata().creation_timestamp.as_ref().map(|time| time.0);
            // `false` comes first: an object without a creation time is the youngest.
            (created.is_none(), created, object.metadata().uid.clone())
        };
        age(self) < age(other)
    }

    /// Whether the object is marked for deletion and waits for its finalizers.
    fn is_terminating(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    /// Whether the object carries `finalizer`.
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata().finalizers.iter().flatten().any(|f| f == finalizer)
    }

    /// A label's value.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Namespace and name.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// A controller owner reference to this object (`controller` and `blockOwnerDeletion` true).
    /// `None` before creation, or for a dynamic object without `apiVersion` and `kind`.
    fn controller_reference(&self, info: &ResourceInfo) -> Option<OwnerReference> {
        Some(OwnerReference {
            api_version: info.api_version(),
            kind: info.kind.to_string(),
            name: self.metadata().name.clone()?,
            uid: self.metadata().uid.clone()?,
            controller: Some(true),
            block_owner_deletion: Some(true),
        })
    }
}

impl<K: Resource> ResourceExt for K {}
