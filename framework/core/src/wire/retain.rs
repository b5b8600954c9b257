//! Removal of all members of an object but some, without parsing either.
//!
//! A projection reads six fields of a Pod: the others need not stay in memory. The members on the
//! path to a field stay, and so do those that a [`MetadataRef`](super::MetadataRef) reads. So
//! decoding the rest finds the same fields, the same faults and the same paths.

// DESIGN.md, 28: A projection is a type with its own informer

use memchr::memchr;

use super::scanner::members::Cursor;
use super::scanner::scan::Malformed;

/// The members of an object that are kept: paths of fields, and the metadata that a cache reads.
#[derive(Debug)]
pub struct FieldMask {
    /// The step at the root object.
    root: Node,
}

/// A step of the kept paths.
#[derive(Debug, Default)]
struct Node {
    /// Whether the whole value is kept.
    is_whole: bool,
    /// The members of which a part is kept, by name.
    children: Vec<(&'static str, Node)>,
}

/// The members of `metadata` that a [`MetadataRef`](super::MetadataRef) reads.
const KEPT_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "labels",
    "finalizers",
    "ownerReferences",
];

/// Whether the path lies in the members that are always kept.
pub fn is_kept_metadata(path: &[&str]) -> bool {
    matches!(path, ["metadata", part, ..] if KEPT_METADATA.contains(part))
}

