//! Input of the code generator of `#[derive(Schema)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Generics, Lit, LitStr, Member, Type};

use super::attrs::{AttributeTarget, SchemaAttrs};
use super::key::KeyMeaning;
use super::serde::{OfField, OfType, OfVariant, Rename};
use crate::errors::Errors;
use crate::identity::identity;
use crate::markers::{DocumentedItem, markers};

/// Keywords that restrict values. The same as in
/// `framework/core/src/crd/schema/marks.rs`, which a crate of macros cannot import; rules are keys
/// of their own here.
pub(super) const CONDITIONS: &[&str] = &[
    "pattern",
    "format",
    "enum",
    "not",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// A type with `#[derive(Schema)]`: its attributes, and its fields or variants.
#[derive(Debug)]
pub(super) struct SchemaModel {
    pub(super) ident: Ident,
    /// A literal that differs between types of one name.
    pub(super) identity: TokenStream,
    pub(super) generics: Generics,
    pub(super) serde: OfType,
    pub(super) remarks: ItemAttributes,
    pub(super) data: Data,
}

/// The form of a type or of a variant.
#[derive(Debug)]
pub(super) enum Data {
    Unit,
    Tuple(Vec<SchemaField>),
    Named(Vec<SchemaField>),
    Enum(Vec<Variant>),
}

/// Attributes beside serde's.
#[derive(Debug)]
pub(super) struct ItemAttributes {
    /// The doc comment, as an expression of type `&str`.
    pub(super) doc: Option<TokenStream>,
    pub(super) deprecated: bool,
    pub(super) attrs: SchemaAttrs,
}

/// A variant of an enum.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) ident: Ident,
    /// Name in JSON.
    pub(super) json: String,
    pub(super) serde: OfVariant,
    pub(super) remarks: ItemAttributes,
    pub(super) data: Data,
}

/// A field of a struct or of a variant.
#[derive(Debug)]
pub(super) struct SchemaField {
    pub(super) member: Member,
    /// Name in JSON; the position of a field without a name.
    pub(super) json: String,
    pub(super) ty: Type,
    pub(super) serde: OfField,
    pub(super) remarks: ItemAttributes,
}

impl Data {
    /// The fields, with names or without.
    pub(super) fn fields(&self) -> &[SchemaField] {
        match self {
            Self::Tuple(fields) | Self::Named(fields) => fields,
            _ => &[],
        }
    }

    /// The only field of a value that is written as this field.
    pub(super) fn only_field(&self) -> Option<&SchemaField> {
        match self {
            Self::Tuple(fields) if fields.len() == 1 => fields.first(),
            _ => None,
        }
    }
}

impl SchemaModel {
    /// Reads the type, its attributes and those of its fields and variants.
    pub(super) fn new(input: &DeriveInput, errors: &mut Errors) -> Self {
        let serde = OfType::read(&input.attrs, errors);
        if let Some(kind) = kind(input) {
            let message = "a kind derives `CustomResource` alone, which describes it; `Schema` is for the types of \
                           its fields";
            errors.at(kind.path().get_ident().map_or(input.ident.span(), Ident::span), message);
        }
        let data = match &input.data {
            syn::Data::Struct(data) => fields(&data.fields, serde.rename_all, errors),
            syn::Data::Enum(data) => {
                let variants = data.variants.iter();
                Data::Enum(variants.map(|it| Variant::new(it, &serde, errors)).collect())
            }
            syn::Data::Union(_) => {
                errors.at(input.ident.span(), "a union has no schema, and serde cannot read one");
                Data::Unit
            }
        };
        let name = serde.rename.clone().unwrap_or_else(|| input.ident.unraw().to_string());
        Self {
            ident: input.ident.clone(),
            identity: identity(&name, input),
            generics: input.generics.clone(),
            serde,
            remarks: ItemAttributes::new(&input.attrs, AttributeTarget::Type, errors),
            data,
        }
    }

    /// The name in JSON, which is that of the schema.
    pub(super) fn name(&self) -> String {
        self.serde.rename.clone().unwrap_or_else(|| self.ident.unraw().to_string())
    }

    /// The fields of a struct with names.
    pub(super) fn named(&self) -> &[SchemaField] {
        match &self.data {
            Data::Named(fields) if self.serde.from.is_none() => fields,
            _ => &[],
        }
    }

    /// The field of that name, as the field itself spells it, at the position of the name.
    pub(super) fn at(&self, name: &Ident) -> Option<Ident> {
        let field = self.named().iter().find(|field| *name == field.rust().as_str())?;
        let Member::Named(ident) = &field.member else { return None };
        let mut ident = ident.clone();
        ident.set_span(name.span());
        Some(ident)
    }

    /// The only field of a type that serde converts from that field's type: the keys of the field
    /// describe both.
    pub(super) fn converted_field(&self) -> Option<&SchemaField> {
        match (&self.serde.from, &self.data) {
            (Some(from), Data::Tuple(fields)) if fields.len() == 1 => {
                fields.first().filter(|field| crate::keys::same_tokens(&field.ty, from))
            }
            _ => None,
        }
    }

    /// Every field of the type and of the variants.
    pub(super) fn all_fields(&self) -> impl Iterator<Item = &SchemaField> {
        let variants: &[Variant] = match &self.data {
            Data::Enum(variants) => variants,
            _ => &[],
        };
        self.data.fields().iter().chain(variants.iter().flat_map(|variant| variant.data.fields()))
    }
}

