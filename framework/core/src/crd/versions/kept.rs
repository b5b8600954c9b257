//! Values that a version cannot hold: differences of round trips, kept in an annotation by version.

// DESIGN.md, 259: Kept values are searched by an index of each list

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ConversionError;
use super::index::{Indexes, hash, name_of};

/// Annotation with what the version of an object cannot hold, by the version that can: written and
/// read by conversions.
pub const KEPT_FIELDS: &str = "windlass.dev/kept-fields";
/// Most bytes of the annotation [`KEPT_FIELDS`]. All annotations of an object have at most 256 KiB.
pub const MOST_KEPT: usize = 128 << 10;
/// Most places of the annotation [`KEPT_FIELDS`]: one that a conversion writes has at least 20
/// bytes.
pub(super) const MOST_PLACES: usize = MOST_KEPT / 20;
/// Most attempts to restore a part of the kept values, after a change; fewer of a large object.
const ATTEMPTS: usize = 256;
/// Bytes of an attempt at least; together they are as many as of [`ATTEMPTS`].
const PART: usize = 16 << 10;

/// The kept values of an object, by version.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct KeptValues(BTreeMap<String, RoundTripDifference>);

/// The difference between an object and what came back from another version.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct RoundTripDifference {
    /// Hash of what came back, as the type writes it.
    of: u64,
    /// Values that differ.
    kept: Vec<DifferingValue>,
}

/// One value that differs.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct DifferingValue {
    /// Its place.
    p: Vec<PathStep>,
    /// Hash of what came back; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    b: Option<u64>,
    /// The value; empty where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    k: Vec<Value>,
}

/// A step of a place.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum PathStep {
    Field(String),
    Element(Element),
}

/// An element of a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Element {
    /// Place.
    i: usize,
    /// Number of elements.
    n: usize,
    /// Hash of what came back.
    h: u64,
    /// Number of equal elements before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    r: usize,
    /// Its field `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A step in a value that is at hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueStep<'a> {
    Field(&'a str),
    Element(usize),
}

/// A place in a value that is at hand, and the value that it gets.
type ValueChange<'a> = (Vec<ValueStep<'a>>, Option<&'a Value>);

/// Judgements about a restored object.
pub(super) struct Judges<'a> {
    /// Whether it looks in the other version as the given one does.
    pub(super) looks_same: &'a dyn Fn(&Value) -> bool,
    /// Whether its type reads it.
    pub(super) is_readable: &'a dyn Fn(&Value) -> bool,
}

impl KeptValues {
    /// Takes the kept values out of the metadata of an object. Values that others spoilt are none.
    pub(super) fn take(metadata: &mut Value) -> Self {
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        else {
            return Self::default();
        };
        let text = annotations.remove(KEPT_FIELDS);
        if annotations.is_empty()
            && let Some(fields) = metadata.as_object_mut()
        {
            fields.remove("annotations");
        }
        let text = text.as_ref().and_then(Value::as_str).filter(|text| text.len() <= MOST_KEPT);
        let kept: Option<Self> = text.and_then(|text| serde_json::from_str(text).ok());
        kept.filter(|kept| kept.places() <= MOST_PLACES).unwrap_or_default()
    }

    /// Returns the number of places.
    fn places(&self) -> usize {
        self.0.values().map(|difference| difference.kept.len()).sum()
    }

    /// Puts the kept values into the metadata of an object.
    ///
    /// # Errors
    /// They are larger than [`MOST_KEPT`].
    pub(super) fn put(&self, metadata: &mut Value) -> Result<(), ConversionError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(self).map_err(ConversionError::new)?;
        if text.len() > MOST_KEPT {
            return Err(ConversionError::new(format_args!(
                "the version cannot hold {} bytes of it, and an annotation may keep {MOST_KEPT}: read it in \
                 another version",
                text.len()
            )));
        }
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        let annotations = &mut metadata["annotations"];
        if !annotations.is_object() {
            *annotations = Value::Object(Map::new());
        }
        annotations[KEPT_FIELDS] = text.into();
        Ok(())
    }

    /// Keeps what `whole`, an object of `version`, has and `back` lacks. `typed` is what came back
    /// as the type writes it.
    pub(super) fn keep(&mut self, version: &str, (back, typed): (&Value, &Value), whole: &Value) {
        let mut kept = Vec::new();
        differences((back, Some(typed)), whole, &mut Vec::new(), &mut kept);
        if kept.is_empty() {
            self.0.remove(version);
        } else {
            self.0.insert(version.to_owned(), RoundTripDifference { of: hash(typed), kept });
        }
    }

    /// Takes what was kept of `version`, and returns `made`, an object of it, with the kept values.
    /// A change of `made` wins over the kept value. `typed` is `made` as the type writes it.
    pub(super) fn restore(
        &mut self,
        version: &str,
        (made, typed): (Value, &Value),
        judges: &Judges<'_>,
    ) -> Value {
        let Some(difference) = self.0.remove(version) else { return made };
        let changes = difference.changes((&made, typed), &mut Indexes::default());
        if changes.is_empty() {
            return made;
        }
        let all = changed(&made, &changes);
        // Nothing was changed: also a conversion that is not stable restores all.
        let is_untouched = || hash(typed) == difference.of && (judges.is_readable)(&all);
        if (judges.looks_same)(&all) || is_untouched() {
            return all;
        }
        in_parts(made, changes, judges.looks_same)
    }
}

