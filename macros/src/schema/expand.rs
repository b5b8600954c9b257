//! The generated code of `#[derive(Schema)]`: calls into `windlass::__private::schema`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericParam, Generics};

use super::attrs;
use super::fields::{default_of, list_map, named, remarks, shape, shape_of};
use super::key::{KeyMeaning, SchemaKey};
use super::model::{Data, SchemaField, SchemaModel, Variant};
use super::serde::Default;
use crate::keys::{references, same_tokens};

/// The generated code of a model without faults.
pub(super) fn all(model: &SchemaModel, keys: &[Ident]) -> TokenStream {
    let (body, key_type) = (body(model), key_type(model));
    let body = quote!(#key_type #body);
    let known: &[&[&str]] = &[
        attrs::FIELD_KEYS,
        attrs::TYPE_KEYS,
        attrs::RULE_KEYS,
        attrs::EACH_KEYS,
        attrs::COLUMN_KEYS,
    ];
    items(model, &body, &references(&krate(model), "schema", keys, known))
}

/// The call that notes a type which keys of maps may have: a map behind an alias, or of another
/// crate, shows only the name of the type.
fn key_type(model: &SchemaModel) -> Option<TokenStream> {
    let is_key = model.serde.from.is_some()
        || match &model.data {
            Data::Tuple(fields) => fields.len() == 1 || model.serde.transparent,
            Data::Named(_) => model.serde.transparent,
            Data::Enum(variants) => {
                model.serde.tag.is_none()
                    && variants.iter().all(|it| match &it.data {
                        Data::Unit => !model.serde.untagged,
                        Data::Tuple(fields) => {
                            fields.len() == 1 && (model.serde.untagged || it.serde.untagged)
                        }
                        Data::Named(_) | Data::Enum(_) => false,
                    })
            }
            Data::Unit => false,
        };
    is_key.then(|| quote!(__s::key_type::<Self>();))
}

/// The impls of a model with faults, without a body that could cause further faults.
pub(super) fn fallback(model: &SchemaModel) -> TokenStream {
    items(model, &quote!(::core::unimplemented!()), &TokenStream::new())
}

/// The path of the framework.
fn krate(model: &SchemaModel) -> TokenStream {
    let krate = model.remarks.attrs.krate.as_ref();
    krate.map_or_else(|| quote!(::windlass), |path| quote!(#path))
}

/// Generates the impls.
fn items(model: &SchemaModel, body: &TokenStream, references: &TokenStream) -> TokenStream {
    let krate = krate(model);
    let ident = &model.ident;
    let name = model.name();
    let generics = bounded(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let id = id(model, &generics);
    let names = field_names(model);
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use #krate::__private::schema::{
                self as __s, GuessedNames as _, KeyNames as _, Keys as _, NoSchemaInside as _,
                NoDefault as _, NoSchemaItself as _, Probe as _, ProbeAbsence as _,
            };
            #references
            #[automatically_derived]
            #[allow(deprecated)]
            impl #impl_generics __s::JsonSchema for #ident #type_generics #where_clause {
                fn schema_name() -> __s::Cow<'static, str> {
                    __s::Cow::Borrowed(#name)
                }

                fn schema_id() -> __s::Cow<'static, str> {
                    #id
                }

                fn json_schema(__generator: &mut __s::SchemaGenerator) -> __s::Schema {
                    #body
                }
            }
            #names
        };
    }
}

