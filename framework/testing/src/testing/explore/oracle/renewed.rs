//! Values that an operator renews all the time: ages, countdowns, counters of checks. While one is
//! compared, no run comes to rest, and no two runs end alike.

// DESIGN.md, 275: Values that are renewed all the time are learned from an hour without users

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::testing::explore::monitor::RecordedChange;
use crate::testing::explore::state::{self, Masks};
use crate::testing::explore::varying::elapsed;

/// Fewest updates of a place that count as renewal.
const FEWEST: u32 = 3;
/// Shortest mean time between two of them: what is written more often is an endless loop.
const SHORTEST: Duration = Duration::from_secs(1);
/// Beginnings of the paths that may be left out. A desired state that goes on changing is a fault.
const REPORTS: [&str; 2] = [".status.", ".metadata.annotations."];
/// Changes without a pause among which a loop is looked for.
const BURST: usize = 1_000;
/// Updates of one object among these that are a loop.
const MOST_IN_BURST: usize = 100;
/// Most places in one sentence.
const MOST_SHOWN: usize = 4;

/// An update of one place by the operator.
struct FieldUpdate<'a> {
    key: &'a str,
    path: String,
    /// Path with positions.
    shown: String,
    at: Duration,
    old: &'a Value,
    new: &'a Value,
}

/// Whether the operator has updated an object in a place that oracles judge.
fn is_update(change: &RecordedChange) -> bool {
    change.by_operator && change.is_relevant && change.verb == "updates"
}

/// Returns the number of updates, from a change on, of the object that the operator has updated
/// most often.
pub(in crate::testing::explore) fn most(changes: &[RecordedChange], first: usize) -> usize {
    let mut counts: BTreeMap<(&str, &(String, String)), usize> = BTreeMap::new();
    let updates = changes.iter().skip(first).filter(|change| is_update(change));
    updates.for_each(|it| *counts.entry((it.plural(), &it.name)).or_default() += 1);
    counts.into_values().max().unwrap_or_default()
}

/// Returns the number of the first of the last changes if they are a loop in which no time passes:
/// the guard of the operator takes a changed spec or data for the work of a user, and slows down
/// nothing.
pub(in crate::testing::explore) fn endless(changes: &[RecordedChange]) -> Option<usize> {
    let begin = changes.len().checked_sub(BURST)?;
    let [first, .., last] = changes.get(begin..)? else { return None };
    if last.at - first.at >= SHORTEST {
        return None;
    }
    let is_same = |change: &&RecordedChange| {
        is_update(change) && change.name == last.name && change.plural() == last.plural()
    };
    (changes.iter().skip(begin).filter(is_same).count() >= MOST_IN_BURST).then_some(begin)
}

/// Returns the updates of all places, from a change on.
fn updates(changes: &[RecordedChange], first: usize) -> Vec<FieldUpdate<'_>> {
    let mut last: BTreeMap<(&str, &(String, String)), &Value> = BTreeMap::new();
    let mut updates = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let before = last.insert((change.plural(), &change.name), &change.after);
        if number < first || !is_update(change) {
            continue;
        }
        let Some(before) = before else { continue };
        let mut places = Vec::new();
        state::compare(before, &change.after, "", "", &mut places);
        let (key, at) = (change.key.as_str(), change.at);
        let update = |(path, shown, old, new)| FieldUpdate { key, path, shown, at, old, new };
        updates.extend(places.into_iter().map(update));
    }
    updates
}

/// Returns the places that the operator renews from a change on, if it renews them in all objects:
/// parts of a status, or annotations, whose texts differ in numbers, durations and times alone, and
/// these only grow or only shrink.
pub(in crate::testing::explore) fn learn(changes: &[RecordedChange], first: usize) -> Masks {
    let updates = updates(changes, first);
    let mut courses: BTreeMap<(&str, &str), Vec<&FieldUpdate<'_>>> = BTreeMap::new();
    for update in &updates {
        courses.entry((update.key, update.shown.as_str())).or_default().push(update);
    }
    let (mut renewed, mut others) = (Masks::new(), BTreeSet::new());
    for updates in courses.values() {
        let Some(update) = updates.first() else { continue };
        let place = (state::resource_of(update.key).to_owned(), update.path.clone());
        match is_renewed(updates) {
            true => renewed.insert(place),
            false => others.insert(place),
        };
    }
    renewed.retain(|place| !others.contains(place));
    renewed
}

