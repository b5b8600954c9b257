//! Keys with which a server would keep objects that serde cannot read, and forms that serde cannot
//! write.

// Each rule is about types that the derive knows by their spelling: a type of another name may read
// anything.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, Type};

use super::bounds::number;
use super::class::{TypeClass, class, element, is_option};
use super::key::KeyMeaning;
use super::model::{Data, SchemaField, SchemaModel, Variant};
use super::serde::Default;
use crate::errors::Errors;

/// Checks a type.
pub(super) fn check(model: &SchemaModel, errors: &mut Errors) {
    closed(model, errors);
    tagged_struct(model, errors);
    written_as_another(model, errors);
    model.all_fields().for_each(|field| flattened(field, errors));
    let has_default = model.serde.default.is_some();
    for field in model.all_fields().filter(|field| field.serde.flatten.is_none()) {
        absent(field, has_default, errors);
        other_values(field, errors);
        two_defaults(field, errors);
        default_beside_that_of_type(field, has_default, errors);
    }
    positions(&model.data, has_default, errors);
    if let Data::Enum(variants) = &model.data {
        for variant in variants {
            positions(&variant.data, false, errors);
        }
    }
    if let (Data::Enum(variants), Some(_), None) =
        (&model.data, &model.serde.tag, &model.serde.content)
    {
        for variant in variants {
            tagged(variant, errors);
        }
    }
}

/// Values without names are known by their positions, which reading and writing share.
fn positions(data: &Data, has_default: bool, errors: &mut Errors) {
    let Data::Tuple(fields) = data else { return };
    if fields.len() < 2 {
        return;
    }
    let last = fields.iter().rposition(|field| !field.serde.skipped);
    for (place, field) in fields.iter().enumerate().filter(|(_, field)| !field.serde.skipped) {
        let serde = &field.serde;
        // A list that ends early is read by the default of the last value, or of the type.
        let may_end = Some(place) == last && (has_default || serde.default.is_some());
        let word = match (serde.not_read, serde.not_written) {
            (true, false) => "skip_deserializing",
            (false, true) if !may_end => "skip_serializing",
            (false, false) if serde.skip_if.is_some() && !may_end => "skip_serializing_if",
            _ => continue,
        };
        let message = format!(
            "by `{word}` the positions in the list differ between reading and writing, so serde cannot read what it \
             writes: write `#[serde(skip)]`, or give the fields names"
        );
        errors.at(field.ty.span(), message);
    }
}

/// Serde writes a tag that no field of the struct has, and the server drops the tag.
fn tagged_struct(model: &SchemaModel, errors: &mut Errors) {
    if let (Some(tag), false) = (&model.serde.tag, matches!(model.data, Data::Enum(_))) {
        let message = format!(
            "serde writes `{tag}` into the struct, which no field describes, so the API server drops it: add a field of \
             that name"
        );
        errors.at(model.serde.tag_span.unwrap_or_else(Span::call_site), message);
    }
}

/// Serde refuses the fields that the server would keep.
fn closed(model: &SchemaModel, errors: &mut Errors) {
    if !model.serde.closed || matches!(model.data, Data::Enum(_)) {
        return;
    }
    let is_preserved = |kind: &KeyMeaning| {
        matches!(kind, KeyMeaning::Keyword("x-kubernetes-preserve-unknown-fields", _))
    };
    if let Some(key) = model.remarks.attrs.keys.iter().find(|key| is_preserved(&key.kind)) {
        let message = "`preserve` keeps fields that the type does not list, and `#[serde(deny_unknown_fields)]` refuses \
                       to read them: leave one of them out";
        errors.at(key.span, message);
    }
}

/// A field that is absent from objects, though serde requires the field.
fn absent(field: &SchemaField, has_default: bool, errors: &mut Errors) {
    if !is_demanded(field, has_default) {
        return;
    }
    for key in &field.remarks.attrs.keys {
        let message = match &key.kind {
            KeyMeaning::Skip => {
                "the server drops a skipped field, and serde demands it, so no object could be read: write \
                 `#[serde(skip)]` for a field that is not part of the object, or give it a `#[serde(default)]`"
            }
            KeyMeaning::Optional if field.serde.read_by_function => {
                "the server would keep objects without the field, and serde demands a field that a function reads: give \
                 it a `#[serde(default)]`, which makes it optional without this key"
            }
            // A field without a name is answered by a separate text.
            KeyMeaning::Optional if matches!(field.member, syn::Member::Named(_)) => {
                "the server would keep objects without the field, and serde demands it: make the field an `Option` or \
                 give it a `#[serde(default)]`, both of which make it optional without this key"
            }
            _ => continue,
        };
        errors.at(key.span, message);
    }
}

