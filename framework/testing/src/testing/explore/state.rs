//! Objects as runs are compared by them: without what differs between any two runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::setting::EPOCHS;

/// Annotation that a disturbance writes; it counts in no comparison.
pub(super) const EDIT: &str = "explore.windlass.dev/edit";
/// Resource of the states of systems outside of Kubernetes.
pub(super) const OUTSIDE: &str = "external";
/// Fields that differ between runs, or that count writes.
const VARYING: [&str; 9] = [
    "uid",
    "resourceVersion",
    "managedFields",
    "generation",
    "observedGeneration",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    EDIT,
];

/// The words for what is not there.
const ABSENT: &str = "absent";
/// Digits of a time in seconds.
const SECONDS: usize = 10;
/// Most seconds of virtual time that a run takes.
const LONGEST_RUN: i64 = 7 * 24 * 3600;

/// The objects of a run's end: by key without names that vary, all states that have this key.
pub(super) type End = BTreeMap<String, Vec<Value>>;

/// Returns an object without the fields that differ between runs; times are replaced by a mark.
pub(super) fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    strip(&mut object);
    if let Some(name) =
        object["metadata"]["generateName"].as_str().map(|prefix| format!("{prefix}*"))
    {
        object["metadata"]["name"] = json!(name);
    }
    let is_empty =
        object["metadata"]["annotations"].as_object().is_some_and(serde_json::Map::is_empty);
    if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| is_empty) {
        metadata.remove("annotations");
    }
    object
}

/// Removes the fields that differ; the recursion is as deep as the object.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !VARYING.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::String(text) if is_time(text) => "<time>".clone_into(text),
        Value::Number(number) if number.as_i64().is_some_and(is_now) => *value = json!("<time>"),
        _ => {}
    }
}

/// Whether a text is a time: in the form of RFC 3339, or as a number since 1970 that is about now.
fn is_time(text: &str) -> bool {
    if !text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    (is_dated(text) && text.parse::<jiff::Timestamp>().is_ok())
        || (text.len() >= SECONDS && text.parse().is_ok_and(is_now))
}

/// Whether a number is a time of a run: seconds, milliseconds, microseconds or nanoseconds.
fn is_now(number: i64) -> bool {
    let is_near = |epoch: i64| {
        let units = [1, 1_000, 1_000_000, 1_000_000_000];
        units.iter().any(|unit| (epoch..epoch + LONGEST_RUN).contains(&(number / unit)))
    };
    EPOCHS.into_iter().any(is_near)
}

/// Whether a text may be a time; parsing every text would take longer than all else.
fn is_dated(text: &str) -> bool {
    text.len() >= 20
}

/// Returns the key of an object: resource, namespace and name, the name without its generated part.
pub(super) fn key(resource: &str, object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (namespace, prefix) = (text("namespace"), text("generateName"));
    let name = if prefix.is_empty() { text("name").to_owned() } else { format!("{prefix}*") };
    if namespace.is_empty() {
        format!("{resource} {name}")
    } else {
        format!("{resource} {namespace}/{name}")
    }
}

/// Returns the resource of a key.
pub(super) fn resource_of(key: &str) -> &str {
    key.split(' ').next().unwrap_or_default()
}

/// Places that differ between undisturbed runs: resource and path, positions in lists left out. The
/// path ends with [`OPTIONAL`] where it is absent in one of them.
pub(super) type Masks = BTreeSet<(String, String)>;

/// End of the path of a place that may be absent.
const OPTIONAL: &str = "?";

/// A place in which two ends differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateDifference {
    pub(super) key: String,
    /// Path without positions in lists; empty for the whole object.
    pub(super) path: String,
    /// The sentence that tells it.
    pub(super) text: String,
    /// Both values, as the sentence shows them.
    pub(super) sides: [String; 2],
}

/// Returns the places in which two ends differ, masked ones left out.
pub(super) fn differences(expected: &End, found: &End, masks: &Masks) -> Vec<StateDifference> {
    let mut differences = Vec::new();
    let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let side = |end: &'_ End| end.get(key).cloned().unwrap_or_default();
        let (old, new) = (side(expected), side(found));
        if old.len() == new.len() {
            differences_of(key, &old, &new, masks, &mut differences);
            continue;
        }
        let (new, old) = (count(new.len()), count(old.len()));
        let text = format!("{key}: {new} at the end, {old} in the undisturbed run");
        differences.push(StateDifference {
            key: key.clone(),
            path: String::new(),
            text,
            sides: Default::default(),
        });
    }
    differences
}

/// Adds the places in which as many objects of one key differ.
fn differences_of(
    key: &str,
    old: &[Value],
    new: &[Value],
    masks: &Masks,
    differences: &mut Vec<StateDifference>,
) {
    // Several objects of one key are told apart by what does not vary.
    let sorted = |states: &[Value]| {
        let mut states: Vec<Value> = states.iter().map(|state| masked(key, state, masks)).collect();
        states.sort_by_cached_key(Value::to_string);
        states
    };
    let resource = resource_of(key);
    for (old, new) in sorted(old).iter().zip(&sorted(new)) {
        let mut places = Vec::new();
        compare(old, new, "", "", &mut places);
        let places = places.into_iter();
        let mut places: Vec<(String, String, String, String)> =
            places.map(|(path, shown, old, new)| (path, shown, short(old), short(new))).collect();
        places.retain(|(path, _, old, new)| !is_masked(masks, resource, path, [old, new]));
        differences.extend(places.into_iter().map(|(path, shown, old, new)| {
            let text = match resource {
                // Its values are kept out of logs.
                "secrets" => format!("{key}: {shown} is another than in the undisturbed run"),
                _ => format!("{key}: {shown} is {new}, and {old} in the undisturbed run"),
            };
            StateDifference { key: key.to_owned(), path, text, sides: [old, new] }
        }));
    }
}

