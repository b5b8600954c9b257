//! The generated code of a controller: its wiring, and its grants as impls.

// DESIGN.md, 79: `Can<V, K>` is implemented; calls require `CanGet<K>` and its siblings

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Type};

use super::attrs::{Attrs, Grant, VERBS};
use crate::keys::same_tokens;

/// Verbs that a controller has on every kind it caches.
const READ: [&str; 3] = ["get", "list", "watch"];

/// Returns the generated code. With faults the wiring is empty and every grant that could be read
/// is kept.
pub(super) fn all(input: &DeriveInput, attrs: &Attrs, faulty: bool) -> TokenStream {
    let mut output = if faulty { empty_wiring(input) } else { wiring(input, attrs) };
    let (generics, ty, bounds) = parts(input);
    let mut owned: Vec<&Type> = Vec::new();
    for kind in &attrs.owns {
        // Reported by `check`; a second impl would only add an error of the compiler.
        if owned.iter().any(|before| same_tokens(before, kind)) {
            continue;
        }
        owned.push(kind);
        let target = quote_spanned!(at(kind.span())=> ::windlass::rbac::Owns<#kind>);
        output.extend(quote!(#[automatically_derived] impl #generics #target for #ty #bounds {}));
    }
    for grant in grants(attrs) {
        let Grant { verb, kind, .. } = &grant;
        let verb = verb_type(verb, Span::call_site());
        let target = quote_spanned!(at(kind.span())=> ::windlass::rbac::Can<#verb, #kind>);
        output.extend(quote!(#[automatically_derived] impl #generics #target for #ty #bounds {}));
    }
    output.extend(nothing(input, attrs));
    output
}

/// Returns grants on kinds without objects: see `windlass::__private::Nothing`.
fn nothing(input: &DeriveInput, attrs: &Attrs) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    let (nothing, neither) =
        (quote!(::windlass::__private::Nothing), quote!(::windlass::__private::Neither));
    // At least two impls: with a single one the compiler would assume its kind, and report
    // mismatched types instead of the missing grant.
    let kinds = |has_one: bool| std::iter::once(&nothing).chain((!has_one).then_some(&neither));
    let granted = grants(attrs);
    let can = VERBS.iter().flat_map(|verb| {
        let has_one = granted.iter().any(|grant| grant.verb == *verb);
        let verb = verb_type(verb, Span::call_site());
        kinds(has_one).map(move |kind| quote!(::windlass::rbac::Can<#verb, #kind>))
    });
    let owns = kinds(!attrs.owns.is_empty()).map(|kind| quote!(::windlass::rbac::Owns<#kind>));
    can.chain(owns)
        .map(|target| quote!(#[automatically_derived] impl #generics #target for #ty #bounds {}))
        .collect()
}

/// Returns a span that shows errors at `place` and resolves names at the derive.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Returns the parts of an `impl` of the controller: generics, type, where clause.
fn parts(input: &DeriveInput) -> (TokenStream, TokenStream, TokenStream) {
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    (generics.to_token_stream(), quote!(#ident #arguments), bounds.to_token_stream())
}

/// Returns the marker type of a verb.
fn verb_type(verb: &str, span: Span) -> TokenStream {
    let mut letters = verb.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let name: String = first.into_iter().chain(letters).collect();
    let name = format_ident!("{name}", span = span);
    quote!(::windlass::rbac::verbs::#name)
}

/// Returns every grant once: read access to cached kinds, and the rights that the user asked for.
fn grants(attrs: &Attrs) -> Vec<Grant> {
    let cached =
        attrs.object.iter().chain(&attrs.owns).chain(attrs.watches.iter().map(|watch| &watch.kind));
    let implied = cached.flat_map(|kind| {
        READ.map(|verb| Grant { verb: verb.into(), span: kind.span(), kind: kind.clone() })
    });
    let mut grants: Vec<Grant> = Vec::new();
    for grant in implied.chain(attrs.grants.iter().cloned()) {
        let same =
            |before: &Grant| before.verb == grant.verb && same_tokens(&before.kind, &grant.kind);
        if !grants.iter().any(same) {
            grants.push(grant);
        }
    }
    grants
}

/// Generates the impl of `Controller` with the wiring of all keys.
fn wiring(input: &DeriveInput, attrs: &Attrs) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    let owns = attrs
        .owns
        .iter()
        .map(|kind| quote_spanned!(at(kind.span())=> let wiring = wiring.owns::<#kind>();));
    let watches = attrs.watches.iter().map(|watch| {
        let (kind, by) = (&watch.kind, &watch.by);
        let place = at(by.span());
        match (&watch.when, watch.is_index) {
            (None, true) => {
                quote_spanned!(place=> let wiring = wiring.watches_by::<#kind, _>(#by);)
            }
            (None, false) => quote_spanned!(place=> let wiring = wiring.watches::<#kind>(#by);),
            (Some(when), true) => {
                quote_spanned!(place=> let wiring = wiring.watches_by_when::<#kind, _>(#when, #by);)
            }
            (Some(when), false) => {
                quote_spanned!(place=> let wiring = wiring.watches_when::<#kind>(#when, #by);)
            }
        }
    });
    let when = attrs.when.as_ref().map(|when| {
        let place = at(when.span());
        quote_spanned!(place=> let wiring = wiring.when(#when);)
    });
    let finalizer = attrs.finalizer.as_ref().map(|name| {
        let (text, place) = (&name.value, at(name.span));
        quote_spanned!(place=> let wiring = wiring.finalizer(#text);)
    });
    let can = attrs.grants.iter().map(|grant| {
        let (verb, kind) = (verb_type(&grant.verb, Span::call_site()), &grant.kind);
        quote_spanned!(at(grant.span)=> let wiring = wiring.can::<#verb, #kind>();)
    });
    let name = attrs.name.as_ref().map(|name| {
        let text = &name.value;
        quote!(let wiring = wiring.name(#text);)
    });
    let workers = attrs.workers.as_ref().map(|workers| {
        let count = workers.value;
        quote!(let wiring = wiring.workers(#count);)
    });
    let reconciles = attrs.object.as_ref().map(|object| {
        quote_spanned!(at(object.span())=> ::windlass::__private::reconciles::<Self, #object>();)
    });
    quote! {
        #[automatically_derived]
        impl #generics ::windlass::controller::Controller for #ty #bounds {
            fn wiring() -> ::windlass::controller::ControllerBuilder<Self> {
                #reconciles
                let wiring = ::windlass::controller::ControllerBuilder::new();
                #when
                #(#owns)*
                #(#watches)*
                #finalizer
                #(#can)*
                #name
                #workers
                wiring
            }
        }
    }
}

/// Generates the impl of `Controller` for a derive with faults.
fn empty_wiring(input: &DeriveInput) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    quote! {
        #[automatically_derived]
        impl #generics ::windlass::controller::Controller for #ty #bounds {
            fn wiring() -> ::windlass::controller::ControllerBuilder<Self> {
                ::core::unimplemented!()
            }
        }
    }
}
