//! Kubernetes objects as types and as values.
//!
//! | type | describes |
//! |---|---|
//! | [`ResourceInfo`] | a kind: group, version, kind, plural and scope |
//! | [`ObjectKey`] | an object within its kind: namespace and name |
//! | [`ObjectRef`] | an object with its kind |
//! | [`Resource`] | a Rust type that is a kind |
//! | [`DynamicObject`] | an object of a kind that is known at run time only |
//! | [`FieldValue`] | a value that `object!` accepts for a field |
//! | [`PartialObject`] | the metadata of an object, without its content |
//! | [`FieldPath`] | a field of a Rust type, and the field's name in JSON |

// DESIGN.md, 2: `Resource` is a blanket implementation, and a kind's identity is a `ResourceInfo`

mod apply;
mod duration;
mod dynamic;
mod info;
mod key;
mod literal;
pub(crate) mod path;
mod selector;
mod status_fields;
mod time;
mod typed;
mod verb;

pub use apply::{ApplyConfiguration, ApplyIntent, ApplyObject};
pub use duration::ApiDuration;
pub use dynamic::{DynamicObject, PartialObject};
pub use info::{ResourceInfo, Scope, StaticScope};
pub use key::{ClusterId, ObjectKey, ObjectRef};
pub use literal::FieldValue;
pub use path::{FieldPath, Segment};
pub use selector::{Requirement, Selector};
#[doc(hidden)]
pub use status_fields::status_fields;
pub use time::ApiTime;
pub use typed::{StatusOf, StatusPatch};
pub use verb::Verb;

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A Kubernetes object type: every k8s-openapi kind, every `#[derive(CustomResource)]` struct, and
/// [`DynamicObject`] for kinds that are known at run time only.
///
/// Implemented for you: derive `CustomResource`, or use a k8s-openapi type.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::resource::{Resource, ResourceExt, Scope};
///
/// fn describe<K: Resource>(object: &K) -> String {
///     let kind = K::static_info().map_or("object".into(), |info| info.kind);
///     format!("{kind} {}", object.key())
/// }
///
/// let mut web = Deployment::default();
/// web.metadata_mut().name = Some("web".into());
/// web.metadata_mut().namespace = Some("shop".into());
/// assert_eq!(describe(&web), "Deployment shop/web");
/// assert_eq!(Deployment::static_info().map(|info| info.scope), Some(Scope::Namespaced));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes resource",
    note = "derive `windlass::CustomResource` for a kind of your own, or use a type of `k8s_openapi::api`",
    note = "the compiler takes `!` where a call names no kind: write `cx.get::<Pod>(…)`"
)]
pub trait Resource: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The type of the whole kind: this type, except for a projection.
    #[doc(hidden)]
    type Kind;

    /// Texts that only this type has: API version and kind, or the place of a projection. Derived
    /// controllers compare this to learn whether two names are the same type; empty if unknown.
    #[doc(hidden)]
    const IDENTITY: &'static [&'static str] = &[];

    /// Group, version, kind, plural and scope; `None` for types that carry them as a value.
    ///
    /// A type without an info, such as [`DynamicObject`], is used through `Client::dynamic`;
    /// `Client::all` and `Client::namespace` refuse calls of the type.
    fn static_info() -> Option<ResourceInfo>;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// The object's metadata, to change.
    ///
    /// A change is local until the object is written.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;

    /// Sets the type of an object that carries the type as a value: API servers leave the type out
    /// of the items of lists, and write another into metadata-only answers.
    #[doc(hidden)]
    fn set_type(&mut self, _: &ResourceInfo) {}

    /// The type's name, if the type holds only a part of the object: `#[derive(Projection)]`. A
    /// projection has a separate cache beside the caches of the whole kind, and is not
    /// [`FullObject`].
    ///
    /// Default: `None`, the type holds whole objects.
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
    /// `None` when that fails, and for types other than projections. A method of the type, so that
    /// only projections have the code for this conversion.
    #[doc(hidden)]
    fn decode_partial(_text: &str) -> Option<Self> {
        None
    }
}

/// A resource type through which objects can be created or replaced. Every [`Resource`] but
/// projections.
///
/// `create`, `replace`, `patcher` and the upserts of an `Api` require this trait, so that a
/// projection cannot erase unknown fields. All these types hold whole objects, except
/// [`PartialObject`], whose writes an `Api` refuses when they are sent. Implemented for you: there
/// is no reason to implement the trait for a type of your own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold whole objects: they cannot be created or replaced with it",
    note = "a projection knows some fields only, and the others would be lost: use the type of the whole kind, or `patch` or `apply` the fields that you mean"
)]
pub trait FullObject: Resource {}

