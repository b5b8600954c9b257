//! Validation of a value against a compiled schema, in the order and with the texts of
//! kube-openapi.
//!
//! The order follows upstream's validators: type, combinations, strings, formats, numbers, lists,
//! enumerations, objects. Fields are visited by name, where upstream has no order.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cause::{self, fault, plain, shown};
use super::lists::Correlated;
use super::node::{Additional, ListType, SchemaNode};
use super::numbers;
use crate::served::Cause;

/// Most faults of an object. kube-apiserver has no such limit: for more faults it takes quadratic
/// time, up to the deadline.
const MOST_CAUSES: usize = 1000;

/// Faults of a value, and the number of passed checks, by which `anyOf` finds the closest branch.
#[derive(Debug, Default)]
struct ValidationOutcome {
    /// Faults, each once.
    causes: Vec<Cause>,
    /// The same faults for look-ups: a search of the list would be quadratic in bad values.
    known: BTreeSet<Cause>,
    /// Number of passed checks.
    matches: usize,
}

impl ValidationOutcome {
    /// Adds a fault, unless known or beyond the limit.
    fn add(&mut self, cause: Cause) {
        if self.causes.len() < MOST_CAUSES && self.known.insert(cause.clone()) {
            self.causes.push(cause);
        }
    }

    /// Adds the faults and passed checks of another outcome.
    fn merge(&mut self, other: ValidationOutcome) {
        self.matches += other.matches;
        for cause in other.causes {
            self.add(cause);
        }
    }

    /// Drops all faults.
    fn clear(&mut self) {
        self.causes.clear();
        self.known.clear();
    }

    /// Whether there is no fault.
    fn ok(&self) -> bool {
        self.causes.is_empty()
    }
}

/// Validates `new`; parts that are unchanged since `old` are tolerated.
pub(crate) fn validate(root: &SchemaNode, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    ratchet(root, new, old, "").causes
}

/// Validates a value against the old state: the faults of an unchanged value are dropped.
fn ratchet(node: &SchemaNode, value: &Value, old: Option<&Value>, path: &str) -> ValidationOutcome {
    let mut outcome = check(node, value, old, path);
    // An object that became invalid with a change of the schema can still be updated elsewhere.
    if !outcome.ok() && old == Some(value) {
        outcome.clear();
    }
    outcome
}

/// Validates a value without tolerance for the old state.
fn check(node: &SchemaNode, value: &Value, old: Option<&Value>, path: &str) -> ValidationOutcome {
    let mut out = ValidationOutcome::default();
    check_type(node, value, path, &mut out);
    if value.is_null() {
        check_enum(node, value, path, &mut out);
        return out;
    }
    out.matches += 1;
    combine(node, value, old, path, &mut out);
    match value {
        Value::String(text) => {
            check_string(node, text, path, &mut out);
            check_format(node, text, path, &mut out);
        }
        Value::Number(number) => {
            numbers::faults(node, number, path).into_iter().for_each(|cause| out.add(cause));
            out.matches += 1;
        }
        Value::Array(items) => check_items(node, items, old, path, &mut out),
        _ => {}
    }
    check_enum(node, value, path, &mut out);
    if let Value::Object(_) = value {
        check_object(node, value, old, path, &mut out);
    }
    out
}

/// Returns the JSON schema type and the OpenAPI format of a value.
fn kind_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(n) if n.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
    }
}

