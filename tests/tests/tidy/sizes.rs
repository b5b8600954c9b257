//! Sizes: lines of a file, files of a folder, files with the methods of a type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{FOLDERS, Source, Token, all_sources, sources};

/// Largest number of lines of a file, tests excluded.
const MOST_LINES: usize = 600;
/// Largest number of source files directly in a folder.
const MOST_FILES: usize = 16;
/// Largest number of files with inherent impls of a type.
const MOST_IMPLS: usize = 3;

/// Types whose methods stand in more files, with the reason.
const SCATTERED: &[(&str, &str)] = &[
    (
        "Api",
        "each group of verbs stands with its requests and answers; exec and forward are a feature",
    ),
    ("Call", "one file per step of a call: throttle, attempt, upgrade, report"),
    ("Client", "modules above it add their entry points, and a feature the upgrade"),
    ("Context", "the calls of a reconcile, one file per purpose: children, status, expectations"),
    ("ControllerBuilder", "settings, one file per topic, as the book presents them"),
    ("Core", "of the store and of the informer: one state under one lock, one file per operation"),
    (
        "Lower",
        "one file per group of keywords; all share the position and the faults of a translation",
    ),
    ("Reflector", "one file per step of the protocol: list, watch, roll back, absence"),
];

#[test]
fn no_source_file_is_too_long() {
    let files = FOLDERS.into_iter().flat_map(sources);
    let long: Vec<String> = files
        .filter(|file| file.lines > MOST_LINES)
        .map(|file| format!("{}: {} lines", file.path.display(), file.lines))
        .collect();
    assert!(
        long.is_empty(),
        "split by concept (more than {MOST_LINES} lines):\n{}",
        long.join("\n")
    );
}

#[test]
fn no_folder_holds_more_than_16_source_files() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in FOLDERS.into_iter().flat_map(all_sources) {
        let folder = file.path.parent().unwrap_or(Path::new(""));
        *counts.entry(folder.display().to_string()).or_default() += 1;
    }
    let full: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > MOST_FILES)
        .map(|(folder, count)| format!("{folder}: {count} files"))
        .collect();
    assert!(
        full.is_empty(),
        "group by concept (more than {MOST_FILES} files in a folder):\n{}",
        full.join("\n")
    );
}

/// Returns the names of the types that a file defines.
fn definitions(file: &Source) -> Vec<&str> {
    let tokens = file.tokens.windows(2);
    tokens
        .filter(|pair| ["struct", "enum", "union"].contains(&pair[0].text.as_str()))
        .map(|pair| pair[1].text.as_str())
        .collect()
}

/// Returns the names of the types to which a file adds methods of their own.
fn inherent_impls(file: &Source) -> BTreeSet<&str> {
    let starts = file.tokens.iter().enumerate().filter(|(at, token)| {
        // Not `-> impl Trait`: an item begins behind a block, a semicolon or an attribute.
        let before = at.checked_sub(1).map_or("}", |before| file.tokens[before].text.as_str());
        token.text == "impl" && ["}", ";", "]", "{", "unsafe"].contains(&before)
    });
    starts.filter_map(|(at, _)| subject(&file.tokens[at + 1..])).collect()
}

/// Returns the type of an impl from the tokens behind `impl`; `None` for the impl of a trait.
fn subject(tokens: &[Token]) -> Option<&str> {
    let mut depth = 0_usize;
    let mut name = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "<" => depth += 1,
            // Not the end of generics: the arrow of a function's type.
            ">" if at > 0 && tokens[at - 1].text == "-" => {}
            ">" => depth = depth.saturating_sub(1),
            "for" if depth == 0 => return None,
            "{" | "where" if depth == 0 => return name,
            word if depth == 0 && word.starts_with(char::is_alphabetic) => name = Some(word),
            _ => {}
        }
    }
    None
}

/// Returns the length of the path that two modules have in common.
fn shared(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Returns the files with inherent impls, by package, type and the file that defines the type.
fn impl_files(files: &[&'static Source]) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut homes: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for file in files {
        for name in definitions(file) {
            homes.entry(name).or_default().push(file);
        }
    }
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for file in files {
        for name in inherent_impls(file) {
            // Several modules may have a type of the same name: the nearest type is meant.
            let of_name = homes.get(name).into_iter().flatten();
            let same = of_name.filter(|home| home.package == file.package);
            let home = same
                .max_by_key(|home| (home.path == file.path, shared(&home.module, &file.module)));
            let Some(home) = home else { continue };
            let key = (name.to_owned(), home.path.display().to_string());
            found.entry(key).or_default().insert(file.path.display().to_string());
        }
    }
    found
}

#[test]
fn the_methods_of_a_type_stand_in_at_most_3_files() {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        for ((name, home), files) in impl_files(&sources(folder).collect::<Vec<_>>()) {
            if files.len() > MOST_IMPLS && !SCATTERED.iter().any(|(allowed, _)| *allowed == name) {
                let list: Vec<String> = files.into_iter().collect();
                faults.push(format!("{name} ({home}): {} files: {}", list.len(), list.join(" ")));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a reader finds the methods of a type in at most {MOST_IMPLS} files; gather them, or name \
         the type in SCATTERED with the reason:\n{}",
        faults.join("\n")
    );
}
