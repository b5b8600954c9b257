//! The cost of a call at run time: cel-go's tracker with the rates of kube-apiserver's libraries.

use super::error::EvalError;
use super::value::Value;
use super::work::WorkBudget;
use crate::schema::MAX_DEPTH;

/// Cost of reading a character.
const TRAVERSAL: f64 = 0.1;
/// Cost of a character of a regular expression.
const REGEX: f64 = 0.25;
/// Cost of making a list.
pub(crate) const LIST: u64 = 10;
/// Cost of making a map.
pub(crate) const MAP: u64 = 30;
/// Cost of making a message.
pub(crate) const STRUCT: u64 = 40;

/// The way a call's cost is computed; chosen once, while the program is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CostRule {
    /// A number.
    Fixed(u64),
    /// Characters of an argument, by a factor.
    Traversal(usize, f64),
    /// Elements of an argument.
    Elements(usize),
    /// The smaller of two arguments.
    Smaller,
    /// As [`CostRule::Smaller`], but 1 for a value of a library.
    Equality,
    /// Both arguments.
    Sum,
    /// A text by a regular expression.
    Regex,
    /// A text by a text.
    Contains,
    /// All parts of the first argument.
    Deep,
    /// Characters of the result, twice.
    Join,
    /// A selector of labels or fields.
    Selector,
    /// A part of a CIDR: the address, and the second argument as a text.
    Cidr { has_cidr: bool, has_text: bool },
    /// A format's expression by a text.
    Validate,
    /// Product of two lists, by a factor.
    Sets(f64),
    /// Elements of the result.
    ListResult,
    /// Elements of the list by the depth.
    Flatten,
    /// Square of an argument.
    SelfCompare(usize),
}

/// The rule of a call.
pub(crate) fn rule(function: &str, overload: Option<&str>) -> CostRule {
    tracked(overload.unwrap_or_default())
        .or_else(|| library(function, overload.unwrap_or_default()))
        .unwrap_or_else(|| standard(overload.unwrap_or_default()))
}

fn tracked(overload: &str) -> Option<CostRule> {
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => CostRule::Sets(1.0),
        "list_sets_equivalent_list" => CostRule::Sets(2.0),
        "list_slice" | "lists_range" | "list_reverse" => CostRule::ListResult,
        "list_flatten" | "list_flatten_int" => CostRule::Flatten,
        "list_distinct" => CostRule::SelfCompare(0),
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => {
            CostRule::SelfCompare(0)
        }
        _ if overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys") => {
            CostRule::SelfCompare(1)
        }
        _ => return None,
    })
}

fn library(function: &str, overload: &str) -> Option<CostRule> {
    Some(match function {
        "check" => CostRule::Fixed(350_000),
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => CostRule::Fixed(1),
        "fieldSelector" | "labelSelector" => CostRule::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CostRule::Deep,
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => CostRule::Traversal(0, TRAVERSAL),
        "replace" | "split" | "ip.isCanonical" => CostRule::Traversal(0, 2.0 * TRAVERSAL),
        "join" => CostRule::Join,
        "find" | "findAll" => CostRule::Regex,
        "ip" if overload == "cidr_ip" => CostRule::Fixed(1),
        "ip" => CostRule::Traversal(0, TRAVERSAL),
        "containsIP" => {
            CostRule::Cidr { has_cidr: false, has_text: overload == "cidr_contains_ip_string" }
        }
        "containsCIDR" => {
            CostRule::Cidr { has_cidr: true, has_text: overload == "cidr_contains_cidr_string" }
        }
        "validate" => CostRule::Validate,
        "_==_" => CostRule::Equality,
        _ => return None,
    })
}

fn standard(overload: &str) -> CostRule {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => CostRule::Traversal(0, TRAVERSAL),
        "in_list" => CostRule::Elements(1),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => CostRule::Smaller,
        "add_string" | "add_bytes" => CostRule::Sum,
        "matches_string" => CostRule::Regex,
        "contains_string" => CostRule::Contains,
        _ => CostRule::Fixed(1),
    }
}

/// Size of an argument; of an optional, that of the content.
fn size(args: &[Value<'_>], index: usize) -> u64 {
    args.get(index).map_or(1, size_of)
}

fn size_of(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(content)) => size_of(content),
        other => other.size(),
    }
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn regex_cost(text: u64, pattern: u64) -> u64 {
    scaled(text.saturating_add(1), TRAVERSAL).saturating_mul(scaled(pattern, REGEX))
}

fn allocating(size: u64, factor: f64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST)
}