/// Names of the fields of a struct, for code that names them.
fn field_names(model: &SchemaModel) -> TokenStream {
    let Data::Named(fields) = &model.data else { return TokenStream::new() };
    let fields = fields.iter().filter(|field| field.is_read()).map(|field| {
        let (rust, json) = (field.rust(), &field.json);
        // The value of a transparent struct is the value of its field.
        let is_flattened = field.serde.flatten.is_some() || model.serde.transparent;
        if is_flattened { quote!(__s::flattened(#rust)) } else { quote!(__s::named(#rust, #json)) }
    });
    let ident = &model.ident;
    let (impl_generics, type_generics, where_clause) = model.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics __s::FieldNames for #ident #type_generics #where_clause {
            const FIELDS: &'static [__s::FieldName] = &[#(#fields),*];
        }
    }
}

/// The name of the schema that differs between types of the same name.
fn id(model: &SchemaModel, generics: &Generics) -> TokenStream {
    let identity = &model.identity;
    let types: Vec<_> = generics.type_params().map(|it| &it.ident).collect();
    let constants: Vec<_> = generics.const_params().map(|it| &it.ident).collect();
    if types.is_empty() && constants.is_empty() {
        return quote!(__s::Cow::Borrowed(#identity));
    }
    let parts = vec!["{}"; types.len() + constants.len()].join(", ");
    let format = format!("{{}}<{parts}>");
    quote! {
        __s::Cow::Owned(::std::format!(
            #format,
            #identity,
            #(::core::any::type_name::<#types>(),)*
            #(#constants,)*
        ))
    }
}

/// The generics, with a bound on each parameter that is the type of a value.
fn bounded(model: &SchemaModel) -> Generics {
    let mut words = BTreeSet::new();
    for field in model.all_fields().filter(|field| field.is_described() && !field.is_replaced()) {
        let ty = &field.ty;
        collect_words(quote!(#ty), &mut words);
    }
    // A default is written into the schema as JSON.
    let mut written = BTreeSet::new();
    for field in model.all_fields().filter(|field| field.is_described()) {
        let has_default = field.serde.default.is_some()
            || field.remarks.has(|kind| matches!(kind, KeyMeaning::Default(_)));
        if has_default || model.serde.default.is_some() {
            let ty = &field.ty;
            collect_words(quote!(#ty), &mut written);
        }
    }
    let mut generics = model.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            if written.contains(&parameter.ident.to_string()) {
                parameter.bounds.push(syn::parse_quote!(__s::Serialize));
            }
            // A default belongs to the type only; `split_for_impl` leaves it out.
            if words.contains(&parameter.ident.to_string()) {
                parameter.bounds.push(syn::parse_quote!(__s::JsonSchema));
            }
        }
    }
    generics
}

/// Collects the identifiers outside of `PhantomData<…>`.
fn collect_words(tokens: TokenStream, words: &mut BTreeSet<String>) {
    let mut is_phantom = false;
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(ident) => {
                is_phantom |= ident == "PhantomData";
                if !is_phantom {
                    words.insert(ident.to_string());
                }
            }
            proc_macro2::TokenTree::Group(group) => collect_words(group.stream(), words),
            _ => {}
        }
    }
}

/// The expression of the schema.
fn body(model: &SchemaModel) -> TokenStream {
    let keys = remarks(&model.remarks, None, model.named());
    if let Some(from) = &model.serde.from {
        let converted = model.converted_field();
        let shape = converted.map_or_else(|| shape_of(from), shape);
        let shape = match &model.serde.into {
            Some(into) if !same_tokens(into, from) => {
                let into = shape_of(into);
                quote!(if __generator.contract().is_serialize() { #into } else { #shape })
            }
            _ => shape,
        };
        // The schema of the other type does not say which values the conversion refuses.
        let is_described = converted.is_some_and(|field| field.remarks.describes_values())
            || model.remarks.describes_values();
        let parsed = (model.serde.is_fallible && !is_described).then(|| {
            let name = format!("`{}`", syn::ext::IdentExt::unraw(&model.ident));
            quote!(.parsed(#name))
        });
        let field = converted.map(keys_of);
        return quote!({
            let __shape = #shape;
            __s::same_as(__generator, __shape) #parsed #field #keys .finish()
        });
    }
    let whole = (!model.remarks.is_empty()).then(|| quote!(.whole() #keys));
    match &model.data {
        Data::Unit => {
            let unit = shape_of(&syn::parse_quote!(()));
            quote!(__s::same_as(__generator, #unit) #keys .finish())
        }
        Data::Tuple(fields) if fields.len() == 1 => newtype(&fields[0], &keys),
        Data::Named(fields) | Data::Tuple(fields) if model.serde.transparent => {
            let field = fields.iter().find(|field| field.is_described()).or(fields.first());
            field.map_or_else(TokenStream::new, |field| newtype(field, &keys))
        }
        Data::Tuple(fields) => {
            let values = tuple(fields, model.serde.default.is_some());
            quote!(__s::Content::of_struct(__generator).tuple() #values #whole .finish())
        }
        Data::Named(fields) => object(model, fields, whole.as_ref()),
        Data::Enum(variants) => {
            let tagging = tagging(model);
            let closed = model.serde.closed;
            let calls = variants.iter().filter(|it| !it.serde.skipped);
            let calls = calls.map(|it| variant(it, &model.generics));
            let more = more_names(variants);
            let whole = whole.or_else(|| more.as_ref().map(|_| quote!(.whole())));
            quote!(__s::Variants::new(__generator, #tagging, #closed) #(#calls)* #whole #more .finish())
        }
    }
}

/// The call for names that serde reads beside those of the variants.
fn more_names(variants: &[Variant]) -> Option<TokenStream> {
    let read = || variants.iter().filter(|it| !it.serde.skipped && !it.serde.untagged);
    let aliases: Vec<&String> = read().flat_map(|it| &it.serde.aliases).collect();
    let rest = read().find(|it| it.serde.is_rest).map(|it| &it.json);
    let aliases = (!aliases.is_empty())
        .then(|| quote!(.keyword("x-windlass-aliases", __s::json!([#(#aliases),*]))));
    let rest = rest.map(|name| quote!(.keyword("x-windlass-rest", #name)));
    (aliases.is_some() || rest.is_some()).then(|| quote!(#aliases #rest))
}

/// A struct with named fields.
fn object(model: &SchemaModel, fields: &[SchemaField], whole: Option<&TokenStream>) -> TokenStream {
    let closed = model.serde.closed;
    let variable = format_ident!("__whole");
    let value = model.serde.default.as_ref().map(|default| match default {
        Default::Trait => default_of(&quote!(Self), &model.generics),
        Default::Function(function) => quote!(#function()),
    });
    let statement = value.map(|value| quote!(let #variable: Self = #value;));
    let calls = named(fields, statement.as_ref().map(|_| &variable), &model.generics);
    let named = named_in_keys(model);
    quote!(#statement #named __s::Fields::new(__generator, #closed) #calls #whole .finish())
}

/// A use of each field that `one_of(…)` and `rule(…, path = …)` name, for editors: the keys
/// themselves become texts.
fn named_in_keys(model: &SchemaModel) -> Option<TokenStream> {
    let keys = model.remarks.attrs.keys.iter();
    let names: Vec<Ident> =
        keys.flat_map(SchemaKey::fields).filter_map(|name| model.at(name)).collect();
    (!names.is_empty()).then(|| quote!(_ = |__it: &Self| { #(_ = __it.#names;)* };))
}

/// A type that is written as its only field.
fn newtype(field: &SchemaField, keys: &TokenStream) -> TokenStream {
    let shape = shape(field);
    let of_field = keys_of(field);
    quote!(__s::same_as(__generator, #shape) #of_field #keys .finish())
}

/// The calls for documentation and keys of a field without a name in JSON.
fn keys_of(field: &SchemaField) -> TokenStream {
    let (remarks, list_map) = (remarks(&field.remarks, Some(field), &[]), list_map(field));
    quote!(#remarks #list_map)
}

/// The values of a tuple; serde reads a list that ends before the first value with a default.
fn tuple(fields: &[SchemaField], has_default: bool) -> TokenStream {
    let described = || fields.iter().filter(|field| field.is_described());
    let end = described().position(|field| has_default || field.serde.default.is_some());
    let values = described().enumerate().map(|(place, field)| {
        let shape = shape(field);
        let keys = keys_of(field);
        let end = (Some(place) == end).then(|| quote!(.may_end()));
        quote!(#end .value(#shape) #keys)
    });
    values.collect()
}

fn tagging(model: &SchemaModel) -> TokenStream {
    match (&model.serde.tag, &model.serde.content) {
        (Some(tag), Some(content)) => quote!(__s::Tagging::Adjacent(#tag, #content)),
        (Some(tag), None) => quote!(__s::Tagging::Internal(#tag)),
        _ if model.serde.untagged => quote!(__s::Tagging::Untagged),
        _ => quote!(__s::Tagging::External),
    }
}

fn variant(variant: &Variant, generics: &Generics) -> TokenStream {
    let json = &variant.json;
    let keys = remarks(&variant.remarks, None, &[]);
    let content: Ident = format_ident!("__content");
    let value = match &variant.data {
        _ if variant.replaced().is_some() => {
            let shape = variant.replaced().map(shape_of);
            let of_field = variant.data.only_field().map(keys_of);
            quote!(#content.newtype(#shape) #of_field .finish())
        }
        Data::Unit if !variant.serde.untagged => {
            return if variant.remarks.is_empty() {
                quote!(.name(#json))
            } else {
                quote!(.unit(#json) #keys)
            };
        }
        Data::Tuple(fields) if fields.len() == 1 => {
            let shape = shape(&fields[0]);
            let of_field = keys_of(&fields[0]);
            quote!(#content.newtype(#shape) #of_field .finish())
        }
        Data::Tuple(fields) => {
            let values = tuple(fields, false);
            quote!(#content.tuple() #values .finish())
        }
        Data::Named(fields) => {
            let calls = named(fields, None, generics);
            quote!(#content.fields() #calls .finish())
        }
        _ => quote!(#content.unit()),
    };
    if variant.serde.untagged {
        quote!(.untagged(|#content| #value) #keys)
    } else {
        quote!(.variant(#json, |#content| #value) #keys)
    }
}
