//! The list of steps that the embedded server answers otherwise.

use std::collections::BTreeMap;

use crate::compare::Level;
use crate::script::folder;

/// A difference: the level that a step reaches, and a sentence about the place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    /// Level at which the answers are equal.
    pub level: Level,
    /// First differing place.
    pub reason: String,
}

/// Returns the word for a level.
fn word(level: Level) -> &'static str {
    match level {
        Level::Nothing => "nothing",
        Level::Code => "code",
        Level::Reason => "reason",
        Level::Structure => "structure",
        Level::Exact => "exact",
    }
}

/// Returns the listed differences by the names of steps: `id/number`.
///
/// # Errors
/// The file cannot be read, or a line has another form.
pub fn listed() -> Result<BTreeMap<String, String>, String> {
    let text = std::fs::read_to_string(folder().join("differences.txt"));
    let text = text.map_err(|error| format!("differences.txt: {error}"))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (step, level) = (words.next(), words.next());
        let (step, level) = step.zip(level).ok_or_else(|| format!("differences.txt: {line}"))?;
        Ok((step.to_owned(), level.to_owned()))
    };
    lines.map(parse).collect()
}

/// Returns the faults of the list: missing lines, lines of equal steps, other levels.
pub fn judge(
    found: &BTreeMap<String, Difference>,
    listed: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (step, difference) in found {
        let level = word(difference.level);
        match listed.get(step) {
            None => faults.push(format!("{step} differs: {}", difference.reason)),
            Some(known) if known != level => {
                faults.push(format!("{step} is equal up to {level}, listed with {known}"));
            }
            Some(_) => {}
        }
    }
    let equal = listed.keys().filter(|step| !found.contains_key(*step));
    faults.extend(equal.map(|step| format!("{step} is listed and does not differ")));
    faults
}

/// Writes the list.
///
/// # Errors
/// The file cannot be written.
pub fn write(found: &BTreeMap<String, Difference>) -> Result<(), String> {
    let mut text = String::from(
        "# Steps that the embedded server answers otherwise than kube-apiserver: script/step, the\n\
         # level up to which both answers are equal, the first place that differs.\n\
         # WINDLASS_CONFORMANCE=accept cargo test -p windlass-conformance writes this file anew.\n",
    );
    for (step, difference) in found {
        text.push_str(&format!("{step} {} {}\n", word(difference.level), difference.reason));
    }
    std::fs::write(folder().join("differences.txt"), text)
        .map_err(|error| format!("differences.txt: {error}"))
}
