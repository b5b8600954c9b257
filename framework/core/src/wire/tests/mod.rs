//! The scanners agree with a strict decoder on randomly changed bytes.

mod bent;
mod strict;

use std::fmt::Write;

use serde_json::{Value, json};

use super::*;
use crate::rng::Rng;
use bent::{bend, write_json};
use strict::Strict;

/// Objects as API servers write them: an item of a list, an object of a watch, a custom resource.
fn originals() -> Vec<Value> {
    let fields =
        json!([{"manager": "kubelet", "fieldsV1": {"f:status": {"k:{\"type\":\"}\"}": {}}}}]);
    vec![
        json!({"metadata": {"name": "web-1", "namespace": "shop", "uid": "3c1f-9", "resourceVersion": "8123",
                "generation": 2, "labels": {"app": "web", "pod-template-hash": "7d9"},
                "annotations": {"note": "a\"b\\c\n{[", "k8s.io/initial-events-end": "true"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                    "uid": "o-1", "controller": true, "blockOwnerDeletion": true}],
                "finalizers": ["a.io/x", "b.io/y"], "managedFields": fields},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "args": ["}", "]", "\\\""]}]},
            "status": {"podIP": "10.0.0.1", "ready": true, "restarts": 3}}),
        json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "ä-日本", "uid": "u", "resourceVersion": "9", "managedFields": fields,
                "deletionTimestamp": null, "labels": {"z": "1", "a": "\u{7f}"}},
            "data": {"k": "v\u{2028}", "kind": "\"kind\":\"x\"", "managedFields": "kept"}}),
        json!({"apiVersion": "x.dev/v1", "kind": "Thing", "spec": {"nodeName": ["a", {"b": 1}], "f": 1.5},
            "metadata": {"managedFields": [], "name": "t", "namespace": "", "uid": "",
                "resourceVersion": "1", "ownerReferences": [{"uid": 7}, {}, {"uid": "x"}]}}),
    ]
}

const PATHS: [&[&str]; 7] = [
    &["metadata", "name"],
    &["metadata", "labels", "app"],
    &["metadata", "ownerReferences", "uid"],
    &["metadata", "annotations", "note"],
    &["spec", "nodeName"],
    &["spec", "containers", "args"],
    &["data", "kind"],
];

/// Cases of each of the four tests, which run side by side. A debug build checks some 3,000 in ten
/// seconds; the fuzz targets `frames`, `list` and `scan` make the same comparisons for longer.
const CASES: u64 = 8_000;

fn cases(seed: u64) {
    let rng = Rng::seeded(seed);
    let originals = originals();
    let (mut good, mut good_keys, mut bad) = (0, 0, 0);
    for number in 0..CASES {
        let mut value = originals[rng.below(originals.len() as u64) as usize].clone();
        let mut bytes = Vec::new();
        if number % 2 == 0 {
            bent::rearrange(&mut value, &rng);
        }
        let mut odd_keys = write_json(&value, &rng, &mut bytes);
        if number % 2 == 1 {
            bend(&mut bytes, &rng);
            odd_keys |= memchr::memchr(b'\\', &bytes).is_some();
        }
        let read = serde_json::from_slice::<Strict>(&bytes);
        // Half of the cases go through each of the two checks, which take about as long as all the
        // others.
        match rng.below(2) {
            0 => lists_wherever_it_is_cut(&bytes, read.is_ok(), &rng),
            _ => frames_wherever_it_is_cut(&bytes, read.is_ok(), &rng),
        }
        match read {
            Ok(Strict(value)) => {
                good += 1;
                good_keys += u64::from(!odd_keys);
                agrees(&bytes, &value, odd_keys, &rng);
            }
            Err(_) => {
                bad += 1;
                survives(&bytes);
            }
        }
    }
    assert!(
        good_keys > CASES / 7 && bad > CASES / 6,
        "{good_keys} of {good} good ones, {bad} bad ones"
    );
}

#[test]
fn a_bent_object_is_read_as_a_strict_decoder_reads_it() {
    cases(1);
}

#[test]
fn a_bent_object_is_read_as_a_strict_decoder_reads_it_2() {
    cases(2);
}

