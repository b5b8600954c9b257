//! Scanning of an object's metadata, and removal of the members that the cache does not keep.

mod cuts;

use std::borrow::Cow;

use memchr::{memchr, memmem};
use serde::Deserialize;

use self::cuts::{CutBuilder, CutRanges};
use super::metadata_ref::{CopiedMetadata, MetadataOffsets, PlainOwner, Revision, Span};
use super::scanner::members::{Cursor, Elements, UnscannedMember, members, seen_text, text};
use super::scanner::scan::{Malformed, text_end};

/// An object's metadata, borrowed from the object's bytes: enough to find the object in the cache
/// and to see whether the version is new there.
#[derive(Debug, Default)]
pub struct MetadataScan<'a> {
    /// `metadata.name`; never empty, except in bookmarks.
    #[doc(hidden)]
    pub name: Cow<'a, str>,
    /// `metadata.namespace`; `None` of a cluster-scoped object.
    #[doc(hidden)]
    pub namespace: Option<Cow<'a, str>>,
    /// `metadata.uid`; empty if there is none.
    #[doc(hidden)]
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`; empty if there is none.
    #[doc(hidden)]
    pub resource_version: Cow<'a, str>,
    /// `metadata.generation`; 0 if there is none.
    generation: i64,
    /// Whether `metadata.deletionTimestamp` is there.
    terminating: bool,
    /// Spans of the values in `read`.
    spans: Spans,
    /// Whether the labels cannot be read in place: escaped, out of order, no texts.
    has_bent_labels: bool,
    /// The bytes that were scanned.
    read: &'a [u8],
    /// The bytes to keep, except for the cuts.
    bytes: &'a [u8],
    /// Ranges of `bytes` that are not kept.
    cuts: CutRanges,
}

/// Spans of the metadata's values, quotes included.
#[derive(Clone, Copy, Debug, Default)]
struct Spans {
    /// The text of `uid`.
    uid: Span,
    /// The text of `resourceVersion`.
    resource_version: Span,
    /// The object of labels.
    labels: Span,
    /// The object of annotations.
    annotations: Span,
    /// The array of finalizers.
    finalizers: Span,
    /// The array of owner references.
    owners: Span,
    /// The array of managed fields.
    managed: Span,
    /// The whole of `metadata`.
    metadata: Span,
}

/// The annotation of the bookmark that ends the first part of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<'a> MetadataScan<'a> {
    /// Reads the metadata of a complete object.
    #[doc(hidden)]
    pub fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let scan = Self::version_of(bytes)?;
        if scan.name.is_empty() {
            return Err(Malformed::new("metadata.name is missing or empty"));
        }
        Ok(scan)
    }

    /// As [`of`](Self::of), for bookmarks, which have no name.
    #[doc(hidden)]
    pub fn version_of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut scan, outcome) = Self::scan(bytes);
        outcome?;
        scan.bytes = bytes;
        Ok(scan)
    }

    /// Reads the available metadata of an object that is cut off. `compact` is an empty object.
    #[doc(hidden)]
    pub fn of_beginning(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut scan, _) = Self::scan(bytes);
        // The bytes end inside of a value, so that nothing of them is a complete object.
        scan.bytes = b"{}";
        scan.cuts = CutRanges::default();
        if scan.name.is_empty() {
            return Err(Malformed::new("metadata is not in the part that was kept"));
        }
        Ok(scan)
    }

    /// Scans an object; on a fault the metadata that were read before the fault remain.
    fn scan(bytes: &'a [u8]) -> (Self, Result<(), Malformed>) {
        let mut scan = Self::default();
        let mut metadata = Err(Malformed::new("there is no metadata"));
        let outcome = scan.top(bytes, &mut metadata).and(metadata);
        scan.read = bytes;
        (scan, outcome)
    }

    /// Scans the members of the object.
    fn top(
        &mut self,
        bytes: &'a [u8],
        metadata: &mut Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor::open(bytes)?;
        let mut builder = CutBuilder::new(bytes);
        let mut seen = [false; 3];
        let mut tail_checks = MOST_TAIL_CHECKS;
        while let Some(member) = cursor.name()? {
            let at = match member.name {
                b"apiVersion" => Some(0),
                b"kind" => Some(1),
                b"metadata" => Some(2),
                _ => None,
            };
            // Among repeated metadata the first counts, as in lookups by path.
            let end = if at == Some(2) && !seen[2] {
                self.read_metadata(bytes, &mut cursor, &member, metadata)?
            } else {
                cursor.skip()?
            };
            builder.member(member.start, end, matches!(at, Some(0 | 1)), &mut self.cuts);
            if let Some(at) = at {
                seen[at] = true;
            }
            // Metadata come first as a rule: once no member of interest can follow, the rest is not
            // scanned.
            if seen[2] && builder.pending.is_none() && tail_checks > 0 {
                tail_checks -= 1;
                if holds_nothing(&seen, &bytes[end..]) {
                    return Ok(());
                }
            }
        }
        builder.close(cursor.close(), &mut self.cuts);
        Ok(())
    }

    /// Reads the metadata and finds their end in a single pass.
    fn read_metadata(
        &mut self,
        bytes: &'a [u8],
        cursor: &mut Cursor<'a>,
        member: &UnscannedMember<'a>,
        outcome: &mut Result<(), Malformed>,
    ) -> Result<usize, Malformed> {
        match self.metadata(&bytes[member.value..], member.value) {
            Ok(length) => {
                *outcome = Ok(());
                let span = Span::new(member.value, member.value + length);
                self.spans.metadata = span.unwrap_or_default();
                cursor.skip_to(member.value + length);
                Ok(member.value + length)
            }
            Err(why) => {
                // Metadata that were read half may have a name without the namespace.
                *self = Self::default();
                *outcome = Err(why);
                cursor.skip()
            }
        }
    }

    /// Reads the metadata that begin here; returns their length.
    fn metadata(&mut self, bytes: &'a [u8], offset: usize) -> Result<usize, Malformed> {
        let mut builder = CutBuilder::new(bytes);
        let mut cuts = CutRanges::default();
        let mut cursor = Cursor::open(bytes)?;
        while let Some(UnscannedMember { name, start, value, .. }) = cursor.name()? {
            let (mut end, mut is_plain) = (None, false);
            if bytes.get(value) == Some(&b'"') {
                let text = text_end(bytes, value)?;
                (end, is_plain) = (Some(text.end), text.is_plain);
            } else if name == b"labels" {
                end = usual_labels(bytes, value);
                // Labels that are no object are absent, and need no copy.
                self.has_bent_labels = end.is_none() && bytes.get(value) == Some(&b'{');
            }
            let end = match end {
                Some(end) => cursor.skip_to(end),
                None => cursor.skip()?,
            };
            builder.member(start, end, name == b"managedFields", &mut cuts);
            let span = Span::new(offset + value, offset + end)
                .ok_or_else(|| Malformed::new("the object is larger than 4 GiB"))?;
            self.field(name, (&bytes[value..end], is_plain), span);
        }
        builder.close(cursor.close(), &mut cuts);
        for (start, end) in cuts.iter() {
            self.cuts.add(start + offset, end + offset);
        }
        Ok(cursor.close() + 1)
    }

    /// Stores a member of the metadata; `is_plain` is true for a text without escapes.
    fn field(&mut self, name: &[u8], (value, is_plain): (&'a [u8], bool), span: Span) {
        let read = || if is_plain { seen_text(value, true) } else { text(value) };
        match name {
            b"name" => self.name = read().unwrap_or_default(),
            b"namespace" => self.namespace = read().filter(|text| !text.is_empty()),
            b"uid" => {
                self.uid = read().unwrap_or_default();
                self.spans.uid = span;
            }
            b"resourceVersion" => {
                self.resource_version = read().unwrap_or_default();
                self.spans.resource_version = span;
            }
            b"generation" => {
                self.generation = serde_json::from_slice(value).unwrap_or_default();
            }
            b"deletionTimestamp" => self.terminating = value != b"null",
            b"labels" => self.spans.labels = span,
            b"annotations" => self.spans.annotations = span,
            b"finalizers" => self.spans.finalizers = span,
            b"ownerReferences" => self.spans.owners = span,
            b"managedFields" => self.spans.managed = span,
            _ => {}
        }
    }

    /// Whether this bookmark ends the first part of a streaming list.
    #[doc(hidden)]
    pub fn ends_initial_events(&self) -> bool {
        let mut ends = false;
        let _ = members(self.spans.annotations.of(self.read), &mut |member| {
            ends |= member.name == INITIAL_EVENTS_END.as_bytes()
                && text(member.value).is_some_and(|value| value == "true");
            true
        });
        ends
    }

    /// Returns the JSON of `metadata.managedFields`; empty if there is none.
    #[doc(hidden)]
    pub fn managed_fields(&self) -> &'a [u8] {
        self.spans.managed.of(self.read)
    }

    /// Returns the object's bytes behind the metadata; `None` without metadata.
    pub(crate) fn behind_metadata(&self) -> Option<&'a [u8]> {
        let Span { start, length } = self.spans.metadata;
        let end = start as usize + length as usize;
        if length == 0 { None } else { self.read.get(end..) }
    }

    /// Returns the offsets of the metadata in the bytes of [`compact`](Self::compact).
    #[doc(hidden)]
    pub fn offsets(&self) -> MetadataOffsets {
        let mut offsets = MetadataOffsets {
            state: Revision::new(self.generation, self.terminating),
            ..MetadataOffsets::default()
        };
        let spans = &self.spans;
        if self.is_whole() {
            offsets.annotations = self.kept(spans.annotations);
        }
        if !self.is_whole() || !self.is_plain() {
            offsets.plain = Some(Box::new(self.copied()));
            return offsets;
        }
        offsets.uid = self.kept(unquoted(spans.uid, &self.uid));
        offsets.resource_version =
            self.kept(unquoted(spans.resource_version, &self.resource_version));
        offsets.labels = self.kept(spans.labels);
        offsets.finalizers = self.kept(spans.finalizers);
        offsets.owners = self.kept(spans.owners);
        offsets.metadata = self.kept_metadata();
        offsets
    }

    /// Whether all scanned bytes are kept.
    #[doc(hidden)]
    pub fn is_whole(&self) -> bool {
        self.read.len() == self.bytes.len()
    }

    /// Whether the metadata can be read in place.
    fn is_plain(&self) -> bool {
        let spans = &self.spans;
        let is_borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        is_borrowed(&self.uid)
            && is_borrowed(&self.resource_version)
            && !self.has_bent_labels
            && [spans.finalizers, spans.owners]
                .iter()
                .all(|span| span.length == 0 || memchr(b'\\', span.of(self.read)).is_none())
    }

    /// Copies metadata that cannot be read in place.
    fn copied(&self) -> CopiedMetadata {
        let part = |span: Span| span.of(self.read);
        CopiedMetadata {
            uid: self.uid.as_ref().into(),
            resource_version: self.resource_version.as_ref().into(),
            labels: pairs(part(self.spans.labels)),
            finalizers: Elements::of(part(self.spans.finalizers))
                .filter_map(|(_, value)| text(value).map(|text| text.as_ref().into()))
                .collect(),
            owners: owners(part(self.spans.owners)),
        }
    }

    /// Returns the span of a value after the cuts. The cuts in the metadata lie outside of such
    /// values.
    fn kept(&self, span: Span) -> Span {
        if span.length == 0 {
            return Span::default();
        }
        let start = self.kept_at(span.start as usize);
        Span::new(start, start + span.length as usize).unwrap_or_default()
    }

    /// Returns the span of the metadata after the cuts, some of which are inside.
    fn kept_metadata(&self) -> Span {
        let Span { start, length } = self.spans.metadata;
        let (start, end) = (start as usize, start as usize + length as usize);
        Span::new(self.kept_at(start), self.kept_at(end)).unwrap_or_default()
    }

    /// Returns a position after the cuts.
    fn kept_at(&self, position: usize) -> usize {
        let (mut cut, mut at) = (0, 0);
        for (from, to) in self.cuts.iter() {
            let (from, to) = (from.max(at).min(position), to.min(position));
            cut += to.saturating_sub(from);
            at = at.max(to);
        }
        position - cut
    }

    /// Returns the object's bytes without `apiVersion`, `kind` and `metadata.managedFields`,
    /// exact-size.
    #[doc(hidden)]
    pub fn compact(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(self.compact_len());
        self.compact_into(&mut bytes);
        bytes.into_boxed_slice()
    }

    /// Returns the length of [`compact`](Self::compact).
    #[doc(hidden)]
    pub fn compact_len(&self) -> usize {
        self.cuts.complement(self.bytes.len()).map(|(start, end)| end - start).sum()
    }

    /// Appends the bytes of [`compact`](Self::compact).
    #[doc(hidden)]
    pub fn compact_into(&self, bytes: &mut Vec<u8>) {
        for (start, end) in self.cuts.complement(self.bytes.len()) {
            bytes.extend_from_slice(&self.bytes[start..end]);
        }
    }
}

/// Most searches of an object's rest. Each search may read the whole rest, and an object may have a
/// hundred thousand members.
const MOST_TAIL_CHECKS: u32 = 8;

/// Whether the rest of the object has no more members of interest. They come first as a rule; items
/// of a list do not have them.
fn holds_nothing(seen: &[bool; 3], rest: &[u8]) -> bool {
    let has = |name: &[u8]| memmem::find(rest, name).is_some();
    (seen[0] || !has(b"\"apiVersion\"")) && (seen[1] || !has(b"\"kind\""))
}

/// Returns the span of a text without quotes; empty for an empty text, or no text.
fn unquoted(span: Span, text: &str) -> Span {
    if text.is_empty() {
        return Span::default();
    }
    Span { start: span.start + 1, length: span.length.saturating_sub(2) }
}

/// Returns the end of the labels that begin at `at`, if they are as API servers write them: texts
/// without escapes, sorted by key.
fn usual_labels(bytes: &[u8], at: usize) -> Option<usize> {
    let mut cursor = Cursor::open_at(bytes, at).ok()?;
    let mut last: Option<&[u8]> = None;
    while let Some(member) = cursor.name().ok()? {
        let goes_up = last.is_none_or(|last| last < member.name);
        if !goes_up || !member.is_plain || bytes.get(member.value) != Some(&b'"') {
            return None;
        }
        let value = text_end(bytes, member.value).ok().filter(|value| value.is_plain)?;
        last = Some(member.name);
        cursor.skip_to(value.end);
    }
    Some(cursor.close() + 1)
}

/// Returns the labels; values that are no strings are left out here and found when the object is
/// decoded.
fn pairs(bytes: &[u8]) -> Vec<(Box<str>, Box<str>)> {
    let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
    let _ = members(bytes, &mut |member| {
        let quoted = &bytes[member.start..member.start + member.name.len() + 2];
        if let (Some(key), Some(value)) = (text(quoted), text(member.value)) {
            pairs.push((key.into(), value.into()));
        }
        true
    });
    pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    // The last of several equal keys counts, as for decoders.
    pairs.reverse();
    pairs.dedup_by(|(a, _), (b, _)| a == b);
    pairs.reverse();
    pairs
}

/// Copies the owner references out of their array; elements that are no owner reference are left
/// out.
fn owners(bytes: &[u8]) -> Vec<PlainOwner> {
    let read = |(_, value): (usize, &[u8])| {
        // An array of the right length would decode, too.
        let value = value.starts_with(b"{").then_some(value)?;
        let owner: RawOwner<'_> = serde_json::from_slice(value).ok()?;
        Some(PlainOwner {
            api_version: owner.api_version.into(),
            kind: owner.kind.into(),
            name: owner.name.into(),
            uid: owner.uid.into(),
            controller: owner.controller.unwrap_or_default(),
        })
    };
    Elements::of(bytes).filter_map(read).collect()
}

/// An owner reference in the API server's form; escaped texts are copied, others are borrowed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct RawOwner<'a> {
    /// Group and version of the owner; empty if absent.
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    /// Kind of the owner.
    #[serde(borrow)]
    kind: Cow<'a, str>,
    /// Name of the owner.
    #[serde(borrow)]
    name: Cow<'a, str>,
    /// Uid of the owner; an owner of another uid is another object.
    #[serde(borrow)]
    uid: Cow<'a, str>,
    /// Null counts as absent.
    controller: Option<bool>,
}

#[cfg(test)]
mod tests;
