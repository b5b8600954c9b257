//! An object's metadata, read without decoding the object: a view on the object's own bytes.
//!
//! The metadata are in the object's bytes already, so the cache keeps only their offsets: sixty
//! bytes instead of an allocation per label. The metadata of a rare object that cannot be read in
//! place (escaped characters, labels out of order, a frame that was cut off) are copied out once.
//!
//! Annotations are read in place; there is no list of them.

// DESIGN.md, 25: Cached objects are JSON bytes with offsets into them

use std::fmt;

use super::scanner::members::{Cursor, Elements, Member, members, text};

/// A range of an object's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct Span {
    /// Offset of the first byte.
    pub(crate) start: u32,
    /// Number of bytes.
    pub(crate) length: u32,
}

impl Span {
    /// Returns the range from `start` to `end`; `None` beyond 4 GiB.
    pub(crate) fn new(start: usize, end: usize) -> Option<Self> {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        Some(Self { start, length: end.checked_sub(start)? })
    }

    /// Returns the bytes of the range; empty if the range lies outside of `bytes`.
    #[doc(hidden)]
    pub fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.length as usize).unwrap_or_default()
    }

    /// Returns the text of the range; empty if the bytes are not UTF-8.
    fn text<'a>(&self, bytes: &'a [u8]) -> &'a str {
        std::str::from_utf8(self.of(bytes)).unwrap_or_default()
    }
}

/// Offsets of an object's metadata in the stored bytes.
#[derive(Debug, Default)]
pub struct MetadataOffsets {
    /// Without quotes.
    pub(crate) uid: Span,
    /// Without quotes.
    #[doc(hidden)]
    pub resource_version: Span,
    /// The object of labels, braces included.
    pub(crate) labels: Span,
    /// The object of annotations, braces included.
    pub(crate) annotations: Span,
    /// The array of finalizers, brackets included.
    pub(crate) finalizers: Span,
    /// The array of owner references, brackets included.
    pub(crate) owners: Span,
    /// All of `metadata`; empty if the bytes are those of the metadata alone.
    pub(crate) metadata: Span,
    /// Generation and deletion mark.
    pub(crate) state: Revision,
    /// Copies of the metadata, for bytes that cannot be read in place; replaces the spans of all
    /// but annotations.
    #[doc(hidden)]
    pub plain: Option<Box<CopiedMetadata>>,
}

/// Generation and deletion mark, in eight bytes: every object has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision(i64);

impl Revision {
    /// Packs the two. A generation counts changes, and therefore never needs the last bit.
    pub(crate) fn new(generation: i64, is_terminating: bool) -> Self {
        Self(generation.wrapping_shl(1) | i64::from(is_terminating))
    }

    /// Returns the generation; the shift keeps the sign.
    fn generation(self) -> i64 {
        self.0 >> 1
    }

    /// Whether the object is marked for deletion.
    fn is_terminating(self) -> bool {
        self.0 & 1 == 1
    }
}

impl MetadataOffsets {
    /// Returns the metadata; `bytes` are those that the offsets were made for.
    #[doc(hidden)]
    pub fn metadata<'a>(&'a self, bytes: &'a [u8]) -> MetadataRef<'a> {
        MetadataRef { offsets: self, bytes, common: bytes }
    }

    /// Returns the metadata of an object whose labels, finalizers and owners are in other bytes.
    #[doc(hidden)]
    pub fn metadata_apart<'a>(&'a self, bytes: &'a [u8], common: &'a [u8]) -> MetadataRef<'a> {
        MetadataRef { offsets: self, bytes, common }
    }

    /// Returns the offsets in the bytes after these ranges, which are in order, were cut from the
    /// bytes.
    #[doc(hidden)]
    pub fn without(&self, cuts: &[(usize, usize)]) -> Self {
        let after = |position: u32| {
            let position = position as usize;
            // A position inside of a cut moves to the start of that cut.
            let before = cuts.iter().take_while(|(start, _)| *start < position);
            position - before.map(|(start, end)| (*end).min(position) - start).sum::<usize>()
        };
        let moved = |span: Span| {
            let (start, end) = (after(span.start), after(span.start + span.length));
            Span::new(start, end).unwrap_or_default()
        };
        Self {
            uid: moved(self.uid),
            resource_version: moved(self.resource_version),
            labels: moved(self.labels),
            annotations: moved(self.annotations),
            finalizers: moved(self.finalizers),
            owners: moved(self.owners),
            metadata: moved(self.metadata),
            state: self.state,
            plain: self.plain.clone(),
        }
    }

    /// Bytes on the heap, without the offsets' own.
    #[doc(hidden)]
    pub fn heap(&self) -> usize {
        self.plain.as_ref().map_or(0, |plain| size_of::<CopiedMetadata>() + plain.heap())
    }
}

