//! Rules of definitions and objects, beside the cases of the corpus.

use serde_json::{Value, json};

use super::validate::ValidationProgress;
use super::{Validator, check_definition};

/// A schema whose property `spec` is this schema.
fn schema(spec: Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

/// An integer with one rule.
fn number(rule: Value) -> Value {
    schema(json!({"type": "integer", "x-kubernetes-validations": [rule]}))
}

fn errors(schema: &Value, new: Value, old: Option<Value>) -> Vec<String> {
    assert_eq!(check_definition(schema), []);
    let object = |spec: Value| json!({"spec": spec});
    let report = Validator::new(schema).validate(&object(new), old.map(object).as_ref());
    report.violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_broken_rule_is_reported_with_its_message_or_its_expression() {
    let plain = number(json!({"rule": "self > 5"}));
    assert_eq!(errors(&plain, json!(3), None), ["spec: Invalid value: 3: failed rule: self > 5"]);
    let named = number(
        json!({"rule": "self > 5", "message": "too small", "reason": "FieldValueForbidden"}),
    );
    assert_eq!(errors(&named, json!(3), None), ["spec: Forbidden: too small"]);
    let computed =
        number(json!({"rule": "self > 5", "messageExpression": "self > 2 ? 'small' : 'tiny'"}));
    assert_eq!(errors(&computed, json!(3), None), ["spec: Invalid value: 3: small"]);
    assert!(errors(&computed, json!(6), None).is_empty());
}

#[test]
fn a_message_that_cannot_be_computed_leaves_the_default() {
    let rule = json!({"rule": "self > 5", "messageExpression": "string(1 / (self - 3))"});
    assert_eq!(
        errors(&number(rule), json!(3), None),
        ["spec: Invalid value: 3: failed rule: self > 5"]
    );
}

#[test]
fn a_transition_rule_runs_on_updates_only_unless_its_old_value_is_optional() {
    let rule = number(json!({"rule": "self >= oldSelf", "message": "shrinks"}));
    assert!(errors(&rule, json!(1), None).is_empty());
    assert_eq!(errors(&rule, json!(1), Some(json!(2))), ["spec: Invalid value: 1: shrinks"]);
    let optional = json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true, "message": "new"});
    assert_eq!(errors(&number(optional), json!(1), None), ["spec: Invalid value: 1: new"]);
}

