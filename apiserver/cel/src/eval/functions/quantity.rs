//! Quantities of resources: Kubernetes' `quantity` library.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::quantity::{Fault, Quantity};

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the function of quantities with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |call| {
            let quantity = Quantity::parse(&call.text(0)?).map_err(EvalError::Static)?;
            Ok(Value::Opaque(Arc::new(quantity)))
        },
        "isQuantity" => |call| Ok(Value::Bool(Quantity::parse(&call.text(0)?).is_ok())),
        "sign" => |call| Ok(Value::Int(receiver(call)?.sign())),
        "isInteger" => |call| Ok(Value::Bool(receiver(call)?.to_int().is_some())),
        "asInteger" => |call| {
            let value = receiver(call)?.to_int();
            value.map(Value::Int).ok_or(EvalError::Static("cannot convert value to integer"))
        },
        "asApproximateFloat" => |call| Ok(Value::Double(receiver(call)?.to_f64())),
        "add" => |call| combined(call, Quantity::add),
        "sub" => |call| combined(call, Quantity::sub),
        _ => return None,
    })
}

fn argument<'c>(call: &'c CallArgs<'_, '_>, index: usize) -> Option<&'c Quantity> {
    match call.args.get(index) {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref(),
        _ => None,
    }
}

fn receiver<'c>(call: &'c CallArgs<'_, '_>) -> Result<&'c Quantity, EvalError> {
    argument(call, 0).ok_or_else(|| call.no_such_overload())
}

/// Order of two quantities; `None` for other arguments.
pub(super) fn order(call: &CallArgs<'_, '_>) -> Option<Result<Ordering, EvalError>> {
    Some(argument(call, 0)?.compare(argument(call, 1)?).map_err(error))
}

/// The sum or difference with a quantity or a whole number.
fn combined<'a>(
    call: &CallArgs<'_, 'a>,
    operation: fn(&Quantity, &Quantity) -> Result<Quantity, Fault>,
) -> Evaluated<'a> {
    let left = receiver(call)?;
    let result = match (argument(call, 1), call.args.get(1)) {
        (Some(right), _) => operation(left, right),
        (None, Some(Value::Int(right))) => operation(left, &Quantity::from_int(*right)),
        _ => return Err(call.no_such_overload()),
    };
    result.map(|quantity| Value::Opaque(Arc::new(quantity))).map_err(error)
}

fn error(fault: Fault) -> EvalError {
    match fault {
        Fault::TooLarge => EvalError::Static("quantity has too many digits"),
        Fault::DivisionByZero => {
            EvalError::Internal("internal error: runtime error: integer divide by zero")
        }
    }
}

impl Opaque for Quantity {
    fn type_name(&self) -> &str {
        "kubernetes.Quantity"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = other.as_any().downcast_ref::<Quantity>();
        other.is_some_and(|other| self.compare_unchanged(other) == Ok(Ordering::Equal))
    }

    fn is_comparable(&self) -> bool {
        !self.is_result()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
