//! Parts of timestamps and durations.

use super::super::error::EvalError;
use super::super::value::Value;
use super::{CallArgs, Function};
use crate::library::timestamp::{Part, Zone};

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the time function with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |call| part(call, Part::FullYear),
        "getMonth" => |call| part(call, Part::Month),
        "getDayOfYear" => |call| part(call, Part::DayOfYear),
        "getDayOfMonth" => |call| part(call, Part::DayOfMonth),
        "getDate" => |call| part(call, Part::Date),
        "getDayOfWeek" => |call| part(call, Part::DayOfWeek),
        "getHours" => |call| part_or(call, Part::Hours, 3_600_000_000_000),
        "getMinutes" => |call| part_or(call, Part::Minutes, 60_000_000_000),
        "getSeconds" => |call| part_or(call, Part::Seconds, 1_000_000_000),
        "getMilliseconds" => |call| part_or(call, Part::Milliseconds, 1_000_000),
        _ => return None,
    })
}

fn part<'a>(call: &mut CallArgs<'_, 'a>, part: Part) -> Evaluated<'a> {
    let Some(Value::Timestamp(time)) = call.args.first() else {
        return Err(call.no_such_overload());
    };
    let zone = if call.args.len() > 1 {
        Zone::parse(&call.text(1)?).map_err(EvalError::new)?
    } else {
        Zone::UTC
    };
    Ok(Value::Int(time.part(part, &zone)))
}

/// A part of a timestamp, or a duration as a number of units.
fn part_or<'a>(call: &mut CallArgs<'_, 'a>, of: Part, unit: i64) -> Evaluated<'a> {
    match &*call.args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.as_nanos() / unit)),
        _ => part(call, of),
    }
}
