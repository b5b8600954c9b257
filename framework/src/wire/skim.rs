//! Reads an object's metadata off its bytes, and cuts out what the cache does not keep.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::head::{Head, Owner};
use super::scan::{Cursor, Malformed, Name, elements, members, text};

/// An object's metadata, borrowed from its bytes: enough to find it in the cache and to see whether
/// it is new there.
#[derive(Debug, Default)]
pub(crate) struct Skim<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) namespace: Option<Cow<'a, str>>,
    pub(crate) uid: Cow<'a, str>,
    pub(crate) resource_version: Cow<'a, str>,
    generation: i64,
    terminating: bool,
    labels: &'a [u8],
    annotations: &'a [u8],
    finalizers: &'a [u8],
    owners: &'a [u8],
    bytes: &'a [u8],
    cuts: Cuts,
}

/// The annotation that ends the first part of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<'a> Skim<'a> {
    /// Reads the metadata of a complete object.
    pub(crate) fn of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let skim = Self::version_of(bytes)?;
        if skim.name.is_empty() {
            return Err(Malformed::new("metadata.name is missing or empty"));
        }
        Ok(skim)
    }

    /// As [`of`](Self::of), for bookmarks, which have no name.
    pub(crate) fn version_of(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut skim, outcome) = Self::scan(bytes);
        outcome?;
        skim.bytes = bytes;
        Ok(skim)
    }

    /// Reads what it can of an object that is cut off. Its `compact` is an empty object.
    pub(crate) fn of_beginning(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut skim, _) = Self::scan(bytes);
        skim.bytes = b"{}";
        skim.cuts = Cuts::default();
        if skim.name.is_empty() {
            return Err(Malformed::new("metadata is not in the part that was kept"));
        }
        Ok(skim)
    }

    fn scan(bytes: &'a [u8]) -> (Self, Result<(), Malformed>) {
        let mut skim = Self::default();
        let mut metadata = Err(Malformed::new("there is no metadata"));
        let outcome = skim.top(bytes, &mut metadata).and(metadata);
        (skim, outcome)
    }

    fn top(
        &mut self,
        bytes: &'a [u8],
        metadata: &mut Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor::open(bytes)?;
        let mut cutter = Cutter::new(bytes);
        // What is looked for stands first, as a rule: the content behind it is then not scanned.
        let mut seen = [false; 3];
        while let Some(member) = cursor.name()? {
            let at = match member.name {
                b"apiVersion" => Some(0),
                b"kind" => Some(1),
                b"metadata" => Some(2),
                _ => None,
            };
            let end = if at == Some(2) {
                self.read_metadata(bytes, &mut cursor, &member, metadata)?
            } else {
                cursor.skip()?
            };
            cutter.member(member.start, end, matches!(at, Some(0 | 1)), &mut self.cuts);
            if let Some(at) = at {
                seen[at] = true;
            }
            if !seen.contains(&false) && cutter.pending.is_none() {
                return Ok(());
            }
        }
        cutter.close(cursor.close(), &mut self.cuts);
        Ok(())
    }

    /// Reads the metadata and finds their end in one go.
    fn read_metadata(
        &mut self,
        bytes: &'a [u8],
        cursor: &mut Cursor<'a>,
        member: &Name<'a>,
        outcome: &mut Result<(), Malformed>,
    ) -> Result<usize, Malformed> {
        match self.metadata(&bytes[member.value..], member.value) {
            Ok(length) => {
                *outcome = Ok(());
                cursor.skip_to(member.value + length);
                Ok(member.value + length)
            }
            Err(why) => {
                // Half of the metadata may be a name without its namespace.
                *self = Self::default();
                *outcome = Err(why);
                cursor.skip()
            }
        }
    }

    /// Reads the metadata that begin here; returns their length.
    fn metadata(&mut self, bytes: &'a [u8], offset: usize) -> Result<usize, Malformed> {
        let mut cutter = Cutter::new(bytes);
        let mut cuts = Cuts::default();
        let mut cursor = Cursor::open(bytes)?;
        while let Some(Name { name, start, value }) = cursor.name()? {
            let end = cursor.skip()?;
            cutter.member(start, end, name == b"managedFields", &mut cuts);
            self.field(name, &bytes[value..end]);
        }
        cutter.close(cursor.close(), &mut cuts);
        for (start, end) in cuts.iter() {
            self.cuts.add(start + offset, end + offset);
        }
        Ok(cursor.close() + 1)
    }

    fn field(&mut self, name: &[u8], value: &'a [u8]) {
        match name {
            b"name" => self.name = text(value).unwrap_or_default(),
            b"namespace" => self.namespace = text(value).filter(|text| !text.is_empty()),
            b"uid" => self.uid = text(value).unwrap_or_default(),
            b"resourceVersion" => self.resource_version = text(value).unwrap_or_default(),
            b"generation" => {
                self.generation = serde_json::from_slice(value).unwrap_or_default();
            }
            b"deletionTimestamp" => self.terminating = value != b"null",
            b"labels" => self.labels = value,
            b"annotations" => self.annotations = value,
            b"finalizers" => self.finalizers = value,
            b"ownerReferences" => self.owners = value,
            _ => {}
        }
    }

    /// Does this bookmark end the first part of a streaming list?
    pub(crate) fn ends_initial_events(&self) -> bool {
        let mut ends = false;
        let _ = members(self.annotations, &mut |member| {
            ends |= member.name == INITIAL_EVENTS_END.as_bytes() && member.value == b"\"true\"";
            true
        });
        ends
    }

    /// The head, owned.
    pub(crate) fn head(&self) -> Head {
        Head {
            uid: Arc::from(&*self.uid),
            resource_version: Arc::from(&*self.resource_version),
            generation: self.generation,
            terminating: self.terminating,
            labels: pairs(self.labels),
            finalizers: texts(self.finalizers),
            owners: owners(self.owners),
        }
    }

    /// The object's bytes without `apiVersion`, `kind` and `metadata.managedFields`, exact-size.
    pub(crate) fn compact(&self) -> Box<[u8]> {
        let kept = || self.cuts.complement(self.bytes.len());
        let size = kept().map(|(start, end)| end - start).sum();
        let mut bytes = Vec::with_capacity(size);
        for (start, end) in kept() {
            bytes.extend_from_slice(&self.bytes[start..end]);
        }
        bytes.into_boxed_slice()
    }
}

