//! Parts of timestamps and durations.

use jiff::tz::{Offset, TimeZone};

use super::super::error::EvalError;
use super::super::value::Value;
use super::{CallArgs, Function};

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// The body of a time function by its name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |call| part(call, |time| i64::from(time.year())),
        "getMonth" => |call| part(call, |time| i64::from(time.month()) - 1),
        "getDayOfYear" => |call| part(call, |time| i64::from(time.day_of_year()) - 1),
        "getDayOfMonth" => |call| part(call, |time| i64::from(time.day()) - 1),
        "getDate" => |call| part(call, |time| i64::from(time.day())),
        "getDayOfWeek" => {
            |call| part(call, |time| i64::from(time.weekday().to_sunday_zero_offset()))
        }
        "getHours" => |call| part_or(call, |time| i64::from(time.hour()), 3_600_000_000_000),
        "getMinutes" => |call| part_or(call, |time| i64::from(time.minute()), 60_000_000_000),
        "getSeconds" => |call| part_or(call, |time| i64::from(time.second()), 1_000_000_000),
        "getMilliseconds" => |call| part_or(call, |time| i64::from(time.millisecond()), 1_000_000),
        _ => return None,
    })
}

fn part<'a>(call: &mut CallArgs<'_, 'a>, body: fn(&jiff::Zoned) -> i64) -> Evaluated<'a> {
    let Some(Value::Timestamp(time)) = call.args.first() else {
        return Err(call.no_such_overload());
    };
    let zone = if call.args.len() > 1 { zone(&call.text(1)?)? } else { TimeZone::UTC };
    Ok(Value::Int(body(&time.to_zoned(zone))))
}

/// A part of a timestamp, or a duration as a number of units.
fn part_or<'a>(
    call: &mut CallArgs<'_, 'a>,
    body: fn(&jiff::Zoned) -> i64,
    unit: i64,
) -> Evaluated<'a> {
    match &*call.args {
        [Value::Duration(nanoseconds)] => Ok(Value::Int(nanoseconds / unit)),
        _ => part(call, body),
    }
}

/// A time zone by its name, or an offset `+01:30`, `-08:00`, `02:00`.
fn zone(name: &str) -> Result<TimeZone, EvalError> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return TimeZone::get(name)
            .map_err(|_| EvalError::new(format!("unknown time zone {name}")));
    };
    let invalid =
        |part: &str| EvalError::new(format!("strconv.Atoi: parsing \"{part}\": invalid syntax"));
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.parse().map_err(|_| invalid(hours))?;
    let minutes: i32 = minutes.parse().map_err(|_| invalid(minutes))?;
    let seconds = hours
        .checked_mul(3600)
        .zip(minutes.checked_mul(60 * sign))
        .and_then(|(h, m)| h.checked_add(m));
    let offset = seconds.and_then(|seconds| Offset::from_seconds(seconds).ok());
    offset.map(TimeZone::fixed).ok_or_else(|| EvalError::new(format!("unknown time zone {name}")))
}
