//! Policies beside the cases of the corpus: budgets, variables, bindings.

use serde_json::{Value as Json, json};

use super::*;
use crate::rules::FieldPath;

/// The errors of a policy; constraints that are left out are those of a sound policy.
fn errors(spec: &Json) -> Vec<String> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]});
    let mut spec = spec.clone();
    if spec.get("matchConstraints").is_none() {
        spec["matchConstraints"] = json!({"resourceRules": [rule]});
    }
    check_policy("policy", &spec).iter().map(ToString::to_string).collect()
}

/// The decisions of a policy on an object: `admit`, or the kind of the decision with the message.
fn decisions(spec: &Json, object: &Json) -> Vec<String> {
    let request = json!({"operation": "CREATE"});
    let evaluation = Policy::new(spec).evaluate(&Attributes::new(&request).object(object));
    shown(&evaluation)
}

fn shown(evaluation: &Evaluation) -> Vec<String> {
    let decision = |decision: &PolicyDecision| match decision.evaluation {
        PolicyDecisionEvaluation::Admit => "admit".to_owned(),
        evaluation => format!("{evaluation:?}: {}", decision.message),
    };
    evaluation.decisions.iter().map(decision).collect()
}

fn rules(expressions: &[&str]) -> Json {
    let all: Vec<Json> = expressions.iter().map(|text| json!({"expression": text})).collect();
    json!({"validations": all})
}

const OUT_OF_BUDGET: &str = "Error: validation failed due to running out of cost budget, no further validation rules \
                             will be run";

#[test]
fn every_validation_decides_on_its_own() {
    let spec = rules(&["object.a == 1", "object.b == 1", "object.a > 1"]);
    assert_eq!(
        decisions(&spec, &json!({"a": 1})),
        [
            "admit",
            "Error: expression 'object.b == 1' resulted in error: no such key: b",
            "Deny: failed expression: object.a > 1"
        ]
    );
}

#[test]
fn an_expression_that_cannot_be_compiled_is_an_error_of_each_request() {
    let found = decisions(&rules(&["object."]), &json!({}));
    assert!(
        found[0].starts_with("Error: compilation error: compilation failed: ERROR"),
        "{found:?}"
    );
}

#[test]
fn a_variable_is_computed_once_and_its_cost_is_shared() {
    let mut spec = rules(&["variables.a.size() == 300", "variables.a.size() > 2"]);
    spec["variables"] = json!([{"name": "a", "expression": "lists.range(300)"}]);
    let request = json!({});
    let policy = Policy::new(&spec);
    let within = |budget| shown(&policy.evaluate_within(&Attributes::new(&request), budget));
    // The list costs 311 and each size 4; a second computation would exceed the budget.
    assert_eq!(within(400), ["admit", "admit"]);
    assert_eq!(within(300), [OUT_OF_BUDGET]);
}

#[test]
fn a_variable_may_read_those_before_it_at_any_depth() {
    let count = 3_000;
    let mut variables = vec![json!({"name": "v0", "expression": "1"})];
    for index in 1..count {
        let expression = format!("variables.v{} + 1", index - 1);
        variables.push(json!({"name": format!("v{index}"), "expression": expression}));
    }
    let spec = json!({"variables": variables,
        "validations": [{"expression": format!("variables.v{} == {count}", count - 1)}]});
    assert_eq!(decisions(&spec, &json!({})), ["admit"]);
}

// 200 variables took 1.4 s and 400 took 29 s when each environment listed the parts of each
// variable's type.
#[test]
fn variables_of_ever_deeper_types_are_checked() {
    let mut variables = vec![json!({"name": "v0", "expression": "[1]"})];
    for index in 1..600 {
        let expression = format!("[variables.v{}]", index - 1);
        variables.push(json!({"name": format!("v{index}"), "expression": expression}));
    }
    let spec = json!({"variables": variables, "validations": [{"expression": "variables.v599.size() == 1"}]});
    let found = check_policy("deep", &spec);
    let fields: Vec<_> = found.iter().map(|it| it.path.as_str().to_owned()).collect();
    assert_eq!(fields, ["spec.matchConstraints"], "{found:?}");
}

