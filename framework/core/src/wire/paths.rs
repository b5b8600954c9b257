//! Reading of the scalars at several paths from an object's bytes, in a single pass.
//!
//! Members that lie on no path are skipped, bytes behind the last wanted value are not read, and no
//! JSON is scanned twice to find the end of a value.

use std::borrow::Cow;

use super::metadata_ref::{MetadataOffsets, Span};
use super::scanner::members::{Cursor, UnscannedMember, seen_text};
use super::scanner::name::is_name;
use super::scanner::scan::{nested_end, skip_space, text_end, value_end};

/// Paths through an object, each with a number.
#[derive(Debug, Default)]
pub struct PathTree {
    /// All paths.
    root: Node,
    /// Paths through a part of the metadata whose offset a [`MetadataOffsets`] has.
    parts: [Node; PARTS.len()],
    /// The other paths.
    rest: Node,
}

/// The parts of the metadata whose offsets a [`MetadataOffsets`] has.
const PARTS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// A step of paths; paths with a common beginning share nodes, so that an object is scanned once.
#[derive(Debug, Default)]
struct Node {
    /// The numbers of the paths that end here.
    ends: Vec<usize>,
    /// The next steps, by the name of the member; few, so that a search in order is fast.
    children: Vec<(&'static str, Node)>,
}

/// A value that is no list and no object.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// A text, or a word as written: an integer, `true`, `false`.
    Text(Cow<'a, str>),
    /// A number with a fraction or an exponent: Rust prints 1.0 and 1e0 as 1.
    Number(f64),
}

/// Receives the number of a path and a scalar there.
type ScalarFn<'a> = dyn FnMut(usize, Scalar<'_>) + 'a;

/// Most nested arrays that are searched; deeper values are not indexed.
///
/// Arrays alone count: an array is visited by recursion without a step on the path, so only arrays
/// could nest without end.
const ARRAYS: usize = 128;

impl PathTree {
    /// Adds a path under a number.
    #[doc(hidden)]
    pub fn add(&mut self, path: &[&'static str], number: usize) {
        self.root.add(path, number);
        if let ["metadata", part, below @ ..] = path
            && let Some(part) = PARTS.iter().position(|known| known == part)
        {
            self.parts[part].add(below, number);
        } else {
            self.rest.add(path, number);
        }
    }

    /// Returns whether no path was added, so that objects need no scan.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Calls `each` for every scalar at a path. Arrays along a path fan out; null and objects yield
    /// nothing.
    #[doc(hidden)]
    pub fn visit(&self, bytes: &[u8], each: &mut ScalarFn<'_>) {
        let _ = self.root.value(bytes, skip_space(bytes, 0), ARRAYS, each);
    }

    /// As [`visit`](Self::visit), without scanning metadata whose place is in `offsets`.
    #[doc(hidden)]
    pub fn visit_known(&self, bytes: &[u8], offsets: &MetadataOffsets, each: &mut ScalarFn<'_>) {
        // Without spans the metadata are scanned like the rest.
        if offsets.plain.is_some() || offsets.metadata.length == 0 {
            return self.visit(bytes, each);
        }
        let MetadataOffsets { labels, annotations, finalizers, owners, .. } = offsets;
        for (part, span) in self.parts.iter().zip([labels, annotations, finalizers, owners]) {
            if !part.is_empty() && span.length > 0 {
                let _ = part.value(bytes, span.start as usize, ARRAYS, each);
            }
        }
        if !self.rest.is_empty() {
            let _ = self.rest.members(bytes, 0, offsets.metadata, ARRAYS, each);
        }
    }
}

impl Node {
    /// Adds a path below this node.
    fn add(&mut self, path: &[&'static str], number: usize) {
        let mut node = self;
        for step in path {
            let at = node.children.iter().position(|(name, _)| name == step);
            let at = at.unwrap_or_else(|| {
                node.children.push((step, Self::default()));
                node.children.len() - 1
            });
            node = &mut node.children[at].1;
        }
        node.ends.push(number);
    }

    /// Whether no path ends at or below this node.
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.children.is_empty()
    }

