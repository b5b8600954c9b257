//! Rules that span several keys.

mod names;

use proc_macro2::TokenStream;
use quote::ToTokens;
use windlass_cel::syntax::identifiers::escape;

use super::bounds::{bounds, examples};
use super::class::{TypeClass, class, element, is_named, is_option, peeled};
use super::extend;
use super::key::{FieldCount, KeyMeaning, RulePath, SchemaKey};
use super::model::{Data, SchemaField, SchemaModel, Variant};
use super::rules::{RuleSubject, no_field};
use crate::errors::Errors;

/// Checks a type.
pub(super) fn check(model: &SchemaModel, errors: &mut Errors) {
    of_type(model, errors);
    extend::of_type(model, errors);
    names::check(model, errors);
    if let Data::Enum(variants) = &model.data {
        variants.iter().for_each(|variant| by_a_function(variant, errors));
    }
    for field in model.all_fields() {
        of_field(field, errors);
        let is_named = matches!(field.member, syn::Member::Named(_)) && !model.serde.transparent;
        if !is_named {
            without_name(field, errors);
        }
    }
    if let Some(from) = &model.serde.from
        && model.converted_field().is_none()
    {
        for key in model.all_fields().filter_map(|field| field.remarks.attrs.keys.first()) {
            let message = format!(
                "serde reads the type as `{}`, so a key of its fields has no effect: write a `rule` on the type",
                plain(from)
            );
            errors.at(key.span, message);
        }
    }
}

/// Checks that the form of a content is said, if a function writes or reads the content.
fn by_a_function(variant: &Variant, errors: &mut Errors) {
    let with =
        variant.remarks.attrs.keys.iter().find(|key| matches!(key.kind, KeyMeaning::With(_)));
    if let (None, Some(key)) = (&variant.serde.by, with) {
        let message = "`with` on a variant is for a content that serde writes or reads by a function \
                       (`#[serde(with = \"…\")]`): leave it out, or write it on the field";
        errors.at(key.span, message);
        return;
    }
    let Some(by) = variant.serde.by.as_ref().filter(|_| !variant.serde.skipped) else { return };
    if variant.replaced().is_none()
        && !variant.data.only_field().is_some_and(SchemaField::is_replaced)
    {
        let message = format!(
            "serde writes or reads this variant by `{}`, whose form in JSON the derive cannot see: say on the variant \
             which type it looks like, `#[schema(with = String)]`",
            by.value
        );
        errors.at(by.span, message);
    } else if variant.data.only_field().is_none() {
        let mut keys = variant.data.fields().iter().flat_map(|field| &field.remarks.attrs.keys);
        if let Some(key) = keys.next() {
            let message = "a function writes or reads the whole variant, so a key of its fields has no effect: leave it out";
            errors.at(key.span, message);
        }
    }
}

/// A type as written, without the spaces of tokens.
fn plain(ty: &syn::Type) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}

/// Checks the keys of the type itself.
fn of_type(model: &SchemaModel, errors: &mut Errors) {
    let subject = RuleSubject::of_struct(model.named());
    for key in &model.remarks.attrs.keys {
        match &key.kind {
            KeyMeaning::Rule(rule) => subject.check(rule, errors),
            KeyMeaning::OneOf(many, names) => one_of(model, key, *many, names, errors),
            _ => {}
        }
    }
}

/// Checks the fields of a `one_of` group.
fn one_of(
    model: &SchemaModel,
    key: &SchemaKey,
    many: FieldCount,
    names: &[syn::Ident],
    errors: &mut Errors,
) {
    if matches!(model.data, Data::Enum(_)) {
        errors.at(key.span, "an enum is one of its variants already");
        return;
    }
    if names.len() < 2 {
        errors.at(key.span, "name at least two fields: `one_of(a, b)`");
    }
    for (place, name) in names.iter().enumerate() {
        let field = model.named().iter().find(|field| *name == field.rust().as_str());
        if names[..place].contains(name) {
            errors.at(name.span(), format_args!("`{name}` is named twice"));
        }
        match field {
            None => errors.at(name.span(), no_field(&name.to_string(), model.named())),
            Some(field) if field.serde.flatten.is_some() => {
                let message = format!(
                    "`{name}` is flattened and has no name of its own in JSON, so the rule never sees it: write the rule \
                     on its type"
                );
                errors.at(name.span(), message);
            }
            Some(field) if !field.is_read() => {
                let message = format!(
                    "`{name}` is skipped and no part of the schema, so the rule never sees it"
                );
                errors.at(name.span(), message);
            }
            Some(field) if escape(&field.json).is_none() => {
                let message = format!(
                    "the rule would name `{}`, which CEL cannot spell: rename the field in JSON, to ASCII letters and digits",
                    field.json
                );
                errors.at(name.span(), message);
            }
            Some(field) if is_always_set(field) && model.serde.default.is_none() => {
                let why =
                    if many == FieldCount::AtLeast { ", and the rule never fails" } else { "" };
                let message =
                    format!("`{name}` is always set{why}: make it an `Option` without a default");
                errors.at(name.span(), message);
            }
            Some(_) => {}
        }
    }
}

