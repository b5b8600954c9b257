//! Conversion of an object into the form in which its kind is kept: cut to the fields of a
//! projection, decoded, metadata only, or compressed.
//!
//! An object arrives compact, and indexes on paths read it so; then it is converted, outside of
//! every lock. An object that cannot be converted (it does not decode, it would not get smaller)
//! stays compact: the next read returns the error, and the next version is tried anew.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;

use super::buffer_pool::Buffer;
use super::content::Content;
use super::detached_values::{DetachedIndexValues, Fields};
use super::mode::{Representation, Transform};
use super::object::{Object, StoreShared};
use super::projected::Selection;
use super::values::{IndexPlan, Path};
use crate::resource::{ClusterId, ObjectKey, Reads, Resource, ResourceExt, ResourceInfo, reads};
use crate::wire::{MetadataScan, is_of_head, object_at_path, times};

/// The settings with which a store keeps its objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mode {
    form: Encoding,
    pub(crate) transform: Option<Transform>,
    /// The cluster in the objects' keys.
    pub(crate) cluster: ClusterId,
    /// Paths of a projection for which the kind's type has no field.
    misread: Vec<Path>,
}

/// The form of kept objects, with the settings that it needs.
#[derive(Clone, Default)]
enum Encoding {
    #[default]
    Compact,
    Part(Arc<Selection>),
    Metadata,
    Cold,
    Decoded(Decoded),
}

/// The type whose values are kept.
#[derive(Clone)]
struct Decoded {
    decode: fn(&Object) -> Result<Shared, String>,
    of: TypeId,
    /// The paths that the type reads.
    fields: Fields,
    /// Whether a value at a path survives decoding.
    keeps: fn(&[&str]) -> bool,
    /// Answers of `keeps`: it is asked once for each path.
    kept: Arc<Mutex<BTreeMap<Path, bool>>>,
}

/// A decoded value of any type.
type Shared = Arc<dyn Value + Send + Sync>;

impl Mode {
    /// Returns the mode of a kind that is read as `K`.
    pub(crate) fn of<K: Resource>(
        representation: Representation,
        transform: Option<Transform>,
    ) -> Self {
        let form = match representation {
            Representation::Typed => Encoding::Decoded(Decoded::of::<K>(K::projected())),
            _ if K::projection().is_some() => match Selection::of(K::projected()) {
                Some(selection) => Encoding::Part(Arc::new(selection)),
                None => Encoding::Compact,
            },
            Representation::Compact => Encoding::Compact,
            Representation::Metadata => Encoding::Metadata,
            Representation::Cold => Encoding::Cold,
        };
        Self { form, transform, cluster: ClusterId::default(), misread: misread::<K>() }
    }

    /// Returns the mode with the keys of that cluster.
    pub(crate) fn in_cluster(self, cluster: ClusterId) -> Self {
        Self { cluster, ..self }
    }

    /// Whether objects are kept as they come.
    pub(crate) fn is_compact(&self) -> bool {
        let is_cold = matches!(self.form, Encoding::Cold);
        matches!(self.form, Encoding::Compact) || (is_cold && cfg!(not(feature = "cold")))
    }

    /// Whether a value at this path may be kept.
    pub(super) fn may_have(&self, path: Path) -> bool {
        match &self.form {
            Encoding::Compact | Encoding::Cold => true,
            Encoding::Metadata => path.first() == Some(&"metadata"),
            Encoding::Part(selection) => selection.fields.may_have(path) || is_of_head(path),
            Encoding::Decoded(decoded) => decoded.fields.may_have(path) && decoded.keeps(path),
        }
    }

    /// Whether there is never a value at this path, not even in a new object.
    pub(super) fn never_has(&self, path: &[&str]) -> bool {
        // Whole objects reach only transforms; indexes get the metadata.
        matches!(self.form, Encoding::Metadata) && path.first() != Some(&"metadata")
    }

    /// Whether every value at this path is kept.
    pub(super) fn has(&self, path: Path) -> bool {
        match &self.form {
            Encoding::Part(selection) => selection.fields.has(path) || is_of_head(path),
            Encoding::Decoded(decoded) => decoded.fields.has(path) && decoded.keeps(path),
            _ => true,
        }
    }

