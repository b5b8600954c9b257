//! Removal of members from an object's bytes, without parsing them or the rest.

use super::scanner::members::{Cursor, elements, members};
use super::scanner::name::is_name;
use super::scanner::scan::{Malformed, skip_space};

/// Most nested arrays and objects that are searched.
///
/// The limit protects the stack from hostile input; members below the limit stay.
const MOST_DEPTH: usize = 64;

/// Returns the value at `path`, for paths through objects only.
///
/// The first of several members of the same name counts. A name with escapes is found by the
/// unescaped name.
pub fn value_at_path<'a>(object: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else { return Some(object) };
    let mut found = None;
    // Members before a fault count even if the rest is malformed.
    let _ = members(object, &mut |member| {
        if is_name(member.name, first) {
            found = Some(member.value);
        }
        found.is_none()
    });
    value_at_path(found?, rest)
}

/// Returns `object` without the members at `paths`; lists along a path fan out. `None` when there
/// is no such member, or the bytes are not JSON.
///
/// The bytes of kept members stay as they are, white space and order included. A path that goes
/// through a scalar removes nothing.
pub fn without(object: &[u8], paths: &[Vec<String>]) -> Option<Vec<u8>> {
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let mut ranges = Vec::new();
    // Positions count from the start of `object`: the leading blanks are copied as well.
    let start = skip_space(object, 0);
    cut(&object[start..], start, &paths, MOST_DEPTH, &mut ranges).ok()?;
    if ranges.is_empty() {
        return None;
    }
    let cut: usize = ranges.iter().map(|(start, end)| end - start).sum();
    let mut kept = Vec::with_capacity(object.len() - cut);
    // The ranges are in order and do not overlap, so a single pass copies each kept byte once.
    let mut at = 0;
    for (start, end) in ranges {
        kept.extend_from_slice(&object[at..start]);
        at = end;
    }
    kept.extend_from_slice(&object[at..]);
    Some(kept)
}

/// Appends the ranges to leave out of `value`, which begins at `offset`, in order.
///
/// `paths` are relative to `value`. Ranges are ascending and disjoint: the caller copies the bytes
/// between them in a single pass.
fn cut(
    value: &[u8],
    offset: usize,
    paths: &[&[String]],
    depth: usize,
    ranges: &mut Vec<(usize, usize)>,
) -> Result<(), Malformed> {
    // Deeper values stay: recursion is bounded for every input.
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    match value.first() {
        Some(b'[') => {
            let mut outcome = Ok(());
            elements(value, &mut |at, element| {
                if outcome.is_ok() {
                    outcome = cut(element, offset + at, paths, depth, ranges);
                }
            })?;
            outcome
        }
        Some(b'{') => cut_members(value, offset, paths, depth, ranges),
        _ => Ok(()),
    }
}

/// Works like `cut`, for a value that is an object.
///
/// A range ends where the next kept member starts, and therefore includes the comma after the
/// removed member. Removed members at the end have no such successor: their range begins at the end
/// of the last kept member and includes the comma before.
fn cut_members(
    value: &[u8],
    offset: usize,
    paths: &[&[String]],
    depth: usize,
    ranges: &mut Vec<(usize, usize)>,
) -> Result<(), Malformed> {
    let mut cursor = Cursor::open(value)?;
    // Up to the next member that stays, so that the commas still fit; or from the last that stayed.
    let (mut kept_end, mut pending) = (1, None);
    while let Some(member) = cursor.name()? {
        let end = cursor.skip()?;
        let below: Vec<&[String]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(first, _)| is_name(member.name, first))
            .map(|(_, rest)| rest)
            .collect();
        // The whole member goes; the range ends at the next member that stays.
        if below.iter().any(|rest| rest.is_empty()) {
            pending.get_or_insert(member.start);
            continue;
        }
        if let Some(start) = pending.take() {
            ranges.push((offset + start, offset + member.start));
        }
        kept_end = end;
        if !below.is_empty() {
            cut(&value[member.value..end], offset + member.value, &below, depth, ranges)?;
        }
    }
    if pending.is_some() {
        ranges.push((offset + kept_end, offset + cursor.close()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn paths(paths: &[&str]) -> Vec<Vec<String>> {
        paths.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect()
    }

    fn cut_of(object: &str, wanted: &[&str]) -> String {
        let kept = without(object.as_bytes(), &paths(wanted)).unwrap_or_else(|| object.into());
        String::from_utf8(kept).unwrap()
    }

    #[test]
    fn commas_fit_wherever_the_member_stands() {
        let object = r#"{ "a" : 1 , "b" : {"c": [2], "d": "}"}, "e":null }"#;
        assert_eq!(cut_of(object, &["a"]), r#"{ "b" : {"c": [2], "d": "}"}, "e":null }"#);
        assert_eq!(cut_of(object, &["e"]), r#"{ "a" : 1 , "b" : {"c": [2], "d": "}"}}"#);
        assert_eq!(cut_of(object, &["a", "e", "b"]), "{}");
        assert_eq!(cut_of(object, &["b.c", "e"]), r#"{ "a" : 1 , "b" : {"d": "}"}}"#);
        assert_eq!(cut_of(object, &["x", "a.b", "e.f"]), object);
    }

    #[test]
    fn names_with_escapes_are_names() {
        let object = r#"{"\u0061":{"x\u0026y":1,"b":2},"c\n":3}"#;
        assert_eq!(cut_of(object, &["a.x&y"]), r#"{"\u0061":{"b":2},"c\n":3}"#);
        assert_eq!(cut_of(object, &["a", "c"]), r#"{"c\n":3}"#);
        assert_eq!(value_at_path(object.as_bytes(), &["a", "x&y"]), Some(&b"1"[..]));
    }

    /// The same on the parsed value, for comparison with `without`.
    fn removed(value: &mut Value, path: &[String]) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| removed(item, path)),
            Value::Object(members) => match path {
                [] => {}
                [last] => {
                    members.remove(last);
                }
                [first, rest @ ..] => {
                    if let Some(inner) = members.get_mut(first) {
                        removed(inner, rest);
                    }
                }
            },
            _ => {}
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), Just(1.into()), Just("\"}],".into())];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[abc]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn cutting_bytes_is_removing_members(
            mut value in values(),
            wanted in proptest::collection::vec(proptest::collection::vec("[abc]", 1..4), 0..4),
        ) {
            let bytes = serde_json::to_vec(&value).unwrap();
            let kept = without(&bytes, &wanted).unwrap_or_else(|| bytes.clone());
            for path in &wanted {
                removed(&mut value, path);
            }
            prop_assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), value);
        }

        #[test]
        fn any_bytes_are_cut_without_a_panic(bytes in proptest::collection::vec(
            prop_oneof![Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['),
                Just(b']'), Just(b'\\'), Just(b'a'), any::<u8>()], 0..60)) {
            let _ = without(&bytes, &paths(&["a", "a.a"]));
        }
    }
}