impl FieldMask {
    /// Keeps the members at these paths, through objects, and the metadata that a cache reads;
    /// `None` when that is everything.
    #[doc(hidden)]
    pub fn of(paths: &[&[&'static str]]) -> Option<Self> {
        let mut root = Node::default();
        paths.iter().for_each(|path| root.add(path));
        KEPT_METADATA.iter().for_each(|part| root.add(&["metadata", *part]));
        (!root.is_whole).then_some(Self { root })
    }

    /// Returns the ranges of `object` to leave out, in order; the commas still fit.
    ///
    /// # Errors
    /// The bytes are no object, or a name on a path has escapes.
    #[doc(hidden)]
    pub fn cuts(&self, object: &[u8]) -> Result<Vec<(usize, usize)>, Malformed> {
        let mut cuts = Vec::with_capacity(MANY);
        self.root.cut(object, 0, &mut cuts)?;
        Ok(cuts)
    }
}

/// Capacity for the cuts of an ordinary object.
const MANY: usize = 32;

impl Node {
    /// Adds a path below this node; a node that is kept whole stays so.
    fn add(&mut self, path: &[&'static str]) {
        let mut node = self;
        for step in path {
            let at = node.children.iter().position(|(name, _)| name == step);
            let at = at.unwrap_or_else(|| {
                node.children.push((step, Self::default()));
                node.children.len() - 1
            });
            node = &mut node.children[at].1;
        }
        node.is_whole = true;
    }

    /// Returns the child of that name; an error for names with escapes, which are not compared.
    fn child(&self, name: &[u8]) -> Result<Option<&Self>, Malformed> {
        let mut children = self.children.iter();
        let found = children.find(|(known, _)| known.as_bytes() == name);
        if found.is_none() && memchr(b'\\', name).is_some() {
            return Err(Malformed::new("a name has escapes"));
        }
        Ok(found.map(|(_, child)| child))
    }

    /// Appends the ranges to leave out of the object that begins at `from`; returns the object's
    /// end.
    fn cut(
        &self,
        object: &[u8],
        from: usize,
        cuts: &mut Vec<(usize, usize)>,
    ) -> Result<usize, Malformed> {
        let bytes = object.get(from..).unwrap_or_default();
        let mut cursor = Cursor::open(bytes)?;
        let (mut kept_end, mut pending) = (cursor.close(), None);
        while let Some(member) = cursor.name()? {
            let Some(child) = self.child(member.name)? else {
                pending.get_or_insert(member.start);
                cursor.skip()?;
                continue;
            };
            // Cut up to the next member that stays, so that the commas still fit.
            if let Some(start) = pending.take() {
                cuts.push((from + start, from + member.start));
            }
            // A value of another type stays whole, so that the decoder reports the fault.
            kept_end = if child.is_whole || bytes.get(member.value) != Some(&b'{') {
                cursor.skip()?
            } else {
                let end = child.cut(object, from + member.value, cuts)? - from;
                cursor.skip_to(end);
                end
            };
        }
        if pending.is_some() {
            cuts.push((from + kept_end, from + cursor.close()));
        }
        Ok(from + cursor.close() + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn kept(object: &str, paths: &[&[&'static str]]) -> Option<String> {
        let cuts = FieldMask::of(paths)?.cuts(object.as_bytes()).ok()?;
        let (mut kept, mut at) = (String::new(), 0);
        for (start, end) in cuts {
            kept.push_str(&object[at..start]);
            at = end;
        }
        kept.push_str(&object[at..]);
        Some(kept)
    }

    #[test]
    fn named_fields_stay_with_their_parents_and_the_metadata() {
        let object = r#" { "x":[{}], "metadata" : {"name":"n","y":1,"labels":{"a":"b"}},
            "spec":{"p":{"q":[1,"}"],"r":2},"s":3}, "status": null, "z":{"a":1} } "#;
        let wanted: &[&[&str]] = &[&["spec", "p", "q"], &["status", "phase"], &["z", "b"]];
        let kept = kept(object, wanted).expect("it is cut");
        let kept: Value = serde_json::from_str(&kept).expect("it is JSON");
        let left = json!({"metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"p": {"q": [1, "}"]}}, "status": null, "z": {}});
        assert_eq!(kept, left);
    }

    #[test]
    fn what_is_of_the_wrong_type_stays_so_that_its_fault_is_found() {
        let object = r#"{"spec":[{"a":1,"b":2}],"status":"x","other":1}"#;
        let left = r#"{"spec":[{"a":1,"b":2}],"status":"x"}"#;
        assert_eq!(kept(object, &[&["spec", "a"], &["status", "a"]]).as_deref(), Some(left));
    }

    #[test]
    fn parts_that_cannot_be_identified_are_not_cut() {
        let spec: &[&[&str]] = &[&["spec"]];
        for object in ["", "[]", "{", r#"{"a":1"#, r#"{"sp\u0065c":1}"#, r#"{"a" 1}"#] {
            assert_eq!(kept(object, spec), None, "{object}");
        }
        assert!(FieldMask::of(&[&[]]).is_none(), "everything is kept");
    }

    /// The same on the parsed value.
    fn picked(value: &Value, paths: &[&[&'static str]]) -> Value {
        let Value::Object(members) = value else { return value.clone() };
        if paths.iter().any(|path| path.is_empty()) {
            return value.clone();
        }
        let below = |name: &str| -> Vec<&[&'static str]> {
            let split = paths.iter().filter_map(|path| path.split_first());
            split.filter(|(first, _)| **first == name).map(|(_, rest)| rest).collect()
        };
        let kept = members.iter().filter_map(|(name, value)| {
            let below = below(name);
            (!below.is_empty()).then(|| (name.clone(), picked(value, &below)))
        });
        Value::Object(kept.collect())
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), Just(1.into()), Just("\"}],".into())];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn keeping_bytes_is_keeping_members(
            members in prop::collection::btree_map("[abc]", values(), 0..4),
            wanted in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4), 0..4),
        ) {
            let value = Value::Object(members.into_iter().collect());
            let wanted: Vec<&[&'static str]> = wanted.iter().map(Vec::as_slice).collect();
            let kept = kept(&value.to_string(), &wanted).expect("it is cut");
            prop_assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), picked(&value, &wanted));
        }

        #[test]
        fn any_bytes_are_cut_without_a_panic(bytes in prop::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['),
                Just(b']'), Just(b'\\'), Just(b'a'), any::<u8>()], 0..60)) {
            if let Some(mask) = FieldMask::of(&[&["a", "a"]]) {
                for (start, end) in mask.cuts(&bytes).unwrap_or_default() {
                    prop_assert!(start <= end && end <= bytes.len());
                }
            }
        }
    }
}
