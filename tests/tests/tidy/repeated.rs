//! Names of types that several types have.

use std::collections::BTreeMap;

use crate::source::{Source, read, root, sources};

/// Folders whose types are counted; tests are not.
const COUNTED: [&str; 3] = ["framework", "macros", "apiserver"];
/// Definitions of a name from which the list has the name.
const REPEATED: usize = 3;
const LIST: &str = "tests/repeated-names.txt";

/// Returns the names of the types and traits that a file defines. Aliases are left out: those of
/// implementations have the names of their trait.
fn definitions(file: &Source) -> impl Iterator<Item = &str> {
    let kinds = ["struct", "enum", "union", "trait"];
    let pairs = file.tokens.windows(2).filter(move |pair| {
        kinds.contains(&pair[0].text.as_str()) && pair[1].text.starts_with(char::is_uppercase)
    });
    pairs.map(|pair| pair[1].text.as_str())
}

/// Returns the entries of the list: names with their numbers of definitions.
fn listed(list: &str) -> BTreeMap<&str, usize> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, count) = line.split_once(' ').expect("`Name 3` in a line of the list");
            (name, count.parse().expect("a number behind the name"))
        })
        .collect()
}

/// Returns the differences between the definitions and the list.
fn faults(found: &BTreeMap<&str, usize>, listed: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, count) in found.iter().filter(|(_, count)| **count >= REPEATED) {
        match listed.get(name) {
            Some(known) if count > known => faults.push(format!(
                "`{name}` has {count} definitions, {known} in the list: give the new type a name that \
                 says what it holds, such as `ScriptedResponse` instead of `Answer`"
            )),
            Some(_) => {}
            None => faults.push(format!(
                "`{name}` has {count} definitions: give the new type a name that says what it holds, \
                 such as `ScriptedResponse` instead of `Answer`"
            )),
        }
    }
    for (name, known) in listed {
        match found.get(name).copied().unwrap_or_default() {
            count if count < REPEATED => {
                faults.push(format!("`{name}` has {count} definitions: remove its line"));
            }
            count if count < *known => {
                faults.push(format!("`{name}` has {count} definitions: write this number"));
            }
            _ => {}
        }
    }
    faults
}

#[test]
fn a_name_of_a_type_has_one_meaning_and_the_list_of_exceptions_only_shrinks() {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for name in COUNTED.into_iter().flat_map(sources).flat_map(definitions) {
        *found.entry(name).or_default() += 1;
    }
    let list = read(&root().join(LIST));
    let faults = faults(&found, &listed(&list));
    assert!(faults.is_empty(), "{LIST}:\n{}", faults.join("\n"));
}

#[test]
fn a_further_definition_and_an_outdated_line_are_reported() {
    let found = BTreeMap::from([("Fewer", 3), ("Fine", 4), ("Gone", 2), ("More", 5), ("New", 3)]);
    let listed = listed("# names\n\nFewer 4\nFine 4\nGone 3\nMore 4\n");
    let names = faults(&found, &listed).join("\n");
    let reported: Vec<&str> = names.lines().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(reported, ["More", "New", "Fewer", "Gone"]);
    let file = Source::new(
        std::path::Path::new("framework/src/a.rs"),
        "pub struct A; trait B {} impl B for A { type C = u8; } // struct D\n#[cfg(test)]\nstruct E;",
    );
    assert_eq!(definitions(&file).collect::<Vec<_>>(), ["A", "B"]);
}
