//! The corpus of `tests/corpus`: verdicts and messages of the real kube-apiserver, replayed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use windlass_cel::rules::{Validator, Violation, check_definition};

/// Prefix of the fields that a definition's causes name.
const SCHEMA: &str = "spec.validation.openAPIV3Schema";

/// Cause of an object that breaks the schema: its rules were not run.
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid";

/// Cause of a rule at a place where none may be.
const NOT_STRUCTURAL: &str = "must be empty to be structural";

/// Cause of an object that breaks another check of its schema, which leaves the rules to run.
const OF_SCHEMA: &str = " in body should ";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn lines(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // A line separator within a text ends no line.
    text.split('\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).expect("a case is JSON"))
        .collect()
}

/// The cases of one kind with their recorded outcomes.
fn cases(kind: &str) -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let recorded = path.with_file_name(format!("recorded-{name}"));
        if !name.ends_with(".jsonl") || name.starts_with("recorded-") {
            continue;
        }
        let (cases, recorded) = (lines(&path), lines(&recorded));
        assert_eq!(cases.len(), recorded.len(), "{name}");
        all.extend(cases.into_iter().zip(recorded).filter(|(case, _)| case["kind"] == kind));
    }
    all
}

/// The causes of an outcome; none if it is a success.
fn causes(outcome: &Value) -> Vec<Cause> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let cause =
        |cause: &Value| (text(cause, "reason"), text(cause, "field"), text(cause, "message"));
    let mut causes: Vec<Cause> =
        outcome["causes"].as_array().into_iter().flatten().map(cause).collect();
    if causes.is_empty() && outcome["ok"] == false {
        causes.push((String::new(), String::new(), text(outcome, "message")));
    }
    causes.sort();
    causes
}

/// Reason, field and message.
type Cause = (String, String, String);

fn answered(prefix: &str, violations: &[Violation]) -> Vec<Cause> {
    let cause = |violation: &Violation| {
        let path = violation.path.as_str();
        let field = match (prefix, path) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        (violation.reason.name().to_owned(), field, violation.body())
    };
    let mut causes: Vec<Cause> = violations.iter().map(cause).collect();
    causes.sort();
    causes
}

/// Differences of verdicts and messages, by the names of the cases.
#[derive(Default)]
struct Tally {
    compared: usize,
    verdicts: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
}

impl Tally {
    fn compare(&mut self, name: &str, expected: &[Cause], found: &[Cause]) {
        self.compared += 1;
        let report = format!("  server: {expected:?}\n  ours:   {found:?}");
        if expected.is_empty() != found.is_empty() {
            self.verdicts.entry(name.to_owned()).or_insert(report);
        } else if expected != found {
            self.messages.entry(name.to_owned()).or_insert(report);
        }
    }
}

/// The cases that are known to differ, with the reasons.
fn known() -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder().with_file_name("differences.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, reason) = line.split_once(" — ").expect("a name and a reason");
        (name.to_owned(), reason.to_owned())
    };
    lines.map(pair).collect()
}

/// The schema of a case with its rules, and that of the whole resource.
fn schema(case: &Value, named: &Value) -> Value {
    let mut schema = match &case["schema"] {
        Value::String(name) => named[name].clone(),
        schema => schema.clone(),
    };
    if let Some(rules) = case.get("rules") {
        schema["x-kubernetes-validations"] = rules.clone();
    }
    if case["whole"] == true {
        return schema;
    }
    json!({"type": "object", "properties": {"value": schema}})
}

/// The object of a check, as the server gets it.
fn object(case: &Value, content: &Value) -> Value {
    if case["whole"] != true {
        return json!({"value": content});
    }
    let mut object = content.clone();
    object["apiVersion"] = json!("corpus.example/v1");
    object["kind"] = json!("Cases");
    object["metadata"]["name"] = content["metadata"]["name"].as_str().unwrap_or("probe").into();
    object
}

/// Fills in the defaults of a schema, which a server does before it runs the rules.
fn fill_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(entries) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    entries.entry(name.clone()).or_insert_with(|| default.clone());
                }
            }
            for (name, entry) in entries {
                let property = &schema["properties"][name.as_str()];
                let values = &schema["additionalProperties"];
                fill_defaults(entry, if property.is_null() { values } else { property });
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| fill_defaults(item, &schema["items"]));
        }
        _ => {}
    }
}

fn replay(case: &Value, recorded: &Value, named: &Value, tally: &mut Tally) {
    let name = case["name"].as_str().expect("a name");
    let schema = schema(case, named);
    let expected = causes(&recorded["created"]);
    // Bodies that are not decoded, and rules where no schema may have any, are judged before rules are.
    let is_of_rules = |cause: &Cause| !cause.0.is_empty() && !cause.2.contains(NOT_STRUCTURAL);
    if !expected.iter().all(is_of_rules) {
        return;
    }
    let found = answered(SCHEMA, &check_definition(&schema));
    tally.compare(name, &expected, &found);
    let recorded = recorded["checks"].as_array().into_iter().flatten();
    if !expected.is_empty() || !found.is_empty() {
        return;
    }
    let validator = Validator::new(&schema);
    for (check, outcome) in case["checks"].as_array().into_iter().flatten().zip(recorded) {
        let expected = causes(outcome);
        let is_of_schema = expected
            .iter()
            .any(|cause| cause.2.contains(NOT_CHECKED) || cause.2.contains(OF_SCHEMA));
        if outcome.get("old").is_some() || is_of_schema {
            continue;
        }
        let complete = |content: &Value| {
            let mut object = object(case, content);
            fill_defaults(&mut object, &schema);
            object
        };
        let new = complete(&check["object"]);
        let old = check.get("old").map(complete);
        let report = validator.validate(&new, old.as_ref());
        tally.compare(name, &expected, &answered("", &report.violations));
    }
}

#[test]
fn rules_of_custom_resources_are_judged_as_kube_apiserver_judges_them() {
    let text = fs::read_to_string(folder().join("schemas.json")).expect("the schemas");
    let named: Value = serde_json::from_str(&text).expect("the schemas");
    let mut tally = Tally::default();
    for (case, recorded) in cases("crd") {
        replay(&case, &recorded, &named, &mut tally);
    }
    let (verdicts, messages) = (tally.verdicts.len(), tally.messages.len());
    eprintln!("{} compared, {verdicts} other verdicts, {messages} other messages", tally.compared);
    let found: BTreeMap<String, String> =
        tally.verdicts.into_iter().chain(tally.messages).collect();
    if let Ok(path) = std::env::var("WINDLASS_CEL_DIFFERENCES") {
        let lines: Vec<String> =
            found.iter().map(|(name, report)| format!("{name}\n{report}")).collect();
        fs::write(path, lines.join("\n")).expect("the differences are written");
    }
    let known = known();
    let new: Vec<String> = found
        .iter()
        .filter(|(name, _)| !known.contains_key(*name))
        .map(|(name, report)| format!("{name}\n{report}"))
        .collect();
    let gone: Vec<&String> = known.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(
        new.is_empty(),
        "{} cases differ that are not in differences.txt:\n{}",
        new.len(),
        new.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
    assert!(gone.is_empty(), "cases of differences.txt that agree now: {gone:?}");
    assert!(tally.compared >= 7_800, "the corpus is there");
}
