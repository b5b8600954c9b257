//! Texts: the functions of the language, cel-go's string extension and Kubernetes' regular expressions.

use super::super::error::EvalError;
use super::super::value::{Value, char_count};
use super::{CallArgs, Function};

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// The body of a text function by its name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "startsWith" => |call| test(call, |text, part| text.starts_with(part)),
        "endsWith" => |call| test(call, |text, part| text.ends_with(part)),
        "contains" => |call| test(call, |text, part| text.contains(part)),
        "matches" => matches,
        "find" => find,
        "findAll" => find_all,
        "lowerAscii" => |call| Ok(Value::text(call.text(0)?.to_ascii_lowercase())),
        "upperAscii" => |call| Ok(Value::text(call.text(0)?.to_ascii_uppercase())),
        "trim" => |call| Ok(Value::text(call.text(0)?.trim())),
        "charAt" => char_at,
        "substring" => substring,
        "replace" => replace,
        "split" => split,
        "join" => join,
        _ => return None,
    })
}

fn test<'a>(call: &mut CallArgs<'_, 'a>, body: fn(&str, &str) -> bool) -> Evaluated<'a> {
    Ok(Value::Bool(body(&call.text(0)?, &call.text(1)?)))
}

/// Calls a body with the pattern of a call: the one of the plan, or a computed one.
fn with_regex<'a>(
    call: &CallArgs<'_, 'a>,
    body: impl FnOnce(&regex::Regex) -> Evaluated<'a>,
) -> Evaluated<'a> {
    match call.regex {
        Some(regex) => body(regex),
        None => body(&super::compile_regex(&call.text(1)?)?),
    }
}

fn matches<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0)?;
    with_regex(call, |regex| Ok(Value::Bool(regex.is_match(&text))))
}

fn find<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0)?;
    with_regex(call, |regex| Ok(Value::text(regex.find(&text).map_or("", |found| found.as_str()))))
}

fn find_all<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0)?;
    let limit = if call.args.len() > 2 { call.int(2)? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    with_regex(call, |regex| {
        Ok(Value::list(
            regex.find_iter(&text).take(limit).map(|found| Value::text(found.as_str())).collect(),
        ))
    })
}

/// Byte offset of a code point.
fn offset(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(offset, _)| offset)
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

fn char_at<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, index) = (call.text(0)?, call.int(1)?);
    let position = usize::try_from(index).map_err(|_| out_of_range(index))?;
    match text.chars().nth(position) {
        Some(c) => Ok(Value::text(c.to_string())),
        None if char_count(&text) == position as u64 => Ok(Value::text("")),
        None => Err(out_of_range(index)),
    }
}

fn substring<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, start) = (call.text(0)?, call.int(1)?);
    let length = char_count(&text) as i64;
    let end = if call.args.len() > 2 { call.int(2)? } else { length };
    if call.args.len() > 2 && start > end {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    if !(0..=length).contains(&start) {
        return Err(out_of_range(start));
    }
    if !(0..=length).contains(&end) {
        return Err(out_of_range(end));
    }
    let (from, to) = (offset(&text, start as usize), offset(&text, end as usize));
    Ok(Value::text(text.get(from..to).unwrap_or_default()))
}

fn replace<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let limit = if call.args.len() > 3 { call.int(3)? } else { -1 };
    Ok(Value::text(text.replacen(&*old, &new, usize::try_from(limit).unwrap_or(usize::MAX))))
}

fn split<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    let limit = if call.args.len() > 2 { call.int(2)? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts = match (&*separator, limit) {
        (_, 0) => Vec::new(),
        ("", _) => {
            let head = text.chars().take(limit.saturating_sub(1)).count();
            let mut parts: Vec<Value<'a>> =
                text.chars().take(head).map(|c| Value::text(c.to_string())).collect();
            let rest = text.get(offset(&text, head)..).unwrap_or_default();
            parts.extend((!rest.is_empty()).then(|| Value::text(rest)));
            parts
        }
        (separator, _) => text.splitn(limit, separator).map(Value::text).collect(),
    };
    Ok(Value::list(parts))
}

fn join<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    let separator = if call.args.len() > 1 { Some(call.text(1)?) } else { None };
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::String(part) = item? else { return Err(call.no_such_overload()) };
        if let (1.., Some(separator)) = (index, &separator) {
            text.push_str(separator);
        }
        text.push_str(&part);
        if text.len() as u64 / 5 > call.remaining.saturating_add(1) {
            return Err(EvalError::CostLimitExceeded);
        }
    }
    Ok(Value::text(text))
}

/// `indexOf` and `lastIndexOf` of a text, in code points.
pub(super) fn index_of<'a>(call: &mut CallArgs<'_, 'a>, from_end: bool) -> Evaluated<'a> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    let length = char_count(&text) as i64;
    let start = if call.args.len() > 2 { Some(call.int(2)?) } else { None };
    if part.is_empty() {
        return Ok(Value::Int(start.unwrap_or(if from_end { length } else { 0 })));
    }
    if let Some(start) = start.filter(|start| !(0..length).contains(start)) {
        return Err(out_of_range(start));
    }
    let found = match (from_end, start) {
        (false, start) => {
            let from = offset(&text, start.unwrap_or_default() as usize);
            text.get(from..).and_then(|rest| rest.find(&*part)).map(|at| at + from)
        }
        (true, None) => text.rfind(&*part),
        (true, Some(start)) => {
            let last = offset(&text, start as usize) + part.len();
            let end =
                (last..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
            text.get(..end).and_then(|head| head.rfind(&*part))
        }
    };
    let index = found.and_then(|at| text.get(..at)).map_or(-1, |head| char_count(head) as i64);
    Ok(Value::Int(index))
}