impl StateDifference {
    /// Adds the masks of what undisturbed runs differ in.
    pub(super) fn mask(&self, masks: &mut Masks) {
        let resource = resource_of(&self.key);
        masks.insert((resource.to_owned(), self.path.clone()));
        if self.sides.iter().any(|side| side == ABSENT) {
            masks.insert((resource.to_owned(), format!("{}{OPTIONAL}", self.path)));
        }
    }
}

/// Whether a difference is one that undisturbed runs have, too.
fn is_masked(masks: &Masks, resource: &str, path: &str, sides: [&String; 2]) -> bool {
    let is_absent = sides.iter().any(|side| *side == ABSENT);
    let optional = if is_absent { OPTIONAL } else { "" };
    masks.contains(&(resource.to_owned(), format!("{path}{optional}")))
}

fn count(number: usize) -> String {
    match number {
        0 => ABSENT.to_owned(),
        1 => "one object".to_owned(),
        more => format!("{more} objects"),
    }
}

/// A place: its path without and with positions, and both values.
pub(super) type FieldDifference<'a> = (String, String, &'a Value, &'a Value);

/// Adds the places in which two values differ. The recursion is as deep as the values.
pub(super) fn compare<'a>(
    old: &'a Value,
    new: &'a Value,
    path: &str,
    shown: &str,
    places: &mut Vec<FieldDifference<'a>>,
) {
    const MISSING: &Value = &Value::Null;
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let (path, shown) = (format!("{path}.{name}"), format!("{shown}.{name}"));
                let (left, right) = (left.get(name), right.get(name));
                let (left, right) = (left.unwrap_or(MISSING), right.unwrap_or(MISSING));
                compare(left, right, &path, &shown, places);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                let (path, shown) = (format!("{path}[]"), format!("{shown}[{index}]"));
                compare(left, right, &path, &shown, places);
            }
        }
        _ => places.push((path.to_owned(), shown.to_owned(), old, new)),
    }
}

/// Returns a value as findings show it, 120 characters at most.
pub(super) fn short(value: &Value) -> String {
    if value.is_null() {
        return ABSENT.to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns an object without masked places, for the comparison of single writes.
pub(super) fn masked(key: &str, object: &Value, masks: &Masks) -> Value {
    let mut object = object.clone();
    mask(&mut object, "", resource_of(key), masks);
    object
}

fn mask(value: &mut Value, path: &str, resource: &str, masks: &Masks) {
    if masks.contains(&(resource.to_owned(), path.to_owned())) {
        *value = json!("<varies>");
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                mask(value, &format!("{path}.{name}"), resource, masks);
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| mask(item, &format!("{path}[]"), resource, masks));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, uid: &str) -> Value {
        json!({"metadata": {"name": name, "generateName": "a-", "namespace": "default", "uid": uid,
            "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"node": "x"}})
    }

    fn one(object: Value) -> End {
        End::from([(key("pods", &object), vec![comparable(&object)])])
    }

    #[test]
    fn uids_times_and_generated_names_are_no_difference() {
        let (left, mut right) = (pod("a-1", "u1"), pod("a-2", "u2"));
        right["metadata"]["creationTimestamp"] = json!("2026-01-01T00:05:00Z");
        assert_eq!(differences(&one(left), &one(right), &Masks::new()), []);
    }

    #[test]
    fn times_as_numbers_are_no_difference() {
        let (mut left, mut right) = (pod("a-1", "u"), pod("a-1", "u"));
        left["status"] = json!({ "at": EPOCHS[0] + 5, "text": "1767225607123", "size": 8080 });
        right["status"] = json!({ "at": EPOCHS[1], "text": "1767225609999", "size": 8080 });
        assert_eq!(differences(&one(left.clone()), &one(right), &Masks::new()), []);
        left["status"]["size"] = json!(1_767_225);
        let found = differences(&one(pod("a-1", "u")), &one(left), &Masks::new());
        assert!(found.iter().any(|difference| difference.text.contains("1767225,")), "{found:?}");
    }

    #[test]
    fn a_difference_is_told_by_path_unless_it_is_masked() {
        let (left, mut right) = (pod("a-1", "u"), pod("a-1", "u"));
        right["spec"]["node"] = json!("y");
        let found = differences(&one(left.clone()), &one(right.clone()), &Masks::new());
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].text,
            r#"pods default/a-*: .spec.node is "y", and "x" in the undisturbed run"#
        );
        let mut masks = Masks::new();
        found[0].mask(&mut masks);
        assert_eq!(differences(&one(left.clone()), &one(right.clone()), &masks), []);
        // A place whose value varies must still be there.
        right["spec"] = json!({});
        let found = differences(&one(left.clone()), &one(right.clone()), &masks);
        assert_eq!(found.len(), 1);
        found[0].mask(&mut masks);
        assert_eq!(differences(&one(left), &one(right), &masks), []);
    }

    #[test]
    fn a_missing_object_is_told_once() {
        let found = differences(&one(pod("a-1", "u")), &End::new(), &Masks::new());
        assert_eq!(
            found[0].text,
            "pods default/a-*: absent at the end, one object in the undisturbed run"
        );
    }
}