/// Whether a field of this spelling is in each object.
fn is_always_set(field: &SchemaField) -> bool {
    let is_default = |kind: &KeyMeaning| matches!(kind, KeyMeaning::Optional);
    // The server fills in a default that serde writes.
    let is_filled = field.serde.skip_if.is_none()
        && (field.remarks.has(|kind| matches!(kind, KeyMeaning::Default(_)))
            || (field.serde.default.is_some() && !is_option(&field.ty)));
    if is_filled && class(&field.ty) != TypeClass::Unknown {
        return true;
    }
    !is_option(&field.ty)
        && class(&field.ty) != TypeClass::Unknown
        && field.serde.default.is_none()
        && !field.remarks.has(is_default)
}

/// Checks the keys of a field.
fn of_field(field: &SchemaField, errors: &mut Errors) {
    let keys = &field.remarks.attrs.keys;
    if let (Some(_), Some(key)) = (field.serde.flatten, keys.first()) {
        let message = "a flattened field has no place of its own in JSON: write the keys on the fields of its type";
        errors.at(key.span, message);
        return;
    }
    let idle = keys.iter().find(|key| !field.is_read() && !matches!(key.kind, KeyMeaning::Skip));
    if let Some(key) = idle {
        let message = "the field is skipped, and no part of the schema, so the key has no effect: leave it out";
        errors.at(key.span, message);
        return;
    }
    if let Some(module) = &field.serde.with
        && field.is_described()
        && !field.is_replaced()
    {
        let message = format!(
            "serde reads and writes this field by `{}`, whose form in JSON the derive cannot see: say which type it \
             looks like, `#[schema(with = String)]`",
            module.value
        );
        errors.at(module.span, message);
    }
    let subject = RuleSubject::of_field(field);
    for key in keys {
        match &key.kind {
            KeyMeaning::Rule(rule) => {
                subject.check(rule, errors);
                if let (
                    Some(RulePath::Json(path)),
                    TypeClass::Text | TypeClass::Integer | TypeClass::Number | TypeClass::Bool,
                ) = (&rule.path, class(&field.ty))
                {
                    let message = format!("{} has no fields", class(&field.ty).name());
                    errors.at(path.span(), message);
                }
            }
            KeyMeaning::Keyword(name, _)
                if !field.is_replaced() && is_bound_of_a_quantity(name, &field.ty) =>
            {
                errors.at(key.span, BOUND_OF_A_QUANTITY);
            }
            KeyMeaning::Keyword(name, value) if !field.is_replaced() => {
                fits(name, value, class(&field.ty), key, errors)
            }
            KeyMeaning::Item(name, value) => match element(&field.ty) {
                Some(item) if is_bound_of_a_quantity(name, item) => {
                    errors.at(key.span, BOUND_OF_A_QUANTITY);
                }
                Some(item) if class(&field.ty) == TypeClass::List => {
                    fits(name, value, class(item), key, errors)
                }
                _ if class(&field.ty) == TypeClass::Unknown => {}
                _ => errors.at(key.span, not_for("each", "lists", class(&field.ty))),
            },
            KeyMeaning::ListMap(_)
                if !matches!(class(&field.ty), TypeClass::List | TypeClass::Unknown) =>
            {
                errors.at(key.span, not_for("list", "lists", class(&field.ty)));
            }
            KeyMeaning::Atomic
                if matches!(
                    class(&field.ty),
                    TypeClass::Text | TypeClass::Integer | TypeClass::Number | TypeClass::Bool
                ) =>
            {
                errors.at(key.span, not_for("atomic", "lists, maps and structs", class(&field.ty)));
            }
            _ => {}
        }
    }
    contradictions(field, errors);
    extend::of_field(field, errors);
    bounds(field, errors);
    examples(field, errors);
    conflicts(keys, errors);
}

/// Checks a field without a name in JSON, which cannot be absent.
fn without_name(field: &SchemaField, errors: &mut Errors) {
    for key in &field.remarks.attrs.keys {
        let name = match &key.kind {
            KeyMeaning::Required => "required",
            KeyMeaning::Optional => "optional",
            KeyMeaning::Default(_) => "default",
            _ => continue,
        };
        let message = format!(
            "the value has no name in JSON, so it is neither absent nor filled in: write `{name}` on the fields of this \
             type"
        );
        errors.at(key.span, message);
    }
}

