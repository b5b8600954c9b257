//! Fields that serde reads from a stored value and never writes.
//!
//! A single value proves nothing: of an enum without a tag, fields of another variant are lost
//! rightly. So the places of the schema are judged over all values, and again by further values
//! that have a part at the place.

// DESIGN.md, 303: A field is lost if serde writes it of no value
// DESIGN.md, 305: A field is lost beside each value of a tag

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use serde_json::Value;
use windlass_core::crd::misfit;

use super::values::{OptionalShare, Path, Values};

/// Fewest values that lose a field before the field is reported.
const LEAST: usize = 8;
/// Fewest different values of the field among these.
const DIFFERENT: usize = 2;
/// Further values that are tried for a place.
const TRIES: usize = 400;
/// Further values that are tried for the variants at a place.
const VARIANT_TRIES: usize = 16_000;
/// Most values that are tried for each variant: a try may not fit, or the field may be null in it.
const ROUNDS: usize = 8;
/// Parts of the optional fields that these values have, in turn.
const SHARES: [OptionalShare; 4] =
    [OptionalShare::Half, OptionalShare::None, OptionalShare::Half, OptionalShare::All];

/// The source of further values.
pub(super) struct Tries<'a> {
    pub(super) schema: &'a Value,
    /// The value as serde reads and writes it.
    pub(super) decode: &'a (dyn Fn(&Value) -> Result<Value, String> + Sync + 'a),
    pub(super) values: &'a Values<'a>,
}

/// Observations of the named fields of stored values.
#[derive(Debug, Default)]
pub(super) struct FieldObservations {
    places: BTreeMap<Path, ValueCounts>,
    /// Values that were written of tags.
    tags: BTreeMap<Path, BTreeSet<String>>,
}

/// Observations at a place.
#[derive(Debug, Default)]
struct ValueCounts {
    /// Whether serde wrote the field of some value.
    is_kept: bool,
    /// Values of which serde did not.
    lost: usize,
    /// Some of the field's values that were lost, without the default.
    values: BTreeSet<String>,
    /// The shortest value that lost the field, as stored and as written.
    shortest: Option<(String, String)>,
}

impl FieldObservations {
    /// Notes the fields of a stored value that serde wrote again, and those that it did not.
    pub(super) fn note(&mut self, stored: &Value, written: &Value, schema: &Value) {
        let mut lost = Vec::new();
        self.walk((stored, written), schema, &mut Path::new(), &mut lost);
        for place in lost {
            let shortest = &mut self.places.entry(place).or_default().shortest;
            let texts = (stored.to_string(), written.to_string());
            if shortest.as_ref().is_none_or(|(known, _)| texts.0.len() < known.len()) {
                *shortest = Some(texts);
            }
        }
    }

