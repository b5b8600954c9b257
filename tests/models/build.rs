//! Copies the modelled source, with the file that a mutant changes instead of the original, and
//! hands the copy to the compiler.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folder of the crates with the modelled source.
const CRATES: &str = "../../framework";
/// Modules of the source and their folders. The crate `fifo` is a module, too.
const HOMES: [(&str, &str); 7] = [
    ("client", "client/src/client"),
    ("delta", "cache/src/delta"),
    ("fifo", "fifo/src"),
    ("informer", "cache/src/informer"),
    ("leader", "runtime/src/leader"),
    ("store", "cache/src/store"),
    ("workqueue", "runtime/src/workqueue"),
];
/// Modules of the source that are modelled whole.
const MODULES: [&str; 3] = ["delta", "fifo", "workqueue"];
/// Files that are modelled without the rest of their module.
const FILES: [&str; 4] = [
    "informer/listener/listeners.rs",
    "store/state/snapshot_diff.rs",
    "client/policy/in_flight.rs",
    "leader/gate.rs",
];

fn main() {
    // A folder with the file that `../mutants/change.py` has changed, by the path from `CRATES` on.
    let mutant = env::var_os("MUTANT").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    for watched in [Path::new("build.rs"), Path::new(CRATES)].into_iter().chain(mutant.as_deref()) {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-env-changed=MUTANT");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut files: Vec<String> = FILES.map(str::to_owned).to_vec();
    MODULES.iter().for_each(|module| list(module, &mut files));
    let mut is_applied = mutant.is_none();
    for name in &files {
        let changed = mutant.as_ref().map(|mutant| mutant.join(below_crates(name)));
        let changed = changed.filter(|path| path.is_file());
        is_applied |= changed.is_some();
        let text = as_one_crate(name, without_tests(&changed.unwrap_or_else(|| source(name))));
        let to = out.join(name);
        fs::create_dir_all(to.parent().unwrap_or(&out)).expect("OUT_DIR can be written");
        fs::write(to, text).expect("OUT_DIR can be written");
    }
    assert!(is_applied, "the mutant's file is not modelled");
    for module in MODULES {
        include(&out, module, &format!("{module}/mod.rs"));
    }
    for file in FILES {
        include(&out, file.trim_end_matches(".rs").rsplit('/').next().unwrap_or(file), file);
    }
}

/// Writes a file that has the module when the file is included.
fn include(out: &Path, module: &str, file: &str) {
    let text = format!(
        "#[path = {:?}]\n#[allow(dead_code, suspicious_double_ref_op)]\npub mod {module};\n",
        out.join(file)
    );
    fs::write(out.join(format!("{module}.in")), text).expect("OUT_DIR can be written");
}

/// All files of a folder, by their paths below the source.
fn list(folder: &str, files: &mut Vec<String>) {
    for file in fs::read_dir(source(folder)).expect("the models lie in the project") {
        let path = file.expect("an entry of a folder that was just opened").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The root of a crate is the model's module.
        let name = if name == "lib.rs" { "mod.rs" } else { name };
        let name = format!("{folder}/{name}");
        if path.is_dir() {
            list(&name, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(name);
        }
    }
}

/// The path of a file or folder that is named from the module on.
fn source(name: &str) -> PathBuf {
    Path::new(CRATES).join(below_crates(name))
}

/// The same path, from the folder of the crates on.
fn below_crates(name: &str) -> PathBuf {
    let (module, rest) = name.split_once('/').unwrap_or((name, ""));
    let home = HOMES.iter().find(|(own, _)| *own == module).expect("a module of HOMES").1;
    let rest = if home == "fifo/src" && rest == "mod.rs" { "lib.rs" } else { rest };
    Path::new(home).join(rest)
}

/// The text of a file, with the modules of all crates as modules of the same crate.
fn as_one_crate(name: &str, mut text: String) -> String {
    if name.starts_with("fifo/") {
        if let Some((before, rest)) = text.split_once("// Derives and examples name") {
            let (_, modules) = rest.split_once("\nmod batches;").expect("the first module");
            text = format!("{before}\nmod batches;{modules}");
        }
        text = text.replace("crate::", "crate::fifo::");
    }
    for member in ["core", "client", "cache", "runtime"] {
        text = text.replace(&format!("windlass_{member}::"), "crate::");
    }
    text
}

fn without_tests(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a file that was just listed");
    let text = text.replace("#[cfg(test)]\nmod tests;\n", "");
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}