#[test]
fn an_expression_is_not_begun_again_for_each_variable_that_it_reads() {
    // The first half costs 900,000 of at most 1,000,000; each further evaluation would cost the
    // same again.
    let mut reads = "lists.range(150000).all(i, i >= 0)".to_owned();
    let mut variables = Vec::new();
    for index in 0..30 {
        reads.push_str(&format!(" && variables.v{index} == {index}"));
        variables.push(json!({"name": format!("v{index}"), "expression": format!("{index}")}));
    }
    let spec = json!({"variables": variables, "validations": [{"expression": reads}]});
    assert_eq!(decisions(&spec, &json!({})), ["admit"]);
}

#[test]
fn a_type_of_the_server_has_no_value() {
    for (expression, ty) in [
        ("type(request) == kubernetes.AdmissionRequest", "kubernetes.AdmissionRequest"),
        ("type(variables) == kubernetes.variables", "kubernetes.variables"),
    ] {
        let mut spec = rules(&[expression]);
        spec["variables"] = json!([{"name": "a", "expression": "1"}]);
        let found = errors(&spec);
        let text = format!("program instantiation failed: reference to undefined type: {ty}");
        assert_eq!(found, [format!("spec.validations[0].expression: Internal error: {text}")]);
    }
    let literal = rules(&["kubernetes.AdmissionRequest{} == request || true"]);
    assert_eq!(errors(&literal), [] as [&str; 0]);
}

#[test]
fn the_variables_can_be_iterated_and_give_their_values() {
    for (expression, expected) in [
        ("dyn(variables).all(v, v < 4)", "admit"),
        ("dyn(variables).map(v, v) == [1, 2, 3]", "admit"),
        (
            "dyn(variables).exists(v, v > 3)",
            "Deny: failed expression: dyn(variables).exists(v, v > 3)",
        ),
        (
            "dyn(variables).all(k, v, k > 0 && v == 1)",
            "Error: expression 'dyn(variables).all(k, v, k > 0 && v == 1)' resulted in error: no such overload",
        ),
    ] {
        let mut spec = rules(&[expression]);
        spec["variables"] = json!([{"name": "a", "expression": "1"}, {"name": "b", "expression": "variables.a + 1"},
            {"name": "c", "expression": "3"}]);
        assert_eq!(decisions(&spec, &json!({})), [expected]);
    }
    let mut spec = rules(&["dyn(variables).all(k, v, v == 'b')"]);
    spec["variables"] =
        json!([{"name": "a", "expression": "'b'"}, {"name": "b", "expression": "'b'"}]);
    assert_eq!(decisions(&spec, &json!({})), ["admit"]);
    spec["variables"] = json!([{"name": "a", "expression": "1 / 0"}]);
    spec["validations"] = json!([{"expression": "dyn(variables).exists(v, v == 1)"}]);
    let text = "composited variable \"a\" fails to evaluate: division by zero";
    let found = decisions(&spec, &json!({}));
    assert!(found[0].ends_with(text), "{found:?}");
}

#[test]
fn a_variable_that_replaces_the_one_it_reads_is_an_error() {
    let mut spec = rules(&["variables.a == 1"]);
    spec["variables"] =
        json!([{"name": "a", "expression": "1"}, {"name": "a", "expression": "variables.a + 1"}]);
    assert_eq!(
        decisions(&spec, &json!({})),
        [
            "Error: expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to evaluate: \
          composited variable \"a\" reads itself"
        ]
    );
}

#[test]
fn a_variable_is_not_computed_unless_it_is_read() {
    let mut spec = rules(&["object.a == 1 || variables.a == 1", "has(variables.a)"]);
    spec["variables"] = json!([{"name": "a", "expression": "1 / 0"}]);
    assert_eq!(
        decisions(&spec, &json!({"a": 1})),
        [
            "admit",
            "Error: expression 'has(variables.a)' resulted in error: composited variable \"a\" fails to evaluate: \
             division by zero"
        ]
    );
}

#[test]
fn a_variable_with_an_escape_in_its_name_is_not_found() {
    let mut spec = rules(&["variables.a__dash__b == 1", "variables.a__b == 1"]);
    spec["variables"] =
        json!([{"name": "a__dash__b", "expression": "1"}, {"name": "a__b", "expression": "1"}]);
    let error =
        "Error: expression 'variables.a__dash__b == 1' resulted in error: no such key: a__dash__b";
    assert_eq!(decisions(&spec, &json!({})), [error, "admit"]);
}

