//! Paths of the programs that `tests/kube-apiserver/build.sh` builds.

// DESIGN.md, 276: A test that only the machine can ignore says so when tests are listed

use std::path::{Path, PathBuf};

/// Reason for which a test that needs kubectl does not run.
pub const NO_KUBECTL: &str =
    "kubectl is not built: tests/kube-apiserver/build.sh builds it (needs Go)";

/// Whether the process only lists its tests. Runners that start a process for each test, such as
/// cargo-nextest, ask for the ignored ones in this way, and take a test that is ignored at run time
/// for one that has passed.
pub fn is_listed() -> bool {
    std::env::args().any(|argument| argument == "--list")
}

/// Returns the program in `WINDLASS_KUBE_BIN`, else in the newest build in the cache that has the
/// program.
pub fn program(name: &str) -> Option<PathBuf> {
    let found = match std::env::var_os("WINDLASS_KUBE_BIN") {
        Some(folder) => PathBuf::from(folder).join(name),
        None => newest(&cache()?, name)?,
    };
    Some(found).filter(|program| program.is_file())
}

fn cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("WINDLASS_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("windlass")))
        .or_else(|| Some(folder("HOME")?.join(".cache/windlass")))
}

fn newest(cache: &Path, program: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let builds = entries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kube-v1."))
    });
    let built = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    let with_it = builds.filter(|folder| folder.join(program).is_file());
    with_it.max_by_key(built).map(|folder| folder.join(program))
}
