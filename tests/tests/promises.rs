//! The book's tables of faults and guarantees of the cache are true: every one has tests, and every
//! test that a row names exists and is named after it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "book/src/reference/faults.md";
/// Where tests are looked for.
const FOLDERS: [&str; 3] = ["framework/src", "tests/tests", "tests/src"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Faults and guarantees of the cache, and faults of controllers and processes.
fn owed() -> Vec<String> {
    let faults = (1..=15).map(|number| format!("B{number}"));
    let guarantees = (1..=9).map(|number| format!("G-C{number}"));
    let processes = (1..=8).map(|number| format!("D{number}"));
    ["A12", "A13", "A15", "C1", "C3", "C7"]
        .map(str::to_owned)
        .into_iter()
        .chain(faults)
        .chain(guarantees)
        .chain(processes)
        .collect()
}

/// The tests in the tables, as `file: name`, by id.
fn rows() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root().join(PAGE)).expect("the book is there");
    let tables = page.split_once("## Tests of the cache's faults").expect("the tables are there").1;
    let mut rows = BTreeMap::new();
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
    rows
}

/// All functions of tests that are named after a fault or guarantee of the cache, by its id.
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

/// The ids at the beginning of a test's name.
fn ids(name: &str) -> Vec<String> {
    if name.starts_with("g_c1_to_g_c9_") {
        return (1..=9).map(|number| format!("G-C{number}")).collect();
    }
    let mut ids = Vec::new();
    let mut words = name.split('_').peekable();
    while let Some(word) = words.next() {
        let id = match word {
            "g" => format!("G-{}", words.next().unwrap_or_default().to_uppercase()),
            word => word.to_uppercase(),
        };
        let number = id.trim_start_matches("G-").get(1..).unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        ids.push(id);
    }
    ids
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
fn every_fault_and_guarantee_of_the_cache_has_tests_in_the_book() {
    let rows = rows();
    let missing: Vec<_> =
        owed().into_iter().filter(|id| rows.get(id).is_none_or(BTreeSet::is_empty)).collect();
    assert!(missing.is_empty(), "{PAGE} names no test for {missing:?}");
}

#[test]
fn every_test_that_the_book_names_for_them_is_there() {
    let (rows, named) = (rows(), named());
    for id in owed() {
        let empty = BTreeSet::new();
        let (told, there) = (rows.get(&id).unwrap_or(&empty), named.get(&id).unwrap_or(&empty));
        let gone: Vec<_> = told.difference(there).collect();
        assert!(gone.is_empty(), "{PAGE} names tests of {id} that are not there: {gone:?}");
    }
}
