//! A mutating policy, compiled, and the patches of the policy for a request.

use serde_json::{Map, Value as Json};

use super::activation::Activation;
use super::attributes::{Attributes, Prepared};
use super::check::{list, member, text};
use super::compile::{Compiled, Compiler, ExpectedType, ExpressionRefusal};
use super::conditions::{Match, MatchConditions};
use super::environment::AvailableVariables;
use super::policy::FailurePolicy;
use crate::eval::patches::{PolicyLiteral, json};
use crate::eval::{Definitions, Value};
use crate::rules::OBJECT_BUDGET;

/// A patch that a mutation has made.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// Fields to merge into the object, as in a server-side apply.
    ApplyConfiguration(Json),
    /// Operations of a JSON Patch.
    JsonPatch(Json),
}

/// A mutating policy, ready for requests. Compile once, use for every request.
#[derive(Debug)]
pub struct MutatingPolicy {
    conditions: Option<MatchConditions>,
    variables: Definitions,
    mutations: Vec<(ExpectedType, Compiled)>,
    is_reinvoked: bool,
}

impl MutatingPolicy {
    /// Compiles the `spec` of a policy. An expression that cannot be compiled is an error of every
    /// request; [`check_mutating_policy`](super::check_mutating_policy) finds such expressions
    /// before.
    pub fn new(spec: &Json) -> MutatingPolicy {
        let failure_policy = match member(spec, "failurePolicy") {
            Some("Ignore") => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        };
        let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let scope = AvailableVariables { has_params, has_authorizer: true, has_patches: false };
        let mut compiler = Compiler::composing();
        let mut variables = Definitions::default();
        for variable in list(spec, "variables") {
            let (name, expression) = (text(variable, "name"), text(variable, "expression"));
            let variable = compiler.variable(name, expression, scope);
            let program = variable.compiled.program.map_err(|failure| failure.detail);
            variables.insert(variable.name, program);
        }
        let conditions = list(spec, "matchConditions");
        let conditions = (!conditions.is_empty())
            .then(|| MatchConditions::compile(conditions, failure_policy, &mut compiler, scope));
        let scope = AvailableVariables { has_patches: true, ..scope };
        let mutation = |json: &Json| {
            let (field, expected) = match text(json, "patchType") {
                "JSONPatch" => ("jsonPatch", ExpectedType::Operations),
                _ => ("applyConfiguration", ExpectedType::Object),
            };
            let expression = json.get(field).map_or("", |patch| text(patch, "expression"));
            (expected, compiler.compile(expression, expected, scope))
        };
        let mutations = list(spec, "mutations").iter().map(mutation).collect();
        let is_reinvoked = member(spec, "reinvocationPolicy") == Some("IfNeeded");
        MutatingPolicy { conditions, variables, mutations, is_reinvoked }
    }

    /// Whether the policy wants to see an object again that has changed since.
    pub fn is_reinvoked(&self) -> bool {
        self.is_reinvoked
    }

    /// The number of mutations.
    pub fn len(&self) -> usize {
        self.mutations.len()
    }

    /// Whether the policy has no mutations.
    pub fn is_empty(&self) -> bool {
        self.mutations.is_empty()
    }

    /// Whether the match conditions want the policy to see a request; with the cost of their
    /// expressions.
    pub fn matches(&self, attributes: &Attributes<'_>) -> (Match, u64) {
        let Some(conditions) = &self.conditions else { return (Match::Matched, 0) };
        let prepared = Prepared::new(attributes);
        conditions.matches_prepared(attributes, &prepared, Some(&self.variables))
    }

    /// The patch of a mutation, with the cost of its expressions.
    ///
    /// # Errors
    ///
    /// The text of kube-apiserver for an expression without a value, or with a value that is no
    /// patch.
    pub fn patch(&self, index: usize, attributes: &Attributes<'_>) -> (Result<Patch, String>, u64) {
        let Some((expected, compiled)) = self.mutations.get(index) else {
            return (Err("there is no such mutation".to_owned()), 0);
        };
        if let Err(ExpressionRefusal { detail, .. }) = &compiled.program {
            return (Err(detail.clone()), 0);
        }
        let prepared = Prepared::new(attributes);
        let (namespace, definitions) = (&prepared.namespace, Some(&self.variables));
        let mut activation =
            Activation::new(attributes, &prepared, namespace, definitions, OBJECT_BUDGET);
        let values = activation.evaluate_all(std::iter::once(Some(compiled)));
        let cost = OBJECT_BUDGET - activation.budget();
        let value = match values {
            Ok(values) => values.into_iter().flatten().next(),
            Err(stopped) => return (Err(stopped.text().to_owned()), OBJECT_BUDGET),
        };
        let patch = value.unwrap_or_else(|| Err("the expression has no value".to_owned()));
        let patch = patch.and_then(|value| match expected {
            ExpectedType::Operations => operations(&value).map(Patch::JsonPatch),
            _ => configuration(&value).map(Patch::ApplyConfiguration),
        });
        (patch, cost)
    }
}