#[test]
fn a_bent_object_is_read_as_a_strict_decoder_reads_it_3() {
    cases(3);
}

#[test]
fn a_bent_object_is_read_as_a_strict_decoder_reads_it_4() {
    cases(4);
}

fn texts(value: Option<&Value>) -> Vec<(String, String)> {
    let Some(Value::Object(map)) = value else { return Vec::new() };
    let pair = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let mut texts: Vec<_> = map.iter().filter_map(pair).collect();
    texts.sort();
    texts
}

/// The part of an object that a cache keeps.
fn kept(value: &Value) -> Value {
    let mut kept = value.clone();
    if let Value::Object(map) = &mut kept {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.remove("managedFields");
        }
    }
    kept
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that scanners and decoder agree. `odd_keys`: whether a key may have escapes. Such keys
/// are never ours: then more is kept, and less is known, than there is.
fn agrees(bytes: &[u8], value: &Value, odd_keys: bool, rng: &Rng) {
    let start = scanner::scan::skip_space(bytes, 0);
    let length =
        bytes.len() - bytes.iter().rev().take_while(|byte| scanner::scan::is_space(**byte)).count();
    assert_eq!(scanner::scan::value_end(bytes, start), Ok(length), "{}", shown(bytes));
    if odd_keys {
        return survives(bytes);
    }
    let metadata = value.get("metadata").filter(|metadata| metadata.is_object());
    let text = |name: &str| metadata.and_then(|m| m.get(name)?.as_str()).unwrap_or_default();
    let scan = MetadataScan::of(bytes);
    assert_eq!(scan.is_ok(), !text("name").is_empty(), "{}", shown(bytes));
    let Ok(scan) = scan else { return };
    assert_eq!((&*scan.name, &*scan.uid), (text("name"), text("uid")), "{}", shown(bytes));
    assert_eq!(scan.namespace.as_deref().unwrap_or_default(), text("namespace"));
    assert_eq!(scan.resource_version, text("resourceVersion"));
    let (offsets, compact) = (scan.offsets(), scan.compact());
    assert_eq!(
        serde_json::from_slice::<Value>(&compact).ok(),
        Some(kept(value)),
        "{}",
        shown(bytes)
    );
    let metadata = metadata.expect("a name stands in it");
    let view = offsets.metadata(&compact);
    metadata_agrees(&view, metadata, bytes);
    let marks = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
    assert_eq!(scan.ends_initial_events(), marks, "{}", shown(bytes));
    paths_agree(bytes, value);
    known_places_agree(&compact, &offsets);
    let path = PATHS[rng.below(PATHS.len() as u64) as usize];
    let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
    let mut expected = value.clone();
    let was_there = strict::remove(&mut expected, &path);
    let cut = without(bytes, &[path]);
    assert_eq!(cut.is_some(), was_there, "{}", shown(bytes));
    if let Some(cut) = cut {
        assert_eq!(serde_json::from_slice::<Value>(&cut).ok(), Some(expected), "{}", shown(bytes));
    }
}

fn metadata_agrees(view: &MetadataRef<'_>, metadata: &Value, bytes: &[u8]) {
    let labels: Vec<_> = view.labels().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    assert_eq!(labels, texts(metadata.get("labels")), "{}", shown(bytes));
    let list = |name: &str| metadata[name].as_array().cloned().unwrap_or_default();
    let finalizers: Vec<_> =
        list("finalizers").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    assert_eq!(view.finalizers().collect::<Vec<_>>(), finalizers, "{}", shown(bytes));
    let uid = |owner: &Value| {
        let text = |name: &str| owner.get(name).map_or(Some(""), Value::as_str);
        let is_owner = owner.is_object()
            && ["apiVersion", "kind", "name"].iter().all(|name| text(name).is_some())
            && owner.get("controller").is_none_or(|at| at.is_null() || at.is_boolean());
        text("uid").filter(|_| is_owner).map(str::to_owned)
    };
    let owners: Vec<_> = list("ownerReferences").iter().filter_map(uid).collect();
    assert_eq!(
        view.owners().map(|owner| owner.uid).collect::<Vec<_>>(),
        owners,
        "{}",
        shown(bytes)
    );
    assert_eq!(view.generation(), metadata["generation"].as_i64().unwrap_or(0), "{}", shown(bytes));
    assert_eq!(view.is_terminating(), !metadata["deletionTimestamp"].is_null(), "{}", shown(bytes));
    let note = metadata["annotations"]["note"].as_str();
    assert_eq!(view.annotation("note").as_deref(), note, "{}", shown(bytes));
}

