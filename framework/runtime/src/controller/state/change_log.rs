//! Log of the writes of a controller's reconciles: the write, the object, the reasons, and the
//! differences from the state before.
//!
//! Off by default: the state before a write is read from the caches and compared with the answer,
//! which costs more than the rest of a reconcile that writes. Everything is bounded: the records
//! that are kept, the paths of a record, the text of a value. Values of Secrets never leave this
//! module.

// DESIGN.md, 157: Writes are logged where their answers arrive

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU8, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use windlass_core::resource::{ObjectKey, ResourceInfo};
use windlass_core::text::shorten;

/// Most records that are kept.
const RECORDS: usize = 256;
/// Most paths of a record.
const PATHS: usize = 32;
/// Most bytes of a value's text.
const VALUE_LIMIT: usize = 128;
/// Most paths with values, and most bytes of a value, in a report of few writes.
pub(crate) const MANY_PATHS: usize = 512;
const LONG_VALUE: usize = 1024;
/// Text instead of a value of a Secret.
const MASK: &str = "***";
/// Members of `metadata` that the API server writes.
const SERVER_METADATA: [&str; 6] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
/// Members by which the items of a list are distinguished, in this order.
const ITEM_NAMES: [&str; 2] = ["name", "type"];

/// Detail in which the writes of a controller are logged.
///
/// The lines have the level info and the target `windlass::changes`, inside of the span of the
/// reconcile, which names the controller, the object and the reasons. The debug page shows the
/// last 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeLog {
    /// Nothing is logged. The default.
    #[default]
    Off,
    /// Each write with the paths that differ from before.
    Summary,
    /// As `Summary`, with the values before and after. Values of Secrets and of
    /// `ControllerRevision`s are masked; others may be confidential, too.
    Full,
}

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRecord {
    pub(crate) at: Timestamp,
    /// The reconciled object.
    pub(crate) owner: ObjectKey,
    /// Reasons of the reconcile.
    pub(crate) reasons: Vec<String>,
    pub(crate) verb: &'static str,
    /// Group and resource of the written object.
    pub(crate) resource: String,
    pub(crate) key: ObjectKey,
    /// Differences; all of the object when the object did not exist or is not cached.
    pub(crate) changes: Vec<FieldChange>,
    /// Number of further differences.
    pub(crate) more: usize,
    /// Whether the state before is known.
    pub(crate) is_compared: bool,
}

/// A difference at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldChange {
    pub(crate) path: String,
    /// Values before and after; `None` for none, and for all in a summary.
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    /// [`hash`] of the whole value after, of which `to` may be the beginning; 0 outside of
    /// [`every_difference`].
    pub(crate) hash: u64,
}

/// The last writes of a controller.
#[derive(Debug, Default)]
pub(crate) struct Changelog {
    /// A [`ChangeLog`] as a number. Set before the controller runs, so the order of accesses does
    /// not matter.
    detail: AtomicU8,
    records: Mutex<VecDeque<ChangeRecord>>,
}

impl Changelog {
    pub(crate) fn new(detail: ChangeLog) -> Self {
        let log = Self::default();
        log.set(detail);
        log
    }

    /// Sets the detail.
    pub(crate) fn set(&self, detail: ChangeLog) {
        self.detail.store(detail as u8, Ordering::Relaxed);
    }

    pub(crate) fn detail(&self) -> ChangeLog {
        match self.detail.load(Ordering::Relaxed) {
            0 => ChangeLog::Off,
            1 => ChangeLog::Summary,
            _ => ChangeLog::Full,
        }
    }

    /// Logs a record, and keeps it.
    pub(crate) fn add(&self, record: ChangeRecord) {
        let object = format!("{} {}", record.resource, record.key);
        tracing::info!(target: "windlass::changes", verb = record.verb, object, "{}", record.text());
        self.keep(record);
    }