    /// Compares what is below `here`; adds the places of lost fields to `found`.
    fn walk(
        &mut self,
        (stored, written): (&Value, &Value),
        schema: &Value,
        here: &mut Path,
        found: &mut Vec<Path>,
    ) {
        match (stored, written) {
            (Value::Object(fields), Value::Object(others)) => {
                for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                    let named = schema["properties"].get(name);
                    let other = others.get(name).filter(|other| !other.is_null());
                    let step = if named.is_some() { name } else { "*" };
                    here.push(step.to_owned());
                    let below = named.unwrap_or(&schema["additionalProperties"]);
                    match other {
                        Some(other) => {
                            self.places.entry(here.clone()).or_default().is_kept = true;
                            if is_tag(schema, name) {
                                let tags = self.tags.entry(here.clone()).or_default();
                                tags.insert(other.to_string());
                            }
                            self.walk((value, other), below, here, found);
                        }
                        None if named.is_some() => {
                            let moved = moved(value, stored, written);
                            let seen = self.places.entry(here.clone()).or_default();
                            if seen.unwritten(value, below, moved) {
                                found.push(here.clone());
                            }
                        }
                        None => {}
                    }
                    here.pop();
                }
            }
            // The items of a set have no order.
            (Value::Array(items), Value::Array(others))
                if items.len() == others.len() && schema["x-kubernetes-list-type"] != "set" =>
            {
                here.push("[]".to_owned());
                for pair in items.iter().zip(others) {
                    self.walk(pair, &schema["items"], here, found);
                }
                here.pop();
            }
            _ => {}
        }
    }

    /// Returns a text for each field that no value keeps, apart from those that are excused.
    pub(super) fn texts(
        mut self,
        tries: &Tries<'_>,
        is_excused: impl Fn(&Path) -> bool,
    ) -> Vec<String> {
        let suspects = self.places.iter().filter(|(_, seen)| seen.is_suspect());
        let suspects: Vec<Path> = suspects.map(|(place, _)| place.clone()).collect();
        let mut texts = Vec::new();
        for place in suspects {
            if is_excused(&place) || !self.is_always_lost(&place, tries) {
                continue;
            }
            let beside = self.lost_beside(&place);
            // Serde may refuse all of the part for a value beside the field, if a warning says of
            // that value that the schema does not tell which ones serde reads.
            if !beside.iter().any(&is_excused) {
                texts.extend(self.places.get(&place).map(|seen| seen.text(&place, &beside)));
            }
        }
        texts
    }

    /// The other fields of the object at a place that serde wrote of no value.
    fn lost_beside(&self, place: &[String]) -> Vec<Path> {
        let object = place.split_last().map_or(place, |(_, object)| object);
        let is_beside = |other: &Path| {
            other.len() == place.len() && other.starts_with(object) && other.as_slice() != place
        };
        let lost = self.places.iter().filter(|(_, seen)| !seen.is_kept && seen.lost > 0);
        lost.map(|(other, _)| other).filter(|other| is_beside(other)).cloned().collect()
    }

    /// Whether serde loses the part at `place` of further values as well, and of enough.
    fn is_always_lost(&mut self, place: &Path, tries: &Tries<'_>) -> bool {
        let mut lost = 0;
        for share in SHARES.iter().cycle().take(TRIES) {
            let Some(value) = tries.values.with_place(tries.schema, place, *share) else {
                continue;
            };
            match self.try_value(place, &value, tries) {
                Some(TriedValue::Kept) => return false,
                Some(TriedValue::Lost(_)) => lost += 1,
                None => {}
            }
        }
        lost >= LEAST && self.is_lost_with_each_variant(place, tries)
    }

    /// Notes a value as serde writes it; `None` if the value says nothing about the place.
    fn try_value(&mut self, place: &Path, value: &Value, tries: &Tries<'_>) -> Option<TriedValue> {
        let written = (tries.decode)(value).ok()?;
        let before = self.places.get(place).map_or(0, |seen| seen.lost);
        self.note(value, &written, tries.schema);
        let seen = self.places.get(place)?;
        if seen.is_kept {
            return Some(TriedValue::Kept);
        }
        (seen.lost > before).then_some(TriedValue::Lost(written))
    }

    /// Whether serde loses the part at `place` beside each value of the tags beside it and around
    /// it: the field may be that of a variant of which no value was found. A value of a tag that
    /// serde wrote elsewhere may not fit beside the field.
    fn is_lost_with_each_variant(&mut self, place: &Path, tries: &Tries<'_>) -> bool {
        let mut open = variants(place, tries.schema);
        let mut left = VARIANT_TRIES;
        for share in SHARES.iter().cycle().take(ROUNDS) {
            let turns = open.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
            if turns > left {
                return false;
            }
            left -= turns;
            let Some(settled) = self.round(place, &open, (turns, *share), tries) else {
                return false;
            };
            for ((_, values), settled) in open.iter_mut().zip(settled) {
                let mut at = 0..;
                values.retain(|_| at.next().is_some_and(|at| !settled.contains(&at)));
            }
            open.retain(|(_, values)| !values.is_empty());
        }
        open.iter().all(|(tag, values)| {
            let known = self.tags.get(tag);
            let is_known = |value: &&Value| known.is_some_and(|it| it.contains(&value.to_string()));
            values.iter().all(is_known)
        })
    }

    /// Tries the values of the tags in turn; returns, for each tag, those beside which serde lost
    /// the part at `place`. `None` if it kept the part.
    fn round(
        &mut self,
        place: &Path,
        open: &[Variants<'_>],
        (turns, share): (usize, OptionalShare),
        tries: &Tries<'_>,
    ) -> Option<Vec<BTreeSet<usize>>> {
        let mut settled = vec![BTreeSet::new(); open.len()];
        for turn in 0..turns {
            let value = tries.values.with_place(tries.schema, place, share);
            let Some(mut value) = value else { continue };
            for (tag, values) in open {
                set(&mut value, tag, values[turn % values.len()]);
            }
            if misfit(&value, tries.schema).is_some() {
                continue;
            }
            match self.try_value(place, &value, tries) {
                Some(TriedValue::Kept) => return None,
                Some(TriedValue::Lost(written)) => {
                    for ((tag, values), settled) in open.iter().zip(&mut settled) {
                        if is_there(&written, tag) {
                            settled.insert(turn % values.len());
                        }
                    }
                }
                None => {}
            }
        }
        Some(settled)
    }
}

