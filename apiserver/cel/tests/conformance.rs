//! The conformance cases of the CEL language in `tests/conformance.jsonl`, with the environment of
//! Kubernetes.
//!
//! The cases are behaviours of the language's published suite, in a notation of this project. A
//! case names the stage that refuses an expression; the words of its error are those of no
//! particular implementation and are not compared. `conformance-left-out.jsonl` names the cases of
//! features that Kubernetes does not enable.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use windlass_cel::check::{Checked, Environment};
use windlass_cel::eval::map::Entries;
use windlass_cel::eval::{
    LITERALS, Limits, List, Map, Program, Value, Variables, WorkBudget, equal,
};
use windlass_cel::library::base64::{Alphabet, decode};
use windlass_cel::syntax::{ParserOptions, Source, parse};
use windlass_cel::types::Type;

/// Share of the cases that must agree, in percent.
const REQUIRED: usize = 98;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn read(name: &str) -> String {
    fs::read_to_string(tests().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn cases() -> Vec<Json> {
    let text = read("conformance.jsonl");
    let lines = text.split('\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

/// The cases that are known to differ, with the reasons.
fn known() -> BTreeMap<String, String> {
    let text = read("conformance-differences.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, reason) = line.split_once(" — ").expect("a name and a reason");
        (name.to_owned(), reason.to_owned())
    };
    lines.map(pair).collect()
}

/// The type with a name of the notation: `map(string, int)`.
fn ty(text: &str) -> Type {
    let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(element) = inner("list") {
        return Type::List(Arc::new(ty(element)));
    }
    if let Some((key, value)) = inner("map").and_then(|inner| inner.split_once(", ")) {
        return Type::Map(Arc::new(ty(key)), Arc::new(ty(value)));
    }
    match text {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null" => Type::Null,
        _ => panic!("no type {text}"),
    }
}

/// The value of the notation: `{"int": "1"}`.
fn value(json: &Json) -> Value<'static> {
    let (kind, content) = json.as_object().and_then(|value| value.iter().next()).expect("a value");
    let text = || content.as_str().expect("a text");
    let items = || content.as_array().expect("a list").iter();
    match kind.as_str() {
        "null" => Value::Null,
        "bool" => Value::Bool(content.as_bool().expect("a boolean")),
        "int" => Value::Int(text().parse().expect("an int")),
        "uint" => Value::Uint(text().parse().expect("a uint")),
        "double" => Value::Double(text().parse().expect("a double")),
        "string" => Value::text(text()),
        "bytes" => Value::Bytes(decode(text(), Alphabet::Standard).expect("base64").into()),
        "type" => Value::Type(text().into()),
        "list" => Value::list(items().map(value).collect()),
        "map" => {
            let mut entries = Entries::default();
            for entry in items() {
                entries.set(value(&entry[0]), value(&entry[1])).expect("a key");
            }
            Value::Map(Map::Entries(Arc::new(entries)))
        }
        _ => panic!("no kind of value {kind}"),
    }
}

/// Whether two values are equal and of the same types; NaN is the same as NaN.
fn is_same(found: &Value<'_>, expected: &Value<'_>) -> bool {
    match (found, expected) {
        (Value::Double(found), Value::Double(expected)) => {
            found == expected || found.is_nan() && expected.is_nan()
        }
        (Value::List(found), Value::List(expected)) => are_same_lists(found, expected),
        (Value::Map(found), Value::Map(expected)) => {
            let (found, expected) = (sorted(found), sorted(expected));
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(&expected)
                    .all(|((_, a), (_, b))| is_same(&a.0, &b.0) && is_same(&a.1, &b.1))
        }
        _ => {
            found.type_name() == expected.type_name()
                && equal::equals(found, expected, &WorkBudget::new(1_000_000)).unwrap_or(false)
        }
    }
}

fn are_same_lists(found: &List<'_>, expected: &List<'_>) -> bool {
    let elements = || found.iter().zip(expected.iter());
    found.len() == expected.len()
        && elements().all(|(a, b)| matches!((a, b), (Ok(a), Ok(b)) if is_same(&a, &b)))
}

/// The entries in an order that does not depend on the one of their insertion.
fn sorted<'a>(map: &Map<'a>) -> Vec<(String, (Value<'a>, Value<'a>))> {
    let value = |key: &Value<'a>| map.find(key).ok().flatten().unwrap_or(Value::Null);
    let keys = map.keys().into_iter();
    let mut entries: Vec<_> =
        keys.map(|key| (format!("{key:?}"), (key.clone(), value(&key)))).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// The checked expression, or the parsed one where a case leaves the check out; else the stage that
/// refuses it.
fn compiled(case: &Json) -> Result<Checked, (&'static str, String)> {
    let text = case["expr"].as_str().expect("an expression");
    let ast = parse(Source::new(text), &ParserOptions::default())
        .map_err(|issues| ("parse", issues.to_string()))?;
    if case["typed"] == false {
        return Ok(Checked { ast: Arc::new(ast), types: Vec::new(), references: Vec::new() });
    }
    let mut environment = Environment::kubernetes()
        .with_literal_validators(LITERALS)
        .with_container(case["container"].as_str().unwrap_or_default());
    for (name, declared) in case["types"].as_object().into_iter().flatten() {
        let declared = ty(declared.as_str().expect("a type"));
        environment = environment.with_variable(name.as_str(), declared);
    }
    environment.check(ast).map_err(|issues| ("check", issues.to_string()))
}

/// The difference between a case and the engine.
fn difference(case: &Json) -> Option<String> {
    let expect = &case["expect"];
    let refused_at = expect["at"].as_str();
    let checked = match compiled(case) {
        Ok(checked) => checked,
        Err((stage, _)) if refused_at == Some(stage) => return None,
        Err((stage, issues)) => return Some(format!("refused at {stage}: {issues}")),
    };
    if let Some(stage @ ("parse" | "check")) = refused_at {
        return Some(format!("not refused at {stage}"));
    }
    if let Some(expected) = expect["type"].as_str() {
        let found = checked.output_type().to_string();
        if found != expected {
            return Some(format!("type {found}, expected {expected}"));
        }
    }
    if expect.get("value").is_none() && refused_at.is_none() {
        return None;
    }
    let mut variables = Variables::new();
    for (name, bound) in case["bindings"].as_object().into_iter().flatten() {
        variables = variables.bind(name.as_str(), value(bound));
    }
    let limits = Limits::new(1_000_000);
    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(_) if refused_at == Some("eval") => return None,
        Err(error) => return Some(format!("not planned: {error}")),
    };
    match (program.evaluate(&variables, limits).result, expect.get("value")) {
        (Err(_), None) => None,
        (Err(error), Some(_)) => Some(format!("error {error}")),
        (Ok(found), None) => Some(format!("value {found:?}, expected an error")),
        (Ok(found), Some(expected)) => (!is_same(&found, &value(expected)))
            .then(|| format!("value {found:?}, expected {expected}")),
    }
}

#[test]
fn conformance_cases_of_the_language_agree() {
    let cases = cases();
    assert!(cases.len() >= 1_400, "the cases are there");
    let found: BTreeMap<String, String> = cases
        .iter()
        .filter_map(|case| {
            let [section, name] =
                ["section", "name"].map(|key| case[key].as_str().expect("a name"));
            let difference = difference(case)?;
            Some((format!("{section}/{name}"), format!("{}\n  {difference}", case["expr"])))
        })
        .collect();
    eprintln!("{} of {} cases agree", cases.len() - found.len(), cases.len());
    let known = known();
    let new: Vec<String> = found
        .iter()
        .filter(|(name, _)| !known.contains_key(*name))
        .map(|(name, difference)| format!("{name}: {difference}"))
        .collect();
    let gone: Vec<&String> = known.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(
        new.is_empty(),
        "{} cases differ that are not in conformance-differences.txt:\n{}",
        new.len(),
        new.join("\n")
    );
    assert!(gone.is_empty(), "cases of conformance-differences.txt that agree: {gone:?}");
    assert!((cases.len() - found.len()) * 100 >= cases.len() * REQUIRED, "too few agree");
}

#[test]
fn every_case_that_is_left_out_says_why() {
    let text = read("conformance-left-out.jsonl");
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let case: Json = serde_json::from_str(line).expect("a case is JSON");
        let reason = case["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{line}");
    }
}
