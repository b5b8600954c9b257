//! What the compiler tells the users of the derive macros.

/// Every fixture under `ui/`: programs that compile, and mistakes with the text that is shown for
/// them. `TRYBUILD=overwrite` accepts new texts; read them before you commit them.
#[test]
fn mistakes_are_explained_where_they_were_made() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    for key in ["resource", "column", "scale", "index", "controller", "types", "projection"] {
        cases.compile_fail(format!("ui/{key}/*.rs"));
    }
}
