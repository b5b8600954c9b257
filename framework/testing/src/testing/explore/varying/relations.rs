//! Values that differ from run to run, and stand in several places: such as a password in a Secret
//! and in a database, or the resourceVersion that was deployed last. One run cannot be compared
//! with another one in such a value, and each place with the others can.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::testing::explore::state::{self, End, StateDifference};

/// Years of simulated time: two readings of a clock may agree, and need not.
const YEARS: [&str; 2] = ["2026", "2032"];

/// Key of an object, and path with positions.
type ValuePath = (String, String);

/// Places that have one value in each undisturbed run, and not the same in all of them.
#[derive(Debug, Default)]
pub(in crate::testing::explore) struct Relations {
    groups: Vec<Vec<ValuePath>>,
}

impl Relations {
    /// Returns the relations that undisturbed runs show.
    pub(in crate::testing::explore) fn of(first: &End, others: &[End]) -> Self {
        let first = values(first);
        let others: Vec<BTreeMap<ValuePath, String>> = others.iter().map(values).collect();
        let mut groups: BTreeMap<Vec<&str>, Vec<ValuePath>> = BTreeMap::new();
        for (place, value) in &first {
            let found = others.iter().map(|other| other.get(place).map(String::as_str));
            let Some(found) = found.collect::<Option<Vec<&str>>>() else { continue };
            if found.iter().any(|other| *other != value) {
                let all = std::iter::once(value.as_str()).chain(found).collect();
                groups.entry(all).or_default().push(place.clone());
            }
        }
        Self { groups: groups.into_values().filter(|places| places.len() > 1).collect() }
    }

    /// Returns the places that do not agree at an end. Those that are absent count elsewhere.
    pub(in crate::testing::explore) fn broken(&self, end: &End) -> Vec<StateDifference> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        let found = values(end);
        let mut broken = Vec::new();
        for places in &self.groups {
            let mut present = places.iter().filter(|place| found.contains_key(*place));
            let Some(one) = present.next() else { continue };
            let others: BTreeSet<&ValuePath> =
                present.filter(|other| found.get(*other) != found.get(one)).collect();
            broken.extend(others.into_iter().map(|other| difference(one, other)));
        }
        broken
    }
}

fn difference(one: &ValuePath, other: &ValuePath) -> StateDifference {
    let ((key, path), (other, there)) = (one, other);
    // The values may be secret.
    let text = format!(
        "{other}: {there} is another value than {path} of {key}, and both are equal in undisturbed runs"
    );
    StateDifference { key: other.clone(), path: there.clone(), text, sides: Default::default() }
}

/// Returns the texts of objects whose keys are their own.
fn values(end: &End) -> BTreeMap<ValuePath, String> {
    let mut found = BTreeMap::new();
    for (key, states) in end {
        if let [state] = states.as_slice() {
            collect(state, key, "", &mut found);
        }
    }
    found
}

/// Adds the texts of a value. The recursion is as deep as the value.
fn collect(value: &Value, key: &str, path: &str, found: &mut BTreeMap<ValuePath, String>) {
    match value {
        Value::String(text) if !YEARS.iter().any(|year| text.contains(year)) => {
            let is_encoded = state::resource_of(key) == "secrets" && path.starts_with(".data.");
            let plain = if is_encoded { decoded(text) } else { None };
            found.insert((key.to_owned(), path.to_owned()), plain.unwrap_or_else(|| text.clone()));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| collect(field, key, &format!("{path}.{name}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, item)| collect(item, key, &format!("{path}[{at}]"), found)),
        _ => {}
    }
}

/// Returns the text of a value of a Secret.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end(secret: &str, outside: &str) -> End {
        let data = json!({ "data": { "password": STANDARD.encode(secret) } });
        let state = json!({ "state": { "a": outside, "size": "constant" } });
        End::from([
            ("secrets default/a".to_owned(), vec![data]),
            ("external db".to_owned(), vec![state]),
        ])
    }

    #[test]
    fn values_that_are_drawn_once_must_stay_equal() {
        let relations =
            Relations::of(&end("first-password", "first-password"), &[end("second", "second")]);
        assert_eq!(relations.broken(&end("a-third", "a-third")), []);
        let broken = relations.broken(&end("a-third", "a-fourth"));
        let text = "secrets default/a: .data.password is another value than .state.a of external db, and both are \
                    equal in undisturbed runs";
        assert_eq!(broken.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), [text]);
    }

    #[test]
    fn values_that_agree_by_chance_or_never_change_are_not_related() {
        let relations = Relations::of(&end("constant", "constant"), &[end("constant", "constant")]);
        assert_eq!(relations.broken(&end("a-third", "a-fourth")), []);
        let relations =
            Relations::of(&end("first-one", "first-one"), &[end("second", "other-one")]);
        assert_eq!(relations.broken(&end("a-third", "a-fourth")), []);
    }
}
