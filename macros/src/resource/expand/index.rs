//! Generated constants of indexes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{private, private_at};
use crate::path::{CollectNames, ParsedPath, PathStep, located as at, statements};
use crate::resource::index::IndexAttr;
use crate::resource::model::ResourceModel;

/// Generates `pub const BY_HOST: Index<Website, String>`.
pub(super) fn indexes(model: &ResourceModel, faulty: bool) -> TokenStream {
    let ResourceModel { ident, vis, .. } = model;
    let mut taken: Vec<Ident> = Vec::new();
    let constants = model.indexes.iter().filter_map(|index| {
        let constant = Ident::new(&index.constant(), index.name.span());
        // Reported by `check`; a second constant would only add an error of the compiler.
        if taken.contains(&constant) {
            return None;
        }
        taken.push(constant.clone());
        let value =
            index.value.as_ref().map_or(quote!(::std::string::String), ToTokens::to_token_stream);
        // Place at which the compiler shows that the type is no value of an index.
        let place = at(index.value.as_ref().map_or_else(Span::call_site, Spanned::span));
        let doc = format!("`{}` objects by `{}`.", model.kind.value, index.source.text());
        let name = index.plain_name();
        let body = if faulty {
            quote_spanned!(place=> ::windlass::store::Index::new(#name, |_| ::core::unimplemented!()))
        } else {
            index_body(ident, index, &value, place)
        };
        Some(quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            #vis const #constant: ::windlass::store::Index<#ident, #value> = #body;
        })
    });
    let constants: TokenStream = constants.collect();
    if constants.is_empty() {
        return constants;
    }
    quote! {
        #[automatically_derived]
        impl #ident {
            #constants
        }
    }
}

/// Generates the body of an index constant.
fn index_body(object: &Ident, index: &IndexAttr, value: &TokenStream, place: Span) -> TokenStream {
    let name = index.plain_name();
    match &index.source {
        PathStep::Text(path) => {
            let parts = path.value.split('.').filter(|part| !part.is_empty());
            quote_spanned!(place=> ::windlass::store::Index::on_path(#name, &[#(#parts),*]))
        }
        PathStep::Fields(path) => {
            let values = index_values(path, value);
            let p = private();
            quote_spanned!(place=> ::windlass::store::Index::new(#name, |__object: &#object| {
                #[allow(unused_imports)]
                use #p::path::Inner as _;
                let __w = #p::path::Walk::of(__object);
                #values
            }))
        }
    }
}

/// Returns the values of an index; an error about their type points at the last field.
fn index_values(path: &ParsedPath, value: &TokenStream) -> TokenStream {
    let steps = statements(path, CollectNames::Ignored);
    let place: Span = at(path.end());
    let p = private_at(place);
    quote_spanned! {place=>
        #steps
        #p::index_values::<_, #value>(__w.inner().inner().inner())
    }
}
