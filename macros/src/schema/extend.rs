//! Keywords of `extend(…)` beside the type on which they are written.

// DESIGN.md, 181: `extend` adds to a type and never replaces what follows from it

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprArray, ExprLit, Lit, LitStr, Token, Type};

use super::bounds::{is_of_numbers, other_literal};
use super::check::fits;
use super::class::{TypeClass, class, element, integers, is_option};
use super::key::{KeyMeaning, SchemaKey};
use super::model::{Data, SchemaField, SchemaModel};
use super::serde::OfType;
use crate::errors::Errors;
use crate::keys::unknown;

/// Types of JSON Schema.
const TYPES: &[&str] = &["string", "integer", "number", "boolean", "array", "object"];

/// Keywords that the derive writes itself for values of these classes.
const OWN: [(&str, &[TypeClass], &str); 3] = [
    ("properties", &[TypeClass::Map], "the type of the values"),
    ("required", &[TypeClass::Map], "the type of the values"),
    ("uniqueItems", &[TypeClass::List], "the list, whose kind is `set` or `list(map, keys(…))`"),
];

/// Keywords of elements that stand without a type.
const WITHOUT_TYPE: &[&str] =
    &["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "$ref"];

/// Checks `extend(…)` on a type.
pub(super) fn of_type(model: &SchemaModel, errors: &mut Errors) {
    let OfType { from, transparent, .. } = &model.serde;
    if !matches!(model.data, Data::Named(_)) || from.is_some() || *transparent {
        return;
    }
    for (name, value) in extensions(&model.remarks.attrs.keys) {
        match name.value().as_str() {
            "type" => type_fits(value, &["object"], "a struct", errors),
            word @ ("properties" | "required" | "additionalProperties") => {
                errors.at(name.span(), follows(word, "the fields of the struct"));
            }
            _ => {}
        }
    }
}

/// Checks `extend(…)` on a field.
pub(super) fn of_field(field: &SchemaField, errors: &mut Errors) {
    if field.is_replaced() {
        return;
    }
    let of_field = class(&field.ty);
    for key in &field.remarks.attrs.keys {
        let KeyMeaning::Extend(name, value) = &key.kind else { continue };
        let word = name.value();
        let at = SchemaKey { span: name.span(), kind: KeyMeaning::Optional };
        let own = OWN.iter().find(|(own, classes, _)| *own == word && classes.contains(&of_field));
        match (word.as_str(), own) {
            (_, Some((_, _, source))) => errors.at(name.span(), follows(&word, source)),
            // Takes away the type's own keywords.
            _ if value.to_string() == "null" => {}
            ("items", _) if of_field == TypeClass::List => elements_fit(field, name, value, errors),
            ("additionalProperties", _) if of_field == TypeClass::Map => {
                elements_fit(field, name, value, errors);
            }
            ("type", _) => type_fits(value, types(of_field), of_field.name(), errors),
            ("enum", _) => each_fits(&field.ty, value, errors),
            ("const", _) => value_fits(&field.ty, value, errors),
            ("nullable", _) if !is_option(&field.ty) && of_field != TypeClass::Unknown => {
                let message = format!(
                    "serde refuses null for this field, which is {}: make it an `Option`",
                    of_field.name()
                );
                errors.at(name.span(), message);
            }
            _ => match other_literal(value).filter(|_| is_of_numbers(&word)) {
                Some(message) => errors.add(syn::Error::new_spanned(value, message)),
                None => fits(&word, value, of_field, &at, errors),
            },
        }
    }
}

fn extensions(keys: &[SchemaKey]) -> impl Iterator<Item = (&LitStr, &TokenStream)> {
    keys.iter().filter_map(|key| match &key.kind {
        KeyMeaning::Extend(name, value) => Some((name, value)),
        _ => None,
    })
}

/// The text against a keyword that the derive writes.
fn follows(keyword: &str, source: &str) -> String {
    format!(
        "`{keyword}` follows from {source}, and would be replaced: leave it out, or give the field another schema \
             by `with = Type` or `schema_with = function`"
    )
}

/// Checks the schema of elements, which takes the place of the schema of their type: both must give
/// the same type.
fn elements_fit(field: &SchemaField, name: &LitStr, value: &TokenStream, errors: &mut Errors) {
    let keywords = keywords(value);
    let find = |wanted: &str| keywords.iter().find(|(keyword, _)| keyword == wanted);
    if let Some((_, ty)) = find("type") {
        let of_element = element(&field.ty).map_or(TypeClass::Unknown, class);
        type_fits(ty, types(of_element), of_element.name(), errors);
    } else if !keywords.iter().any(|(word, _)| WITHOUT_TYPE.contains(&word.as_str())) {
        let message = format!(
            "`{}` takes the place of the schema that the elements' type has, so it needs their `\"type\"`",
            name.value()
        );
        errors.at(name.span(), message);
    }
}

/// Returns the keywords of an object literal and their values' first tokens.
fn keywords(object: &TokenStream) -> Vec<(String, TokenStream)> {
    let Some(TokenTree::Group(group)) = object.clone().into_iter().next() else {
        return Vec::new();
    };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let entry = |three: &[TokenTree]| match three {
        [TokenTree::Literal(keyword), TokenTree::Punct(colon), value] if colon.as_char() == ':' => {
            let keyword = syn::parse2::<LitStr>(keyword.to_token_stream()).ok()?;
            Some((keyword.value(), value.to_token_stream()))
        }
        _ => None,
    };
    tokens.windows(3).filter_map(entry).collect()
}

/// The types of JSON that values of a class have; empty for any.
fn types(class: TypeClass) -> &'static [&'static str] {
    match class {
        TypeClass::Text => &["string"],
        TypeClass::Integer => &["integer"],
        // Fewer values than serde reads.
        TypeClass::Number => &["number", "integer"],
        TypeClass::Bool => &["boolean"],
        TypeClass::List => &["array"],
        TypeClass::Map => &["object"],
        TypeClass::Unknown => &[],
    }
}

