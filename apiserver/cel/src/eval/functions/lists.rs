//! Lists: sums, sets, cel-go's list extension and Kubernetes' list functions.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::super::equal::{compare, element_key, is_equal};
use super::super::error::{EvalError, deeper};
use super::super::list::List;
use super::super::map::{Entries, Map};
use super::super::value::Value;
use super::super::work::WorkBudget;
use super::operators::{compare_within, contains};
use super::{CallArgs, Function};
use crate::library::duration::Duration;
use crate::types::shape::Shape;

/// Returns the body of the list function with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "isSorted" => is_sorted,
        "sum" => sum,
        "min" => |call| extreme(call, Ordering::Greater),
        "max" => |call| extreme(call, Ordering::Less),
        "indexOf" => |call| index_of(call, false),
        "lastIndexOf" => |call| index_of(call, true),
        "sets.contains" => sets_contains,
        "sets.equivalent" => sets_equivalent,
        "sets.intersects" => sets_intersects,
        "slice" => slice,
        "flatten" => flatten,
        "sort" => sort,
        "@sortByAssociatedKeys" => sort_by_keys,
        "lists.range" => range,
        "reverse" => reverse,
        "distinct" => distinct,
        "cel.@mapInsert" => map_insert,
        _ => return None,
    })
}

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// The sum of two lists: the union of a set; in a list with keys a right element replaces the left
/// element.
pub(super) fn sum_of<'a>(
    left: List<'a>,
    right: List<'a>,
    work: &WorkBudget,
) -> Result<List<'a>, EvalError> {
    // The server reads the elements of a sum under the schema of the left list: that of an optional
    // `oldSelf` has none.
    let right = match (left.shape(), right) {
        (Some(shape), List::Dyn(items)) => List::Json(items, shape),
        (Some(shape), right) if matches!(shape.items, Shape::Double) => doubles(right, work)?,
        (_, right) => right,
    };
    let Some(shape) = left.keyed_shape() else { return left.concat(right) };
    work.elements(left.len().saturating_add(right.len()))?;
    let mut values = Vec::with_capacity(left.len());
    let mut places = HashMap::new();
    for value in left.iter() {
        let value = value?;
        if let Some(key) = element_key(&value, shape)? {
            places.insert(key, values.len());
        }
        values.push(value);
    }
    let is_set = shape.kind == crate::types::shape::ListKind::Set;
    for value in right.iter() {
        let value = value?;
        let key = element_key(&value, shape)?;
        let place = key.as_ref().and_then(|key| places.get(key));
        match place.and_then(|&place| values.get_mut(place)) {
            Some(_) if is_set => {}
            Some(old) => *old = value,
            None => {
                // Only the union remembers new elements; a list with keys appends each of them.
                if let Some(key) = key.filter(|_| is_set) {
                    places.insert(key, values.len());
                }
                values.push(value);
            }
        }
    }
    Ok(List::Keyed(Arc::new(values), shape))
}

/// A list with integers as doubles, as a schema of numbers reads them.
fn doubles<'a>(list: List<'a>, work: &WorkBudget) -> Result<List<'a>, EvalError> {
    if matches!(list, List::Json(..) | List::Keyed(..)) {
        return Ok(list);
    }
    work.elements(list.len())?;
    let double = |item| match item {
        Ok(Value::Int(value)) => Ok(Value::Double(value as f64)),
        other => other,
    };
    list.iter().map(double).collect::<Result<Vec<_>, _>>().map(List::from)
}

