//! The settings with which a store keeps objects.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::fields::{FieldPaths, FieldSelection};
use super::representation::Representation;
use super::transform::Transform;
use crate::store::object::{Object, Path, SharedValue};
use windlass_core::resource::{ClusterId, DynamicObject, Resource, ResourceInfo};
use windlass_core::wire::is_kept_metadata;

/// The settings with which a store keeps objects.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    /// Form in which objects are kept.
    pub(super) form: Encoding,
    /// Change of each object before storage.
    pub(crate) transform: Option<Transform>,
    /// The cluster in the objects' keys.
    pub(crate) cluster: ClusterId,
}

/// The form of kept objects, with its settings.
#[derive(Clone, Default)]
pub(super) enum Encoding {
    /// JSON without the members that the cache never keeps.
    #[default]
    Compact,
    /// JSON of the members that a projection reads; shared, as the settings are cloned.
    Projected(Arc<FieldSelection>),
    /// JSON of the metadata alone.
    Metadata,
    /// JSON compressed with a dictionary of the kind; compact until there is a dictionary.
    Cold,
    /// Values of a type, beside their metadata.
    Decoded(DecodedType),
}

/// The type whose values are kept.
#[derive(Clone)]
pub(super) struct DecodedType {
    /// Decodes an object into the type; the error is the reason.
    pub(super) decode: fn(&Object) -> Result<SharedValue, String>,
    /// The type.
    of: TypeId,
    /// The paths that the type reads.
    fields: FieldPaths,
    /// Whether the type keeps every member as JSON.
    is_dynamic: bool,
}

impl StoreSettings {
    /// Returns the settings of a kind that is read as `K`.
    #[doc(hidden)]
    pub fn of<K: Resource>(representation: Representation, transform: Option<Transform>) -> Self {
        let form = match representation {
            Representation::Typed => Encoding::Decoded(DecodedType::of::<K>(K::projected())),
            _ if K::projection().is_some() => match FieldSelection::of(K::projected()) {
                Some(selection) => Encoding::Projected(Arc::new(selection)),
                None => Encoding::Compact,
            },
            Representation::Compact => Encoding::Compact,
            Representation::Metadata => Encoding::Metadata,
            Representation::Cold => Encoding::Cold,
        };
        Self { form, transform, cluster: ClusterId::default() }
    }

    /// Returns the settings with the keys of that cluster.
    pub(crate) fn in_cluster(self, cluster: ClusterId) -> Self {
        Self { cluster, ..self }
    }

    /// Whether objects are kept with everything that an apply could set.
    pub(crate) fn keeps_intents(&self) -> bool {
        let is_part = matches!(self.form, Encoding::Metadata | Encoding::Projected(_));
        !is_part && self.transform.as_ref().is_none_or(Transform::keeps_intents)
    }

    /// Whether objects are kept as they come.
    pub(crate) fn is_compact(&self) -> bool {
        let is_cold = matches!(self.form, Encoding::Cold);
        matches!(self.form, Encoding::Compact) || (is_cold && cfg!(not(feature = "cold")))
    }

    /// Whether the values at this path may be kept, so that an index may be added late.
    pub(in crate::store) fn may_have(&self, path: Path) -> bool {
        match &self.form {
            Encoding::Compact | Encoding::Cold => true,
            Encoding::Metadata => path.first() == Some(&"metadata"),
            Encoding::Projected(selection) => {
                selection.fields.may_have(path) || is_kept_metadata(path)
            }
            Encoding::Decoded(decoded) => decoded.fields.may_have(path) && decoded.keeps(path),
        }
    }

    /// Whether there is never a value at this path, not even in a new object.
    pub(in crate::store) fn never_has(&self, path: &[&str]) -> bool {
        // Whole objects reach only transforms; indexes get the metadata.
        matches!(self.form, Encoding::Metadata) && path.first() != Some(&"metadata")
    }

    /// Whether every value at this path is known to be kept.
    pub(in crate::store) fn has(&self, path: Path) -> bool {
        match &self.form {
            Encoding::Projected(selection) => selection.fields.has(path) || is_kept_metadata(path),
            Encoding::Decoded(decoded) => decoded.fields.has(path) && decoded.keeps(path),
            _ => true,
        }
    }

    /// Whether the kept form has exactly the object's values at this path. A decoded value may be
    /// encoded differently from the input.
    pub(in crate::store) fn is_exact_at(&self, path: Path) -> bool {
        !matches!(self.form, Encoding::Decoded(_)) && self.has(path)
    }

    /// Returns the fields of the type that objects are read as, if that type is known to have only
    /// a part.
    pub(in crate::store) fn fields(&self) -> Option<FieldPaths> {
        match &self.form {
            Encoding::Projected(selection) => Some(selection.fields),
            Encoding::Decoded(decoded) => Some(decoded.fields),
            _ => None,
        }
    }

    /// Whether the bytes of a projection are enough to evaluate an index on each of these paths.
    /// They are a sixth of a Pod's.
    pub(in crate::store) fn answers(&self, declared: &[(usize, Path)]) -> bool {
        self.is_part() && declared.iter().all(|(_, path)| self.has(path))
    }

    /// Whether objects are cut to the fields of a projection.
    pub(in crate::store) fn is_part(&self) -> bool {
        matches!(self.form, Encoding::Projected(_))
    }

    /// Returns the type of the kept values, if values are kept.
    pub(in crate::store) fn decoded_as(&self) -> TypeId {
        match &self.form {
            Encoding::Decoded(decoded) => decoded.of,
            _ => TypeId::of::<()>(),
        }
    }

    /// Warns when the form is cold without the necessary feature.
    pub(in crate::store) fn warn(&self, info: &ResourceInfo) {
        if cfg!(not(feature = "cold")) && matches!(self.form, Encoding::Cold) {
            tracing::warn!(
                resource = %info,
                "cold objects need windlass's feature `cold`: this cache stays compact"
            );
        }
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "compact",
            Self::Projected(_) => "part",
            Self::Metadata => "metadata",
            Self::Cold => "cold",
            Self::Decoded(_) => "decoded",
        })
    }
}

impl DecodedType {
    /// Builds the settings for values of `K`, which reads these paths.
    fn of<K: Resource>(fields: &'static [&'static [&'static str]]) -> Self {
        let decode = |object: &Object| -> Result<SharedValue, String> {
            let mut value = object.parse::<K>()?;
            without_slack(value.metadata_mut());
            Ok(Arc::new(value))
        };
        Self {
            decode,
            of: TypeId::of::<K>(),
            fields: FieldPaths(fields),
            is_dynamic: TypeId::of::<K>() == TypeId::of::<DynamicObject>(),
        }
    }

    /// Whether a value at the path is known to survive decoding. Types do not list their fields, so
    /// of most types only the metadata count, which every type has.
    fn keeps(&self, path: Path) -> bool {
        self.is_dynamic || is_in_metadata(path)
    }
}

/// Members of `ObjectMeta` that are values or lists of values. Without `managedFields`, which no
/// form keeps.
const VALUES: [&str; 11] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Members of an owner reference.
const OWNER: [&str; 6] = ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];

/// Whether the path ends at a value of `ObjectMeta`.
fn is_in_metadata(path: &[&str]) -> bool {
    match path {
        ["metadata", "labels" | "annotations", _] => true,
        ["metadata", "ownerReferences", member] => OWNER.contains(member),
        ["metadata", member] => VALUES.contains(member),
        _ => false,
    }
}

/// Frees spare capacity: serde allocates four elements for a single element.
fn without_slack(metadata: &mut ObjectMeta) {
    metadata.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    metadata.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
}