/// Checks type and nullability.
fn check_type(node: &SchemaNode, value: &Value, path: &str, out: &mut ValidationOutcome) {
    if node.types.is_empty() && node.format.is_empty() {
        return;
    }
    let has = |kind: &str| node.types.iter().any(|t| t == kind);
    let (kind, format) = kind_of(value);
    if value.is_null() {
        if !node.types.is_empty() && !node.nullable && !has("null") {
            out.add(wrong_type(path, &node.types.join(","), "null"));
        }
        return;
    }
    // Beyond 2^53 a float no longer names a single integer.
    let whole =
        value.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 9_007_199_254_740_992.0);
    let fits = has(kind)
        || (kind == "number" && has("integer") && whole)
        || (kind == "integer" && has("number"));
    let formatted = !node.format.is_empty();
    let text_like = matches!(value, Value::String(_) | Value::Array(_));
    // Values other than texts and lists are reported by format, if the schema has a format.
    if !text_like && formatted && !fits && format != node.format {
        out.add(wrong_type(path, &node.format, format));
        return;
    }
    // A text or list with a format is left to the check of the format.
    if !(has("number") || has("integer")) && formatted && text_like {
        return;
    }
    if !fits {
        out.add(wrong_type(path, &node.types.join(","), kind));
    }
}

/// Returns the fault of a value of a wrong type.
fn wrong_type(path: &str, wanted: &str, got: &str) -> Cause {
    let path = shown(path);
    // The cause shows the type in place of the value.
    let got = Value::String(got.to_owned());
    cause::type_invalid(path, &got, &format!("{path} in body must be of type {wanted}: {got}"))
}

