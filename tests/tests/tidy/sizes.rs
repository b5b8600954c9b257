//! Sizes: lines of a file, columns of a comment, files of a folder, files with the methods of a
//! type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{FOLDERS, Source, Token, all_sources, read, root, sources};

/// Largest number of lines of a file, tests excluded.
const MOST_LINES: usize = 600;
/// Largest number of columns of a line that is a comment.
const MOST_COLUMNS: usize = 100;
/// Largest number of source files directly in a folder.
const MOST_FILES: usize = 16;
/// Largest number of files with inherent impls of a type.
const MOST_IMPLS: usize = 3;

/// Folders whose files are expectations: sources of compile errors, and printed types.
const EXPECTED: [&str; 2] = ["tests/ui", "tests/tests/import"];

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
    ("InformerCore", "one state under one lock, one file per operation"),
    ("StoreCore", "one state under one lock, one file per operation"),
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

/// Adds the Rust files below a folder, without those of builds and of hidden folders.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry of a folder that was just opened").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

/// Returns the numbers of the lines with a comment that is too long. Rows of tables, a URL at
/// the end and blocks of code cannot be wrapped.
fn long_comments(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = false;
            continue;
        };
        let words = comment.trim_start_matches(['/', '!']);
        is_code ^= words.trim_start().starts_with("```");
        // No line is shorter than a URL at its end.
        let ends_with_url = line.rsplit(' ').next().is_some_and(|word| word.contains("://"));
        let is_kept = is_code || ends_with_url || words.trim_start().starts_with('|');
        if !is_kept && line.chars().count() > MOST_COLUMNS {
            found.push(index + 1);
        }
    }
    found
}

#[test]
fn comments_have_at_most_100_columns() {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    let mut faults = Vec::new();
    for path in files {
        let below = path.strip_prefix(root()).expect("in the workspace");
        if EXPECTED.iter().any(|folder| below.starts_with(folder)) {
            continue;
        }
        let lines = long_comments(&read(&path)).into_iter();
        faults.extend(lines.map(|line| format!("{}:{line}", below.display())));
    }
    assert!(
        faults.is_empty(),
        "wrap these comments (more than {MOST_COLUMNS} columns):\n{}",
        faults.join("\n")
    );
}

#[test]
fn a_comment_may_be_long_in_a_table_a_block_of_code_and_before_a_url() {
    let long = "word ".repeat(25);
    let kept = [format!("// | {long}"), format!("/// {long}https://x")];
    assert!(kept.iter().all(|line| long_comments(line).is_empty()));
    let text = format!(
        "/// ```\n/// {long}\n/// ```\n    /// {long}\nlet x = 1; {long}\n// https://x {long}"
    );
    assert_eq!(long_comments(&text), [4, 6]);
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
