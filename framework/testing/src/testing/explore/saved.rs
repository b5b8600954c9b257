//! Findings as files: moments named by what is done then, so that they outlive changes of the
//! operator.

// DESIGN.md, 232: A file names the moments of a finding in words

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::monitor::{OperatorRequest, RecordedChange, Recording, words};
use super::schedule::{Disturbance, PlannedDisturbance, Schedule};

/// The moment of a disturbance in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    kind: Disturbance,
    /// Request or change, as findings tell it.
    of: String,
    /// Number of equal requests or changes up to it, from 1.
    occurrence: usize,
}

/// A finding that was read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SavedFinding {
    pub(super) seed: u64,
    pub(super) moments: Vec<Moment>,
}

impl SavedFinding {
    /// Whether its numbers are those of two replicas.
    pub(super) fn is_replicated(&self) -> bool {
        self.moments.iter().any(|moment| moment.kind == Disturbance::HandOver)
    }
}

/// Returns the words for a request of the reference run.
fn of_request(request: &OperatorRequest) -> String {
    words::request_text(request, request.key.as_deref())
}

/// Returns the words for each request or change that a disturbance may meet, with its number.
fn subjects(kind: Disturbance, reference: &Recording) -> Vec<(usize, String)> {
    if kind.is_of_change() {
        let changes = reference.changes.iter().enumerate();
        let judged = changes.filter(|(_, change): &(usize, &RecordedChange)| change.is_relevant);
        judged.map(|(at, change)| (at, words::change_text(change))).collect()
    } else {
        let requests = reference.requests.iter().enumerate();
        requests.map(|(at, request)| (at, of_request(request))).collect()
    }
}

/// Returns the moments of a plan; those that the reference run does not have are left out.
pub(super) fn moments(plan: &Schedule, reference: &Recording) -> Vec<Moment> {
    let moment = |step: &PlannedDisturbance| {
        let subjects = subjects(step.kind, reference);
        let (_, of) = subjects.iter().find(|(at, _)| *at == step.at)?.clone();
        let occurrence = subjects.iter().filter(|(at, text)| *at <= step.at && *text == of).count();
        Some(Moment { kind: step.kind, of, occurrence })
    };
    plan.steps.iter().filter_map(moment).collect()
}

/// Returns the plan of moments.
///
/// # Errors
/// The moment that the reference run does not have, in words.
pub(super) fn plan(moments: &[Moment], reference: &Recording) -> Result<Schedule, String> {
    let step = |moment: &Moment| {
        let subjects = subjects(moment.kind, reference).into_iter();
        let mut equal = subjects.filter(|(_, text)| *text == moment.of).map(|(at, _)| at);
        let at = equal.nth(moment.occurrence.saturating_sub(1));
        at.map(|at| PlannedDisturbance { kind: moment.kind, at }).ok_or_else(|| {
            format!("{} does not happen {} times in it", moment.of, moment.occurrence)
        })
    };
    Ok(Schedule { steps: moments.iter().map(step).collect::<Result<_, _>>()? })
}

/// Returns the content of a file.
pub(super) fn written(seed: u64, moments: &[Moment], sentences: &[String]) -> String {
    let moment = |moment: &Moment| json!({ "disturbance": moment.kind.name(), "of": moment.of, "occurrence": moment.occurrence });
    let moments: Vec<Value> = moments.iter().map(moment).collect();
    let file = json!({ "finding": sentences, "seed": seed, "steps": moments });
    format!("{file:#}\n")
}

/// Reads the content of a file.
///
/// # Errors
/// A sentence about the part that is wrong.
pub(super) fn parsed(text: &str) -> Result<SavedFinding, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let moment = |step: &Value| -> Result<Moment, String> {
        let name = step["disturbance"].as_str().unwrap_or_default();
        let kind = Disturbance::named(name)
            .ok_or_else(|| format!("`{name}` is the name of no disturbance"))?;
        let of = step["of"].as_str().ok_or("a step has no text `of`")?.to_owned();
        let occurrence = step["occurrence"].as_u64().and_then(|count| usize::try_from(count).ok());
        Ok(Moment { kind, of, occurrence: occurrence.ok_or("a step has no number `occurrence`")? })
    };
    let steps = file["steps"].as_array().ok_or("it has no list `steps`")?;
    let seed = file["seed"].as_u64().ok_or("it has no number `seed`")?;
    Ok(SavedFinding { seed, moments: steps.iter().map(moment).collect::<Result<_, _>>()? })
}

/// Reads the findings that a path names: the file itself, or those of a folder that end with
/// `.json`, by name. An error is a sentence about the file that cannot be read.
pub(super) fn read(path: &Path) -> Vec<Result<SavedFinding, String>> {
    let at = |path: &Path, why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = match std::fs::read_dir(path) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) => return vec![Err(at(path, &error))],
        };
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
    }
    if files.is_empty() {
        return vec![Err(at(path, &"the folder has no file that ends with .json"))];
    }
    let one = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).map_err(|error| at(file, &error))?;
        parsed(&text).map_err(|error| at(file, &error))
    };
    files.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let of = "the delete of configmaps default/a".to_owned();
        let moments = vec![Moment { kind: Disturbance::CrashAfter, of, occurrence: 2 }];
        let text = written(7, &moments, &["the end differs".to_owned()]);
        assert_eq!(parsed(&text), Ok(SavedFinding { seed: 7, moments }));
    }

    #[test]
    fn a_file_that_is_none_is_refused_with_the_reason() {
        for (text, reason) in [
            ("{", "EOF"),
            ("{}", "no list `steps`"),
            (r#"{"steps":[]}"#, "no number `seed`"),
            (r#"{"seed":1,"steps":[{"disturbance":"rain"}]}"#, "`rain` is the name of no"),
        ] {
            let error = parsed(text).expect_err("the text is no finding");
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_moment_that_does_not_happen_is_told() {
        let of = "the delete of configmaps default/a".to_owned();
        let moment = Moment { kind: Disturbance::CrashAfter, of, occurrence: 1 };
        let error = plan(&[moment], &Recording::default()).expect_err("there is no request");
        assert_eq!(error, "the delete of configmaps default/a does not happen 1 times in it");
    }
}