/// A tag and some of its values.
type Variants<'a> = (Path, Vec<&'a Value>);

/// The tags at a place, beside it and around it, with their values.
fn variants<'a>(place: &[String], schema: &'a Value) -> Vec<Variants<'a>> {
    let mut variants = Vec::new();
    let mut around = Some(schema);
    for (depth, step) in place.iter().enumerate() {
        let Some(node) = around else { break };
        for (name, field) in node["properties"].as_object().into_iter().flatten() {
            let values = values_of(field);
            if !values.is_empty() && is_tag(node, name) {
                variants.push((place[..depth].iter().chain([name]).cloned().collect(), values));
            }
        }
        around = below(node, step);
    }
    variants
}

/// The outcome of a value for a place.
#[derive(Debug)]
enum TriedValue {
    /// Serde writes the field of some value.
    Kept,
    /// Serde lost the field of this value, and wrote this.
    Lost(Value),
}

/// Whether a value has a part at a place.
fn is_there(value: &Value, place: &[String]) -> bool {
    let Some((step, rest)) = place.split_first() else { return !value.is_null() };
    match (step.as_str(), value) {
        ("[]", Value::Array(items)) => items.iter().any(|item| is_there(item, rest)),
        ("*", Value::Object(fields)) => fields.values().any(|field| is_there(field, rest)),
        (name, Value::Object(fields)) => fields.get(name).is_some_and(|it| is_there(it, rest)),
        _ => false,
    }
}

/// Sets a field in all objects at a place.
fn set(value: &mut Value, place: &[String], field: &Value) {
    let Some((step, rest)) = place.split_first() else {
        *value = field.clone();
        return;
    };
    match (step.as_str(), value) {
        ("[]", Value::Array(items)) => items.iter_mut().for_each(|item| set(item, rest, field)),
        ("*", Value::Object(fields)) => fields.values_mut().for_each(|it| set(it, rest, field)),
        (name, Value::Object(fields)) if rest.is_empty() => {
            fields.insert(name.to_owned(), field.clone());
        }
        (name, Value::Object(fields)) => {
            if let Some(below) = fields.get_mut(name) {
                set(below, rest, field);
            }
        }
        _ => {}
    }
}

/// Whether the values of a field stand for variants: alternatives of the object name them, or the
/// field comes from a flattened option, of which the schema has the fields alone.
fn is_tag(object: &Value, name: &str) -> bool {
    let field = &object["properties"][name];
    let required = object["required"].as_array();
    let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
    let is_optional = !is_required && field.get("default").is_none();
    values_of(field).len() > 1 && is_optional || is_in_alternatives(object, name)
}

/// Whether alternatives name values of a field.
fn is_in_alternatives(object: &Value, name: &str) -> bool {
    let is_in = |branch: &Value| {
        branch["properties"][name].get("enum").is_some() || is_in_alternatives(branch, name)
    };
    let branches = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|key| object[key].as_array());
    branches.flatten().any(is_in)
}

