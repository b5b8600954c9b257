//! Apply configurations: for a struct a type in which every field may be left out.
//!
//! The generated type holds JSON and has a method for each field, so that the code is a line per
//! field and does not depend on the number of types. `fields` reads a struct with serde's names;
//! the derives of a root and of a nested type share that module.

// DESIGN.md, 141: Apply configurations hold JSON

mod fields;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{DeriveInput, Visibility};

use fields::{ApplyField, FieldShape};

use crate::crate_path;
use crate::errors::Errors;
use crate::identity::identity;
use crate::misplaced::misplaced_on_fields;

/// `#[derive(ApplyConfiguration)]`.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    if fields::named(input).is_none() {
        let message = "an apply configuration is made of a struct with named fields and without \
                       type parameters; a field of another type takes whole values";
        errors.at(input.ident.span(), message);
    }
    let krate = crate_path::crate_of(&input.attrs, "apply", &mut errors);
    let instead = "a field follows serde's attributes, such as `#[serde(skip)]`";
    misplaced_on_fields(&input.data, "apply", instead, &mut errors);
    let mut output = errors.finish();
    output.extend(expand(input));
    crate_path::found_by(output, krate.as_ref())
}

/// Returns the apply configuration of a nested type; nothing for types that have none, which are
/// applied as whole values.
pub(crate) fn expand(input: &DeriveInput) -> TokenStream {
    let Some(fields) = fields::named(input) else { return TokenStream::new() };
    let (p, ident) = (private(), &input.ident);
    let apply = name(ident);
    let doc = format!("A [`{ident}`] for server-side apply: every field may be left out.");
    let type_ = type_(&input.vis, &apply, &doc);
    let setters = setters(&input.vis, &fields);
    let vis = &input.vis;
    quote! {
        #type_

        #[automatically_derived]
        // A field may have the name of JSON.
        #[allow(dead_code, non_snake_case)]
        impl #apply {
            /// No field.
            #[must_use]
            #vis fn new() -> Self {
                Self(::core::default::Default::default())
            }

            #setters
        }

        #[automatically_derived]
        impl #p::ApplyValue<#ident> for #apply {
            fn into_value(self) -> #p::serde_json::Result<#p::serde_json::Value> {
                self.0.into_value()
            }
        }

        #[automatically_derived]
        impl ::windlass::resource::ApplyConfiguration for #apply {
            type Type = #ident;
        }
    }
}

/// The kind of a root struct.
pub(crate) struct RootKind<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) vis: &'a Visibility,
    /// `group/version`: a text, or an expression of constants.
    pub(crate) api_version: &'a TokenStream,
    pub(crate) kind: &'a str,
    pub(crate) namespaced: bool,
    /// The fields beside `metadata`, which tell kinds of one name apart.
    pub(crate) fields: &'a TokenStream,
    /// The type of the status, without the option.
    pub(crate) status: Option<&'a syn::Type>,
}

/// Returns the apply configuration of a root struct, whose fields beside `metadata` are given with
/// their names in JSON.
pub(crate) fn expand_root<'a>(
    root: &RootKind<'_>,
    fields: impl Iterator<Item = (&'a Ident, &'a str, &'a syn::Type)>,
) -> TokenStream {
    let (p, RootKind { ident, vis, api_version, kind, .. }) = (private(), root);
    let apply = name(ident);
    let doc = format!("A [`{ident}`] for server-side apply: every field may be left out.");
    let type_ = type_(vis, &apply, &doc);
    let fields: Vec<_> =
        fields.map(|(ident, json, ty)| ApplyField::new(ident, json.to_owned(), ty)).collect();
    let taken = |name: &str| fields.iter().any(|field| field.ident == name);
    let metadata = metadata(root, taken);
    let setters = setters(vis, &fields);
    let new = format!("A `{kind}` of that name.");
    let typed = typed(root);
    quote! {
        #typed
        #type_

        #[automatically_derived]
        // A field may have the name of JSON.
        #[allow(dead_code, non_snake_case)]
        impl #apply {
            #[doc = #new]
            #[must_use]
            #vis fn new(name: impl ::core::convert::Into<::std::string::String>) -> Self {
                Self(#p::Applied::object(#api_version, #kind, ::core::convert::Into::into(name)))
            }

            #metadata
            #setters
        }

        #[automatically_derived]
        impl ::windlass::resource::ApplyObject<#ident> for #apply {}

        #[automatically_derived]
        impl ::windlass::resource::ApplyIntent<#ident, ()> for #apply {}

        // The kind as a field of another one.
        #[automatically_derived]
        impl #p::ApplyValue<#ident> for #apply {
            fn into_value(self) -> #p::serde_json::Result<#p::serde_json::Value> {
                self.0.into_value()
            }
        }
    }
}

