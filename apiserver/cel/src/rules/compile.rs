//! Rules compiled under the declaration of their schema.

use super::field_path::{self, FieldPath};
use super::rule::Rule;
use crate::check::{Checked, Environment, Reference};
use crate::cost::{self, SizeEstimator};
use crate::eval::{LITERALS, Program};
use crate::schema::{Content, Declaration, MAX_REQUEST};
use crate::types::Type;

/// Name of the root's type; that of kube-apiserver ends in a number that changes with every
/// compilation.
pub(super) const SELF_TYPE: &str = "selfType0";

/// A rule with the results of its compilation.
#[derive(Debug, Default)]
pub(super) struct CompiledRule {
    /// The program; none for an empty rule, the reason if the rule cannot be compiled.
    pub(super) program: Option<Result<Program, String>>,
    /// Whether the rule reads `oldSelf`, and so runs on updates only.
    pub(super) uses_old_self: bool,
    /// Largest estimated cost of an evaluation.
    pub(super) max_cost: u64,
    /// The program of the message; the reason if the message cannot be compiled.
    pub(super) message: Option<Result<Program, String>>,
    /// Estimated cost of the message at most.
    pub(super) max_message_cost: u64,
    /// The path that the rule reports, below the path of the rule.
    pub(super) field_path: Option<FieldPath>,
}

/// The environments of the rules of a schema node.
pub(super) struct Compiler<'a> {
    declaration: &'a Declaration,
    plain: Environment,
    optional: Environment,
}

impl<'a> Compiler<'a> {
    /// `self` and `oldSelf` have the type of the declaration; `oldSelf` is an optional for rules
    /// that ask for it.
    pub(super) fn new(declaration: &'a Declaration) -> Compiler<'a> {
        let ty = declaration.to_type(SELF_TYPE);
        let mut base = Environment::kubernetes().with_literal_validators(LITERALS);
        if let Type::Object(object) = &ty {
            base = base.with_type(object.clone());
        }
        let base = base.with_variable("self", ty.clone());
        let plain = base.clone().with_variable("oldSelf", ty.clone());
        let optional = base.with_variable("oldSelf", Type::optional(ty));
        Compiler { declaration, plain, optional }
    }

    /// Compiles a rule and its message; errors are part of the result.
    pub(super) fn compile(&self, rule: &Rule, schema: &serde_json::Value) -> CompiledRule {
        let mut compiled = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let environment =
            if rule.optional_old_self == Some(true) { &self.optional } else { &self.plain };
        let checked = match check(environment, &rule.rule, &Type::Bool) {
            Ok(checked) => checked,
            Err(CompileFailure::Issues(text)) => {
                return failed(format!("compilation failed: {text}"));
            }
            Err(CompileFailure::Type) => {
                return failed("cel expression must evaluate to a bool".into());
            }
        };
        compiled.uses_old_self = uses_old_self(&checked);
        let instantiated = Program::new(&checked);
        compiled.program =
            Some(instantiated.map_err(|error| format!("program instantiation failed: {error}")));
        if matches!(compiled.program, Some(Err(_))) {
            return compiled;
        }
        // The server estimates no cost of a rule without a program.
        compiled.max_cost = cost::estimate(&checked, self).max;
        if !rule.message_expression.is_empty() {
            let (program, cost) = self.message(environment, &rule.message_expression);
            if program.is_err() {
                compiled.message = Some(program);
                return compiled;
            }
            (compiled.message, compiled.max_message_cost) = (Some(program), cost);
        }
        if !rule.field_path.is_empty() {
            compiled.field_path = field_path::parse(&rule.field_path, schema).ok();
        }
        compiled
    }

    /// The program of a message and its estimated cost.
    fn message(&self, environment: &Environment, text: &str) -> (Result<Program, String>, u64) {
        let checked = match check(environment, text, &Type::String) {
            Ok(checked) => checked,
            Err(CompileFailure::Issues(text)) => {
                return (Err(format!("messageExpression compilation failed: {text}")), 0);
            }
            Err(CompileFailure::Type) => {
                return (Err("messageExpression must evaluate to a string".to_owned()), 0);
            }
        };
        let program = Program::new(&checked)
            .map_err(|error| format!("messageExpression instantiation failed: {error}"));
        (program, cost::estimate(&checked, self).max)
    }

    /// Largest number of values of this schema that one request can hold.
    pub(super) fn max_cardinality(&self) -> u64 {
        // At least a comma stands between two values.
        MAX_REQUEST / self.declaration.min_size.saturating_add(1)
    }
}

impl SizeEstimator for Compiler<'_> {
    fn max_size(&self, path: &[&str]) -> Option<u64> {
        let mut current = self.declaration;
        for (index, step) in path.iter().skip(1).enumerate() {
            current = match (*step, &current.content) {
                ("@items" | "@values", _) => current.element()?,
                // The length of a key has no bound of its own: that of the default string of
                // kube-apiserver, 0.
                ("@keys", Content::Map(_)) if index + 2 == path.len() => return Some(0),
                (name, _) => current.field(name)?,
            };
        }
        Some(current.max_elements).filter(|_| !path.is_empty())
    }
}

/// The reason why an expression is not compiled.
enum CompileFailure {
    Issues(String),
    Type,
}

fn check(environment: &Environment, text: &str, wanted: &Type) -> Result<Checked, CompileFailure> {
    let checked =
        environment.compile(text).map_err(|issues| CompileFailure::Issues(issues.to_string()))?;
    if checked.output_type() == wanted { Ok(checked) } else { Err(CompileFailure::Type) }
}

fn failed(error: String) -> CompiledRule {
    CompiledRule { program: Some(Err(error)), ..CompiledRule::default() }
}

fn uses_old_self(checked: &Checked) -> bool {
    let is_old_self = |reference: &Reference| matches!(reference, Reference::Ident { name, .. } if &**name == "oldSelf");
    checked.references.iter().flatten().any(is_old_self)
}
