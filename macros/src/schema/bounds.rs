//! Bounds of numbers and sizes, and examples, as far as they are literals.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit, Type};

use super::class::{TypeClass, class, element, integers};
use super::key::KeyMeaning;
use super::model::SchemaField;
use crate::errors::Errors;

/// Checks that literal bounds are values of their type and leave a value between them, for the
/// field and for its items.
pub(super) fn bounds(field: &SchemaField, errors: &mut Errors) {
    type Value<'a> = fn(&'a KeyMeaning, &str) -> Option<&'a TokenStream>;
    let of_field: Value<'_> = |kind, wanted| match kind {
        KeyMeaning::Keyword(name, value) if *name == wanted => Some(value),
        _ => None,
    };
    let of_items: Value<'_> = |kind, wanted| match kind {
        KeyMeaning::Item(name, value) if *name == wanted => Some(value),
        _ => None,
    };
    let keys = &field.remarks.attrs.keys;
    let ty = (!field.is_replaced()).then_some(&field.ty);
    for (of, ty) in [(of_field, ty), (of_items, element(&field.ty))] {
        let class = ty.map_or(TypeClass::Unknown, class);
        let find =
            |wanted: &str| keys.iter().find_map(|key| Bound::new(key.span, of(&key.kind, wanted)?));
        let values = NUMBERS.iter().flat_map(|name| {
            keys.iter().filter_map(move |key| of(&key.kind, name)).map(move |value| (*name, value))
        });
        let counted = keys
            .iter()
            .filter_map(|key| SIZES.iter().flatten().find_map(|name| of(&key.kind, name)));
        for value in counted {
            if let Some(message) = other_literal(value) {
                errors.add(syn::Error::new_spanned(value, message));
            }
        }
        let is_good = are_values(values, ty, errors);
        if is_good {
            numbers(class, &find, errors);
        }
        for [least, most] in SIZES {
            sizes(find(least), find(most), errors);
        }
        if let Some(unit) = find("multipleOf")
            && is_good
            && unit.value <= 0.0
        {
            errors.at(unit.place, "multiples are those of a number above 0");
        }
    }
}

/// Keywords whose values are compared with numbers.
const NUMBERS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Keywords that count.
const SIZES: [[&str; 2]; 3] =
    [["minLength", "maxLength"], ["minItems", "maxItems"], ["minProperties", "maxProperties"]];

/// Whether the value of a keyword is a number.
pub(super) fn is_of_numbers(keyword: &str) -> bool {
    NUMBERS.contains(&keyword) || SIZES.iter().flatten().any(|name| *name == keyword)
}

/// Returns the text against a literal that is no number.
pub(super) fn other_literal(value: &TokenStream) -> Option<String> {
    let Ok(Expr::Lit(ExprLit { lit, .. })) = syn::parse2::<Expr>(value.clone()) else {
        return None;
    };
    let is_number = matches!(lit, Lit::Int(_) | Lit::Float(_));
    (!is_number).then(|| {
        format!("`{}` is not a number: write one, without quotation marks", lit.to_token_stream())
    })
}

/// Checks that literals are values of their type; whether all are.
fn are_values<'a>(
    values: impl Iterator<Item = (&'static str, &'a TokenStream)>,
    ty: Option<&Type>,
    errors: &mut Errors,
) -> bool {
    let mut is_good = true;
    for (keyword, value) in values {
        if let Some(message) = value_fault(keyword, value, ty) {
            errors.add(syn::Error::new_spanned(value, message));
            is_good = false;
        }
    }
    is_good
}

/// Returns the text against the value of a keyword; `None` for a keyword that is a value of the
/// type, or that only the compiler knows.
fn value_fault(keyword: &str, value: &TokenStream, ty: Option<&Type>) -> Option<String> {
    let expr: Expr = syn::parse2(value.clone()).ok()?;
    if let Some(message) = other_literal(value) {
        return Some(message);
    }
    if let Some(name) = no_number(&expr) {
        return Some(format!(
            "JSON has no `{name}`, so no value is compared with it: write a number"
        ));
    }
    let (name, least, most) = integers(ty?)?;
    let literal = number(&expr)?;
    let text = value.to_string().replace("- ", "-");
    if keyword == "multipleOf" {
        return (literal.fract() != 0.0).then(|| {
            format!("a value of `{name}` is a whole number, and `{text}` is not: multiples are those of a whole number")
        });
    }
    if literal.fract() != 0.0 {
        return Some(format!(
            "a value of `{name}` is a whole number, and `{text}` is not: beside such a bound an API server refuses each \
             value"
        ));
    }
    // Whole numbers are compared exactly: not each `u64` is an `f64`.
    let literal = whole(&expr).unwrap_or(literal as i128);
    let bound = match keyword {
        "exclusiveMinimum" => literal.saturating_add(1),
        "exclusiveMaximum" => literal.saturating_sub(1),
        _ => literal,
    };
    if bound < least || bound > most {
        return Some(format!(
            "`{name}` has the values {least} to {most}, so this bound has no effect or leaves none: write one of them, \
             or give the field a wider type"
        ));
    }
    (literal.unsigned_abs() > MOST_BOUND).then(|| {
        format!(
            "API servers read bounds as floating numbers: this one becomes a number beyond the integers of 64 bits, and \
             each value is refused then; write at most {MOST_BOUND}, or leave the bound out"
        )
    })
}

/// Largest bound of an integer: the floating number below 2^63.
const MOST_BOUND: u128 = 9_223_372_036_854_774_784;