fn is_sorted<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    let mut previous: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        check_order(&item)?;
        call.work.take(1)?;
        if let Some(previous) = previous
            && is_ordered(&previous, &item, Ordering::Greater, call.work)?
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let by_first_element = |list: &List<'a>| match list.get(0).transpose() {
        Ok(Some(Value::Uint(_))) => Some("list_uint_sum_uint"),
        Ok(Some(Value::Double(_))) => Some("list_double_sum_double"),
        Ok(Some(Value::Duration(_))) => Some("list_duration_sum_duration"),
        _ => None,
    };
    // Among several overloads cel-go takes the overload that fits the first element.
    let overload = match call.overload {
        None => by_first_element(&call.list(0)?),
        known => known,
    };
    let zero = match overload {
        Some("list_uint_sum_uint") => Value::Uint(0),
        Some("list_double_sum_double") => Value::Double(0.0),
        Some("list_duration_sum_duration") => Value::Duration(Duration::default()),
        _ => Value::Int(0),
    };
    let add = super::operators::lookup("_+_").ok_or_else(EvalError::no_such_overload)?;
    let mut total = zero;
    for item in call.list(0)?.iter() {
        let mut args = [total, item?];
        let mut inner = CallArgs {
            function: "_+_",
            overload: None,
            regex: None,
            remaining: 0,
            work: call.work,
            args: &mut args,
        };
        total = add(&mut inner)?;
    }
    Ok(total)
}

/// Whether two values have this order; those that cannot be compared have none.
fn is_ordered<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    order: Ordering,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    match compare_within(left, right, work) {
        Err(fatal) if fatal.is_fatal() => Err(fatal),
        found => Ok(found == Ok(order)),
    }
}

/// An error for a value of a type without an order.
fn check_order(value: &Value<'_>) -> Result<(), EvalError> {
    match value {
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => Ok(()),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn extreme<'a>(call: &mut CallArgs<'_, 'a>, replaced_if: Ordering) -> Evaluated<'a> {
    let list = call.list(0)?;
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        check_order(&item)?;
        call.work.take(1)?;
        match &best {
            Some(value) if !is_ordered(value, &item, replaced_if, call.work)? => {}
            _ => best = Some(item),
        }
    }
    best.ok_or_else(|| EvalError::new(format!("{} called on empty list", call.function)))
}

fn index_of<'a>(call: &mut CallArgs<'_, 'a>, from_end: bool) -> Evaluated<'a> {
    if let Some(Value::String(_)) = call.args.first() {
        return super::text::index_of(call, from_end);
    }
    let list = call.list(0)?;
    let wanted = call.take(1);
    let (mut found, len) = (None, list.len());
    for step in 0..len {
        let index = if from_end { len - 1 - step } else { step };
        if let Some(Ok(item)) = list.get(index)
            && is_equal(&item, &wanted, call.work)?
        {
            found = Some(index);
            break;
        }
    }
    Ok(Value::Int(found.map_or(-1, |index| index as i64)))
}

fn all_contained<'a>(
    list: &List<'a>,
    part: &List<'a>,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !contains(list, &item?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn sets_contains<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    all_contained(&call.list(0)?, &call.list(1)?, call.work).map(Value::Bool)
}

fn sets_equivalent<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (left, right) = (call.list(0)?, call.list(1)?);
    let work = call.work;
    Ok(Value::Bool(all_contained(&left, &right, work)? && all_contained(&right, &left, work)?))
}

fn sets_intersects<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (left, right) = (call.list(0)?, call.list(1)?);
    for item in left.iter() {
        match item.and_then(|item| contains(&right, &item, call.work)) {
            Ok(true) => return Ok(Value::Bool(true)),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
    }
    Ok(Value::Bool(false))
}

fn slice<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (list, start, end) = (call.list(0)?, call.int(1)?, call.int(2)?);
    let problem = if start < 0 || end < 0 {
        "negative indexes not supported".to_owned()
    } else if start > end {
        "start index must be less than or equal to end index".to_owned()
    } else if (list.len() as i64) < end {
        format!("list is length {}", list.len())
    } else {
        if (end - start) as u64 > call.remaining {
            return Err(EvalError::CostLimitExceeded);
        }
        let range = start as usize..end as usize;
        call.work.elements(range.len())?;
        return range
            .filter_map(|index| list.get(index))
            .collect::<Result<_, _>>()
            .map(Value::list);
    };
    Err(EvalError::new(format!("cannot slice({start}, {end}), {problem}")))
}

fn flatten<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let depth = if call.args.len() > 1 { call.int(1)? } else { 1 };
    if depth < 0 {
        return Err(EvalError::Static("level must be non-negative"));
    }
    let mut values = Vec::new();
    flatten_into(&call.list(0)?, (depth, 0), call.work, &mut values)?;
    Ok(Value::list(values))
}

