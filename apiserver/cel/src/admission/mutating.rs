//! The errors with which kube-apiserver refuses a `MutatingAdmissionPolicy` at creation.

use serde_json::Value;

use super::check::{FAILURE_POLICIES, PolicyCheck, list, member, text};
use super::compile::{Compiler, ExpectedType};
use super::constraints;
use super::environment::AvailableVariables;
use crate::rules::{FieldPath, Reason, Violation};

/// The types of patches in the order in which messages list them.
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

/// The reinvocation policies in the order in which messages list them.
const REINVOCATION: [&str; 2] = ["IfNeeded", "Never"];

/// Checks the `spec` of a mutating policy, in the order of the server; the paths begin with `spec`.
pub fn check_mutating_policy(spec: &Value) -> Vec<Violation> {
    let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
    let mut check = PolicyCheck { found: Vec::new(), compiler: Compiler::composing(), has_params };
    let at = FieldPath::root().child("spec");
    if let Some(policy) = member(spec, "failurePolicy")
        && !FAILURE_POLICIES.contains(&policy)
    {
        let path = at.child("failurePolicy");
        check.found.push(Violation::not_supported(path, policy, &FAILURE_POLICIES));
    }
    if let Some(kind) = spec.get("paramKind").filter(|kind| !kind.is_null()) {
        check.found.extend(constraints::param_kind(kind, &at.child("paramKind")));
    }
    check.found.extend(constraints::match_constraints(spec, &at.child("matchConstraints")));
    check.conditions(list(spec, "matchConditions"), &at.child("matchConditions"));
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        check.variable(variable, &at.child("variables").index(index));
    }
    let mutations = list(spec, "mutations");
    if mutations.is_empty() {
        check.required(at.child("mutations"), "mutations must contain at least one item");
    }
    for (index, mutation) in mutations.iter().enumerate() {
        check.mutation(mutation, &at.child("mutations").index(index));
    }
    let path = at.child("reinvocationPolicy");
    match text(spec, "reinvocationPolicy") {
        "" => check.required(path, ""),
        policy if REINVOCATION.contains(&policy) => {}
        policy => check.found.push(Violation::not_supported(path, policy, &REINVOCATION)),
    }
    check.found
}

impl PolicyCheck {
    fn mutation(&mut self, mutation: &Value, at: &FieldPath) {
        let kind = text(mutation, "patchType");
        let (own, other, ty) = match kind {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", ExpectedType::Object),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", ExpectedType::Operations),
            "" => return self.required(at.child("patchType"), ""),
            _ => {
                let path = at.child("patchType");
                return self.found.push(Violation::not_supported(path, kind, &PATCH_TYPES));
            }
        };
        let is_set = |name: &str| mutation.get(name).is_some_and(|value| !value.is_null());
        if is_set(own) {
            let path = at.child(own).child("expression");
            self.patch(text(&mutation[own], "expression").trim(), ty, path);
        } else {
            let detail = format!("must be specified when patchType is {kind}");
            self.required(at.child(own), &detail);
        }
        if is_set(other) {
            let detail = format!("must not be specified when patchType is {kind}");
            self.invalid(at.child(other), &format!("{{{other}}}"), detail);
        }
    }

    /// Checks the expression of a mutation, which must have a type of patches.
    fn patch(&mut self, expression: &str, wanted: ExpectedType, path: FieldPath) {
        if expression.is_empty() {
            return self.found.push(Violation::without_value(path, Reason::Required, ""));
        }
        let scope = AvailableVariables { has_patches: true, ..self.scope() };
        if let Err(failure) = self.compiler.compile(expression, wanted, scope).program {
            self.invalid(path, expression, failure.detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The errors of a policy with this mutation.
    fn of(mutation: &Value) -> Vec<String> {
        let spec = json!({"reinvocationPolicy": "Never", "mutations": [mutation],
            "variables": [{"name": "a", "expression": "object"}], "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}});
        let at = "spec.mutations[0].";
        let found = check_mutating_policy(&spec);
        found
            .iter()
            .map(|one| one.to_string().strip_prefix(at).unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn an_expression_of_a_mutation_makes_a_patch() {
        let of = |expression: &str| {
            of(&json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}))
        };
        assert_eq!(of("[JSONPatch{op: 'remove', path: '/a'}]"), [] as [&str; 0]);
        let at = "jsonPatch.expression: Invalid value: ";
        let wanted = "must evaluate to list(JSONPatch) but got";
        assert_eq!(of("[]"), [format!("{at}\"[]\": {wanted} list(dyn)")]);
        assert_eq!(of("variables.a"), [format!("{at}\"variables.a\": {wanted} dyn")]);
        assert!(
            of("variables.b")[0].starts_with(&format!("{at}\"variables.b\": compilation failed"))
        );
        assert_eq!(of(" "), ["jsonPatch.expression: Required value"]);
    }

    #[test]
    fn a_mutation_has_the_patch_of_its_type_alone() {
        let found =
            of(&json!({"patchType": "ApplyConfiguration", "jsonPatch": {"expression": "[]"}}));
        let kind = "when patchType is ApplyConfiguration";
        let expected = [
            format!("applyConfiguration: Required value: must be specified {kind}"),
            format!("jsonPatch: Invalid value: \"{{jsonPatch}}\": must not be specified {kind}"),
        ];
        assert_eq!(found, expected);
        let supported = "supported values: \"ApplyConfiguration\", \"JSONPatch\"";
        let expected = [format!("patchType: Unsupported value: \"X\": {supported}")];
        assert_eq!(of(&json!({"patchType": "X"})), expected);
    }
}