/// The path of a float that is no number, as written.
fn no_number(value: &Expr) -> Option<String> {
    let path = match value {
        Expr::Path(path) => &path.path,
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            return no_number(&unary.expr);
        }
        _ => return None,
    };
    let last = path.segments.last()?;
    let ty = path.segments.iter().rev().nth(1)?;
    let is_named = ["NAN", "INFINITY", "NEG_INFINITY"].iter().any(|name| last.ident == name);
    (is_named && (ty.ident == "f64" || ty.ident == "f32"))
        .then(|| path.to_token_stream().to_string().replace(' ', ""))
}

/// A literal bound.
#[derive(Clone, Debug)]
struct Bound {
    place: Span,
    value: f64,
    /// The literal as written.
    text: String,
}

impl Bound {
    /// Reads a literal; other expressions are constants that only the compiler knows.
    fn new(place: Span, literal: &TokenStream) -> Option<Self> {
        let text = literal.to_string().replace("- ", "-");
        Some(Self { place, value: number(literal)?, text })
    }
}

/// Checks the bounds of numbers.
fn numbers(class: TypeClass, find: &dyn Fn(&str) -> Option<Bound>, errors: &mut Errors) {
    let (least, above) = (find("minimum"), find("exclusiveMinimum"));
    let (most, below) = (find("maximum"), find("exclusiveMaximum"));
    let is_whole = class == TypeClass::Integer;
    for (low, excludes_low) in [(&least, false), (&above, true)] {
        for (high, excludes_high) in [(&most, false), (&below, true)] {
            let (Some(low), Some(high)) = (low, high) else { continue };
            let excludes_one = excludes_low || excludes_high;
            let mut is_empty = low.value > high.value || excludes_one && low.value >= high.value;
            if is_whole {
                let first = if excludes_low { low.value.floor() + 1.0 } else { low.value.ceil() };
                let last = if excludes_high { high.value.ceil() - 1.0 } else { high.value.floor() };
                is_empty |= first > last;
            }
            if is_empty {
                let number = if is_whole { "whole number" } else { "value" };
                let message = format!("no {number} lies between {} and {}", low.text, high.text);
                errors.at(high.place, message);
                return;
            }
        }
    }
}

/// Checks the bounds of a size.
fn sizes(least: Option<Bound>, most: Option<Bound>, errors: &mut Errors) {
    for size in [&least, &most].into_iter().flatten() {
        if size.value < 0.0 {
            errors.at(size.place, "a size is not negative");
        } else if size.value.fract() != 0.0 {
            errors.at(
                size.place,
                format_args!("a size is a whole number, and this is {}", size.text),
            );
        }
    }
    if let (Some(least), Some(most)) = (least, most)
        && least.value > most.value
    {
        let message = format!("no size lies between {} and {}", least.text, most.text);
        errors.at(most.place, message);
    }
}

/// Checks that the examples of a field are of its type.
pub(super) fn examples(field: &SchemaField, errors: &mut Errors) {
    if field.is_replaced() {
        return;
    }
    for key in &field.remarks.attrs.keys {
        if let KeyMeaning::Example(value) = &key.kind {
            example(value, &field.ty, errors);
        }
    }
}

/// Checks a literal, or the literals in a list.
fn example(value: &Expr, ty: &Type, errors: &mut Errors) {
    let class = class(ty);
    if let (Expr::Array(list), TypeClass::List) = (value, class) {
        let item = element(ty);
        list.elems
            .iter()
            .for_each(|value| item.into_iter().for_each(|ty| example(value, ty, errors)));
        return;
    }
    let Some((found, fitting)) = class_of(value) else { return };
    let text = value.to_token_stream().to_string().replace("- ", "-");
    if class != TypeClass::Unknown && !fitting.contains(&class) {
        let advice = match class {
            TypeClass::List => format!(": write `[{text}]`"),
            TypeClass::Text => String::from(": write a text in quotation marks"),
            _ => String::new(),
        };
        let message = format!("the example is {found}, and this field is {}{advice}", class.name());
        errors.add(syn::Error::new_spanned(value, message));
    } else if let (Some((name, least, most)), Some(number)) = (integers(ty), whole(value))
        && !(least..=most).contains(&number)
    {
        let message =
            format!("`{name}` has the values {least} to {most}: the example is none of them");
        errors.add(syn::Error::new_spanned(value, message));
    }
}

/// Returns the name of a literal's class, and the classes of fields that it is a value of.
fn class_of(value: &Expr) -> Option<(&'static str, &'static [TypeClass])> {
    Some(match value {
        Expr::Array(_) => ("a list", &[TypeClass::List]),
        Expr::Lit(literal) => match literal.lit {
            Lit::Str(_) | Lit::Char(_) => ("a text", &[TypeClass::Text]),
            Lit::Bool(_) => ("a bool", &[TypeClass::Bool]),
            Lit::Int(_) => ("a number", &[TypeClass::Integer, TypeClass::Number]),
            Lit::Float(_) => ("a fraction", &[TypeClass::Number]),
            _ => return None,
        },
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => class_of(&unary.expr)?,
        _ => return None,
    })
}

/// The value of a literal without a fraction.
fn whole(value: &Expr) -> Option<i128> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => digits.base10_parse().ok(),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            whole(&unary.expr).map(|value| -value)
        }
        _ => None,
    }
}

/// The value of a literal.
pub(super) fn number(tokens: &impl ToTokens) -> Option<f64> {
    match syn::parse2::<Expr>(tokens.to_token_stream()).ok()? {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => digits.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(digits), .. }) => digits.base10_parse().ok(),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            number(&unary.expr).map(|value| -value)
        }
        _ => None,
    }
}
