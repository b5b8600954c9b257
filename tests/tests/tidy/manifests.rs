//! Manifests of the published crates: no dependency that the source does not use.

use std::collections::BTreeSet;
use std::path::Path;

use super::source::{all_sources, read, root};

/// Folders of the packages whose dependencies are compared with their source.
const PACKAGES: [&str; 11] = [
    "framework",
    "framework/core",
    "framework/client",
    "framework/cache",
    "framework/runtime",
    "framework/fifo",
    "framework/webhook",
    "framework/testing",
    "macros",
    "apiserver",
    "apiserver/cel",
];

/// Returns the names of the dependencies in the section `[dependencies]` or `[dev-dependencies]`.
fn dependencies(manifest: &str, section: &str) -> Vec<String> {
    let mut is_inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_inside = line.trim() == format!("[{section}]");
        } else if is_inside && let Some((name, rest)) = line.split_once(['.', '=', ' ']) {
            // A dependency of tests may be there for the features that the dependency switches on
            // below.
            let is_switch = section == "dev-dependencies" && rest.contains("features");
            if !name.is_empty() && !name.starts_with('#') && !is_switch {
                names.push(name.replace('-', "_"));
            }
        }
    }
    names
}

#[test]
fn no_crate_has_a_dependency_that_it_does_not_use() {
    let mut faults = Vec::new();
    for package in PACKAGES {
        let manifest = read(&root().join(package).join("Cargo.toml"));
        let folder = package.split('/').next().unwrap_or_default();
        let (mut used, mut tested) = (BTreeSet::new(), BTreeSet::new());
        // The façade's folder contains the other crates of the framework.
        for file in all_sources(folder).iter().filter(|file| file.package == Path::new(package)) {
            if !file.is_test {
                used.extend(file.tokens.iter().map(|token| token.text.clone()));
            }
            // Examples in comments and tests use dev-dependencies.
            let words = file.text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            tested.extend(words.map(str::to_owned));
        }
        // Test programs beside the source, and the examples of the README.
        let beside = std::fs::read_dir(root().join(package).join("tests")).into_iter().flatten();
        let beside = beside.filter_map(|entry| Some(entry.ok()?.path()));
        let beside = beside.filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let readme = Some(root().join(package).join("README.md")).filter(|path| path.exists());
        for path in beside.chain(readme) {
            let text = read(&path);
            let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            tested.extend(words.map(str::to_owned));
        }
        for (section, words) in [("dependencies", &used), ("dev-dependencies", &tested)] {
            let names = dependencies(&manifest, section);
            // The package has no code; DESIGN.md has the purpose in entry 227.
            let names = names.iter().filter(|name| *name != "windlass_features");
            let idle = names.filter(|name| !words.contains(name.as_str()));
            faults.extend(idle.map(|name| format!("{package}/Cargo.toml: {name} in {section}")));
        }
    }
    assert!(faults.is_empty(), "dependencies without a use:\n{}", faults.join("\n"));
}
