//! Tests of the workspace that do not run here, and their reasons: read from the source and from
//! the machine.
//!
//! A test that cannot run is ignored, with a reason, and never counts as passed. A test that is
//! ignored by an attribute must be asked for; a test that is ignored by a harness of libtest-mimic
//! is decided by the machine when the test runs. `tests/zz_machine.rs` prints all of them near the
//! end of `cargo test`.

// DESIGN.md, 93: Tests that cannot run on a machine are ignored at run time

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv6Addr, TcpListener};
use std::path::{Path, PathBuf};

use crate::built;

/// Reason for which a test that needs IPv6 does not run.
pub const NO_IPV6: &str = "this machine has no IPv6 on loopback";

/// Whether loopback has IPv6.
pub fn has_ipv6() -> bool {
    TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

/// A condition of tests: the beginning of the source lines that state the condition, whether the
/// machine fails the condition, and the reason to print then.
struct Need {
    mark: &'static str,
    lacks: fn() -> bool,
    reason: &'static str,
}

const NEEDS: [Need; 2] = [
    Need {
        mark: "needs_kubectl!(",
        lacks: || built::program("kubectl").is_none(),
        reason: built::NO_KUBECTL,
    },
    Need { mark: "needs_ipv6!(", lacks: || !has_ipv6(), reason: NO_IPV6 },
];

/// Reasons, and the number of tests that each leaves out.
pub type LeftOut = BTreeMap<String, usize>;

/// Returns the tests that `cargo test` leaves out on this machine; with `is_all`, those that
/// `--include-ignored` leaves out.
///
/// # Panics
/// When the workspace's source cannot be read.
pub fn left_out(root: &Path, is_all: bool) -> LeftOut {
    let mut found = LeftOut::new();
    let mut add = |reason: &str| *found.entry(reason.to_owned()).or_default() += 1;
    for (_, text) in sources(root) {
        for line in text.lines() {
            if let Some(need) = NEEDS.iter().find(|need| line.trim().starts_with(need.mark))
                && (need.lacks)()
            {
                add(need.reason);
            }
            if let Some(reason) = ignored(line).filter(|_| !is_all) {
                add(reason.unwrap_or("no reason is given"));
            }
        }
    }
    found
}

/// Returns the reasons as lines for people.
pub fn report(left_out: &LeftOut) -> String {
    if left_out.is_empty() {
        return "left out of `cargo test` on this machine: nothing\n".to_owned();
    }
    let count: usize = left_out.values().sum();
    let mut text = format!("left out of `cargo test` on this machine: {count} tests\n");
    for (reason, count) in left_out {
        text += &format!("{count:>5}: {reason}\n");
    }
    text
}

/// Returns whether the line is an attribute by which a test is ignored on this system, and the
/// reason, if the attribute has a reason.
fn ignored(line: &str) -> Option<Option<&str>> {
    let line = line.trim();
    let rest = match line.strip_prefix("#[cfg_attr(") {
        // The only condition that the workspace uses.
        Some(rest) => rest
            .strip_prefix("not(target_os = \"linux\"), ")
            .filter(|_| cfg!(not(target_os = "linux")))?,
        None => line.strip_prefix("#[")?,
    };
    let rest = rest.strip_prefix("ignore")?;
    Some(rest.split('"').nth(1))
}

/// Returns the folders of the packages that `cargo test` tests: the default members.
fn members(root: &Path) -> Vec<PathBuf> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let listed = manifest.lines().find_map(|line| line.strip_prefix("default-members = "));
    let listed = listed.expect("the workspace lists its default members in one line");
    listed.split('"').skip(1).step_by(2).map(|folder| root.join(folder)).collect()
}