    /// Keeps a record in place of the oldest, without a line in the log.
    pub(crate) fn keep(&self, record: ChangeRecord) {
        let mut records = self.records.lock();
        if records.len() == RECORDS {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// Returns at most `limit` records, the newest first.
    pub(crate) fn snapshot(&self, limit: usize) -> Vec<ChangeRecord> {
        self.records.lock().iter().rev().take(limit).cloned().collect()
    }
}

impl ChangeRecord {
    /// The differences in a line.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for change in &self.changes {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}{}", change.path);
            if change.from.is_some() || change.to.is_some() {
                let shown =
                    |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
                let _ = write!(text, ": {} -> {}", shown(&change.from), shown(&change.to));
            }
        }
        if self.more > 0 {
            let _ = write!(text, "; and {} more", self.more);
        }
        if !text.is_empty() {
            return text;
        }
        // A call of a subresource is not compared, and a deletion leaves nothing to compare.
        let text = match self.verb {
            "delete" | "deletecollection" => "deleted",
            _ if self.resource.contains('/') => "requested",
            _ => "no difference",
        };
        text.to_owned()
    }
}

/// Whether the values of a kind's objects are masked: of Secrets, and of revisions, whose data are
/// whole states of other objects, Secrets among them.
pub(crate) fn is_confidential(group: &str, plural: &str) -> bool {
    matches!((group, plural), ("", "secrets") | ("apps", "controllerrevisions"))
}

/// Returns the differences of two states of an object of that kind, at most [`PATHS`], and the
/// number of further differences.
pub(crate) fn differences(
    info: &ResourceInfo,
    (before, after): (Option<&Value>, &Value),
    detail: ChangeLog,
) -> (Vec<FieldChange>, usize) {
    let is_secret = is_confidential(&info.group, &info.plural);
    let is_full = detail == ChangeLog::Full;
    let limits = ChangeLimits { paths: PATHS, value: VALUE_LIMIT, is_full, is_flat: false };
    let found = FoundChanges::new(limits, is_secret).all(before, after);
    (found.changes, found.more)
}

/// As [`differences`] in full, with all paths, longer values, and a path for each value of an
/// object or a list that is new. For a report of few writes. Values behind [`MANY_PATHS`] have
/// hashes and no texts.
pub(crate) fn every_difference(
    is_secret: bool,
    before: Option<&Value>,
    after: &Value,
) -> Vec<FieldChange> {
    let limits =
        ChangeLimits { paths: MANY_PATHS, value: LONG_VALUE, is_full: true, is_flat: true };
    FoundChanges::new(limits, is_secret).all(before, after).changes
}

/// Returns the hash of a value's JSON: equal for equal values in one process. Values of which a
/// report has the beginning are compared by it.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl FieldChange {
    /// Removes the texts of the values; `to` still says whether there is a value after.
    pub(crate) fn without_texts(mut self) -> Self {
        self.from = None;
        self.to = self.to.map(|_| String::new());
        self
    }
}

/// The parts of an object that clients write.
fn written(state: &Value) -> Value {
    let mut state = state.clone();
    if let Value::Object(members) = &mut state {
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
            metadata.retain(|name, _| !SERVER_METADATA.contains(&name.as_str()));
        }
    }
    state
}

/// Extent of a comparison.
struct ChangeLimits {
    /// Most paths.
    paths: usize,
    /// Most bytes of a value's text.
    value: usize,
    /// Whether values are shown.
    is_full: bool,
    /// Whether new objects and lists are shown value by value, and paths beyond `paths` are kept
    /// without values.
    is_flat: bool,
}

/// Differences so far.
struct FoundChanges {
    changes: Vec<FieldChange>,
    more: usize,
    limits: ChangeLimits,
    is_secret: bool,
}

impl FoundChanges {
    fn new(limits: ChangeLimits, is_secret: bool) -> Self {
        Self { changes: Vec::new(), more: 0, limits, is_secret }
    }

    /// Compares two states of an object.
    fn all(mut self, before: Option<&Value>, after: &Value) -> Self {
        let before = before.map_or_else(|| Value::Object(Map::new()), written);
        self.compare("", Some(&before), Some(&written(after)));
        self
    }

    /// Whether a report does not have all of a value's text.
    fn is_cut(&self, value: &Value) -> bool {
        self.changes.len() >= self.limits.paths || value.to_string().len() > self.limits.value
    }

