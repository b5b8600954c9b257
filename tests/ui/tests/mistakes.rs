//! Texts of the compiler for mistakes of users of the derive macros.

/// The fixtures of each folder, with the text that is shown for them. `TRYBUILD=overwrite` accepts new
/// texts; read them before you commit them.
///
/// No fixture that compiles is among them (those are `programs.rs`): with one, trybuild would link all
/// dependencies and build each fixture by a command of its own.
#[test]
fn mistakes_are_explained_where_they_were_made() {
    let cases = trybuild::TestCases::new();
    for key in FOLDERS {
        cases.compile_fail(format!("{key}/*.rs"));
    }
}

/// Folders of fixtures.
const FOLDERS: [&str; 12] = [
    "resource",
    "column",
    "scale",
    "index",
    "path",
    "controller",
    "types",
    "projection",
    "schema",
    "object",
    "apply",
    "editors",
];

/// Fixtures with several mistakes on purpose, or with a mistake that the compiler reports several
/// times by itself.
const SEVERAL: &[&str] = &[
    "resource/no_value",
    // Each key has one.
    "editors/keys",
    "schema/many_faults",
    "object/several",
    "apply/condition_with_fields",
    "controller/cache_of_what_is_only_watched",
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
    "scale/fields_swapped",
    "index/other_kind",
    // `Serialize` and `Deserialize`.
    "types/spec_without_serde",
    "projection/picked_without_skip",
    "projection/misspelt_key",
    "projection/field_without_serde",
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
