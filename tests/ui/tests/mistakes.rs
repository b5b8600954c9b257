//! Texts of the compiler for mistakes of users of the derive macros.

#[path = "support/compiler.rs"]
mod compiler;
#[path = "support/explained.rs"]
mod explained;
#[path = "support/text.rs"]
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The fixtures of each folder, with the text that is shown for them. `WINDLASS_UI=overwrite`
/// accepts new texts; read them before you commit them.
///
/// No fixture that compiles is among them: those are in `programs.rs`.
#[test]
fn mistakes_are_explained_where_they_were_made() {
    let overwrite = std::env::var("WINDLASS_UI").is_ok_and(|value| value == "overwrite");
    let fixtures: Vec<PathBuf> = FOLDERS.into_iter().flat_map(fixtures).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut faults = Vec::new();
        while let Some(fixture) = fixtures.get(next.fetch_add(1, Ordering::Relaxed)) {
            faults.extend(fault(fixture, overwrite));
        }
        faults
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut faults: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    faults.sort();
    assert!(!fixtures.is_empty(), "no fixtures");
    assert!(
        faults.is_empty(),
        "{} of {} fixtures:\n{}",
        faults.len(),
        fixtures.len(),
        faults.join("\n")
    );
}

/// Difference between a fixture's text and the text beside the fixture.
fn fault(fixture: &Path, overwrite: bool) -> Option<String> {
    let verdict = compiler::check(fixture);
    let name = fixture.display();
    if verdict.compiled {
        return Some(format!("{name} compiles"));
    }
    let text = text::kept(&verdict.text);
    let file = fixture.with_extension("stderr");
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    if text == expected {
        return None;
    }
    if overwrite {
        std::fs::write(&file, text).expect("a text that can be written");
        return None;
    }
    Some(format!("{name}: expected\n{expected}\nand the compiler wrote\n{text}"))
}

/// Programs of a folder.
fn fixtures(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of fixtures");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Folders of fixtures.
const FOLDERS: [&str; 17] = [
    "resource",
    "column",
    "scale",
    "index",
    "path",
    "controller",
    "dependents",
    "types",
    "projection",
    "schema",
    "object",
    "apply",
    "conditions",
    "editors",
    "versions",
    "cel",
    "webhook",
];

/// Fixtures with several mistakes on purpose, or with a mistake that the compiler reports several
/// times.
const SEVERAL: &[&str] = &[
    "resource/no_value",
    // Two impls too many. A macro does not see the derives beside it in one attribute.
    "resource/serde_in_the_same_derive",
    "projection/serde_in_the_same_derive",
    // Each key of the fixture has a mistake.
    "editors/keys",
    "schema/many_faults",
    // Both are of serde's derive: a field is read from a list and from a map.
    "schema/default_of_a_type_without_one",
    "schema/default_of_a_variant_without_one",
    "object/several",
    // The hub's field is named in a literal and in a pattern.
    "versions/a_field_that_the_hub_lacks",
    "versions/renamed_to_a_field_that_the_hub_lacks",
    "versions/a_variant_of_another_form",
    // The compiler looks for a type and for a struct.
    "versions/hub_unknown",
    "versions/hub_of_a_kind_unknown",
    "apply/condition_with_fields",
    "controller/cache_of_what_is_only_watched",
    // At the call, for the future, and at `.await`.
    "controller/grant_through_an_async_function",
    "controller/left_over",
    "controller/missing_grant",
    "controller/no_workers",
    "controller/not_granted",
    "controller/unknown_verb",
    "resource/many_faults",
    "resource/bad_names",
    "column/unknown_type",
    "column/misspelt_key",
    "scale/outside_of_spec",
    "index/other_kind",
    "projection/picked_without_skip",
    "projection/misspelt_key",
    "projection/read_twice",
    "projection/path_into_a_list",
    "projection/serde_beside_it",
    "projection/metadata_of_another_type",
    "projection/created",
];

#[test]
fn one_mistake_makes_one_error() {
    let mut faults = Vec::new();
    let mut count = 0;
    for folder in FOLDERS {
        for entry in std::fs::read_dir(folder).expect("a folder of fixtures") {
            let path = entry.expect("an entry of the folder").path();
            if path.extension().is_none_or(|extension| extension != "stderr") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            let errors = text.lines().filter(|line| line.starts_with("error")).count();
            let name = path.with_extension("").display().to_string();
            count += 1;
            if (errors == 1) == SEVERAL.contains(&name.as_str()) {
                faults.push(format!("{name}: {errors} errors"));
            }
        }
    }
    assert!(faults.is_empty(), "of {count} fixtures:\n{}", faults.join("\n"));
}

#[test]
fn each_text_about_a_missing_trait_is_shown_by_a_fixture() {
    let texts = FOLDERS.into_iter().flat_map(fixtures).map(|fixture| {
        std::fs::read_to_string(fixture.with_extension("stderr")).unwrap_or_default()
    });
    let shown: Vec<String> = texts.collect();
    let explanations = explained::explanations();
    assert!(explanations.len() > 100, "{} explanations are found", explanations.len());
    let missing: Vec<&String> = explanations
        .iter()
        .filter(|text| !shown.iter().any(|shown| explained::is_in(text, shown)))
        .collect();
    assert!(missing.is_empty(), "no fixture shows {missing:#?}");
}
