//! Equality and order of values across types.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map as JsonMap, Value as Json};

use super::error::{EvalError, deeper};
use super::list::List;
use super::map::Map;
use super::value::Value;
use super::work::WorkBudget;
use crate::schema::node_count;
use crate::types::shape::{ListKind, ListShape, Shape};

/// Depth of the comparison, and its work budget.
#[derive(Clone, Copy)]
struct ComparisonDepth<'w> {
    depth: usize,
    work: &'w WorkBudget,
}

impl ComparisonDepth<'_> {
    fn below(self) -> Result<Self, EvalError> {
        self.work.take(1)?;
        Ok(ComparisonDepth { depth: deeper(self.depth)?, ..self })
    }
}

/// Whether two values are equal for a search: values that cannot be compared are not equal, but a
/// fatal error ends the search.
pub(crate) fn is_equal<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    match equals(left, right, work) {
        Err(error) if !error.is_fatal() => Ok(false),
        other => other,
    }
}

/// Whether two values are equal. Values of different types are not, but numbers compare by value;
/// an object or array of the data compared with another type is an error. Each value that is
/// compared takes a step; long strings and bytes take more, by their length.
///
/// # Errors
///
/// The text of cel-go, that of [`EvalError::too_deep`], or [`EvalError::CostLimitExceeded`] when
/// the steps are used up.
pub fn equals<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    equals_at(left, right, ComparisonDepth { depth: 0, work })
}

/// Equality of values that lie this deep in those that are compared.
fn equals_at<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    level: ComparisonDepth<'_>,
) -> Result<bool, EvalError> {
    let level = level.below()?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            level.work.scan(a.len().min(b.len()))?;
            a == b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            level.work.scan(a.len().min(b.len()))?;
            a == b
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), Value::List(b)) => return lists_equal(a, b, level),
        (Value::Map(a), Value::Map(b)) => return maps_equal(a, b, level),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equals_at(a, b, level),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Opaque(_), Value::Opaque(b)) if !b.is_comparable() => {
            return Err(EvalError::no_such_overload());
        }
        (Value::Opaque(a), Value::Opaque(b)) if a.type_name() == b.type_name() => a.equals(&**b),
        // A library compares only values of this library.
        (Value::Opaque(_), _) => return Err(EvalError::no_such_overload()),
        (Value::List(List::Json(..)), _) | (Value::Map(Map::Object(..) | Map::Json(..)), _) => {
            return Err(EvalError::no_such_overload());
        }
        _ => matches!(compare(left, right), Ok(Ordering::Equal)),
    })
}

