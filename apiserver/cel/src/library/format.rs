//! `text.format(list)` of cel-go's strings library, version 2, in the locale `en_US`.

use std::borrow::Cow;

use super::duration::Duration;
use super::number::{self, format_double};
use super::text::go_quote;
use super::timestamp::Timestamp;

mod clauses;

/// A value to be formatted; the caller adapts values to this form.
#[derive(Debug, Clone)]
pub enum Argument<'a> {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A double.
    Double(f64),
    /// A string.
    String(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A type, by name.
    Type(Cow<'a, str>),
    /// A duration.
    Duration(Duration),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A list.
    List(Vec<Argument<'a>>),
    /// A map or object, with its entries in any order.
    Map(Vec<(Argument<'a>, Argument<'a>)>),
    /// A value of another type, which cannot be formatted: the name of the type.
    Other(Cow<'a, str>),
}

impl Argument<'_> {
    /// The name of the type in messages.
    fn type_name(&self) -> &str {
        match self {
            Argument::Null => "null_type",
            Argument::Bool(_) => "bool",
            Argument::Int(_) => "int",
            Argument::Uint(_) => "uint",
            Argument::Double(_) => "double",
            Argument::String(_) => "string",
            Argument::Bytes(_) => "bytes",
            Argument::Type(_) => "type",
            Argument::Duration(_) => "google.protobuf.Duration",
            Argument::Timestamp(_) => "google.protobuf.Timestamp",
            Argument::List(_) => "list",
            Argument::Map(_) => "map",
            Argument::Other(name) => name,
        }
    }
}

/// Largest depth of lists and maps in an argument; values of JSON and of expressions are not as
/// deep.
const MAX_DEPTH: usize = 256;

/// The text with its clauses (`%s %d %f %e %b %x %X %o`, `%.3f`) replaced by arguments. `argument`
/// returns the argument at an index, or `None` if the list is shorter; the function is called once
/// for each clause.
///
/// # Errors
///
/// cel-go's messages, such as `index 1 out of range`.
pub fn format<'a>(
    template: &str,
    mut argument: impl FnMut(usize) -> Option<Argument<'a>>,
) -> Result<String, String> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    let mut index = 0;
    while let Some((text, clause)) = rest.split_once('%') {
        out.push_str(text);
        if let Some(after) = clause.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let value = argument(index).ok_or_else(|| format!("index {index} out of range"))?;
        if clause.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let (verb, after) = clauses::FormatClause::parse(clause)
            .map_err(|cause| format!("could not parse formatting clause: {cause}"))?;
        let text =
            verb.apply(&value).map_err(|cause| format!("error during formatting: {cause}"))?;
        out.push_str(&text);
        rest = after;
        index += 1;
    }
    out.push_str(rest);
    Ok(out)
}

/// The text of `%s`.
fn string(value: &Argument<'_>, depth: usize) -> Result<String, String> {
    Ok(match value {
        Argument::Null => "null".to_owned(),
        Argument::Bool(value) => value.to_string(),
        Argument::Int(value) => value.to_string(),
        Argument::Uint(value) => value.to_string(),
        Argument::Double(value) => format_double(*value),
        Argument::String(value) | Argument::Type(value) => value.to_string(),
        Argument::Bytes(value) => bytes(value)?.to_owned(),
        Argument::Duration(value) => value.to_cel_string(),
        Argument::Timestamp(value) => value.to_rfc3339(),
        Argument::List(elements) => list(elements, depth)?,
        Argument::Map(entries) => map(entries, depth)?,
        Argument::Other(name) => {
            return Err(format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps, was given {name}"
            ));
        }
    })
}

/// Bytes as a text.
fn bytes(value: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(value).map_err(|_| {
        "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string".to_owned()
    })
}

/// The text of an element of a list or a map: a literal of CEL.
fn literal(value: &Argument<'_>, depth: usize) -> Result<String, String> {
    Ok(match value {
        Argument::String(value) => go_quote(value),
        Argument::Bytes(value) => format!("b{}", go_quote(bytes(value)?)),
        Argument::Double(value) => match number::special_text(*value) {
            Some(special) => format!("\"{special}\""),
            None => format!("{value:.6}"),
        },
        Argument::Duration(value) => format!("duration(\"{}\")", value.to_cel_string()),
        Argument::Timestamp(value) => format!("timestamp(\"{}\")", value.to_rfc3339()),
        Argument::Other(name) => return Err(format!("no formatting function for {name}")),
        other => string(other, depth)?,
    })
}

fn descend(depth: usize) -> Result<usize, String> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(format!("values nest more than {MAX_DEPTH} deep"))
    }
}

fn list(elements: &[Argument<'_>], depth: usize) -> Result<String, String> {
    let depth = descend(depth)?;
    let texts: Result<Vec<String>, String> =
        elements.iter().map(|element| literal(element, depth)).collect();
    Ok(format!("[{}]", texts?.join(", ")))
}

/// Entries are sorted by the text of the key, so that `10` is before `9`.
fn map(entries: &[(Argument<'_>, Argument<'_>)], depth: usize) -> Result<String, String> {
    let depth = descend(depth)?;
    let mut texts = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = match key {
            Argument::String(_) | Argument::Bool(_) | Argument::Int(_) | Argument::Uint(_) => {
                literal(key, depth)?
            }
            _ => {
                return Err(format!(
                    "no formatting function for map key of type {}",
                    key.type_name()
                ));
            }
        };
        texts.push((key, literal(value, depth)?));
    }
    texts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let texts: Vec<String> =
        texts.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", texts.join(", ")))
}

#[cfg(test)]
mod tests;
