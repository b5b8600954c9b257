//! Bounds of numbers and sizes, as far as they are literals.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Expr, ExprLit, Lit};

use super::class::{Class, class, element};
use super::key::Kind;
use super::model::Field;
use crate::errors::Errors;

/// Checks that literal bounds leave a value between them, of the field and of its items.
pub(super) fn bounds(field: &Field, errors: &mut Errors) {
    type Value<'a> = fn(&'a Kind, &str) -> Option<&'a TokenStream>;
    let of_field: Value<'_> = |kind, wanted| match kind {
        Kind::Keyword(name, value) if *name == wanted => Some(value),
        _ => None,
    };
    let of_items: Value<'_> = |kind, wanted| match kind {
        Kind::Item(name, value) if *name == wanted => Some(value),
        _ => None,
    };
    let keys = &field.remarks.attrs.keys;
    let item = element(&field.ty).map_or(Class::Unknown, class);
    for (of, class) in [(of_field, class(&field.ty)), (of_items, item)] {
        let find =
            |wanted: &str| keys.iter().find_map(|key| Bound::new(key.span, of(&key.kind, wanted)?));
        numbers(class, &find, errors);
        for (least, most) in [
            ("minLength", "maxLength"),
            ("minItems", "maxItems"),
            ("minProperties", "maxProperties"),
        ] {
            sizes(find(least), find(most), errors);
        }
        if let Some(unit) = find("multipleOf")
            && unit.value <= 0.0
        {
            errors.at(unit.place, "multiples are those of a number above 0");
        }
    }
}

/// A literal bound.
#[derive(Clone, Debug)]
struct Bound {
    place: Span,
    value: f64,
    /// The literal as it is written.
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
fn numbers(class: Class, find: &dyn Fn(&str) -> Option<Bound>, errors: &mut Errors) {
    let (least, above) = (find("minimum"), find("exclusiveMinimum"));
    let (most, below) = (find("maximum"), find("exclusiveMaximum"));
    let is_whole = class == Class::Integer;
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

/// The value of a literal.
fn number(tokens: &impl ToTokens) -> Option<f64> {
    match syn::parse2::<Expr>(tokens.to_token_stream()).ok()? {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => digits.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(digits), .. }) => digits.base10_parse().ok(),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            number(&unary.expr).map(|value| -value)
        }
        _ => None,
    }
}