/// Returns the relation to the status, and the schema of the kind inside of other kinds.
fn typed(root: &RootKind<'_>) -> TokenStream {
    let (p, RootKind { ident, kind, .. }) = (private(), root);
    let status = root.status.map(|status| {
        let place = syn::spanned::Spanned::span(status).resolved_at(Span::call_site());
        quote_spanned! {place=>
            #[automatically_derived]
            impl ::windlass::resource::StatusOf<#ident> for #status {}
        }
    });
    let identity = identity(&ident.to_string(), root.fields);
    quote! {
        #status

        #[automatically_derived]
        impl #p::schemars::JsonSchema for #ident {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::core::convert::Into::into(#kind)
            }

            // Two kinds, or two versions of a kind, may have the same name.
            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#identity)
            }

            fn json_schema(_: &mut #p::schemars::SchemaGenerator) -> #p::schemars::Schema {
                #p::embedded_schema::<Self>()
            }
        }
    }
}

/// Returns the methods for metadata, but for those whose name a field has.
fn metadata(root: &RootKind<'_>, taken: impl Fn(&str) -> bool) -> TokenStream {
    let vis = root.vis;
    let text = quote!(impl ::core::convert::Into<::std::string::String>);
    let into = quote!(::core::convert::Into::into);
    let mut methods = TokenStream::new();
    if root.namespaced && !taken("namespace") {
        methods.extend(quote! {
            /// Its namespace; that of the `Api` or of the owner by default.
            #[must_use]
            #vis fn namespace(self, namespace: #text) -> Self {
                Self(self.0.with_metadata("namespace", #into(namespace)))
            }
        });
    }
    for (name, map, doc) in
        [("label", "labels", "Sets a label."), ("annotation", "annotations", "Sets an annotation.")]
    {
        if taken(name) {
            continue;
        }
        let method = Ident::new(name, Span::call_site());
        methods.extend(quote! {
            #[doc = #doc]
            #[must_use]
            #vis fn #method(self, key: #text, value: #text) -> Self {
                Self(self.0.with_metadata_entry(#map, #into(key), #into(value)))
            }
        });
    }
    methods
}

/// Returns the name of the apply configuration.
fn name(ident: &Ident) -> Ident {
    format_ident!("{}Apply", syn::ext::IdentExt::unraw(ident), span = ident.span())
}

fn private() -> TokenStream {
    quote!(::windlass::__private)
}

/// Returns the type in the form in which a request carries it.
fn type_(vis: &Visibility, apply: &Ident, doc: &str) -> TokenStream {
    let p = private();
    quote! {
        #[doc = #doc]
        #[allow(dead_code)]
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::default::Default)]
        #vis struct #apply(#p::Applied);

        #[automatically_derived]
        impl #p::serde::Serialize for #apply {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                #p::serde::Serialize::serialize(&self.0, serializer)
            }
        }
    }
}

/// Returns a method for each field, with the documentation of the field.
fn setters(vis: &Visibility, fields: &[ApplyField<'_>]) -> TokenStream {
    let p = private();
    let list = quote!(::core::iter::IntoIterator);
    // A field called `new` keeps that name as an argument, and is set by `new_`.
    let method = |ident: &Ident| match ident.to_string().as_str() {
        "new" => format_ident!("new_"),
        _ => ident.clone(),
    };
    let setters = fields.iter().map(|field| {
        let ApplyField { ident, json, shape, docs } = field;
        let method = method(ident);
        let (argument, call) = match shape {
            FieldShape::One(ty) => {
                (quote!(impl #p::ApplyValue<#ty>), quote!(with::<#ty>(#json, value)))
            }
            FieldShape::Named(ty) => (
                quote!(impl #p::ApplyAlias<#ty, __How>),
                quote!(with_alias::<#ty, __How>(#json, value)),
            ),
            FieldShape::List(ty) => (
                quote!(impl #list<Item = impl #p::ApplyValue<#ty>>),
                quote!(with_list::<#ty, _>(#json, value)),
            ),
            FieldShape::Map(key, ty) => (
                quote!(impl #list<Item = (impl #p::ApplyValue<#key>, impl #p::ApplyValue<#ty>)>),
                quote!(with_map::<#key, #ty, _, _>(#json, value)),
            ),
            FieldShape::Flattened(ty) => {
                (quote!(impl #p::ApplyValue<#ty>), quote!(with_flattened::<#ty>(#json, value)))
            }
            FieldShape::Json => {
                (quote!(#p::serde_json::Value), quote!(with::<#p::serde_json::Value>(#json, value)))
            }
        };
        let how = matches!(shape, FieldShape::Named(_)).then(|| quote!(<__How>));
        let doc = docs.is_empty().then(|| format!("Sets `{json}`."));
        let doc = doc.map(|doc| quote!(#[doc = #doc]));
        quote! {
            #doc
            #(#docs)*
            #[must_use]
            #vis fn #method #how (self, value: #argument) -> Self {
                Self(self.0.#call)
            }
        }
    });
    setters.collect()
}
