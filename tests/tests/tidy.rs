//! Rules that the compiler does not check: layers, sizes, calls that must not occur.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/decisions.rs"]
mod decisions;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/repeated.rs"]
mod repeated;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;

use source::{FOLDERS, all_sources, read, root, sources};

/// Layer of each module of the framework's crates; a module may import from the same layer and from
/// below.
const LAYERS: &[(&str, u8)] = &[
    ("clock", 0),
    ("rng", 0),
    ("error", 0),
    ("metrics", 0),
    ("panics", 0),
    ("environment", 0),
    ("sync", 0),
    ("text", 0),
    ("resource", 1),
    ("wire", 1),
    ("crd", 1),
    ("rbac", 1),
    ("conditions", 1),
    ("workqueue", 1),
    ("client", 2),
    ("api", 2),
    ("discovery", 2),
    ("delta", 3),
    ("fifo", 3),
    ("store", 3),
    ("reflector", 4),
    ("informer", 5),
    ("children", 6),
    ("events", 6),
    ("finalizer", 6),
    ("owner", 6),
    ("controller", 6),
    ("external", 7),
    ("dependents", 7),
    ("leader", 7),
    ("rollout", 7),
    ("manager", 8),
    ("webhook", 9),
    ("embedded", 9),
    ("bin", 9),
    ("cli", 9),
    ("local", 9),
    ("testing", 9),
    ("__private", 9),
    ("prelude", 9),
];

/// Layer of each folder or file in `framework/client/src/client`; a file names only files of lower
/// layers. `Client` itself stands in `mod.rs`, and all may name `Client`.
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

/// Layer of each folder or file in `framework/runtime/src/controller`; a file names only files of
/// lower layers, and all may name the traits in `mod.rs`.
const CONTROLLER_LAYERS: &[(&str, u8)] = &[
    ("outcome", 0),
    ("cluster", 0),
    ("state", 1),
    ("source", 2),
    ("planned", 2),
    ("conditions", 3),
    ("worker", 4),
    ("context", 5),
    ("spec", 6),
    ("reconcile", 7),
    ("run", 8),
    ("builder", 9),
];

/// Layer of each folder or file in `framework/cache/src/store`; a file names only files of lower
/// layers.
const STORE_LAYERS: &[(&str, u8)] = &[
    ("version", 0),
    ("object", 0),
    ("encoding", 1),
    ("observed", 1),
    ("slots", 2),
    ("index", 3),
    ("state", 4),
    ("cache", 5),
    ("view", 6),
];

/// Layer of each module of `apiserver/cel/src`. Those of layers 0 to 3 have no dependencies.
const CEL_LAYERS: &[(&str, u8)] = &[
    ("syntax", 0),
    ("types", 1),
    ("check", 2),
    ("cost", 3),
    ("library", 3),
    ("schema", 3),
    ("eval", 4),
    ("devices", 5),
    ("rules", 5),
    ("admission", 6),
];

/// Layer of each module of `apiserver/src`.
const SERVER_LAYERS: &[(&str, u8)] = &[
    ("clock", 0),
    ("files", 0),
    ("go", 0),
    ("long_work", 0),
    ("metrics", 0),
    ("names", 0),
    ("requests", 0),
    ("seed", 0),
    ("served", 0),
    ("signal", 0),
    ("crd_schema", 1),
    ("discovery", 1),
    ("faults", 1),
    ("selectors", 1),
    ("status", 1),
    ("storage", 1),
    ("table", 1),
    ("typed", 1),
    ("apply", 2),
    ("audit", 2),
    ("auth", 2),
    ("data", 2),
    ("kinds", 2),
    ("openapi", 2),
    ("policies", 2),
    ("protobuf", 2),
    ("core", 3),
    ("hooks", 3),
    ("patch", 3),
    ("crds", 4),
    ("verbs", 5),
    ("http", 6),
    ("rbac", 6),
    ("controllers", 7),
    ("tls", 7),
    ("server", 8),
    ("direct", 9),
    ("durable", 9),
    ("admin", 10),
];

