//! The fuzz targets of `tests/fuzz` on any toolchain: more than a million executions with cases of
//! proptest. An execution is a call of a target with an input.

#[path = "../fuzz/targets.rs"]
mod targets;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Words that the parsers search for, and words that break them.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "\r",
    "\n",
    "\r\n",
    "\n\n",
    "{}",
    "[]",
    "}}\n",
    "\"}",
    "{\"type\":\"ADDED\",\"object\":{",
    "{\"type\":\"DELETED\",\"object\":",
    "\"type\":",
    "\"object\":",
    "\"ERROR\"",
    "{\"items\":[",
    "\"items\":",
    "\"metadata\":{",
    "\"resourceVersion\":\"7\"",
    "\"continue\":\"t\"",
    "\"name\":\"a\"",
    "\"namespace\":\"n\"",
    "\"managedFields\":[{\"a\":\"}\"}]",
    "\"apiVersion\":\"v1\"",
    "\"kind\":\"Status\"",
    "\"labels\":{\"a\":\"b\"}",
    "\"code\":410",
    "\"reason\":\"Expired\"",
    "\"a\":",
    "\"x\":{\"y\":1}",
    "null",
    "true",
    "1e999",
    "-0.5",
    "\"\\\"\"",
    "\"\\u0041\"",
    "\"\u{e9}\"",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Returns words and bytes in no order.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        9 => proptest::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

fn scalar() -> impl Strategy<Value = String> {
    proptest::sample::select(
        &["1", "null", "\"\"", "\"a\"", "\"7\"", "\"}{\"", "\"\\\\\"", "[{}]", "{\"a\":\"b\"}"][..],
    )
    .prop_map(str::to_owned)
}

/// Returns members of an object with names of ours and others, spaces where JSON allows them.
fn object(names: &'static [&'static str], inner: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let member =
        (proptest::sample::select(names), inner, proptest::sample::select(&["", " ", "\r\n"][..]))
            .prop_map(|(name, value, space)| {
                format!("{space}\"{name}\"{space}:{space}{value}{space}")
            });
    proptest::collection::vec(member, 0..5)
        .prop_map(|members| format!("{{{}}}", members.join(",")))
        .boxed()
}

fn resource() -> BoxedStrategy<String> {
    const META: &[&str] = &[
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "labels",
        "generation",
        "managedFields",
        "deletionTimestamp",
        "finalizers",
        "continue",
        "x",
    ];
    let value = prop_oneof![scalar(), object(META, scalar().boxed())];
    object(&["apiVersion", "kind", "metadata", "metadata", "spec", "code", "reason"], value.boxed())
}

