//! Paths and file names in the tables of `ARCHITECTURE.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::source::{read, root};

/// Folders whose files the page may name.
const NAMED: [&str; 7] =
    ["framework", "macros", "apiserver", "examples", "templates", "tests", "book"];

/// Files of the module `webhook`.
const WEBHOOK: &str = "framework/webhook/src/";

/// Adds all files and folders below a folder, as paths from the root.
fn collect(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let entry = entry.expect("an entry of the folder");
        let name = entry.file_name();
        if entry.file_type().expect("a type").is_dir() {
            if name == "target" || name.to_string_lossy().starts_with('.') {
                continue;
            }
            collect(&entry.path(), found);
        }
        let path = entry.path();
        let path = path.strip_prefix(root()).expect("a path below the root");
        found.insert(path.to_str().expect("a path in UTF-8").to_owned());
    }
}

/// Returns the words of a line that stand in backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a word is a path: it has a slash or ends as a source file does.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    let has_file = word.len() > 3 && word.ends_with(".rs");
    word.chars().all(plain) && (has_file || word.contains('/'))
}

/// Returns the folders that the words of a row name, and those of the files that they name.
fn folders<'a>(row: &'a str, paths: &'a BTreeSet<String>) -> BTreeSet<&'a str> {
    let mut folders = BTreeSet::new();
    for word in quoted(row).map(|word| word.trim_end_matches('/')) {
        let below = format!("/{word}");
        let source = format!("/{word}.rs");
        for path in paths {
            if path == word || path.ends_with(&below) {
                let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
                folders.insert(if path.ends_with(".rs") { parent } else { path.as_str() });
            } else if path.ends_with(&source) {
                folders.extend(path.rsplit_once('/').map(|(parent, _)| parent));
            }
        }
    }
    folders
}

/// Returns the paths of a row that lead to no file, and the file names that none of the row's
/// folders has.
fn missing<'a>(row: &'a str, paths: &BTreeSet<String>) -> Vec<&'a str> {
    // A bare file name must not make its own folder a folder of the row.
    let others: Vec<&str> =
        quoted(row).filter(|word| word.contains('/') || !word.ends_with(".rs")).collect();
    let others = format!("`{}`", others.join("` `"));
    let folders = folders(&others, paths);
    let exists = |word: &str| {
        let bare = word.trim_end_matches('/');
        if word.contains('/') || folders.is_empty() {
            let endings = [format!("/{bare}"), format!("/{bare}.rs")];
            return paths.contains(bare)
                || paths.iter().any(|path| endings.iter().any(|end| path.ends_with(end)));
        }
        folders.iter().any(|folder| paths.contains(&format!("{folder}/{word}")))
    };
    quoted(row).filter(|word| is_path(word) && !exists(word)).collect()
}

#[test]
fn the_files_that_the_page_names_exist_in_the_folders_of_their_row() {
    let mut paths = BTreeSet::new();
    for folder in NAMED {
        paths.insert(folder.to_owned());
        collect(&root().join(folder), &mut paths);
    }
    // The module `webhook` is a whole crate: its files have no folder of that name below `src`.
    let below = |path: &String| Some(format!("webhook/{}", path.strip_prefix(WEBHOOK)?));
    let of_webhook: Vec<String> = paths.iter().filter_map(below).collect();
    paths.insert("webhook".to_owned());
    paths.extend(of_webhook);
    let page = read(&root().join("ARCHITECTURE.md"));
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let faults: Vec<String> = rows
        .flat_map(|(at, row)| missing(row, &paths).into_iter().map(move |word| (at + 1, word)))
        .map(|(line, word)| format!("ARCHITECTURE.md:{line}: `{word}`"))
        .collect();
    assert!(
        faults.is_empty(),
        "no such file; a bare name stands for a file in a folder that the same row names:\n{}",
        faults.join("\n")
    );
}

#[test]
fn a_bare_name_that_only_another_folder_has_is_reported() {
    let paths = ["a", "a/src", "a/src/store", "a/src/store/kept.rs", "b", "b/mode.rs", "b/wire.rs"];
    let paths: BTreeSet<String> = paths.into_iter().map(str::to_owned).collect();
    let reported = |row| missing(row, &paths);
    assert_eq!(reported("| fields | `store` (`kept.rs`, `mode.rs`) |"), ["mode.rs"]);
    assert_eq!(reported("| fields | `store/kept.rs`, `kept.rs` |"), Vec::<&str>::new());
    assert_eq!(reported("| fields | `store/kept`, `store/gone`, `Type::gone` |"), ["store/gone"]);
    assert_eq!(reported("| wire | `b/wire.rs`, `mode.rs` |"), Vec::<&str>::new());
}
