//! Check of constant format strings against the types of their arguments: `'%d'.format([x])`.

use super::Checked;
use super::validate::for_each_child;
use crate::syntax::ast::Call;
use crate::syntax::{Expr, ExprId, ExprKind, Literal};
use crate::types::Type;

/// A disagreement of a format string with its arguments; without an expression the mismatch is
/// about the whole call.
struct Mismatch {
    expr: Option<ExprId>,
    message: String,
}

impl Mismatch {
    fn of_call(message: impl Into<String>) -> Mismatch {
        Mismatch { expr: None, message: message.into() }
    }
}

/// The issue of a call of `format`, if the format string and the arguments are literals that
/// disagree.
pub(super) fn check_call(checked: &Checked, id: ExprId, call: &Call) -> Option<(ExprId, String)> {
    let target = call.target.as_ref()?;
    let ([argument], ExprKind::Literal(Literal::String(format))) =
        (call.args.as_slice(), &target.kind)
    else {
        return None;
    };
    let ExprKind::List(list) = &argument.kind else { return None };
    let mismatch = check_clauses(checked, format.as_bytes(), &list.elements).err()?;
    Some((mismatch.expr.unwrap_or(id), mismatch.message))
}

fn check_clauses(checked: &Checked, format: &[u8], arguments: &[Expr]) -> Result<(), Mismatch> {
    let (mut rest, mut used) = (format, 0);
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            continue;
        }
        if let Some(behind) = rest.strip_prefix(b"%") {
            rest = behind;
            continue;
        }
        if rest.is_empty() {
            return Err(Mismatch::of_call("unexpected end of string"));
        }
        let argument = arguments
            .get(used)
            .ok_or_else(|| Mismatch::of_call(format!("index {used} out of range")))?;
        used += 1;
        let (clause, behind) = split_clause(rest).map_err(|reason| {
            Mismatch::of_call(format!("could not parse formatting clause: {reason}"))
        })?;
        rest = behind;
        check_argument(checked, clause, argument)?;
    }
    if arguments.len() > used {
        let given = arguments.len();
        let message =
            format!("too many arguments supplied to string.format (expected {used}, got {given})");
        return Err(Mismatch::of_call(message));
    }
    Ok(())
}

/// The letter of the clause that begins behind a percent sign, and the rest of the format string.
fn split_clause(text: &[u8]) -> Result<(u8, &[u8]), String> {
    let letter_at = match text.strip_prefix(b".") {
        None => 0,
        Some(digits) => {
            let end = digits.iter().position(|byte| !byte.is_ascii_digit());
            let precision = |reason: &str| format!("error while parsing precision: {reason}");
            let end = end.ok_or_else(|| precision("could not find end of precision specifier"))?;
            let digits = String::from_utf8_lossy(digits.get(..end).unwrap_or_default());
            if digits.parse::<i64>().is_err() {
                let reason =
                    if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                return Err(precision(&format!(
                    "error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": {reason}"
                )));
            }
            end + 1
        }
    };
    let (letter, rest) = text.get(letter_at..).and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
    match letter {
        b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o' => Ok((*letter, rest)),
        other => Err(format!("unrecognized formatting clause \"{}\"", char::from(*other))),
    }
}

/// Checks that a clause takes the argument's type.
fn check_argument(checked: &Checked, clause: u8, argument: &Expr) -> Result<(), Mismatch> {
    let ty = checked.type_of(argument.id).unwrapped();
    let is_integer = matches!(ty, Type::Dyn | Type::Int | Type::Uint);
    let (is_valid, expectation) = match clause {
        b's' => return check_string(checked, argument),
        b'd' => (is_integer, "decimal clause can only be used on integers"),
        b'o' => (is_integer, "octal clause can only be used on integers"),
        b'b' => (
            is_integer || matches!(ty, Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        b'x' | b'X' => (
            is_integer || matches!(ty, Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        // A string may be `NaN` or `Infinity`.
        b'f' => (is_floating(ty), "fixed-point clause can only be used on doubles"),
        _ => (is_floating(ty), "scientific clause can only be used on doubles"),
    };
    if is_valid { Ok(()) } else { Err(type_mismatch(argument.id, expectation, ty)) }
}

fn is_floating(ty: &Type) -> bool {
    matches!(ty, Type::Dyn | Type::Double | Type::String)
}

/// Checks that `%s` takes the argument; of a literal, each element.
fn check_string(checked: &Checked, argument: &Expr) -> Result<(), Mismatch> {
    let ty = checked.type_of(argument.id).unwrapped();
    if matches!(ty, Type::Error | Type::Object(_) | Type::Opaque(..) | Type::Param(_)) {
        let expectation = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
                           types, durations, and timestamps";
        return Err(type_mismatch(argument.id, expectation, ty));
    }
    let mut result = Ok(());
    if matches!(argument.kind, ExprKind::List(_) | ExprKind::Map(_)) {
        for_each_child(argument, &mut |element| {
            if result.is_ok() {
                result = check_string(checked, element);
            }
        });
    }
    result
}

fn type_mismatch(expr: ExprId, expectation: &str, ty: &Type) -> Mismatch {
    let message = format!("error during formatting: {expectation}, was given {}", ty.name());
    Mismatch { expr: Some(expr), message }
}
