//! The generated code of a resource: constants, field lists and calls into `windlass::__private`.

mod definition;
mod encoding;
mod index;
mod versions;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::attrs::{self, TextExpr};
use super::model::{ResourceModel, RootField};
use super::place;
use crate::apply;
use crate::keys::references;
use crate::path::{located as at, plain};

/// Returns the generated code of a model without faults.
pub(super) fn all(model: &ResourceModel, keys: &[Ident]) -> TokenStream {
    let known: &[&[&str]] = &[attrs::KEYS, place::COLUMN_KEYS, place::SCALE_KEYS, place::RULE_KEYS];
    let references = references(&quote!(::windlass), "resource", keys, known);
    let parts = [
        resource(model),
        metadata(model),
        constructor(model),
        encoding::serialize(model),
        encoding::deserialize(model),
        field_names(model),
        constants(model),
        definition::crd(model, false),
        index::indexes(model, false),
        typed(model),
        versions::conversion(model),
        versions::listed(model),
        references,
    ];
    parts.into_iter().collect()
}

/// Returns the same items for a model with faults, as far as the fields are known. Bodies that
/// would not compile because of the fault are left out; none of the code ever runs.
pub(super) fn fallback(model: &ResourceModel) -> TokenStream {
    if !model.is_struct {
        return TokenStream::new();
    }
    let mut parts = vec![
        resource(model),
        constructor(model),
        definition::crd(model, true),
        index::indexes(model, true),
    ];
    if model.has_metadata() {
        parts.push(metadata(model));
        if !model.derived.serialize {
            parts.push(encoding::serialize(model));
        }
        if !model.derived.deserialize {
            parts.push(encoding::deserialize(model));
        }
        parts.push(typed(model));
        parts.extend([versions::conversion(model), versions::all_listed(model)]);
    } else {
        parts.push(without_metadata(model));
    }
    parts.into_iter().collect()
}

fn private() -> TokenStream {
    quote!(::windlass::__private)
}

