//! Differences between a recorded body and a replayed one, by path.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use windlass_runtime::manager::Mask;

/// Differences that a report names.
const SHOWN: usize = 8;
/// Characters of a value that a report shows.
const CHARACTERS: usize = 120;

/// Returns the differences, a line each.
pub(super) fn differences(recorded: &Value, replayed: &Value, tolerance: Duration) -> Vec<String> {
    let mut found = Vec::new();
    compare("", recorded, replayed, tolerance, &mut found);
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    if more > 0 {
        found.push(format!("and {more} more differences"));
    }
    found
}

/// Adds the differences of two values at a path. The recursion is as deep as the values.
fn compare(
    path: &str,
    recorded: &Value,
    replayed: &Value,
    tolerance: Duration,
    found: &mut Vec<String>,
) {
    let below = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    match (recorded, replayed) {
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|name| !before.contains_key(*name));
            for name in before.keys().chain(added) {
                match (before.get(name), after.get(name)) {
                    (Some(before), Some(after)) => {
                        compare(&below(name), before, after, tolerance, found);
                    }
                    (before, after) => found.push(described(&below(name), before, after)),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for at in 0..before.len().max(after.len()) {
                let path = format!("{path}[{at}]");
                match (before.get(at), after.get(at)) {
                    (Some(before), Some(after)) => compare(&path, before, after, tolerance, found),
                    (before, after) => found.push(described(&path, before, after)),
                }
            }
        }
        (Value::String(before), Value::String(after)) if is_near(before, after, tolerance) => {}
        (before, after) if before == after => {}
        (before, after) => found.push(described(path, Some(before), Some(after))),
    }
}

/// Whether two texts count as equal: times, which the recorded operator needed itself, and a masked
/// value that the replayed operator made instead of copying it.
fn is_near(recorded: &str, replayed: &str, tolerance: Duration) -> bool {
    if recorded == replayed {
        return true;
    }
    if Mask::is_mask(recorded) {
        return !Mask::is_mask(replayed);
    }
    let (Ok(before), Ok(after)) = (recorded.parse::<Timestamp>(), replayed.parse::<Timestamp>())
    else {
        return false;
    };
    before.duration_since(after).unsigned_abs() <= tolerance
}

/// Returns the text of a difference.
fn described(path: &str, recorded: Option<&Value>, replayed: Option<&Value>) -> String {
    let text = |value: Option<&Value>| match value {
        Some(value) => cut(&value.to_string()),
        None => "nothing".to_owned(),
    };
    let path = if path.is_empty() { "the body" } else { path };
    format!("{path}: {} in the recording, {} now", text(recorded), text(replayed))
}

/// Shortens a long value.
fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(recorded: &Value, replayed: &Value) -> Vec<String> {
        differences(recorded, replayed, Duration::from_secs(2))
    }

    #[test]
    fn differences_are_named_by_their_paths() {
        let recorded = json!({ "spec": { "replicas": 3, "ports": [{ "port": 80 }], "a": 1 } });
        let replayed = json!({ "spec": { "replicas": 4, "ports": [{ "port": 81 }, 2] } });
        assert_eq!(
            found(&recorded, &replayed),
            [
                "spec.a: 1 in the recording, nothing now",
                "spec.ports[0].port: 80 in the recording, 81 now",
                "spec.ports[1]: nothing in the recording, 2 now",
                "spec.replicas: 3 in the recording, 4 now",
            ]
        );
    }

    #[test]
    fn times_that_are_near_are_equal_and_others_are_not() {
        let time = |seconds: u32| json!({ "at": format!("2026-01-01T00:00:{seconds:02}Z") });
        assert!(found(&time(1), &time(3)).is_empty());
        assert_eq!(found(&time(1), &time(4)).len(), 1);
    }

    #[test]
    fn a_masked_value_equals_a_value_that_was_made_and_no_other_mask() {
        let masks = ["masked-00000000000000aa", "masked-00000000000000bb"].map(|it| json!(it));
        assert!(found(&masks[0], &json!("made anew")).is_empty());
        assert!(found(&masks[0], &masks[0]).is_empty());
        assert_eq!(found(&masks[0], &masks[1]).len(), 1);
    }
}