/// Checks `allOf`, `anyOf`, `oneOf` and `not`.
fn combine(
    node: &SchemaNode,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut ValidationOutcome,
) {
    let name = cause::quote(shown(path));
    if !node.any_of.is_empty() {
        any_of(node, value, old, path, out);
    }
    if !node.one_of.is_empty() {
        one_of(node, value, old, path, out);
    }
    if !node.all_of.is_empty() {
        let mut valid = 0;
        for branch in &node.all_of {
            let result = check(branch, value, old, path);
            valid += usize::from(result.ok());
            out.merge(result);
        }
        if valid != node.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.add(plain(format!("{name} must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &node.not
        && check(not, value, old, path).ok()
    {
        out.add(plain(format!("{name} must not validate the schema (not)")));
    }
    out.matches += 1;
}

/// Checks `anyOf`; without a valid branch the faults of the closest branch are reported.
fn any_of(
    node: &SchemaNode,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut ValidationOutcome,
) {
    let mut best: Option<ValidationOutcome> = None;
    for branch in &node.any_of {
        let result = check(branch, value, old, path);
        if result.ok() {
            return out.merge(result);
        }
        if best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    let name = cause::quote(shown(path));
    out.add(plain(format!("{name} must validate at least one schema (anyOf)")));
    out.merge(best.unwrap_or_default());
}

/// Checks `oneOf`; without a valid branch the faults of the closest branch are reported.
fn one_of(
    node: &SchemaNode,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut ValidationOutcome,
) {
    let mut best: Option<ValidationOutcome> = None;
    let mut valid = 0;
    for branch in &node.one_of {
        let result = check(branch, value, old, path);
        if result.ok() {
            valid += 1;
            // With two valid branches no faults are reported, only their number.
            best = None;
        } else if valid == 0 && best.as_ref().is_none_or(|b| result.matches > b.matches) {
            best = Some(result);
        }
    }
    if valid == 1 {
        return;
    }
    let found = match valid {
        0 => "Found none valid".to_owned(),
        n => format!("Found {n} valid alternatives"),
    };
    let name = cause::quote(shown(path));
    out.add(plain(format!("{name} must validate one and only one schema (oneOf). {found}")));
    out.merge(best.unwrap_or_default());
}

/// Checks length and pattern of a text; only the first fault is reported.
fn check_string(node: &SchemaNode, text: &str, path: &str, out: &mut ValidationOutcome) {
    let value = || Value::String(text.to_owned());
    let length = text.chars().count() as u64;
    if let Some(max) = node.max_length.filter(|max| length > *max) {
        out.add(cause::too_long(shown(path), max));
    } else if let Some(min) = node.min_length.filter(|min| length < *min) {
        out.add(fault(path, &value(), &format!("should be at least {min} chars long")));
    } else if let Some(pattern) = node.pattern.as_ref().filter(|p| !p.matches(text)) {
        out.add(fault(path, &value(), &format!("should match '{}'", pattern.source())));
    } else {
        out.matches += 1;
    }
}

/// Checks the format of a text.
fn check_format(node: &SchemaNode, text: &str, path: &str, out: &mut ValidationOutcome) {
    if node.format.is_empty() || super::formats::valid(&node.format, text) {
        return;
    }
    let path = shown(path);
    let value = Value::String(text.to_owned());
    let detail = format!("{path} in body must be of type {}: {}", node.format, cause::quote(text));
    out.add(cause::type_invalid(path, &value, &detail));
}

/// Checks the items and the length of a list.
fn check_items(
    node: &SchemaNode,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    out: &mut ValidationOutcome,
) {
    if let Some(schema) = node.items.as_deref() {
        // Only in lists of type `map` items have an identity, and thereby an old state.
        let before =
            old.and_then(Value::as_array).filter(|_| node.list_type == Some(ListType::Map));
        let before = before.map(|old| Correlated::new(old, &node.list_map_keys));
        for (i, item) in items.iter().enumerate() {
            let old = before.as_ref().and_then(|old| old.find(item));
            out.merge(ratchet(schema, item, old, &format!("{path}[{i}]")));
        }
    }
    let size = items.len() as u64;
    if let Some(min) = node.min_items.filter(|min| size < *min) {
        out.add(fault(path, &Value::from(size), &format!("should have at least {min} items")));
    }
    if let Some(max) = node.max_items.filter(|max| size > *max) {
        out.add(cause::too_many(shown(path), items.len(), max));
    }
    out.matches += 1;
}

/// Checks the enumeration.
fn check_enum(node: &SchemaNode, value: &Value, path: &str, out: &mut ValidationOutcome) {
    if node.enumeration.is_empty() {
        return;
    }
    let same = |allowed: &Value| match (allowed, value) {
        // `1` and `1.0` are the same number.
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        // Null never matches an entry of the enumeration.
        (Value::Null, _) => false,
        (a, b) => a == b,
    };
    if node.enumeration.iter().any(same) {
        out.matches += 1;
        return;
    }
    let allowed: Vec<String> = node
        .enumeration
        .iter()
        .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
        .collect();
    out.add(cause::not_supported(shown(path), value, &allowed));
}

/// Checks the fields of an object.
fn check_object(
    node: &SchemaNode,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    out: &mut ValidationOutcome,
) {
    let Some(map) = value.as_object() else { return };
    let size = map.len() as u64;
    if let Some(min) = node.min_properties.filter(|min| size < *min) {
        let text = format!("should have at least {min} properties");
        return out.add(fault(path, &Value::from(size), &text));
    }
    if let Some(max) = node.max_properties.filter(|max| size > *max) {
        return out.add(cause::too_many(shown(path), map.len(), max));
    }
    let before = |key: &str| {
        // An atomic map changes as a whole: fields have no separate old state.
        if node.map_atomic || (path.is_empty() && matches!(key, "kind" | "apiVersion")) {
            return None;
        }
        old.and_then(|old| old.get(key))
    };
    for (key, child) in map {
        let inner = format!("{path}.{key}");
        match (node.properties.get(key), &node.additional) {
            (Some(schema), _) => out.merge(ratchet(schema, child, before(key), &inner)),
            (None, Some(Additional::Schema(schema))) => {
                // Upstream does not compare these with their own old state.
                out.merge(check(schema, child, before(key), &inner));
            }
            (None, Some(Additional::Any(false))) if key != "$schema" && key != "id" => {
                let path = shown(path);
                let text = format!("{path}.{key} in body is a forbidden property");
                out.add(cause::invalid(path, &Value::String(key.clone()), &text));
            }
            _ => {}
        }
    }
    for name in &node.required {
        let defaulted = node.properties.get(name).is_some_and(|p| p.default.is_some());
        // A default fills the field in before the object is stored.
        if !map.contains_key(name) && !defaulted {
            out.add(cause::required(shown(&format!("{path}.{name}")), ""));
        }
    }
    out.matches += 1;
}