    /// Whether the kept form has exactly the object's values at this path. A decoded value may be
    /// encoded differently from its input.
    pub(super) fn tells(&self, path: Path) -> bool {
        !matches!(self.form, Encoding::Decoded(_)) && self.has(path)
    }

    /// Returns the fields of the type that objects are read as, if it is known to have only a part.
    pub(super) fn fields(&self) -> Option<Fields> {
        match &self.form {
            Encoding::Part(selection) => Some(selection.fields),
            Encoding::Decoded(decoded) => Some(decoded.fields),
            _ => None,
        }
    }

    /// Whether the bytes of a projection are enough to evaluate the plan's paths. They are a sixth
    /// of a Pod's.
    pub(super) fn answers(&self, plan: &IndexPlan) -> bool {
        self.is_part() && plan.declared().iter().all(|(_, path)| self.has(path))
    }

    /// Whether objects are cut to the fields of a projection.
    pub(super) fn is_part(&self) -> bool {
        matches!(self.form, Encoding::Part(_))
    }

    /// Returns the type of the kept values, if values are kept.
    pub(super) fn decoded_as(&self) -> TypeId {
        match &self.form {
            Encoding::Decoded(decoded) => decoded.of,
            _ => TypeId::of::<()>(),
        }
    }

    /// Warns when the form is cold without the feature for it, and when a projection names fields
    /// that the kind does not have.
    pub(super) fn warn(&self, info: &ResourceInfo) {
        for path in &self.misread {
            tracing::warn!(
                resource = %info, path = path.join("."),
                "the type of the kind has no field where a projection looks; unless API servers know more \
                 fields than the type does, the path is misspelt and the field absent in every object: its \
                 names are those of the JSON"
            );
        }
        if cfg!(not(feature = "cold")) && matches!(self.form, Encoding::Cold) {
            tracing::warn!(
                resource = %info,
                "the cache is to be cold, but windlass was built without its feature `cold`: it stays compact"
            );
        }
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Compact => "compact",
            Self::Part(_) => "part",
            Self::Metadata => "metadata",
            Self::Cold => "cold",
            Self::Decoded(_) => "decoded",
        })
    }
}

impl Decoded {
    fn of<K: Resource>(fields: &'static [&'static [&'static str]]) -> Self {
        let decode = |object: &Object| -> Result<Shared, String> {
            let mut value = object.parse::<K>()?;
            without_slack(value.metadata_mut());
            Ok(Arc::new(value))
        };
        Self {
            decode,
            of: TypeId::of::<K>(),
            fields: Fields(fields),
            keeps: keeps::<K>,
            kept: Arc::default(),
        }
    }

    /// Whether a value at the path survives decoding; asks the type only once.
    fn keeps(&self, path: Path) -> bool {
        let known = self.kept.lock().get(path).copied();
        known.unwrap_or_else(|| {
            // Not under the lock: the type's code may be a user's.
            let keeps = (self.keeps)(path);
            self.kept.lock().insert(path, keeps);
            keeps
        })
    }
}

/// Returns the paths of a projection that the type of the whole kind does not read.
fn misread<K: Resource>() -> Vec<Path> {
    let fields = if K::projection().is_some() { K::projected() } else { &[] };
    fields.iter().copied().filter(|path| K::kind_reads(path) == Reads::Nothing).collect()
}

/// Whether a value at this path is kept in a decoded `K`; false if that is unknown.
fn keeps<K: Resource>(path: &[&str]) -> bool {
    let reads = match (path.split_first(), K::projection()) {
        // The projection's `Fields` already decide about its metadata.
        (Some((&"metadata", _)), Some(_)) => Reads::Value,
        // Every type has this metadata, also a type that cannot be asked.
        (Some((&"metadata", rest)), None) => reads::<ObjectMeta>(rest),
        (_, Some(_)) => reads::<K>(path),
        (_, None) => K::kind_reads(path),
    };
    reads == Reads::Value
}

/// Frees spare capacity: serde allocates four elements for one.
fn without_slack(metadata: &mut ObjectMeta) {
    metadata.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    metadata.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
}

/// A decoded value without its type.
pub(crate) trait Value: Any + Send + Sync {
    /// The value as compact JSON.
    fn json(&self) -> Vec<u8>;
    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<String>;
    /// Estimated bytes of the value, for an object with this many bytes of head and body.
    fn weight(&self, head: usize, body: usize) -> usize;
}

impl<K: Resource> Value for K {
    fn json(&self) -> Vec<u8> {
        let mut bytes = times::encoded(serde_json::to_vec(self).unwrap_or_default());
        // As in all forms: the members that are equal in all objects of the kind are left out.
        if let Ok(skim) = MetadataScan::of(&bytes) {
            let compact = skim.compact();
            bytes = compact.into_vec();
        }
        bytes
    }

