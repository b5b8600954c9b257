//! Runs of the compiler for fixtures, with the libraries that this program was built with.

use std::path::Path;
use std::process::Command;

// DESIGN.md, 154: Fixtures of compile errors are checked against the libraries of their test
// program
/// The compiler's command line for this program.
const ARGUMENTS: &[&str] = windlass_derive_tests_command::rustc_arguments!();

/// Text of the compiler about a fixture, and whether the fixture compiled.
pub(crate) struct Verdict {
    pub(crate) compiled: bool,
    pub(crate) text: String,
}

/// Type check of a fixture, whose path is relative to the package.
pub(crate) fn check(fixture: &Path) -> Verdict {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(ARGUMENTS[0])
        // Where cargo compiles members of the workspace: excerpts of their sources need this
        // folder.
        .current_dir(root)
        .arg(Path::new("tests/ui").join(fixture))
        .args(["--crate-name=fixture", "--crate-type=bin", "--edition=2024", "--emit=metadata"])
        .args(["--color=never", "--diagnostic-width=140", "--verbose", "-Adead_code"])
        .arg(format!("--out-dir={}", env!("CARGO_TARGET_TMPDIR")))
        .args(libraries())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", ARGUMENTS[0]));
    let text = String::from_utf8(output.stderr).expect("the compiler writes UTF-8");
    Verdict { compiled: output.status.success(), text }
}

/// `--extern` and `-L` of this program. Cargo writes flags and values apart.
fn libraries() -> impl Iterator<Item = &'static str> {
    let pairs = ARGUMENTS.windows(2).filter(|pair| matches!(pair[0], "--extern" | "-L"));
    pairs.flatten().copied()
}
