//! Texts: the functions of the language, cel-go's string extension and Kubernetes' regular
//! expressions.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::error::EvalError;
use super::super::map::Map;
use super::super::value::{Value, char_count};
use super::super::work::WorkBudget;
use super::{CallArgs, Function};
use crate::library::format::{self, Argument};
use crate::library::regex::Regex;
use crate::library::text as library;
use crate::schema::MAX_DEPTH;

type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// Returns the body of the text function with this name.
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
        "strings.quote" => quote,
        "format" => format,
        _ => return None,
    })
}

fn test<'a>(call: &mut CallArgs<'_, 'a>, body: fn(&str, &str) -> bool) -> Evaluated<'a> {
    match &*call.args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(body(text, part))),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Calls a body with the pattern of `find` or `findAll`, whose errors have a prefix.
fn with_library_regex<'a>(
    call: &CallArgs<'_, 'a>,
    body: impl FnOnce(&Regex) -> Evaluated<'a>,
) -> Evaluated<'a> {
    let illegal = |error: EvalError| EvalError::new(format!("Illegal regex: {error}"));
    match call.regex {
        Some(regex) => body(regex),
        None => match super::computed_regex(&call.text(1)?, call.work) {
            Ok(regex) => body(&regex),
            Err(fatal) if fatal.is_fatal() => Err(fatal),
            Err(error) => Err(illegal(error)),
        },
    }
}

/// Calls a body with the pattern of a call: that of the plan, or a computed pattern.
fn with_regex<'a>(
    call: &CallArgs<'_, 'a>,
    body: impl FnOnce(&Regex) -> Evaluated<'a>,
) -> Evaluated<'a> {
    match call.regex {
        Some(regex) => body(regex),
        None => body(&super::computed_regex(&call.text(1)?, call.work)?),
    }
}

/// Items of a regular expression that a search looks at in the time of a step.
const ITEMS_PER_STEP: u64 = 64;

/// Takes the steps of a search, which may look at each item of the pattern for each character of
/// the text.
fn search(regex: &Regex, text: &str, work: &WorkBudget) -> Result<(), EvalError> {
    work.take((text.len() as u64).saturating_mul(regex.items().max(1)) / ITEMS_PER_STEP)
}

fn matches<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let [Value::String(text), Value::String(_)] = &*call.args else {
        return Err(EvalError::no_such_overload());
    };
    let (text, work) = (text.clone(), call.work);
    with_regex(call, |regex| {
        search(regex, &text, work)?;
        Ok(Value::Bool(regex.is_match(&text)))
    })
}

fn find<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0).map_err(|_| EvalError::no_such_overload())?;
    let work = call.work;
    with_library_regex(call, |regex| {
        search(regex, &text, work)?;
        Ok(Value::text(regex.find(&text)))
    })
}

fn find_all<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0).map_err(|_| EvalError::no_such_overload())?;
    let limit = if call.args.len() > 2 { call.int(2)? } else { -1 };
    let work = call.work;
    with_library_regex(call, |regex| {
        search(regex, &text, work)?;
        pieces(regex.find_all(&text, limit), work)
    })
}

/// The value of a library's function, or its message.
fn evaluated<'a>(result: Result<impl Into<Arc<str>>, String>) -> Evaluated<'a> {
    result.map(Value::text).map_err(EvalError::new)
}

fn char_at<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let text = call.text(0)?;
    call.work.scan(text.len())?;
    evaluated(library::char_at(&text, call.int(1)?))
}

fn substring<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, start) = (call.text(0)?, call.int(1)?);
    match call.args.len() {
        2 => evaluated(library::substring_from(&text, start)),
        _ => evaluated(library::substring(&text, start, call.int(2)?)),
    }
}

fn replace<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let limit = if call.args.len() > 3 { call.int(3)? } else { -1 };
    let count = if old.is_empty() { text.len() + 1 } else { text.matches(&*old).count() };
    let count = usize::try_from(limit).map_or(count, |limit| count.min(limit));
    // The server's cost counts the text before and not the text after, so that a chain of
    // replacements could use all memory.
    call.work.copy(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::text(library::replace(&text, &old, &new, limit)))
}

fn split<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (text, separator) = (call.text(0)?, call.text(1)?);
    let limit = if call.args.len() > 2 { call.int(2)? } else { -1 };
    pieces(library::split(&text, &separator, limit), call.work)
}

/// A list of parts of a text, each of which takes many times the memory of a short part.
fn pieces<'a>(parts: Vec<impl Into<Arc<str>>>, work: &WorkBudget) -> Evaluated<'a> {
    work.elements(parts.len())?;
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn quote<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    Ok(Value::text(library::quote(&call.text(0)?)))
}