/// Whether the updates of one place of an object are a renewal.
fn is_renewed(updates: &[&FieldUpdate<'_>]) -> bool {
    let [first, .., last] = updates else { return false };
    let count = u32::try_from(updates.len()).unwrap_or(u32::MAX);
    let is_report = REPORTS.iter().any(|beginning| first.path.starts_with(beginning));
    if !is_report || count < FEWEST || last.at - first.at < SHORTEST * (count - 1) {
        return false;
    }
    let texts = std::iter::once(first.old).chain(updates.iter().map(|update| update.new));
    let mut texts: Vec<String> = texts.map(Value::to_string).collect();
    let grows = elapsed::grows(&texts);
    texts.reverse();
    grows || elapsed::grows(&texts)
}

/// Returns the sentence about a world that does not become quiet: a beginning, and the places that
/// the operator has updated from a change on.
pub(in crate::testing::explore) fn restless(
    text: &str,
    changes: &[RecordedChange],
    first: usize,
) -> String {
    let places = described(changes, first);
    if places.is_empty() {
        return text.to_owned();
    }
    format!(
        "{text}: {places}; write such a value only when another one changes, or as the time of its last change in the \
         form of RFC 3339, which is not compared"
    )
}

/// Returns the places that were updated last from a change on, each with its last values; empty
/// when the operator has updated none.
pub(in crate::testing::explore) fn described(changes: &[RecordedChange], first: usize) -> String {
    let mut places: BTreeMap<(&str, String), String> = BTreeMap::new();
    for FieldUpdate { key, shown, old, new, .. } in updates(changes, first) {
        // Values of Secrets are kept out of logs.
        let values = match state::resource_of(key) {
            "secrets" => String::new(),
            _ => format!(" was {} and is {}", state::short(old), state::short(new)),
        };
        places.insert((key, shown), values);
    }
    let count = places.len();
    let texts = places.into_iter().take(MOST_SHOWN);
    let texts: Vec<String> =
        texts.map(|((key, at), values)| format!("{at} of {key}{values}")).collect();
    let more =
        if count > MOST_SHOWN { format!("; {} more", count - MOST_SHOWN) } else { String::new() };
    texts.join("; ") + &more
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the course of an object in which a place has one value after the other.
    fn course(
        seconds: u64,
        values: &[Value],
        object: impl Fn(&Value) -> Value,
    ) -> Vec<RecordedChange> {
        let at = (0..).map(|number: u64| Duration::from_secs(number * seconds));
        let changes = values.iter().zip(at).enumerate();
        let changes = changes.map(|(number, (value, at))| {
            let verb = if number == 0 { "creates" } else { "updates" };
            let mut object = object(value);
            object["metadata"]["name"] = json!("a");
            RecordedChange::of_test("items", verb, object, at)
        });
        changes.collect()
    }

    fn status(value: &Value) -> Value {
        json!({ "status": { "age": value } })
    }

    fn is_learned(changes: &[RecordedChange]) -> bool {
        !learn(changes, 1).is_empty()
    }

    #[test]
    fn ages_countdowns_counters_and_unusual_times_are_renewed() {
        let forms = [
            [json!(30), json!(60), json!(90), json!(120)],
            [json!("30s"), json!("1m0s"), json!("1m30s"), json!("2m0s")],
            [json!("ends in 9h"), json!("ends in 8h"), json!("ends in 7h"), json!("ends in 6h")],
            [json!("0:59:30"), json!("1:00:00"), json!("1:00:30"), json!("1:01:00")],
            [
                json!("checked 2026-01-31 23:59:30"),
                json!("checked 2026-02-01 00:00:00"),
                json!("checked 2026-02-01 00:00:30"),
                json!("checked 2026-02-01 00:01:00"),
            ],
        ];
        for values in forms {
            let changes = course(30, &values, status);
            let expected = Masks::from([("items".to_owned(), ".status.age".to_owned())]);
            assert_eq!(learn(&changes, 1), expected, "{values:?}");
        }
    }

    #[test]
    fn what_is_no_report_or_goes_up_and_down_is_not_renewed() {
        let ages = [json!(30), json!(60), json!(90), json!(120)];
        assert!(!is_learned(&course(30, &ages, |age| json!({ "spec": { "replicas": age } }))));
        assert!(!is_learned(&course(0, &ages, status)), "an endless loop");
        assert!(!is_learned(&course(30, &ages[..3], status)), "the last steps towards an end");
        let fight = [json!(3), json!(5), json!(3), json!(5)];
        assert!(!is_learned(&course(30, &fight, status)));
        let words = [json!("one"), json!("two"), json!("one"), json!("two")];
        assert!(!is_learned(&course(30, &words, status)));
    }

    #[test]
    fn only_many_updates_of_one_object_without_a_pause_are_endless() {
        let values: Vec<Value> = (0..=BURST).map(|number| json!(number)).collect();
        let changes = course(0, &values, status);
        assert_eq!(endless(&changes), Some(1));
        assert_eq!(endless(&changes[..BURST - 1]), None);
        assert_eq!(endless(&course(1, &values, status)), None);
        let mut many = course(0, &values, status);
        let name = |number: usize| (String::new(), (number / 50).to_string());
        many.iter_mut().enumerate().for_each(|(number, change)| change.name = name(number));
        assert_eq!(endless(&many), None);
    }

    #[test]
    fn changed_places_are_told_with_their_last_values() {
        let changes = course(30, &[json!(3), json!(5), json!(3), json!(5)], status);
        assert_eq!(described(&changes, 1), ".status.age of items a was 3 and is 5");
        assert_eq!(described(&changes, 4), "");
    }
}
