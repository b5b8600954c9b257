//! One end as values are judged in it: its times, and when its values were written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Attempt, Facts};
use super::history::Written;
use super::names::{Names, Snapshot};
use super::readings::Readings;
use crate::testing::explore::state::{self, End};

/// Key of an object, and path with positions.
pub(super) type Place = (String, String);

/// An end with its facts, by the keys of ends.
#[derive(Debug)]
pub(super) struct Side {
    end: End,
    /// Virtual seconds of the end.
    pub(super) at: f64,
    /// Seconds since the start of the run.
    pub(super) instants: BTreeMap<Place, f64>,
    written: BTreeMap<Place, Written>,
    pub(super) attempts: BTreeMap<Attempt, usize>,
    pub(super) caused: usize,
    /// Plural, namespace and name, by key.
    objects: BTreeMap<String, [String; 3]>,
}

impl Side {
    /// Returns the side of a run.
    pub(super) fn of(names: &Names, snapshot: &Snapshot) -> Self {
        let Facts { at, history, instants, attempts, caused } = &snapshot.facts;
        let mut side = Self {
            end: names.end(snapshot),
            at: at.as_secs_f64(),
            instants: BTreeMap::new(),
            written: BTreeMap::new(),
            attempts: attempts.clone(),
            caused: *caused,
            objects: BTreeMap::new(),
        };
        for (id, object) in &snapshot.objects {
            let key = names.key_in(snapshot, &id.0, object);
            let place = |path: &String| (key.clone(), path.clone());
            let times = instants.get(id).into_iter().flatten();
            side.instants.extend(times.map(|(path, time)| (place(path), *time)));
            let written = history.of(id).into_iter().flatten();
            side.written.extend(written.map(|(path, written)| (place(path), written.clone())));
            let (namespace, name) = id.1.split_once('/').unwrap_or_default();
            let plural = id.0.split('.').next().unwrap_or_default();
            side.objects.insert(key, [plural, namespace, name].map(str::to_owned));
        }
        side
    }

    /// Returns the writes of a value.
    pub(super) fn written(&self, place: &Place) -> Option<&Written> {
        self.written.get(place)
    }

    /// Returns the earliest and the latest second of an instant; `None` is the write of a value.
    pub(super) fn instant(&self, instant: Option<&Place>, place: &Place) -> Option<(f64, f64)> {
        match instant {
            Some(instant) => self.instants.get(instant).map(|at| (*at, *at)),
            None => self.written(place).map(|written| (written.from, written.at)),
        }
    }

    /// Returns the numbers of all values.
    pub(super) fn readings(&self) -> Vec<(Place, Readings)> {
        let mut found = Vec::new();
        for (key, states) in &self.end {
            if let [state] = states.as_slice()
                && state::resource_of(key) != "secrets"
            {
                add_readings(state, key, "", &mut found);
            }
        }
        found
    }

    /// Returns the numbers of a value.
    pub(super) fn reading(&self, place: &Place) -> Option<Readings> {
        reading(&self.end, place)
    }

    /// Returns a value as findings show it.
    pub(super) fn shown(&self, place: &Place) -> String {
        leaf(&self.end, place).map(Value::to_string).unwrap_or_default()
    }

    /// Whether an attempt is a write of an object.
    pub(super) fn is_of(&self, attempt: &Attempt, key: &str) -> bool {
        let [_, plural, _, namespace, name] = attempt;
        self.objects
            .get(key)
            .is_some_and(|[of, within, called]| (of, within, called) == (plural, namespace, name))
    }
}

fn add_readings(value: &Value, key: &str, path: &str, found: &mut Vec<(Place, Readings)>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| add_readings(field, key, &format!("{path}.{name}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, item)| add_readings(item, key, &format!("{path}[{at}]"), found)),
        leaf => found.extend(
            Readings::of(leaf).map(|readings| ((key.to_owned(), path.to_owned()), readings)),
        ),
    }
}

/// Returns the numbers of a value of an end.
pub(super) fn reading(end: &End, place: &Place) -> Option<Readings> {
    if state::resource_of(&place.0) == "secrets" {
        return None;
    }
    Readings::of(leaf(end, place)?)
}

/// Returns a value of an object that is alone with its key.
fn leaf<'a>(end: &'a End, place: &Place) -> Option<&'a Value> {
    let [state] = end.get(&place.0)?.as_slice() else { return None };
    follow(state, &place.1)
}

/// Follows a path. Names may have dots of their own; the recursion is as deep as the value.
fn follow<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(fields) => {
            let path = path.strip_prefix('.')?;
            let is_whole = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
            fields.iter().find_map(|(name, field)| {
                let rest = path.strip_prefix(name.as_str()).filter(|rest| is_whole(rest))?;
                follow(field, rest)
            })
        }
        Value::Array(items) => {
            let (at, rest) = path.strip_prefix('[')?.split_once(']')?;
            follow(items.get(at.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}
