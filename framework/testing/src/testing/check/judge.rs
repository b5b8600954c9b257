//! Comparison of two judges of a value: serde, and an API server.

// DESIGN.md, 294: A warning excuses a missing field only at the field or above

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use windlass_core::rng::Rng;

use super::lost::{FieldObservations, Tries};
use super::values::{Path, Values};

/// Judgement of serde: the value in its rewritten form, or the reason against the value.
pub type Decoder<'a> = dyn Fn(&Value) -> Result<Value, String> + Sync + 'a;
/// Judgement of an API server: the value in its stored form, or the reason against the value.
pub type Store<'a> =
    dyn Fn(Value) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>> + Sync + 'a;

/// A type whose judges are compared.
#[allow(missing_debug_implementations, reason = "the judges are functions")]
pub struct CheckTarget<'a> {
    /// Structural schema of the values.
    pub schema: &'a Value,
    /// Places that the schema checks less strictly than serde, as `.spec.host: reason`.
    pub warnings: &'a [String],
    /// serde.
    pub decode: &'a Decoder<'a>,
    /// The API server.
    pub store: &'a Store<'a>,
    /// Values from which a part of the tried values is made.
    pub examples: &'a [Value],
    /// Whether every value that serde reads must be stored in the form in which serde writes it:
    /// the type has no additional conditions. A value that was stored must be in any case.
    pub is_exact: bool,
}

/// Counts of a comparison.
#[derive(Clone, Debug, Default)]
pub struct ValueCounts {
    /// Values that were tried.
    pub values: usize,
    /// Values that the API server stored.
    pub stored: usize,
    /// Stored values that serde read.
    pub readable: usize,
    /// Values that the server stored and serde refused, at places with a warning.
    pub unchecked: usize,
    /// The first reason of serde against a stored value.
    pub unreadable: Option<String>,
    /// The first refusal of a value that fits the schema.
    pub refusal: Option<String>,
    /// Differences without a warning.
    pub differences: Vec<String>,
    /// Values that serde itself does not read as written, and the server stored unchanged.
    pub misread: Vec<String>,
    /// Fields that the server stores, and serde writes of no value.
    pub lost: Vec<String>,
}

/// Tries `count` values of the target, half of which fit the schema.
pub async fn judge(target: &CheckTarget<'_>, rng: Rng, count: usize) -> ValueCounts {
    let values = Values::new(rng, target.examples);
    let (mut tally, mut losses) = (ValueCounts::default(), FieldObservations::default());
    for i in 0..count {
        let (value, changed) = if i % 2 == 0 {
            (values.fitting(target.schema), Path::new())
        } else {
            values.near_miss(target.schema, |value| (target.decode)(value).is_ok())
        };
        tally.values += 1;
        one(target, value, &changed, (&mut tally, &mut losses)).await;
    }
    let tries = Tries { schema: target.schema, decode: target.decode, values: &values };
    tally.lost = losses.texts(&tries, |place| is_named(target, std::slice::from_ref(place)));
    tally
}

/// Tries a value.
async fn one(
    target: &CheckTarget<'_>,
    value: Value,
    changed: &[String],
    (tally, losses): (&mut ValueCounts, &mut FieldObservations),
) {
    let stored = match (target.store)(value.clone()).await {
        Ok(stored) => stored,
        Err(refusal) => {
            if changed.is_empty() {
                tally.refusal.get_or_insert_with(|| refusal.clone());
            }
            return refused(target, &value, &refusal, tally).await;
        }
    };
    // A status that is null is none.
    tally.stored += usize::from(!stored.is_null());
    let read = (target.decode)(&stored);
    if let Err(reason) = &read {
        tally.unreadable.get_or_insert_with(|| reason.clone());
    }
    match read {
        Err(reason) if is_warned(target, changed, &reason, &stored) => tally.unchecked += 1,
        Err(reason) => tally.differences.push(format!(
            "the API server stores {value} as {stored}, and serde refuses it: {reason}"
        )),
        Ok(written) => {
            tally.readable += usize::from(!stored.is_null());
            losses.note(&stored, &written, target.schema);
            again(target, &stored, &written, tally).await;
        }
    }
}

/// Stores a value that serde read from the server and wrote: the value comes back as written.
async fn again(target: &CheckTarget<'_>, from: &Value, written: &Value, tally: &mut ValueCounts) {
    let plain = |value: &Value| plain(value, target.schema);
    match (target.store)(written.clone()).await {
        // DESIGN.md, 277: A stored value must be storable as the type writes it
        Err(_) if is_named(target, &changes(from, written)) => tally.unchecked += 1,
        Err(refusal) => tally.differences.push(format!(
            "serde reads {from} and writes {written}, and the API server refuses it: {refusal}"
        )),
        Ok(stored) => match (target.decode)(&stored) {
            Ok(read) if plain(&read) == plain(written) => {}
            Ok(read) if plain(&stored) == plain(written) => tally.misread.push(format!(
                "serde writes {written} and reads that as {read}: `from` and `into` are no inverses of each other, or one \
                 variant of an enum without a tag takes the values of another"
            )),
            // A default that the server fills in for a value that serde leaves out.
            Ok(read) if are_named(target, &changes(&plain(written), &plain(&read))) => {
                tally.unchecked += 1;
            }
            Ok(read) => tally.differences.push(format!(
                "serde writes {written}, the API server stores {stored}, and serde reads that as {read}"
            )),
            Err(reason) if is_warned(target, &[], &reason, &stored) => tally.unchecked += 1,
            Err(reason) => tally.differences.push(format!(
                "serde writes {written}, the API server stores {stored}, and serde refuses that: {reason}"
            )),
        },
    }
}