fn watch() -> impl Strategy<Value = Vec<u8>> {
    let event =
        proptest::sample::select(&["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "NEW"][..]);
    let usual = (event, resource(), proptest::sample::select(&["", "", ",\"x\":{}", "x"][..]))
        .prop_map(|(event, object, more)| {
            format!("{{\"type\":\"{event}\",\"object\":{object}{more}}}")
        });
    let other = object(&["type", "object", "x"], prop_oneof![scalar(), resource()].boxed());
    let line = prop_oneof![3 => usual, 1 => other, 1 => Just(String::new())];
    let end = proptest::sample::select(&["\n", "\r\n", "", "\n\n"][..]);
    proptest::collection::vec((line, end), 0..4).prop_map(|lines| {
        lines.into_iter().map(|(line, end)| line + end).collect::<String>().into()
    })
}

fn list() -> impl Strategy<Value = Vec<u8>> {
    let item = prop_oneof![4 => resource(), 1 => scalar()];
    let items =
        proptest::collection::vec(item, 0..3).prop_map(|items| format!("[{}]", items.join(" ,")));
    object(
        &["items", "metadata", "kind"],
        prop_oneof![3 => items, 2 => resource(), 1 => scalar()].boxed(),
    )
    .prop_map(String::into_bytes)
}

/// Runs `target` on `cases` inputs, each after `prefixes` different prefixes; counts executions.
fn run(
    target: fn(&[u8]),
    inputs: impl Strategy<Value = Vec<u8>>,
    cases: u32,
    prefixes: &[Vec<u8>],
) -> u64 {
    // The same cases on every machine; the fuzz targets search for new cases.
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(4),
        ..Config::default()
    };
    let executed = std::cell::Cell::new(0);
    let outcome = TestRunner::new(config).run(&inputs, |input| {
        for prefix in prefixes {
            target(&[prefix, input.as_slice()].concat());
            executed.set(executed.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    executed.get()
}

/// Returns ways to cut a stream: at every length up to 20, and mixtures.
fn cuts() -> Vec<Vec<u8>> {
    let even = (1..=20).map(|length| vec![1, length]);
    let mixed = (0..20).map(|at| vec![3, at, 64 - at, (at * 7) % 31]);
    even.chain(mixed).collect()
}

const FRAMES: u64 = 400_000;
const LISTS: u64 = 320_000;
const OBJECTS: u64 = 200_000;
const STATUSES: u64 = 100_000;

/// A million and more in all; each test below makes and counts a part.
const _: () = assert!(FRAMES + LISTS + OBJECTS + STATUSES >= 1_000_000);

#[test]
fn a4_a13_watch_frames_are_read_as_lines_and_serde_read_them_however_they_are_cut() {
    let cuts = cuts();
    let half = u32::try_from(FRAMES).unwrap() / 2 / u32::try_from(cuts.len()).unwrap();
    let executed =
        run(targets::frames, soup(), half, &cuts) + run(targets::frames, watch(), half, &cuts);
    assert!(executed >= FRAMES, "{executed} executions");
}

#[test]
fn lists_are_split_as_serde_reads_them_however_they_are_cut() {
    let cuts = cuts();
    let half = u32::try_from(LISTS).unwrap() / 2 / u32::try_from(cuts.len()).unwrap();
    let executed =
        run(targets::list, soup(), half, &cuts) + run(targets::list, list(), half, &cuts);
    assert!(executed >= LISTS, "{executed} executions");
}

#[test]
fn metadata_are_scanned_and_objects_cut_as_serde_reads_them() {
    let ends: Vec<_> = (0..100).step_by(5).map(|end| vec![end]).collect();
    let half = u32::try_from(OBJECTS).unwrap() / 2 / u32::try_from(ends.len()).unwrap();
    let objects = resource().prop_map(String::into_bytes);
    let executed =
        run(targets::scan, soup(), half, &ends) + run(targets::scan, objects, half, &ends);
    assert!(executed >= OBJECTS, "{executed} executions");
}

#[test]
fn error_bodies_and_retry_after_become_a_status_whatever_they_hold() {
    let codes: Vec<_> = [0, 200, 404, 409, 410, 429, 500, 503, 999, 65_535_u16]
        .iter()
        .flat_map(|code| {
            let [high, low] = code.to_be_bytes();
            [vec![high, low, 0], vec![high, low, 2, b'1', b'7']]
        })
        .collect();
    let half = u32::try_from(STATUSES).unwrap() / 2 / u32::try_from(codes.len()).unwrap();
    let bodies = resource().prop_map(String::into_bytes);
    let executed =
        run(targets::status, soup(), half, &codes) + run(targets::status, bodies, half, &codes);
    let headers = "[ \t]{0,2}[0-9]{0,22}[-+.a-z ]{0,2}".prop_map(String::into_bytes);
    run(targets::headers, headers, 2000, &[Vec::new()]);
    assert!(executed >= STATUSES, "{executed} executions");
}

#[test]
fn a7_gzip_is_the_same_however_it_is_cut() {
    // Every flag of a header: texts that end at a zero, extra fields of a length, a checksum.
    let header = (0..32_u8).prop_map(|flags| vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 0]);
    // Stored blocks, so that soup comes through; the checksum is mostly wrong.
    let block = soup().prop_map(|text| {
        let length = u16::try_from(text.len()).unwrap_or_default();
        let (low, high) = (length.to_le_bytes(), (!length).to_le_bytes());
        [&[1][..], &low, &high, &text, &[0; 8]].concat()
    });
    let member =
        (header, prop_oneof![block, soup()]).prop_map(|(head, rest)| [head, rest].concat());
    let bodies = proptest::collection::vec(member, 0..3).prop_map(|members| members.concat());
    assert_eq!(run(targets::gzip, bodies, 1000, &cuts()), 1000 * cuts().len() as u64);
}

#[test]
fn a_kubeconfig_of_any_text_is_a_config_or_an_error() {
    const LINES: &[&str] = &[
        "apiVersion: v1",
        "kind: Config",
        "current-context: a",
        "clusters:",
        "users:",
        "contexts:",
        "- name: a",
        "  cluster: {server: \"https://h:1\"}",
        "  context: {cluster: a, user: a}",
        "  user: {token: t}",
        "  user: {exec: {command: x}}",
        "  user: {username: u, password: p}",
        "  cluster: {server: \"\"}",
        "  cluster: {server: \"http://[::1\"}",
        "- &x [*x]",
        "? {",
        "\t",
        "---",
        "  user: {as: \"a\\nb\"}",
        "null",
        "{}",
        "[]",
        "  - -",
        "!!binary x",
    ];
    let lines = proptest::collection::vec(proptest::sample::select(LINES), 0..12);
    let text = lines.prop_map(|lines| lines.join("\n").into_bytes());
    assert_eq!(run(targets::kubeconfig, text, 1000, &[Vec::new()]), 1000);
}

/// Runs the inputs that fuzzing begins with, and those that once failed.
#[test]
fn the_seeds_of_the_fuzz_targets_pass() {
    type Target = fn(&[u8]);
    let all: [(&str, Target); 7] = [
        ("frames", targets::frames),
        ("list", targets::list),
        ("scan", targets::scan),
        ("status", targets::status),
        ("kubeconfig", targets::kubeconfig),
        ("headers", targets::headers),
        ("gzip", targets::gzip),
    ];
    for (name, target) in all {
        let folder = format!("{}/fuzz/seeds/{name}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {folder}: {error}"))
            .map(|entry| entry.expect("an entry of a folder that was just opened").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "no seeds in {folder}");
        for file in files {
            target(&std::fs::read(&file).expect("a file that was just listed"));
        }
    }
}