/// Labels; what is not a string is left out here and found when the object is decoded.
fn pairs(bytes: &[u8]) -> Box<[(Arc<str>, Arc<str>)]> {
    let mut pairs: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    let _ = members(bytes, &mut |member| {
        let quoted = &bytes[member.start..member.start + member.name.len() + 2];
        if let (Some(key), Some(value)) = (text(quoted), text(member.value)) {
            pairs.push((Arc::from(&*key), Arc::from(&*value)));
        }
        true
    });
    pairs.sort_unstable();
    pairs.into_boxed_slice()
}

fn texts(bytes: &[u8]) -> Box<[Arc<str>]> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    let _ =
        elements(bytes, &mut |_, value| texts.extend(text(value).map(|text| Arc::from(&*text))));
    texts.into_boxed_slice()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct RawOwner<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    controller: Option<bool>,
}

fn owners(bytes: &[u8]) -> Box<[Owner]> {
    let mut owners = Vec::new();
    let _ = elements(bytes, &mut |_, value| {
        if let Ok(owner) = serde_json::from_slice::<RawOwner<'_>>(value) {
            owners.push(Owner {
                api_version: Arc::from(&*owner.api_version),
                kind: Arc::from(&*owner.kind),
                name: Arc::from(&*owner.name),
                uid: Arc::from(&*owner.uid),
                controller: owner.controller.unwrap_or_default(),
            });
        }
    });
    owners.into_boxed_slice()
}

/// At most so many members are cut; further ones (repeated names) stay.
const MOST_CUTS: usize = 4;

/// Byte ranges to leave out, by start; they may overlap.
#[derive(Debug, Default)]
struct Cuts {
    ranges: [(usize, usize); MOST_CUTS],
    count: usize,
}

impl Cuts {
    fn add(&mut self, start: usize, end: usize) {
        if self.count < MOST_CUTS {
            self.ranges[self.count] = (start, end);
            self.count += 1;
            self.ranges[..self.count].sort_unstable();
        }
    }

    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ranges[..self.count].iter().copied()
    }

    fn complement(&self, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut at = 0;
        self.iter().chain([(length, length)]).filter_map(move |(start, end)| {
            let kept = (at, start);
            at = at.max(end);
            (kept.0 < kept.1).then_some(kept)
        })
    }
}

/// Finds what to cut so that the commas still fit: up to the next member, or from the last one kept.
struct Cutter {
    kept_end: usize,
    pending: Option<usize>,
}

impl Cutter {
    fn new(bytes: &[u8]) -> Self {
        let brace = super::scan::skip_space(bytes, 0);
        Self { kept_end: brace + 1, pending: None }
    }

    fn member(&mut self, start: usize, end: usize, cut: bool, cuts: &mut Cuts) {
        if let Some(cut_from) = self.pending.take() {
            cuts.add(cut_from, start);
        }
        if cut {
            self.pending = Some(start);
        } else {
            self.kept_end = end;
        }
    }