    fn compare(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (before, after) if before == after => {}
            (None, Some(Value::Object(after))) if self.limits.is_flat && !after.is_empty() => {
                for (name, value) in after {
                    self.compare(&format!("{path}{}", step(name)), None, Some(value));
                }
            }
            // A list of texts is a single value as long as its text is whole.
            (None, Some(whole @ Value::Array(after)))
                if self.limits.is_flat
                    && !after.is_empty()
                    && (after.iter().any(Value::is_object) || self.is_cut(whole)) =>
            {
                self.lists(path, &[], after);
            }
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for name in names {
                    self.compare(
                        &format!("{path}{}", step(name)),
                        before.get(name),
                        after.get(name),
                    );
                }
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) => {
                self.lists(path, before, after);
            }
            (before, after) => self.add(path, before, after),
        }
    }

    /// Compares two lists item by item: by name where every item has a name, else by place.
    fn lists(&mut self, path: &str, before: &[Value], after: &[Value]) {
        let named = |member: &str| {
            let names: BTreeSet<&str> =
                before.iter().filter_map(|item| item.get(member)?.as_str()).collect();
            let others: BTreeSet<&str> =
                after.iter().filter_map(|item| item.get(member)?.as_str()).collect();
            names.len() == before.len() && others.len() == after.len()
        };
        let Some(member) = ITEM_NAMES.into_iter().find(|member| named(member)) else {
            for at in 0..before.len().max(after.len()) {
                self.compare(&format!("{path}[{at}]"), before.get(at), after.get(at));
            }
            return;
        };
        let name =
            |item: &Value| item.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        for item in before {
            let after = after.iter().find(|other| name(other) == name(item));
            self.compare(&format!("{path}[{member}={}]", name(item)), Some(item), after);
        }
        for item in after {
            if before.iter().all(|other| name(other) != name(item)) {
                self.compare(&format!("{path}[{member}={}]", name(item)), None, Some(item));
            }
        }
    }

    fn add(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        let is_beyond = self.changes.len() >= self.limits.paths;
        if is_beyond && !self.limits.is_flat {
            self.more += 1;
            return;
        }
        let is_masked = self.is_secret && !path.starts_with(".metadata.labels");
        let text = |value: &Value| if is_masked { MASK.to_owned() } else { value.to_string() };
        let value = |value: Option<&Value>| value.filter(|_| self.limits.is_full).map(text);
        let (from, to) = (value(before), value(after));
        let hash = to.as_deref().filter(|_| self.limits.is_flat).map_or(0, hash);
        let short = |text: String| shorten(text, self.limits.value);
        let change =
            FieldChange { path: path.to_owned(), from: from.map(short), to: to.map(short), hash };
        self.changes.push(if is_beyond { change.without_texts() } else { change });
    }
}