#[test]
fn a_value_of_a_library_is_not_compared_with_other_types() {
    let found = decisions(
        &rules(&["ip('::1') == dyn(1)", "dyn(1) == ip('::1')", "ip('::1') == null"]),
        &json!({}),
    );
    assert_eq!(
        found[0],
        "Error: expression 'ip('::1') == dyn(1)' resulted in error: no such overload"
    );
    assert!(found[1..].iter().all(|text| text.starts_with("Deny: failed expression")), "{found:?}");
}

#[test]
fn messages_use_what_validations_leave_of_the_budget() {
    let spec = json!({"validations": [
        {"expression": "object.l.all(x, x > 0)", "messageExpression": "object.l.map(x, string(x)).join()"},
        {"expression": "true"},
    ]});
    let (request, object) = (json!({}), json!({"l": [1, 2, 0]}));
    let policy = Policy::new(&spec);
    let within =
        |budget| shown(&policy.evaluate_within(&Attributes::new(&request).object(&object), budget));
    assert_eq!(within(200), ["Deny: 120", "admit"]);
    let failed = OUT_OF_BUDGET.replace("Error: ", "Error: failed messageExpression: ");
    assert_eq!(within(50), [failed.clone(), failed]);
}

#[test]
fn a_message_that_is_empty_long_or_of_several_lines_leaves_the_default() {
    for (computed, expected) in [
        ("' m '", "m"),
        ("'  '", "fixed"),
        ("'a\\nb'", "fixed"),
        ("string(object.zz)", "fixed"),
        ("lists.range(6000).map(x, 'a').join()", "fixed"),
    ] {
        let spec = json!({"validations": [
            {"expression": "false", "message": " fixed ", "messageExpression": computed}]});
        assert_eq!(decisions(&spec, &json!({})), [format!("Deny: {expected}")], "{computed}");
    }
}

#[test]
fn match_conditions_are_false_before_they_fail() {
    let condition = |name: &str, text: &str| json!({"name": name, "expression": text});
    let (fails, is_false) = (condition("f", "object.zz == 1"), condition("n", "false"));
    let (other, is_true) = (condition("g", "object.yy == 1"), condition("t", "true"));
    let error = "expression 'object.zz == 1' resulted in error: no such key: zz";
    let both = format!("[{error}, expression 'object.yy == 1' resulted in error: no such key: yy]");
    for (conditions, expected) in [
        (vec![is_true.clone()], Match::Matched),
        (vec![fails.clone(), is_false], Match::Skipped(Some("n".to_owned()))),
        (vec![fails.clone(), is_true, fails.clone()], Match::Failed(error.to_owned())),
        (vec![fails, other], Match::Failed(both)),
    ] {
        let (request, object) = (json!({}), json!({}));
        let attributes = Attributes::new(&request).object(&object);
        let matches = |policy| MatchConditions::new(&conditions, policy).matches(&attributes);
        let ignored = match &expected {
            Match::Failed(_) => Match::Skipped(None),
            other => other.clone(),
        };
        assert_eq!(matches(FailurePolicy::Fail), expected);
        assert_eq!(matches(FailurePolicy::Ignore), ignored);
    }
}

#[test]
fn match_conditions_of_a_webhook_know_neither_params_nor_variables() {
    let at = FieldPath::root().child("webhooks").index(0).child("matchConditions");
    let conditions = json!([
        {"name": "a", "expression": "request.operation == 'CREATE' && has(request.namespace)"},
        {"name": "b", "expression": "params == null"},
        {"name": "c", "expression": "variables.a"},
    ]);
    let found: Vec<String> =
        check_match_conditions(&conditions, &at).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("webhooks[0].matchConditions[1].expression: Invalid value"));
    assert!(found[1].contains("undeclared reference to 'variables'"), "{found:?}");
}

