//! Truth of the book's tables of mechanisms: every mechanism that is owed has a row, and every test
//! that a row names exists.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Pages with a table of mechanisms; the first cell of a row is the number, and the last cell has
/// the tests: a file in backticks, then the names of tests in that file.
const PAGES: [&str; 1] = ["book/src/coming-from/client-go.md"];

/// The mechanisms that must have a row. Grows until the list has all 71.
const OWED: [RangeInclusive<u32>; 2] = [1..=46, 48..=71];

/// The overview, whose last column gives the extent to which a mechanism is there.
const OVERVIEW: &str = "book/src/reference/mechanisms.md";

#[test]
fn every_mechanism_that_is_owed_has_a_row_with_a_test() {
    let rows = rows();
    let missing: Vec<u32> = OWED
        .into_iter()
        .flatten()
        .filter(|id| rows.get(id).is_none_or(|tests| tests.is_empty()))
        .collect();
    assert!(missing.is_empty(), "no row, or a row without a test, for the mechanisms {missing:?}");
}

#[test]
fn every_test_that_a_row_names_exists_and_runs() {
    let mut faults = Vec::new();
    for (id, tests) in rows() {
        for Test { file, name } in tests {
            let Ok(source) = fs::read_to_string(root().join(&file)) else {
                faults.push(format!("mechanism {id}: there is no file {file}"));
                continue;
            };
            if let Err(fault) = has_test(&source, &name) {
                faults.push(format!("mechanism {id}: {file}: {fault}"));
            }
        }
    }
    assert!(faults.is_empty(), "the table names what is not there:\n{}", faults.join("\n"));
}

#[test]
fn a_mechanism_that_a_test_is_named_after_has_a_row() {
    let rows = rows();
    let mut faults = Vec::new();
    for file in sources(&root().join("framework")) {
        let source = fs::read_to_string(&file).expect("a file that was just listed");
        for line in source.lines() {
            let Some(name) = function(line).filter(|name| name.starts_with("mechanism_")) else {
                continue;
            };
            let id = name.split('_').nth(1).and_then(|id| id.parse().ok()).unwrap_or_default();
            if !rows.contains_key(&id) {
                faults.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "no row for the mechanism of these tests:\n{}", faults.join("\n"));
}

#[test]
fn the_overview_calls_no_mechanism_absent_that_has_a_test() {
    let overview = cells(OVERVIEW);
    let rows = rows();
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), (1..=71).collect::<Vec<_>>());
    for (id, _) in rows.into_iter().filter(|(_, tests)| !tests.is_empty()) {
        let row = overview.iter().find(|(other, _)| *other == id);
        let (_, cells) = row.unwrap_or_else(|| panic!("{OVERVIEW} has no row {id}"));
        assert_ne!(cells.last().map(String::as_str), Some("later"), "mechanism {id}");
    }
}

#[test]
fn a_function_is_a_test_only_with_the_attribute_and_without_ignore() {
    let source = "#[test]\nfn plain() {}\n\n/// Words.\n#[tokio::test(start_paused = true)]\n\
                  #[cfg(unix)]\nasync fn waits() {}\n\nfn helper() {}\n\n#[ignore]\n#[test]\nfn off() {}\n";
    assert_eq!(has_test(source, "plain"), Ok(()));
    assert_eq!(has_test(source, "waits"), Ok(()));
    for name in ["helper", "off", "absent", "pla"] {
        assert!(has_test(source, name).is_err(), "{name}");
    }
}

/// A test that a row names.
#[derive(Debug)]
struct Test {
    file: String,
    name: String,
}

/// Returns the tests of each mechanism, over all pages.
fn rows() -> BTreeMap<u32, Vec<Test>> {
    let mut rows: BTreeMap<u32, Vec<Test>> = BTreeMap::new();
    for page in PAGES {
        for (id, cells) in cells(page) {
            let last = cells.last().map(String::as_str).unwrap_or_default();
            rows.entry(id).or_default().extend(tests(last, id));
        }
    }
    rows
}

/// Returns the cells of each table row of `page` that begins with a number.
fn cells(page: &str) -> Vec<(u32, Vec<String>)> {
    let text = fs::read_to_string(root().join(page))
        .unwrap_or_else(|error| panic!("cannot read {page}: {error}"));
    let row = |line: &str| {
        let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<String> = inside.split('|').map(|cell| cell.trim().to_owned()).collect();
        Some((cells.first()?.parse().ok()?, cells))
    };
    text.lines().filter_map(row).collect()
}

/// Parses the words in backticks: a file, then names in that file.
fn tests(cell: &str, id: u32) -> Vec<Test> {
    let mut file = None;
    let mut tests = Vec::new();
    for word in cell.split('`').skip(1).step_by(2) {
        if word.ends_with(".rs") {
            file = Some(word.to_owned());
        } else {
            let file = file.clone();
            let file = file.unwrap_or_else(|| panic!("mechanism {id}: `{word}` has no file"));
            tests.push(Test { file, name: word.to_owned() });
        }
    }
    tests
}

/// Checks that there is a function `name` with a test attribute, and that the test runs.
fn has_test(source: &str, name: &str) -> Result<(), String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| function(line) == Some(name));
    let at = at.ok_or_else(|| format!("there is no function {name}"))?;
    let above = lines[..at].iter().rev();
    let above: Vec<_> =
        above.take_while(|line| line.starts_with("#[") || line.starts_with("//")).collect();
    if above.iter().any(|line| line.starts_with("#[ignore")) {
        return Err(format!("{name} is ignored"));
    }
    if !above.iter().any(|line| **line == "#[test]" || line.starts_with("#[tokio::test")) {
        return Err(format!("{name} is no test"));
    }
    Ok(())
}

/// Returns the name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    Some(&rest[..rest.find('(')?])
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).expect("a folder of the workspace");
    for entry in entries {
        let path = entry.expect("an entry of a folder that was just opened").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests crate lies in the workspace").to_owned()
}
