//! Calls: look-up of functions and resolution of overloads.

use std::sync::Arc;

use super::Reference;
use super::bindings::map_parameters;
use super::checker::{Checker, qualified_name};
use super::declarations::{Function, Overload};
use crate::syntax::ast::{Call, operators};
use crate::syntax::{Expr, ExprId, ExprKind, Literal};
use crate::types::Type;

/// Overloads that agree with the arguments of a call, and the type of the result.
struct Resolution {
    overloads: Vec<&'static str>,
    result: Type,
}

impl Checker<'_> {
    pub(super) fn check_call(&mut self, id: ExprId, call: &mut Call) {
        if call.function == operators::OPTIONAL_SELECT {
            return self.check_optional_select(id, call);
        }
        for argument in &mut call.args {
            self.check(argument);
        }
        if call.target.is_some() {
            return self.check_member_call(id, call);
        }
        match self.environment.function(&call.function) {
            Some(function) => {
                function.name.clone_into(&mut call.function);
                self.check_overloads(id, function, None, &call.args);
            }
            None => self.report_undeclared(id, &call.function),
        }
    }

    /// Checks `target.f(args)`: a call of the function `target.f` if there is one, of the member
    /// `f` if not.
    fn check_member_call(&mut self, id: ExprId, call: &mut Call) {
        let Some(target) = &mut call.target else { return };
        let qualified = qualified_name(target).map(|prefix| format!("{prefix}.{}", call.function));
        if let Some(function) = qualified.and_then(|name| self.environment.function(&name)) {
            function.name.clone_into(&mut call.function);
            call.target = None;
            return self.check_overloads(id, function, None, &call.args);
        }
        self.check(target);
        match self.environment.function(&call.function) {
            Some(function) => self.check_overloads(id, function, Some(target), &call.args),
            None => self.report_undeclared(id, &call.function),
        }
    }

    fn check_optional_select(&mut self, id: ExprId, call: &mut Call) {
        let [operand, field] = call.args.as_mut_slice() else {
            let count = call.args.len();
            let message = format!(
                "unsupported optional field selection: incorrect signature. argument count: {count}"
            );
            self.report(id, format_args!("{message}"));
            return self.set_type(id, Type::Error);
        };
        let ExprKind::Literal(Literal::String(name)) = &field.kind else {
            self.report(field.id, format_args!("unsupported optional field selection"));
            return self.set_type(id, Type::Error);
        };
        let result = self.check_field(id, operand, name, true);
        let result = self.bindings.substitute(&result);
        self.set_type(id, result);
        self.set_reference(id, Reference::Overloads(vec!["select_optional_field"]));
    }

    fn check_overloads(
        &mut self,
        id: ExprId,
        function: &'static Function,
        target: Option<&Expr>,
        args: &[Expr],
    ) {
        let resolution = match function.name {
            operators::LOGICAL_AND | operators::LOGICAL_OR => self.resolve_logical(function, args),
            _ => self.resolve_overload(id, function, target, args),
        };
        let Some(Resolution { overloads, result }) = resolution else {
            return self.set_type(id, Type::Error);
        };
        self.set_type(id, result);
        self.set_reference(id, Reference::Overloads(overloads));
    }

    /// `&&` and `||`, of which the parser may join more than two operands; each operand has a
    /// separate issue.
    fn resolve_logical(
        &mut self,
        function: &'static Function,
        args: &[Expr],
    ) -> Option<Resolution> {
        let mut are_bools = true;
        for argument in args {
            let ty = self.type_of(argument.id);
            if !self.is_assignable(&ty, &Type::Bool) {
                self.report_mismatch(argument.id, &Type::Bool, &ty);
                are_bools = false;
            }
        }
        let overloads = function.overloads.iter().map(|overload| overload.id).collect();
        are_bools.then_some(Resolution { overloads, result: Type::Bool })
    }

    fn resolve_overload(
        &mut self,
        id: ExprId,
        function: &'static Function,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Option<Resolution> {
        let arguments: Vec<Type> =
            target.into_iter().chain(args).map(|argument| self.type_of(argument.id)).collect();
        let mut overloads = Vec::new();
        let mut result: Option<Type> = None;
        for overload in
            function.overloads.iter().filter(|overload| overload.is_member == target.is_some())
        {
            let (parameters, declared) = self.instantiate(overload);
            if !self.bindings.assign(&arguments, &parameters) {
                continue;
            }
            overloads.push(overload.id);
            let candidate = self.bindings.substitute(&declared);
            result = Some(match result {
                None => candidate,
                Some(first)
                    if matches!(first, Type::Dyn | Type::Any) || candidate.is_same(&first) =>
                {
                    first
                }
                // Overloads with different results: the overload that answers is known at run time
                // only.
                Some(_) => Type::Dyn,
            });
        }
        if result.is_none() {
            self.report_no_overload(id, function.name, &arguments, target.is_some());
        }
        result.map(|result| Resolution { overloads, result })
    }

    /// Argument types and result of an overload with fresh variables for its type parameters.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let parameters = overload.type_parameters.iter();
        let fresh: Vec<(&Arc<str>, Type)> =
            parameters.map(|name| (name, self.bindings.fresh())).collect();
        let arguments = overload.arguments.iter().map(|ty| with_variables(ty, &fresh)).collect();
        (arguments, with_variables(&overload.result, &fresh))
    }

    fn report_no_overload(
        &mut self,
        id: ExprId,
        function: &str,
        arguments: &[Type],
        is_member: bool,
    ) {
        let mut arguments = arguments.iter().map(|ty| self.bindings.resolve(ty).to_string());
        let receiver = if is_member { arguments.next().map(|ty| ty + ".") } else { None };
        let arguments: Vec<String> = arguments.collect();
        let signature = format!("{}({})", receiver.unwrap_or_default(), arguments.join(", "));
        self.report(
            id,
            format_args!("found no matching overload for '{function}' applied to '{signature}'"),
        );
    }
}

/// The type with each type parameter of a declaration replaced by its variable.
fn with_variables(ty: &Type, variables: &[(&Arc<str>, Type)]) -> Type {
    match ty {
        Type::Param(name) => {
            let variable = variables.iter().find(|(parameter, _)| *parameter == name);
            variable.map_or_else(|| ty.clone(), |(_, variable)| variable.clone())
        }
        other => map_parameters(other, &mut |parameter| with_variables(parameter, variables)),
    }
}
