//! Paths of the programs of a Kubernetes build.

use std::path::{Path, PathBuf};

use super::failed;
use windlass_core::error::Error;

/// Returns `WINDLASS_KUBE_BIN/name`, or the program beside the newest kube-apiserver in the cache
/// folder.
///
/// The variable takes precedence, and there is no fallback: a misspelt folder is an error instead
/// of a test against another version.
pub(super) fn find(name: &str) -> Result<PathBuf, Error> {
    let (found, looked) = match std::env::var_os("WINDLASS_KUBE_BIN") {
        Some(folder) => {
            let program = PathBuf::from(folder).join(name);
            let looked = format!("{} (named by WINDLASS_KUBE_BIN)", program.display());
            (Some(program), looked)
        }
        None => {
            let cache = cache();
            let looked = format!("{}/kube-v1.*/{name}", cache.display());
            (newest_build(&cache).map(|server| server.with_file_name(name)), looked)
        }
    };
    found.filter(|program| program.is_file()).ok_or_else(|| {
        failed(format!(
            "a test of the real API server needs {name}, and there is none at {looked}; build it by \
             tests/kube-apiserver/build.sh (needs Go, takes minutes), or name the folder of another \
             build in WINDLASS_KUBE_BIN; without WINDLASS_TEST_SERVER=real most tests run on the \
             embedded server"
        ))
    })
}

/// Returns the folder of `build.sh`'s builds.
///
/// `WINDLASS_CACHE`, else `windlass` in `XDG_CACHE_HOME`, else `.cache/windlass` in `HOME`. Empty
/// variables count as unset.
fn cache() -> PathBuf {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("WINDLASS_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("windlass")))
        .unwrap_or_else(|| folder("HOME").unwrap_or_default().join(".cache/windlass"))
}

/// Returns the kube-apiserver of the newest build in the cache folder.
///
/// By the time of the program file, and not by its version: a rebuilt program is the intended
/// program.
fn newest_build(cache: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let builds = entries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kube-v1."))
    });
    let programs = builds.map(|path| path.join("kube-apiserver"));
    let built = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    programs.filter(|program| program.is_file()).max_by_key(built)
}