#[diagnostic::do_not_recommend]
impl<K> FullObject for K
where
    K: k8s_openapi::Resource<Scope: StaticScope> + k8s_openapi::Metadata<Ty = ObjectMeta>,
    K: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
}

#[diagnostic::do_not_recommend]
impl<K> Resource for K
where
    K: k8s_openapi::Resource<Scope: StaticScope> + k8s_openapi::Metadata<Ty = ObjectMeta>,
    K: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    type Kind = Self;

    const IDENTITY: &'static [&'static str] = &[K::API_VERSION, K::KIND];

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
///
/// ```
/// # extern crate windlass_core as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::resource::ResourceExt;
///
/// let map: ConfigMap = serde_json::from_value(serde_json::json!({
///     "metadata": {
///         "name": "settings", "namespace": "shop", "uid": "7a", "resourceVersion": "12",
///         "labels": { "app": "shop" }, "finalizers": ["example.dev/cleanup"],
///     },
/// }))?;
/// assert_eq!((map.name(), map.namespace(), map.uid()), ("settings", Some("shop"), "7a"));
/// assert_eq!(map.label("app"), Some("shop"));
/// assert!(map.has_finalizer("example.dev/cleanup") && !map.is_terminating());
/// assert_eq!(map.key().to_string(), "shop/settings");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait ResourceExt: Resource {
    /// Name; empty before the API server has generated a name.
    fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// Namespace; `None` for cluster-scoped objects.
    fn namespace(&self) -> Option<&str> {
        self.metadata().namespace.as_deref()
    }

    /// Uid; empty before creation.
    ///
    /// The uid separates an object from another object that was created later under the same name.
    fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }

    /// resourceVersion; empty before creation.
    ///
    /// A text that the API server made: two versions of the same object differ, and a write that
    /// names the version fails as a conflict after another write.
    fn resource_version(&self) -> &str {
        self.metadata().resource_version.as_deref().unwrap_or_default()
    }

    /// Generation; 0 when the kind has none.
    ///
    /// The API server raises the generation with each change of the spec, and not with changes of
    /// status and metadata.
    fn generation(&self) -> i64 {
        self.metadata().generation.unwrap_or_default()
    }

    /// Whether the object was created before the other object, by their creation times.
    ///
    /// Creation times are whole seconds: of two objects in the same second the object with the
    /// smaller uid always counts as the older object. For rules that choose a single winner among
    /// rivals. An object that was not created yet is the younger object.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    /// use windlass::resource::ResourceExt;
    ///
    /// let mut first = ConfigMap::default();
    /// first.metadata.creation_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    /// let unsaved = ConfigMap::default();
    /// assert!(first.is_older_than(&unsaved) && !unsaved.is_older_than(&first));
    ///
    /// // Of one second: the smaller uid is the older object.
    /// let mut second = first.clone();
    /// first.metadata.uid = Some("1f".to_owned());
    /// second.metadata.uid = Some("2a".to_owned());
    /// assert!(first.is_older_than(&second) && !second.is_older_than(&first));
    /// ```
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

    /// Whether the object is marked for deletion and waits for finalizers.
    ///
    /// Such an object accepts no new finalizers; removing the last finalizer ends the object.
    fn is_terminating(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    /// Whether the object carries `finalizer`.
    ///
    /// Names are compared by their full text, such as `example.dev/cleanup`.
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.metadata().finalizers.iter().flatten().any(|f| f == finalizer)
    }

    /// A label's value.
    ///
    /// `None` when the object has no such label; an empty value is `Some("")`.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation's value.
    ///
    /// `None` when the object has no such annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Namespace and name.
    ///
    /// In the local cluster; [`ObjectKey::in_cluster`] gives the key another cluster.
    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.name())
    }

    /// A controller owner reference to this object (`controller` and `blockOwnerDeletion` true).
    /// `None` before creation, or for a dynamic object without `apiVersion` and `kind`.
    ///
    /// `info` is the kind of this object, not of the child that carries the reference.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use windlass::resource::{ResourceExt, ResourceInfo};
    ///
    /// let mut web = Deployment::default();
    /// let info = ResourceInfo::of::<Deployment>();
    /// assert!(web.controller_reference(&info).is_none());
    /// (web.metadata.name, web.metadata.uid) = (Some("web".into()), Some("7a".into()));
    /// let owner = web.controller_reference(&info).expect("it has a name and a uid");
    /// assert_eq!((owner.kind.as_str(), owner.controller), ("Deployment", Some(true)));
    /// ```
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
