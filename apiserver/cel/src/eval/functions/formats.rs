//! Named formats: Kubernetes' `format` library.

use std::any::Any;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::named_format::NamedFormat;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

const PREFIX: &str = "format.";

/// Returns the body of the function of formats with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    match name {
        "format.named" => Some(|call| {
            let format = NamedFormat::by_name(&call.text(0)?);
            Ok(format.map_or(Value::Optional(None), |format| Value::some(value(format))))
        }),
        "validate" => Some(validate),
        _ => NamedFormat::by_name(name.strip_prefix(PREFIX)?).map(|_| constant as Function),
    }
}

fn value<'a>(format: NamedFormat) -> Value<'a> {
    Value::Opaque(Arc::new(format))
}

/// `format.uuid()`
fn constant<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let format = call.function.strip_prefix(PREFIX).and_then(NamedFormat::by_name);
    format.map(value).ok_or_else(|| call.no_such_overload())
}

/// The errors of a text as an optional list: none if the text has the format.
fn validate<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let format = match call.args.first() {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref::<NamedFormat>().copied(),
        _ => None,
    };
    let format = format.ok_or_else(|| call.no_such_overload())?;
    let errors = format.validate(&call.text(1)?);
    if errors.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(errors.into_iter().map(Value::text).collect())))
}

impl Opaque for NamedFormat {
    fn type_name(&self) -> &str {
        "kubernetes.NamedFormat"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn regex_size(&self) -> Option<u64> {
        Some(NamedFormat::regex_size(*self))
    }
}
