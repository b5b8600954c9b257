//! Truth of the book's tables of faults and guarantees: every row has tests, and every test that a
//! row names exists and is named after the row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

/// Pages with such tables, and the heading that the first table follows.
const PAGES: [(&str, &str); 2] = [
    ("book/src/reference/faults.md", "## Tests of the client's faults"),
    ("book/src/reference/promises.md", "## Tests"),
];
/// Folders that are searched for tests.
const FOLDERS: [&str; 3] = ["framework", "tests/tests", "tests/src"];

/// Everything except the guarantee of webhooks, which is later.
const OWED: [(&str, u32); 11] = [
    ("A", 15),
    ("B", 15),
    ("C", 8),
    ("D", 8),
    ("W", 5),
    ("G-C", 9),
    ("Q", 9),
    ("K", 6),
    ("L", 9),
    ("S", 2),
    ("R", 5),
];
/// A11 (an API server that lags) is B7.
const ANOTHER: &str = "A11";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the ids that must have tests.
fn owed() -> Vec<String> {
    let of = |(kind, count): &(&str, u32)| -> Vec<String> {
        (1..=*count).map(|number| format!("{kind}{number}")).collect()
    };
    OWED.iter().flat_map(of).filter(|id| id != ANOTHER).collect()
}

/// Returns the tests in the tables, as `file: name`, by id.
fn rows() -> BTreeMap<String, BTreeSet<String>> {
    let mut rows = BTreeMap::new();
    for (page, heading) in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("the book is there");
        let tables = text.split_once(heading).expect("the tables are there").1;
        for line in tables.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let mut tests = BTreeSet::new();
            for group in cells[1].split(';').filter(|group| group.contains('`')) {
                let mut words = group.split('`').skip(1).step_by(2);
                let file = words.next().expect("a group begins with its file");
                tests.extend(words.map(|name| format!("{file}: {name}")));
            }
            rows.insert(cells[0].to_owned(), tests);
        }
    }
    rows
}

/// Returns all functions that are named after a fault or a guarantee, by id.
fn named() -> BTreeMap<String, BTreeSet<String>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let owed: BTreeSet<String> = owed().into_iter().collect();
    for folder in FOLDERS {
        walk(&root().join(folder), &mut |path, text| {
            let file = path.strip_prefix(root()).expect("it lies below").display().to_string();
            for line in text.lines() {
                let Some((_, rest)) = line.split_once("fn ") else { continue };
                let name = rest.split('(').next().unwrap_or_default();
                for id in ids(name).iter().filter(|id| owed.contains(*id)) {
                    named.entry(id.clone()).or_default().insert(format!("{file}: {name}"));
                }
            }
        });
    }
    named
}

/// Returns the ids at the beginning of a test's name: `c4_…`, `k1_k2_…`, `g_q1_to_g_q6_…`.
fn ids(name: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut words = name.split('_').peekable();
    while let Some((kind, first)) = id(&mut words) {
        let mut last = first;
        if words.next_if_eq(&"to").is_some() {
            last = id(&mut words).map_or(first, |(_, last)| last);
        }
        ids.extend((first..=last).map(|number| format!("{kind}{number}")));
    }
    ids
}

/// Parses an id: kind and number. Only a guarantee of the cache needs the `g` to differ from a
/// fault.
fn id<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> Option<(String, u32)> {
    let is_guarantee = words.next_if_eq(&"g").is_some();
    let mut letters = words.next()?.chars();
    let letter = letters.next()?.to_ascii_uppercase();
    let number = letters.as_str().parse().ok()?;
    let prefix = if is_guarantee && letter == 'C' { "G-" } else { "" };
    Some((format!("{prefix}{letter}"), number))
}

fn walk(folder: &Path, see: &mut dyn FnMut(&Path, &str)) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("a folder of the project")
        .map(|entry| entry.expect("an entry of a folder that was just opened").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, see);
        } else if path.extension().is_some_and(|end| end == "rs") {
            see(&path, &fs::read_to_string(&path).expect("a file that was just listed"));
        }
    }
}

#[test]
fn every_fault_and_guarantee_has_tests_in_the_book() {
    let rows = rows();
    let missing: Vec<_> =
        owed().into_iter().filter(|id| rows.get(id).is_none_or(BTreeSet::is_empty)).collect();
    assert!(missing.is_empty(), "the book names no test for {missing:?}");
}

#[test]
fn every_test_that_the_book_names_for_them_is_there() {
    let (rows, named) = (rows(), named());
    for id in owed() {
        let empty = BTreeSet::new();
        let (listed, there) = (rows.get(&id).unwrap_or(&empty), named.get(&id).unwrap_or(&empty));
        let gone: Vec<_> = listed.difference(there).collect();
        assert!(gone.is_empty(), "the book names tests of {id} that are not there: {gone:?}");
    }
}

#[test]
fn an_id_is_read_off_the_beginning_of_a_name() {
    for (name, expected) in [
        ("c4_a_loop", vec!["C4"]),
        ("g_c4_g_c6_whatever_is_merged", vec!["G-C4", "G-C6"]),
        ("g_q1_to_g_q3_and_more", vec!["Q1", "Q2", "Q3"]),
        ("l8_s1_the_lease", vec!["L8", "S1"]),
        ("mechanism_67_each_key", vec![]),
        ("a_leader_stops", vec![]),
    ] {
        assert_eq!(ids(name), expected, "{name}");
    }
}
