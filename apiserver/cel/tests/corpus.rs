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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn lines(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
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
        if !recorded.exists() { continue; }
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

/// Verdicts and messages that agree, of all that were compared.
#[derive(Default)]
struct Tally {
    compared: usize,
    verdicts: Vec<String>,
    messages: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, expected: &[Cause], found: &[Cause]) {
        self.compared += 1;
        let report = || format!("{name}\n  server: {expected:?}\n  ours:   {found:?}");
        if expected.is_empty() != found.is_empty() {
            self.verdicts.push(report());
        } else if expected != found {
            self.messages.push(report());
        }
    }
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

fn replay(case: &Value, recorded: &Value, named: &Value, tally: &mut Tally) {
    let name = case["name"].as_str().expect("a name");
    let schema = schema(case, named);
    let expected = causes(&recorded["created"]);
    let found = answered(SCHEMA, &check_definition(&schema));
    tally.compare(name, &expected, &found);
    let recorded = recorded["checks"].as_array().into_iter().flatten();
    if !expected.is_empty() || !found.is_empty() {
        return;
    }
    let validator = Validator::new(&schema);
    for (check, outcome) in case["checks"].as_array().into_iter().flatten().zip(recorded) {
        let expected = causes(outcome);
        let is_of_schema = expected.iter().any(|cause| cause.2.contains(NOT_CHECKED));
        if outcome.get("old").is_some() || is_of_schema {
            continue;
        }
        let (new, old) = (object(case, &check["object"]), check.get("old"));
        let old = old.map(|old| object(case, old));
        let report = validator.validate(&new, old.as_ref());
        let name = format!("{name}: {} {}", case["rules"], check["object"]);
        tally.compare(&name, &expected, &answered("", &report.violations));
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
    let samples: Vec<String> = tally.verdicts.into_iter().chain(tally.messages).collect();
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for sample in &samples {
        *groups.entry(sample.split(' ').take(2).collect::<Vec<_>>().join(" ")).or_default() += 1;
    }
    eprintln!("{} compared, {verdicts} other verdicts, {messages} other messages", tally.compared);
    if let Ok(path) = std::env::var("WINDLASS_CEL_DIFFERENCES") {
        fs::write(path, samples.join("\n")).expect("the differences are written");
    }
    assert!(
        verdicts == 0,
        "{verdicts} verdicts differ: {groups:?}\n{}",
        samples[..samples.len().min(20)].join("\n")
    );
}
