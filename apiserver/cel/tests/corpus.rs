//! The corpus of `tests/corpus`: verdicts and messages of the real kube-apiserver, replayed.

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{Cause, Tally, answered, cases, causes, folder, names};
use windlass_cel::rules::{Validator, check_definition};

/// Prefix of the fields that a definition's causes name.
const SCHEMA: &str = "spec.validation.openAPIV3Schema";

/// Cause of an object that breaks the schema: its rules were not run.
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid";

/// Cause of a rule at a place where none may be.
const NOT_STRUCTURAL: &str = "must be empty to be structural";

/// Cause of an object that breaks another check of its schema, which leaves the rules to run.
const OF_SCHEMA: &str = " in body should ";

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
    // Bodies that are not decoded, and rules where no schema may have any, are judged before rules
    // are.
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
    let cases = cases("crd");
    let names = names(&cases);
    for (case, recorded) in cases {
        replay(&case, &recorded, &named, &mut tally);
    }
    let compared = tally.compared;
    tally.finish(&names);
    assert!(compared >= 7_800, "the corpus is there");
}
