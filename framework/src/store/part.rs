//! Objects of which a part is kept: the bytes of the fields that a projection names.
//!
//! A decoded projection is some forty blocks of the process's allocator. An update takes new ones in
//! the arena of the thread that decodes and frees the old ones in that of another, so that resident
//! memory doubles while the objects stay the same. Its bytes take half the memory in one buffer of the
//! store's own, and to decode them costs no more later than it would have cost at once.
//!
//! Not here: what a projection names (`Resource::projected`), and finding it in the bytes
//! (`wire::Only`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::content::Content;
use super::memory::Buffer;
use super::object::{Home, Object};
use super::outside::{Fields, Outside};
use super::values::Path;
use crate::wire::{Head, Only, Skim, object_at_path, without};

/// What is kept of a kind's objects.
#[derive(Debug)]
pub(super) struct Selection {
    only: Only,
    /// The fields of the type that they are read as.
    pub(super) fields: Fields,
}

impl Selection {
    /// Of a type with these fields; `None` when it has all there is.
    pub(super) fn of(fields: &'static [Path]) -> Option<Self> {
        Some(Self { only: Only::of(fields)?, fields: Fields(fields) })
    }
}

/// The bytes of some fields, and behind them index values of others.
pub(crate) struct Part {
    pub(super) bytes: Buffer,
    /// Where the index values begin.
    outside: u32,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({} bytes)", self.bytes.len())
    }
}

impl Part {
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(..self.outside as usize).unwrap_or_default()
    }

    pub(super) fn outside(&self) -> Outside<'_> {
        Outside::of(self.bytes.get(self.outside as usize..).unwrap_or_default())
    }
}

impl Home {
    /// `own`, which was written through a type that skips labels, with the labels of `shown`, the same
    /// object before; those that the type has a field for are its own. `None` when it is complete.
    pub(super) fn labelled(
        self: &Arc<Self>,
        own: &Arc<Object>,
        shown: &Object,
    ) -> Option<Arc<Object>> {
        let picked = self.mode.fields()?.picked_labels()?;
        if own.head().uid() != shown.head().uid() {
            return None;
        }
        let body = own.body();
        let (mut labels, written) = (labels(shown.head()), labels(own.head()));
        labels.retain(|key, _| !picked.contains(key));
        labels.extend(written);
        let bytes = with_labels(&body, &serde_json::to_vec(&labels).ok()?)?;
        let skim = Skim::of(&bytes).ok()?;
        Some(Object::new(own.key().clone(), &skim, self))
    }

    /// What `selection` keeps of `object`, whose compact bytes are `body`; all of it when that cannot
    /// be told.
    pub(super) fn part(
        self: &Arc<Self>,
        object: &Arc<Object>,
        body: &[u8],
        selection: &Selection,
        outside: &[u8],
    ) -> Arc<Object> {
        let cuts = selection.only.cuts(body).unwrap_or_default();
        if cuts.is_empty() && outside.is_empty() {
            return Arc::clone(object);
        }
        let kept = body.len() - cuts.iter().map(|(start, end)| end - start).sum::<usize>();
        let bytes = self.memory.buffer(kept + outside.len(), |bytes| {
            let mut at = 0;
            for (start, end) in &cuts {
                bytes.extend_from_slice(&body[at..*start]);
                at = *end;
            }
            bytes.extend_from_slice(&body[at..]);
            bytes.extend_from_slice(outside);
        });
        let content = match u32::try_from(kept) {
            _ if outside.is_empty() => Content::Compact(bytes),
            Ok(outside) => Content::Part(Box::new(Part { bytes, outside })),
            // Nothing is larger than 4 GiB: the outline would not have been made.
            Err(_) => return Arc::clone(object),
        };
        Object::of(object.key().clone(), object.outline().without(&cuts), content, self)
    }
}

fn labels(head: Head<'_>) -> BTreeMap<String, String> {
    head.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// `body`, an object as serde wrote it, with these labels in place of its own.
fn with_labels(body: &[u8], labels: &[u8]) -> Option<Vec<u8>> {
    let metadata = object_at_path(body, &["metadata"])?;
    let cut = without(metadata, &[vec!["labels".to_owned()]]);
    let metadata = cut.as_deref().unwrap_or(metadata).strip_prefix(b"{")?;
    let rest = without(body, &[vec!["metadata".to_owned()]])?;
    let rest = rest.strip_prefix(b"{")?;
    let comma = |rest: &[u8]| -> &[u8] { if rest.starts_with(b"}") { b"" } else { b"," } };
    let parts: [&[u8]; 6] =
        [b"{\"metadata\":{\"labels\":", labels, comma(metadata), metadata, comma(rest), rest];
    Some(parts.concat())
}