    fn annotation(&self, key: &str) -> Option<String> {
        let known = ResourceExt::annotation(self, key).map(str::to_owned);
        if known.is_some() || K::projection().is_none() {
            return known;
        }
        // A projection may have the annotation in a field of its own, and not in its metadata.
        let bytes = serde_json::to_vec(self).ok()?;
        let path = ["metadata", "annotations", key];
        serde_json::from_slice(object_at_path(&bytes, &path)?).ok()
    }

    fn weight(&self, head: usize, body: usize) -> usize {
        size_of::<K>() + if K::projection().is_some() { head } else { body }
    }
}

/// A decoded value that is kept, and the head that was read from its bytes.
pub(crate) struct DecodedObject {
    /// The head, followed by index values of fields that the value lacks.
    pub(super) head: Buffer,
    /// Labels, finalizers and owners, shared with other objects.
    pub(super) common: Arc<Box<[u8]>>,
    value: Shared,
    /// Estimated bytes beside the head: the struct and, for its texts, those of the JSON.
    pub(super) weight: u32,
    /// Offset of the index values.
    outside: u32,
}

impl fmt::Debug for DecodedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept(about {} bytes)", self.weight)
    }
}

impl DecodedObject {
    /// Returns the value, if it is a `K`.
    pub(super) fn value<K: Resource>(&self) -> Option<Arc<K>> {
        let any: Arc<dyn Any + Send + Sync> = Arc::<dyn Value + Send + Sync>::clone(&self.value);
        any.downcast().ok()
    }

    pub(super) fn json(&self) -> Vec<u8> {
        self.value.json()
    }

    pub(super) fn annotation(&self, key: &str) -> Option<String> {
        self.value.annotation(key)
    }

    pub(super) fn outside(&self) -> DetachedIndexValues<'_> {
        DetachedIndexValues::of(self.head.get(self.outside as usize..).unwrap_or_default())
    }
}

impl StoreShared {
    /// Converts `object` into the form of this store. `before` is the object that it replaces,
    /// `outside` the index values to keep beside it.
    ///
    /// # Errors
    /// The reason for which the object does not decode into the type that is kept.
    pub(super) fn keep(
        self: &Arc<Self>,
        object: &Arc<Object>,
        before: Option<&Object>,
        outside: &[u8],
    ) -> Result<Arc<Object>, String> {
        let Content::Compact(body) = object.content() else { return Ok(Arc::clone(object)) };
        match &self.mode.form {
            Encoding::Compact => Ok(Arc::clone(object)),
            Encoding::Part(selection) => Ok(self.part(object, body, selection, outside)),
            Encoding::Metadata => Ok(self.metadata_of(object, body)),
            Encoding::Cold => Ok(self.cold(object, body, before)),
            Encoding::Decoded(decoded) => {
                let value = (decoded.decode)(object)?;
                Ok(self.kept(object, value, body.len(), before, outside))
            }
        }
    }