#[test]
fn lists_of_a_policy_have_a_largest_length() {
    let conditions: Vec<Json> =
        (0..65).map(|n| json!({"name": format!("c{n}"), "expression": "true"})).collect();
    let mut spec = rules(&["true"]);
    spec["matchConditions"] = json!(conditions);
    assert_eq!(errors(&spec), ["spec.matchConditions: Too many: 65: must have at most 64 items"]);
    let annotations: Vec<Json> =
        (0..21).map(|n| json!({"key": format!("k{n}"), "valueExpression": "'<'"})).collect();
    let found = errors(&json!({"auditAnnotations": annotations}));
    assert_eq!(found.len(), 1);
    let start = "spec.auditAnnotations: Invalid value: [{\"Key\":\"k0\",\"ValueExpression\":\"'\\u003c'\"},";
    assert!(found[0].starts_with(start), "{found:?}");
    assert!(found[0].ends_with("]: must not have more than 20 auditAnnotations"), "{found:?}");
    let long = format!("'{}'", "a".repeat(5200));
    let spec = json!({"auditAnnotations": [{"key": "k", "valueExpression": long}]});
    assert_eq!(
        errors(&spec),
        [
            "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length"
        ]
    );
}

#[test]
fn a_policy_needs_validations_or_audit_annotations() {
    let detail = "Required value: validations or auditAnnotations must contain at least one item";
    assert_eq!(
        errors(&json!({})),
        [format!("spec.validations: {detail}"), format!("spec.auditAnnotations: {detail}")]
    );
}

#[test]
fn a_namespace_shows_validations_less_than_audit_annotations() {
    let namespace =
        json!({"kind": "Namespace", "metadata": {"name": "n", "managedFields": []}, "spec": {}});
    let spec = json!({
        "validations": [{"expression": "dyn(namespaceObject).all(k, k in ['metadata', 'spec', 'status']) && \
            !has(dyn(namespaceObject.metadata).managedFields) && namespaceObject.metadata.name == 'n'"}],
        "auditAnnotations": [{"key": "k", "valueExpression":
            "string(has(dyn(namespaceObject.metadata).managedFields)) + string(has(dyn(namespaceObject).kind))"}],
    });
    let request = json!({});
    let evaluation = Policy::new(&spec).evaluate(&Attributes::new(&request).namespace(&namespace));
    assert_eq!(shown(&evaluation), ["admit"]);
    let value = "truefalse".to_owned();
    let expected = AuditAnnotation::Publish { key: "k".to_owned(), value };
    assert_eq!(evaluation.audit_annotations, [expected]);
}

#[test]
fn a_binding_denies_warns_and_annotates() {
    let spec = json!({"validations": [
        {"expression": "true"},
        {"expression": "false", "message": "<b>", "reason": "Forbidden"},
        {"expression": "false", "message": "c"}]});
    let request = json!({});
    let evaluation = Policy::new(&spec).evaluate(&Attributes::new(&request));
    let denial = Binding::new("p", "b").enforce(&evaluation).denial.expect("a denial");
    assert_eq!((denial.reason.as_str(), denial.code), ("Forbidden", 403));
    assert!(denial.message.ends_with("denied request: <b>"), "{}", denial.message);
    let actions = [ValidationAction::Warn, ValidationAction::Audit];
    let enforcement = Binding::new("p", "b").actions(actions).enforce(&evaluation);
    assert_eq!(enforcement.denial, None);
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': c";
    assert_eq!(enforcement.warnings[1], warning);
    let value = "[{\"message\":\"\\u003cb\\u003e\",\"policy\":\"p\",\"binding\":\"b\",\"expressionIndex\":1,\
                 \"validationActions\":[\"Warn\",\"Audit\"]}]";
    let key = "validation.policy.admission.k8s.io/validation_failure".to_owned();
    assert_eq!(enforcement.audit_annotations, [(key, value.to_owned())]);
}

#[test]
fn an_audit_annotation_that_fails_denies_whatever_the_actions_are() {
    let spec = json!({"auditAnnotations": [
        {"key": "a", "valueExpression": "' v '"},
        {"key": "b", "valueExpression": "null"},
        {"key": "c", "valueExpression": "string(object.zz)"}]});
    let request = json!({});
    let enforced = |spec: &Json| {
        let evaluation = Policy::new(spec).evaluate(&Attributes::new(&request));
        Binding::new("p", "b").actions([ValidationAction::Audit]).enforce(&evaluation)
    };
    let found = enforced(&spec);
    assert_eq!(found.audit_annotations, [("p/a".to_owned(), "v".to_owned())]);
    assert!(found.denial.is_some_and(|denial| denial.message.ends_with("no such key: zz")));
    let mut ignored = spec;
    ignored["failurePolicy"] = json!("Ignore");
    assert_eq!(enforced(&ignored).denial, None);
}