fn format<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let (template, list) = (call.text(0)?, call.list(1)?);
    // The server's cost counts the template and not the result, so that a chain of formats could
    // use all memory.
    let work = call.work;
    let mut out_of_work = None;
    let formatted = format::format(&template, |index| {
        match list.get(index)?.and_then(|item| argument(item, 0, work)) {
            Err(error) if error.is_fatal() => {
                out_of_work = Some(error);
                None
            }
            other => Some(other.unwrap_or(Argument::Null)),
        }
    });
    if let Some(error) = out_of_work {
        return Err(error);
    }
    formatted.map(Value::text).map_err(EvalError::new)
}

/// A value as an argument of `format`. A part that cannot be read is null.
fn argument<'a>(
    value: Value<'a>,
    depth: usize,
    work: &WorkBudget,
) -> Result<Argument<'a>, EvalError> {
    let argument = |value: Result<Value<'a>, EvalError>| {
        argument(value.unwrap_or(Value::Null), depth + 1, work)
    };
    work.elements(1)?;
    Ok(match value {
        // The formatter stops before that depth, with an error.
        _ if depth > MAX_DEPTH => Argument::Null,
        Value::Null => Argument::Null,
        Value::Bool(value) => Argument::Bool(value),
        Value::Int(value) => Argument::Int(value),
        Value::Uint(value) => Argument::Uint(value),
        Value::Double(value) => Argument::Double(value),
        Value::String(text) => {
            work.copy(text.len())?;
            Argument::String(Cow::Owned(text.to_string()))
        }
        Value::Bytes(bytes) => {
            work.copy(bytes.len())?;
            Argument::Bytes(Cow::Owned(bytes.to_vec()))
        }
        Value::Type(name) => Argument::Type(Cow::Owned(name.to_string())),
        Value::Duration(value) => Argument::Duration(value),
        Value::Timestamp(value) => Argument::Timestamp(value),
        Value::List(list) => Argument::List(list.iter().map(argument).collect::<Result<_, _>>()?),
        // The server's iterator has no key at the places of fields that the schema does not know.
        Value::Map(Map::Object(data, shape)) if !data.keys().all(|key| shape.has(key)) => {
            return Err(EvalError::Internal(
                "internal error: runtime error: invalid memory address or nil pointer dereference",
            ));
        }
        Value::Map(map) => {
            let entry = |key: Value<'a>| {
                let value = map.find(&key).map(|value| value.unwrap_or(Value::Null));
                Ok((argument(Ok(key))?, argument(value)?))
            };
            Argument::Map(map.keys().into_iter().map(entry).collect::<Result<_, EvalError>>()?)
        }
        other => Argument::Other(Cow::Owned(other.type_name().to_owned())),
    })
}

fn join<'a>(call: &mut CallArgs<'_, 'a>) -> Evaluated<'a> {
    let list = call.list(0)?;
    let separator = if call.args.len() > 1 { Some(call.text(1)?) } else { None };
    let between = separator.as_ref().map_or(0, |separator| char_count(separator));
    let (mut text, mut characters) = (String::new(), 0_u64);
    for (index, item) in list.iter().enumerate() {
        // Empty texts add nothing to the length, which the cost counts.
        call.work.take(1)?;
        let part = match item? {
            Value::String(part) => part,
            // The type guard of cel-go looks at the first element only.
            _ if index == 0 => return Err(call.no_such_overload()),
            other => return Err(EvalError::new(library::join_error(&call.display(&other)?))),
        };
        if let (1.., Some(separator)) = (index, &separator) {
            text.push_str(separator);
            characters += between;
        }
        text.push_str(&part);
        characters += char_count(&part);
        // The cost is charged after the call, a fifth of the characters: a text for which the cost
        // does not last is not made any longer. By characters, as bytes would refuse texts that are
        // paid.
        if characters / 5 > call.remaining.saturating_add(1) {
            return Err(EvalError::CostLimitExceeded);
        }
    }
    Ok(Value::text(text))
}

/// `indexOf` and `lastIndexOf` of a text, in code points.
pub(super) fn index_of<'a>(call: &mut CallArgs<'_, 'a>, from_end: bool) -> Evaluated<'a> {
    let (text, part) = (call.text(0)?, call.text(1)?);
    let start = if call.args.len() > 2 { Some(call.int(2)?) } else { None };
    let index = match (from_end, start) {
        (false, None) => Ok(library::index_of(&text, &part)),
        (false, Some(start)) => library::index_of_from(&text, &part, start),
        (true, None) => Ok(library::last_index_of(&text, &part)),
        (true, Some(start)) => library::last_index_of_from(&text, &part, start),
    };
    index.map(Value::Int).map_err(EvalError::new)
}
