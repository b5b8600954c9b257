//! Rules that the compiler does not check: layers, sizes, calls that must not occur.

use std::fs;
use std::path::{Path, PathBuf};

/// Layer of each module of `framework/src`; a module may import from its own layer and from below.
const LAYERS: &[(&str, u8)] = &[
    ("clock", 0),
    ("rng", 0),
    ("error", 0),
    ("metrics", 0),
    ("panics", 0),
    ("environment", 0),
    ("sync", 0),
    ("resource", 1),
    ("wire", 1),
    ("crd", 1),
    ("rbac", 1),
    ("workqueue", 1),
    ("client", 2),
    ("api", 2),
    ("discovery", 2),
    ("delta", 3),
    ("store", 3),
    ("reflector", 4),
    ("informer", 5),
    ("conditions", 6),
    ("events", 6),
    ("finalizer", 6),
    ("owner", 6),
    ("controller", 6),
    ("leader", 7),
    ("manager", 8),
    ("embedded", 9),
    ("cli", 9),
    ("embedded", 9),
    ("local", 9),
    ("testing", 9),
    ("__private", 9),
    ("prelude", 9),
];

/// Modules of one layer, of which the first does not name the second.
const APART: &[(&str, &str)] =
    &[("client", "api"), ("client", "discovery"), ("discovery", "api"), ("api", "discovery")];

/// Layer of each folder or file in `framework/src/client`; one names only those of lower layers.
/// `Client` itself stands in `mod.rs`, and all may name it.
const CLIENT_LAYERS: &[(&str, u8)] = &[
    ("secret", 0),
    ("policy", 0),
    ("transport", 1),
    ("request", 2),
    ("auth", 2),
    ("config", 3),
    ("call", 3),
    ("builder", 4),
];

/// Largest number of lines of a source file, tests excluded.
const MOST_LINES: usize = 800;