    /// Searches the value that begins at `at`. `None` if the value's end was not found on the way.
    fn value(
        &self,
        bytes: &[u8],
        at: usize,
        arrays: usize,
        each: &mut ScalarFn<'_>,
    ) -> Option<SearchEnd> {
        match bytes.get(at)? {
            b'"' => {
                let text = text_end(bytes, at).ok()?;
                if !self.ends.is_empty() {
                    let read = seen_text(bytes.get(at..text.end)?, text.is_plain);
                    self.emit(read.map(Scalar::Text), each);
                }
                Some(SearchEnd::Behind(text.end))
            }
            // No path goes on below, and an object is no value.
            b'{' if self.children.is_empty() => None,
            b'{' => self.members(bytes, at, Span::default(), arrays, each),
            // Bounded, as each nested array is a recursive call.
            b'[' => {
                self.elements(bytes, at + 1, arrays.checked_sub(1)?, each).map(SearchEnd::Behind)
            }
            _ => {
                let end = value_end(bytes, at).ok()?;
                if !self.ends.is_empty() {
                    self.emit(bytes.get(at..end).and_then(word), each);
                }
                Some(SearchEnd::Behind(end))
            }
        }
    }

    /// Calls `each` for every path that ends here.
    fn emit(&self, scalar: Option<Scalar<'_>>, each: &mut ScalarFn<'_>) {
        let (Some(scalar), Some((last, ends))) = (scalar, self.ends.split_last()) else { return };
        // The last path takes the scalar without a clone: a single path clones nothing.
        ends.iter().for_each(|number| each(*number, scalar.clone()));
        each(*last, scalar);
    }