/// A step of a path; names with other characters than those of identifiers in brackets.
pub(super) fn step(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { format!(".{name}") } else { format!("[\"{}\"]", name.escape_default()) }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ControllerRevision;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;
    use windlass_core::resource::Resource;

    use super::*;

    fn compared<K: Resource>(before: Option<&Value>, after: &Value) -> Vec<String> {
        let info = K::static_info().expect("a kind");
        let (changes, _) = differences(&info, (before, after), ChangeLog::Full);
        let shown = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
        changes
            .into_iter()
            .map(|it| format!("{} {} {}", it.path, shown(it.from), shown(it.to)))
            .collect()
    }

    #[test]
    fn differences_are_named_by_their_paths_and_what_the_server_writes_is_none() {
        let before = json!({ "metadata": { "name": "a", "resourceVersion": "1", "labels": { "x.io/y": "1" } },
            "data": { "host": "a", "gone": "1" } });
        let after = json!({ "metadata": { "name": "a", "resourceVersion": "2", "labels": { "x.io/y": "2" } },
            "data": { "host": "b" } });
        assert_eq!(
            compared::<ConfigMap>(Some(&before), &after),
            [
                ".data.gone \"1\" -",
                ".data.host \"a\" \"b\"",
                ".metadata.labels[\"x.io/y\"] \"1\" \"2\"",
            ]
        );
    }

    #[test]
    fn items_are_compared_by_their_names_and_others_by_their_places() {
        let list = |images: &[(&str, &str)]| {
            let items = images.iter().map(|(name, image)| json!({ "name": name, "image": image }));
            json!({ "spec": { "containers": items.collect::<Vec<_>>(), "args": [1, 2] } })
        };
        let before = list(&[("web", "nginx:1"), ("log", "fluent:1")]);
        let mut after = list(&[("log", "fluent:1"), ("web", "nginx:2")]);
        after["spec"]["args"] = json!([1, 3, 4]);
        assert_eq!(
            compared::<ConfigMap>(Some(&before), &after),
            [
                ".spec.args[1] 2 3",
                ".spec.args[2] - 4",
                ".spec.containers[name=web].image \"nginx:1\" \"nginx:2\"",
            ]
        );
    }

    #[test]
    fn values_of_secrets_are_masked() {
        let before = json!({ "data": { "token": "b2xk" } });
        let annotations = json!({ "note": "b2xk" });
        let after =
            json!({ "metadata": { "annotations": annotations }, "data": { "token": "bmV3" } });
        let found = compared::<Secret>(Some(&before), &after);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.contains(&".data.token *** ***".to_owned()), "{found:?}");
        assert!(!found.join(" ").contains("b2xk"), "{found:?}");
    }

    #[test]
    fn states_of_other_objects_in_revisions_are_masked() {
        let after = json!({ "data": { "state": { "stringData": { "token": "canary" } } } });
        let found = compared::<ControllerRevision>(None, &after);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("***") && !found[0].contains("canary"), "{found:?}");
    }

    #[test]
    fn very_many_differences_are_counted_and_very_long_values_cut() {
        let data: Map<String, Value> =
            (0..100).map(|n| (format!("k{n:03}"), "x".repeat(10_000).into())).collect();
        let info = ConfigMap::static_info().expect("a kind");
        let after = json!({ "data": {} });
        let before = json!({ "data": data });
        let (changes, more) = differences(&info, (Some(&before), &after), ChangeLog::Full);
        assert_eq!((changes.len(), more), (PATHS, 100 - PATHS));
        assert!(
            changes.iter().all(|it| it.from.as_ref().is_some_and(|it| it.len() <= VALUE_LIMIT))
        );
        let (changes, _) = differences(&info, (Some(&before), &after), ChangeLog::Summary);
        assert!(changes.iter().all(|it| it.from.is_none() && it.to.is_none()));
    }

    #[test]
    fn a_report_of_few_writes_tells_long_values_and_late_paths_apart_by_their_hashes() {
        let data = |last: &str| {
            let long = format!("{}{last}", "x".repeat(2 * LONG_VALUE));
            let mut data: Map<String, Value> =
                (0..600).map(|n| (format!("k{n:03}"), n.into())).collect();
            data.extend([("a".to_owned(), long.into()), ("z".to_owned(), last.into())]);
            json!({ "data": data })
        };
        let [one, other] = ["1", "2"].map(|last| every_difference(false, None, &data(last)));
        assert_eq!((one.len(), other.len()), (602, 602));
        let is_other = |(one, other): &(&FieldChange, &FieldChange)| one.hash != other.hash;
        let pairs: Vec<_> = one.iter().zip(&other).filter(is_other).collect();
        let paths: Vec<&str> = pairs.iter().map(|(one, _)| one.path.as_str()).collect();
        assert_eq!(paths, [".data.a", ".data.z"]);
        assert_eq!(pairs[0].0.to, pairs[0].1.to);
        assert_eq!(pairs[1].0.to.as_deref(), Some(""), "a late path has no text");
        let secret = |last: &str| every_difference(true, None, &data(last));
        assert_eq!(secret("1"), secret("2"), "a Secret's hash is that of its mask");
    }

    #[test]
    fn a_list_whose_text_would_be_cut_is_reported_by_its_items() {
        let list = |length: usize| json!({ "spec": { "args": vec!["x".repeat(50); length] } });
        let paths = |length| every_difference(false, None, &list(length)).len();
        assert_eq!((paths(2), paths(30)), (1, 30));
    }

    #[test]
    fn the_newest_records_are_kept_and_the_oldest_ones_go() {
        let log = Changelog::new(ChangeLog::Summary);
        let record = |number: usize| ChangeRecord {
            at: Timestamp::UNIX_EPOCH,
            owner: ObjectKey::new(Some("shop"), "home"),
            reasons: Vec::new(),
            verb: "apply",
            resource: "configmaps".to_owned(),
            key: ObjectKey::new(Some("shop"), &number.to_string()),
            changes: Vec::new(),
            more: 0,
            is_compared: true,
        };
        (0..RECORDS + 3).for_each(|number| log.add(record(number)));
        let kept = log.snapshot(usize::MAX);
        let names = [&kept[0], &kept[RECORDS - 1]].map(|it| it.key.name().to_owned());
        assert_eq!((kept.len(), names), (RECORDS, [(RECORDS + 2).to_string(), "3".to_owned()]));
    }
}