#[test]
fn modules_import_only_from_their_own_layer_and_below() {
    let mut faults = Vec::new();
    for file in sources("framework/src") {
        let Some(own) = module_of(&file, "framework/src") else { continue };
        let layer = layer_of(&own);
        for (line, text) in code_lines(&file) {
            for target in imports(&text) {
                let Some(below) =
                    LAYERS.iter().find(|(name, _)| *name == target).map(|(_, layer)| *layer)
                else {
                    continue;
                };
                if below > layer {
                    faults.push(format!(
                        "{}:{line}: `{own}` (layer {layer}) imports `{target}` (layer {below})",
                        file.display()
                    ));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a module may not import from above its layer:\n{}",
        faults.join("\n")
    );
}

#[test]
fn client_api_and_discovery_form_no_circle() {
    let mut faults = Vec::new();
    for file in sources("framework/src") {
        let Some(own) = module_of(&file, "framework/src") else { continue };
        for (line, text) in code_lines(&file) {
            for target in imports(&text) {
                if APART.contains(&(own.as_str(), target.as_str())) {
                    faults.push(format!("{}:{line}: `{own}` names `{target}`", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "api and discovery stand on client:\n{}", faults.join("\n"));
}

#[test]
fn folders_of_the_client_import_only_from_below() {
    let layer = |name: &str| {
        CLIENT_LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
    };
    let mut faults = Vec::new();
    for file in sources("framework/src/client") {
        let Some(own) = module_of(&file, "framework/src/client") else { continue };
        let Some(top) = layer(&own) else { continue };
        for (line, text) in code_lines(&file) {
            for target in names_after("crate::client::", &text) {
                if target != own && layer(&target).is_some_and(|below| below >= top) {
                    faults.push(format!("{}:{line}: `{own}` names `{target}`", file.display()));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a folder of the client names only those below it:\n{}",
        faults.join("\n")
    );
}

#[test]
fn store_and_delta_know_no_runtime_and_no_sockets() {
    let mut faults = Vec::new();
    for file in sources("framework/src") {
        let Some(own) = module_of(&file, "framework/src") else { continue };
        if !matches!(own.as_str(), "store" | "delta" | "wire" | "resource") {
            continue;
        }
        // Code that synchronizes tasks may wait for them, and for nothing else.
        let is_meeting_place = ["delta/batches.rs", "delta/apply_queue.rs", "delta/shared.rs"]
            .iter()
            .any(|meeting_place| file.ends_with(meeting_place));
        let waits = [".await", "async fn"];
        for (line, text) in code_lines(&file) {
            if ["tokio::spawn", "tokio::net", "tokio::time::sleep"]
                .iter()
                .any(|word| text.contains(word))
                || !is_meeting_place && waits.iter().any(|word| text.contains(word))
            {
                faults.push(format!("{}:{line}: {}", file.display(), text.trim()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "pure modules do no I/O, and wait only where tasks meet:\n{}",
        faults.join("\n")
    );
}

#[test]
fn nothing_above_the_client_names_its_transport() {
    let mut faults = Vec::new();
    for file in sources("framework/src") {
        let Some(own) = module_of(&file, "framework/src") else { continue };
        // The manager's health endpoint is a server of its own.
        if matches!(own.as_str(), "client" | "manager" | "testing") {
            continue;
        }
        for (line, text) in code_lines(&file) {
            if ["hyper::", "tower::", "rustls::"].iter().any(|word| text.contains(word)) {
                faults.push(format!("{}:{line}: {}", file.display(), text.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "only `client` speaks HTTP and TLS:\n{}", faults.join("\n"));
}

#[test]
fn the_api_server_imports_nothing_of_the_framework() {
    let faults: Vec<_> = sources("apiserver/src")
        .iter()
        .flat_map(|file| code_lines(file).into_iter().map(move |line| (file.clone(), line)))
        .filter(|(_, (_, text))| text.contains("windlass::") || text.contains("k8s_openapi"))
        .map(|(file, (line, _))| format!("{}:{line}", file.display()))
        .collect();
    assert!(
        faults.is_empty(),
        "client and server are two independent readings of the API:\n{}",
        faults.join("\n")
    );
}

#[test]
fn no_source_file_is_too_long() {
    let mut faults = Vec::new();
    for folder in ["framework/src", "macros/src", "apiserver/src", "examples/src"] {
        for file in sources(folder) {
            let lines = code_lines(&file).len();
            if lines > MOST_LINES {
                faults.push(format!("{}: {lines} lines", file.display()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "split by concept (more than {MOST_LINES} lines):\n{}",
        faults.join("\n")
    );
}

#[test]
fn every_select_is_biased() {
    let mut faults = Vec::new();
    for folder in ["framework/src", "apiserver/src", "tests/src", "examples/src"] {
        for file in sources(folder) {
            let text = read(&file);
            for (at, _) in text.match_indices("select! {") {
                if !text[at + "select! {".len()..].trim_start().starts_with("biased;") {
                    faults.push(format!("{}:{}", file.display(), text[..at].lines().count()));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "a `select!` without `biased` draws from a random source that no seed reaches:\n{}",
        faults.join("\n")
    );
}

#[test]
fn nothing_reads_the_time_or_grows_without_bound_behind_our_back() {
    let forbidden = [
        "unbounded_channel",
        "thread::sleep",
        "SystemTime::now",
        "std::time::Instant",
        "todo!(",
        "unimplemented!(",
    ];
    let mut faults = Vec::new();
    // The macros write `unimplemented!` into impls that accompany a compile error, never into a
    // program.
    for folder in ["framework/src", "apiserver/src", "examples/src"] {
        for file in sources(folder) {
            for (line, text) in code_lines(&file) {
                if let Some(word) = forbidden.iter().find(|word| text.contains(**word)) {
                    faults.push(format!("{}:{line}: {word}", file.display()));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "time goes through Clock, queues have bounds, nothing is a stub:\n{}",
        faults.join("\n")
    );
}

/// Chapters of the book in which a sentence has a noun as its subject, not "what", "who" or "it is
/// told".
const PLAIN_CHAPTERS: [&str; 7] = [
    "first-operator",
    "controllers/around-one-reconcile",
    "controllers/finalizers",
    "running/leader-election",
    "running/production",
    "internals",
    "coming-from/client-go",
];
/// Words that hide the subject of a sentence, and the largest number of one group in 1000 words.
const RIDDLES: [&[&str]; 3] = [
    &["what", "whatever"],
    &["who", "whoever", "nobody", "somebody", "everybody"],
    &["tell", "tells", "told"],
];
const MOST_RIDDLES: usize = 5;

/// Returns the words of a chapter, without its code and tables.
fn prose(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut words = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || line.starts_with('|') {
            continue;
        }
        let outside = line.split('`').step_by(2);
        let parts = outside.flat_map(|part| part.split(|c: char| !c.is_alphabetic()));
        words.extend(parts.filter(|word| !word.is_empty()).map(str::to_lowercase));
    }
    words
}

fn riddles(text: &str) -> Vec<String> {
    let words = prose(text);
    let count = |group: &[&str]| words.iter().filter(|word| group.contains(&word.as_str())).count();
    let is_too_much = |group: &&&[&str]| count(group) * 1000 > MOST_RIDDLES * words.len();
    let report = |group: &&[&str]| format!("{:?}: {} of {}", group, count(group), words.len());
    RIDDLES.iter().filter(is_too_much).map(report).collect()
}

#[test]
fn chapters_of_the_book_have_nouns_as_subjects() {
    for chapter in PLAIN_CHAPTERS {
        let found = riddles(&read(&root().join(format!("book/src/{chapter}.md"))));
        assert!(found.is_empty(), "{chapter}: more than {MOST_RIDDLES} of 1000 words: {found:?}");
    }
    let riddle = "What a worker holds. `what` is code.\n```text\nwho\n```\n| told |\n";
    assert_eq!(riddles(riddle), ["[\"what\", \"whatever\"]: 1 of 6"]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests crate lies in the workspace")
        .to_owned()
}

/// Returns every Rust file below `folder`, sorted; files of tests only are left out.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", dir.display()))
        {
            let path = entry.expect("an entry of a folder that was just opened").path();
            let name =
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() && name != "tests" {
                open.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" && !name.ends_with("_tests.rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust files in {folder}");
    found
}

fn read(file: &Path) -> String {
    fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
}

/// Returns the numbered lines before the file's tests, without comment lines.
fn code_lines(file: &Path) -> Vec<(usize, String)> {
    let text = read(file);
    let code = text.find("#[cfg(test)]\nmod ").map_or(text.as_str(), |at| &text[..at]);
    code.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line.to_owned()))
        .collect()
}

fn module_of(file: &Path, folder: &str) -> Option<String> {
    let relative = file.strip_prefix(root().join(folder)).ok()?;
    let first = relative.components().next()?.as_os_str().to_str()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (module != "lib").then(|| module.to_owned())
}

fn layer_of(module: &str) -> u8 {
    LAYERS
        .iter()
        .find(|(name, _)| *name == module)
        .unwrap_or_else(|| {
            panic!("module `{module}` is not in the table of layers: decide where it belongs")
        })
        .1
}

/// Returns the modules that a line names as `crate::module`.
fn imports(line: &str) -> Vec<String> {
    names_after("crate::", line)
}

/// Returns the names that follow `prefix` in a line.
fn names_after(prefix: &str, line: &str) -> Vec<String> {
    line.match_indices(prefix)
        .map(|(at, found)| {
            line[at + found.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .collect()
}