/// Whether serde refuses an object without the field, as far as the spelling tells.
fn is_demanded(field: &SchemaField, has_default: bool) -> bool {
    let has_default = has_default || field.serde.default.is_some();
    if has_default || field.serde.skipped || field.serde.not_read {
        return false;
    }
    // Serde calls the function for a value only.
    field.serde.read_by_function
        || (!is_option(&field.ty) && class(&field.ty) != TypeClass::Unknown)
}

/// Keys that permit values which serde does not read as the field's type.
fn other_values(field: &SchemaField, errors: &mut Errors) {
    if !field.is_described() || field.serde.not_read {
        return;
    }
    if field.serde.read_by_function || field.serde.serialize_with.is_some() {
        by_a_function(field, errors);
        return;
    }
    let of_field = class(&field.ty);
    let value = match of_field {
        TypeClass::List | TypeClass::Map => element(&field.ty).map_or(TypeClass::Unknown, class),
        one => one,
    };
    for key in &field.remarks.attrs.keys {
        match &key.kind {
            KeyMeaning::IntOrString
                if matches!(value, TypeClass::Text | TypeClass::Integer | TypeClass::Number) =>
            {
                let message = format!(
                    "the server would keep numbers and texts, and serde reads {} only: give the field a type that is \
                     made of both, such as Kubernetes' `IntOrString`, which needs no key",
                    value.name()
                );
                errors.at(key.span, message);
            }
            KeyMeaning::Keyword("nullable", _)
                if of_field != TypeClass::Unknown && !is_option(&field.ty) =>
            {
                let message = format!(
                    "the server would keep a null, and serde reads {} only: make the field an `Option`, which may be \
                     null without this key, or read it by a function, `#[serde(deserialize_with = \"…\")]`",
                    of_field.name()
                );
                errors.at(key.span, message);
            }
            _ => {}
        }
    }
}

/// A type that serde writes as another type and reads by its own fields.
fn written_as_another(model: &SchemaModel, errors: &mut Errors) {
    if let (Some(into), None) = (&model.serde.into, &model.serde.from) {
        let into = (into, plain(into));
        let message = format!(
            "serde writes the type as `{0}` and reads it by its own form, so an API server would refuse what is written: read \
             it as well, by `from = \"{0}\"` or `try_from = \"{0}\"`, also beside a `Deserialize` of your own",
            into.1
        );
        errors.add(syn::Error::new_spanned(into.0, message));
    }
}

/// Only objects can be flattened: serde's writer fails for all other values.
fn flattened(field: &SchemaField, errors: &mut Errors) {
    let Some(span) = field.serde.flatten else { return };
    let of_field = class(&field.ty);
    if !matches!(of_field, TypeClass::Map | TypeClass::Unknown) && field.is_described() {
        let message = format!(
            "serde can flatten structs, enums and maps only, and this field is {}: leave `flatten` out",
            of_field.name()
        );
        errors.at(span, message);
    }
}

/// A function may read anything. Where a module reads and writes, the rule is in `check`.
fn by_a_function(field: &SchemaField, errors: &mut Errors) {
    if field.is_replaced() || field.serde.with.is_some() {
        return;
    }
    let ty = plain(&field.ty);
    let Some(function) = field.serde.reads.as_ref() else {
        if let Some(function) =
            field.serde.serialize_with.as_ref().filter(|_| !field.serde.not_written)
        {
            let message = format!(
                "serde writes this field by `{}`, and the derive cannot see in which form: say which type it looks like, \
                 `#[schema(with = {ty})]` if it writes what the type itself writes",
                plain(function)
            );
            errors.add(syn::Error::new_spanned(function, message));
        }
        return;
    };
    let message = format!(
        "serde reads this field by `{}`, and the derive cannot see which values that takes: say which type it looks \
         like, `#[schema(with = {ty})]` if it reads what the type itself reads",
        function.value
    );
    errors.at(function.span, message);
}