    /// Searches the elements of an array; `at` is the first element, or the closing bracket.
    fn elements(
        &self,
        bytes: &[u8],
        at: usize,
        arrays: usize,
        each: &mut ScalarFn<'_>,
    ) -> Option<usize> {
        let mut at = skip_space(bytes, at);
        if bytes.get(at)? == &b']' {
            return Some(at + 1);
        }
        loop {
            let end = match self.value(bytes, at, arrays, each) {
                Some(stop) => stop.behind(bytes)?,
                None => value_end(bytes, at).ok()?,
            };
            at = skip_space(bytes, end);
            match bytes.get(at)? {
                b',' => at = skip_space(bytes, at + 1),
                b']' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// Searches the members of the object that begins at `at`. `known` is the span of a member's
    /// value, which need not be scanned for the end.
    fn members(
        &self,
        bytes: &[u8],
        at: usize,
        known: Span,
        arrays: usize,
        each: &mut ScalarFn<'_>,
    ) -> Option<SearchEnd> {
        let mut cursor = Cursor::open_at(bytes, at).ok()?;
        // The first of several members of the same name counts. Beyond 64 children this is not
        // checked.
        let (mut found, mut left) = (0_u64, self.children.len());
        while let Some(name) = cursor.name().ok()? {
            let Some((at, bit)) = self.child(&name).filter(|(_, bit)| found & bit == 0) else {
                match known.length as usize {
                    length @ 1.. if known.start as usize == name.value => {
                        cursor.skip_to(name.value + length)
                    }
                    _ => cursor.skip().ok()?,
                };
                continue;
            };
            let stop = self.children[at].1.value(bytes, name.value, arrays, each);
            found |= bit;
            left -= usize::from(bit != 0);
            // All children were found: the rest of the object is not read.
            if left == 0 {
                return stop.map(SearchEnd::above);
            }
            match stop {
                Some(stop) => cursor.skip_to(stop.behind(bytes)?),
                None => cursor.skip().ok()?,
            };
        }
        Some(SearchEnd::Behind(cursor.close() + 1))
    }

    /// Returns the child of that name, and the child's bit among the first 64.
    fn child(&self, name: &UnscannedMember<'_>) -> Option<(usize, u64)> {
        let is_it = |(child, _): &(&str, Self)| match name.is_plain {
            true => name.name == child.as_bytes(),
            false => is_name(name.name, child),
        };
        let at = self.children.iter().position(is_it)?;
        let bit = u32::try_from(at).ok().and_then(|at| 1_u64.checked_shl(at));
        Some((at, bit.unwrap_or_default()))
    }
}

/// The place where the search of a value ended.
#[derive(Clone, Copy, Debug)]
enum SearchEnd {
    /// Behind the value.
    Behind(usize),
    /// Inside the value, because nothing more is wanted: a position, and the position's depth below
    /// the value's parent.
    Within(usize, u32),
}

impl SearchEnd {
    /// Converts a position in a value to a position in the object that holds the value.
    fn above(self) -> Self {
        match self {
            Self::Behind(at) => Self::Within(at, 1),
            Self::Within(at, depth) => Self::Within(at, depth + 1),
        }
    }

    /// Returns the end of the value.
    fn behind(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Behind(end) => Some(end),
            Self::Within(at, depth) => nested_end(bytes, at, depth).ok(),
        }
    }
}

/// Parses an integer, a number with a fraction or an exponent, `true` or `false`; null is `None`.
fn word(value: &[u8]) -> Option<Scalar<'_>> {
    let first = value.first()?;
    let word = std::str::from_utf8(value).ok()?;
    match first {
        b'n' => None,
        b't' | b'f' => Some(Scalar::Text(Cow::Borrowed(word))),
        _ if value.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => {
            word.parse().ok().map(Scalar::Number)
        }
        b'-' | b'0'..=b'9' => Some(Scalar::Text(Cow::Borrowed(word))),
        _ => None,
    }
}

/// Appends the scalars at a path as texts.
pub fn values_at(bytes: &[u8], path: &[&'static str], out: &mut Vec<String>) {
    let mut tree = PathTree::default();
    tree.add(path, 0);
    tree.visit(bytes, &mut |_, scalar| out.push(scalar.to_string()));
}

impl std::fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn at(object: &[u8], path: &[&'static str]) -> Vec<String> {
        let mut out = Vec::new();
        values_at(object, path, &mut out);
        out
    }

    #[test]
    fn values_fan_out_over_lists_and_numbers_are_printed_as_rust_prints_them() {
        let object = br#"{"spec":{"rules":[{"host":"a"},{"host":null},{"x":1},{"host":"b\n"}],"n":7,"f":1.0,"t":true}}"#;
        assert_eq!(at(object, &["spec", "rules", "host"]), ["a", "b\n"]);
        assert_eq!(at(object, &["spec", "n"]), ["7"]);
        assert_eq!(at(object, &["spec", "f"]), ["1"]);
        assert_eq!(at(object, &["spec", "t"]), ["true"]);
        assert!(at(object, &["spec", "absent"]).is_empty());
        assert!(at(object, &["spec"]).is_empty());
    }

    #[test]
    fn names_with_escapes_are_names() {
        let object = br#"{"spec":{"\u0061":"x","b\u0026c":[{"d":"y"}]}}"#;
        assert_eq!(at(object, &["spec", "a"]), ["x"]);
        assert_eq!(at(object, &["spec", "b&c", "d"]), ["y"]);
    }

    #[test]
    fn arrays_nested_without_end_give_no_value() {
        let nested = |depth: usize| {
            format!("{{\"a\":{}7{}}}", "[".repeat(depth), "]".repeat(depth)).into_bytes()
        };
        assert_eq!(at(&nested(100), &["a"]), ["7"]);
        assert!(at(&nested(10_000), &["a"]).is_empty());
    }

    #[test]
    fn what_stands_behind_the_last_value_that_is_looked_for_is_not_looked_at() {
        let mut tree = PathTree::default();
        tree.add(&["a", "x"], 0);
        tree.add(&["b"], 1);
        let mut found = Vec::new();
        tree.visit(br#"{"a":{"x":1,"y":[{}]},"b":2,"c":oops"#, &mut |number, scalar| {
            found.push((number, scalar.to_string()));
        });
        assert_eq!(found, [(0, "1".to_owned()), (1, "2".to_owned())]);
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ab\"\\\\]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
        .prop_map(|value| json!({"a": value, "b": {"a": value, "c": [value]}}))
    }

    /// The values at a path, found in the parsed value.
    fn plain(value: &Value, path: &[&str], out: &mut Vec<String>) {
        match (value, path) {
            (Value::Array(items), _) => items.iter().for_each(|item| plain(item, path, out)),
            (Value::Object(map), [first, rest @ ..]) => {
                if let Some(value) = map.get(*first) {
                    plain(value, rest, out);
                }
            }
            (Value::String(text), []) => out.push(text.clone()),
            (Value::Number(_) | Value::Bool(_), []) => out.push(value.to_string()),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn many_paths_in_one_pass_give_what_each_gives_alone(
            value in object(),
            paths in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4), 1..6),
        ) {
            let bytes = value.to_string();
            let mut tree = PathTree::default();
            for (number, path) in paths.iter().enumerate() {
                tree.add(path, number);
            }
            let mut found = vec![Vec::new(); paths.len()];
            tree.visit(bytes.as_bytes(), &mut |number, scalar| {
                found[number].push(scalar.to_string());
            });
            for (path, found) in paths.iter().zip(&found) {
                let mut wanted = Vec::new();
                plain(&value, path, &mut wanted);
                prop_assert_eq!(found, &wanted, "{:?} of {}", path, bytes);
            }
        }

        /// The shortcut finds the same values as a scan of everything.
        #[test]
        fn known_metadata_are_not_gone_through_and_nothing_is_missed(
            value in object(), first in any::<bool>(), rest in prop::sample::select(vec!["a", "b"]),
        ) {
            let metadata = json!({"name": "n", "labels": {"a": "1", "b": "2"}, "x": value,
                "managedFields": [value], "annotations": value["b"],
                "ownerReferences": [{"uid": "u1"}, {"uid": "u2"}]});
            let members = [format!(r#""metadata":{metadata}"#), format!(r#""spec":{value}"#)];
            let members = if first { members } else { let [a, b] = members; [b, a] };
            let object = format!("{{{}}}", members.join(","));
            let scan = crate::wire::MetadataScan::of(object.as_bytes()).unwrap();
            let (offsets, kept) = (scan.offsets(), scan.compact());
            let mut tree = PathTree::default();
            let paths: [&[&'static str]; 6] = [
                &["metadata", "labels", "a"], &["metadata", "annotations", "a", rest],
                &["metadata", "ownerReferences", "uid"], &["metadata", "x", rest],
                &["metadata", "name"], &["spec", rest, "a"],
            ];
            for (number, path) in paths.iter().enumerate() {
                tree.add(path, number);
            }
            let (mut known, mut whole) = (Vec::new(), Vec::new());
            tree.visit_known(&kept, &offsets, &mut |n, scalar| known.push((n, scalar.to_string())));
            tree.visit(&kept, &mut |n, scalar| whole.push((n, scalar.to_string())));
            known.sort();
            whole.sort();
            prop_assert_eq!(known, whole, "{}", object);
        }

        #[test]
        fn any_bytes_are_visited_without_a_panic(bytes in prop::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['),
                Just(b']'), Just(b'a'), any::<u8>()], 0..60)) {
            let mut object = br#"{"a":"#.to_vec();
            object.extend_from_slice(&bytes);
            let _ = at(&object, &["a", "a"]);
            let _ = at(&bytes, &["a"]);
        }
    }
}