/// The texts that a field may have; none for any. Those of an option are an alternative.
fn values_of(schema: &Value) -> Vec<&Value> {
    let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array());
    let nodes = std::iter::once(schema).chain(branches.flatten());
    let values = nodes.filter_map(|node| node["enum"].as_array()).flatten();
    values.filter(|value| value.is_string()).collect()
}

/// The schema of a part.
fn below<'a>(schema: &'a Value, step: &str) -> Option<&'a Value> {
    match step {
        "[]" => schema.get("items"),
        "*" => schema.get("additionalProperties"),
        name => schema.get("properties")?.get(name),
    }
}

impl ValueCounts {
    /// Notes a value that serde did not write under its name; returns whether it is lost.
    fn unwritten(&mut self, value: &Value, schema: &Value, moved: RenameEvidence) -> bool {
        self.is_kept |= moved == RenameEvidence::Away;
        if moved != RenameEvidence::No {
            return false;
        }
        self.lost += 1;
        let is_only = schema["enum"].as_array().is_some_and(|values| values.len() < 2);
        if self.values.len() < DIFFERENT && !is_only && schema.get("default") != Some(value) {
            self.values.insert(value.to_string());
        }
        true
    }

    /// Whether there is reason enough to try further values.
    fn is_suspect(&self) -> bool {
        !self.is_kept && self.lost >= LEAST && self.values.len() >= DIFFERENT
    }

    /// The text about a lost field, and fields `beside` it that are lost as well: serde may refuse
    /// the values of these.
    fn text(&self, place: &[String], beside: &[Path]) -> String {
        let (stored, written) = self.shortest.clone().unwrap_or_default();
        let (place, pair) = (
            shown(place),
            format!("the API server stores {stored}, and serde writes that as {written}"),
        );
        if beside.is_empty() {
            return format!(
                "serde never writes `{place}`: {pair}; one variant of an enum without a tag takes the values of another, or \
                 the field is not written"
            );
        }
        let beside: Vec<String> =
            beside.iter().map(|other| format!("`{}`", shown(other))).collect();
        format!(
            "serde wrote `{place}` of no value that was tried: {pair}; one variant of an enum without a tag takes the values \
             of another, the field is not written, or serde reads none of the values that were tried for {}: give these \
             a `pattern`, or the check an object that serde reads (`check_from([…])`)",
            beside.join(", ")
        )
    }
}

/// Whether serde wrote a value under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RenameEvidence {
    /// A new field has the value, or has it inside: an alias, or a former form of the type.
    Away,
    /// A new field has a value of the same type, which may be another spelling, or a default.
    Perhaps,
    No,
}

/// Compares a value that serde did not write with the fields that were not stored.
fn moved(value: &Value, stored: &Value, written: &Value) -> RenameEvidence {
    let fields = written.as_object().into_iter().flatten();
    let new = fields.filter(|(name, _)| stored.get(name.as_str()).is_none_or(Value::is_null));
    let new: Vec<&Value> = new.map(|(_, other)| other).collect();
    if !is_empty(value) && new.iter().any(|other| contains(other, value)) {
        RenameEvidence::Away
    } else if new.iter().any(|other| discriminant(*other) == discriminant(value)) {
        RenameEvidence::Perhaps
    } else {
        RenameEvidence::No
    }
}

/// Whether a value is one that many types have as their default.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    whole == part
        || match whole {
            Value::Object(fields) => fields.values().any(|value| contains(value, part)),
            Value::Array(items) => items.iter().any(|value| contains(value, part)),
            _ => false,
        }
}

/// A place in the form of remarks: `.spec.ports[].name`.
fn shown(place: &[String]) -> String {
    let steps = place.iter().map(|step| match step.as_str() {
        "[]" => step.clone(),
        name => format!(".{name}"),
    });
    steps.collect()
}

#[cfg(test)]
mod tests;