    /// Builds an object that keeps the decoded `value`; `body` is the length of its JSON.
    fn kept(
        self: &Arc<Self>,
        object: &Object,
        value: Shared,
        body: usize,
        before: Option<&Object>,
        outside: &[u8],
    ) -> Arc<Object> {
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        let outline = object.head().lifted(&mut own, &mut shared);
        let weight = value.weight(own.len() + shared.len(), body);
        let outside_at = own.len();
        own.extend_from_slice(outside);
        let head = self.memory.buffer(own.len(), |head| head.extend_from_slice(&own));
        let common = self.common(&shared, before);
        let kept = DecodedObject {
            head,
            common,
            value,
            weight: u32::try_from(weight).unwrap_or(u32::MAX),
            outside: u32::try_from(outside_at).unwrap_or(u32::MAX),
        };
        Object::of(object.key().clone(), outline, Content::DecodedObject(Box::new(kept)), self)
    }

    /// Returns the part of a head that objects share; that of the object before, if it is equal.
    fn common(&self, head: &[u8], before: Option<&Object>) -> Arc<Box<[u8]>> {
        match before.map(Object::content) {
            Some(Content::DecodedObject(kept)) if **kept.common == *head => {
                Arc::clone(&kept.common)
            }
            _ => self.heads.share(head, |_| true, |head| head.into()),
        }
    }

    /// Returns the object without everything but its metadata.
    fn metadata_of(self: &Arc<Self>, object: &Arc<Object>, body: &[u8]) -> Arc<Object> {
        let Some(metadata) = object_at_path(body, &["metadata"]) else {
            return Arc::clone(object);
        };
        const FRAME: [&[u8]; 2] = [b"{\"metadata\":", b"}"];
        // The object consists of its metadata already.
        if metadata.len() + FRAME[0].len() + FRAME[1].len() >= body.len() {
            return Arc::clone(object);
        }
        let bytes = [FRAME[0], metadata, FRAME[1]].concat();
        match MetadataScan::of(&bytes) {
            Ok(skim) => Object::new(object.key().clone(), &skim, self),
            Err(_) => Arc::clone(object),
        }
    }

    #[cfg(feature = "cold")]
    fn cold(
        self: &Arc<Self>,
        object: &Arc<Object>,
        body: &[u8],
        before: Option<&Object>,
    ) -> Arc<Object> {
        let (mut own, mut common) = (Vec::new(), Vec::new());
        let outline = object.head().lifted(&mut own, &mut common);
        let before = match before.map(Object::content) {
            Some(Content::Cold(cold)) => Some(&**cold),
            _ => None,
        };
        match self.press.pack(object, (&own, &common), body, before, &self.memory) {
            Some(cold) => {
                Object::of(object.key().clone(), outline, Content::Cold(Box::new(cold)), self)
            }
            None => Arc::clone(object),
        }
    }

    #[cfg(not(feature = "cold"))]
    fn cold(self: &Arc<Self>, object: &Arc<Object>, _: &[u8], _: Option<&Object>) -> Arc<Object> {
        Arc::clone(object)
    }

    /// Returns the object that `skim` shows, after the kind's transform; `None` without a
    /// transform, or if it fails.
    pub(super) fn transformed(
        self: &Arc<Self>,
        key: &ObjectKey,
        skim: &MetadataScan<'_>,
    ) -> Option<Arc<Object>> {
        let transform = self.mode.transform.as_ref().filter(|_| skim.is_whole())?;
        let compact = skim.compact();
        let kept = transform.apply(&compact);
        let object = kept.and_then(|kept: Cow<'_, [u8]>| {
            let changed =
                MetadataScan::of(&kept).map_err(|_| "the transformed object has no name")?;
            // The store finds and orders objects by these four: a transform must not move an object
            // to another key or version.
            let is_same = changed.name == skim.name
                && changed.namespace == skim.namespace
                && changed.uid == skim.uid
                && changed.resource_version == skim.resource_version;
            if !is_same {
                return Err("the transform changed name, namespace, uid or resourceVersion");
            }
            Ok(Object::new(key.clone(), &changed, self))
        });
        object
            .map_err(|why| {
                tracing::error!(
                    resource = %self.info, namespace = skim.namespace.as_deref(),
                    name = &*skim.name, version = &*skim.resource_version, why,
                    "the object cannot be transformed: it is kept as it came"
                );
            })
            .ok()
    }
}

#[cfg(test)]
mod tests;