    /// All members were seen; the brace stands at `close`.
    fn close(&mut self, close: usize, cuts: &mut Cuts) {
        if self.pending.take().is_some() {
            cuts.add(self.kept_end, close);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn compact_of(text: &str) -> Value {
        let compact = Skim::of(text.as_bytes()).unwrap().compact();
        serde_json::from_slice(&compact)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&compact)))
    }

    #[test]
    fn the_head_holds_what_the_metadata_say() {
        let bytes = json!({
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"z": "1", "b\"": "2"}, "finalizers": ["f/1", "f/2"],
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "ou", "controller": true},
                    {"apiVersion": "v1", "kind": "Node", "name": "p", "uid": "pu"}]
            }
        })
        .to_string();
        let head = Skim::of(bytes.as_bytes()).unwrap().head();
        assert_eq!((head.uid(), head.resource_version(), head.generation()), ("u", "7", 3));
        assert!(head.is_terminating());
        assert_eq!(head.label("b\""), Some("2"));
        assert_eq!(head.labels()[0].0.as_ref(), "b\"");
        assert_eq!(head.finalizers().len(), 2);
        assert_eq!(head.controller().unwrap().kind.as_ref(), "ReplicaSet");
        assert_eq!(head.owners().len(), 2);
    }

    #[test]
    fn a_body_that_no_type_fits_still_shows_its_name() {
        let skim = Skim::of(br#"{"spec":[{]},"metadata":{"name":"a"}}"#);
        // Brackets that do not match are not the skim's business as long as they balance.
        assert_eq!(skim.unwrap().name, "a");
        assert!(Skim::of(br#"{"metadata":"oops"}"#).is_err());
        assert!(Skim::of(br#"{"metadata":{"name":7}}"#).is_err());
        assert!(Skim::of(br"{}").is_err());
    }

    #[test]
    fn an_object_cut_off_after_its_metadata_still_shows_its_name() {
        let skim =
            Skim::of_beginning(br#"{"kind":"X","metadata":{"name":"a","uid":"u"},"spec":{"x":"yy"#)
                .unwrap();
        assert_eq!((&*skim.name, &*skim.uid), ("a", "u"));
        assert_eq!(&*skim.compact(), b"{}");
        assert!(Skim::of_beginning(br#"{"metadata":{"name":"a","#).is_err());
    }

    #[test]
    fn cutting_leaves_valid_json_wherever_the_members_stand() {
        let names = ["apiVersion", "kind", "metadata", "spec"];
        let inner = ["managedFields", "name", "uid"];
        for members in permutations(&names) {
            for fields in permutations(&inner) {
                for keep in 1..=members.len() {
                    let members = &members[..keep];
                    if !members.contains(&"metadata") {
                        continue;
                    }
                    check_cut(members, &fields);
                }
            }
        }
    }

    fn check_cut(members: &[&str], fields: &[&str]) {
        let metadata: Vec<_> = fields
            .iter()
            .map(|field| match *field {
                "managedFields" => r#""managedFields" : [{"a":"]"}]"#.to_owned(),
                field => format!(r#""{field}": "{field}""#),
            })
            .collect();
        let object: Vec<_> = members
            .iter()
            .map(|member| match *member {
                "metadata" => format!(r#""metadata":{{ {} }}"#, metadata.join(" , ")),
                "spec" => r#""spec":{"kind":"kept","managedFields":1}"#.to_owned(),
                member => format!(r#""{member}" : "x" "#),
            })
            .collect();
        let object = format!("{{ {} }}", object.join(" ,\n"));
        let mut expected = json!({"metadata": {"name": "name", "uid": "uid"}});
        if members.contains(&"spec") {
            expected["spec"] = json!({"kind": "kept", "managedFields": 1});
        }
        assert_eq!(compact_of(&object), expected, "{object}");
    }

    fn permutations<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
        if items.is_empty() {
            return vec![vec![]];
        }
        (0..items.len())
            .flat_map(|i| {
                let mut rest = items.to_vec();
                let first = rest.remove(i);
                permutations(&rest).into_iter().map(move |mut tail| {
                    tail.insert(0, first);
                    tail
                })
            })
            .collect()
    }

    proptest! {
        #[test]
        fn any_bytes_are_skimmed_without_a_panic(bytes in proptest::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['),
                Just(b']'), Just(b'\\'), any::<u8>()], 0..60)) {
            let _ = Skim::of(&bytes).map(|skim| (skim.head(), skim.compact()));
            let mut framed = br#"{"metadata":{"name":"a","labels":"#.to_vec();
            framed.extend_from_slice(&bytes);
            framed.extend_from_slice(b"},\"kind\":1}");
            let _ = Skim::of(&framed).map(|skim| (skim.head(), skim.compact()));
            let _ = Skim::of_beginning(&framed).map(|skim| skim.head());
        }
    }
}
