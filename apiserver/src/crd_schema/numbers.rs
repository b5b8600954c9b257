//! Numbers in values of custom resources: ranges, limits and divisors.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::cause::{self, fault, plain, shown};
use super::node::SchemaNode;
use crate::served::Cause;

/// Returns a fault if the number does not fit the schema's type and format.
fn in_range(node: &SchemaNode, number: &Number, path: &str) -> Option<Cause> {
    let [kind] = node.types.as_slice() else { return None };
    let float = number.as_f64().unwrap_or(f64::INFINITY);
    let integer = number.as_i64().or_else(|| {
        let whole = float.fract() == 0.0 && float.abs() < 9.2e18;
        (number.is_f64() && whole).then_some(float as i64)
    });
    let fits = match (kind.as_str(), node.format.as_str()) {
        ("integer", "int32") => integer.is_some_and(|i| i32::try_from(i).is_ok()),
        ("integer", _) => integer.is_some(),
        (_, "float") => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    (!fits).then(|| out_of_range("Checked", node, kind, path))
}

/// Returns the fault of a number that does not fit the type and format.
fn out_of_range(what: &str, node: &SchemaNode, kind: &str, path: &str) -> Cause {
    let path = shown(path);
    match node.format.as_str() {
        "" => plain(format!("{what} value must be of type {kind} (default format) in {path}")),
        format => {
            plain(format!("{what} value must be of type {kind} with format {format} in {path}"))
        }
    }
}

/// Returns a fault if a limit of the schema does not fit its own type and format. Upstream reads
/// the shortest text of the floating number: that of 2^63 - 1 is above all integers of 64 bits.
fn limit_in_range(node: &SchemaNode, what: &str, limit: f64, path: &str) -> Option<Cause> {
    let [kind] = node.types.as_slice() else { return None };
    let text = limit.to_string();
    let fits = match (kind.as_str(), node.format.as_str()) {
        ("integer", "int32") => text.parse::<i32>().is_ok(),
        ("integer", _) => text.parse::<i64>().is_ok(),
        (_, "float") => limit.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    (!fits).then(|| out_of_range(what, node, kind, path))
}

/// A limit as kube-apiserver compares it with a number.
enum Limit {
    /// For a whole number, if the limit is in the range of the type: cut towards 0, and the
    /// smallest integer for a limit beyond 64 bits, as Go does on amd64.
    Integer(i64, i64),
    Float(f64, f64),
}

impl Limit {
    fn new(number: &Number, limit: f64, is_in_range: bool) -> Limit {
        let is_wide = limit >= 9_223_372_036_854_775_808.0;
        match number.as_i64().filter(|_| is_in_range) {
            Some(number) if is_wide => Limit::Integer(number, i64::MIN),
            #[allow(clippy::cast_possible_truncation)]
            Some(number) => Limit::Integer(number, limit as i64),
            None => Limit::Float(number.as_f64().unwrap_or(f64::INFINITY), limit),
        }
    }

    /// The order of the number and the limit: neighbours of 2^63 are one number as floats.
    fn order(&self) -> Ordering {
        match self {
            Limit::Integer(number, limit) => number.cmp(limit),
            Limit::Float(number, limit) => number.partial_cmp(limit).unwrap_or(Ordering::Greater),
        }
    }

    /// The limit in messages.
    fn text(&self) -> String {
        match self {
            Limit::Integer(_, limit) => limit.to_string(),
            Limit::Float(_, limit) => cause::float(*limit),
        }
    }
}

/// Returns the faults of a number: of its range, of the limits themselves, of divisor and limits.
pub(super) fn faults(node: &SchemaNode, number: &Number, path: &str) -> Vec<Cause> {
    let value = Value::Number(number.clone());
    let mut found: Vec<Cause> = in_range(node, number, path).into_iter().collect();
    let limits = [
        ("MultipleOf", node.multiple_of),
        ("Minimum boundary", node.minimum),
        ("Maximum boundary", node.maximum),
    ];
    let [factor, min, max] = limits.map(|(what, limit)| {
        let cause = limit_in_range(node, what, limit?, path);
        let is_in_range = cause.is_none();
        found.extend(cause);
        Some(Limit::new(number, limit?, is_in_range))
    });
    found.extend(factor.and_then(|factor| no_multiple(&factor, &value, path)));
    if let Some(min) = min {
        let (bad, word) = match node.exclusive_minimum {
            true => (min.order().is_le(), "greater than"),
            false => (min.order().is_lt(), "greater than or equal to"),
        };
        if bad {
            found.push(fault(path, &value, &format!("should be {word} {}", min.text())));
        }
    }
    if let Some(max) = max {
        let (bad, word) = match node.exclusive_maximum {
            true => (max.order().is_ge(), "less than"),
            false => (max.order().is_gt(), "less than or equal to"),
        };
        if bad {
            found.push(fault(path, &value, &format!("should be {word} {}", max.text())));
        }
    }
    found
}

/// Returns a fault if the number is no multiple of a factor.
fn no_multiple(factor: &Limit, value: &Value, path: &str) -> Option<Cause> {
    let (is_positive, is_multiple) = match factor {
        Limit::Integer(number, factor) => (*factor > 0, number.checked_rem(*factor) == Some(0)),
        Limit::Float(number, factor) if *factor < 1.0 => {
            (*factor > 0.0, is_whole(1.0 / factor * number))
        }
        Limit::Float(number, factor) => (true, is_whole(number / factor)),
    };
    if !is_positive {
        let path = shown(path);
        let factor = factor.text();
        let detail = format!("factor MultipleOf declared for {path} must be positive: {factor}");
        return Some(cause::invalid(path, &Value::from(0), &detail));
    }
    (!is_multiple)
        .then(|| fault(path, value, &format!("should be a multiple of {}", factor.text())))
}

/// Whether upstream takes a quotient for a whole number: up to 53 bits, and above 0 with an error
/// of a billionth.
fn is_whole(quotient: f64) -> bool {
    let whole = quotient.trunc();
    let error = (quotient - whole) / (quotient + whole);
    let is_near = quotient == whole || (whole > 0.0 && error < 1e-9);
    (-9_007_199_254_740_992.0..=9_007_199_254_740_991.0).contains(&quotient) && is_near
}