/// A default in the schema beside a default of serde.
fn two_defaults(field: &SchemaField, errors: &mut Errors) {
    let value = field.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
        KeyMeaning::Default(value) => Some((key.span, value)),
        _ => None,
    });
    let (Some((place, value)), Some(default)) = (value, &field.serde.default) else { return };
    let message = match default {
        Default::Function(function) => {
            let function = function.to_token_stream().to_string().replace(' ', "");
            format!(
                "serde fills in the value of `{function}`, which is the default of the schema by itself: a second one \
                 could differ, so leave this key out"
            )
        }
        // For an option, serde fills in the absence, with the attribute or without.
        Default::Trait if is_option(&field.ty) || field.serde.not_read => return,
        Default::Trait if is_default_of_its_type(value, class(&field.ty)) => return,
        Default::Trait => {
            let value = value.to_token_stream();
            format!(
                "the server fills in `{value}`, and serde, by `#[serde(default)]`, the `Default` of `{}`: leave one of \
                 the two out, or write the value as a function, `#[serde(default = \"…\")]`, which is the default of \
                 the schema by itself",
                plain(&field.ty)
            )
        }
    };
    errors.at(place, message);
}

/// `#[serde(default)]` on the type gives each field a default already.
fn default_beside_that_of_type(field: &SchemaField, has_default: bool, errors: &mut Errors) {
    if !has_default || field.serde.default.is_some() || is_option(&field.ty) {
        return;
    }
    let is_default = |kind: &KeyMeaning| matches!(kind, KeyMeaning::Default(_));
    if let Some(key) = field.remarks.attrs.keys.iter().find(|key| is_default(&key.kind)) {
        let message = "serde fills in the field from the `Default` of the type, which is the default of the schema by \
                       itself: a second one could differ, so leave this key out, or `#[serde(default)]` on the type";
        errors.at(key.span, message);
    }
}

/// Whether the expression is visibly the `Default` of a type of that class.
fn is_default_of_its_type(value: &Expr, class: TypeClass) -> bool {
    match (value, class) {
        (Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }), TypeClass::Bool) => !value.value,
        (Expr::Lit(ExprLit { lit: Lit::Str(text), .. }), TypeClass::Text) => {
            text.value().is_empty()
        }
        (value, TypeClass::Integer | TypeClass::Number) if number(value) == Some(0.0) => true,
        (Expr::Macro(call), TypeClass::List) => {
            call.mac.path.is_ident("vec") && call.mac.tokens.is_empty()
        }
        (Expr::Call(call), _) if call.args.is_empty() => match &*call.func {
            Expr::Path(function) => {
                let segments = &function.path.segments;
                let is_new = matches!(class, TypeClass::Text | TypeClass::List | TypeClass::Map);
                segments.len() > 1
                    && segments
                        .last()
                        .is_some_and(|it| it.ident == "default" || it.ident == "new" && is_new)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The tag of an internally tagged enum stands among the fields of the variant's value.
fn tagged(variant: &Variant, errors: &mut Errors) {
    let Data::Tuple(fields) = &variant.data else { return };
    let [field] = fields.as_slice() else { return };
    let by_a_function = field.serde.read_by_function || field.serde.serialize_with.is_some();
    let by_a_function = by_a_function || variant.serde.by.is_some();
    if variant.serde.skipped || variant.serde.untagged || field.serde.skipped || by_a_function {
        return;
    }
    let Some((value, span)) = without_fields(&field.ty) else { return };
    let message = format!(
        "the tag stands among the fields of the variant, and {value} has none, so serde can neither write nor read it: \
         name the field, `{} {{ value: {} }}`, or write the value beside the tag, `#[serde(tag = \"…\", content = \"…\")]`",
        variant.ident,
        plain(&field.ty)
    );
    errors.at(span, message);
}

/// The name of a value that serde does not write as an object, with its position.
fn without_fields(ty: &Type) -> Option<(&'static str, Span)> {
    let name = match ty {
        Type::Tuple(tuple) if !tuple.elems.is_empty() => "a tuple",
        Type::Array(_) | Type::Slice(_) => "a list",
        _ if is_option(ty) => "an `Option`",
        _ => match class(ty) {
            TypeClass::Map | TypeClass::Unknown => return None,
            scalar => scalar.name(),
        },
    };
    Some((name, ty.span()))
}

/// A type as written, without the spaces of tokens.
fn plain(ty: &impl ToTokens) -> String {
    ty.to_token_stream().to_string().replace(' ', "")
}
