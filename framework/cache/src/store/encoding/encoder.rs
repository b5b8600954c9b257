//! The encoder of a store: converts objects into the kept form, and transforms them before.
//!
//! An object arrives compact, and indexes on paths read this form; then the object is converted,
//! outside of every lock. An object that cannot be converted (an object that does not decode, the
//! bytes would not get smaller) stays compact: the next read returns the error, and the next
//! version is tried anew.

use std::borrow::Cow;
use std::sync::Arc;

#[cfg(feature = "cold")]
use super::compressor::Compressor;
use super::settings::{Encoding, StoreSettings};
use crate::store::object::{
    DecodedObject, InternedMeta, Object, ObjectContent, SharedValue, StoreShared,
};
use windlass_core::resource::ObjectKey;
use windlass_core::wire::{MetadataScan, value_at_path};

/// Converts the objects of a store, according to the settings.
pub(in crate::store) struct Encoder {
    /// Buffers and statistics of the store.
    pub(super) shared: Arc<StoreShared>,
    /// Form and transform.
    pub(in crate::store) settings: StoreSettings,
    #[cfg(feature = "cold")]
    compressor: Compressor,
    /// Heads of decoded objects.
    heads: InternedMeta<Box<[u8]>>,
}

impl Encoder {
    /// Creates the encoder of a store with these settings.
    pub(in crate::store) fn new(shared: Arc<StoreShared>, settings: StoreSettings) -> Self {
        Self {
            shared,
            settings,
            #[cfg(feature = "cold")]
            compressor: Compressor::default(),
            heads: InternedMeta::default(),
        }
    }

    /// Converts `object` as [`converted`](Self::converted), with the applied fields that are kept
    /// beside the object.
    ///
    /// # Errors
    /// As there.
    pub(in crate::store) fn encode(
        &self,
        object: &Arc<Object>,
        before: Option<&Object>,
        detached: &[u8],
    ) -> Result<Arc<Object>, String> {
        let kept = self.converted(object, before, detached)?;
        kept.carry_applied(object);
        Ok(kept)
    }

    /// Converts `object` into the form of this store. `before` is the object that `object`
    /// replaces, `detached` the index values to keep beside the object.
    ///
    /// # Errors
    /// The reason for which the object does not decode into the type that is kept.
    fn converted(
        &self,
        object: &Arc<Object>,
        before: Option<&Object>,
        detached: &[u8],
    ) -> Result<Arc<Object>, String> {
        let ObjectContent::Compact(body) = object.content() else { return Ok(Arc::clone(object)) };
        match &self.settings.form {
            Encoding::Compact => Ok(Arc::clone(object)),
            Encoding::Projected(selection) => Ok(self.part(object, body, selection, detached)),
            Encoding::Metadata => Ok(self.metadata_of(object, body)),
            Encoding::Cold => Ok(self.cold(object, body, before)),
            Encoding::Decoded(decoded) => {
                let value = (decoded.decode)(object)?;
                Ok(self.decoded(object, value, body.len(), before, detached))
            }
        }
    }

    /// Builds an object that keeps the decoded `value`; `body` is the length of the value's JSON.
    fn decoded(
        &self,
        object: &Object,
        value: SharedValue,
        body: usize,
        before: Option<&Object>,
        detached: &[u8],
    ) -> Arc<Object> {
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        let offsets = object.metadata().copy_into(&mut own, &mut shared);
        let weight = value.weight(own.len() + shared.len(), body);
        let detached_at = own.len();
        own.extend_from_slice(detached);
        let head = self.shared.memory.buffer(own.len(), |head| head.extend_from_slice(&own));
        let common = self.common(&shared, before);
        let kept = DecodedObject::new(head, common, value, weight, detached_at);
        let content = ObjectContent::DecodedObject(Box::new(kept));
        Object::of(object.key().clone(), offsets, content, &self.shared)
    }

