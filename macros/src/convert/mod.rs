//! `#[derive(Convertible)]`, and the same conversion of a whole kind for
//! `#[derive(CustomResource)]`.

pub(crate) mod attrs;
mod expand;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, Fields, Index, Member, Type};

use self::attrs::{ConvertFieldAttrs, TypeAttrs, VariantAttrs};
use crate::crate_path;
use crate::errors::Errors;
use crate::keys::references;

/// A field with the counterpart.
#[derive(Debug)]
struct ConvertedField {
    member: Member,
    ty: Type,
    attrs: ConvertFieldAttrs,
}

/// A variant with the counterpart.
#[derive(Debug)]
struct Variant {
    ident: Ident,
    fields: Vec<ConvertedField>,
    attrs: VariantAttrs,
}

/// The fields or variants of a type.
#[derive(Debug)]
enum TypeBody {
    Struct(Vec<ConvertedField>),
    Enum(Vec<Variant>),
}

/// `#[derive(Convertible)]`.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let attrs = TypeAttrs::read(&input.attrs, &mut errors);
    if let Some(params) = input.generics.params.first() {
        let span = syn::spanned::Spanned::span(params);
        errors.at(span, "a type with parameters implements `windlass::crd::Convertible` by hand");
    }
    if attrs.hub.is_none() && !attrs.tried_hub {
        let message = "say which type of the hub this is: `#[convert(hub = v1::CronJobSpec)]`";
        errors.at(input.ident.span(), message);
    }
    let shape = shape(&input.data, &input.ident, &mut errors);
    if let (TypeBody::Enum(_), Some(function)) =
        (&shape, attrs.to_hub.as_ref().or(attrs.from_hub.as_ref()))
    {
        let message = "functions on the type complete a struct: convert a variant by `version_only = …` and \
                       `hub_only(…)`, or implement `windlass::crd::Convertible` by hand";
        errors.at(syn::spanned::Spanned::span(function), message);
    }
    let keys = errors.take_keys();
    let mut output = errors.finish();
    if output.is_empty()
        && let Some(hub) = &attrs.hub
    {
        output.extend(expand::convertible(&input.ident, hub, &attrs, &shape));
        let known: &[&[&str]] = &[attrs::TYPE_KEYS, attrs::FIELD_KEYS, attrs::VARIANT_KEYS];
        output.extend(references(&quote!(::windlass), "convert", &keys, known));
    } else if input.generics.params.is_empty() {
        output.extend(expand::unreported(&input.ident));
    }
    crate_path::found_by(output, attrs.krate.as_ref())
}

/// The conversion of a whole kind, whose struct was read from `input`.
#[derive(Debug)]
pub(crate) struct RootConversion {
    attrs: TypeAttrs,
    shape: TypeBody,
}

impl RootConversion {
    /// Reads the attributes of a kind.
    pub(crate) fn read(input: &DeriveInput, errors: &mut Errors) -> Self {
        let attrs = TypeAttrs::read(&input.attrs, errors);
        if let Some(hub) = &attrs.hub {
            let message = "the hub of a kind is a key of `#[resource(hub = …)]`";
            errors.at(syn::spanned::Spanned::span(hub), message);
        }
        Self { attrs, shape: shape(&input.data, &input.ident, errors) }
    }

    /// Returns the impl of `Convertible`.
    pub(crate) fn expand(&self, ident: &Ident, hub: &syn::Path) -> TokenStream {
        expand::convertible(ident, hub, &self.attrs, &self.shape)
    }
}

fn shape(data: &Data, ident: &Ident, errors: &mut Errors) -> TypeBody {
    match data {
        Data::Struct(data) => TypeBody::Struct(fields(&data.fields, errors)),
        Data::Enum(data) => {
            let variants = data.variants.iter().map(|variant| Variant {
                ident: variant.ident.clone(),
                fields: fields(&variant.fields, errors),
                attrs: VariantAttrs::read(&variant.attrs, errors),
            });
            TypeBody::Enum(variants.collect())
        }
        Data::Union(_) => {
            errors.at(ident.span(), "a union has no JSON, and so no versions");
            TypeBody::Struct(Vec::new())
        }
    }
}

fn fields(fields: &Fields, errors: &mut Errors) -> Vec<ConvertedField> {
    let all = fields.iter().enumerate().map(|(place, field)| ConvertedField {
        member: match &field.ident {
            Some(ident) => Member::Named(ident.clone()),
            None => Member::Unnamed(Index {
                index: u32::try_from(place).unwrap_or_default(),
                span: syn::spanned::Spanned::span(&field.ty),
            }),
        },
        ty: field.ty.clone(),
        attrs: ConvertFieldAttrs::read(&field.attrs, errors),
    });
    all.collect()
}