/// Cost of a call with these arguments; an argument that is an error counts like null, and so does
/// the result.
///
/// # Errors
///
/// The end of the evaluation if counting takes more steps than are left.
pub(crate) fn call_cost(
    rule: CostRule,
    args: &[Value<'_>],
    result: &Value<'_>,
    work: &WorkBudget,
) -> Result<u64, EvalError> {
    // The size of a text is its number of characters. Counting them is work that the cost does not
    // include, so the steps include it.
    if !matches!(rule, CostRule::Fixed(_)) {
        for arg in args {
            if let Value::String(text) = arg {
                work.scan(text.len())?;
            }
        }
    }
    Ok(match rule {
        CostRule::Fixed(cost) => cost,
        CostRule::Traversal(index, factor) => scaled(size(args, index), factor),
        CostRule::Elements(index) => size(args, index),
        CostRule::Equality if has_unit_cost(args) => 1,
        CostRule::Smaller | CostRule::Equality => {
            scaled(size(args, 0).min(size(args, 1)), TRAVERSAL)
        }
        CostRule::Sum => scaled(size(args, 0).saturating_add(size(args, 1)), TRAVERSAL),
        CostRule::Regex => regex_cost(size(args, 0), size(args, 1)),
        CostRule::Contains => {
            scaled(size(args, 0), TRAVERSAL).saturating_mul(scaled(size(args, 1), TRAVERSAL))
        }
        CostRule::Deep => match args.first() {
            Some(list) => deep_cost(list, 0, work)?,
            None => 0,
        },
        CostRule::Join => scaled(size_of(result), 2.0 * TRAVERSAL),
        CostRule::Selector => {
            let length = size(args, 1);
            LIST + scaled(length, TRAVERSAL) + scaled(scaled(length, 0.5), 50.0)
        }
        CostRule::Cidr { has_cidr, has_text } => {
            cidr_cost(size(args, 0), size(args, 1), has_cidr, has_text)
        }
        CostRule::Validate => match args.first() {
            Some(Value::Opaque(format)) => {
                format.regex_size().map_or(1, |pattern| regex_cost(size(args, 1), pattern))
            }
            _ => 1,
        },
        CostRule::Sets(factor) => 1_u64
            .saturating_add((size(args, 0).saturating_mul(size(args, 1)) as f64 * factor) as u64),
        CostRule::ListResult => allocating(size_of(result), 1.0),
        CostRule::Flatten => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            // A negative depth, which is an error, makes the cost of cel-go wrap around.
            match size(args, 0) as f64 * depth {
                wrapped if wrapped < 0.0 => (wrapped as i64 as u64).wrapping_add(1 + LIST),
                _ => allocating(size(args, 0), depth),
            }
        }
        CostRule::SelfCompare(index) => self_compare_cost(args.get(index)),
    })
}

/// Checks the arguments that the cost of a call with one or two arguments counts.
///
/// cel-go counts the cost of sorting and of `distinct` without a look at the type of the list, also
/// when the list is an error: a fault within the list that ends the evaluation. The same holds for
/// the depth of `flatten`.
pub(crate) fn check_counted(rule: CostRule, is_error: [bool; 2]) -> Result<(), EvalError> {
    match rule {
        CostRule::SelfCompare(index) if is_error.get(index) == Some(&true) => {
            Err(EvalError::Internal(
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add",
            ))
        }
        CostRule::Flatten if is_error[1] => Err(EvalError::Internal(
            "internal error: interface conversion: ref.Val is *types.Err, not types.Int",
        )),
        _ => Ok(()),
    }
}

fn has_unit_cost(args: &[Value<'_>]) -> bool {
    matches!(args.first(), Some(Value::Opaque(value)) if value.has_unit_equality_cost())
}

fn cidr_cost(cidr: u64, other: u64, has_cidr: bool, has_text: bool) -> u64 {
    let base = scaled(cidr.saturating_mul(2), TRAVERSAL);
    let mask = if has_cidr { scaled(cidr, TRAVERSAL) + 1 } else { 0 };
    base + mask + if has_text { scaled(other, TRAVERSAL) } else { 0 }
}

fn self_compare_cost(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return 1 };
    let is_text = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let size = list.len() as u64;
    allocating(size.saturating_mul(size), if is_text { 2.0 + TRAVERSAL } else { 2.0 })
}

/// Cost of reading a value with all parts. Lists that share their parts are small in
/// memory and may have exponentially many parts.
fn deep_cost(value: &Value<'_>, depth: usize, work: &WorkBudget) -> Result<u64, EvalError> {
    work.take(1)?;
    if depth > MAX_DEPTH {
        return Err(EvalError::too_deep());
    }
    let mut sum = 0_u64;
    match value {
        Value::String(text) => return Ok((text.len() as f64 * TRAVERSAL) as u64),
        Value::Bytes(bytes) => return Ok((bytes.len() as f64 * TRAVERSAL) as u64),
        Value::List(list) => {
            for item in list.iter() {
                let cost = item.as_ref().map_or(Ok(1), |item| deep_cost(item, depth + 1, work))?;
                sum = sum.saturating_add(cost);
            }
        }
        Value::Map(map) => {
            for key in map.keys() {
                let value = map.find(&key).ok().flatten();
                let of_value =
                    value.as_ref().map_or(Ok(1), |value| deep_cost(value, depth + 1, work))?;
                let of_key = deep_cost(&key, depth + 1, work)?;
                sum = sum.saturating_add(of_key).saturating_add(of_value);
            }
        }
        _ => return Ok(1),
    }
    Ok(sum)
}
