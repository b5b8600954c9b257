//! Times at which the values of objects were written, and writes that show the passing of time
//! alone.

use std::collections::BTreeMap;

use serde_json::Value;

use super::readings::{Reading, Readings};

/// Seconds by which two times of one moment may differ, since objects show whole ones.
pub(super) const ROUNDING: f64 = 1.0;
/// Seconds that a number without a unit may stand for.
pub(super) const UNITS: [f64; 2] = [1.0, 1e-3];
/// Smallest growth by which a number without a unit follows the time: less is that of a counter.
const LEAST: f64 = 5.0;

/// Resource and key of an object.
type Id = (String, String);

/// Writes of a value.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Virtual seconds: of the first request that may have carried the last value, and of the
    /// write.
    pub(super) from: f64,
    pub(super) at: f64,
    /// Number of writes by which the value has followed the time, and the longest time between two.
    pub(super) ticks: usize,
    pub(super) longest: f64,
    /// Whether each write has raised the numbers in it by one at most.
    pub(super) is_counted: bool,
}

/// Times of the writes in a run.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct History {
    /// By object and path with positions.
    objects: BTreeMap<Id, BTreeMap<String, Written>>,
}

impl History {
    /// Notes a change of an object, or the creation of one where `before` is null. `sent` has the
    /// virtual seconds of the first request that may have carried it, and of the change.
    ///
    /// Returns whether the change shows the passing of time alone, as that of an age.
    pub(in crate::testing::explore) fn changed(
        &mut self,
        id: &Id,
        before: &Value,
        after: &Value,
        sent: (f64, f64),
    ) -> bool {
        let mut leaves = Vec::new();
        collect(before, after, "", &mut leaves);
        let written = self.objects.entry(id.clone()).or_default();
        let mut is_time = !leaves.is_empty();
        for (path, before, after) in leaves {
            let last = written.get(&path);
            let elapsed = last.map(|last| sent.1 - last.at);
            let is_tick = elapsed.is_some_and(|elapsed| is_tick(before, after, elapsed));
            is_time &= is_tick;
            let (ticks, longest, was_counted) =
                last.map_or((0, 0.0, true), |last| (last.ticks, last.longest, last.is_counted));
            let longest = if is_tick { longest.max(elapsed.unwrap_or(0.0)) } else { longest };
            let is_counted = was_counted && is_step(before, after);
            let ticks = ticks + usize::from(is_tick);
            let entry = Written { from: sent.0, at: sent.1, ticks, longest, is_counted };
            written.insert(path, entry);
        }
        is_time
    }

    /// Forgets an object that is gone.
    pub(in crate::testing::explore) fn removed(&mut self, id: &Id) {
        self.objects.remove(id);
    }

    /// Returns the writes of an object's values, by path.
    pub(super) fn of(&self, id: &Id) -> Option<&BTreeMap<String, Written>> {
        self.objects.get(id)
    }
}

/// A value that differs: its path, and both states.
type Leaf<'a> = (String, &'a Value, &'a Value);

