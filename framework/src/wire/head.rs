//! What the cache knows of an object without decoding it: a view on the object's own bytes.
//!
//! An object's metadata stand in its bytes already, so the cache keeps where they stand and nothing
//! else: sixty bytes instead of one allocation per label. The rare object whose metadata cannot be
//! read where they stand (escaped characters, labels out of order, a frame that was cut off) has
//! them copied out once.
//!
//! Annotations are read where they stand; there is no list of them.

use std::fmt;

use super::members::{Cursor, Elements, Member, members, text};

/// A part of an object's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl Span {
    /// `None` for what lies beyond 4 GiB.
    pub(crate) fn new(start: usize, end: usize) -> Option<Self> {
        let (start, end) = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        Some(Self { start, length: end.checked_sub(start)? })
    }

    /// The bytes there; empty where there are none.
    pub(crate) fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        bytes.get(start..start + self.length as usize).unwrap_or_default()
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> &'a str {
        std::str::from_utf8(self.of(bytes)).unwrap_or_default()
    }
}

/// Where an object's metadata stand in the bytes that are kept of it.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Without its quotes.
    pub(crate) uid: Span,
    /// Without its quotes.
    pub(crate) resource_version: Span,
    pub(crate) labels: Span,
    pub(crate) annotations: Span,
    pub(crate) finalizers: Span,
    pub(crate) owners: Span,
    /// All of `metadata`; empty where the bytes are the head's alone.
    pub(crate) metadata: Span,
    pub(crate) state: Revision,
    /// Set when the bytes cannot be read as they stand; then it answers for all but annotations.
    pub(crate) plain: Option<Box<Plain>>,
}

/// Generation, and whether the object is marked for deletion, in eight bytes: every object has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision(i64);

impl Revision {
    /// A generation counts changes: it never needs the last bit.
    pub(crate) fn new(generation: i64, is_terminating: bool) -> Self {
        Self(generation.wrapping_shl(1) | i64::from(is_terminating))
    }

    fn generation(self) -> i64 {
        self.0 >> 1
    }

    fn is_terminating(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Outline {
    /// The head; `bytes` are those that the outline was made for.
    pub(crate) fn head<'a>(&'a self, bytes: &'a [u8]) -> Head<'a> {
        Head { outline: self, bytes, common: bytes }
    }

    /// The head of an object whose labels, finalizers and owners stand in other bytes.
    pub(crate) fn head_apart<'a>(&'a self, bytes: &'a [u8], common: &'a [u8]) -> Head<'a> {
        Head { outline: self, bytes, common }
    }

    /// Where the metadata stand once these ranges of the bytes, which are in order, are left out.
    pub(crate) fn without(&self, cuts: &[(usize, usize)]) -> Self {
        let after = |position: u32| {
            let position = position as usize;
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

    /// Bytes that it holds beside its own.
    pub(crate) fn heap(&self) -> usize {
        self.plain.as_ref().map_or(0, |plain| size_of::<Plain>() + plain.heap())
    }
}

/// Metadata that were copied out of the bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plain {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    /// Sorted by key.
    pub(crate) labels: Vec<(Box<str>, Box<str>)>,
    pub(crate) finalizers: Vec<Box<str>>,
    pub(crate) owners: Vec<PlainOwner>,
}

impl Plain {
    fn heap(&self) -> usize {
        let labels = self.labels.iter().map(|(key, value)| 32 + key.len() + value.len());
        let finalizers = self.finalizers.iter().map(|finalizer| 16 + finalizer.len());
        let owners = self.owners.iter().map(|owner| size_of_val(owner) + owner.length());
        let texts = self.uid.len() + self.resource_version.len();
        texts + labels.chain(finalizers).chain(owners).sum::<usize>()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct PlainOwner {
    pub(crate) api_version: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) controller: bool,
}

impl PlainOwner {
    fn length(&self) -> usize {
        self.api_version.len() + self.kind.len() + self.name.len() + self.uid.len()
    }

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

/// The part of an object's metadata that decides about it: identity, version, deletion, labels,
/// owners, finalizers. A view: reading it copies and allocates nothing.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    outline: &'a Outline,
    /// Where uid, resourceVersion and annotations stand.
    bytes: &'a [u8],
    /// Where labels, finalizers and owners stand.
    common: &'a [u8],
}

/// One owner reference, where it stands in the object.
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
    /// Is it the managing controller?
    pub controller: bool,
}

impl<'a> Head<'a> {
    /// Uid; empty only for servers that give none.
    pub fn uid(&self) -> &'a str {
        match &self.outline.plain {
            Some(plain) => &plain.uid,
            None => self.outline.uid.text(self.bytes),
        }
    }

