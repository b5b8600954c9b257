//! Copies the modelled source, applies at most one mutant (`MUTANT`), and hands it to the compiler.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/mutants.rs"]
mod mutants;

/// The folder whose files are modelled.
const SOURCE: &str = "../../framework/src/delta";

fn main() {
    for watched in ["build.rs", "mutants.txt", "src/mutants.rs", SOURCE] {
        println!("cargo::rerun-if-changed={watched}");
    }
    println!("cargo::rerun-if-env-changed=MUTANT");
    let mutant = env::var("MUTANT").ok().filter(|name| !name.is_empty()).map(|name| {
        let list = fs::read_to_string("mutants.txt").expect("mutants.txt lies beside build.rs");
        let mutants = mutants::parse(&list).unwrap_or_else(|fault| panic!("mutants.txt: {fault}"));
        let found = mutants.into_iter().find(|mutant| mutant.name == name);
        found.unwrap_or_else(|| panic!("mutants.txt has no mutant {name}"))
    });
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("delta");
    fs::create_dir_all(&out).expect("OUT_DIR can be written");
    let mut is_applied = mutant.is_none();
    let files = fs::read_dir(SOURCE).expect("the models lie in the project");
    for file in files {
        let path = file.expect("an entry of a folder that was just opened").path();
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let mut text = without_tests(&path);
        if let Some(mutant) = mutant.as_ref().filter(|mutant| mutant.file == name) {
            let hits = text.matches(&mutant.old).count();
            assert_eq!(hits, 1, "mutant {}: its text is {hits} times in {name}", mutant.name);
            text = text.replace(&mutant.old, &mutant.new);
            is_applied = true;
        }
        fs::write(out.join(name), text).expect("OUT_DIR can be written");
    }
    assert!(is_applied, "the mutant's file is not modelled");
    let module = format!("#[path = {:?}]\npub mod delta;\n", out.join("mod.rs"));
    fs::write(out.join("module.in"), module).expect("OUT_DIR can be written");
}

fn without_tests(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a file that was just listed");
    let text = text.replace("#[cfg(test)]\nmod tests;\n", "");
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}