/// Adds the values in which two states differ. The recursion is as deep as the states.
fn collect<'a>(before: &'a Value, after: &'a Value, path: &str, leaves: &mut Vec<Leaf<'a>>) {
    if before == after {
        return;
    }
    let null = &Value::Null;
    match (before, after) {
        (Value::Object(_) | Value::Null, Value::Object(fields)) => {
            let old = before.as_object();
            for (name, value) in fields {
                let before = old.and_then(|old| old.get(name)).unwrap_or(null);
                collect(before, value, &format!("{path}.{name}"), leaves);
            }
            for (name, value) in old.into_iter().flat_map(|old| old.iter()) {
                if !fields.contains_key(name) {
                    leaves.push((format!("{path}.{name}"), value, null));
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (before, after)) in old.iter().zip(new).enumerate() {
                collect(before, after, &format!("{path}[{at}]"), leaves);
            }
        }
        (Value::Null, Value::Array(new)) => {
            for (at, after) in new.iter().enumerate() {
                collect(null, after, &format!("{path}[{at}]"), leaves);
            }
        }
        _ => leaves.push((path.to_owned(), before, after)),
    }
}

/// Whether a value has grown, or fallen, by the time since its last write.
fn is_tick(before: &Value, after: &Value, elapsed: f64) -> bool {
    let (Some(old), Some(new)) = (Readings::of(before), Readings::of(after)) else { return false };
    let is_moved = |(old, new): (&Reading, &Reading)| {
        let growth = (new.value - old.value).abs();
        let is_near = |unit: f64, step: f64| (growth * unit - elapsed).abs() <= step + ROUNDING;
        match (old.step, new.step) {
            _ if old == new => true,
            (Some(old), Some(new)) => is_near(1.0, old.max(new)),
            (None, None) => growth >= LEAST && UNITS.iter().any(|unit| is_near(*unit, *unit)),
            _ => false,
        }
    };
    old.is_like(&new) && old.all.iter().zip(&new.all).all(is_moved)
}

/// Whether a write has raised the numbers of a value by one at most, or made the first of them.
fn is_step(before: &Value, after: &Value) -> bool {
    let Some(new) = Readings::of(after) else { return before.is_null() };
    let Some(old) = Readings::of(before) else {
        return before.is_null() && new.all.iter().all(|reading| reading.value.abs() <= 1.0);
    };
    let is_one = |(old, new): (&Reading, &Reading)| (0.0..=1.0).contains(&(new.value - old.value));
    old.is_like(&new)
        && old.all.iter().zip(&new.all).all(|pair| pair.1.step.is_some() || is_one(pair))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id() -> Id {
        ("items".to_owned(), "default/a".to_owned())
    }

    fn status(age: Value) -> Value {
        json!({ "status": { "age": age, "phase": "Ready" } })
    }

    #[test]
    fn a_value_that_grows_with_the_time_is_told_from_others() {
        for (first, second, third, are_ticks) in [
            (json!("0s"), json!("20s"), json!("40s"), true),
            (json!("0m"), json!("0m20s"), json!("0m40s"), true),
            (json!("10m"), json!("9m40s"), json!("9m20s"), true),
            (json!(0), json!(20), json!(40), true),
            (json!("up for 0s"), json!("up for 20s"), json!("up for 40s"), true),
            (json!(0), json!(1), json!(2), false),
            (json!("0s"), json!("5s"), json!("9s"), false),
            (json!("0s"), json!("late by 20s"), json!("late by 45s"), false),
        ] {
            let mut history = History::default();
            assert!(!history.changed(&id(), &Value::Null, &status(first.clone()), (1.0, 1.0)));
            let (first, second, third) = (status(first), status(second), status(third));
            let ticks = [
                history.changed(&id(), &first, &second, (21.0, 21.0)),
                history.changed(&id(), &second, &third, (41.0, 41.5)),
            ];
            assert_eq!(ticks, [are_ticks; 2], "{first} {second}");
            let written = &history.of(&id()).unwrap()[".status.age"];
            assert_eq!((written.from, written.at), (41.0, 41.5));
        }
    }

    #[test]
    fn a_change_beside_an_age_is_more_than_the_time() {
        let mut history = History::default();
        history.changed(&id(), &Value::Null, &status(json!("0s")), (1.0, 1.0));
        let mut other = status(json!("20s"));
        other["status"]["phase"] = json!("Failed");
        assert!(!history.changed(&id(), &status(json!("0s")), &other, (21.0, 21.0)));
    }

    #[test]
    fn numbers_that_are_raised_one_by_one_are_counted() {
        for (steps, is_counted) in
            [(vec![1, 2, 3], true), (vec![0, 1], true), (vec![1, 3], false), (vec![2, 1], false)]
        {
            let mut history = History::default();
            let mut before = Value::Null;
            for step in &steps {
                let after = status(json!(step));
                history.changed(&id(), &before, &after, (1.0, 1.0));
                before = after;
            }
            let written = &history.of(&id()).unwrap()[".status.age"];
            assert_eq!(written.is_counted, is_counted, "{steps:?}");
        }
    }
}