/// Metadata that were copied out of the bytes.
#[derive(Clone, Debug, Default)]
#[doc(hidden)]
pub struct CopiedMetadata {
    /// `uid`.
    pub(crate) uid: Box<str>,
    /// `resourceVersion`.
    pub(crate) resource_version: Box<str>,
    /// Sorted by key.
    pub(crate) labels: Vec<(Box<str>, Box<str>)>,
    /// In the order of the object.
    pub(crate) finalizers: Vec<Box<str>>,
    /// In the order of the object.
    pub(crate) owners: Vec<PlainOwner>,
}

impl CopiedMetadata {
    /// Bytes on the heap: the texts, and the pointers of their boxes.
    fn heap(&self) -> usize {
        let labels = self.labels.iter().map(|(key, value)| 32 + key.len() + value.len());
        let finalizers = self.finalizers.iter().map(|finalizer| 16 + finalizer.len());
        let owners = self.owners.iter().map(|owner| size_of_val(owner) + owner.length());
        let texts = self.uid.len() + self.resource_version.len();
        texts + labels.chain(finalizers).chain(owners).sum::<usize>()
    }
}

/// A copied owner reference.
#[derive(Clone, Debug)]
pub(crate) struct PlainOwner {
    /// Group and version of the owner.
    pub(crate) api_version: Box<str>,
    /// Kind of the owner.
    pub(crate) kind: Box<str>,
    /// Name of the owner.
    pub(crate) name: Box<str>,
    /// Uid of the owner.
    pub(crate) uid: Box<str>,
    /// Whether the owner manages the object; false if absent.
    pub(crate) controller: bool,
}

impl PlainOwner {
    /// Bytes of the texts.
    fn length(&self) -> usize {
        self.api_version.len() + self.kind.len() + self.name.len() + self.uid.len()
    }

    /// Borrows the reference in the form of a reference that is read in place.
    fn view(&self) -> OwnerRef<'_> {
        OwnerRef {
            api_version: &self.api_version,
            kind: &self.kind,
            name: &self.name,
            uid: &self.uid,
            controller: self.controller,
        }
    }
}

/// The metadata that decide about an object: identity, version, deletion, labels, owners,
/// finalizers. A view: reads copy and allocate nothing.
#[derive(Clone, Copy)]
pub struct MetadataRef<'a> {
    /// Places of the values in the bytes below.
    offsets: &'a MetadataOffsets,
    /// The bytes of uid, resourceVersion and annotations.
    bytes: &'a [u8],
    /// The bytes of labels, finalizers and owners.
    common: &'a [u8],
}

/// An owner reference, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRef<'a> {
    /// `group/version`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
    /// Uid.
    pub uid: &'a str,
    /// Whether the owner is the managing controller.
    pub controller: bool,
}