/// The shortcut finds the same values as a scan of everything.
fn known_places_agree(compact: &[u8], offsets: &MetadataOffsets) {
    let mut tree = PathTree::default();
    PATHS.iter().enumerate().for_each(|(number, path)| tree.add(path, number));
    let (mut known, mut whole) = (Vec::new(), Vec::new());
    tree.visit_known(compact, offsets, &mut |at, scalar| known.push((at, scalar.to_string())));
    tree.visit(compact, &mut |at, scalar| whole.push((at, scalar.to_string())));
    known.sort();
    whole.sort();
    assert_eq!(known, whole, "{}", shown(compact));
}

/// Texts and words; the output of numbers is tested in `paths`.
fn paths_agree(bytes: &[u8], value: &Value) {
    for path in PATHS {
        let mut found = Vec::new();
        values_at(bytes, path, &mut found);
        found.retain(|text| text.parse::<f64>().is_err());
        let mut expected = Vec::new();
        strict::texts_at(value, path, &mut expected);
        expected.retain(|text| text.parse::<f64>().is_err());
        assert_eq!(found, expected, "{path:?} of {}", shown(bytes));
    }
}

/// Checks for panics and contradictions only.
fn survives(bytes: &[u8]) {
    for scan in [
        MetadataScan::of(bytes),
        MetadataScan::version_of(bytes),
        MetadataScan::of_beginning(bytes),
    ]
    .into_iter()
    .flatten()
    {
        let (offsets, compact) = (scan.offsets(), scan.compact());
        assert_eq!(compact.len(), scan.compact_len());
        let view = offsets.metadata(&compact);
        assert_eq!((view.uid(), view.resource_version()), (&*scan.uid, &*scan.resource_version));
        let mut text = String::new();
        view.labels().for_each(|(key, value)| write!(text, "{key}{value}").expect("a text"));
        let _ = (view.finalizers().count(), view.owners().count(), view.annotation("note"));
    }
    for path in PATHS {
        values_at(bytes, path, &mut Vec::new());
        let _ = value_at_path(bytes, path);
        let _ = without(bytes, &[path.iter().map(|step| (*step).to_owned()).collect()]);
    }
    let _ = status::failure_in(bytes);
}

/// Cuts `bytes` at a few places.
fn pieces<'a>(bytes: &'a [u8], rng: &Rng) -> Vec<&'a [u8]> {
    let most = bytes.len() as u64 + 1;
    let mut cuts: Vec<_> = (0..rng.below(5)).map(|_| rng.below(most) as usize).collect();
    cuts.sort_unstable();
    let mut from = 0;
    let ends = cuts.into_iter().chain([bytes.len()]);
    ends.map(|end| &bytes[std::mem::replace(&mut from, end)..end]).collect()
}

fn told(part: StreamPiece<'_>) -> (bool, Vec<u8>) {
    match part {
        StreamPiece::Whole(bytes) => (true, bytes.to_vec()),
        StreamPiece::TooLarge(bytes) => (false, bytes.to_vec()),
    }
}

type Told = Vec<(bool, Vec<u8>)>;

