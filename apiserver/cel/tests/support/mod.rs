//! The cases of `tests/corpus` with their recorded outcomes, and the comparison with those of this
//! crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_cel::rules::Violation;

/// The folder of the corpus.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn lines(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // A line separator within a text ends no line.
    text.split('\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect()
}

/// The cases of one kind with their recorded outcomes.
pub(crate) fn cases(kind: &str) -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let recorded = path.with_file_name(format!("recorded-{name}"));
        if !name.ends_with(".jsonl") || name.starts_with("recorded-") {
            continue;
        }
        let (cases, recorded) = (lines(&path), lines(&recorded));
        assert_eq!(cases.len(), recorded.len(), "{name}");
        all.extend(cases.into_iter().zip(recorded).filter(|(case, _)| case["kind"] == kind));
    }
    all
}

/// The causes of an outcome; none if it is a success.
pub(crate) fn causes(outcome: &Value) -> Vec<Cause> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let cause =
        |cause: &Value| (text(cause, "reason"), text(cause, "field"), text(cause, "message"));
    let mut causes: Vec<Cause> =
        outcome["causes"].as_array().into_iter().flatten().map(cause).collect();
    if causes.is_empty() && outcome["ok"] == false {
        causes.push((String::new(), String::new(), text(outcome, "message")));
    }
    causes.sort();
    causes
}

/// Reason, field and message.
pub(crate) type Cause = (String, String, String);

/// The causes that this crate reports, below a prefix.
pub(crate) fn answered(prefix: &str, violations: &[Violation]) -> Vec<Cause> {
    let cause = |violation: &Violation| {
        let path = violation.path.as_str();
        let field = match (prefix, path) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        (violation.reason.name().to_owned(), field, violation.body())
    };
    let mut causes: Vec<Cause> = violations.iter().map(cause).collect();
    causes.sort();
    causes
}

/// Differences of verdicts and messages, by the names of the cases.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) compared: usize,
    verdicts: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
}

impl Tally {
    /// Compares the causes of one outcome.
    pub(crate) fn compare(&mut self, name: &str, expected: &[Cause], found: &[Cause]) {
        self.compared += 1;
        let report = format!("  server: {expected:?}\n  ours:   {found:?}");
        if expected.is_empty() != found.is_empty() {
            self.verdicts.entry(name.to_owned()).or_insert(report);
        } else if expected != found {
            self.messages.entry(name.to_owned()).or_insert(report);
        }
    }

    /// Fails on differences that the list does not name, and on names of these cases in the list
    /// that agree now.
    pub(crate) fn finish(self, names: &BTreeSet<String>) {
        let (verdicts, messages) = (self.verdicts.len(), self.messages.len());
        eprintln!(
            "{} compared, {verdicts} other verdicts, {messages} other messages",
            self.compared
        );
        let found: BTreeMap<String, String> =
            self.verdicts.into_iter().chain(self.messages).collect();
        if let Ok(path) = std::env::var("WINDLASS_CEL_DIFFERENCES") {
            let lines: Vec<String> =
                found.iter().map(|(name, report)| format!("{name}\n{report}")).collect();
            fs::write(path, lines.join("\n")).expect("the differences are written");
        }
        let known = known();
        let new: Vec<String> = found
            .iter()
            .filter(|(name, _)| !known.contains_key(*name))
            .map(|(name, report)| format!("{name}\n{report}"))
            .collect();
        let is_gone = |name: &&String| names.contains(*name) && !found.contains_key(*name);
        let gone: Vec<&String> = known.keys().filter(is_gone).collect();
        assert!(
            new.is_empty(),
            "{} cases differ that are not in differences.txt:\n{}",
            new.len(),
            new.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
        );
        assert!(gone.is_empty(), "cases of differences.txt that agree now: {gone:?}");
    }
}

/// The names of cases.
pub(crate) fn names(cases: &[(Value, Value)]) -> BTreeSet<String> {
    cases.iter().map(|(case, _)| case["name"].as_str().expect("a name").to_owned()).collect()
}

/// The cases that are known to differ, with the reasons.
fn known() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().with_file_name("differences.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, reason) = line.split_once(" — ").expect("a name and a reason");
        (name.to_owned(), reason.to_owned())
    };
    lines.map(pair).collect()
}