impl<'a> MetadataRef<'a> {
    /// Returns the uid; empty only for servers that set none.
    pub fn uid(&self) -> &'a str {
        match &self.offsets.plain {
            Some(plain) => &plain.uid,
            None => self.offsets.uid.text(self.bytes),
        }
    }

    /// Whether the two have the same uid. Cheaper than comparing the texts.
    #[doc(hidden)]
    pub fn has_uid_of(&self, other: &MetadataRef<'_>) -> bool {
        match (&self.offsets.plain, &other.offsets.plain) {
            // Without copies the bytes have no escapes: equal bytes are equal uids.
            (None, None) => self.offsets.uid.of(self.bytes) == other.offsets.uid.of(other.bytes),
            _ => self.uid() == other.uid(),
        }
    }

    /// Returns the resourceVersion.
    pub fn resource_version(&self) -> &'a str {
        match &self.offsets.plain {
            Some(plain) => &plain.resource_version,
            None => self.offsets.resource_version.text(self.bytes),
        }
    }

    /// Returns the generation; 0 when the kind has none.
    pub fn generation(&self) -> i64 {
        self.offsets.state.generation()
    }

    /// Whether the object is marked for deletion.
    pub fn is_terminating(&self) -> bool {
        self.offsets.state.is_terminating()
    }

    /// Returns the labels, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let plain = self.offsets.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.labels);
        copied
            .map(|(key, value)| (&**key, &**value))
            .chain(TextMembers::of(self.part(self.offsets.labels)))
    }

    /// Returns a label's value.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Returns the finalizers, in the object's order.
    pub fn finalizers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let plain = self.offsets.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.finalizers).map(|text| &**text);
        let shown = Elements::of(self.part(self.offsets.finalizers));
        copied.chain(shown.filter_map(|(_, value)| plain_text(value)))
    }

    /// Returns the owner references, in the object's order.
    pub fn owners(&self) -> impl Iterator<Item = OwnerRef<'a>> + use<'a> {
        let plain = self.offsets.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.owners).map(PlainOwner::view);
        let shown = Elements::of(self.part(self.offsets.owners));
        copied.chain(shown.filter_map(|(_, value)| owner(value, &plain_text)))
    }

    /// Returns the owner that manages the object.
    pub fn controller(&self) -> Option<OwnerRef<'a>> {
        self.owners().find(|owner| owner.controller)
    }

    /// Returns an annotation's value, unescaped.
    #[doc(hidden)]
    pub fn annotation(&self, key: &str) -> Option<String> {
        let mut found = None;
        // Members before a fault count even if the rest is malformed.
        let _ = members(self.offsets.annotations.of(self.bytes), &mut |member| {
            if member.name == key.as_bytes() {
                found = text(member.value).map(std::borrow::Cow::into_owned);
            }
            found.is_none()
        });
        found
    }

    /// Copies the metadata, without annotations, into separate bytes: uid and resourceVersion into
    /// `own`; labels, finalizers and owners, which other objects may share, into `common`. Both
    /// must be empty.
    #[doc(hidden)]
    pub fn copy_into(&self, own: &mut Vec<u8>, common: &mut Vec<u8>) -> MetadataOffsets {
        let mut offsets = MetadataOffsets {
            state: self.offsets.state,
            plain: self.offsets.plain.clone(),
            ..MetadataOffsets::default()
        };
        // The copies replace the bytes: nothing would be read from them.
        if offsets.plain.is_some() {
            return offsets;
        }
        let copy = |bytes: &[u8], into: &mut Vec<u8>| {
            let start = into.len();
            into.extend_from_slice(bytes);
            Span::new(start, into.len()).unwrap_or_default()
        };
        offsets.uid = copy(self.offsets.uid.of(self.bytes), own);
        offsets.resource_version = copy(self.offsets.resource_version.of(self.bytes), own);
        offsets.labels = copy(self.offsets.labels.of(self.common), common);
        offsets.finalizers = copy(self.offsets.finalizers.of(self.common), common);
        offsets.owners = copy(self.offsets.owners.of(self.common), common);
        offsets
    }

    /// Returns the bytes of a span; empty if copies replace the bytes.
    fn part(&self, span: Span) -> &'a [u8] {
        if self.offsets.plain.is_some() { &[] } else { span.of(self.common) }
    }
}

/// Identity only: labels may hold more than a log should show.
impl fmt::Debug for MetadataRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetadataRef({}@{})", self.uid(), self.resource_version())
    }
}

impl PartialEq for MetadataRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |metadata: &Self| (metadata.generation(), metadata.is_terminating());
        let texts = |metadata: &Self| (metadata.uid(), metadata.resource_version());
        numbers(self) == numbers(other)
            && texts(self) == texts(other)
            && self.labels().eq(other.labels())
            && self.finalizers().eq(other.finalizers())
            && self.owners().eq(other.owners())
    }
}

impl Eq for MetadataRef<'_> {}

/// The members of an object whose values are texts without escapes.
struct TextMembers<'a> {
    /// The object.
    bytes: &'a [u8],
    /// `None` after a fault, and for bytes that are no object.
    cursor: Option<Cursor<'a>>,
}

impl<'a> TextMembers<'a> {
    /// Iterates over an object; other values have no members.
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, cursor: Cursor::open(bytes).ok() }
    }
}

impl<'a> Iterator for TextMembers<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let cursor = self.cursor.as_mut()?;
            let name = cursor.name().ok()??;
            // Ends the iterator: a retry at the same place would fail again.
            let Ok(end) = cursor.skip() else {
                self.cursor = None;
                return None;
            };
            let key = std::str::from_utf8(name.name);
            if let (Ok(key), Some(value)) = (key, plain_text(&self.bytes[name.value..end])) {
                return Some((key, value));
            }
        }
    }
}

/// Returns the text of a JSON string without escapes.
pub(crate) fn plain_text(value: &[u8]) -> Option<&str> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inner).ok()
}

/// Reads an owner reference; `None` when the value is no object, or when `read` fails for a text.
/// Missing members are empty.
pub(crate) fn owner<'a>(
    value: &'a [u8],
    read: &dyn Fn(&'a [u8]) -> Option<&'a str>,
) -> Option<OwnerRef<'a>> {
    let mut owner = OwnerRef { api_version: "", kind: "", name: "", uid: "", controller: false };
    let mut is_good = true;
    let outcome = members(value, &mut |Member { name, value, .. }| {
        let field = match name {
            b"apiVersion" => &mut owner.api_version,
            b"kind" => &mut owner.kind,
            b"name" => &mut owner.name,
            b"uid" => &mut owner.uid,
            b"controller" => {
                owner.controller = value == b"true";
                is_good &= matches!(value, b"true" | b"false" | b"null");
                return true;
            }
            _ => return true,
        };
        match read(value) {
            Some(text) => *field = text,
            None => is_good = false,
        }
        true
    });
    (is_good && outcome.is_ok()).then_some(owner)
}
