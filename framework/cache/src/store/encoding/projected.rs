//! Objects of which a part is kept: the bytes of the fields that a projection names.
//!
//! A decoded projection is some forty blocks of the process's allocator. An update takes new blocks
//! in the arena of the thread that decodes and frees the old ones in the arena of another thread,
//! so that resident memory doubles while the objects stay the same. The bytes take half the memory
//! in a single buffer of the store, and decoding them later costs no more than decoding at once.
//!
//! Not included: the fields of a projection (`Resource::projected`), and finding them in the bytes
//! (`wire::FieldMask`).

// DESIGN.md, 46: Projections are kept as JSON bytes, not as decoded values

use std::collections::BTreeMap;
use std::sync::Arc;

use super::encoder::Encoder;
use super::fields::FieldSelection;
use crate::store::object::{Object, ObjectContent, ProjectedFields};
use windlass_core::wire::{MetadataRef, MetadataScan, value_at_path, without};

impl Encoder {
    /// Returns `own`, which was written through a type that skips labels, with the labels of
    /// `shown`, the same object before. Labels with a field in the type keep their written value.
    /// `None` if `own` is complete.
    pub(in crate::store) fn labelled(
        &self,
        own: &Arc<Object>,
        shown: &Object,
    ) -> Option<Arc<Object>> {
        let picked = self.settings.fields()?.picked_labels()?;
        // Created anew under the same name: the labels shown are those of another object.
        if own.metadata().uid() != shown.metadata().uid() {
            return None;
        }
        let body = own.body();
        let (mut labels, written) = (labels(shown.metadata()), labels(own.metadata()));
        labels.retain(|key, _| !picked.contains(key));
        labels.extend(written);
        let bytes = with_labels(&body, &serde_json::to_vec(&labels).ok()?)?;
        let scan = MetadataScan::of(&bytes).ok()?;
        Some(Object::new(own.key().clone(), &scan, &self.shared))
    }

    /// Returns the members of `object` that `selection` keeps; `body` are the object's compact
    /// bytes. The whole object if the members cannot be found.
    pub(super) fn part(
        &self,
        object: &Arc<Object>,
        body: &[u8],
        selection: &FieldSelection,
        detached: &[u8],
    ) -> Arc<Object> {
        let cuts = selection.mask.cuts(body).unwrap_or_default();
        if cuts.is_empty() && detached.is_empty() {
            return Arc::clone(object);
        }
        let kept = body.len() - cuts.iter().map(|(start, end)| end - start).sum::<usize>();
        let bytes = self.shared.memory.buffer(kept + detached.len(), |bytes| {
            let mut at = 0;
            for (start, end) in &cuts {
                bytes.extend_from_slice(&body[at..*start]);
                at = *end;
            }
            bytes.extend_from_slice(&body[at..]);
            bytes.extend_from_slice(detached);
        });
        let content = match u32::try_from(kept) {
            _ if detached.is_empty() => ObjectContent::Compact(bytes),
            Ok(detached) => {
                ObjectContent::Projected(Box::new(ProjectedFields::new(bytes, detached)))
            }
            // Objects above 4 GiB have no offsets, so they do not get here.
            Err(_) => return Arc::clone(object),
        };
        Object::of(object.key().clone(), object.offsets().without(&cuts), content, &self.shared)
    }
}

/// Copies the labels.
fn labels(metadata: MetadataRef<'_>) -> BTreeMap<String, String> {
    metadata.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Returns `body`, an object as written by serde, with other labels.
fn with_labels(body: &[u8], labels: &[u8]) -> Option<Vec<u8>> {
    let metadata = value_at_path(body, &["metadata"])?;
    let cut = without(metadata, &[vec!["labels".to_owned()]]);
    let metadata = cut.as_deref().unwrap_or(metadata).strip_prefix(b"{")?;
    let rest = without(body, &[vec!["metadata".to_owned()]])?;
    let rest = rest.strip_prefix(b"{")?;
    let comma = |rest: &[u8]| -> &[u8] { if rest.starts_with(b"}") { b"" } else { b"," } };
    let parts: [&[u8]; 6] =
        [b"{\"metadata\":{\"labels\":", labels, comma(metadata), metadata, comma(rest), rest];
    Some(parts.concat())
}
