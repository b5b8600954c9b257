//! Mistakes that several parts of a literal show together: fields and keys that are set twice.

use proc_macro2::{Ident, Span};

use super::expand::{is_flat, is_map};
use super::syntax::{
    ListItem, LiteralValue, ObjectBody, ObjectEntry, ObjectField, ObjectFieldName, ObjectLiteral,
};
use crate::errors::Errors;

/// Reports keys, and fields, that are set twice: the first value would be lost.
pub(super) fn check(literal: &ObjectLiteral, errors: &mut Errors) {
    entries(&literal.object.entries, is_map(&literal.object.entries), errors);
}

/// A name that was seen.
struct WrittenName<'a> {
    text: String,
    /// The field in Rust; texts have none.
    ident: Option<&'a Ident>,
}

/// Checks an object inside of another.
fn object(object: &ObjectBody, errors: &mut Errors) {
    let is_map = is_map(&object.entries);
    entries(&object.entries, is_map, errors);
    // Words may be keys, each of which has the name of a field in the generated code.
    if !is_map && is_flat(&object.entries) {
        let mut seen = Vec::new();
        spellings(&object.entries, &mut seen, false, errors);
    }
}

/// Checks fields that are set one after the other, and the values.
fn entries(entries: &[ObjectEntry], is_map: bool, errors: &mut Errors) {
    let mut seen: Vec<WrittenName<'_>> = Vec::new();
    for entry in entries {
        match entry {
            ObjectEntry::Field(field) => {
                if let Some((name, span)) = name(field) {
                    if let Some(first) = seen.iter().find(|first| is_same(first, &name, is_map)) {
                        errors.at(span, set_above(&first.text, &name.text));
                    }
                    seen.push(name);
                }
                value(&field.value, errors);
            }
            ObjectEntry::If(branch) => {
                branch.bodies().into_iter().for_each(|body| self::entries(body, is_map, errors));
            }
            ObjectEntry::For(each) => self::entries(&each.body, is_map, errors),
        }
    }
}

/// The name of a field, and its place; `None` for an expression.
fn name(field: &ObjectField) -> Option<(WrittenName<'_>, Span)> {
    match &field.name {
        ObjectFieldName::Word { text, ident } => {
            Some((WrittenName { text: text.clone(), ident: Some(ident) }, ident.span()))
        }
        ObjectFieldName::Text(text) => {
            Some((WrittenName { text: text.value(), ident: None }, text.span()))
        }
        ObjectFieldName::Expr(_) => None,
    }
}

/// Whether two names are one field, or one key of a map.
fn is_same(one: &WrittenName<'_>, other: &WrittenName<'_>, is_map: bool) -> bool {
    one.text == other.text || !is_map && one.ident.is_some() && one.ident == other.ident
}

fn set_above(first: &str, second: &str) -> String {
    if first == second {
        return format!("`{second}` is set above");
    }
    format!(
        "`{second}` and `{first}`, which is set above, are one field in Rust: leave one of them out, or write keys of a \
         map as texts, `\"{second}\"`"
    )
}

/// Reports words of other branches that differ from a word only in the spelling.
///
/// `is_inside` says that the entries stand in a branch.
fn spellings<'a>(
    entries: &'a [ObjectEntry],
    seen: &mut Vec<(&'a str, &'a Ident, bool)>,
    is_inside: bool,
    errors: &mut Errors,
) {
    for entry in entries {
        match entry {
            ObjectEntry::Field(ObjectField {
                name: ObjectFieldName::Word { text, ident }, ..
            }) => {
                let first = seen.iter().find(|(_, known, _)| *known == ident);
                // Two of one pair of braces were reported.
                if let Some((first, _, was_inside)) = first.filter(|(first, ..)| first != text)
                    && (is_inside || *was_inside)
                {
                    errors.at(ident.span(), set_above(first, text));
                }
                seen.push((text, ident, is_inside));
            }
            ObjectEntry::If(branch) => {
                for body in branch.bodies() {
                    spellings(body, seen, true, errors);
                }
            }
            ObjectEntry::Field(_) | ObjectEntry::For(_) => {}
        }
    }
}

/// Checks the objects in a value.
fn value(value: &LiteralValue, errors: &mut Errors) {
    match value {
        LiteralValue::Object(_, inner) => object(inner, errors),
        LiteralValue::List(_, list) => items(list, errors),
        _ => {}
    }
}

fn items(items: &[ListItem], errors: &mut Errors) {
    for item in items {
        match item {
            ListItem::Value(inner) => value(inner, errors),
            ListItem::Spread(_) => {}
            ListItem::If(branch) => {
                branch.bodies().into_iter().for_each(|body| self::items(body, errors));
            }
            ListItem::For(each) => self::items(&each.body, errors),
        }
    }
}
