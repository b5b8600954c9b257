//! Constraints of a value: null, choices, bounds, patterns, formats and alternatives.

use serde_json::{Map, Value, json};

use super::node::{SchemaAtPath, list};
use super::rule::CompatRule;
use super::walk::Walk;

/// Bounds from below: an absent bound equals the value in the second column.
const LOWER: [(&str, Option<f64>); 4] = [
    ("minimum", None),
    ("minItems", Some(0.0)),
    ("minLength", Some(0.0)),
    ("minProperties", Some(0.0)),
];
/// Bounds from above.
const UPPER: [&str; 4] = ["maximum", "maxItems", "maxLength", "maxProperties"];
/// Alternatives and their like.
const COMBINATIONS: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
/// Formats that check nothing.
const FREE_FORMATS: [&str; 5] = ["double", "float", "int64", "password", ""];

/// Whether [`compare`] compares the keyword.
pub(super) fn is_compared(key: &str) -> bool {
    LOWER.iter().any(|(bound, _)| *bound == key)
        || UPPER.contains(&key)
        || COMBINATIONS.contains(&key)
        || matches!(
            key,
            "nullable"
                | "enum"
                | "exclusiveMinimum"
                | "exclusiveMaximum"
                | "multipleOf"
                | "uniqueItems"
                | "pattern"
                | "format"
        )
}

/// Compares the constraints of the value at `path`.
pub(super) fn compare(
    walk: &mut Walk<'_>,
    old: SchemaAtPath<'_>,
    new: SchemaAtPath<'_>,
    path: &str,
) {
    match (old.is("nullable"), new.is("nullable")) {
        (true, false) => {
            let has_default = new.schema.contains_key("default");
            let rule =
                if has_default { CompatRule::NullDefaulted } else { CompatRule::NullableRemoved };
            walk.add(rule, path, "null is no longer allowed");
        }
        (false, true) => walk.add(CompatRule::NullableAdded, path, "null is allowed"),
        _ => {}
    }
    let (old, new) = (normal(old.schema), normal(new.schema));
    choices(walk, &old, &new, path);
    bounds(walk, &old, &new, path);
    patterns(walk, &old, &new, path);
    combinations(walk, &old, &new, path);
}

