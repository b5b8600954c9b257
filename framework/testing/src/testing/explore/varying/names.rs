//! Names that differ from run to run: uids, generated names, and names that the operator makes from
//! random numbers or from the time. Ends are compared without them, and a reference to an object
//! that is gone stays another text than one to an object that exists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::pattern::NamePattern;
use crate::testing::explore::state::{self, End};

/// Length of a uid.
const UID: usize = 36;
/// Places of its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// End of the words for the uid of an object that is gone.
const GONE: &str = ", gone";
/// Shortest name that is looked for within other texts.
const SHORTEST_NAME: usize = 5;

/// The objects of a moment, and the uids until then.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct Snapshot {
    /// By resource and key.
    pub(in crate::testing::explore) objects: BTreeMap<(String, String), Value>,
    pub(in crate::testing::explore) uids: Uids,
}

/// Objects by uid.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct Uids {
    known: BTreeMap<String, NamedObject>,
}

/// An object of a uid.
#[derive(Clone, Debug)]
struct NamedObject {
    key: String,
    is_alive: bool,
    generation: i64,
}

impl Uids {
    /// Notes an object that exists or has just been deleted.
    pub(in crate::testing::explore) fn note(&mut self, object: &Value, key: &str, is_alive: bool) {
        if let Some(uid) = object["metadata"]["uid"].as_str().filter(|uid| uid.len() == UID) {
            let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
            self.known
                .insert(uid.to_owned(), NamedObject { key: key.to_owned(), is_alive, generation });
        }
    }

    /// Returns a text with words in place of uids; `None` when it has no known uid.
    pub(in crate::testing::explore) fn masked(&self, text: &str) -> Option<String> {
        self.masked_with(text, "")
    }