impl RoundTripDifference {
    /// Returns the changes of `made` that restore the values whose places are as they were.
    fn changes<'a, 'v>(
        &'a self,
        (made, typed): (&'v Value, &'v Value),
        indexes: &mut Indexes<'v>,
    ) -> Vec<ValueChange<'a>> {
        let claimed: HashSet<u64> = self.kept.iter().flat_map(DifferingValue::hashes).collect();
        let changes =
            self.kept.iter().filter_map(|leaf| leaf.change((made, typed), &claimed, indexes));
        // Anybody who writes the object may have written the annotation: it must not change its
        // identity.
        changes.filter(|(place, _)| is_of_body(place)).collect()
    }
}

/// Whether a place is below one of the fields beside version, kind and metadata.
fn is_of_body(place: &[ValueStep<'_>]) -> bool {
    match place.first() {
        Some(ValueStep::Field(name)) => !matches!(*name, "apiVersion" | "kind" | "metadata"),
        Some(ValueStep::Element(_)) | None => false,
    }
}

/// Makes the changes that leave the object as it looks, those of one parent together if possible.
fn in_parts(
    made: Value,
    mut changes: Vec<ValueChange<'_>>,
    looks_same: &dyn Fn(&Value) -> bool,
) -> Value {
    // Each attempt copies and converts the object with what was restored: an annotation that
    // somebody wrote must not keep a thread busy.
    let mut size = length(&made);
    let mut left = (ATTEMPTS * PART).max(size + MOST_KEPT);
    let mut result = made;
    let mut attempt = |result: &mut Value, some: &[ValueChange<'_>]| {
        let more: usize = some.iter().filter_map(|(_, new)| *new).map(length).sum();
        let cost = (size + more).max(PART);
        if left < cost {
            return false;
        }
        left -= cost;
        let tried = changed(result, some);
        let fits = looks_same(&tried);
        if fits {
            *result = tried;
            size += more;
        }
        fits
    };
    fn parent<'c, 'a>(change: &'c ValueChange<'a>) -> &'c [ValueStep<'a>] {
        change.0.split_last().map_or(&[], |(_, parent)| parent)
    }
    changes.sort_by(|one, other| parent(one).cmp(parent(other)));
    for group in changes.chunk_by(|one, other| parent(one) == parent(other)) {
        if !attempt(&mut result, group) && group.len() > 1 {
            for change in group {
                attempt(&mut result, std::slice::from_ref(change));
            }
        }
    }
    result
}

/// Returns the length of a value as JSON.
fn length(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX / 2, |text| text.len())
}