/// Generates the apply configuration, the relation to the status, and the schema for other kinds.
fn typed(model: &ResourceModel) -> TokenStream {
    let api_version = api_version(model);
    let (names, types): (Vec<_>, Vec<_>) =
        model.fields.iter().map(|it| (&it.ident, &it.ty)).unzip();
    let root = apply::RootKind {
        fields: &quote!(#(#names: #types,)*),
        ident: &model.ident,
        vis: &model.vis,
        api_version: &api_version,
        kind: &model.kind.value,
        namespaced: model.namespaced,
        status: model.fields.iter().find_map(RootField::status),
    };
    let fields = model.fields.iter();
    let fields = fields.map(|field| (&field.ident, field.json.value.as_str(), &field.ty));
    apply::expand_root(&root, fields)
}

/// Returns the same path, with every token at `place`: an error underlines an expression from the
/// first token to the last.
fn private_at(place: Span) -> TokenStream {
    quote_spanned!(place=> ::windlass::__private)
}

/// Returns the `apiVersion`: a literal, or the constant of the kind.
fn api_version(model: &ResourceModel) -> TokenStream {
    let (p, ident) = (private(), &model.ident);
    model.api_version().map_or_else(
        || quote!(<#ident as #p::k8s_openapi::Resource>::API_VERSION),
        |text| text.to_token_stream(),
    )
}

/// Returns group and version. Expressions are in the constants alone, so that the compiler reports
/// a fault in one of them once.
fn group_and_version(model: &ResourceModel) -> (TokenStream, TokenStream) {
    let (p, ident) = (private(), &model.ident);
    let text = |text: &TextExpr, constant: &str| match text {
        TextExpr::Literal(_) => quote!(#text),
        TextExpr::Expr(_) => {
            let constant = format_ident!("{constant}");
            quote!(<#ident as #p::k8s_openapi::Resource>::#constant)
        }
    };
    (text(&model.group, "GROUP"), text(&model.version, "VERSION"))
}

/// Returns code that the compiler joins to `group/version`.
fn joined_api_version(model: &ResourceModel) -> TokenStream {
    let p = private();
    let (group, version) = group_and_version(model);
    quote!({
        const __BYTES: &[u8] = &#p::api_version_bytes::<{ #p::api_version_length(#group, #version) }>(
            #group, #version,
        );
        #p::api_version_text(__BYTES)
    })
}

/// Generates the checks of group and version if they are constants.
fn constants(model: &ResourceModel) -> TokenStream {
    let ident = &model.ident;
    let group = model.hub.is_none().then_some((&model.group, "GROUP", "check_group"));
    let checks = group.into_iter().chain([(&model.version, "VERSION", "check_version")]);
    let check = |(text, constant, check): (&TextExpr, &str, &str)| {
        let TextExpr::Expr(expr) = text else { return TokenStream::new() };
        let place = at(expr.span());
        let (p, check) = (private_at(place), format_ident!("{check}", span = place));
        // A constant without a name is computed by `cargo check`, too.
        let constant = format_ident!("{constant}", span = place);
        quote_spanned!(place=> const _: () = #p::#check(<#ident as #p::k8s_openapi::Resource>::#constant);)
    };
    checks.map(check).collect()
}

/// Generates the constants of the kind.
fn resource(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ResourceModel { ident, group, version, kind, plural, .. } = model;
    let [kind, plural] = [kind, plural].map(|at| &at.value);
    let api_version = model
        .api_version()
        .map_or_else(|| joined_api_version(model), |text| text.to_token_stream());
    let scope =
        format_ident!("{}ResourceScope", if model.namespaced { "Namespace" } else { "Cluster" });
    let (plural, scope) = match &model.hub {
        Some(hub) => {
            let hub = quote!(<#hub as #p::k8s_openapi::Resource>);
            (quote!(#hub::URL_PATH_SEGMENT), quote!(#hub::Scope))
        }
        None => (quote!(#plural), quote!(#p::k8s_openapi::#scope)),
    };
    quote! {
        #[automatically_derived]
        impl #p::k8s_openapi::Resource for #ident {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = #kind;
            const VERSION: &'static str = #version;
            const URL_PATH_SEGMENT: &'static str = #plural;
            type Scope = #scope;
        }
    }
}

/// Generates the access to the metadata.
fn metadata(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let place = at(model.metadata.as_ref().map_or(Span::call_site(), |field| field.ty.span()));
    let q = private_at(place);
    let get = quote_spanned!(place=> #q::Meta::get(&self.metadata));
    let get_mut = quote_spanned!(place=> #q::Meta::get_mut(&mut self.metadata));
    quote! {
        #[automatically_derived]
        impl #p::k8s_openapi::Metadata for #ident {
            type Ty = #p::ObjectMeta;

            fn metadata(&self) -> &#p::ObjectMeta {
                #get
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                #get_mut
            }
        }
    }
}

/// Generates `Website::new(name, spec)`: every field that is not optional is an argument.
fn constructor(model: &ResourceModel) -> TokenStream {
    let ResourceModel { ident, vis, .. } = model;
    let needed: Vec<&RootField> = model.fields.iter().filter(|field| !field.optional).collect();
    let names: Vec<_> = needed.iter().map(|field| &field.ident).collect();
    // A pattern that is the name of a constant in scope would be that constant.
    let arguments: Vec<_> = names.iter().map(|name| format_ident!("{}_", name)).collect();
    let types: Vec<_> = needed.iter().map(|field| &field.ty).collect();
    let absent: Vec<_> =
        model.fields.iter().filter(|field| field.optional).map(|field| &field.ident).collect();
    let doc = format!(
        "A `{}` of that name; namespace and labels are set in its metadata.",
        model.kind.value
    );
    // A field called `name` is an argument, too.
    let argument =
        format_ident!("{}", if model.field("name").is_some() { "__name" } else { "name" });
    let body = if let Some(metadata) = model.metadata.as_ref().filter(|_| model.has_metadata()) {
        let place = at(metadata.ty.span());
        let p = private_at(place);
        let value = quote_spanned!(place=> #p::Meta::named(::core::convert::Into::into(#argument)));
        quote!(Self {
            metadata: #value,
            #(#names: #arguments,)*
            #(#absent: ::core::option::Option::None,)*
        })
    } else {
        quote!(::core::unimplemented!())
    };
    quote! {
        #[automatically_derived]
        impl #ident {
            #[doc = #doc]
            #[allow(dead_code, unused_variables, non_snake_case)]
            #[must_use]
            #vis fn new(#argument: impl ::core::convert::Into<::std::string::String>, #(#arguments: #types),*) -> Self {
                #body
            }
        }
    }
}

/// Generates the table of names, by which paths find those in JSON.
fn field_names(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let fields = model.metadata.iter().chain(&model.fields).map(|field| {
        let (rust, json) = (plain(&field.ident), &field.json.value);
        quote!(#p::schema::named(#rust, #json))
    });
    quote! {
        #[automatically_derived]
        impl #p::FieldNames for #ident {
            const FIELDS: &'static [#p::FieldName] = &[#(#fields),*];
        }
    }
}

/// Generates the impls of a struct whose `metadata` is missing, so that the struct still counts as
/// a resource.
fn without_metadata(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    quote! {
        impl #p::k8s_openapi::Metadata for #ident {
            type Ty = #p::ObjectMeta;

            fn metadata(&self) -> &#p::ObjectMeta {
                ::core::unimplemented!()
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                ::core::unimplemented!()
            }
        }

        impl #p::serde::Serialize for #ident {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                _: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                ::core::unimplemented!()
            }
        }

        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #p::serde::Deserializer<'de>>(
                _: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                ::core::unimplemented!()
            }
        }
    }
}
