//! Checks of literals, made once the types agree: mixed types, constant arguments.

use super::{Checked, format};
use crate::syntax::ast::{List, MapEntry};
use crate::syntax::{Expr, ExprId, ExprKind, Issues, Literal};
use crate::types::Type;

/// A check of a constant argument of a function, for the issue `invalid duration argument`.
#[derive(Debug, Clone, Copy)]
pub struct LiteralValidator {
    /// Name of the function or member: `duration`.
    pub function: &'static str,
    /// Index of the argument, without the receiver.
    pub argument: usize,
    /// Whether the function takes the constant.
    pub is_valid: fn(&Literal) -> bool,
}

/// Name of the function whose list of arguments may mix types.
const FORMAT: &str = "format";

/// Reports lists and maps whose elements are of different types, except within arguments of
/// `format`.
pub(super) fn homogeneous_literals(checked: &Checked, issues: &mut Issues) {
    let mut report = |id: ExprId, expected: &Type, actual: &Type| {
        let message = format!("expected type '{expected}' but found '{actual}'");
        report_at(checked, issues, id, message);
    };
    let mut rest = vec![&checked.ast.root];
    while let Some(expr) = rest.pop() {
        match &expr.kind {
            ExprKind::Call(call) if call.function == FORMAT => continue,
            ExprKind::List(list) => check_list(checked, list, &mut report),
            ExprKind::Map(entries) => check_map(checked, entries, &mut report),
            _ => {}
        }
        for_each_child(expr, &mut |child| rest.push(child));
    }
}

/// Reports calls of `format` whose constant format string disagrees with the arguments.
pub(super) fn format_strings(checked: &Checked, issues: &mut Issues) {
    let mut rest = vec![&checked.ast.root];
    while let Some(expr) = rest.pop() {
        if let ExprKind::Call(call) = &expr.kind
            && call.function == FORMAT
            && let Some((id, message)) = format::check_call(checked, expr.id, call)
        {
            report_at(checked, issues, id, message);
        }
        for_each_child(expr, &mut |child| rest.push(child));
    }
}

/// Reports constant arguments for which their function would fail.
pub(super) fn constant_arguments(
    checked: &Checked,
    validators: &[LiteralValidator],
    issues: &mut Issues,
) {
    let mut rest = vec![&checked.ast.root];
    while let Some(expr) = rest.pop().filter(|_| !validators.is_empty()) {
        if let ExprKind::Call(call) = &expr.kind {
            for validator in
                validators.iter().filter(|validator| validator.function == call.function)
            {
                let Some(argument) = call.args.get(validator.argument) else { continue };
                let ExprKind::Literal(literal) = &argument.kind else { continue };
                if !(validator.is_valid)(literal) {
                    report_at(
                        checked,
                        issues,
                        argument.id,
                        format!("invalid {} argument", call.function),
                    );
                }
            }
        }
        for_each_child(expr, &mut |child| rest.push(child));
    }
}

fn report_at(checked: &Checked, issues: &mut Issues, id: ExprId, message: String) {
    let offset = checked.ast.positions.get(id.index()).map_or(0, |position| position.start);
    issues.report(offset, message);
}

fn check_list(checked: &Checked, list: &List, report: &mut dyn FnMut(ExprId, &Type, &Type)) {
    let mut expected: Option<&Type> = None;
    for (index, element) in list.elements.iter().enumerate() {
        let actual = element_type(checked, element, list.optional.contains(&index));
        match expected {
            None => expected = Some(actual),
            Some(expected) if !expected.is_equivalent(actual) => {
                return report(element.id, expected, actual);
            }
            Some(_) => {}
        }
    }
}

fn check_map(
    checked: &Checked,
    entries: &[MapEntry],
    report: &mut dyn FnMut(ExprId, &Type, &Type),
) {
    let mut expected: Option<(&Type, &Type)> = None;
    for entry in entries {
        let key = element_type(checked, &entry.key, false);
        let value = element_type(checked, &entry.value, entry.is_optional);
        let Some((keys, values)) = expected else {
            expected = Some((key, value));
            continue;
        };
        if !keys.is_equivalent(key) {
            report(entry.key.id, keys, key);
        }
        if !values.is_equivalent(value) {
            report(entry.value.id, values, value);
        }
    }
}

fn element_type<'c>(checked: &'c Checked, element: &Expr, is_optional: bool) -> &'c Type {
    let ty = checked.type_of(element.id);
    if is_optional { ty.optional_content().unwrap_or(ty) } else { ty }
}

/// Visits the expressions directly below an expression.
pub(super) fn for_each_child<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => visit(&select.operand),
        ExprKind::Call(call) => call.target.iter().chain(&call.args).for_each(visit),
        ExprKind::List(list) => list.elements.iter().for_each(visit),
        ExprKind::Map(entries) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).for_each(visit)
        }
        ExprKind::Struct(literal) => literal.fields.iter().for_each(|field| visit(&field.value)),
        ExprKind::Comprehension(comprehension) => {
            let parts = [&comprehension.range, &comprehension.init, &comprehension.condition];
            parts.into_iter().chain([&comprehension.step, &comprehension.result]).for_each(visit);
        }
    }
}
