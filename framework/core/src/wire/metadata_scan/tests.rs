use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn compact_of(text: &str) -> Value {
    let compact = MetadataScan::of(text.as_bytes()).unwrap().compact();
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
    let scan = MetadataScan::of(bytes.as_bytes()).unwrap();
    let (offsets, kept) = (scan.offsets(), scan.compact());
    let view = offsets.metadata(&kept);
    assert_eq!((view.uid(), view.resource_version(), view.generation()), ("u", "7", 3));
    assert!(view.is_terminating());
    assert_eq!(view.label("b\""), Some("2"));
    assert_eq!(view.labels().collect::<Vec<_>>(), [("b\"", "2"), ("z", "1")]);
    assert_eq!(view.finalizers().collect::<Vec<_>>(), ["f/1", "f/2"]);
    assert_eq!(view.controller().unwrap().kind, "ReplicaSet");
    assert_eq!(view.owners().count(), 2);
}

/// Metadata that are read in place equal copied metadata.
#[test]
fn a_plain_object_keeps_no_copies_and_reads_as_one_that_does() {
    let inner = r#""labels": {"a":"1","z":"2"}, "finalizers":["f/1" , "f/2"],"ownerReferences":
        [{"apiVersion":"v1","kind":"O","name":"o","uid":"ou","controller":true},{"uid":7},{}],
        "annotations":{"n":"a\nb"},"deletionTimestamp":null,"generation":4"#;
    let cut = r#""managedFields":[{"x":"}"}]"#;
    let names = r#""name":"a","uid":"u-1","resourceVersion":"17""#;
    for metadata in [
        format!("{cut},{names},{inner}"),
        format!("{names},{cut},{inner}"),
        format!("{inner},{names},{cut}"),
    ] {
        let bytes = format!(r#"{{"kind":"K","metadata":{{{metadata}}},"apiVersion":"v1"}}"#);
        let scan = MetadataScan::of(bytes.as_bytes()).unwrap();
        let (offsets, kept) = (scan.offsets(), scan.compact());
        assert!(offsets.plain.is_none());
        let view = offsets.metadata(&kept);
        let copied = MetadataOffsets {
            plain: Some(Box::new(scan.copied())),
            state: Revision::new(4, false),
            ..MetadataOffsets::default()
        };
        assert_eq!(view, copied.metadata(&[]), "{bytes}");
        assert_eq!((view.uid(), view.resource_version()), ("u-1", "17"));
        assert_eq!(view.label("z"), Some("2"));
        assert_eq!(view.owners().count(), 2, "one has no text for a uid");
        assert_eq!(view.annotation("n").as_deref(), Some("a\nb"));
        let metadata: Value = serde_json::from_slice(offsets.metadata.of(&kept)).unwrap();
        assert_eq!((&metadata["name"], metadata.get("managedFields")), (&json!("a"), None));
    }
}

#[test]
fn labels_out_of_order_or_twice_are_sorted_and_the_last_counts() {
    let bytes = br#"{"metadata":{"name":"a","labels":{"b":"1","a":"2","b":"3","n":7}}}"#;
    let scan = MetadataScan::of(bytes).unwrap();
    let (offsets, kept) = (scan.offsets(), scan.compact());
    let labels: Vec<_> = offsets.metadata(&kept).labels().collect();
    assert_eq!(labels, [("a", "2"), ("b", "3")]);
}

#[test]
fn a_type_that_stands_behind_the_metadata_is_cut_though_the_content_names_others() {
    let bytes = r#"{"metadata":{"name":"a"},"spec":{"kind":"x"},"kind":"K","apiVersion":"v1"}"#;
    assert_eq!(compact_of(bytes), json!({"metadata":{"name":"a"},"spec":{"kind":"x"}}));
}

#[test]
fn a_body_that_no_type_fits_still_shows_its_name() {
    let scan = MetadataScan::of(br#"{"spec":[{]},"metadata":{"name":"a"}}"#);
    // Brackets that do not match are not checked here, as long as they balance.
    assert_eq!(scan.unwrap().name, "a");
    assert!(MetadataScan::of(br#"{"metadata":"oops"}"#).is_err());
    assert!(MetadataScan::of(br#"{"metadata":{"name":7}}"#).is_err());
    assert!(MetadataScan::of(br"{}").is_err());
}

#[test]
fn an_object_cut_off_after_its_metadata_still_shows_its_name() {
    let scan = MetadataScan::of_beginning(
        br#"{"kind":"X","metadata":{"name":"a","uid":"u"},"spec":{"x":"yy"#,
    )
    .unwrap();
    assert_eq!((&*scan.name, &*scan.uid), ("a", "u"));
    assert_eq!(&*scan.compact(), b"{}");
    assert_eq!(scan.offsets().metadata(b"{}").uid(), "u");
    assert!(MetadataScan::of_beginning(br#"{"metadata":{"name":"a","#).is_err());
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
    fn any_bytes_are_scanned_without_a_panic(bytes in proptest::collection::vec(
        prop_oneof![Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'['),
            Just(b']'), Just(b'\\'), any::<u8>()], 0..60)) {
        let _ = MetadataScan::of(&bytes).map(|scan| look(&scan));
        let mut framed = br#"{"metadata":{"name":"a","labels":"#.to_vec();
        framed.extend_from_slice(&bytes);
        framed.extend_from_slice(b"},\"kind\":1}");
        let _ = MetadataScan::of(&framed).map(|scan| look(&scan));
        let _ = MetadataScan::of_beginning(&framed).map(|scan| look(&scan));
    }
}

fn look(scan: &MetadataScan<'_>) {
    let (offsets, kept) = (scan.offsets(), scan.compact());
    let view = offsets.metadata(&kept);
    assert_eq!((view.uid(), view.resource_version()), (&*scan.uid, &*scan.resource_version));
    let _ = (view.labels().count(), view.finalizers().count(), view.owners().count());
    assert_eq!(kept.len(), scan.compact_len());
}

/// A text as JSON, or another value in place of the text.
fn written() -> impl Strategy<Value = (String, Option<String>)> {
    let text = "[ab\"\\\\é]{0,3}";
    prop_oneof![
        6 => text.prop_map(|text| (Value::from(text.clone()).to_string(), Some(text))),
        1 => "[a-c]".prop_map(|text| (format!("\"\\u{:04x}\"", text.as_bytes()[0]), Some(text))),
        1 => prop::sample::select(vec!["null", "1", "true", "[\"a\"]", "{\"a\":\"}\"}"])
            .prop_map(|other| (other.to_owned(), None)),
    ]
}

proptest! {
    /// In any order, twice, escaped, with blanks, beside values that are no texts.
    #[test]
    fn labels_are_what_the_texts_among_them_say(
        pairs in prop::collection::vec((written(), written()), 0..6), is_wide in any::<bool>(),
        is_sorted in any::<bool>(), behind in "[a-c]{0,40}",
    ) {
        let mut pairs: Vec<_> = pairs.into_iter().filter(|((_, key), _)| key.is_some()).collect();
        if is_sorted {
            pairs.sort();
        }
        let (colon, comma) = if is_wide { (" : ", " , ") } else { (":", ",") };
        let members: Vec<_> =
            pairs.iter().map(|((key, _), (value, _))| format!("{key}{colon}{value}")).collect();
        let object = format!(
            r#"{{"metadata":{{"labels":{{{}}},"managedFields":[{{}}],"name":"n{behind}"}}}}"#,
            members.join(comma)
        );
        let mut wanted = std::collections::BTreeMap::new();
        for ((_, key), (_, value)) in &pairs {
            if let (Some(key), Some(value)) = (key, value) {
                wanted.insert(key.as_str(), value.as_str());
            }
        }
        let scan = MetadataScan::of(object.as_bytes()).unwrap();
        let (offsets, kept) = (scan.offsets(), scan.compact());
        let found: Vec<_> = offsets.metadata(&kept).labels().collect();
        prop_assert_eq!(&*scan.name, format!("n{behind}"));
        prop_assert_eq!(found, wanted.into_iter().collect::<Vec<_>>(), "{}", object);
    }
}
