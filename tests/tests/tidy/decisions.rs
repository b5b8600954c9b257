//! `DESIGN.md`: the form of the entries, and the references from the code that they explain.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{FOLDERS, all_sources, read, root};

/// Parts of an entry.
const PARTS: [&str; 4] = ["Context", "Decision", "Consequences", "Rejected"];

/// Longest entry, in lines with text below the title.
const LINES: usize = 12;

/// Entries about files that are no Rust: the module of the real server, the commands of the first
/// pages, the harnesses of compile errors, of mutants and of random sequences, images, profiles,
/// clients in other languages.
const ELSEWHERE: [u32; 10] = [7, 88, 94, 107, 120, 152, 154, 184, 227, 236];

/// Returns the entries by number: the title and the lines with text.
fn entries() -> BTreeMap<u32, (String, Vec<String>)> {
    let text = read(&root().join("DESIGN.md"));
    let mut entries = BTreeMap::new();
    for entry in text.split("\n## ").skip(1) {
        let (head, body) = entry.split_once('\n').expect("an entry has lines below its title");
        let (number, title) = head.split_once(". ").expect("a title begins with its number");
        let number = number.parse().expect("a title begins with its number");
        let lines = body.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let former = entries.insert(number, (title.to_owned(), lines));
        assert!(former.is_none(), "entry {number} stands in DESIGN.md twice");
    }
    entries
}

#[test]
fn entries_of_design_have_four_parts_and_at_most_twelve_lines() {
    let entries = entries();
    assert!(entries.len() > 100, "DESIGN.md has {} entries", entries.len());
    let mut faults = Vec::new();
    for (number, (title, lines)) in &entries {
        let missing = PARTS
            .iter()
            .filter(|part| !lines.iter().any(|line| line.starts_with(&format!("- **{part}.**"))));
        faults.extend(missing.map(|part| format!("{number}. {title}: {part} is missing")));
        if lines.len() > LINES {
            faults.push(format!("{number}. {title}: {} lines", lines.len()));
        }
    }
    assert!(
        faults.is_empty(),
        "an entry of DESIGN.md has Context, Decision, Consequences and Rejected in {LINES} lines; \
         measurements stand in BENCHMARKS.md:\n{}",
        faults.join("\n")
    );
}

#[test]
fn code_refers_to_the_decisions_that_explain_it() {
    let entries = entries();
    let (mut referred, mut faults) = (BTreeSet::new(), Vec::new());
    for folder in FOLDERS {
        for file in all_sources(folder) {
            for comment in &file.comments {
                let Some((_, rest)) = comment.text.split_once("DESIGN.md, ") else { continue };
                let (digits, title) =
                    rest.split_once(|letter: char| !letter.is_ascii_digit()).unwrap_or((rest, ""));
                // The rule's own examples are no references.
                let Ok(number) = digits.parse::<u32>() else { continue };
                referred.insert(number);
                match entries.get(&number) {
                    None => faults.push(format!("{}: no entry {number}", file.at(comment.line))),
                    // A title may be cut at the end of the line.
                    Some((full, _)) if !full.starts_with(title.trim_start()) => {
                        faults
                            .push(format!("{}: entry {number} is {full:?}", file.at(comment.line)));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    let silent = entries.keys().filter(|number| !referred.contains(number));
    faults.extend(
        silent
            .filter(|number| !ELSEWHERE.contains(number))
            .map(|number| format!("no file refers to entry {number}, {}", entries[number].0)),
    );
    assert!(
        faults.is_empty(),
        "a file whose code an entry of DESIGN.md explains names it below its head, as in \
         `// DESIGN.md, 17: The caller decides …`:\n{}",
        faults.join("\n")
    );
}