/// Order of two values; an error for values without an order, and for those of different types but
/// numbers.
pub fn compare<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Ordering, EvalError> {
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Int(a), Value::Uint(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Uint(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::Double(a), Value::Double(b)) => return compare_doubles(*a, *b),
        (Value::Double(a), Value::Int(b)) => return compare_double_to(*a, i128::from(*b)),
        (Value::Double(a), Value::Uint(b)) => return compare_double_to(*a, i128::from(*b)),
        (Value::Int(a), Value::Double(b)) => {
            return compare_double_to(*b, i128::from(*a)).map(Ordering::reverse);
        }
        (Value::Uint(a), Value::Double(b)) => {
            return compare_double_to(*b, i128::from(*a)).map(Ordering::reverse);
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => (**a).cmp(&**b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn compare_doubles(left: f64, right: f64) -> Result<Ordering, EvalError> {
    left.partial_cmp(&right).ok_or(EvalError::Static("NaN values cannot be ordered"))
}

/// Order of a double and an integer: both compare as doubles, so that integers above 2^53 may equal
/// their neighbours.
fn compare_double_to(left: f64, right: i128) -> Result<Ordering, EvalError> {
    compare_doubles(left, right as f64)
}

fn lists_equal<'a>(
    left: &List<'a>,
    right: &List<'a>,
    level: ComparisonDepth<'_>,
) -> Result<bool, EvalError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    match left.keyed_shape().map(|shape| (&shape.kind, shape)) {
        Some((ListKind::Set, _)) => {
            level.work.elements(left.len().saturating_add(right.len()))?;
            return sets_equal(left, right);
        }
        Some((ListKind::Map(_), shape)) => return keyed_lists_equal(left, right, shape, level),
        _ => {}
    }
    for (a, b) in left.iter().zip(right.iter()) {
        match a.and_then(|a| equals_at(&a, &b?, level)) {
            Ok(true) => {}
            Err(error) if error.is_fatal() => return Err(error),
            Ok(false) => return Ok(false),
            Err(error) if matches!(left, List::Json(..)) => return Err(error),
            // A list of cel-go looks for the value false only.
            Err(_) => {}
        }
    }
    Ok(true)
}

fn sets_equal<'a>(left: &List<'a>, right: &List<'a>) -> Result<bool, EvalError> {
    let keys = left.iter().map(|value| scalar_key(&value?)).collect::<Result<HashSet<_>, _>>()?;
    for value in right.iter() {
        if !keys.contains(&scalar_key(&value?)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn keyed_lists_equal<'a>(
    left: &List<'a>,
    right: &List<'a>,
    shape: &ListShape,
    level: ComparisonDepth<'_>,
) -> Result<bool, EvalError> {
    // Each element has a key, which is a text.
    level.work.elements(left.len().saturating_add(right.len()))?;
    let mut by_key = std::collections::HashMap::new();
    for value in left.iter() {
        let value = value?;
        if let Some(key) = element_key(&value, shape)? {
            by_key.insert(key, value);
        }
    }
    for value in right.iter() {
        let value = value?;
        let key = element_key(&value, shape)?;
        let Some(other) = key.and_then(|key| by_key.get(&key)) else { return Ok(false) };
        if !equals_at(other, &value, level)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Key of an element of a set or of a list with keys, as a text; `None` for a key that equals no
/// other: the server reads the keys from objects of JSON only.
pub(crate) fn element_key(
    value: &Value<'_>,
    shape: &ListShape,
) -> Result<Option<String>, EvalError> {
    let ListKind::Map(keys) = &shape.kind else { return scalar_key(value).map(Some) };
    let Value::Map(map) = value else { return Ok(None) };
    let Some(data) = map.json_map() else { return Ok(None) };
    let mut text = String::new();
    for key in keys {
        let part = data.get(&**key).map(|part| Value::json(part, &Shape::Dyn)).transpose()?;
        text.push_str(&part.map_or(Ok(String::from("absent")), |part| scalar_key(&part))?);
        text.push('\0');
    }
    Ok(Some(text))
}

/// A scalar with its type as a text.
fn scalar_key(value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::Bool(value) => format!("b{value}"),
        Value::Int(value) => format!("i{value}"),
        Value::Uint(value) => format!("u{value}"),
        Value::Double(value) => format!("d{value}"),
        Value::String(text) => format!("s{}:{}", text.len(), &**text),
        other => super::functions::display(other),
    })
}

fn maps_equal<'a>(
    left: &Map<'a>,
    right: &Map<'a>,
    level: ComparisonDepth<'_>,
) -> Result<bool, EvalError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    // The server looks for the names in JSON on both sides.
    let keys = match left {
        Map::Object(data, shape) => data
            .keys()
            .filter(|name| shape.has(name))
            .map(|name| Value::text(name.clone()))
            .collect(),
        _ => left.keys(),
    };
    for key in keys {
        match (left.find(&key)?, right.find(&key)?) {
            (Some(a), Some(b)) => match equals_at(&a, &b, level) {
                Ok(true) => {}
                Err(error) if error.is_fatal() => return Err(error),
                Ok(false) => return Ok(false),
                Err(error) if matches!(left, Map::Object(..) | Map::Json(..)) => return Err(error),
                // A map of cel-go looks for the value false only.
                Err(_) => {}
            },
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    match (left, left.json_map(), right.json_map()) {
        (Map::Object(_, shape), Some(a), Some(b)) => {
            let declared = |key: &String| shape.has(key);
            level.work.elements(a.len())?;
            if !matches!(right, Map::Object(..) | Map::Json(..)) && !a.keys().all(&declared) {
                return Err(EvalError::no_such_overload());
            }
            unknown_fields_equal(a, b, &declared, level.work)
        }
        (Map::Object(_, shape), Some(a), None) if a.keys().any(|key| !shape.has(key)) => {
            Err(EvalError::no_such_overload())
        }
        _ => Ok(true),
    }
}

/// Whether the fields that the schema does not declare are equal where both objects have them.
fn unknown_fields_equal(
    left: &JsonMap<String, Json>,
    right: &JsonMap<String, Json>,
    declared: &dyn Fn(&String) -> bool,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    for (key, a) in left.iter().filter(|(key, _)| !declared(key)) {
        if let Some(b) = right.get(key) {
            work.take(node_count(a).ok_or_else(EvalError::too_deep)?)?;
            if a != b {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    // DESIGN.md, 123: Work that the cost of CEL does not pay for has a bound of its own
    #[test]
    fn equal_bytes_take_the_steps_of_equal_strings() {
        let length = 1 << 20;
        let used = |value: Value<'static>| {
            let work = WorkBudget::new(u64::MAX);
            assert_eq!(equals(&value, &value.clone(), &work), Ok(true));
            u64::MAX - work.left()
        };
        let steps = used(Value::text("x".repeat(length)));
        assert!(steps >= 8192, "{steps}");
        assert_eq!(used(Value::Bytes(vec![b'x'; length].into())), steps);
    }
}