#[test]
fn no_other_module_uses_the_queues_of_client_go() {
    let mut faults = Vec::new();
    for file in sources("framework") {
        let Some(own) = file.top().filter(|own| *own != "fifo") else { continue };
        for (line, text) in file.code() {
            if text.contains("crate::fifo") || text.contains("windlass_fifo") {
                faults.push(format!("{}:{line}: `{own}` uses `fifo`", file.path.display()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "`fifo` is for programs outside of the framework:\n{}",
        faults.join("\n")
    );
}

/// Files of stores and queues with functions that wait.
const WAITING: [&str; 4] = [
    "delta/apply_queue.rs",
    "fifo/src/batches.rs",
    "fifo/src/shared.rs",
    "fifo/src/shared/popping.rs",
];

#[test]
fn stores_and_queues_of_changes_know_no_runtime_and_no_sockets() {
    let mut faults = Vec::new();
    for file in sources("framework") {
        let is_fifo = file.package.ends_with("framework/fifo");
        let is_pure = |own| matches!(own, "store" | "delta" | "wire" | "json" | "resource");
        if !is_fifo && !file.top().is_some_and(is_pure) {
            continue;
        }
        // Code that synchronizes tasks may wait for them, and for nothing else.
        let is_meeting_place = WAITING.iter().any(|waiting| file.path.ends_with(waiting));
        let waits = [".await", "async fn"];
        for (line, text) in file.code() {
            if ["tokio::spawn", "tokio::net", "tokio::time::sleep"]
                .iter()
                .any(|word| text.contains(word))
                || !is_meeting_place && waits.iter().any(|word| text.contains(word))
            {
                faults.push(format!("{}: {text}", file.at(line)));
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
    for file in sources("framework") {
        let Some(own) = file.top() else { continue };
        // The manager's health endpoint and the webhooks are servers of their own.
        let is_server = own == "manager" || file.package.ends_with("framework/webhook");
        if is_server || matches!(own, "client" | "testing") {
            continue;
        }
        for (line, text) in file.code() {
            if ["hyper::", "tower::", "rustls::"].iter().any(|word| text.contains(word)) {
                faults.push(format!("{}: {text}", file.at(line)));
            }
        }
    }
    assert!(faults.is_empty(), "only `client` speaks HTTP and TLS:\n{}", faults.join("\n"));
}

#[test]
fn the_api_server_imports_nothing_of_the_framework() {
    let mut faults = Vec::new();
    for file in sources("apiserver") {
        for (line, text) in file.code() {
            if text.contains("windlass::") || text.contains("k8s_openapi") {
                faults.push(file.at(line));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "client and server are two independent readings of the API:\n{}",
        faults.join("\n")
    );
}

#[test]
fn every_select_is_biased() {
    let mut faults = Vec::new();
    for folder in FOLDERS {
        for file in all_sources(folder) {
            let text = &file.text;
            for (at, _) in text.match_indices("select! {") {
                // In an example of a doc comment the slashes come first.
                let inside = text[at + "select! {".len()..].trim_start().trim_start_matches("/// ");
                if !inside.trim_start().starts_with("biased;") {
                    faults.push(file.at(text[..at].lines().count()));
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
    for folder in ["framework", "apiserver", "examples"] {
        for file in sources(folder) {
            for (line, text) in file.code() {
                if let Some(word) = forbidden.iter().find(|word| text.contains(**word)) {
                    faults.push(format!("{}: {word}", file.at(line)));
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

/// Returns the chapters of the book, which `SUMMARY.md` links.
fn chapters() -> Vec<String> {
    let summary = read(&root().join("book/src/SUMMARY.md"));
    let links = summary.lines().filter_map(|line| line.trim().strip_suffix(".md)"));
    links.filter_map(|line| Some(line.rsplit_once("](")?.1.to_owned())).collect()
}

/// Words that hide the subject of a sentence, and the largest number of a group in 1000 words.
const RIDDLES: [&[&str]; 3] = [
    &["what", "whatever"],
    &["who", "whoever", "nobody", "somebody", "everybody"],
    &["tell", "tells", "told"],
];
const MOST_RIDDLES: usize = 5;

/// Returns the words of a chapter, without code and tables.
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
    let chapters = chapters();
    assert!(chapters.len() > 40, "SUMMARY.md links {chapters:?}");
    for chapter in chapters {
        let found = riddles(&read(&root().join(format!("book/src/{chapter}.md"))));
        assert!(found.is_empty(), "{chapter}: more than {MOST_RIDDLES} of 1000 words: {found:?}");
    }
    let riddle = "What a worker holds. `what` is code.\n```text\nwho\n```\n| told |\n";
    assert_eq!(riddles(riddle), ["[\"what\", \"whatever\"]: 1 of 6"]);
}

/// A block that nothing compiles would drift from the program that it stands for.
#[test]
fn the_readme_shows_the_website_operator_as_it_is() {
    let program = source::read(&source::root().join("examples/src/bin/website.rs"));
    let (_, rest) = program.split_once("\n\nuse ").expect("imports after the module's comment");
    let (shown, _) = rest.split_once("\n\n#[cfg(test)]").expect("tests");
    let block = format!("```rust\nuse {shown}\n```");
    let readme = source::read(&source::root().join("README.md"));
    assert!(
        readme.contains(&block),
        "README.md does not show examples/src/bin/website.rs:\n{block}"
    );
}