/// Compares a refusal with the judgement of serde, where both must agree.
async fn refused(target: &CheckTarget<'_>, value: &Value, refusal: &str, tally: &mut ValueCounts) {
    let Ok(written) = (target.decode)(value) else { return };
    // serde reads more than serde writes: numbers as texts of a map's keys, unknown fields.
    if target.is_exact && (target.store)(written.clone()).await.is_err() {
        tally.differences.push(format!(
            "serde reads {value} and writes {written}, and the API server refuses it: {refusal}"
        ));
    }
}

/// Whether a warning names the place that serde refuses or the changed place, or a place above or
/// below. For an enum without a tag serde reports no more than "none of its variants": then a
/// warning about a place at which there is a value counts.
fn is_warned(target: &CheckTarget<'_>, changed: &[String], reason: &str, stored: &Value) -> bool {
    let refused = place_of(reason);
    if let Some(missing) = missing_field(target.schema, stored, &refused, reason) {
        let mut above = target.warnings.iter().map(|warning| place_of(warning));
        return above.any(|place| place.len() <= missing.len() && is_near(&place, &missing));
    }
    target.warnings.iter().any(|warning| {
        let place = place_of(warning);
        let is_changed = !changed.is_empty() && is_near(&place, changed);
        let is_below = place.starts_with(&refused) && is_there(stored, &place);
        is_changed
            || is_below
            || (!refused.is_empty() || changed.is_empty()) && is_near(&place, &refused)
    })
}

/// The place of the field that serde misses, if the schema has the field there: the reason has the
/// object's place, unless the decoder names none. A field that a flattened value or an enum lacks
/// is farther below, at an unknown place, and so is one that each object there has.
fn missing_field(schema: &Value, stored: &Value, object: &[String], reason: &str) -> Option<Path> {
    if object.is_empty() {
        return None;
    }
    let (_, name) = reason.split_once("missing field `")?;
    let (name, _) = name.split_once('`')?;
    let node = object.iter().try_fold(schema, |node, step| match step.as_str() {
        "[]" => node.get("items"),
        name => node
            .get("properties")
            .and_then(|fields| fields.get(name))
            .or_else(|| node.get("additionalProperties")),
    })?;
    node.get("properties")?.get(name)?;
    if !lacks(stored, object, name) {
        return None;
    }
    Some(object.iter().cloned().chain([name.to_owned()]).collect())
}

/// Whether a value at a place is no object with the field.
fn lacks(value: &Value, place: &[String], name: &str) -> bool {
    let Some((step, rest)) = place.split_first() else { return value.get(name).is_none() };
    match value {
        Value::Array(items) => items.iter().any(|item| lacks(item, rest, name)),
        Value::Object(fields) if step == "*" => fields.values().any(|it| lacks(it, rest, name)),
        Value::Object(fields) => fields.get(step).is_some_and(|below| lacks(below, rest, name)),
        _ => false,
    }
}

/// Whether a warning names one of the places, or a place above or below.
fn is_named(target: &CheckTarget<'_>, places: &[Path]) -> bool {
    target
        .warnings
        .iter()
        .map(|warning| place_of(warning))
        .any(|warned| places.iter().any(|place| is_near(&warned, place)))
}

/// Whether warnings name each of the places, or a place above or below.
fn are_named(target: &CheckTarget<'_>, places: &[Path]) -> bool {
    places.iter().all(|place| is_named(target, std::slice::from_ref(place)))
}

/// Whether two places are the same, or one of them is below the other.
fn is_near(one: &[String], other: &[String]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other || one == "*" || other == "*")
}

/// The places at which two values differ.
fn changes(one: &Value, other: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    add_changes(one, other, &mut Path::new(), &mut found);
    found
}

/// Adds the places below `here` at which two values differ.
fn add_changes(one: &Value, other: &Value, here: &mut Path, found: &mut Vec<Path>) {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let names = fields.keys().chain(others.keys().filter(|it| !fields.contains_key(*it)));
            for name in names {
                here.push(name.clone());
                add_changes(&one[name], &other[name], here, found);
                here.pop();
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            here.push("[]".to_owned());
            for (item, other) in items.iter().zip(others) {
                add_changes(item, other, here, found);
            }
            here.pop();
        }
        _ if one == other => {}
        _ => found.push(here.clone()),
    }
}

/// Whether there is a value at a place.
fn is_there(value: &Value, place: &[String]) -> bool {
    let Some((step, rest)) = place.split_first() else { return true };
    match value {
        Value::Array(list) => list.iter().any(|item| is_there(item, rest)),
        Value::Object(fields) if step == "*" => fields.values().any(|it| is_there(it, rest)),
        Value::Object(fields) => fields.get(step).is_some_and(|it| is_there(it, rest)),
        _ => false,
    }
}

/// The steps of the place at the beginning of a message; empty for a message without a place.
fn place_of(message: &str) -> Path {
    let place = message.split_once(": ").map_or("", |(place, _)| place);
    if place.contains(' ') {
        return Path::new();
    }
    let place = place.replace('[', ".[");
    let steps = place.split('.').filter(|step| !step.is_empty());
    steps
        .map(|step| if step.starts_with('[') { "[]".to_owned() } else { step.to_owned() })
        .collect()
}

/// A value without the nulls in objects, which API servers drop at times, with whole numbers as
/// integers (0 and 0.0 are the same number), and with sets in order: a `HashSet` has no order.
fn plain(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let named = schema["properties"].get(name);
                (name.clone(), plain(value, named.unwrap_or(&schema["additionalProperties"])))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(list) => {
            let mut items: Vec<Value> =
                list.iter().map(|item| plain(item, &schema["items"])).collect();
            if schema["x-kubernetes-list-type"] == "set" {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                (float as i64).into()
            }
            _ => value.clone(),
        },
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests;