fn lists_wherever_it_is_cut(bytes: &[u8], is_good: bool, rng: &Rng) {
    let split = |pieces: &[&[u8]], limit: usize| -> (Told, Result<ListMeta, Malformed>) {
        let mut splitter = ListSplitter::with_limit(limit);
        let mut items = Vec::new();
        for piece in pieces {
            if let Err(error) = splitter.push(piece, &mut |part| items.push(told(part))) {
                return (items, Err(error));
            }
        }
        (items, splitter.finish())
    };
    let body =
        [&br#"{"items":[{"a":1},"#[..], bytes, br#",{"b":2}],"metadata":{"resourceVersion":"1"}}"#]
            .concat();
    let (items, outcome) = split(&[&body], 1 << 20);
    assert_eq!(split(&pieces(&body, rng), 1 << 20), (items.clone(), outcome.clone()));
    let limit = rng.below(bytes.len() as u64 + 2) as usize;
    assert_eq!(split(&pieces(&body, rng), limit), split(&[&body], limit));
    if bytes.starts_with(b"{") && is_good {
        let item = bytes.trim_ascii_end();
        assert!(
            outcome.is_ok() && items.len() == 3 && items[1] == (true, item.to_vec()),
            "{}",
            shown(bytes)
        );
    }
}

fn frames_wherever_it_is_cut(bytes: &[u8], is_good: bool, rng: &Rng) {
    let order = rng.below(3);
    let frame = match order {
        0 => [&br#"{"type":"MODIFIED","object":"#[..], bytes, b"}"].concat(),
        1 => [&br#"{"object":"#[..], bytes, br#","type":"MODIFIED"} "#].concat(),
        _ => [&br#" {"type":"MODIFIED", "object" :"#[..], bytes, br#", "more":{"object":[]}}"#]
            .concat(),
    };
    let body = [b"\r\n".as_slice(), &frame, b"\r\n\n", &frame[..frame.len() / 2]].concat();
    let cut = |pieces: &[&[u8]], limit: usize| -> Told {
        let mut decoder = FrameDecoder::with_limit(limit);
        let mut lines = Vec::new();
        pieces.iter().for_each(|piece| decoder.push(piece, &mut |part| lines.push(told(part))));
        lines
    };
    let lines = cut(&[&body], 1 << 20);
    assert_eq!(cut(&pieces(&body, rng), 1 << 20), lines);
    let limit = rng.below(body.len() as u64) as usize;
    assert_eq!(cut(&pieces(&body, rng), limit), cut(&[&body], limit));
    for (_, line) in &lines {
        if let Ok(frame) = Frame::of_beginning(line) {
            survives(frame.object);
        }
    }
    let read = Frame::of(&frame);
    if is_good {
        let read = read.unwrap_or_else(|error| panic!("{error}: {}", shown(&frame)));
        assert_eq!(read.event, EventType::Modified);
        assert_eq!(read.object.trim_ascii(), bytes.trim_ascii(), "{}", shown(&frame));
    } else if let Ok(frame) = read {
        let _ = (frame.status(), MetadataScan::of(frame.object).is_ok());
    }
}

/// The search behind the metadata must not run once per member: this would take minutes.
#[test]
fn an_object_of_a_hundred_thousand_members_is_read_in_one_go() {
    let mut object = r#"{"metadata":{"name":"a"}"#.to_owned();
    for number in 0..200_000 {
        write!(object, r#","m{number}":1"#).expect("a text");
    }
    object.push_str(r#","kind":"K","apiVersion":"v1"}"#);
    let scan = MetadataScan::of(object.as_bytes()).expect("an object");
    let compact = scan.compact();
    assert!(compact.ends_with(br#""m199999":1}"#), "kind and apiVersion are cut");
}

/// As lookups by path do.
#[test]
fn of_two_metadata_the_first_counts_and_is_not_mixed_with_the_second() {
    for tail in ["", r#","kind":"K""#] {
        let first = r#"{"metadata":{"name":"a","namespace":"n","uid":"u"}"#;
        let object = format!(r#"{first},"metadata":{{"name":"b","labels":{{"x":"y"}}}}{tail}}}"#);
        let scan = MetadataScan::of(object.as_bytes()).expect("an object");
        let (offsets, compact) = (scan.offsets(), scan.compact());
        assert_eq!((&*scan.name, scan.namespace.as_deref(), &*scan.uid), ("a", Some("n"), "u"));
        assert_eq!(offsets.metadata(&compact).label("x"), None);
        let mut found = Vec::new();
        values_at(object.as_bytes(), &["metadata", "name"], &mut found);
        assert_eq!(found, ["a"]);
    }
    assert!(MetadataScan::of(br#"{"metadata":7,"metadata":{"name":"a"},"kind":"K"}"#).is_err());
}