#[test]
fn an_optional_old_value_has_no_schema() {
    let wait = json!({"type": "string", "format": "duration"});
    let spec = |rule: &str| {
        schema(json!({"type": "object", "properties": {"a.b": {"type": "integer"}, "wait": wait},
            "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true, "message": "no"}]}))
    };
    let old = json!({"a.b": 1, "wait": "1h"});
    let found = |rule: &str| errors(&spec(rule), json!({"wait": "2h"}), Some(old.clone()));
    let fails = |error: &str| vec![format!("spec: Invalid value: \"object\": {error}")];
    let overload = |error: &str| {
        let reason =
            "call arguments did not match a supported operator, function or macro signature";
        fails(&format!("'{error}': {reason} for rule: no"))
    };
    // cel-go opens the optional to a map of Go: names are not escaped there, and a duration is a
    // text.
    assert_eq!(
        found("oldSelf.value().a__dot__b == 1"),
        fails("no such key: a__dot__b evaluating rule: no")
    );
    assert_eq!(found("oldSelf.value().wait < self.wait"), overload("no such overload"));
    assert_eq!(
        found("string(oldSelf.value().wait) == '1h'"),
        overload("no such overload: string(string)")
    );
    assert!(found("dyn(oldSelf.value().wait) == '1h'").is_empty());
}

#[test]
fn a_sum_reads_an_optional_old_list_under_the_schema_of_the_new_one() {
    let spec = |rule: &str| {
        let list = json!({"type": "array", "items": {"type": "number"}, "maxItems": 5});
        schema(json!({"type": "object", "properties": {"b": list},
            "x-kubernetes-validations": [{"rule": rule, "optionalOldSelf": true, "message": "no"}]}))
    };
    let values = json!({"b": [1, 0.5]});
    let found = |rule: &str| errors(&spec(rule), values.clone(), Some(values.clone()));
    let rule = "(self.b + oldSelf.value().b).sort() == [0.5, 0.5, 1.0, 1.0]";
    assert_eq!(found(rule), [] as [&str; 0]);
    let error = "list elements must have the same type evaluating rule: no";
    let rule = "(oldSelf.value().b + self.b).sort() == [0.5, 0.5, 1.0, 1.0]";
    assert_eq!(found(rule), [format!("spec: Invalid value: \"object\": {error}")]);
}

#[test]
fn a_message_sees_old_self_as_it_is_and_only_where_a_rule_reads_it() {
    let found = |rule: Value| errors(&number(rule), json!(1), Some(json!(2)));
    let plain = json!({"rule": "self > 5", "messageExpression": "string(oldSelf)"});
    assert_eq!(found(plain), ["spec: Invalid value: 1: failed rule: self > 5"]);
    let transition = json!({"rule": "self >= oldSelf", "messageExpression": "string(oldSelf)"});
    assert_eq!(found(transition), ["spec: Invalid value: 1: 2"]);
    let optional = json!({"rule": "!oldSelf.hasValue()", "optionalOldSelf": true,
        "messageExpression": "string(oldSelf.value())"});
    assert_eq!(found(optional), ["spec: Invalid value: 1: failed rule: !oldSelf.hasValue()"]);
}

#[test]
fn a_broken_rule_is_tolerated_while_the_value_is_as_before() {
    let schema = number(json!({"rule": "self > 5"}));
    let object = json!({"spec": 3});
    let report = Validator::new(&schema).validate(&object, Some(&object));
    assert_eq!(report.violations, []);
    assert_eq!(report.tolerated.len(), 1);
}

#[test]
fn rules_stop_when_the_budget_of_the_object_is_used_up() {
    let rule = json!({"rule": "self.all(x, x > 0)"});
    let schema = schema(json!({"type": "array", "maxItems": 100, "items": {"type": "integer"},
        "x-kubernetes-validations": [rule.clone(), rule]}));
    let validator = Validator::new(&schema);
    let object = json!({"spec": [1, 2, 3]});
    let cost = validator.validate(&object, None).cost;
    let mut run = ValidationProgress::new(cost - 1);
    validator.run(&mut run, &object);
    let found: Vec<String> = run.report.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "spec: Invalid value: \"array\": validation failed due to running out of cost budget, no further validation \
         rules will be run"
        ]
    );
}

#[test]
fn a_definition_is_refused_for_unknown_fields_types_and_costs() {
    let text = |schema: Value| {
        check_definition(&schema).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let spec = json!({"type": "object", "properties": {"minSize": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.min_size > 0"}]});
    let found = text(schema(spec));
    assert!(found[0].contains("undefined field 'min_size'"), "{found:?}");
    let found = text(number(json!({"rule": "self + 1"})));
    assert!(found[0].ends_with("cel expression must evaluate to a bool"), "{found:?}");
    let strings = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}]});
    let found = text(schema(strings));
    assert!(
        found[0].contains("estimated rule cost exceeds budget by factor of more than 100x"),
        "{found:?}"
    );
}

#[test]
fn a_deep_schema_is_compiled_without_a_deep_stack() {
    let leaf = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]});
    let deep =
        (0..120).fold(leaf, |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    assert_eq!(check_definition(&deep), []);
}

#[test]
fn a_schema_nested_deeply_is_refused_and_does_not_exhaust_the_stack() {
    let deep = (0..10_000).fold(json!({"type": "string"}), |inner, _| {
        let items = [("items".to_owned(), inner), ("type".to_owned(), json!("array"))];
        serde_json::Value::Object(items.into_iter().collect())
    });
    let deep = std::mem::ManuallyDrop::new(deep);
    assert_eq!(check_definition(&deep)[0].detail, "schema is nested too deeply");
    let report = Validator::new(&deep).validate(&json!([]), None);
    assert_eq!(report.violations[0].detail, "schema is nested too deeply");
}
