//! Generated code of a kind with several versions.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use super::{private, private_at};
use crate::path::located as at;
use crate::resource::model::ResourceModel;

/// Whether the kind has other versions.
pub(super) fn is_one_of_several(model: &ResourceModel) -> bool {
    model.hub.is_some() || !model.versions.is_empty()
}

/// Returns functions that build the other versions of a hub.
pub(super) fn definitions(model: &ResourceModel) -> Vec<TokenStream> {
    let definition = |version: &Path| {
        let place = at(version.span());
        let p = private_at(place);
        // A type that is no version is reported once, by `all`.
        quote_spanned! {place=>
            || {
                #[allow(unused_imports)]
                use #p::convert::Defined as _;
                (&&#p::convert::Kind::<#version>::NEW).definition()
            }
        }
    };
    model.versions.iter().map(definition).collect()
}

/// Returns the method with the versions of a hub.
pub(super) fn all(model: &ResourceModel) -> TokenStream {
    if model.versions.is_empty() {
        return TokenStream::new();
    }
    let p = private();
    let others = model
        .versions
        .iter()
        .map(|version| quote_spanned!(at(version.span())=> .spoke::<Self, #version>()));
    quote! {
        fn versions() -> ::core::option::Option<#p::Versions> {
            ::core::option::Option::Some(#p::Versions::hub::<Self>()? #(#others)*)
        }
    }
}

/// Returns the impls of another version, whose definition is that of the hub.
pub(super) fn spoke(ident: &Ident, hub: &Path, version: &TokenStream) -> TokenStream {
    let p = private();
    quote! {
        #[automatically_derived]
        impl ::windlass::crd::CustomResource for #ident {
            fn crd() -> ::core::result::Result<
                #p::CustomResourceDefinition,
                ::windlass::Error,
            > {
                <#hub as ::windlass::crd::CustomResource>::crd()
            }

            fn package_version() -> ::core::option::Option<&'static str> {
                ::core::option_env!("CARGO_PKG_VERSION")
            }

            fn versions() -> ::core::option::Option<#p::Versions> {
                <#hub as ::windlass::crd::CustomResource>::versions()
            }
        }

        // An attribute may give every argument.
        #[allow(clippy::needless_update)]
        #[automatically_derived]
        impl #p::convert::Spoke for #ident {
            fn definition() -> ::core::result::Result<
                #p::CustomResourceDefinitionVersion,
                ::windlass::Error,
            > {
                #version
            }
        }
    }
}

/// Returns the impls that say which versions a hub lists, or the check that the hub lists this
/// version.
pub(super) fn listed(model: &ResourceModel) -> TokenStream {
    let ident = &model.ident;
    let check = model.hub.iter().map(|hub| {
        let place = at(hub.span());
        let p = private_at(place);
        quote_spanned!(place=> const _: fn() = #p::convert::is_listed::<#hub, #ident>;)
    });
    let impls = model.versions.iter().map(|version| {
        let p = private_at(at(version.span()));
        quote_spanned! {at(version.span())=>
            #[automatically_derived]
            impl #p::convert::Lists<#version> for #ident {}
        }
    });
    check.chain(impls).collect()
}

/// Returns the impl for a hub with faults, which may have lost a version.
pub(super) fn all_listed(model: &ResourceModel) -> TokenStream {
    let (p, ident) = (private(), &model.ident);
    quote! {
        #[automatically_derived]
        impl<__Version> #p::convert::Lists<__Version> for #ident {}
    }
}

/// Returns the conversion of another version, and the check that both versions are of the hub's
/// kind.
pub(super) fn conversion(model: &ResourceModel) -> TokenStream {
    let (Some(hub), Some(conversion)) = (&model.hub, &model.conversion) else {
        return TokenStream::new();
    };
    let place = at(hub.span());
    let (p, kind) = (private_at(place), &model.kind.value);
    let converted = conversion.expand(&model.ident, hub);
    let checked = quote_spanned! {place=>
        const _: () = #p::convert::check_kind(<#hub as #p::k8s_openapi::Resource>::KIND, #kind);
    };
    quote!(#converted #checked)
}