/// The attribute `resource` of a kind: `None` for a spec, whose `CustomResource` reports it.
pub(super) fn kind(input: &DeriveInput) -> Option<&Attribute> {
    let syn::Data::Struct(data) = &input.data else { return None };
    let is_of_root = |field: &syn::Field| {
        field.ident.as_ref().is_some_and(|name| name == "metadata" || name == "spec")
    };
    data.fields.iter().find(|field| is_of_root(field))?;
    input.attrs.iter().find(|it| it.path().is_ident("resource"))
}

fn fields(fields: &syn::Fields, rename: Rename, errors: &mut Errors) -> Data {
    let read = |errors: &mut Errors| {
        fields
            .iter()
            .enumerate()
            .map(|(place, field)| SchemaField::new(field, place, rename, errors))
            .collect()
    };
    match fields {
        syn::Fields::Named(_) => Data::Named(read(errors)),
        syn::Fields::Unnamed(_) => Data::Tuple(read(errors)),
        syn::Fields::Unit => Data::Unit,
    }
}

impl Variant {
    fn new(variant: &syn::Variant, of_type: &OfType, errors: &mut Errors) -> Self {
        let serde = OfVariant::read(&variant.attrs, errors);
        let name = variant.ident.unraw().to_string();
        Self {
            ident: variant.ident.clone(),
            json: serde.rename.clone().unwrap_or_else(|| of_type.rename_all.variant(&name)),
            data: fields(&variant.fields, serde.rename_all.or(of_type.rename_all_fields), errors),
            serde,
            remarks: ItemAttributes::new(&variant.attrs, AttributeTarget::Variant, errors),
        }
    }

    /// The type of which the content has the form, by `#[schema(with = Type)]`.
    pub(super) fn replaced(&self) -> Option<&Type> {
        self.remarks.attrs.keys.iter().find_map(|key| match &key.kind {
            KeyMeaning::With(ty) => Some(ty),
            _ => None,
        })
    }
}

impl SchemaField {
    fn new(field: &syn::Field, place: usize, rename: Rename, errors: &mut Errors) -> Self {
        let serde = OfField::read(&field.attrs, errors);
        let (member, name) = match &field.ident {
            Some(ident) => (Member::Named(ident.clone()), rename.field(&ident.unraw().to_string())),
            None => (Member::Unnamed(place.into()), place.to_string()),
        };
        Self {
            member,
            json: serde.rename.clone().unwrap_or(name),
            ty: field.ty.clone(),
            serde,
            remarks: ItemAttributes::new(&field.attrs, AttributeTarget::Field, errors),
        }
    }

    /// Name in Rust, without `r#`.
    pub(super) fn rust(&self) -> String {
        match &self.member {
            Member::Named(ident) => ident.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    /// Whether the field is part of the schema of the read or the written form.
    pub(super) fn is_described(&self) -> bool {
        let is_skipped = self.serde.skipped || (self.serde.not_read && self.serde.not_written);
        !is_skipped && !self.remarks.has(|kind| matches!(kind, KeyMeaning::Skip))
    }

    /// Whether the field is part of the schema of a definition.
    pub(super) fn is_read(&self) -> bool {
        self.is_described() && !self.serde.not_read
    }

    /// Whether a key replaces the schema of the type.
    pub(super) fn is_replaced(&self) -> bool {
        self.remarks.has(KeyMeaning::replaces_schema)
    }
}

impl ItemAttributes {
    fn new(attributes: &[Attribute], place: AttributeTarget, errors: &mut Errors) -> Self {
        markers(attributes, DocumentedItem::with_keys(&[]), errors);
        Self {
            doc: doc(attributes),
            deprecated: attributes.iter().any(|it| it.path().is_ident("deprecated")),
            attrs: SchemaAttrs::read(attributes, place, errors),
        }
    }

    /// Whether any of the keys is of that kind.
    pub(super) fn has(&self, is: impl Fn(&KeyMeaning) -> bool) -> bool {
        self.attrs.keys.iter().any(|key| is(&key.kind))
    }

    /// Whether a key restricts the values. A rule about changes does not; for a function only the
    /// finished schema can tell.
    pub(super) fn describes_values(&self) -> bool {
        self.has(|kind| match kind {
            KeyMeaning::Keyword(name, _) => CONDITIONS.contains(name),
            KeyMeaning::Extend(name, _) => CONDITIONS.contains(&name.value().as_str()),
            KeyMeaning::Rule(rule) => !rule.rule.value().contains("oldSelf"),
            _ => false,
        })
    }

    /// Whether no attribute changes the schema.
    pub(super) fn is_empty(&self) -> bool {
        self.doc.is_none() && !self.deprecated && self.attrs.keys.is_empty()
    }
}

/// The doc comment: a literal, or `concat!(…)` if a part is a macro such as `include_str!`.
fn doc(attributes: &[Attribute]) -> Option<TokenStream> {
    let parts: Vec<&Expr> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| attribute.meta.require_name_value().ok())
        .map(|pair| &pair.value)
        .collect();
    let literal = |part: &&Expr| match part {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let text = text.value();
            Some(text.strip_prefix(' ').map_or(text.clone(), ToOwned::to_owned))
        }
        _ => None,
    };
    if parts.is_empty() {
        return None;
    }
    let literals: Option<Vec<String>> = parts.iter().map(literal).collect();
    if let Some(lines) = literals {
        return Some(lines.join("\n").trim().to_token_stream());
    }
    let parts = parts.iter().map(|part| {
        literal(part).map_or_else(
            || part.to_token_stream(),
            |text| LitStr::new(&text, proc_macro2::Span::call_site()).to_token_stream(),
        )
    });
    Some(quote!(::core::concat!(#(#parts, "\n"),*)))
}