/// Returns the schema with checks moved out of `allOf` where that changes nothing, and without
/// alternatives that repeat the type: the same constraint can be written in several ways.
///
/// Bounds of lists in a schema of another type are left out: they only keep lists out of a text
/// with a format, and no client relied on a list there.
fn normal(schema: &Map<String, Value>) -> Map<String, Value> {
    let is_list = schema.get("type").is_none_or(|name| name == "array");
    let is_constraint = |key: &String| {
        let of_lists = matches!(key.as_str(), "minItems" | "maxItems");
        (is_compared(key) && (is_list || !of_lists)) || key == "x-kubernetes-int-or-string"
    };
    let mut normal: Map<String, Value> = schema
        .iter()
        .filter(|(key, _)| is_constraint(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let is_union = |value: &Value| {
        let mut types: Vec<&Value> = list(value).iter().filter_map(|one| one.get("type")).collect();
        types.sort_by_key(|name| name.to_string());
        types == [&json!("integer"), &json!("string")] && list(value).len() == 2
    };
    if normal.contains_key("x-kubernetes-int-or-string")
        && normal.get("anyOf").is_some_and(is_union)
    {
        normal.remove("anyOf");
    }
    if let Some(Value::Array(parts)) = normal.remove("allOf") {
        let mut rest = Vec::new();
        for part in parts {
            match part.as_object() {
                Some(one) if one.get("anyOf").is_some_and(is_union) && one.len() == 1 => {}
                Some(one)
                    if one.keys().all(|key| is_compared(key) && !normal.contains_key(key)) =>
                {
                    normal.extend(one.clone());
                }
                _ => rest.push(part),
            }
        }
        if !rest.is_empty() {
            normal.insert("allOf".to_owned(), rest.into());
        }
    }
    // A single alternative is a constraint like any other: generated definitions write the choices
    // of a field that may be null so.
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = normal.get(key) else { continue };
        let [Value::Object(only)] = branches.as_slice() else { continue };
        if only.keys().all(|key| is_compared(key) && !normal.contains_key(key)) {
            let only = only.clone();
            normal.remove(key);
            normal.extend(only);
        }
    }
    normal
}

/// Compares `enum`. Null is no choice: `nullable` allows null.
fn choices(walk: &mut Walk<'_>, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) {
    let values = |schema: &Map<String, Value>| {
        let values = schema.get("enum")?.as_array()?.iter();
        Some(values.filter(|value| !value.is_null()).cloned().collect::<Vec<_>>())
    };
    let print = |values: &[&Value]| {
        let texts: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        texts.join(", ")
    };
    match (values(old), values(new)) {
        (None, Some(new)) => {
            let text = format!("only {} are allowed", print(&new.iter().collect::<Vec<_>>()));
            walk.add(CompatRule::EnumNarrowed, path, text);
        }
        (Some(_), None) => walk.add(CompatRule::EnumWidened, path, "any value is allowed"),
        (Some(old), Some(new)) => {
            let gone: Vec<&Value> = old.iter().filter(|value| !new.contains(value)).collect();
            let added: Vec<&Value> = new.iter().filter(|value| !old.contains(value)).collect();
            if !gone.is_empty() {
                let text = format!("the value {} is removed", print(&gone));
                walk.add(CompatRule::EnumNarrowed, path, text);
            }
            if !added.is_empty() {
                walk.add(
                    CompatRule::EnumWidened,
                    path,
                    format!("the value {} is allowed", print(&added)),
                );
            }
        }
        (None, None) => {}
    }
}

/// A bound: the value, and whether it is excluded.
type NumberBound = (f64, bool);

/// Compares bounds of numbers and sizes.
fn bounds(walk: &mut Walk<'_>, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) {
    let bound = |schema: &Map<String, Value>, key: &str| -> Option<NumberBound> {
        let exclusive = match key {
            "minimum" => "exclusiveMinimum",
            "maximum" => "exclusiveMaximum",
            _ => "",
        };
        let is_excluded = schema.get(exclusive) == Some(&Value::Bool(true));
        Some((schema.get(key)?.as_f64()?, is_excluded))
    };
    let mut compare = |key: &str,
                       before: Option<NumberBound>,
                       after: Option<NumberBound>,
                       sign: f64| {
        // Compared as bounds from below: those from above are negated.
        let rank = |bound: Option<NumberBound>| {
            bound.map_or((f64::NEG_INFINITY, false), |(value, excluded)| (sign * value, excluded))
        };
        if rank(before) == rank(after) {
            return;
        }
        let tight = rank(after) > rank(before);
        let rule = if tight { CompatRule::BoundTightened } else { CompatRule::BoundLoosened };
        let print = |bound: Option<NumberBound>| match bound {
            None => "none".to_owned(),
            Some((value, false)) => value.to_string(),
            Some((value, true)) => format!("{value} (exclusive)"),
        };
        let text = format!("`{key}` changes from {} to {}", print(before), print(after));
        walk.add(rule, path, text);
    };
    for (key, implied) in LOWER {
        let implied = implied.map(|value| (value, false));
        compare(key, bound(old, key).or(implied), bound(new, key).or(implied), 1.0);
    }
    for key in UPPER {
        compare(key, bound(old, key), bound(new, key), -1.0);
    }
    multiples(walk, old, new, path);
}

/// Compares `multipleOf` and `uniqueItems`.
fn multiples(walk: &mut Walk<'_>, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) {
    let number = |schema: &Map<String, Value>| schema.get("multipleOf").and_then(Value::as_f64);
    match (number(old), number(new)) {
        (before, after) if before == after => {}
        (Some(before), Some(after)) if before % after == 0.0 => {
            let text = format!("`multipleOf` changes from {before} to {after}");
            walk.add(CompatRule::BoundLoosened, path, text);
        }
        (_, Some(after)) => {
            walk.add(CompatRule::BoundTightened, path, format!("`multipleOf` becomes {after}"));
        }
        (_, None) => walk.add(CompatRule::ConstraintRemoved, path, "`multipleOf` is removed"),
    }
    let unique = |schema: &Map<String, Value>| schema.get("uniqueItems") == Some(&true.into());
    match (unique(old), unique(new)) {
        (false, true) => walk.add(CompatRule::BoundTightened, path, "`uniqueItems` becomes true"),
        (true, false) => walk.add(CompatRule::ConstraintRemoved, path, "`uniqueItems` is removed"),
        _ => {}
    }
}

/// Compares patterns and formats.
fn patterns(walk: &mut Walk<'_>, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) {
    for (key, rule) in
        [("pattern", CompatRule::PatternChanged), ("format", CompatRule::FormatChanged)]
    {
        let of = |schema: &Map<String, Value>| {
            let text = schema.get(key).and_then(Value::as_str).unwrap_or_default();
            let is_free = key == "format" && FREE_FORMATS.contains(&text);
            if is_free { String::new() } else { text.to_owned() }
        };
        match (of(old), of(new)) {
            (before, after) if before == after => {}
            (before, after) if after.is_empty() => {
                let text = format!("the {key} `{before}` is removed");
                walk.add(CompatRule::ConstraintRemoved, path, text);
            }
            (before, after) if before.is_empty() => {
                walk.add(rule, path, format!("the {key} `{after}` is new"));
            }
            (before, after) => {
                walk.add(rule, path, format!("the {key} changes from `{before}` to `{after}`"));
            }
        }
    }
}

/// Compares alternatives. More of them in `anyOf` and fewer checks in `allOf` are looser; any other
/// change may be stricter.
fn combinations(
    walk: &mut Walk<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    path: &str,
) {
    let contains = |whole: &Value, part: &Value| {
        list(part).iter().all(|one| list(whole).contains(one)) && part.is_array()
    };
    for key in COMBINATIONS {
        match (old.get(key), new.get(key)) {
            (before, after) if before == after => {}
            (Some(_), None) => {
                walk.add(CompatRule::ConstraintRemoved, path, format!("`{key}` is removed"));
            }
            (Some(before), Some(after))
                if (key == "anyOf" && contains(after, before))
                    || (key == "allOf" && contains(before, after)) =>
            {
                walk.add(CompatRule::ConstraintRemoved, path, format!("`{key}` allows more"));
            }
            (Some(_), Some(_)) => {
                walk.add(CompatRule::CombinationChanged, path, format!("`{key}` changes"));
            }
            (None, _) => walk.add(CompatRule::CombinationChanged, path, format!("`{key}` is new")),
        }
    }
}