/// Flattens `levels.0` levels; `levels.1` are done.
fn flatten_into<'a>(
    list: &List<'a>,
    levels: (i64, usize),
    work: &WorkBudget,
    values: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    let (depth, done) = levels;
    let done = deeper(done)?;
    for item in list.iter() {
        work.elements(1)?;
        match item? {
            Value::List(inner) if depth > 0 => {
                flatten_into(&inner, (depth - 1, done), work, values)?;
            }
            item => values.push(item),
        }
    }
    Ok(())
}

fn sort<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    sorted(&list, &list, call.work)
}

fn sort_by_keys<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    sorted(&call.list(0)?, &call.list(1)?, call.work)
}

/// The elements in the order of their keys.
fn sorted<'a>(list: &List<'a>, keys: &List<'a>, work: &WorkBudget) -> Evaluated<'a> {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    // A list without a declared type costs 1. Each key takes part in as many comparisons as the
    // length has bits.
    let comparisons = 64 - (keys.len() as u64).leading_zeros();
    work.elements(keys.len())?;
    work.take((keys.len() as u64).saturating_mul(u64::from(comparisons)))?;
    let mut pairs = keys
        .iter()
        .zip(list.iter())
        .map(|(k, v)| Ok((k?, v?)))
        .collect::<Result<Vec<_>, EvalError>>()?;
    let Some((first, _)) = pairs.first() else { return Ok(Value::List(list.clone())) };
    if compare(first, first).is_err() && !matches!(first, Value::Double(_)) {
        return Err(EvalError::Static("list elements must be comparable"));
    }
    let kind = std::mem::discriminant(first);
    if pairs.iter().any(|(key, _)| std::mem::discriminant(key) != kind) {
        return Err(EvalError::Static("list elements must have the same type"));
    }
    for (key, _) in &pairs {
        if let Value::String(text) = key {
            work.scan(text.len().saturating_mul(comparisons as usize))?;
        }
    }
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, value)| value).collect()))
}

fn range<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let end = call.int(0)?;
    if u64::try_from(end).is_ok_and(|end| end > call.remaining) {
        return Err(EvalError::CostLimitExceeded);
    }
    Ok(Value::list((0..end).map(Value::Int).collect()))
}

fn reverse<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    if list.len() as u64 > call.remaining {
        return Err(EvalError::CostLimitExceeded);
    }
    call.work.elements(list.len())?;
    (0..list.len())
        .rev()
        .filter_map(|index| list.get(index))
        .collect::<Result<_, _>>()
        .map(Value::list)
}

fn distinct<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    let size = list.len() as u64;
    // The cost is that of comparing every element with every other: paid before the work.
    if size.saturating_mul(size) > call.remaining {
        return Err(EvalError::CostLimitExceeded);
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let mut is_known = false;
        for other in &unique {
            is_known |= is_equal(&item, other, call.work)?;
        }
        if !is_known {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

fn map_insert<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    if let [_, other] = &*call.args
        && !matches!(other, Value::Map(_))
    {
        return Err(call.no_such_overload());
    }
    let Value::Map(Map::Entries(mut target)) = call.take(0) else {
        return Err(call.no_such_overload());
    };
    let entries: &mut Entries<'a> = Arc::make_mut(&mut target);
    let (second, value) = (call.take(1), call.take(2));
    match second {
        Value::Map(update) if call.args.len() == 2 => {
            call.work.elements(update.len())?;
            for key in update.keys() {
                let value = update.find(&key)?.unwrap_or(Value::Null);
                insert(entries, key, value)?;
            }
        }
        key => insert(entries, key, value)?,
    }
    Ok(Value::Map(Map::Entries(target)))
}

fn insert<'a>(
    entries: &mut Entries<'a>,
    key: Value<'a>,
    value: Value<'a>,
) -> Result<(), EvalError> {
    if entries.get(&key).is_some() {
        return Err(EvalError::new(format!(
            "insert failed: key {} already exists",
            super::display(&key)
        )));
    }
    entries.set(key, value)
}