    /// Returns a text with words in place of uids, which those of gone objects end with.
    fn masked_with(&self, text: &str, gone: &str) -> Option<String> {
        if text.len() < UID {
            return None;
        }
        let mut masked = String::new();
        let (mut rest, mut is_changed) = (text, false);
        while let Some(next) = rest.chars().next() {
            if let Some(NamedObject { key, is_alive, .. }) =
                uid_at(rest).and_then(|uid| self.known.get(uid))
            {
                let gone = if *is_alive { "" } else { gone };
                masked.push_str(&format!("<uid of {key}{gone}>"));
                rest = &rest[UID..];
                is_changed = true;
            } else {
                masked.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        is_changed.then_some(masked)
    }

    /// Whether two numbers are generations of one object, before and after a replacement.
    pub(in crate::testing::explore) fn are_generations(
        &self,
        old: i64,
        other: &Self,
        new: i64,
    ) -> bool {
        let alive = |uids: &Self, generation: i64| -> BTreeSet<String> {
            let alive = uids.known.values().filter(|known| known.is_alive);
            alive.filter(|known| known.generation == generation).map(|it| it.key.clone()).collect()
        };
        new < old && !alive(self, old).is_disjoint(&alive(other, new))
    }

    /// Replaces the uids in all texts of a value, those of gone objects by other words.
    fn mask(&self, value: &mut Value) {
        rewrite(value, &|text| self.masked_with(text, GONE));
    }
}

/// Returns the uid that a text begins with.
fn uid_at(text: &str) -> Option<&str> {
    let uid = text.get(..UID)?;
    let is_shaped = |(at, byte): (usize, u8)| match HYPHENS.contains(&at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    uid.bytes().enumerate().all(is_shaped).then_some(uid)
}

/// Replaces texts of a value, and names of its fields. The recursion is as deep as the value.
pub(in crate::testing::explore) fn rewrite(
    value: &mut Value,
    replace: &dyn Fn(&str) -> Option<String>,
) {
    match value {
        Value::String(text) => {
            if let Some(other) = replace(text) {
                *text = other;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, replace)),
        Value::Object(fields) => {
            let others: Vec<(String, String)> =
                fields.keys().filter_map(|name| Some((name.clone(), replace(name)?))).collect();
            for (name, other) in others {
                if let Some(value) = fields.remove(&name) {
                    fields.insert(unused(fields, other), value);
                }
            }
            fields.values_mut().for_each(|field| rewrite(field, replace));
        }
        _ => {}
    }
}

/// Returns a name that no field has.
fn unused(fields: &Map<String, Value>, mut name: String) -> String {
    while fields.contains_key(&name) {
        name.push('\'');
    }
    name
}

/// The patterns of names that differ between undisturbed runs.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct VaryingNames {
    /// By the part of a key before the name, or by resource and path for names of fields.
    patterns: BTreeMap<String, BTreeSet<NamePattern>>,
    /// Whether numbers of systems outside of Kubernetes vary, too.
    is_unnumbered: bool,
}

impl VaryingNames {
    /// Adds what tells the names of two undisturbed runs from each other.
    pub(in crate::testing::explore) fn learn(&mut self, first: &Snapshot, other: &Snapshot) {
        let names = |end: &End, other: &End| -> Vec<String> {
            end.keys().filter(|key| !other.contains_key(*key)).cloned().collect()
        };
        let (old, new) = (self.end(first), self.end(other));
        self.learn_from(&names(&old, &new), &names(&new, &old), split_key);
        // The objects that have one key by now show which fields have such names.
        let (old, new) = (self.end(first), self.end(other));
        for (key, states) in &old {
            let others = new.get(key).map(Vec::as_slice).unwrap_or_default();
            for (state, other) in states.iter().zip(others) {
                self.learn_fields(state, other, state::resource_of(key), "");
            }
        }
    }

    /// Adds the patterns of names that only one run has each, where `split` gives the place.
    fn learn_from(
        &mut self,
        old: &[String],
        new: &[String],
        split: impl Fn(&str) -> (String, String),
    ) {
        for name in old {
            let (place, name) = split(name);
            let others = new.iter().map(|other| split(other)).filter(|(there, _)| *there == place);
            let found = others.filter_map(|(_, other)| NamePattern::of(&name, &other));
            let best = found.max_by_key(NamePattern::fixed);
            self.patterns.entry(place).or_default().extend(best);
        }
    }

    /// Adds the patterns of the names of fields. The recursion is as deep as the values.
    fn learn_fields(&mut self, old: &Value, new: &Value, resource: &str, path: &str) {
        match (old, new) {
            (Value::Object(left), Value::Object(right)) => {
                let only = |fields: &Map<String, Value>, others: &Map<String, Value>| {
                    let names = fields.keys().filter(|name| !others.contains_key(*name));
                    names.cloned().collect::<Vec<String>>()
                };
                let place = field_place(resource, path);
                let split = |name: &str| (place.clone(), name.to_owned());
                self.learn_from(&only(left, right), &only(right, left), split);
                for (name, value) in left {
                    if let Some(other) = right.get(name) {
                        self.learn_fields(value, other, resource, &format!("{path}.{name}"));
                    }
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                for (value, other) in left.iter().zip(right) {
                    self.learn_fields(value, other, resource, &format!("{path}[]"));
                }
            }
            _ => {}
        }
    }

    /// Returns the same names, where numbers of systems outside of Kubernetes vary, too: such as
    /// ids that are counted on.
    pub(in crate::testing::explore) fn unnumbered(&self) -> Self {
        Self { is_unnumbered: true, ..self.clone() }
    }

    /// Returns a name without the parts that vary at a place.
    fn masked(&self, place: &str, name: &str) -> Option<String> {
        if self.is_unnumbered && is_outside(place) {
            let is_digit = |sign: char| sign.is_ascii_digit();
            let masked = name.split(is_digit).filter(|part| !part.is_empty());
            return name.contains(is_digit).then(|| masked.collect::<Vec<_>>().join("*") + "*");
        }
        let patterns = self.patterns.get(place)?;
        patterns.iter().find(|pattern| pattern.matches(name)).map(NamePattern::to_string)
    }

    /// Returns a key without the parts of its name that vary.
    pub(in crate::testing::explore) fn key(&self, key: &str) -> String {
        let (place, name) = split_key(key);
        self.masked(&place, &name)
            .map_or_else(|| key.to_owned(), |masked| format!("{place}{masked}"))
    }

    /// Returns the objects of an end as they are stored, by the keys of [`end`](Self::end).
    pub(in crate::testing::explore) fn stored(&self, snapshot: &Snapshot) -> End {
        let mut end = End::new();
        for ((resource, _), object) in &snapshot.objects {
            let key = state::key(resource, object);
            let key = snapshot.uids.masked_with(&key, GONE).unwrap_or(key);
            end.entry(self.key(&key)).or_default().push(object.clone());
        }
        end
    }

    /// Returns the end that ends of other runs are compared with.
    pub(in crate::testing::explore) fn end(&self, snapshot: &Snapshot) -> End {
        let mut end = End::new();
        let mut states = Vec::new();
        // Raw names of existing objects, with what they become in all texts.
        let mut raw: BTreeMap<String, String> = BTreeMap::new();
        for ((resource, id), object) in &snapshot.objects {
            let mut object = object.clone();
            snapshot.uids.mask(&mut object);
            let stored = state::key(resource, &object);
            let key = self.key(&stored);
            let name = id.rsplit('/').next().unwrap_or_default();
            let masked = split_key(&key).1;
            if (name.len() >= SHORTEST_NAME && masked.ends_with('*')) || key != stored {
                raw.insert(name.to_owned(), format!("<{masked}>"));
            }
            if self.varies_in(state::resource_of(&key)) {
                self.fold(&mut object, state::resource_of(&key), "", &mut raw);
            }
            states.push((key, object));
        }
        let longest_first = |(name, _): &(String, String)| std::cmp::Reverse(name.len());
        let mut raw: Vec<(String, String)> = raw.into_iter().collect();
        raw.sort_by_key(longest_first);
        for (key, mut object) in states {
            rewrite(&mut object, &|text| replaced(text, &raw));
            end.entry(key).or_default().push(object);
        }
        end
    }

    /// Whether names of fields vary in a resource.
    fn varies_in(&self, resource: &str) -> bool {
        let mut places = self.patterns.keys().filter_map(|place| place.strip_prefix(resource));
        places.any(|path| path.starts_with(" .")) || (self.is_unnumbered && is_outside(resource))
    }

    /// Puts the fields of one pattern into a list, in place of fields with names that vary. The
    /// recursion is as deep as the value.
    fn fold(
        &self,
        value: &mut Value,
        resource: &str,
        path: &str,
        raw: &mut BTreeMap<String, String>,
    ) {
        match value {
            Value::Object(fields) => {
                let place = field_place(resource, path);
                let masked = |name: &String| Some((name.clone(), self.masked(&place, name)?));
                let varying: Vec<(String, String)> = fields.keys().filter_map(masked).collect();
                for (name, masked) in varying {
                    let Some(value) = fields.remove(&name) else { continue };
                    raw.insert(name, format!("<{masked}>"));
                    let list = fields.entry(masked).or_insert_with(|| Value::Array(Vec::new()));
                    list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
                }
                for (name, field) in fields {
                    self.fold(field, resource, &format!("{path}.{name}"), raw);
                }
            }
            Value::Array(items) => {
                let path = format!("{path}[]");
                items.iter_mut().for_each(|item| self.fold(item, resource, &path, raw));
            }
            Value::Number(_) if self.is_unnumbered && is_outside(resource) => *value = Value::Null,
            _ => {}
        }
    }
}

/// Whether a place is in a system outside of Kubernetes.
fn is_outside(place: &str) -> bool {
    state::resource_of(place) == state::OUTSIDE
}

/// Returns the part of a key before the name, and the name.
fn split_key(key: &str) -> (String, String) {
    // The words for a uid have blanks and slashes of their own.
    let words = key.find('<').unwrap_or(key.len());
    let at = key[..words].rfind(['/', ' ']).map_or(0, |at| at + 1);
    (key[..at].to_owned(), key[at..].to_owned())
}

fn field_place(resource: &str, path: &str) -> String {
    format!("{resource} {path}.")
}

/// Returns a text with other words for the names in it.
fn replaced(text: &str, raw: &[(String, String)]) -> Option<String> {
    let mut masked: Option<String> = None;
    for (name, words) in raw {
        let now = masked.as_deref().unwrap_or(text);
        if now.len() >= name.len() && now.contains(name.as_str()) {
            masked = Some(now.replace(name.as_str(), words));
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::explore::state::{Masks, comparable, differences};

    const OLD: &str = "11111111-1111-4111-8111-111111111111";
    const NEW: &str = "22222222-2222-4222-8222-222222222222";

    fn snapshot(objects: &[(&str, Value)], gone: &[(&str, &str)]) -> Snapshot {
        let mut found = Snapshot::default();
        for (uid, key) in gone {
            found.uids.note(&json!({ "metadata": { "uid": uid } }), key, false);
        }
        for (resource, object) in objects {
            found.uids.note(object, &state::key(resource, object), true);
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            found
                .objects
                .insert(((*resource).to_owned(), format!("default/{name}")), comparable(object));
        }
        found
    }

    fn volume(uid: &str) -> [(&'static str, Value); 2] {
        let item = json!({ "metadata": { "namespace": "default", "name": "a", "uid": uid } });
        let map = json!({
            "metadata": { "namespace": "default", "name": format!("vol-{uid}") },
            "data": { uid: "1" },
        });
        [("items", item), ("configmaps", map)]
    }

    #[test]
    fn a_name_with_the_uid_of_an_object_is_the_same_in_each_run() {
        let names = VaryingNames::default();
        let one = names.end(&snapshot(&volume(OLD), &[]));
        let other = names.end(&snapshot(&volume(NEW), &[(OLD, "items default/a")]));
        assert_eq!(differences(&one, &other, &Masks::new()), []);
    }

    #[test]
    fn a_name_with_the_uid_of_an_object_that_is_gone_is_another_one() {
        let mut objects = volume(NEW).to_vec();
        objects.push(volume(OLD)[1].clone());
        let gone = snapshot(&objects, &[(OLD, "items default/a")]);
        let names = VaryingNames::default();
        let one = names.end(&snapshot(&volume(NEW), &[]));
        let found = differences(&one, &names.end(&gone), &Masks::new());
        assert_eq!(found.len(), 1, "{found:?}");
        let text = "configmaps default/vol-<uid of items default/a, gone>: one object at the end";
        assert!(found[0].text.starts_with(text), "{found:?}");
    }

    fn member(name: &str, recorded: &str) -> [(&'static str, Value); 2] {
        let status = json!({ "member": recorded, "ids": { name: "x" } });
        let item = json!({ "metadata": { "namespace": "default", "name": "a" }, "status": status });
        let member = json!({ "metadata": { "namespace": "default", "name": name } });
        [("items", item), ("configmaps", member)]
    }

    #[test]
    fn names_that_the_operator_draws_are_learnt_and_a_lost_one_is_told() {
        let first = snapshot(&member("a-3fc2b1", "a-3fc2b1"), &[]);
        let mut names = VaryingNames::default();
        names.learn(&first, &snapshot(&member("a-90ab12", "a-90ab12"), &[]));
        let expected = names.end(&first);
        let found = |objects: &[(&str, Value)]| {
            differences(&expected, &names.end(&snapshot(objects, &[])), &Masks::new())
        };
        assert_eq!(found(&member("a-7e7e7e", "a-7e7e7e")), []);
        let lost = found(&member("a-7e7e7e", "a-111111"));
        assert_eq!(lost[0].path, ".status.member", "{lost:?}");
        let mut twice = member("a-7e7e7e", "a-7e7e7e").to_vec();
        twice.push(member("a-444444", "")[1].clone());
        let twice = found(&twice);
        assert_eq!(
            twice[0].text,
            "configmaps default/a-*: 2 objects at the end, one object in the undisturbed run"
        );
    }

    #[test]
    fn a_reference_to_a_generated_name_is_lost_when_another_object_has_been_made() {
        let states = |name: &str, recorded: &str| {
            let mut objects = member(name, recorded);
            objects[1].1["metadata"]["generateName"] = json!("a-");
            objects[0].1["status"]["ids"] = json!({});
            VaryingNames::default().end(&snapshot(&objects, &[]))
        };
        let expected = states("a-x7k2p", "a-x7k2p");
        let same = states("a-bbbbb", "a-bbbbb");
        assert_eq!(differences(&expected, &same, &Masks::new()), []);
        assert_eq!(differences(&expected, &states("a-bbbbb", "a-ccccc"), &Masks::new()).len(), 1);
    }
}