    /// Returns the part of a head that objects share; the part of the object before, if equal.
    fn common(&self, head: &[u8], before: Option<&Object>) -> Arc<Box<[u8]>> {
        match before.map(Object::content) {
            Some(ObjectContent::DecodedObject(kept)) if **kept.common == *head => {
                Arc::clone(&kept.common)
            }
            _ => self.heads.share(head, |_| true, |head| head.into()),
        }
    }

    /// Returns the object without everything but the metadata.
    fn metadata_of(&self, object: &Arc<Object>, body: &[u8]) -> Arc<Object> {
        let Some(metadata) = value_at_path(body, &["metadata"]) else {
            return Arc::clone(object);
        };
        /// Bytes around the metadata.
        const FRAME: [&[u8]; 2] = [b"{\"metadata\":", b"}"];
        // The object consists of metadata already.
        if metadata.len() + FRAME[0].len() + FRAME[1].len() >= body.len() {
            return Arc::clone(object);
        }
        let bytes = [FRAME[0], metadata, FRAME[1]].concat();
        match MetadataScan::of(&bytes) {
            Ok(scan) => Object::new(object.key().clone(), &scan, &self.shared),
            Err(_) => Arc::clone(object),
        }
    }

    /// Returns the object compressed; unchanged while there is no dictionary, or when compression
    /// would not make the object smaller.
    #[cfg(feature = "cold")]
    fn cold(&self, object: &Arc<Object>, body: &[u8], before: Option<&Object>) -> Arc<Object> {
        let (mut own, mut common) = (Vec::new(), Vec::new());
        let offsets = object.metadata().copy_into(&mut own, &mut common);
        let before = match before.map(Object::content) {
            Some(ObjectContent::Cold(cold)) => Some(&**cold),
            _ => None,
        };
        match self.compressor.pack(object, (&own, &common), body, before, &self.shared.memory) {
            Some(cold) => Object::of(
                object.key().clone(),
                offsets,
                ObjectContent::Cold(Box::new(cold)),
                &self.shared,
            ),
            None => Arc::clone(object),
        }
    }

    /// Returns the object unchanged: this build cannot compress.
    #[cfg(not(feature = "cold"))]
    fn cold(&self, object: &Arc<Object>, _: &[u8], _: Option<&Object>) -> Arc<Object> {
        Arc::clone(object)
    }

    /// Trains the dictionary of a cold kind if there are enough samples, which takes tens of
    /// milliseconds. Returns the objects that waited for the dictionary.
    #[cfg(feature = "cold")]
    pub(in crate::store) fn train(&self) -> Vec<Arc<Object>> {
        self.compressor.train()
    }

    /// Returns the object that `scan` shows, after the kind's transform; `None` without a
    /// transform, or if it fails.
    pub(in crate::store) fn transformed(
        &self,
        key: &ObjectKey,
        scan: &MetadataScan<'_>,
    ) -> Option<Arc<Object>> {
        let transform = self.settings.transform.as_ref().filter(|_| scan.is_whole())?;
        let compact = scan.compact();
        let kept = transform.apply(&compact);
        let object = kept.and_then(|kept: Cow<'_, [u8]>| {
            let changed =
                MetadataScan::of(&kept).map_err(|_| "the transformed object has no name")?;
            // The store finds and orders objects by these four: a transform must not move an object
            // to another key or version.
            let is_same = changed.name == scan.name
                && changed.namespace == scan.namespace
                && changed.uid == scan.uid
                && changed.resource_version == scan.resource_version;
            if !is_same {
                return Err("the transform changed name, namespace, uid or resourceVersion");
            }
            Ok(Object::new(key.clone(), &changed, &self.shared))
        });
        object
            .map_err(|why| {
                tracing::error!(
                    resource = %self.shared.info, namespace = scan.namespace.as_deref(),
                    name = &*scan.name, version = &*scan.resource_version, why,
                    "the object cannot be transformed: it is kept as it came"
                );
            })
            .ok()
    }
}