    /// Are these two of one uid? Cheaper than to compare the texts.
    pub(crate) fn has_uid_of(&self, other: &Head<'_>) -> bool {
        match (&self.outline.plain, &other.outline.plain) {
            (None, None) => self.outline.uid.of(self.bytes) == other.outline.uid.of(other.bytes),
            _ => self.uid() == other.uid(),
        }
    }

    /// resourceVersion.
    pub fn resource_version(&self) -> &'a str {
        match &self.outline.plain {
            Some(plain) => &plain.resource_version,
            None => self.outline.resource_version.text(self.bytes),
        }
    }

    /// Generation; 0 when the kind has none.
    pub fn generation(&self) -> i64 {
        self.outline.state.generation()
    }

    /// Is it marked for deletion?
    pub fn is_terminating(&self) -> bool {
        self.outline.state.is_terminating()
    }

    /// Labels, sorted by key.
    pub fn labels(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let plain = self.outline.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.labels);
        copied
            .map(|(key, value)| (&**key, &**value))
            .chain(Pairs::of(self.part(self.outline.labels)))
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Finalizers, in the object's order.
    pub fn finalizers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let plain = self.outline.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.finalizers).map(|text| &**text);
        let shown = Elements::of(self.part(self.outline.finalizers));
        copied.chain(shown.filter_map(|(_, value)| plain_text(value)))
    }

    /// Owner references, in the object's order.
    pub fn owners(&self) -> impl Iterator<Item = OwnerRef<'a>> + use<'a> {
        let plain = self.outline.plain.as_deref();
        let copied = plain.into_iter().flat_map(|plain| &plain.owners).map(PlainOwner::view);
        let shown = Elements::of(self.part(self.outline.owners));
        copied.chain(shown.filter_map(|(_, value)| owner(value, &plain_text)))
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<OwnerRef<'a>> {
        self.owners().find(|owner| owner.controller)
    }

    /// An annotation's value; escaped or not.
    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        let mut found = None;
        // A malformed tail does not take back what stands before it.
        let _ = members(self.outline.annotations.of(self.bytes), &mut |member| {
            if member.name == key.as_bytes() {
                found = text(member.value).map(std::borrow::Cow::into_owned);
            }
            found.is_none()
        });
        found
    }

    /// The head in bytes of its own, without annotations: uid and resourceVersion go to `own`; labels,
    /// finalizers and owners, which other objects may have too, to `common`. Both are empty.
    pub(crate) fn lifted(&self, own: &mut Vec<u8>, common: &mut Vec<u8>) -> Outline {
        let mut lifted = Outline {
            state: self.outline.state,
            plain: self.outline.plain.clone(),
            ..Outline::default()
        };
        if lifted.plain.is_some() {
            return lifted;
        }
        let lift = |bytes: &[u8], into: &mut Vec<u8>| {
            let start = into.len();
            into.extend_from_slice(bytes);
            Span::new(start, into.len()).unwrap_or_default()
        };
        lifted.uid = lift(self.outline.uid.of(self.bytes), own);
        lifted.resource_version = lift(self.outline.resource_version.of(self.bytes), own);
        lifted.labels = lift(self.outline.labels.of(self.common), common);
        lifted.finalizers = lift(self.outline.finalizers.of(self.common), common);
        lifted.owners = lift(self.outline.owners.of(self.common), common);
        lifted
    }

    /// Where the bytes answer; nothing where the copies do.
    fn part(&self, span: Span) -> &'a [u8] {
        if self.outline.plain.is_some() { &[] } else { span.of(self.common) }
    }
}

/// Identity only: labels may say more than a log should hold.
impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({}@{})", self.uid(), self.resource_version())
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |head: &Self| (head.generation(), head.is_terminating());
        let texts = |head: &Self| (head.uid(), head.resource_version());
        numbers(self) == numbers(other)
            && texts(self) == texts(other)
            && self.labels().eq(other.labels())
            && self.finalizers().eq(other.finalizers())
            && self.owners().eq(other.owners())
    }
}

impl Eq for Head<'_> {}

/// The members of an object whose values are texts that need no unescaping.
struct Pairs<'a> {
    bytes: &'a [u8],
    cursor: Option<Cursor<'a>>,
}

impl<'a> Pairs<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, cursor: Cursor::open(bytes).ok() }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let cursor = self.cursor.as_mut()?;
            let name = cursor.name().ok()??;
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

/// The text of a JSON string without escapes.
pub(crate) fn plain_text(value: &[u8]) -> Option<&str> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inner).ok()
}

/// An owner reference; `None` when it is no object, or one of its texts is none. Members that are
/// missing are empty.
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
