//! Crates of the workspace, by the manifest.

use std::fs;
use std::path::{Path, PathBuf};

use crate::CrateSource;

/// Returns the libraries among the workspace's members, without those of tests and examples.
///
/// # Errors
/// A manifest that cannot be read.
pub fn published_crates(root: &Path) -> Result<Vec<CrateSource>, String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let list = manifest.split_once("\nmembers = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.ok_or_else(|| "Cargo.toml: no list `members`".to_owned())?;
    let mut crates = Vec::new();
    for folder in list.split('"').skip(1).step_by(2).flat_map(|member| folders(root, member)) {
        let lib = folder.join("src/lib.rs");
        let own = folder.strip_prefix(root).unwrap_or(&folder);
        if own.starts_with("tests") || own.starts_with("examples") || !lib.is_file() {
            continue;
        }
        let manifest = read(&folder.join("Cargo.toml"))?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        let name = name.ok_or_else(|| format!("{}: no name", folder.display()))?;
        crates.push(CrateSource { name: name.trim_matches('"').replace('-', "_"), root: lib });
    }
    crates.sort();
    Ok(crates)
}

/// Expands a member that ends with `/*`.
fn folders(root: &Path, member: &str) -> Vec<PathBuf> {
    let Some(parent) = member.strip_suffix("/*") else { return vec![root.join(member)] };
    let entries = fs::read_dir(root.join(parent)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