/// Returns a value with changes.
fn changed(value: &Value, changes: &[ValueChange<'_>]) -> Value {
    let mut value = value.clone();
    for (place, new) in changes {
        change(&mut value, place, *new);
    }
    value
}

fn change(value: &mut Value, place: &[ValueStep<'_>], new: Option<&Value>) {
    match (place, value) {
        ([], value) => *value = new.cloned().unwrap_or_default(),
        ([ValueStep::Field(name)], Value::Object(fields)) => match new {
            Some(new) => drop(fields.insert((*name).to_owned(), new.clone())),
            None => drop(fields.remove(*name)),
        },
        ([ValueStep::Field(name), rest @ ..], Value::Object(fields)) => {
            if let Some(below) = fields.get_mut(*name) {
                change(below, rest, new);
            }
        }
        ([ValueStep::Element(place), rest @ ..], Value::Array(list)) => {
            if let Some(below) = list.get_mut(*place) {
                change(below, rest, new);
            }
        }
        _ => {}
    }
}

impl DifferingValue {
    /// Returns the hashes of the elements on the way.
    fn hashes(&self) -> impl Iterator<Item = u64> {
        self.p.iter().filter_map(|step| match step {
            PathStep::Field(_) => None,
            PathStep::Element(element) => Some(element.h),
        })
    }

    /// Returns the change of `made` that restores the value, if its place is as it was.
    fn change<'a, 'v>(
        &'a self,
        (made, typed): (&'v Value, &'v Value),
        claimed: &HashSet<u64>,
        indexes: &mut Indexes<'v>,
    ) -> Option<ValueChange<'a>> {
        let mut place = Vec::with_capacity(self.p.len());
        let (mut here, mut typed) = (Some(made), Some(typed));
        for step in &self.p {
            // Whatever is missing on the way was removed.
            match (step, here?) {
                (PathStep::Field(name), Value::Object(fields)) => {
                    here = fields.get(name);
                    typed = typed.and_then(|typed| typed.get(name));
                    place.push(ValueStep::Field(name));
                }
                (PathStep::Element(element), Value::Array(list)) => {
                    // Fields that no type knows do not tell elements apart.
                    let typed_list = typed.and_then(Value::as_array);
                    let seen = typed_list.filter(|typed| typed.len() == list.len()).unwrap_or(list);
                    let found = element.find(seen, claimed, indexes)?;
                    here = list.get(found);
                    typed = seen.get(found);
                    place.push(ValueStep::Element(found));
                }
                _ => return None,
            }
        }
        // A value where none came back differs, whatever its hash.
        let is_same = match self.b {
            Some(hash) => here.is_some_and(|here| indexes.hash(here) == hash),
            None => here.is_none(),
        };
        is_same.then(|| (place, self.k.first()))
    }
}

impl Element {
    /// Returns the place of the element in a list: that of an equal one, of the one with its name,
    /// or its own place in a list of the same length.
    fn find<'v>(
        &self,
        list: &'v [Value],
        claimed: &HashSet<u64>,
        indexes: &mut Indexes<'v>,
    ) -> Option<usize> {
        let index = indexes.list(list);
        if let Some(place) = index.equal(self.h, self.r) {
            return Some(place);
        }
        if let Some(name) = &self.name {
            return index.named(name);
        }
        let is_same = list.len() == self.n && name_of(list.get(self.i)?).is_none();
        (is_same && !claimed.contains(&index.hash(self.i)?)).then_some(self.i)
    }
}

/// Collects what `whole` has and `back` lacks; elements of lists have the hashes of those that the
/// type writes.
fn differences(
    (back, typed): (&Value, Option<&Value>),
    whole: &Value,
    here: &mut Vec<PathStep>,
    found: &mut Vec<DifferingValue>,
) {
    if back == whole {
        return;
    }
    match (back, whole) {
        (Value::Object(back), Value::Object(whole)) => {
            let more = back.keys().filter(|name| !whole.contains_key(*name));
            for name in whole.keys().chain(more) {
                here.push(PathStep::Field(name.clone()));
                match (back.get(name), whole.get(name)) {
                    (Some(back), Some(whole)) => {
                        let typed = typed.and_then(|typed| typed.get(name));
                        differences((back, typed), whole, here, found);
                    }
                    // To its type it is absent.
                    (None, Some(Value::Null)) => {}
                    (back, whole) => found.push(leaf(back, whole, here)),
                }
                here.pop();
            }
        }
        (Value::Array(back), Value::Array(whole)) if back.len() == whole.len() => {
            let n = back.len();
            let mut equal: HashMap<u64, usize> = HashMap::new();
            let typed = typed.and_then(Value::as_array).filter(|typed| typed.len() == n);
            for (i, (back, whole)) in back.iter().zip(whole).enumerate() {
                let typed = typed.and_then(|typed| typed.get(i));
                let h = hash(typed.unwrap_or(back));
                let before = equal.entry(h).or_default();
                let r = *before;
                *before += 1;
                let name = name_of(back).map(ToOwned::to_owned);
                here.push(PathStep::Element(Element { i, n, h, r, name }));
                differences((back, typed), whole, here, found);
                here.pop();
            }
        }
        _ => found.push(leaf(Some(back), Some(whole), here)),
    }
}

fn leaf(back: Option<&Value>, whole: Option<&Value>, here: &[PathStep]) -> DifferingValue {
    DifferingValue { p: here.to_vec(), b: back.map(hash), k: whole.cloned().into_iter().collect() }
}