/// Checks keys that no value of the field's type could satisfy, and keys without a place.
fn contradictions(field: &SchemaField, errors: &mut Errors) {
    let of_type = class(&field.ty);
    let is_scalar = matches!(
        of_type,
        TypeClass::Text | TypeClass::Integer | TypeClass::Number | TypeClass::Bool
    );
    for key in &field.remarks.attrs.keys {
        match &key.kind {
            KeyMeaning::Opaque if is_scalar => {
                errors.at(key.span, not_for("opaque", "objects", of_type));
            }
            KeyMeaning::Full if is_scalar => {
                errors.at(key.span, not_for("full", "types of Kubernetes", of_type));
            }
            KeyMeaning::Embedded if is_scalar => {
                errors.at(key.span, not_for("embedded", "whole Kubernetes objects", of_type));
            }
            KeyMeaning::IntOrString if of_type == TypeClass::Bool => {
                errors.at(key.span, not_for("int_or_string", "numbers and texts", of_type));
            }
            KeyMeaning::Keyword("x-kubernetes-preserve-unknown-fields", _) if is_scalar => {
                errors.at(key.span, not_for("preserve", "objects", of_type));
            }
            _ => {}
        }
    }
}

/// The text against a bound of Kubernetes' `Quantity`.
const BOUND_OF_A_QUANTITY: &str = "a quantity is written as a text, which this key does not restrict: write a rule, \
     such as `rule(\"quantity(string(self)).isGreaterThan(quantity('1Gi'))\")`";

/// Whether a keyword bounds numbers, and the type is Kubernetes' `Quantity`: an API server compares
/// numbers only, and serde writes a text.
fn is_bound_of_a_quantity(keyword: &str, ty: &syn::Type) -> bool {
    let is_bound = matches!(
        keyword,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
    );
    is_bound && is_named(peeled(ty), "Quantity")
}

fn not_for(key: &str, subject: &str, class: TypeClass) -> String {
    format!("`{key}` is for {subject}, and this field is {}", class.name())
}

/// Checks that a keyword means something for the type.
pub(super) fn fits(
    keyword: &str,
    value: &TokenStream,
    class: TypeClass,
    key: &SchemaKey,
    errors: &mut Errors,
) {
    let (subject, classes): (&str, &[TypeClass]) = match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            ("bounds and multiples are for numbers", &[TypeClass::Integer, TypeClass::Number])
        }
        "minLength" | "maxLength" => {
            ("a length is for texts and lists", &[TypeClass::Text, TypeClass::List])
        }
        "pattern" => ("a pattern is for texts", &[TypeClass::Text]),
        "format" => of_format(value),
        "minItems" | "maxItems" => ("a number of items is for lists", &[TypeClass::List]),
        "x-kubernetes-list-type" => ("kinds of lists are for lists", &[TypeClass::List]),
        "minProperties" | "maxProperties" => {
            ("a number of properties is for maps", &[TypeClass::Map])
        }
        "x-kubernetes-map-type" => ("kinds of maps are for maps and structs", &[TypeClass::Map]),
        "x-windlass-selectable" => (
            "API servers select by texts, whole numbers and booleans",
            &[TypeClass::Text, TypeClass::Integer, TypeClass::Bool],
        ),
        _ => return,
    };
    if class != TypeClass::Unknown && !classes.contains(&class) {
        errors.at(key.span, format_args!("{subject}, and this field is {}", class.name()));
    }
}

/// The values that a format is for.
fn of_format(format: &TokenStream) -> (&'static str, &'static [TypeClass]) {
    match format.to_string().trim_matches('"') {
        "int32" | "int64" | "float" | "double" => {
            ("this format is for numbers", &[TypeClass::Integer, TypeClass::Number])
        }
        _ => ("this format is for texts", &[TypeClass::Text]),
    }
}

/// Checks keys that contradict each other.
fn conflicts(keys: &[SchemaKey], errors: &mut Errors) {
    let second = |is: fn(&KeyMeaning) -> bool| keys.iter().filter(|key| is(&key.kind)).nth(1);
    if let Some(key) = second(|kind| {
        matches!(
            kind,
            KeyMeaning::ListMap(_)
                | KeyMeaning::Atomic
                | KeyMeaning::Keyword("x-kubernetes-list-type", _)
        )
    }) {
        errors.at(key.span, "a list has one kind: `list(map, keys(…))`, `set` or `atomic`");
    }
    if let Some(key) = second(KeyMeaning::replaces_schema) {
        let message = "a field has one schema: write one of `opaque`, `full`, `embedded`, `int_or_string`, `with` and \
                       `schema_with`";
        errors.at(key.span, message);
    }
    if let Some(key) = second(|kind| {
        matches!(kind, KeyMeaning::Required | KeyMeaning::Optional | KeyMeaning::Default(_))
    }) {
        errors.at(key.span, "a field is required, or optional, or has a default");
    }
}
