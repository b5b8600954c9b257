//! Expressions of policies, compiled with the texts of kube-apiserver.

use super::environment::{AvailableVariables, VariableTypes, environment, variable_type};
use crate::check::Environment;
use crate::eval::Program;
use crate::eval::patches::{OBJECT, OPERATION};
use crate::types::Type;

/// The reason why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpressionRefusal {
    /// Whether the server reports an internal error: a constant cannot be made part of the program.
    pub(super) is_internal: bool,
    /// The text.
    pub(super) detail: String,
}

/// An expression with its program, or with the reason why it has none.
#[derive(Debug)]
pub(super) struct Compiled {
    /// The expression as it was written.
    pub(super) text: String,
    pub(super) program: Result<Program, ExpressionRefusal>,
}

/// A variable of a policy.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) compiled: Compiled,
}

/// The required type of the value of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedType {
    Bool,
    String,
    StringOrNull,
    /// An object of a mutation.
    Object,
    /// A list of operations of a JSON Patch.
    Operations,
    Any,
}

impl ExpectedType {
    fn allows(self, ty: &Type) -> bool {
        match self {
            ExpectedType::Bool => *ty == Type::Bool,
            ExpectedType::String => *ty == Type::String,
            ExpectedType::StringOrNull => matches!(ty, Type::String | Type::Null),
            ExpectedType::Object => is_named(ty, OBJECT),
            ExpectedType::Operations => match ty {
                Type::List(item) => is_named(item, OPERATION),
                _ => false,
            },
            ExpectedType::Any => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ExpectedType::Bool => "bool",
            ExpectedType::String => "string",
            ExpectedType::StringOrNull => "one of [string null_type]",
            ExpectedType::Object => "Object",
            ExpectedType::Operations => "list(JSONPatch)",
            ExpectedType::Any => "any",
        }
    }
}

/// Whether a type is that of the literals with a name.
fn is_named(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Object(object) if *object.name == *name)
}

/// Compiles the expressions of a policy, or of a list of match conditions.
#[derive(Debug)]
pub(super) struct Compiler {
    /// The variables so far; `None` where expressions know no `variables`.
    variables: Option<VariableTypes>,
    environments: Vec<(AvailableVariables, Environment)>,
}

impl Compiler {
    /// A compiler without variables: `variables` is an unknown name.
    pub(super) fn stateless() -> Compiler {
        Compiler { variables: None, environments: Vec::new() }
    }

    /// A compiler that takes variables.
    pub(super) fn composing() -> Compiler {
        Compiler { variables: Some(VariableTypes::default()), environments: Vec::new() }
    }

    /// Compiles an expression.
    pub(super) fn compile(
        &mut self,
        text: &str,
        expected: ExpectedType,
        scope: AvailableVariables,
    ) -> Compiled {
        let program = self.program(text, expected, scope).map(|(program, _)| program);
        Compiled { text: text.to_owned(), program }
    }

    /// Compiles a variable, which later expressions may read.
    pub(super) fn variable(
        &mut self,
        name: &str,
        text: &str,
        scope: AvailableVariables,
    ) -> Variable {
        let (ty, program) = match self.program(text, ExpectedType::Any, scope) {
            Ok((program, ty)) => (variable_type(&ty), Ok(program)),
            Err(failure) => (Type::Dyn, Err(failure)),
        };
        if let Some(variables) = &mut self.variables {
            variables.insert(name, ty);
            self.environments.clear();
        }
        Variable { name: name.to_owned(), compiled: Compiled { text: text.to_owned(), program } }
    }

    fn environment(&mut self, scope: AvailableVariables) -> Environment {
        if let Some((_, found)) = self.environments.iter().find(|(known, _)| *known == scope) {
            return found.clone();
        }
        let made = environment(scope, self.variables.as_ref());
        self.environments.push((scope, made.clone()));
        made
    }

    fn program(
        &mut self,
        text: &str,
        expected: ExpectedType,
        scope: AvailableVariables,
    ) -> Result<(Program, Type), ExpressionRefusal> {
        let invalid = |detail: String| ExpressionRefusal { is_internal: false, detail };
        let checked = self
            .environment(scope)
            .compile(text)
            .map_err(|issues| invalid(format!("compilation failed: {issues}")))?;
        let ty = checked.output_type();
        if !expected.allows(ty) {
            let detail = format!("must evaluate to {} but got {}", expected.name(), ty.declared());
            return Err(invalid(detail));
        }
        let program = Program::new(&checked).map_err(|error| ExpressionRefusal {
            is_internal: true,
            detail: format!("program instantiation failed: {error}"),
        })?;
        Ok((program, ty.clone()))
    }
}
