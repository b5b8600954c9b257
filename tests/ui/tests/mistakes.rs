//! Texts of the compiler for mistakes of users of the derive macros.

/// The fixtures of each folder, with the text that is shown for them. `TRYBUILD=overwrite` accepts new
/// texts; read them before you commit them.
///
/// No fixture that compiles is among them (those are `programs.rs`): with one, trybuild would link all
/// dependencies and build each fixture by a command of its own.
#[test]
fn mistakes_are_explained_where_they_were_made() {
    let cases = trybuild::TestCases::new();
    for key in [
        "resource",
        "column",
        "scale",
        "index",
        "controller",
        "types",
        "projection",
        "object",
        "apply",
    ] {
        cases.compile_fail(format!("{key}/*.rs"));
    }
}