/// Checks the value of `type`, if it is a literal.
fn type_fits(value: &TokenStream, fitting: &[&str], what: &str, errors: &mut Errors) {
    let Ok(name) = syn::parse2::<LitStr>(value.clone()) else { return };
    let word = name.value();
    if !TYPES.contains(&word.as_str()) {
        errors.at(name.span(), unknown("type", &word, TYPES));
    } else if !fitting.is_empty() && !fitting.contains(&word.as_str()) {
        let message = format!(
            "the API server would want a value of type {word}, and serde reads {what}: the type follows from the field, \
             or from `with = Type`"
        );
        errors.at(name.span(), message);
    }
}

/// Checks the literals of a list of values.
fn each_fits(ty: &Type, values: &TokenStream, errors: &mut Errors) {
    let Ok(values) = syn::parse2::<ExprArray>(values.clone()) else { return };
    let elements: &Punctuated<Expr, Token![,]> = &values.elems;
    for value in elements {
        value_fits(ty, &value.to_token_stream(), errors);
    }
}

/// Checks a literal that stands for a value of the field.
fn value_fits(ty: &Type, value: &TokenStream, errors: &mut Errors) {
    let Ok(Expr::Lit(ExprLit { lit, .. })) = syn::parse2::<Expr>(value.clone()) else { return };
    let class = class(ty);
    let is_of_type = match (&lit, class) {
        (_, TypeClass::Unknown)
        | (Lit::Str(_), TypeClass::Text)
        | (Lit::Int(_) | Lit::Float(_), TypeClass::Number)
        | (Lit::Bool(_), TypeClass::Bool) => true,
        (Lit::Int(digits), TypeClass::Integer) => {
            let value = digits.base10_parse::<i128>();
            integers(ty).is_none_or(|(_, least, most)| {
                value.is_ok_and(|value| (least..=most).contains(&value))
            })
        }
        _ => false,
    };
    if !is_of_type {
        let message = format!(
            "`{}` is not a value of this field, which is {}",
            lit.to_token_stream(),
            class.name()
        );
        errors.at(lit.span(), message);
    }
}