/// Returns every Rust file of these packages once, sorted: packages may be nested, and others
/// beside them.
fn sources(root: &Path) -> Vec<(PathBuf, String)> {
    let members = members(root);
    let mut found = Vec::new();
    let mut open = members.clone();
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry of a folder that was just opened").path();
            if path.is_dir() {
                // A nested package is looked through if that package is a member, and then once.
                if !path.join("Cargo.toml").is_file() {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// Finds lines of test functions that end the test early, because such a test would count as
/// passed. Lines that are nested deeper belong to a closure or a loop inside the test.
#[cfg(test)]
fn early_ends(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    // Depth of the test function.
    let mut inside = None;
    let mut is_test = false;
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim();
        match inside {
            None if code == "#[test]" || code.starts_with("#[tokio::test") => is_test = true,
            None if is_test && (code.starts_with("fn ") || code.starts_with("async fn ")) => {
                (inside, is_test) = (Some(depth(line)), false);
            }
            None => {}
            Some(own) if code == "}" && depth(line) == own => inside = None,
            Some(own) => {
                let is_end = matches!(code, "return;" | "return Ok(());")
                    || ["{ return };", "{ return Ok(()) };"].iter().any(|end| code.ends_with(end));
                if is_end && depth(line) <= own + 8 {
                    found.push(at + 1);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
    }

    #[test]
    fn an_attribute_and_its_reason_are_found_and_text_that_looks_like_one_is_not() {
        assert_eq!(ignored("    #[ignore = \"slow: ask for it\"]"), Some(Some("slow: ask for it")));
        assert_eq!(ignored("#[ignore]"), Some(None));
        let elsewhere = ignored("#[cfg_attr(not(target_os = \"linux\"), ignore = \"no /proc\")]");
        assert_eq!(elsewhere, cfg!(not(target_os = "linux")).then_some(Some("no /proc")));
        for line in ["// #[ignore]", "let text = \"#[ignore]\";", "#[test]", "#[cfg(unix)]"] {
            assert_eq!(ignored(line), None, "{line}");
        }
    }

    #[test]
    fn each_package_that_is_tested_is_looked_through_once_and_no_other() {
        let files: Vec<_> = sources(&root()).into_iter().map(|(file, _)| file).collect();
        let once: BTreeSet<_> = files.iter().collect();
        assert_eq!(once.len(), files.len());
        for member in members(&root()) {
            assert!(files.iter().any(|file| file.starts_with(&member)), "{}", member.display());
        }
        let others = ["tests/bench", "tests/fuzz", "tests/models", "tests/peers"];
        for other in others.map(|folder| root().join(folder)) {
            assert!(!files.iter().any(|file| file.starts_with(&other)), "{}", other.display());
        }
    }

    #[test]
    fn every_ignored_test_says_why() {
        for (file, text) in sources(&root()) {
            let bare = text.lines().position(|line| ignored(line) == Some(None));
            assert!(
                bare.is_none(),
                "{}:{}: ignored without a reason",
                file.display(),
                bare.unwrap() + 1
            );
        }
    }

    #[test]
    fn what_leaves_nothing_out_says_so_and_else_each_reason_has_its_count() {
        assert!(report(&LeftOut::new()).ends_with(": nothing\n"));
        let text = report(&LeftOut::from([("a".to_owned(), 2), ("b".to_owned(), 10)]));
        assert!(text.contains(": 12 tests\n    2: a\n   10: b\n"), "{text}");
    }

    #[test]
    fn asked_for_everything_only_what_the_machine_lacks_is_left_out() {
        let asked: Vec<String> = left_out(&root(), true).into_keys().collect();
        let lacking: Vec<&str> =
            NEEDS.iter().filter(|need| (need.lacks)()).map(|need| need.reason).collect();
        assert!(asked.iter().all(|reason| lacking.contains(&reason.as_str())), "{asked:?}");
        let plain = left_out(&root(), false);
        assert!(
            plain.keys().any(|reason| reason.starts_with("needs the real API server")),
            "{plain:?}"
        );
    }

    #[test]
    fn each_need_has_tests_that_name_it() {
        for need in &NEEDS {
            let named = |text: &str| text.lines().any(|line| line.trim().starts_with(need.mark));
            assert!(sources(&root()).iter().any(|(_, text)| named(text)), "{}", need.mark);
        }
    }

    #[test]
    fn no_test_ends_early_and_counts_as_passed() {
        let mut faults = Vec::new();
        for (file, text) in sources(&root()) {
            for line in early_ends(&text) {
                faults.push(format!("{}:{line}", file.display()));
            }
        }
        assert!(faults.is_empty(), "ignore what cannot run, with a reason:\n{}", faults.join("\n"));
    }

    #[test]
    fn an_early_end_is_found_in_tests_only() {
        let text = "#[test]\nfn a() {\n    let Some(x) = y() else { return };\n}\n\
                    fn helper() {\n    return;\n}\n\
                    #[tokio::test]\nasync fn b() {\n    if z {\n        return;\n    }\n    \
                    let f = || {\n        while x {\n            return;\n        }\n    };\n}\n";
        assert_eq!(early_ends(text), [3, 11]);
    }
}