/// The fields of an object that is to be merged.
fn configuration(value: &Value<'_>) -> Result<Json, String> {
    let literal = PolicyLiteral::of(value).ok_or_else(|| {
        format!("unsupported return type from ApplyConfiguration expression: {}", value.type_name())
    })?;
    well_named(literal)?;
    literal.json()
}

/// Checks the names of the types of an object's parts.
fn well_named(literal: &PolicyLiteral) -> Result<(), String> {
    let faults = literal.misnamed();
    if faults.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", faults.join("\n"))) }
}

/// The operations of a list.
fn operations(value: &Value<'_>) -> Result<Json, String> {
    let Value::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let operation = |item: Result<Value<'_>, _>| {
        let item = item.map_err(|error: crate::eval::EvalError| error.to_string())?;
        let literal = PolicyLiteral::of(&item).ok_or_else(|| {
            let text =
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
            format!("{text}, got element of {}", item.type_name())
        })?;
        operation(literal)
    };
    list.iter().map(operation).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// An operation of a JSON Patch.
fn operation(literal: &PolicyLiteral) -> Result<Json, String> {
    let mut out = Map::new();
    for name in ["op", "path"] {
        out.insert(name.to_owned(), literal.text(name).into());
    }
    if !literal.text("from").is_empty() {
        out.insert("from".to_owned(), literal.text("from").into());
    }
    if let Some(value) = literal.field("value") {
        if let Some(object) = PolicyLiteral::of(value) {
            // The place of the object is not known: the path of the operation decides.
            well_named(object)?;
        }
        let text = "JSONPath valueExpression evaluated to a type that could not marshal to JSON";
        let value = json(value, 0).map_err(|why| format!("{text}: {why}"))?;
        out.insert("value".to_owned(), value);
    }
    Ok(Json::Object(out))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(kind: &str, field: &str, expression: &str) -> MutatingPolicy {
        MutatingPolicy::new(&json!({
            "variables": [{"name": "n", "expression": "object.metadata.name"}],
            "matchConditions": [{"name": "c", "expression": "object.metadata.name != 'skipped'"}],
            "mutations": [{"patchType": kind, field: {"expression": expression}}],
            "reinvocationPolicy": "IfNeeded",
        }))
    }

    fn patched(policy: &MutatingPolicy, name: &str) -> Result<Patch, String> {
        let request = json!({"operation": "CREATE"});
        let object = json!({"metadata": {"name": name}});
        policy.patch(0, &Attributes::new(&request).object(&object)).0
    }

    #[test]
    fn a_mutation_makes_fields_to_merge_or_operations() {
        let merging = policy(
            "ApplyConfiguration",
            "applyConfiguration",
            "Object{metadata: Object.metadata{labels: {'n': variables.n}}}",
        );
        let expected = json!({"metadata": {"labels": {"n": "a"}}});
        assert_eq!(patched(&merging, "a"), Ok(Patch::ApplyConfiguration(expected)));
        let operating = policy(
            "JSONPatch",
            "jsonPatch",
            "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]",
        );
        let expected = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
        assert_eq!(patched(&operating, "a"), Ok(Patch::JsonPatch(expected)));
    }

    #[test]
    fn conditions_and_errors_of_expressions_are_told() {
        let policy = policy("JSONPatch", "jsonPatch", "[JSONPatch{op: object.nope}]");
        let request = json!({"operation": "CREATE"});
        let object = json!({"metadata": {"name": "skipped"}});
        let (outcome, _) = policy.matches(&Attributes::new(&request).object(&object));
        assert_eq!(outcome, Match::Skipped(Some("c".to_owned())));
        let expected =
            "expression '[JSONPatch{op: object.nope}]' resulted in error: no such key: nope";
        assert_eq!(patched(&policy, "a"), Err(expected.to_owned()));
    }
}
