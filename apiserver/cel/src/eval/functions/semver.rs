//! Semantic versions: Kubernetes' `semver` library.

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::{Opaque, Value};
use super::{CallArgs, Function};
use crate::library::semver::Version;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the function of versions with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "semver" => |call| {
            let version = parsed(call)?.map_err(EvalError::new)?;
            Ok(Value::Opaque(Arc::new(version)))
        },
        "isSemver" => |call| Ok(Value::Bool(parsed(call)?.is_ok())),
        "major" => |call| part(call, |version| version.major),
        "minor" => |call| part(call, |version| version.minor),
        "patch" => |call| part(call, |version| version.patch),
        _ => return None,
    })
}

/// The version of the text; with a second argument `true` of a text that is normalized.
fn parsed(call: &CallArgs<'_, '_>) -> Result<Result<Version, String>, EvalError> {
    let text = call.text(0)?;
    match call.args.get(1) {
        None | Some(Value::Bool(false)) => Ok(Version::parse(&text)),
        Some(Value::Bool(true)) => Ok(Version::parse_normalized(&text)),
        Some(_) => Err(call.no_such_overload()),
    }
}

fn argument<'c>(call: &'c CallArgs<'_, '_>, index: usize) -> Option<&'c Version> {
    match call.args.get(index) {
        Some(Value::Opaque(value)) => value.as_any().downcast_ref(),
        _ => None,
    }
}

/// Order of two versions; `None` for other arguments.
pub(super) fn order(call: &CallArgs<'_, '_>) -> Option<Result<Ordering, EvalError>> {
    Some(Ok(argument(call, 0)?.cmp(argument(call, 1)?)))
}

/// A number of the version; a number beyond the range of `int` is negative, as in Go.
fn part<'a>(call: &CallArgs<'_, 'a>, of: fn(&Version) -> u64) -> Evaluated<'a> {
    let version = argument(call, 0).ok_or_else(|| call.no_such_overload())?;
    Ok(Value::Int(of(version) as i64))
}

impl Opaque for Version {
    fn type_name(&self) -> &str {
        "kubernetes.Semver"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
